# SPDX-License-Identifier: MIT
"""How outbox consume is watched: metrics and health, the service manager, a terminal."""
import http.client
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys

from consumers import Consumer, begin, configure, handled, poisoned, redis, stream, until
from harness import OUTBOX, case, main


def listen(db):
    """Serve the monitor in the consumer's process, at any port."""
    with open(db.path("outbox.yaml"), "a", encoding="utf-8") as file:
        file.write('monitor: { listen: "127.0.0.1:0" }\n')


def address(consumer):
    found = []
    until("the monitor listens", lambda: found.extend(re.findall(r"http://127\.0\.0\.1:(\d+)/", consumer.text())) or found, consumer.process)
    return int(found[-1])


def get(port, path):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    client.request("GET", path)
    answer = client.getresponse()
    text = answer.read().decode()
    client.close()
    return answer.status, text


def metric(text, name, **labels):
    """The value of one series; None: there is none."""
    for line in text.splitlines():
        match = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line)
        if match and match[1] == name and all(f'{key}="{value}"' in match[2] for key, value in labels.items()):
            return float(match[3])
    return None


@case()
def metrics_and_health_are_served_by_the_process_that_consumes(db):
    poisoned(db, options="lease_ttl: 1s")
    listen(db)
    for n in range(10):
        redis.add(stream(db), n, n, bad=int(n == 4))
    consumer = Consumer(db)
    port = address(consumer)
    until("handled", lambda: len(handled(db)) == 9, consumer.process)
    until("it is dead", lambda: metric(get(port, "/metrics")[1], "outbox_consumer_dead", consumer="billing") == 1, consumer.process)
    until("it is counted", lambda: metric(get(port, "/metrics")[1], "outbox_consumer_handled_total", consumer="billing") == 9, consumer.process)
    until("the lag is known", lambda: metric(get(port, "/metrics")[1], "outbox_consumer_lag_messages", store="main") == 0, consumer.process)
    text = get(port, "/metrics")[1]
    values = {name: metric(text, f"outbox_consumer_{name}", store="main", consumer="billing") for name in (
        "duplicates_total", "failed_total", "parked", "held_keys", "full", "source_up", "handler_up", "processes", "leased", "oldest_seconds")}
    assert values == {"duplicates_total": 0, "failed_total": 3, "parked": 1, "held_keys": 1, "full": 0, "source_up": 1, "handler_up": 1,
                      "processes": 1, "leased": 1, "oldest_seconds": 0}, values
    assert metric(text, "outbox_consumer_breaker_state", state="closed") == 1
    assert metric(text, "outbox_consumer_outcomes_total", outcome="dead") == 1
    assert get(port, "/healthz") == (200, "ok\n")
    until("it is ready", lambda: get(port, "/readyz") == (200, "ok\n"), consumer.process)
    # The same without HTTP, from any machine.
    assert metric(db.outbox("metrics"), "outbox_consumer_handled_total", consumer="billing") == 9
    consumer.stop()


@case("sqlite")
def ready_says_that_the_source_or_the_handler_is_down(db):
    begin(db, handler="http: { url: 'http://127.0.0.1:1/' }", options="dedup: none\n    lease_ttl: 1s")
    listen(db)
    redis.add(stream(db), 1, 1)
    consumer = Consumer(db)
    port = address(consumer)
    until("it says so", lambda: "degraded: consumer billing: handler down since " in get(port, "/readyz")[1], consumer.process)
    assert get(port, "/readyz")[0] == 200 and get(port, "/healthz") == (200, "ok\n")
    seen = json.loads(db.outbox("consumers", "--json"))
    assert seen["status"] == "handler down" and "127.0.0.1" in seen["trouble"], seen
    assert seen["processes"][0]["state"]["breaker"] in ("open", "half_open"), seen
    consumer.stop()


@case("sqlite")
def a_taken_port_is_no_end_of_the_consumer(db):
    begin(db)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with open(db.path("outbox.yaml"), "a", encoding="utf-8") as file:
            file.write(f'monitor: {{ listen: "127.0.0.1:{taken.getsockname()[1]}" }}\n')
        redis.add(stream(db), 1, 1)
        consumer = Consumer(db)
        until("handled", lambda: len(handled(db)) == 1, consumer.process)
        assert "no monitor, the consumer goes on" in consumer.text()
        consumer.stop()


@case("sqlite")
def the_service_manager_is_told(db):
    begin(db)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(db.path("notify"))
        manager.settimeout(60)

        def hear(want):
            while not (said := manager.recv(4096).decode()).startswith(want):
                assert said.startswith(("STATUS=", "WATCHDOG=1")), said
            return said

        consumer = Consumer(db, env={**os.environ, "NOTIFY_SOCKET": db.path("notify"), "WATCHDOG_USEC": "300000"})
        hear("READY=1")
        assert "/s, " in hear("STATUS=")
        hear("WATCHDOG=1")
        hear("WATCHDOG=1")
        consumer.process.send_signal(signal.SIGHUP)
        hear("RELOADING=1\nMONOTONIC_USEC=")
        hear("READY=1")
        configure(db, options="batch_size: 7")
        consumer.process.send_signal(signal.SIGHUP)
        hear("RELOADING=1")
        hear("READY=1")
        assert "the consumer is started anew" in consumer.text()
        consumer.process.send_signal(signal.SIGTERM)
        hear("STOPPING=1")
        assert consumer.process.wait(60) == 0


@case("sqlite")
def a_terminal_shows_a_line_that_is_written_anew(db):
    begin(db)
    redis.add(stream(db), 1, 1)
    own, its = pty.openpty()
    process = subprocess.Popen([OUTBOX, "consume", "billing"], cwd=db.dir, stdin=subprocess.DEVNULL, stdout=its, stderr=subprocess.DEVNULL)
    os.close(its)
    seen = b""
    while b"1 handled" not in seen:
        seen += os.read(own, 4096)
    assert re.search(rb"\x1b\[Kbilling: [\d,]+/s, 1 handled", seen), seen
    assert b"\n" not in seen, seen
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    os.close(own)


sys.exit(main())
