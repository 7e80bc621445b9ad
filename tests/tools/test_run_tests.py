#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/run-tests counts every case, and a second run hides neither a defect nor its first output."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

RUN = pathlib.Path(__file__).resolve().parents[2] / "tools/run-tests"

# Stands for meson: writes the log that the n-th call is to find.
MESON = """#!/usr/bin/env python3
import pathlib, shutil, sys
here = pathlib.Path(__file__).parent
calls = here / "calls"
n = len(calls.read_text().splitlines()) if calls.exists() else 0
with calls.open("a") as out:
    out.write(" ".join(sys.argv[1:]) + "\\n")
shutil.copy(here / f"log{n}", here / "build/meson-logs/testlog.json")
sys.exit(int((here / f"code{n}").read_text()))
"""


def entry(name, stdout, result="OK", stderr=""):
    return {"name": f"outbox:unit / {name}", "stdout": stdout, "stderr": stderr, "result": result,
            "returncode": 0 if result == "OK" else 1}


def run(logs, *args):
    """(exit code, output, the calls of meson) with these logs, one for each call."""
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "build/meson-logs").mkdir(parents=True)
        meson = here / "meson"
        meson.write_text(MESON)
        meson.chmod(0o755)
        for number, log in enumerate(logs):
            (here / f"log{number}").write_text("".join(json.dumps(e) + "\n" for e in log))
            (here / f"code{number}").write_text("0" if all(e["result"] == "OK" for e in log) else "1")
        env = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")
        done = subprocess.run([RUN, here / "build", *args], capture_output=True, text=True, timeout=60, env=env)
        return done.returncode, done.stdout, (here / "calls").read_text().splitlines()


GOOD = entry("good", "1..2\nok 1 - a\nok 2 - b\n")
BAD = entry("bad", "1..2\nok 1 - c\nnot ok 2 - d\n", "FAIL", "it was late")
BAD_PASSES = entry("bad", "1..2\nok 1 - c\nok 2 - d\n")
LEAK = entry("leak", "1..1\nnot ok 1 - e\n", "FAIL", "ERROR: AddressSanitizer: heap-use-after-free")


def main():
    results = []
    code, out, _ = run([[GOOD, BAD]])
    results.append(("a_failure_is_counted_and_told", code == 1 and "FAILED outbox:unit / bad: d" in out and "it was late" in out
                    and out.endswith("3 passed, 1 failed\n")))
    code, out, calls = run([[GOOD, BAD], [BAD_PASSES]], "--again", "--no-suite", "sim", "--timeout-multiplier", "4")
    results.append(("what_passes_alone_is_told_as_unsteady", code == 0 and "UNSTEADY outbox:unit / bad: d" in out and "it was late" in out
                    and out.endswith("4 passed, 0 failed\n")))
    results.append(("only_what_failed_runs_again_and_alone", len(calls) == 2 and calls[1].endswith("--num-processes 1 --timeout-multiplier 4 bad")))
    code, out, _ = run([[GOOD, BAD], [BAD]], "--again")
    results.append(("what_fails_twice_has_failed", code == 1 and "UNSTEADY" not in out and out.endswith("3 passed, 1 failed\n")))
    code, out, calls = run([[GOOD, LEAK]], "--again")
    results.append(("what_a_sanitizer_found_is_not_run_again", code == 1 and len(calls) == 1 and out.endswith("2 passed, 1 failed\n")))
    code, out, _ = run([[entry("cut", "ok 1 - a\n")]])
    results.append(("cases_without_a_plan_fail", code == 1 and "no plan" in out))
    code, out, _ = run([[entry("speaks no TAP", "ok: 2000 seeds\n")]])
    results.append(("a_program_without_tap_is_one_case", code == 0 and out.endswith("1 passed, 0 failed\n")))
    skips = entry("skips", "1..1\nok 1 - a # SKIP no server\n")
    results.append(("a_skip_fails_where_none_may_be", run([[skips]])[0] == 0 and run([[skips]], "--no-skips")[0] == 1))
    lacks = entry("lacks", "1..1\nok 1 - a\n# SKIP b: no right to mount\n")
    results.append(("a_comment_may_tell_of_a_skip", run([[lacks]])[1].endswith("1 passed, 0 failed, 1 skipped\n") and run([[lacks]], "--no-skips")[0] == 1))
    claims = entry("claims", "1..1\nok 1 - a\n# N/A a full disk: not here\n")
    code, out, _ = run([[claims]], "--no-skips")
    results.append(("what_is_not_listed_cannot_be_called_not_applicable", code == 1 and "a full disk: not here (says N/A" in out))
    listed = entry("crash-lease-sqlite", "1..1\nok 1 - a\n# N/A a takeover at once: SQLite has no connection to lose\n")
    code, out, _ = run([[listed]], "--no-skips")
    results.append(("what_is_listed_does_not_apply", code == 0 and "does not apply to outbox:unit / crash-lease-sqlite: a takeover" in out))
    print(f"TAP version 13\n1..{len(results)}")
    for number, (name, good) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
    return 0 if all(good for _, good in results) else 1


sys.exit(main())
