# SPDX-License-Identifier: MIT
"""What tests of consumers share: a configuration, a process in the background, what it has done."""
import json
import signal
import subprocess
import time

from harness import OUTBOX
from streams import Redis

redis = Redis()
# What was handled, in the order of `at`.
AT = {"sqlite": "INTEGER PRIMARY KEY", "postgres": "bigint GENERATED ALWAYS AS IDENTITY", "mysql": "BIGINT AUTO_INCREMENT PRIMARY KEY"}
HANDLED = "CREATE TABLE handled (at {}, n INTEGER NOT NULL, key_name VARCHAR(100) NOT NULL, id VARCHAR(36) NOT NULL)"
# The statement of the handler: what it stores is counted.
APPLY = {
    "sqlite": "INSERT INTO handled (n, key_name, id) SELECT json_extract(:payload, '$.n'), :key, :id",
    "postgres": "INSERT INTO handled (n, key_name, id) SELECT (CAST(:payload AS json)->>'n')::integer, :key, :id",
    "mysql": "INSERT INTO handled (n, key_name, id) SELECT JSON_EXTRACT(:payload, '$.n'), :key, :id",
}
# The same, but it fails for messages that are marked as bad while the table `poison` has a row.
POISON = {
    "sqlite": "INSERT INTO handled (n, key_name, id) SELECT json_extract(:payload, '$.n'), CASE WHEN json_extract(:payload, '$.bad') = 1 AND "
              "EXISTS (SELECT 1 FROM poison) THEN NULL ELSE :key END, :id",
    "postgres": "INSERT INTO handled (n, key_name, id) SELECT (CAST(:payload AS json)->>'n')::integer, CASE WHEN CAST(:payload AS json)->>'bad' = '1' "
                "AND EXISTS (SELECT 1 FROM poison) THEN NULL ELSE :key END, :id",
    "mysql": "INSERT INTO handled (n, key_name, id) SELECT JSON_EXTRACT(:payload, '$.n'), IF(JSON_EXTRACT(:payload, '$.bad') = 1 AND "
             "EXISTS (SELECT 1 FROM poison), NULL, :key), :id",
}


def stream(db):
    return f"orders-{db.kind}-{db.name}"


def configure(db, handler=None, options="", source="", sinks="", retention=""):
    """outbox.yaml with the consumer `billing`."""
    handler = handler or "sql: " + json.dumps(APPLY[db.kind])
    db.write("outbox.yaml",
             f'stores: {{ main: {{ url: "{db.url()}", retention: {{ {retention} }} }} }}\n'
             f"sinks: {{ {sinks} }}\n"
             "consumers:\n"
             "  - name: billing\n"
             f'    source: {{ type: redis, url: "{redis.url()}", stream: {stream(db)}, {source} }}\n'
             f"    {handler}\n"
             "    retry: { base_delay: 50ms, max_backoff: 200ms, jitter: 0, max_attempts: 3 }\n"
             f"    {options}\n")


def begin(db, **named):
    redis("DEL", stream(db))
    configure(db, **named)
    db.outbox("setup", "--inbox")
    db.run(HANDLED.format(AT[db.kind]))


def poisoned(db, options=""):
    begin(db, handler="sql: " + json.dumps(POISON[db.kind]), options=options)
    db.run("CREATE TABLE poison (n INTEGER)")
    db.run("INSERT INTO poison VALUES (1)")


def handled(db):
    return db.run("SELECT n, key_name FROM handled ORDER BY n")


def by_key(db):
    """What was handled of each key, in the order in which it was."""
    keys = {}
    for n, key in db.run("SELECT n, key_name FROM handled ORDER BY at"):
        keys.setdefault(key, []).append(n)
    return keys


def pending(db):
    return redis("XPENDING", stream(db), "billing")[0]


def parked(db):
    return [json.loads(line) for line in db.outbox("dlq", "list", "billing", "--json").splitlines()]


def until(what, check, process=None):
    """Ask again and again; there is nothing to wait on."""
    deadline = time.monotonic() + 60
    while not check():
        assert time.monotonic() < deadline, what
        assert process is None or process.poll() is None, f"{what}: it ended with {process.returncode}"
        time.sleep(0.05)


class Consumer:
    """outbox consume in the background."""

    def __init__(self, db, *words, **named):
        self.log = open(db.path("consume.log"), "a", encoding="utf-8")
        self.process = subprocess.Popen([OUTBOX, "consume", "billing", *words], cwd=db.dir, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, **named)
        self.db = db

    def text(self):
        with open(self.db.path("consume.log"), encoding="utf-8") as log:
            return log.read()

    def stop(self, number=signal.SIGTERM, code=0):
        self.process.send_signal(number)
        assert self.process.wait(60) == code, self.text()
