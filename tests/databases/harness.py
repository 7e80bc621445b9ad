# SPDX-License-Identifier: MIT
"""Cases that run on every database, with the built program, as TAP.

A case is a function with @case; it gets a database of its own:

    @case()
    def a_row_is_delivered(db):
        db.configure()
        db.outbox("setup")
        db.run("INSERT INTO ...")
        assert db.deliver() == [...]
"""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback

OUTBOX = os.environ["OUTBOX_BIN"]
TIMEOUT = 120
cases = []


def case(*kinds):
    """Run it on these databases; on all three when none is named. OUTBOX_TEST_DATABASES leaves one of them."""

    def register(function):
        only = os.environ.get("OUTBOX_TEST_DATABASES")
        cases.extend((function, kind) for kind in kinds or ("sqlite", "postgres", "mysql") if only in (None, kind))
        return function

    return register


class Database:
    """A database of one case, and a directory with outbox.yaml for the program."""

    marker = "%s"

    def __init__(self, number):
        self.name = f"t{number}"
        self.dir = tempfile.mkdtemp(prefix="outbox-test.")
        # a server's user must reach the socket of another, and a program of its own the directory
        os.chmod(self.dir, 0o755)
        self.create()

    def close(self):
        shutil.rmtree(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def configure(self, layout="", relay="", user=None, sink="type: file, path: out.ndjson", name="default", store=""):
        """Write outbox.yaml; `layout`, `relay` and `store` are what stands in these mappings."""
        self.write("outbox.yaml",
                   f'stores: {{ main: {{ url: "{self.url(user)}", {store} }} }}\n'
                   f"sinks: {{ out: {{ {sink} }} }}\n"
                   f"relays: [ {{ name: {name}, store: main, sink: out, {relay} }} ]\n"
                   f"layout: {{ {layout} }}\n")

    def start(self, *words):
        return subprocess.Popen([OUTBOX, *words], cwd=self.dir, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def outbox(self, *words, code=0):
        """Run the program; what it wrote: to stderr when it was to fail, else to stdout."""
        process = self.start(*words)
        out, err = process.communicate(timeout=TIMEOUT)
        assert process.returncode == code, f"outbox {' '.join(words)}: {process.returncode}: {out}{err}"
        return err if code else out

    def run(self, sql, *values, user=None):
        """Run one statement and commit; its rows."""
        connection = self.connect(user)
        try:
            cursor = connection.cursor()
            cursor.execute(sql, values)
            rows = cursor.fetchall() if cursor.description else []
            connection.commit()
            return [tuple(row) for row in rows]
        finally:
            connection.close()

    def refused(self, sql, *values, user=None):
        """The error of a statement that must fail."""
        try:
            self.run(sql, *values, user=user)
        except Exception as error:  # each driver has its own
            return str(error)
        raise AssertionError(f"was not refused: {sql}")

    def deliver(self, *words):
        """What one run of the relay delivers, in order."""
        if os.path.exists(self.path("out.ndjson")):
            os.remove(self.path("out.ndjson"))
        self.outbox("work", "--once", *words)
        if not os.path.exists(self.path("out.ndjson")):
            return []
        with open(self.path("out.ndjson"), encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]


class Sqlite(Database):
    kind, marker = "sqlite", "?"

    def create(self):
        self.file = self.path("test.db")

    def url(self, user=None):
        return f"sqlite:{self.file}"

    def connect(self, user=None):
        return sqlite3.connect(self.file, timeout=60)

    def shell(self, text):
        return shell(["sqlite3", "-bail", self.file], text)


class Postgres(Database):
    kind = "postgres"

    def create(self):
        self.admin(f"CREATE DATABASE {self.name} TEMPLATE template0")
        self.run("REVOKE CREATE ON SCHEMA public FROM PUBLIC")  # as it is from PostgreSQL 15 on

    def admin(self, sql):
        """Run a statement beside the databases of the cases."""
        connection = self.connect(database="postgres")
        connection.autocommit = True
        connection.cursor().execute(sql)
        connection.close()

    def place(self):
        return os.environ["TEST_POSTGRES_DIR"], os.environ["TEST_POSTGRES_PORT"]

    def url(self, user=None):
        return "postgresql://{}@/{}?host={}&port={}".format(user or "postgres", self.name, *self.place())

    def connect(self, user=None, database=None):
        import psycopg2
        host, port = self.place()
        return psycopg2.connect(host=host, port=port, user=user or "postgres", dbname=database or self.name)

    def shell(self, text):
        return shell(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", self.url()], text)


class Mysql(Database):
    kind = "mysql"

    def create(self):
        self.admin(f"CREATE DATABASE {self.name}")

    def admin(self, sql):
        """Run a statement beside the databases of the cases."""
        connection = self.connect(database="mysql")
        connection.cursor().execute(sql)
        connection.close()

    def url(self, user=None):
        return f"mysql://{user or 'root'}@/{self.name}?socket={os.environ['TEST_MYSQL_SOCKET']}"

    def connect(self, user=None, database=None):
        import pymysql
        return pymysql.connect(unix_socket=os.environ["TEST_MYSQL_SOCKET"], user=user or "root",
                               database=database or self.name, charset="utf8mb4")

    def version(self):
        """Of the server, such as (10, 11), and whether it is MariaDB."""
        text = self.run("SELECT VERSION()")[0][0]
        return tuple(int(part) for part in text.split(".")[:2]), "MariaDB" in text

    def has_uuid(self):
        number, mariadb = self.version()
        return mariadb and number >= (10, 7)

    def shell(self, text):
        return shell(["mariadb", "--no-defaults", "-uroot", "--socket", os.environ["TEST_MYSQL_SOCKET"],
                      self.name], text)


KINDS = {"sqlite": Sqlite, "postgres": Postgres, "mysql": Mysql}


def shell(command, text, **options):
    """Feed a program; what it wrote. It must succeed."""
    done = subprocess.run(command, input=text, text=True, capture_output=True, timeout=TIMEOUT, **options)
    assert done.returncode == 0, f"{command[0]}: {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


class Skip(Exception):
    """Something that the case needs is not there."""


def missing(kind):
    """Why there is no such database here, or None."""
    module = {"postgres": "psycopg2", "mysql": "pymysql"}.get(kind)
    try:
        if module:
            __import__(module)
    except ImportError:
        return f"python3-{module} is not installed"
    return os.environ.get(f"TEST_{kind.upper()}_MISSING")


def attempt(number, function, kind):
    """The words of a failure, or None."""
    db = None
    try:
        db = KINDS[kind](number)
        function(db)
    except Skip:
        raise
    except Exception:
        return traceback.format_exc()
    finally:
        if db:
            db.close()
    return None


def main():
    """Run all cases, or those whose name has the first argument in it."""
    wanted = [(f, kind) for f, kind in cases if len(sys.argv) < 2 or sys.argv[1] in f"{f.__name__} {kind}"]
    failed = 0
    print(f"1..{len(wanted)}")
    for number, (function, kind) in enumerate(wanted, 1):
        name = f"{function.__name__} on {kind}"
        why, trouble, began = missing(kind), None, time.monotonic()
        try:
            trouble = None if why else attempt(number, function, kind)
        except Skip as skip:
            why = str(skip)
        if why:
            print(f"ok {number} - {name} # SKIP {why}")
        elif trouble:
            failed += 1
            print(f"not ok {number} - {name}")
            print(re.sub("^", "# ", trouble.rstrip(), flags=re.M))
        else:
            print(f"ok {number} - {name}\n# in {time.monotonic() - began:.1f} s")
        sys.stdout.flush()
    return 1 if failed else 0
