# SPDX-License-Identifier: MIT
"""The examples of an event-sourced account, in C on SQLite and with SQL alone on PostgreSQL."""
import os
import subprocess
import sys

from harness import TIMEOUT, case, main

BANK_PY = sys.argv.pop(1)


def run(words, code=0):
    done = subprocess.run(words, text=True, capture_output=True, timeout=TIMEOUT, check=False)
    assert done.returncode == code, f"{words}: {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout if code == 0 else done.stderr


def use(db, bank, shown):
    """The same on both; `shown` is how `show` ends."""
    db.configure()
    db.outbox("setup", "--events")
    run([*bank, "open", "42", "Ann"])
    run([*bank, "open", "7", "Bob"])
    for _ in range(12):
        run([*bank, "deposit", "42", "1000"])
    run([*bank, "withdraw", "42", "2500"])
    assert "has not so much" in run([*bank, "withdraw", "7", "1"], 1)
    assert "exists" in run([*bank, "open", "42", "Eve"], 1)
    assert "no such account" in run([*bank, "deposit", "8", "1"], 1)
    assert run([*bank, "show", "42"]) == f"Ann: 9500 cents after 14 events{shown}\n"
    assert run([*bank, "project"]) == "15 events\n"
    run([*bank, "deposit", "7", "5"])
    assert run([*bank, "project"]) == "1 events\n"
    assert run([*bank, "project"]) == "0 events\n"
    assert sorted(db.run("SELECT account, cents FROM balances")) == [("42", 9500), ("7", 5)]


@case("sqlite")
def the_account_in_c_has_snapshots_and_a_projection(db):
    use(db, [os.environ["BANK"], db.file], ", snapshot of 10")


@case("postgres")
def the_account_in_python_needs_sql_alone(db):
    use(db, [sys.executable, BANK_PY, f"host={os.environ['TEST_POSTGRES_DIR']} port={os.environ['TEST_POSTGRES_PORT']} user=postgres dbname={db.name}"], "")


sys.exit(main())
