#!/usr/bin/env python3
"""A consumer behind `outbox consume`: each message is counted once, in its own database.

    consumers:
      - name: billing
        source: { type: redis, url: "redis://localhost:6379", stream: orders }
        exec: { command: "python3 consumer.py shop.db" }

One JSON message per line in, one answer per line out: ok ID | retry ID reason | reject ID reason.
The table: CREATE TABLE paid (order_id TEXT NOT NULL, payload TEXT NOT NULL)
"""
import json
import sqlite3
import sys

db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)


def handle(message):
    """The inbox and the work in one transaction: a copy changes nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        fresh = db.execute("INSERT OR IGNORE INTO outbox_inbox (consumer, id) VALUES ('billing', ?)", (message["id"],)).rowcount
        if fresh:
            db.execute("INSERT INTO paid VALUES (?, ?)", (message["aggregate_id"], json.dumps(message["payload"])))
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


for line in sys.stdin.buffer:
    message = json.loads(line)
    try:
        handle(message)
    except sqlite3.OperationalError as error:  # locked, or away: later
        print("retry", message["id"], error, flush=True)
    except Exception as error:  # a bug must not end the handler
        print("reject", message["id"], type(error).__name__, error, flush=True)
    else:
        print("ok", message["id"], flush=True)
