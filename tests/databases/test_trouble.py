# SPDX-License-Identifier: MIT
"""Messages that do not go the straight way, many at a time: refused ones, delayed ones, and two relays of one log."""
import sys
import time

from harness import case, main
from relays import SCALE, Books, Lines, Relay, insert, note, number, one, readers, until, waiting

KEYS = 300
LEASING = "idle_backoff_ms: 100ms, leasing: { lease_ttl: 5s, lease_renew: 1500ms, heartbeat_ttl: 5s }"
RELAY = f"batch_size: 500, {LEASING}, retry: {{ base_delay: 300ms, max_backoff: 1s, max_attempts: 100 }}"

# Refuses so many of a thousand numbers, each once; takes its time for every message.
HANDLER = """
import json, os, sys, time
refuse, pause, path = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
refused, out = set(), open(path, "a")
for line in sys.stdin:
    message = json.loads(line)
    number = message["payload"]["n"]
    time.sleep(pause)
    if message["event_type"] == "Poison":
        print("reject", message["id"], "never", flush=True)
    elif number % 1000 < refuse and number not in refused and not os.path.exists(f"refused.{number}"):
        refused.add(number)
        open(f"refused.{number}", "w").close()
        print("retry", message["id"], "not yet", flush=True)
    else:
        out.write(line)
        out.flush()
        print("ok", message["id"], flush=True)
"""


def handler(refuse=0, pause=0, path="out.ndjson"):
    return f'type: exec, command: "/usr/bin/python3 handler.py {refuse} {pause} {path}", window: 500'


def begin(db, relay=RELAY, **options):
    db.write("handler.py", HANDLER)
    db.configure(relay=relay, **options)
    db.outbox("setup")


def drain(db, books, low, high):
    """How long it takes to deliver these numbers."""
    lines = Lines(db)
    db.run(insert(db, low, high, KEYS))
    note(books, low, high, KEYS)
    with Relay(db) as relay:
        began = time.monotonic()
        lines.wait(books.count())
        took = time.monotonic() - began
        until("nothing waits", lambda: waiting(db) == 0)
        relay.stop()
    books.audit(lines.read())
    return took


@case()
def fifteen_refused_of_a_thousand_do_not_stand_in_the_way(db):
    """A key waits for its refused message and no other does: it takes a while longer, not for ever."""
    begin(db, sink=handler())
    books, many = Books(), 1000 * SCALE
    clean = drain(db, books, 1, many)
    db.configure(relay=RELAY, sink=handler(refuse=15))
    refused = drain(db, books, many + 1, 2 * many)
    # a machine that is busy with something else must not fail it; standing still took minutes
    assert refused < 4 * clean + 10, f"{refused:.1f} s, and {clean:.1f} s when nothing is refused"
    assert number(db, "SELECT count(*) FROM outbox_messages WHERE state <> 'published'") == 0


@case()
def many_delayed_messages_come_when_they_are_due(db):
    """The others go on meanwhile; none comes before its time; none stays."""
    begin(db)
    books, lines, many = Books(), Lines(db), 1000 * SCALE
    delay = {"sqlite": "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + 6000000",
             "postgres": "clock_timestamp() + interval '6 seconds'",
             "mysql": "TIMESTAMPADD(SECOND, 6, UTC_TIMESTAMP(6))"}[db.kind]
    began = time.time()
    db.run(insert(db, 1, many, KEYS, before="d", extra="available_at=" + delay))
    db.run(insert(db, 1, 1000, KEYS))
    note(books, 1, 1000, KEYS)
    note(books, 1, many, KEYS, before="d")
    with Relay(db) as relay:
        early = list(lines.wait(1000))
        if time.time() < began + 6:
            assert all(line["aggregate_id"].startswith("k") for line in early[:1000])
        until("they are known", lambda: time.time() > began + 6 or
              number(db, "SELECT count(*) FROM outbox_exceptions") == many)
        assert len(lines.read()) == 1000 or time.time() >= began + 6
        lines.wait(1000 + many)
        until("nothing waits", lambda: waiting(db) == 0)
        relay.stop()
    # delayed messages are not in order with others, and here all are due at once
    for key, numbers in books.keys.items():
        numbers.sort()
    books.audit(sorted(lines.read(), key=lambda line: line["payload"]["n"]))
    assert number(db, "SELECT count(*) FROM outbox_messages WHERE state <> 'published'") == 0


