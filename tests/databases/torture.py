# SPDX-License-Identifier: MIT
"""End to end, all real: a producer, a database, the relay, a broker, a consumer, its database. Relay and consumer are killed at random;
every message has its effect exactly once, in order per key. OUTBOX_TORTURE_SECONDS makes it longer."""
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import time

from consumers import APPLY, AT, HANDLED, until
from harness import OUTBOX

KEYS = 10


class Victim:
    """A program that is started again whenever it was killed."""

    def __init__(self, db, *words):
        self.db, self.words, self.kills = db, words, 0
        self.start()

    def start(self):
        with open(self.db.path(f"{self.words[0]}.log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([OUTBOX, *self.words], cwd=self.db.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self):
        assert self.process.poll() is None, f"{self.words[0]} ended by itself: {self.said()[-2000:]}"
        self.process.kill()
        self.process.wait()
        self.kills += 1
        self.start()

    def said(self):
        with open(self.db.path(f"{self.words[0]}.log"), encoding="utf-8") as log:
            return log.read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.said()[-2000:]


def produce(db, stop, numbers):
    """Orders with their events; some transactions are rolled back."""
    connection = db.connect()
    n = 0
    while not stop.is_set():
        cursor = connection.cursor()
        for _ in range(random.randint(1, 5)):
            values = ("order", str(n % KEYS), "Paid", json.dumps({"n": n}))
            if db.kind == "sqlite":
                cursor.execute("INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) VALUES (?, ?, ?, ?, ?)",
                               (os.urandom(16), *values))
            else:
                cursor.execute("INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES (%s, %s, %s, %s)", values)
            n += 1
        connection.commit()
        numbers.append(n)
        time.sleep(0.002)  # a producer's own pace
    connection.close()


def torture(db, broker, target, options="dedup: ids", relay_too=True, seconds=6):
    """`broker` has a sink, a destination and a source; `target` is the consumer's database."""
    kind, url, rows = target
    db.write("outbox.yaml", f"""
stores:
  main: {{ url: "{db.url()}" }}
  mine: {{ url: "{url}" }}
sinks: {{ out: {{ {broker.sink} }} }}
relays: [ {{ store: main, sink: out, route: {{ destination: "{broker.destination}" }}, leasing: {{ lease_ttl: 1s, lease_renew: 300ms, heartbeat_ttl: 1s }} }} ]
consumers:
  - name: billing
    store: mine
    source: {{ {broker.source} }}
    sql: {json.dumps(APPLY[kind])}
    lease_ttl: 1s
    {options}
""")
    db.outbox("--store", "main", "setup")
    db.outbox("--store", "mine", "setup", "--inbox")
    rows(HANDLED.format(AT[kind]))
    stop, numbers = threading.Event(), [0]
    producer = threading.Thread(target=produce, args=(db, stop, numbers))
    victims = [Victim(db, "work"), Victim(db, "consume", "billing")]
    producer.start()
    end = time.monotonic() + float(os.environ.get("OUTBOX_TORTURE_SECONDS", seconds))
    while time.monotonic() < end:
        time.sleep(random.uniform(0.05, 0.8))  # the moment of the kill
        (random.choice(victims) if relay_too else victims[1]).kill()
    stop.set()
    producer.join()
    until("everything has arrived", lambda: rows("SELECT count(DISTINCT n) FROM handled")[0][0] == numbers[-1], victims[1].process)
    until("and is acknowledged", broker.is_done, victims[1].process)
    for victim in victims:
        victim.stop()
    got = rows("SELECT n, key_name FROM handled ORDER BY at")
    assert sorted(n for n, _ in got) == list(range(numbers[-1])), "each effect is there once"
    for key in range(KEYS):
        mine = [n for n, name in got if name == f"order:{key}"]
        assert mine == sorted(mine), f"key {key} is out of order: {mine}"
    print(f"# {broker.name} to {kind}: {numbers[-1]} messages, {broker.copies(numbers[-1])}, {victims[0].kills} kills of the relay, "
          f"{victims[1].kills} of the consumer")
    assert numbers[-1] > 100 and victims[1].kills > 1


def sqlite_rows(path):
    def rows(sql):
        connection = sqlite3.connect(path, timeout=60)
        try:
            found = connection.execute(sql).fetchall()
            connection.commit()
            return found
        finally:
            connection.close()

    return rows


def own_sqlite(db):
    """A database of the consumer's own, in a file."""
    return "sqlite", f"sqlite:{db.path('mine.db')}", sqlite_rows(db.path("mine.db"))


def same_database(db):
    return db.kind, db.url(), db.run
