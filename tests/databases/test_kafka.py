# SPDX-License-Identifier: MIT
"""A real Kafka behind the relay, read back by another client."""
import json
import os
import re
import subprocess
import sys

from brokers import MESSAGE_MAX, Kafka
from harness import case, main
from relays import Books, Relay, insert, note, number, until, waiting

KEYS = 37
RELAY = "idle_backoff_ms: 100ms, batch_size: 500"
broker = None


def kafka():
    global broker
    broker = broker or Kafka()
    return broker


def begin(db, topic, sink=None):
    db.configure(sink=sink or kafka().sink(), relay=f"{RELAY}, route: {{ destination: {topic} }}")
    db.outbox("setup")


def audit(books, records, repeats=0):
    """Each key is in one partition, there is nothing else, and first copies are in order."""
    places = {}
    for record in records:
        assert places.setdefault(record["key"], record["partition"]) == record["partition"], record
    books.audit([{"aggregate_id": record["headers"]["aggregate_id"], "payload": json.loads(record["payload"])}
                 for record in records], repeats)


def untouched(db):
    """No message has cost an attempt."""
    return number(db, "SELECT count(*) FROM outbox_exceptions WHERE attempts > 0") == 0


@case("sqlite")
def records_carry_key_headers_and_payload(db):
    begin(db, "content")
    sent = db.outbox("push", "--type", "order", "--aggregate", "1042", "--event", "OrderPlaced", "--payload", '{"total": 99}',
                     "--headers", '{"trace": "abc"}').strip()
    db.outbox("work", "--once")
    (record,) = kafka().read("content")
    assert record["key"] == "order:1042" and record["payload"] == '{"total": 99}', record
    wanted = {"id": sent, "event_type": "OrderPlaced", "aggregate_type": "order", "aggregate_id": "1042", "trace": "abc"}
    assert wanted.items() <= record["headers"].items(), record


@case("sqlite")
def every_key_is_in_order_in_one_partition(db):
    begin(db, "order")
    books, many = Books(), 5000
    db.run(insert(db, 1, many, KEYS))
    note(books, 1, many, KEYS)
    db.outbox("work", "--once", "--workers", "2")
    records = kafka().read("order")
    assert len({record["partition"] for record in records}) == 4
    audit(books, records)
    assert untouched(db)


@case("sqlite")
def a_broker_that_is_killed_again_and_again_loses_nothing(db):
    begin(db, "killed")
    books, half = Books(), 2500

    def push(low):
        db.run(insert(db, low, low + half - 1, KEYS))
        note(books, low, low + half - 1, KEYS)

    with Relay(db, "--workers", "2") as relay:
        for low in range(1, 6 * half, 2 * half):
            told = relay.said().count("sink is down")
            push(low)
            until("some are out", lambda: waiting(db) is not None and waiting(db) < half)
            kafka().kill()
            push(low + half)
            until("the relay has seen it", lambda: relay.said().count("sink is down") > told)
            kafka().start()
            until("nothing waits", lambda: waiting(db) == 0)
        relay.stop()
    # what was under way is sent again
    audit(books, kafka().read("killed"), repeats=3 * 4096)
    assert untouched(db)


@case("sqlite")
def a_message_that_the_broker_finds_too_large_dies_alone(db):
    begin(db, "large")
    books = Books()
    db.run(insert(db, 1, 50, 5))
    db.run("INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) VALUES (randomblob(16), 'bulk', 'large', 'E', ?)",
           json.dumps({"n": 0, "pad": "x" * 2 * MESSAGE_MAX}))
    db.run(insert(db, 51, 100, 5))
    note(books, 1, 100, 5)
    assert "Message size too large" in db.outbox("work", "--once", code=1)
    assert db.run("SELECT state, aggregate_id FROM outbox_messages WHERE state <> 'published'") == [("dead", "large")]
    audit(books, kafka().read("large"), repeats=100)


def logins():
    """The mechanisms that this librdkafka can use."""
    said = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=False)
    version = re.search(r"librdkafka (\d+)\.(\d+)\.(\d+)", said.stdout + said.stderr)
    if version and tuple(map(int, version.groups())) >= (2, 6, 1):
        return ["PLAIN", "SCRAM-SHA-512"]
    print("# SKIP SCRAM: librdkafka before 2.6.1 sends a nonce that Kafka 4 refuses")
    return ["PLAIN"]


@case("sqlite")
def tls_and_logins_pass(db):
    for mechanism in logins():
        topic = f"secure-{mechanism}"
        begin(db, topic, kafka().secure_sink(mechanism))
        db.outbox("push", "--type", "order", "--event", "E", "--payload", "{}")
        db.outbox("work", "--once")
        assert len(kafka().read(topic)) == 1


@case("sqlite")
def a_wrong_password_or_authority_is_an_outage_that_says_so(db):
    begin(db, "refused", kafka().secure_sink())
    db.outbox("push", "--type", "order", "--event", "E", "--payload", "{}")
    for change, text in (({"password": "wrong-secret"}, "Authentication failed"),
                         ({"mechanism": "SCRAM-SHA-512", "password": "wrong-secret"}, "Authentication failed"),
                         ({"ca": "other.crt"}, "certificate verify failed")):
        begin(db, "refused", kafka().secure_sink(**change))
        with Relay(db, log="-".join(change) + ".log") as relay:
            until(f"it says {text}", lambda: text.lower() in relay.said().lower())
            assert "wrong-secret" not in relay.said()
            relay.stop()
        assert untouched(db) and waiting(db) == 1
    begin(db, "refused", kafka().secure_sink())
    db.outbox("work", "--once")
    assert len(kafka().read("refused")) == 1


if not os.environ.get("OUTBOX_TEST_KAFKA"):
    print("1..0 # SKIP OUTBOX_TEST_KAFKA names no Kafka; `make matrix-servers` fetches one")
    sys.exit(0)
sys.exit(main())
