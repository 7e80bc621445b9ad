# SPDX-License-Identifier: MIT
"""The examples of docs/any-language.md, taken out of the page and run."""
import os
import re
import subprocess
import sys

from harness import Skip, case, main, shell

PAGE = sys.argv.pop(1)
MODULES = os.environ.get("TEST_NODE_PATH", "")
BLOCK = re.compile(r"^(?:<!-- run: ([a-z0-9 ]+) -->\n)?```[a-z]*\n(.*?)^```$", re.M | re.S)
WANTED = ["mysql mariadb", "mysql node", "mysql python", "postgres node", "postgres psql", "postgres psql many",
          "postgres python", "sqlite python", "sqlite sqlite3", "table"]

with open(PAGE, encoding="utf-8") as page:
    blocks = BLOCK.findall(page.read())
# An example without a mark would be one that nobody has run.
assert sorted(name for name, _ in blocks) == WANTED, sorted(name for name, _ in blocks)
blocks = dict(blocks)

COMMANDS = {
    "psql": ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-d", "shop"],
    "mariadb": ["mariadb", "shop"],
    "sqlite3": ["sqlite3", "-bail", "shop.db"],
    "python": ["/usr/bin/python3", "-"],
    "node": ["node", "-"],
}


def begin(db):
    """The database of the page, with its table and ours."""
    if db.kind == "sqlite":
        db.file = db.path("shop.db")
    else:
        db.name = "shop"
        db.admin("DROP DATABASE IF EXISTS shop")
        db.create()
    db.configure()
    db.outbox("setup")
    db.run(blocks["table"])


def environment(db):
    """Where a user's programs find the server."""
    env = dict(os.environ, HOME=db.dir, NODE_PATH=MODULES, PYTHONDONTWRITEBYTECODE="1")
    if db.kind == "postgres":
        env.update(PGHOST=os.environ["TEST_POSTGRES_DIR"], PGPORT=os.environ["TEST_POSTGRES_PORT"], PGUSER="postgres")
    if db.kind == "mysql":
        db.write(".my.cnf", f"[client]\nuser=root\nsocket={os.environ['TEST_MYSQL_SOCKET']}\n")
        db.admin("DROP USER IF EXISTS shop@127.0.0.1")
        db.admin("CREATE USER shop@127.0.0.1 IDENTIFIED BY 'secret'")
        db.admin("GRANT ALL ON shop.* TO shop@127.0.0.1")
        env["DATABASE_URL"] = f"mysql://shop:secret@127.0.0.1:{os.environ['TEST_MYSQL_PORT']}/shop"
    return env


def need_node(module):
    """Node and a driver, or a skip that says what is missing."""
    try:
        done = subprocess.run(["node", "-e", f"require('{module}')"], env=dict(os.environ, NODE_PATH=MODULES),
                              capture_output=True, timeout=60, check=False)
    except FileNotFoundError:
        raise Skip("nodejs is not installed") from None
    if done.returncode:
        raise Skip(f"Node's module {module} is not installed")


def run_block(db, name):
    shell(COMMANDS[name.split()[1]], blocks[name], cwd=db.dir, env=environment(db))


def example(name):
    def run(db):
        if name.endswith("node"):
            need_node("pg" if db.kind == "postgres" else "mysql2")
        begin(db)
        run_block(db, name)
        assert db.run("SELECT id, total FROM orders") == [(1042, 99)]
        got = db.deliver()
        assert [(m["aggregate_type"], m["aggregate_id"], m["event_type"], m["payload"]) for m in got] == [
            ("order", "1042", "OrderPlaced", {"total": 99})], got

    run.__name__ = "the_example_in_" + name.split()[1]
    case(name.split()[0])(run)


for title in WANTED:
    if len(title.split()) == 2:
        example(title)


@case("postgres", "mysql")
def many_rows_of_one_insert_are_delivered_in_order(db):
    begin(db)
    db.run(blocks["postgres psql many"])
    assert [m["event_type"] for m in db.deliver()] == ["OrderPlaced", "OrderPaid", "OrderSent"]


@case("mysql")
def the_example_in_c_takes_a_port_or_a_socket(db):
    db.configure()
    db.outbox("setup")
    program = os.environ.get("ORDERS_MYSQL")
    if not program:
        raise Skip("no library for MySQL in this build")
    db.admin("CREATE USER IF NOT EXISTS orders@localhost IDENTIFIED BY 'pw'")
    db.admin("CREATE USER IF NOT EXISTS orders@'127.0.0.1' IDENTIFIED BY 'pw'")
    for host in ("localhost", "127.0.0.1"):
        db.admin(f"GRANT ALL ON {db.name}.* TO orders@'{host}'")
    places = [("127.0.0.1", str(db.run("SELECT @@port")[0][0])), ("localhost", os.environ["TEST_MYSQL_SOCKET"])]
    for host, where in places:
        done = subprocess.run([program, host, "orders", "pw", db.name, where], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    assert len(db.deliver()) == len(places)


sys.exit(main())
