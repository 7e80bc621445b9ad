#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/setup asks for the packages that the distribution has, whatever their version."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ("sh", "sed", "grep", "sort", "tail", "head", "cat")


def wanted(offered, clang, installed=""):
    """What it tells a user without root to install, on a system that offers these packages."""
    with tempfile.TemporaryDirectory() as folder:
        def fake(name, text):
            path = pathlib.Path(folder) / name
            path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
            path.chmod(0o755)

        for tool in TOOLS:
            os.symlink(shutil.which(tool), pathlib.Path(folder) / tool)
        fake("id", "echo 1000\n")
        fake("npm", "exit 0\n")
        fake("mkdir", "exit 0\n")
        fake("dpkg-query", f"printf '{installed}'\n")
        fake("apt-cache", f"case $1 in pkgnames) printf '{offered}' ;; depends) echo '  Depends: clang-{clang}' ;; esac\n")
        done = subprocess.run(["sh", str(ROOT / "tools/setup"), "fuzz"], env={"PATH": folder}, cwd=folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1, done.stderr
        return done.stderr.split()


def check(number, name, *arguments, has, lacks):
    words = wanted(*arguments)
    good = has <= set(words) and not lacks & set(words)
    print(f"{'ok' if good else 'not ok'} {number} - {name}")
    if not good:
        print("# " + " ".join(words))
    return good


def main():
    print("TAP version 13\n1..3")
    good = check(1, "debian_12", "postgresql-15\\nlibclang-rt-14-dev\\n", 14,
                 has={"postgresql-15", "libclang-rt-14-dev"}, lacks={"postgresql-17"})
    good &= check(2, "debian_13", "postgresql-17\\npostgresql-17-repack\\nlibclang-rt-19-dev\\nlibclang-rt-18-dev\\n", 19,
                  has={"postgresql-17", "libclang-rt-19-dev"}, lacks={"postgresql-15", "libclang-rt-14-dev"})
    good &= check(3, "what_is_installed_is_kept", "postgresql-17\\nlibclang-rt-14-dev\\n", 14,
                  "installed postgresql-15\\n", has={"libclang-rt-14-dev"}, lacks={"postgresql-17", "postgresql-15"})
    return 0 if good else 1


sys.exit(main())
