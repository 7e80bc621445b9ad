# SPDX-License-Identifier: MIT
"""Relay and consumer are killed at random around Kafka, RabbitMQ and NATS; see torture.py. with_brokers starts the last two."""
import atexit
import json
import os
import subprocess
import sys

from consumers import AT, HANDLED, POISON, Consumer, by_key, handled, parked, until
from harness import Skip, case, main
from torture import own_sqlite, same_database, torture


class Broker:
    """What all of them have; sources are numbered, each is used once."""
    used = 0

    def __init__(self):
        type(self).used += 1
        self.number = type(self).used

    def is_done(self):
        return True


class Kafka(Broker):
    """librdkafka's mock cluster, a process of its own."""
    name, process, brokers = "kafka", None, None

    def __init__(self):
        super().__init__()
        if "KAFKA_MOCK" not in os.environ:
            raise Skip("this build has no Kafka")
        if not Kafka.process:
            Kafka.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", os.environ["KAFKA_MOCK"], "1"], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, text=True)
            atexit.register(Kafka.process.kill)
            Kafka.brokers = Kafka.process.stdout.readline().split()[1]
        self.destination = f"orders-{self.number}"
        Kafka.process.stdin.write(f"topic {self.destination} 4\n")
        Kafka.process.stdin.flush()
        assert Kafka.process.stdout.readline() == "ok\n"
        self.sink = f'type: kafka, brokers: "{Kafka.brokers}"'
        # Whoever is killed stays in the group for a session, and the mock's group waits for three seconds before it first hands out.
        self.source = f"{self.sink}, topic: {self.destination}, session: 4s"


class Queue(Broker):
    """A queue of RabbitMQ, classic or quorum."""

    def __init__(self, kind="orders"):
        super().__init__()
        if "TEST_RABBITMQ_PORT" not in os.environ:
            raise Skip("rabbitmq-server is not installed")
        self.name = "rabbitmq" if kind == "orders" else "rabbitmq quorum"
        self.destination = f"{kind}-{self.number}"
        self.sink = f'type: rabbitmq, url: "amqp://127.0.0.1:{os.environ["TEST_RABBITMQ_PORT"]}"'
        self.source = f"{self.sink}, queue: {self.destination}"


class Nats(Broker):
    """A stream of NATS."""
    name = "nats"

    def __init__(self):
        super().__init__()
        if "TEST_NATS_PORT" not in os.environ:
            raise Skip("nats-server is not installed")
        self.destination = f"orders.{self.number}"
        self.sink = f'type: nats, url: "nats://127.0.0.1:{os.environ["TEST_NATS_PORT"]}"'
        self.source = f"{self.sink}, stream: ORDERS-{self.number}"


@case("postgres")
def from_kafka_effects_are_exactly_once_in_sqlite(db):
    torture(db, Kafka(), own_sqlite(db), seconds=14, calm=6)


@case("postgres")
def from_kafka_effects_are_exactly_once_in_the_same_database(db):
    torture(db, Kafka(), same_database(db), seconds=14, calm=6)


@case("postgres")
def from_rabbitmq_effects_are_exactly_once_in_sqlite(db):
    torture(db, Queue(), own_sqlite(db), seconds=4)


@case("postgres")
def from_rabbitmq_effects_are_exactly_once_in_the_same_database(db):
    torture(db, Queue("quorum"), same_database(db), seconds=4)


@case("postgres")
def from_nats_effects_are_exactly_once_in_sqlite(db):
    torture(db, Nats(), own_sqlite(db), seconds=4)


@case("postgres")
def from_nats_effects_are_exactly_once_in_the_same_database(db):
    torture(db, Nats(), same_database(db), seconds=4)


