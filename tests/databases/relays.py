# SPDX-License-Identifier: MIT
"""Relays that run, what they deliver, and books of what was committed."""
import json
import os
import signal
import subprocess
import time

from harness import OUTBOX, TIMEOUT

# Large numbers are for the long run: MUST_HOLD=1000 takes a thousandth of a million, and so on.
SCALE = int(os.environ.get("MUST_HOLD", "10"))


running = []


def until(what, condition, seconds=TIMEOUT):
    """Ask again and again; there is nothing to wait on. No relay may end meanwhile."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        for relay in running:
            assert relay.process.poll() is None, f"it ended with {relay.process.returncode}:\n{relay.said()[-3000:]}"
        assert time.monotonic() < end, f"not within {seconds} s: {what() if callable(what) else what}"
        time.sleep(0.02)


class Relay:
    """`outbox work` in the directory of a case; ends with it."""

    def __init__(self, db, *words, log="work.log", **environment):
        self.db, self.log = db, db.path(log)
        with open(self.log, "a", encoding="utf-8") as output:
            self.process = subprocess.Popen([OUTBOX, "work", *words], cwd=db.dir, stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=output, env={**os.environ, **environment})

    def __enter__(self):
        running.append(self)
        return self

    def __exit__(self, *_):
        if self in running:
            running.remove(self)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def said(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def stop(self):
        """It must end well."""
        running.remove(self)
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(TIMEOUT)
        assert code == 0, f"it ended with {code}:\n{self.said()[-3000:]}"

    def kill(self):
        running.remove(self)
        self.process.kill()
        self.process.wait()

    def memory(self):
        """The most that it has had, in bytes."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


class Lines:
    """What has arrived in a file so far; read on from where it was."""

    def __init__(self, db, name="out.ndjson"):
        self.path, self.at, self.got = db.path(name), 0, []

    def read(self):
        if os.path.exists(self.path):
            with open(self.path, "rb") as file:
                file.seek(self.at)
                text = file.read()
            whole = text[:text.rfind(b"\n") + 1]
            self.at += len(whole)
            self.got += [json.loads(line) for line in whole.splitlines()]
        return self.got

    def wait(self, count, seconds=TIMEOUT):
        until(lambda: f"{count} lines, there are {len(self.got)}", lambda: len(self.read()) >= count, seconds)
        return self.got


class Books:
    """What was committed: for each key, numbers in the order that the receiver must see."""

    def __init__(self):
        self.keys = {}

    def commit(self, key, *numbers):
        self.keys.setdefault(key, []).extend(numbers)

    def count(self):
        return sum(len(numbers) for numbers in self.keys.values())

    def audit(self, lines, repeats=0):
        """Nothing lost, nothing made up, first copies in order, and no more copies than that."""
        first, copies = {}, 0
        for line in lines:
            seen = first.setdefault(line["aggregate_id"], {})
            copies += line["payload"]["n"] in seen
            seen.setdefault(line["payload"]["n"])
        for key in first.keys() | self.keys.keys():
            got, wanted = list(first.get(key, {})), self.keys.get(key, [])
            if got != wanted:
                lost, made_up = set(wanted) - set(got), set(got) - set(wanted)
                at = next((i for i, (g, w) in enumerate(zip(got, wanted)) if g != w), min(len(got), len(wanted)))
                raise AssertionError(f"{key}: {len(lost)} lost, {len(made_up)} made up, {len(got)} of {len(wanted)}; "
                                     f"got {got[at:at + 5]}, wanted {wanted[at:at + 5]} at {at}")
        assert copies <= repeats, f"{copies} came again, allowed are {repeats}"


def insert(db, low, high, keys, before="k", extra=""):
    """The statement that inserts messages numbered low..high, by turns of so many keys."""
    columns = "aggregate_type, aggregate_id, event_type, payload" + (", " + extra.split("=", 1)[0] if extra else "")
    value = ", " + extra.split("=", 1)[1] if extra else ""
    if db.kind == "postgres":
        return (f"INSERT INTO outbox ({columns}) SELECT 'bulk', '{before}' || mod(g, {keys}), 'E', json_build_object('n', g){value} "
                f"FROM generate_series({low}, {high}) AS g ORDER BY g")
    if db.kind == "mysql":
        # sequences are MariaDB's alone
        return (f"INSERT INTO outbox ({columns}) SELECT 'bulk', CONCAT('{before}', g MOD {keys}), 'E', CONCAT('{{\"n\":', g, '}}'){value} "
                f"FROM (SELECT {low - 1} + i AS g FROM JSON_TABLE(CONCAT('[0', REPEAT(',0', {high - low}), ']'), '$[*]' "
                "COLUMNS (i FOR ORDINALITY)) AS j) AS s ORDER BY g")
    return (f"WITH RECURSIVE s (g) AS (SELECT {low} UNION ALL SELECT g + 1 FROM s WHERE g < {high}) "
            f"INSERT INTO outbox (id, {columns}) SELECT randomblob(16), 'bulk', '{before}' || (g % {keys}), 'E', "
            f"'{{\"n\":' || g || '}}'{value} FROM s")


def note(books, low, high, keys, before="k"):
    for n in range(low, high + 1):
        books.commit(f"{before}{n % keys}", n)


def one(db, cursor, key, number, event="E", extra=""):
    """Insert one message."""
    columns, values = "aggregate_type, aggregate_id, event_type, payload", f"'one', '{key}', '{event}', '{{\"n\":{number}}}'"
    if extra:
        columns, values = f"{columns}, {extra.split('=', 1)[0]}", f"{values}, {extra.split('=', 1)[1]}"
    if db.kind == "sqlite":
        columns, values = f"id, {columns}", f"randomblob(16), {values}"
    cursor.execute(f"INSERT INTO outbox ({columns}) VALUES ({values})")


def readers(db):
    """What `outbox readers list` says, by name."""
    return {r["reader"]: r for r in map(json.loads, db.outbox("readers", "list", "--json").splitlines())}


def waiting(db, reader="default"):
    """Messages that a reader has not delivered and may."""
    found = readers(db).get(reader)
    return found and sum(found[state] for state in ("pending", "delayed", "failed", "parked"))


def number(db, sql):
    return db.run(sql)[0][0]
