#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is shipped for systemd, Prometheus and Grafana is valid, and names only what there is."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
EXPOSURE_MAX = 2.0
# of histograms
SUFFIXES = ("_bucket", "_sum", "_count")
cases = []


def case(function):
    cases.append(function)
    return function


class Skip(Exception):
    pass


def run(*command, cwd=None):
    if not shutil.which(command[0]):
        raise Skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def documented():
    """The names in the table of docs/operate.md."""
    text = (ROOT / "docs/operate.md").read_text(encoding="utf-8")
    section = text.split("## Metrics", 1)[1].split("\n## ", 1)[0]
    names = set()
    for line in section.splitlines():
        if line.startswith("| `outbox_"):
            names |= set(re.findall(r"`(outbox_\w+)", line.split("|")[1]))
    assert len(names) > 20, names
    return names


def used(text):
    names = set()
    for name in re.findall(r"\b(outbox_\w+)", text):
        for suffix in SUFFIXES:
            if name.endswith(suffix) and name[:-len(suffix)] in documented():
                name = name[:-len(suffix)]
        names.add(name)
    return names


def dashboard():
    return json.loads((PACKAGING / "grafana/outbox.json").read_text(encoding="utf-8"))


def expressions():
    """Of panels and annotations, with Grafana's variables filled in."""
    board = dashboard()
    found = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    found += [note["expr"] for note in board["annotations"]["list"]]
    for name, value in (("$__rate_interval", "5m"), ("$store", ".*"), ("$relay", ".*")):
        found = [text.replace(name, value) for text in found]
    assert not [text for text in found if "$" in text]
    return found


def rules():
    return (PACKAGING / "prometheus/outbox.rules.yml").read_text(encoding="utf-8")


@case
def the_alert_rules_are_valid():
    code, text = run("promtool", "check", "rules", str(PACKAGING / "prometheus/outbox.rules.yml"))
    assert code == 0, text


@case
def each_alert_fires_and_does_not_fire():
    code, text = run("promtool", "test", "rules", "outbox.test.yml", cwd=PACKAGING / "prometheus")
    assert code == 0, text
    tested = (PACKAGING / "prometheus/outbox.test.yml").read_text(encoding="utf-8")
    for alert in re.findall(r"- alert: (\w+)", rules()):
        assert f"eval_time: 110m, alertname: {alert} }}" in tested, f"{alert} is not tested when all is well"
        assert re.search(rf"alertname: {alert}\n\s+exp_alerts:\n\s+- exp_labels", tested), f"{alert} never fires"


@case
def a_rule_with_another_threshold_fails_its_test():
    if not shutil.which("promtool"):
        raise Skip("promtool is not installed")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(PACKAGING / "prometheus/outbox.test.yml", folder)
        changed = rules().replace("(outbox_oldest_due_seconds) > 300", "(outbox_oldest_due_seconds) > 30000")
        assert changed != rules()
        (pathlib.Path(folder) / "outbox.rules.yml").write_text(changed, encoding="utf-8")
        code, text = run("promtool", "test", "rules", "outbox.test.yml", cwd=folder)
        assert code != 0, text


@case
def the_alert_rules_name_documented_metrics():
    names = used("\n".join(re.findall(r"expr: (.*)", rules())))
    assert names and not names - documented(), names - documented()


@case
def every_alert_is_in_the_manual():
    manual = (ROOT / "docs/operate.md").read_text(encoding="utf-8")
    for alert in re.findall(r"- alert: (\w+)", rules()):
        assert f"`{alert}`" in manual, alert


@case
def every_expression_of_the_dashboard_parses():
    with tempfile.TemporaryDirectory() as folder:
        # JSON is YAML.
        text = {"groups": [{"name": "board", "rules": [{"record": f"board:{i}:expr", "expr": expr}
                                                       for i, expr in enumerate(expressions())]}]}
        path = pathlib.Path(folder) / "board.yml"
        path.write_text(json.dumps(text), encoding="utf-8")
        code, out = run("promtool", "check", "rules", str(path))
        assert code == 0 and f"{len(expressions())} rules found" in out, out


@case
def the_dashboard_names_documented_metrics():
    variables = [v["definition"] for v in dashboard()["templating"]["list"] if "definition" in v]
    names = used("\n".join(expressions() + variables))
    assert names and not names - documented(), names - documented()


@case
def the_dashboard_has_four_rows_and_a_relay_to_choose():
    board = dashboard()
    assert [p["title"] for p in board["panels"] if p["type"] == "row"] == ["Health", "Flow", "Latency", "Database"]
    assert [v["name"] for v in board["templating"]["list"]] == ["datasource", "store", "relay"]
    ids = [p["id"] for p in board["panels"]]
    assert len(ids) == len(set(ids))
    for panel in board["panels"]:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24, panel["title"]


@case
def the_unit_is_confined():
    code, text = run("systemd-analyze", "security", "--offline=true", str(PACKAGING / "systemd/outbox.service"))
    level = re.search(r"exposure level for outbox.service: ([0-9.]+)", text)
    if not level:
        raise Skip(f"this systemd-analyze cannot look at a file (exit code {code})")
    assert float(level.group(1)) <= EXPOSURE_MAX, text


def main():
    failed = False
    print(f"1..{len(cases)}")
    for number, function in enumerate(cases, 1):
        name = function.__name__
        try:
            function()
            print(f"ok {number} - {name}")
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}")
        except AssertionError as err:
            failed = True
            print(f"not ok {number} - {name}")
            for line in str(err).splitlines()[:40]:
                print(f"# {line}")
    return failed


sys.exit(main())