def hold_one_key(db, broker):
    """Poison on one key of ten: the others finish, and the key comes back in order."""
    db.write("outbox.yaml", f"""
stores: {{ main: {{ url: "{db.url()}" }} }}
sinks: {{ out: {{ {broker.sink} }} }}
relays: [ {{ store: main, sink: out, route: {{ destination: "{broker.destination}" }} }} ]
consumers:
  - name: billing
    source: {{ {broker.source} }}
    sql: {json.dumps(POISON[db.kind])}
    retry: {{ base_delay: 50ms, max_backoff: 200ms, jitter: 0, max_attempts: 3 }}
""")
    db.outbox("setup")
    db.outbox("setup", "--inbox")
    db.run(HANDLED.format(AT[db.kind]))
    db.run("CREATE TABLE poison (n INTEGER)")
    db.run("INSERT INTO poison VALUES (1)")
    for n in range(50):
        db.run("INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) VALUES (?, 'order', ?, 'Paid', ?)",
               os.urandom(16), str(n % 10), json.dumps({"n": n, "bad": int(n == 13)}))
    db.outbox("work", "--once")
    consumer = Consumer(db)
    until("the others are handled", lambda: len(handled(db)) >= 46, consumer.process)
    until("it is dead", lambda: [row["state"] for row in parked(db)] == ["dead"] + 3 * ["waiting"], consumer.process)
    keys = by_key(db)
    assert keys.pop("order:3") == [3] and all(values == sorted(values) and len(values) == 5 for values in keys.values()), keys
    db.run("DELETE FROM poison")
    db.outbox("dlq", "retry", "billing", "--all", "--yes")
    until("all is handled", lambda: not parked(db), consumer.process)
    assert by_key(db)["order:3"] == [3, 13, 23, 33, 43]
    consumer.stop()
    assert db.outbox("consume", "--once") == "0 handled, 0 duplicates, 0 failed, 0 parked\n", "all was acknowledged"


@case("sqlite")
def from_kafka_poison_holds_its_key_alone(db):
    hold_one_key(db, Kafka())


@case("sqlite")
def from_rabbitmq_poison_holds_its_key_alone(db):
    hold_one_key(db, Queue())


@case("sqlite")
def from_nats_poison_holds_its_key_alone(db):
    hold_one_key(db, Nats())


SLOW = """import json, sys, time
for number, line in enumerate(sys.stdin):
    with open("seen", "a") as seen:
        seen.write(json.loads(line)["id"] + "\\n")
    if number == 0:
        time.sleep(8)  # longer than ack_wait
    print("ok", json.loads(line)["id"], flush=True)
"""


@case("sqlite")
def from_nats_what_waits_after_a_slow_message_is_handed_out_once(db):
    broker = Nats()
    db.write("slow.py", SLOW)
    db.write("outbox.yaml", f"""
stores: {{ main: {{ url: "{db.url()}" }} }}
sinks: {{ out: {{ {broker.sink} }} }}
relays: [ {{ store: main, sink: out, route: {{ destination: "{broker.destination}" }} }} ]
consumers:
  - name: billing
    source: {{ {broker.source}, ack_wait: 6s }}
    exec: {{ command: "python3 slow.py" }}
    dedup: none
""")
    db.outbox("setup")
    db.outbox("setup", "--inbox")
    for n in range(3):
        db.run("INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) VALUES (?, 'order', '1', 'Paid', ?)",
               os.urandom(16), json.dumps({"n": n}))
    db.outbox("work", "--once")
    assert db.outbox("consume", "--once") == "3 handled, 0 duplicates, 0 failed, 0 parked\n"
    with open(db.path("seen"), encoding="utf-8") as seen:
        assert len(seen.read().split()) == 3


@case("sqlite")
def doctor_compares_the_limits_of_kafka_with_the_handler(db):
    kafka = Kafka()

    def findings(topic, options=""):
        db.write("outbox.yaml", f"""
stores: {{ main: {{ url: "{db.url()}" }} }}
consumers: [ {{ name: billing, source: {{ {kafka.sink}, topic: {topic}, {options} }}, exec: {{ command: cat, timeout: 60s }} }} ]
""")
        db.outbox("setup", "--inbox")
        found = json.loads(db.outbox("doctor", "--json"))["findings"]
        return {one["code"]: (one["level"], one["text"]) for one in found if one["subject"] == "billing"}

    found = findings(kafka.destination)
    assert found["kafka_topic"] == ("ok", f"topic {kafka.destination} has 4 partition(s)") and found["kafka_max_poll"][0] == "ok", found
    level, text = findings(kafka.destination, "max_poll: 30s")["kafka_max_poll"]
    assert level == "warning" and "does not poll for 30000 ms loses its partitions" in text, text


sys.exit(main())
