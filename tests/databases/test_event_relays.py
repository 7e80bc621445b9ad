# SPDX-License-Identifier: MIT
"""What a relay does for events: it sends snapshots, and opens payloads that were encrypted for a data subject."""
import base64
import json
import os
import subprocess
import sys

from harness import OUTBOX, TIMEOUT, case, main
from seal import Subject


def put(db, *events):
    lines = "".join(json.dumps({"aggregate_type": "account", "aggregate_id": "1", "event_type": "Paid", **event}) + "\n" for event in events)
    done = subprocess.run([OUTBOX, "push"], input=lines, text=True, cwd=db.dir, capture_output=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr


def begin(db, relay="", keys=None):
    """With a file of master keys, as an operator has it; returns the first of them."""
    if keys is not None:
        db.write("keys", keys)
        relay = f"master_keys: '${{file:{db.path('keys')}}}', {relay}"
    db.configure(relay=relay)
    db.outbox("setup", "--events")


def master():
    key = os.urandom(32)
    return key, "2026-05:" + base64.b64encode(key).decode()


@case()
def a_snapshot_goes_out_where_the_route_says_so(db):
    begin(db)
    state = {"balance": 7, "note": "x" * 200000}
    put(db, {"payload": {"n": 1}, "snapshot": {"balance": 1}}, {"payload": {"n": 2}}, {"payload": {"n": 3}, "snapshot": state})
    assert all("snapshot" not in line for line in db.deliver())
    db.outbox("readers", "seek", "default", "beginning", "--yes")
    db.configure(relay="route: { snapshot: true }")
    lines = db.deliver()
    assert [line.get("snapshot") for line in lines] == [{"balance": 1}, None, state], lines
    assert [line["payload"] for line in lines] == [{"n": 1}, {"n": 2}, {"n": 3}]


@case()
def a_rule_sends_the_snapshots_of_its_messages_alone(db):
    db.configure(relay="route: { rules: [ { event_type: Opened, snapshot: true, envelope: cloudevents-structured } ] }")
    db.outbox("setup", "--events")
    put(db, {"event_type": "Opened", "payload": {}, "snapshot": {"balance": 1}}, {"payload": {}, "snapshot": {"balance": 2}})
    opened, paid = db.deliver()
    assert json.loads(opened["payload"]["snapshot"]) == {"balance": 1}, opened
    assert "snapshot" not in opened and "snapshot" not in paid, (opened, paid)


@case()
def a_relay_with_the_master_key_sends_plain_payloads(db):
    key, text = master()
    begin(db, keys=text)
    ann = Subject(db, "ann", "2026-05", key)
    put(db, {"payload": ann.encrypt({"iban": "DE1"}), "headers": {"tenant": "a"}}, {"payload": {"plain": True}},
        {"payload": {"outbox_encrypted": 1, "not": "ours"}})
    lines = db.deliver()
    assert [line["payload"] for line in lines] == [{"iban": "DE1"}, {"plain": True}, {"outbox_encrypted": 1, "not": "ours"}], lines
    assert lines[0]["headers"] == {"tenant": "a"}
    # without the key, another relay sends what is stored
    db.configure(name="sealed")
    assert db.deliver("--relay", "sealed")[0]["payload"]["subject"] == "ann"


@case()
def a_forgotten_subject_is_null_with_a_mark_and_stops_nobody(db):
    key, text = master()
    begin(db, keys=text)
    ann, bob = Subject(db, "ann", "2026-05", key), Subject(db, "bob", "2026-05", key)
    put(db, {"payload": ann.encrypt({"n": 1}), "headers": {"tenant": "a"}}, {"payload": ann.encrypt({"n": 2})}, {"payload": bob.encrypt({"n": 3})})
    db.outbox("events", "forget", "ann", "--yes")
    lines = db.deliver()
    assert [line["payload"] for line in lines] == [None, None, {"n": 3}], lines
    assert lines[0]["headers"] == {"outbox-forgotten": True, "tenant": "a"}, lines[0]
    assert lines[1]["headers"] == {"outbox-forgotten": True}, lines[1]
    assert "headers" not in lines[2]
    assert "caught up" in db.outbox("wait", "--reader", "default", "--timeout", "0s")


@case()
def a_wrong_master_key_is_one_clear_error(db):
    key, _ = master()
    _, other = master()
    begin(db, keys=other)
    ann = Subject(db, "ann", "2026-05", key)
    put(db, {"payload": ann.encrypt({"n": 1})})
    said = db.outbox("work", "--once", code=1)
    assert "master key '2026-05' does not unwrap the key of subject 'ann': it is the wrong key" in said, said
    assert other.split(":")[1] not in said
    # and one that was rotated away
    db.write("keys", other.replace("2026-05", "2027-01"))
    said = db.outbox("work", "--once", code=1)
    assert "wrapped by master key '2026-05', which is not in the keyring" in said, said
    # nothing is lost: with the right one it goes out
    db.write("keys", "2026-05:" + base64.b64encode(key).decode())
    assert [line["payload"] for line in db.deliver()] == [{"n": 1}]
    # no keyring at all
    db.write("keys", "nonsense")
    said = db.outbox("work", "--once", code=1)
    assert "master_keys: master key 1 is not ID:BASE64" in said, said


@case()
def a_payload_that_was_changed_dies_alone(db):
    key, text = master()
    begin(db, keys=text)
    ann = Subject(db, "ann", "2026-05", key)
    changed = ann.encrypt({"n": 1})
    changed["data"] = "AAAA" + changed["data"][4:]
    put(db, {"payload": changed}, {"payload": ann.encrypt({"n": 2})})
    assert "1 message failed" in db.outbox("work", "--once", code=1)
    with open(db.path("out.ndjson"), encoding="utf-8") as lines:
        assert [json.loads(line)["payload"] for line in lines] == [{"n": 2}]
    assert "its encrypted payload was changed" in db.outbox("list", "dead", "--json")


sys.exit(main())
