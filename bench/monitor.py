#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The monitor on a large log, and next to a relay that drains.

    with_servers python3 bench/monitor.py views [ROWS]     every view, on each database: median and worst of 20 calls
    with_servers python3 bench/monitor.py drain [ROWS]     a drain alone, and with wrk (64 connections) and 20 event streams

OUTBOX_BIN names the program, OUTBOX_TEST_DATABASES leaves one database. The figures are printed, nothing is judged.
"""
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/databases"))
import harness  # noqa: E402
from monitor import OUTBOX, Monitor, configure  # noqa: E402

PENDING, EXCEPTIONS, CALLS = 90000, 20000, 20
COLUMNS = "(aggregate_type, aggregate_id, event_type, payload)"


def series(db, count):
    """So many rows: keys, a few types, a payload of about 200 bytes."""
    pad = "x" * 170
    if db.kind == "postgres":
        return (f"INSERT INTO outbox {COLUMNS} SELECT 'order', (i % 100000)::text, 'Type' || (i % 7), "
                f"('{{\"n\": ' || i || ', \"pad\": \"{pad}\"}}')::json FROM generate_series(1, {count}) AS i")
    if db.kind == "mysql":
        return (f"INSERT INTO outbox {COLUMNS} SELECT 'order', seq % 100000, CONCAT('Type', seq % 7), "
                f"CONCAT('{{\"n\": ', seq, ', \"pad\": \"{pad}\"}}') FROM seq_1_to_{count}")
    return (f"WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {count}) INSERT INTO outbox "
            "(id, aggregate_type, aggregate_id, event_type, payload) "
            f"SELECT CAST(printf('%016d', i + {db.made}) AS BLOB), 'order', i % 100000, 'Type' || (i % 7), "
            f"'{{\"n\": ' || i || ', \"pad\": \"{pad}\"}}' FROM s")


def insert(db, count, step=500000):
    for done in range(0, count, step):
        db.run(series(db, min(step, count - done)))
        db.made += min(step, count - done)


def insert_stream(db):
    lines = "".join(f'{{"aggregate_type":"account","aggregate_id":"7","event_type":"E","sequence_number":{n},"payload":{{}}}}\n'
                    for n in range(1, 1001))
    subprocess.run([OUTBOX, "push", "-"], cwd=db.dir, text=True, input=lines, check=True, stdout=subprocess.DEVNULL)


def except_some(db, count):
    """Failed ones that hold their keys, and as many parked behind them, of the newest delivered rows."""
    top = db.run("SELECT max(seq) FROM outbox")[0][0]
    now, later = {"postgres": ("now()", "now() + interval '1 day'"),
                  "mysql": ("UTC_TIMESTAMP(6)", "UTC_TIMESTAMP(6) + INTERVAL 1 DAY")}.get(
                      db.kind, (str(time.time_ns() // 1000), str(time.time_ns() // 1000 + 86400000000)))
    db.run("INSERT INTO outbox_exceptions (reader, partition_no, seq, state, due, since, queue, attempts, last_error) "
           f"SELECT 'default', partition_no, seq, CASE WHEN seq % 2 = 0 THEN 1 ELSE 3 END, CASE WHEN seq % 2 = 0 THEN {later} END, {now}, "
           "CASE WHEN seq % 2 = 0 THEN ordering_key END, 1, "
           f"{'CONCAT' if db.kind == 'mysql' else ''}({'' if db.kind == 'mysql' else chr(39) + 'HTTP 422: order ' + chr(39) + ' || '}"
           f"{(chr(39) + 'HTTP 422: order ' + chr(39) + ', seq') if db.kind == 'mysql' else 'seq'}) "
           f"FROM outbox WHERE seq > {top - count}")


def cpu_ms(pid):
    """Processor time that a process has had: on a loaded machine it says more than the clock. On SQLite the database is in it."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def views(db, rows):
    configure(db)
    db.outbox("setup")
    db.outbox("work", "--once")
    began = time.monotonic()
    insert(db, rows - PENDING)
    db.outbox("readers", "seek", "default", "end", "--yes")
    except_some(db, EXCEPTIONS)
    insert(db, PENDING)
    insert_stream(db)
    print(f"# {db.kind}: {rows} rows made in {time.monotonic() - began:.0f} s", flush=True)
    with Monitor(db) as m:
        m.sampled()
        some = m.get(f"/api/v1/messages?limit=1&state=published&before={rows // 2}")["messages"][0]
        dead = m.get("/api/v1/messages?limit=1&state=dead")["messages"][0]
        paths = {
            "state": "/api/v1/state", "throughput": "/api/v1/throughput", "failures by cause": "/api/v1/failures",
            "failures by key": "/api/v1/failures?by=key", "messages, newest": "/api/v1/messages",
            "messages, pending": "/api/v1/messages?state=pending", "messages, dead": "/api/v1/messages?state=dead",
            "messages, published, deep": f"/api/v1/messages?state=published&before={rows // 2}",
            "search by id": f"/api/v1/messages?id={some['id']}", "search by key": "/api/v1/messages?key=order:77",
            "search by type": "/api/v1/messages?type=Type3", "search by error": "/api/v1/messages?error=nothing",
            "search by type, none": "/api/v1/messages?type=None", "one message": f"/api/v1/messages/{some['id']}",
            "one dead message": f"/api/v1/messages/{dead['id']}", "keys": "/api/v1/keys", "partitions": "/api/v1/partitions",
            "streams": "/api/v1/streams", "a stream": "/api/v1/stream?type=account&id=7", "audit": "/api/v1/audit", "overview page": "/", "failures page": "/failures",
        }
        for name, path in paths.items():
            times, cpu = [], cpu_ms(m.process.pid)
            for _ in range(CALLS):
                began = time.monotonic()
                answer = m.raw("GET", path)
                times.append((time.monotonic() - began) * 1000)
                assert answer.status == 200, (path, answer.status, answer.text[:300])
            cpu = (cpu_ms(m.process.pid) - cpu) / CALLS
            print(f"{db.kind:9} {name:28} {statistics.median(times):8.1f} ms   worst {max(times):8.1f} ms   monitor's CPU {cpu:6.1f} ms",
                  flush=True)


