# SPDX-License-Identifier: MIT
"""Handlers of consumers: programs in several languages, a URL, and what they can do wrong."""
import http.server
import json
import os
import signal
import subprocess
import sys
import threading

from consumers import Consumer, begin, configure, handled, parked, pending, redis, stream, until
from harness import Skip, case, main

EXAMPLES, IN_C, CALLBACK = sys.argv.pop(1), os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
MODULES = os.environ.get("TEST_NODE_PATH", "")


def paid(db):
    return [n for (n,) in db.run("SELECT payload FROM paid ORDER BY payload")]


def example(db, command, environment=None):
    """20 messages and a copy of each: 20 effects."""
    begin(db, handler=f"exec: {{ command: {json.dumps(command)} }}")
    db.run("CREATE TABLE paid (order_id VARCHAR(100) NOT NULL, payload VARCHAR(100) NOT NULL)")
    for n in range(20):
        id = redis.add(stream(db), n % 3, n)
        redis.add(stream(db), n % 3, n, id=id)
    env = dict(os.environ, **(environment or {}))
    out = subprocess.run([os.environ["OUTBOX_BIN"], "consume", "--once"], cwd=db.dir, env=env, capture_output=True, text=True,
                         timeout=120, check=False)
    assert out.returncode == 0 and out.stdout.startswith("40 handled"), out
    assert sorted(json.loads(text)["n"] for text in paid(db)) == list(range(20))
    assert pending(db) == 0


@case("sqlite")
def the_example_in_python_counts_each_message_once(db):
    example(db, f"/usr/bin/python3 {EXAMPLES}/consumer.py {db.file}")


@case("sqlite")
def the_example_in_shell_counts_each_message_once(db):
    example(db, f"sh {EXAMPLES}/consumer.sh {db.file}")


@case("sqlite")
def the_example_in_c_counts_each_message_once(db):
    example(db, f"{IN_C} {db.file}")


@case("sqlite")
def the_example_with_a_function_counts_each_message_once(db):
    begin(db)
    db.run("CREATE TABLE paid (order_id VARCHAR(100) NOT NULL, payload VARCHAR(100) NOT NULL)")
    for n in range(20):
        id = redis.add(stream(db), n % 3, n)
        redis.add(stream(db), n % 3, n, id=id)
    process = subprocess.Popen([CALLBACK, db.url(), f"{{ type: redis, url: '{redis.url()}', stream: {stream(db)} }}"], cwd=db.dir)
    until("handled", lambda: len(paid(db)) >= 20 and pending(db) == 0, process)
    assert sorted(json.loads(text)["n"] for text in paid(db)) == list(range(20))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


@case("postgres")
def the_example_in_node_counts_each_message_once(db):
    if subprocess.run(["node", "-e", "require('pg')"], env=dict(os.environ, NODE_PATH=MODULES), capture_output=True,
                      check=False).returncode:
        raise Skip("Node's module pg is not installed")
    host, port = db.place()
    example(db, f"node {EXAMPLES}/consumer.js",
            {"NODE_PATH": MODULES, "PGHOST": host, "PGPORT": port, "PGUSER": "postgres", "PGDATABASE": db.name})


HANDLER = """
import json, os, signal, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
for line in sys.stdin:
    message = json.loads(line)
    what = message["payload"].get("do")
    if what == "crash":
        os._exit(3)
    if what == "hang":
        signal.pause()
    if what == "flood":
        while True:
            print("x" * 1000, flush=True)
    if what == "garbage":
        print("certainly", message["id"], flush=True)
        continue
    if what == "reject":
        print("reject", message["id"], "it is not wanted", flush=True)
        continue
    if what == "retry":
        print("retry", message["id"], "not now", flush=True)
        continue
    db.execute("INSERT INTO handled (n, key_name, id) VALUES (?, ?, ?)", (message["payload"]["n"], message["key"], message["id"]))
    print("ok", message["id"], flush=True)
"""


def program(db, more=""):
    db.write("handler.py", HANDLER)
    begin(db, handler=f'exec: {{ command: "/usr/bin/python3 handler.py {db.file}", restart_max: 100ms, grace: 100ms, {more} }}')


def others_go_on(db, what, state, reason, more=""):
    """A message that does something bad, among others: they pass, it is parked with its reason."""
    program(db, more)
    for n in range(30):
        redis.add(stream(db), n, n, **({"do": what} if n == 7 else {}))
    redis.add(stream(db), 7, 107)
    consumer = Consumer(db)
    for n in range(30, 200):
        redis.add(stream(db), n % 100 + 100, n)
    until("it is parked", lambda: parked(db) and parked(db)[0]["state"] == state, consumer.process)
    until("the others are handled", lambda: len({n for n, _ in handled(db)}) == 199, consumer.process)
    rows = parked(db)
    assert [row["state"] for row in rows] == [state, "waiting"] and reason in rows[0]["reason"], rows
    assert {n for n, _ in handled(db)} == set(range(200)) - {7}
    for n in range(200, 230):
        redis.add(stream(db), n, n)
    until("what comes later is handled too", lambda: len({n for n, _ in handled(db)}) == 229, consumer.process)
    until("acknowledged", lambda: pending(db) == 0, consumer.process)
    consumer.stop()


