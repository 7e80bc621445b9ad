# SPDX-License-Identifier: MIT
"""A relay whose filter has changed: what it selects of history is delivered after all."""
import json
import subprocess
import sys

from harness import OUTBOX, TIMEOUT, case, main


def put(db, *rows):
    lines = "".join(json.dumps({"aggregate_type": kind, "aggregate_id": name, "event_type": event, "payload": n}) + "\n"
                    for n, (kind, name, event) in enumerate(rows))
    done = subprocess.run([OUTBOX, "push"], input=lines, text=True, cwd=db.dir, capture_output=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr


def events(messages):
    return [(m["aggregate_id"], m["event_type"]) for m in messages]


@case()
def history_that_a_wider_filter_selects_is_delivered_in_order(db):
    db.configure(relay="types: [Paid]")
    db.outbox("setup")
    put(db, ("account", "1", "Opened"), ("account", "1", "Paid"), ("account", "2", "Opened"), ("account", "1", "Closed"), ("order", "9", "Opened"))
    assert events(db.deliver()) == [("1", "Paid")]
    assert "0 messages" in db.outbox("reconcile", "default")
    db.configure(relay="types: [Paid, Opened, Closed], aggregates: [account]")
    assert "3 messages" in db.outbox("reconcile", "default", "--dry-run")
    put(db, ("account", "1", "Paid"))
    assert json.loads(db.outbox("reconcile", "default", "--json"))["messages"] == 3
    delivered = events(db.deliver())
    assert sorted(delivered) == sorted([("1", "Opened"), ("2", "Opened"), ("1", "Closed"), ("1", "Paid")]), delivered
    assert [event for name, event in delivered if name == "1"] == ["Opened", "Closed", "Paid"], delivered
    assert "0 messages" in db.outbox("reconcile", "default")
    assert db.deliver() == []


@case()
def a_narrower_filter_finds_nothing_and_an_unknown_reader_is_named(db):
    db.configure()
    db.outbox("setup")
    put(db, ("account", "1", "Opened"))
    assert "no reader 'default'" in db.outbox("reconcile", "default", code=1)
    assert len(db.deliver()) == 1
    db.configure(relay="types: [Paid]")
    assert "0 messages" in db.outbox("reconcile", "default")
    assert "no relay other" in db.outbox("reconcile", "other", code=1)


sys.exit(main())