FAN = """stores: {{ main: {{ url: "{url}", {store} }} }}
sinks: {{ fast: {{ type: file, path: fast.ndjson }}, slow: {{ {slow} }} }}
relays:
  - {{ name: fast, sink: fast, {leasing} }}
  - {{ name: slow, sink: slow, {leasing}, retry: {{ base_delay: 300ms, max_backoff: 1s }} }}
"""


def fan(db, slow, store="retention: { published: never }"):
    db.write("handler.py", HANDLER)
    db.write("outbox.yaml", FAN.format(url=db.url(), slow=slow, store=store, leasing=LEASING))
    db.outbox("setup")


@case()
def two_relays_of_one_log_go_at_their_own_speed(db):
    """Each gets everything, in order; failures and dead messages of one are nothing to the other."""
    fan(db, handler(refuse=15, pause=0.002, path="slow.ndjson"))
    fast, slow, books = Lines(db, "fast.ndjson"), Lines(db, "slow.ndjson"), Books()
    db.run(insert(db, 1, 3000, KEYS))
    note(books, 1, 3000, KEYS)
    connection = db.connect()
    one(db, connection.cursor(), "poison", 1, event="Poison")
    connection.commit()
    connection.close()
    with Relay(db) as relay:
        fast.wait(3001, 60)
        assert len(slow.read()) < 3000, "the slow one is not slow"
        assert readers(db)["slow"]["position"] < readers(db)["fast"]["position"] or waiting(db, "slow") > 0
        slow.wait(3000)
        until("nothing waits", lambda: waiting(db, "slow") == 0 and waiting(db, "fast") == 0)
        relay.stop()
    books.audit(slow.read())
    books.commit("poison", 1)
    books.audit(fast.read())
    assert (readers(db)["slow"]["dead"], readers(db)["fast"]["dead"]) == (1, 0)


@case()
def retention_waits_for_the_reader_that_is_far_behind(db):
    """Rows that it has not passed stay, however old; then they go. Somebody is told meanwhile."""
    store = "retention: { published: 0, every: 1s, batch: 1000 }"
    fan(db, handler(pause=0.001, path="slow.ndjson"), store)
    slow, fast, books = Lines(db, "slow.ndjson"), Lines(db, "fast.ndjson"), Books()
    with Relay(db, "--relay", "slow") as relay:  # until it has a reader
        until("a reader", lambda: "slow" in readers(db))
        relay.stop()
    db.run(insert(db, 1, 3000, KEYS))
    note(books, 1, 3000, KEYS)
    day = {"sqlite": "at - 86400000000", "postgres": "at - interval '1 day'", "mysql": "at - INTERVAL 1 DAY"}[db.kind]
    db.run(f"UPDATE outbox_batches SET at = {day} WHERE reader = 'slow'")
    with Relay(db, "--relay", "fast", log="fast.log") as first:
        fast.wait(3000)
        until("it is named", lambda: "a reader that does not move keeps old rows" in first.said())
        assert "reader=slow" in first.said() and readers(db)["slow"]["holds_retention"], first.said()
        assert number(db, "SELECT count(*) FROM outbox") == 3000
        with Relay(db, "--relay", "slow", log="slow.log") as second:
            slow.wait(1000)
            kept = number(db, "SELECT count(*) FROM outbox")
            assert kept >= 3000 - len(slow.read()), f"{kept} rows are left and {len(slow.read())} delivered"
            slow.wait(3000)
            until(lambda: f"{number(db, 'SELECT count(*) FROM outbox')} rows are left",
                  lambda: number(db, "SELECT count(*) FROM outbox") == 0)
            second.stop()
        first.stop()
    books.audit(slow.read())
    books.audit(fast.read())


sys.exit(main())