@case("sqlite")
def a_message_that_is_rejected_is_dead_at_once(db):
    others_go_on(db, "reject", "dead", "it is not wanted")


@case("sqlite")
def a_message_that_is_retried_is_dead_after_its_attempts(db):
    others_go_on(db, "retry", "dead", "not now")


@case("sqlite")
def a_message_on_which_the_handler_crashes_is_found_out(db):
    others_go_on(db, "crash", "failed", "ended 3 times on this message alone")


@case("sqlite")
def a_message_on_which_the_handler_hangs_is_late(db):
    others_go_on(db, "hang", "dead", "", more="timeout: 300ms")


@case("sqlite")
def a_message_on_which_the_handler_answers_garbage_is_found_out(db):
    others_go_on(db, "garbage", "failed", "ended 3 times on this message alone")


@case("sqlite")
def a_message_on_which_the_handler_floods_its_output_is_found_out(db):
    others_go_on(db, "flood", "failed", "ended 3 times on this message alone")


@case("sqlite")
def a_handler_that_fails_for_all_is_an_outage_and_nothing_is_given_up(db):
    program(db)
    for n in range(40):
        redis.add(stream(db), n, n, do="retry")
    consumer = Consumer(db)
    until("an alarm", lambda: "most keys fail: taken as an outage" in consumer.text(), consumer.process)
    rows = parked(db)
    assert len(rows) < 15 and not [row for row in rows if row["state"] == "dead"], rows
    assert pending(db) >= 25
    consumer.stop()


@case("sqlite")
def a_large_message_is_handled_and_parked_whole(db):
    program(db)
    text = "x" * (16 << 20)
    redis.add(stream(db), 1, 1, text=text)
    redis.add(stream(db), 2, 2, text=text, do="reject")
    consumer = Consumer(db)
    until("it is parked", lambda: len(parked(db)) == 1, consumer.process)
    until("handled", lambda: handled(db) == [(1, "order:1")], consumer.process)
    assert len(json.loads(db.outbox("dlq", "show", "billing", parked(db)[0]["id"]))["message"]["payload"]["text"]) == 16 << 20
    consumer.stop()


@case("sqlite")
def a_stop_waits_for_the_handler_and_a_kill_repeats_at_most_what_was_in_flight(db):
    program(db)
    for n in range(200):
        redis.add(stream(db), n % 50, n)
    consumer = Consumer(db)
    until("some are handled", lambda: len(handled(db)) > 10, consumer.process)
    consumer.stop()
    count = len(handled(db))
    assert pending(db) == 0 or count < 200
    out = db.outbox("consume", "--once")
    assert len(handled(db)) == 200 and [n for n, _ in handled(db)] == list(range(200)), out


class Receiver(http.server.BaseHTTPRequestHandler):
    seen, refuse = [], set()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        bad = body["n"] in self.refuse
        if not bad:
            self.seen.append((body["n"], self.headers["webhook-id"]))
        self.send_response(422 if bad else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


@case("sqlite")
def a_url_is_a_handler(db):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Receiver.seen, Receiver.refuse = [], {3}
    begin(db, handler=f'http: {{ url: "http://127.0.0.1:{server.server_port}/hook", allow_private: true }}')
    ids = [redis.add(stream(db), n, n) for n in range(10)]
    db.outbox("consume", "--once", code=1)
    assert sorted(Receiver.seen) == [(n, ids[n]) for n in range(10) if n != 3], Receiver.seen
    assert [row["id"] for row in parked(db)] == [ids[3]]
    server.shutdown()


@case("sqlite")
def a_reload_takes_a_new_handler_and_refuses_a_faulty_file(db):
    program(db)
    redis.add(stream(db), 1, 1)
    consumer = Consumer(db)
    until("handled", lambda: len(handled(db)) == 1, consumer.process)
    with open(db.path("outbox.yaml"), encoding="utf-8") as file:
        good = file.read()
    db.write("outbox.yaml", good.replace("billing", "billing\n    nonsense: 1"))
    consumer.process.send_signal(signal.SIGHUP)
    until("refused", lambda: "the new configuration is not taken" in consumer.text(), consumer.process)
    configure(db)
    consumer.process.send_signal(signal.SIGHUP)
    until("taken", lambda: "started anew with a new configuration" in consumer.text(), consumer.process)
    redis.add(stream(db), 1, 2)
    until("handled by sql", lambda: len(handled(db)) == 2, consumer.process)
    assert db.run("SELECT count(*) FROM outbox_inbox") == [(1,)]
    consumer.stop()


@case("sqlite")
def a_redis_that_restarts_is_waited_for_and_nothing_is_lost(db):
    program(db)
    for n in range(100):
        redis.add(stream(db), n % 10, n)
    consumer = Consumer(db)
    until("some are handled", lambda: len(handled(db)) > 5, consumer.process)
    redis.kill()
    redis.start()
    for n in range(100, 150):
        redis.add(stream(db), n % 10, n)
    until("all is handled", lambda: {n for n, _ in handled(db)} == set(range(150)), consumer.process)
    until("acknowledged", lambda: pending(db) == 0, consumer.process)
    consumer.stop()


sys.exit(main())
