#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""After an installation where the system does not look, tools/libdir-hint says how programs find the libraries."""
import pathlib
import subprocess
import sys
import tempfile

HINT = pathlib.Path(__file__).resolve().parents[2] / "tools/libdir-hint"


def hint(prefix):
    return subprocess.run([HINT, prefix], capture_output=True, text=True, timeout=60, check=True).stdout


def main():
    with tempfile.TemporaryDirectory() as prefix:
        folder = pathlib.Path(prefix) / "lib/x86_64-linux-gnu"
        folder.mkdir(parents=True)
        (folder / "liboutbox.so").touch()
        told = hint(prefix)
    results = [
        ("an_unusual_prefix_is_told_with_rpath_and_path",
         f"-Wl,-rpath,{folder}" in told and f"LD_LIBRARY_PATH={folder}" in told and f"PKG_CONFIG_PATH={folder}/pkgconfig" in told),
        ("the_usual_prefixes_need_no_word", hint("/usr") == "" and hint("/usr/local") == ""),
    ]
    print(f"TAP version 13\n1..{len(results)}")
    for number, (name, good) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
    return 0 if all(good for _, good in results) else 1


sys.exit(main())
