# SPDX-License-Identifier: MIT
"""The inbox: the examples of docs/inbox.md, and that of concurrent deliveries exactly one is new."""
import os
import re
import subprocess
import sys
import threading
import time

from harness import Skip, case, main, shell

PAGE, CLIENT = sys.argv.pop(1), sys.argv.pop(1)
MODULES = os.environ.get("TEST_NODE_PATH", "")
BLOCK = re.compile(r"^(?:<!-- run: ([a-z0-9 ]+) -->\n)?```[a-z]*\n(.*?)^```$", re.M | re.S)
WANTED = ["mysql mariadb", "postgres node", "postgres psql", "postgres python", "sqlite python", "table"]
ID = "0195a1b2-0000-7000-8000-00000000000a"
COMMANDS = {
    "psql": ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-d", "shop"],
    "mariadb": ["mariadb", "shop"],
    "python": ["/usr/bin/python3", "-"],
    "node": ["node", "-"],
}

with open(PAGE, encoding="utf-8") as page:
    blocks = BLOCK.findall(page.read())
# An example without a mark would be one that nobody has run.
assert sorted(name for name, _ in blocks) == WANTED, sorted(name for name, _ in blocks)
blocks = dict(blocks)


def begin(db):
    db.configure()
    db.outbox("setup", "--inbox")


def environment(db):
    env = dict(os.environ, HOME=db.dir, NODE_PATH=MODULES, PYTHONDONTWRITEBYTECODE="1")
    if db.kind == "postgres":
        env.update(PGHOST=os.environ["TEST_POSTGRES_DIR"], PGPORT=os.environ["TEST_POSTGRES_PORT"], PGUSER="postgres")
    if db.kind == "mysql":
        db.write(".my.cnf", f"[client]\nuser=root\nsocket={os.environ['TEST_MYSQL_SOCKET']}\n")
    return env


def example(name):
    def run(db):
        if name.endswith("node") and subprocess.run(["node", "-e", "require('pg')"], env=dict(os.environ, NODE_PATH=MODULES),
                                                    capture_output=True, check=False).returncode:
            raise Skip("Node's module pg is not installed")
        if db.kind == "sqlite":
            db.file = db.path("shop.db")
        else:
            db.name = "shop"
            db.admin("DROP DATABASE IF EXISTS shop")
            db.create()
        begin(db)
        db.run(blocks["table"])
        shell(COMMANDS[name.split()[1]], blocks[name], cwd=db.dir, env=environment(db))
        assert db.run("SELECT order_id, amount FROM paid") == [(1042, 99)]
        assert db.run("SELECT consumer, id FROM outbox_inbox") == [("billing", ID)]

    run.__name__ = "the_example_in_" + name.split()[1] + "_counts_a_message_once"
    case(name.split()[0])(run)


for title in WANTED:
    if " " in title:
        example(title)