def listen(address, stop):
    """A browser that only listens."""
    with socket.create_connection(address) as s:
        s.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        s.settimeout(1)
        while not stop.is_set():
            try:
                s.recv(65536)
            except socket.timeout:
                pass


def drain_once(db, rows, load):
    """Messages a second from the first to the last, with or without viewers."""
    insert(db, rows)
    with Monitor(db, work=True) as m:
        stop, threads, wrk = threading.Event(), [], None
        if load:
            threads = [threading.Thread(target=listen, args=((m.host, m.port), stop)) for _ in range(20)]
            for thread in threads:
                thread.start()
            wrk = subprocess.Popen(["wrk", "-t1", "-c64", "-d600s", f"{m.address}api/v1/state"], stdout=subprocess.PIPE, text=True)
        pattern = re.compile(r'outbox_messages_total\{[^}]*outcome="published"\} (\d+)')
        first = last = None
        while last is None:
            found = pattern.search(m.raw("GET", "/metrics").text)
            count, now = int(found[1]) if found else 0, time.monotonic()
            if count and first is None:
                first = (now, count)
            if count >= rows:
                last = (now, count)
            time.sleep(0.1)
        stop.set()
        if wrk:
            wrk.terminate()
            out = wrk.communicate()[0]
            print("#", re.search(r"Requests/sec:.*", out)[0] if "Requests/sec" in out else "wrk ended", flush=True)
        for thread in threads:
            thread.join()
    return (last[1] - first[1]) / (last[0] - first[0])


def drain(db, rows):
    configure(db, "listen: '127.0.0.1:0'", sink="type: file, path: out.ndjson")
    db.outbox("setup")
    db.outbox("work", "--once")
    rates = {False: [], True: []}
    for turn in range(3):
        for load in (False, True):
            rates[load].append(drain_once(db, rows, load))
            print(f"{db.kind:9} {'with 64 + 20 viewers' if load else 'alone':22} {rates[load][-1]:10.0f} /s", flush=True)
    alone, loaded = (statistics.median(rates[load]) for load in (False, True))
    print(f"{db.kind:9} median: {loaded / alone:.3f} of undisturbed", flush=True)


def main():
    what = {"views": views, "drain": drain}[sys.argv[1]]
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else {"views": 10000000, "drain": 500000}[sys.argv[1]]
    only = os.environ.get("OUTBOX_TEST_DATABASES")
    harness.TIMEOUT = 3600
    for number, kind in enumerate(("sqlite", "postgres", "mysql"), 1):
        if only not in (None, kind) or harness.missing(kind):
            continue
        db = harness.KINDS[kind](9000 + number)
        db.made = 0
        try:
            what(db, rows)
        finally:
            db.close()


if __name__ == "__main__":
    main()
