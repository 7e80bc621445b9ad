# SPDX-License-Identifier: MIT
"""Subscriptions: a statement in the log's own database, whose effect is exactly once."""
import json
import random
import subprocess
import sys
import threading

from harness import OUTBOX, TIMEOUT, case, main
from relays import SCALE, Relay, until

APPLY = {
    "postgres": "INSERT INTO balance AS b (account, cents, events) VALUES (:aggregate_id, (:payload::json->>'cents')::bigint, 1) "
                "ON CONFLICT (account) DO UPDATE SET cents = b.cents + excluded.cents, events = b.events + 1",
    "sqlite": "INSERT INTO balance (account, cents, events) VALUES (:aggregate_id, json_extract(:payload, '$.cents'), 1) "
              "ON CONFLICT (account) DO UPDATE SET cents = cents + excluded.cents, events = events + 1",
    "mysql": "INSERT INTO balance (account, cents, events) VALUES (:aggregate_id, JSON_VALUE(:payload, '$.cents'), 1) "
             "ON DUPLICATE KEY UPDATE cents = cents + VALUES(cents), events = events + 1",
}


def begin(db, statement=None, relay="leasing: { lease_ttl: 3s, lease_renew: 500ms, heartbeat_ttl: 3s }"):
    statement = statement or APPLY[db.kind]
    db.configure(sink="type: sql, statement: " + json.dumps(statement), relay=relay, name="projection")
    db.outbox("setup", "--events")
    db.run("CREATE TABLE balance (account VARCHAR(40) PRIMARY KEY, cents BIGINT NOT NULL CHECK (cents < 1000000), events BIGINT NOT NULL)")


def put(db, rows):
    lines = "".join(json.dumps({"aggregate_type": "account", "aggregate_id": str(account), "event_type": "Paid",
                                "payload": {"cents": cents}}) + "\n" for account, cents in rows)
    done = subprocess.run([OUTBOX, "push"], input=lines, text=True, cwd=db.dir, capture_output=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr


def balances(db):
    return {account: (int(cents), int(events)) for account, cents, events in db.run("SELECT account, cents, events FROM balance")}


@case()
def a_statement_and_the_progress_commit_together(db):
    begin(db)
    put(db, [(n % 7, n) for n in range(100)])
    db.outbox("work", "--once")
    wanted = {str(a): (sum(n for n in range(100) if n % 7 == a), len([n for n in range(100) if n % 7 == a])) for a in range(7)}
    assert balances(db) == wanted, balances(db)
    db.outbox("work", "--once")
    assert balances(db) == wanted
    assert "caught up" in db.outbox("wait", "--reader", "projection", "--timeout", "0s")


@case()
def seeking_to_the_beginning_builds_it_anew(db):
    begin(db)
    put(db, [(n % 3, 1) for n in range(30)])
    db.outbox("work", "--once")
    before = balances(db)
    db.run("DELETE FROM balance")
    db.outbox("readers", "seek", "projection", "beginning", "--yes")
    waits = db.start("wait", "--reader", "projection", "--timeout", "0s", "--json")
    report = json.loads(waits.communicate(timeout=TIMEOUT)[0])
    assert waits.returncode == 1
    assert report == {"reader": "projection", "caught_up": False, "lag_messages": 30, "lag_seconds": report["lag_seconds"]}, report
    db.outbox("work", "--once")
    assert balances(db) == before


@case()
def the_lag_of_a_subscription_is_a_metric_in_messages_and_seconds(db):
    begin(db)
    put(db, [(1, 5)] * 3)
    db.outbox("work", "--once")
    labels = '{store="main",relay="projection"}'
    assert f"outbox_lag_messages{labels} 0\n" in db.outbox("metrics")
    put(db, [(1, 5)] * 4)
    text = db.outbox("metrics")
    assert f"outbox_lag_messages{labels} 4\n" in text, text
    seconds = [line for line in text.splitlines() if line.startswith(f"outbox_oldest_due_seconds{labels} ")]
    assert len(seconds) == 1 and float(seconds[0].split()[-1]) >= 0, text


@case()
def a_message_that_fails_for_ever_holds_its_key_alone_and_dies(db):
    begin(db, relay="retry: { max_attempts: 2, base_delay: 1ms, max_backoff: 1ms, jitter: 0 }")
    put(db, [(1, 5), (2, 1), (1, 5000000), (1, 7), (2, 2), (3, 9)])
    with Relay(db):
        until("it is dead", lambda: "dead" in db.outbox("list", "dead", "--json") and balances(db).get("1") == (12, 2))
    assert balances(db) == {"1": (12, 2), "2": (3, 2), "3": (9, 1)}, balances(db)
    dead = db.outbox("list", "dead", "--json")
    assert "5000000" in dead or "running the statement" in dead or "balance" in dead, dead


@case()
def wrong_sql_stops_the_relay_and_says_why(db):
    begin(db, statement="INSERT INTO nowhere (id) VALUES (:id)")
    put(db, [(1, 1)])
    said = db.outbox("work", "--once", code=1)
    assert "nowhere" in said, said
    db.configure(sink="type: sql, statement: \"DELETE FROM balance WHERE account = :acount\"", name="projection")
    assert ":acount" in db.outbox("work", "--once", code=1)


@case()
def workers_that_are_killed_at_random_apply_every_event_once(db):
    begin(db)
    total, chance = 100 * SCALE, random.Random(7)
    stop = threading.Event()

    def produce():
        try:
            for start in range(0, total, 40):
                put(db, [(n % 11, n) for n in range(start, start + 40)])
        finally:
            stop.set()

    producer = threading.Thread(target=produce)
    producer.start()
    kills = 0
    while not stop.is_set() or kills < 6:
        with Relay(db, "--workers", "2", log=f"work{kills}.log"):
            threading.Event().wait(chance.uniform(0.02, 0.5))  # then it is killed
            kills += 1
    producer.join()
    with Relay(db, "--workers", "2", log="last.log"):
        db.outbox("wait", "--reader", "projection", "--timeout", "60s")
    got = balances(db)
    assert sum(events for _, events in got.values()) == total, got
    assert sum(cents for cents, _ in got.values()) == sum(range(total)), got


sys.exit(main())