class Client:
    """A connection that asks the inbox: by SQL, or by the library in C."""

    def __init__(self, db):
        where = {"sqlite": lambda: [db.file], "postgres": lambda: [db.url()],
                 "mysql": lambda: [db.name, os.environ["TEST_MYSQL_SOCKET"]]}[db.kind]()
        self.process = subprocess.Popen([CLIENT, db.kind, *where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().strip()

    def say(self, line):
        self.send(line)
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


def waits(db):
    """Whether a connection waits for a lock."""
    if db.kind == "postgres":
        return db.run("SELECT count(*) FROM pg_locks WHERE NOT granted")[0][0] > 0
    return db.run("SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")[0][0] > 0


def concurrently(db, end):
    """One delivery is open when the other comes; then the first ends. What both were told."""
    begin(db)
    first, second = Client(db), Client(db)
    assert first.say("BEGIN") == "ok"
    told = first.say(f"inbox billing {ID}")
    if db.kind == "sqlite":
        # The second transaction does not even begin before the first has ended.
        second.send("BEGIN")
        second.send(f"inbox billing {ID}")
    else:
        assert second.say("BEGIN") == "ok"
        second.send(f"inbox billing {ID}")
        deadline = time.monotonic() + 60
        while not waits(db):
            assert time.monotonic() < deadline, "the second delivery does not wait"
            time.sleep(0.2)  # InnoDB shows old news to whoever asks more often than every 0.1 s
    assert first.say(end) == "ok"
    if db.kind == "sqlite":
        assert second.answer() == "ok"
    other = second.answer()
    assert second.say("COMMIT") == "ok"
    first.close()
    second.close()
    assert db.run("SELECT count(*) FROM outbox_inbox") == [(1,)]
    return told, other


@case()
def of_two_concurrent_deliveries_the_second_is_seen(db):
    assert concurrently(db, "COMMIT") == ("new", "seen")


@case()
def when_the_first_delivery_rolls_back_the_second_is_new(db):
    assert concurrently(db, "ROLLBACK") == ("new", "new")


@case()
def of_many_threads_exactly_one_is_new(db):
    begin(db)
    clients, told = [Client(db) for _ in range(8)], []

    def deliver(client):
        client.say("BEGIN")
        told.append(client.say(f"inbox billing {ID}"))
        client.say("COMMIT")

    threads = [threading.Thread(target=deliver, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    assert sorted(told) == ["new"] + ["seen"] * 7, told


@case("postgres")
def in_repeatable_read_the_second_is_told_to_come_back(db):
    begin(db)
    first, second = Client(db), Client(db)
    assert first.say("BEGIN") == "ok" and second.say("BEGIN ISOLATION LEVEL REPEATABLE READ") == "ok"
    # It has its snapshot from before the first commits.
    assert second.say("inbox other x") == "new"
    assert first.say(f"inbox billing {ID}") == "new"
    assert first.say("COMMIT") == "ok"
    answer = second.say(f"inbox billing {ID}")
    assert answer.startswith("EBUSY ") and "run it again" in answer, answer


@case("mysql")
def a_wait_that_takes_too_long_is_told_to_come_back(db):
    begin(db)
    first, second = Client(db), Client(db)
    assert second.say("SET innodb_lock_wait_timeout = 1") == "ok"
    assert first.say("BEGIN") == "ok" and second.say("BEGIN") == "ok"
    assert first.say(f"inbox billing {ID}") == "new"
    assert second.say(f"inbox billing {ID}").startswith("EBUSY ")
    first.close()
    second.close()


@case()
def two_consumers_each_handle_a_message_and_a_uuid_has_one_form(db):
    begin(db)
    client = Client(db)
    assert client.say("BEGIN") == "ok"
    assert [client.say(f"inbox {who} {ID}") for who in ("billing", "mail", "billing")] == ["new", "new", "seen"]
    assert client.say("inbox billing " + ID.upper()) == "seen"
    assert client.say("inbox billing " + ID.replace("-", "")) == "seen"
    assert client.say("inbox billing payment-17") == "new"
    assert client.say("COMMIT") == "ok"
    client.close()
    assert db.run("SELECT consumer, id FROM outbox_inbox ORDER BY consumer, id") == [
        ("billing", ID), ("billing", "payment-17"), ("mail", ID)]


@case()
def what_the_inbox_cannot_take_is_refused(db):
    begin(db)
    client = Client(db)
    assert client.say(f"inbox billing {ID}").startswith("ENOTRANSACTION ")
    assert client.say("BEGIN") == "ok"
    for words, status in (("billing", "EINVAL"), ("billing " + "x" * 256, "ETOOLONG"), ("b" * 201 + " x", "ETOOLONG")):
        assert client.say("inbox " + words).startswith(status + " "), words
    assert client.say(f"inbox billing {'é' * 255}") == "new"
    client.close()


@case()
def without_the_tables_the_inbox_says_which_command_makes_them(db):
    db.configure()
    db.outbox("setup")
    client = Client(db)
    assert client.say("BEGIN") == "ok"
    answer = client.say(f"inbox billing {ID}")
    assert answer.startswith("ESCHEMA ") and "outbox setup --inbox" in answer, answer
    client.close()


@case("postgres", "mysql")
def the_function_answers_new_and_then_seen(db):
    begin(db)
    assert [bool(db.run("SELECT outbox_inbox('billing', %s)", ID)[0][0]) for _ in range(2)] == [True, False]
    if db.kind == "postgres":
        assert db.run("SELECT outbox_inbox('billing', %s::uuid)", ID) == [(False,)]
    for bad in ("NULL, 'x'", "'billing', NULL", "'', 'x'", "'billing', ''", f"'billing', '{'x' * 256}'"):
        db.refused(f"SELECT outbox_inbox({bad})")
    assert db.run("SELECT count(*) FROM outbox_inbox") == [(1,)]


@case()
def setup_makes_the_inbox_later_and_again_and_prints_it(db):
    db.configure()
    db.outbox("setup")
    db.outbox("setup", "--inbox")
    db.outbox("setup", "--inbox")
    assert db.run("SELECT count(*) FROM outbox_parked") == [(0,)]
    text = db.outbox("setup", "--inbox", "--print")
    assert "outbox_parked" in text and "outbox_positions" in text


@case()
def the_printed_sql_makes_the_inbox(db):
    db.configure()
    db.shell(db.outbox("setup", "--inbox", "--print"))
    client = Client(db)
    assert client.say("BEGIN") == "ok" and client.say(f"inbox billing {ID}") == "new"
    client.close()


sys.exit(main())
