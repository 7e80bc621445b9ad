# SPDX-License-Identifier: MIT
"""Relay and consumer are killed at random around Kafka, RabbitMQ and NATS; see torture.py. with_brokers starts the last two."""
import atexit
import os
import subprocess
import sys

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

    def copies(self, count):
        return "copies unknown"


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
        self.source = f"{self.sink}, topic: {self.destination}, session: 1s"


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
    torture(db, Kafka(), own_sqlite(db), seconds=4)


@case("postgres")
def from_kafka_effects_are_exactly_once_in_the_same_database(db):
    torture(db, Kafka(), same_database(db), seconds=4)


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


sys.exit(main())
