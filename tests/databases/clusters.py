# SPDX-License-Identifier: MIT
"""PostgreSQL clusters of a case's own: a primary, a standby, one restored from an archive; and a pooler."""
import glob
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile

from harness import TIMEOUT, Skip
from relays import until

SERVER = "postgres"


def programs():
    if os.environ.get("OUTBOX_TEST_POSTGRES"):
        return os.environ["OUTBOX_TEST_POSTGRES"]
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    if not found:
        raise Skip("no PostgreSQL server is installed (package postgresql-15)")
    return os.path.dirname(found[-1])


def free_port():
    """Below those of outgoing connections: one of these could take it while a server is restarted."""
    while True:
        port = random.randrange(10240, 32240)
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def step_down():
    """PostgreSQL and PgBouncer refuse root: the options of a process that is another user's then."""
    if os.geteuid() != 0:
        return {}
    try:
        user = pwd.getpwnam(SERVER)
    except KeyError:
        raise Skip("PostgreSQL refuses root and there is no user postgres") from None
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class Place:
    """A directory for servers, with what runs in it; all of it ends with the case."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="outbox-pg.")
        os.chmod(self.dir, 0o755)
        self.options = step_down()
        if self.options:
            os.chown(self.dir, self.options["user"], self.options["group"])
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process, end in self.running:
            if process.poll() is None:
                process.send_signal(end)
                process.wait()
        shutil.rmtree(self.dir)

    def run(self, *words):
        done = subprocess.run(words, cwd=self.dir, capture_output=True, text=True, timeout=TIMEOUT, **self.options)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"

    def start(self, *words, log="log", end=signal.SIGQUIT):
        """`end`: the signal that ends it at once. It must be one that the program handles: a shell in the
        background leaves SIGQUIT ignored to all its children."""
        with open(os.path.join(self.dir, log), "a", encoding="utf-8") as output:
            process = subprocess.Popen(words, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                       **self.options)
        self.running.append((process, end))
        return process

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "a", encoding="utf-8") as file:
            file.write(text)
        if self.options:
            os.chown(self.path(name), self.options["user"], self.options["group"])


class Cluster:
    """One data directory of a place."""

    def __init__(self, place, name):
        self.place, self.name, self.port, self.process = place, name, free_port(), None
        self.bin = programs()

    def init(self):
        self.place.run(f"{self.bin}/initdb", "-D", self.name, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        return self

    def backup_of(self, other, *words):
        """A base backup of one that runs."""
        self.place.run(f"{self.bin}/pg_basebackup", "-D", self.name, "-h", other.place.dir, "-p", str(other.port), "-U",
                       "postgres", "-c", "fast", *words)
        return self

    def start(self, *settings):
        words = []
        for setting in ("listen_addresses=127.0.0.1", f"unix_socket_directories={self.place.dir}", "fsync=off",
                        "shared_buffers=32MB", "max_connections=60", *settings):
            words += ["-c", setting]
        self.process = self.place.start(f"{self.bin}/postgres", "-D", self.name, "-p", str(self.port), *words,
                                        log=f"{self.name}.log")
        until(f"{self.name} is ready", self.is_ready)
        return self

    def is_ready(self):
        assert self.process.poll() is None, open(self.place.path(f"{self.name}.log"), encoding="utf-8").read()[-2000:]
        return subprocess.run([f"{self.bin}/pg_isready", "-q", "-h", self.place.dir, "-p", str(self.port)],
                              check=False).returncode == 0

    def crash(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def connect(self, database="postgres"):
        import psycopg2
        return psycopg2.connect(host=self.place.dir, port=self.port, user="postgres", dbname=database)

    def run(self, sql, database="postgres"):
        connection = self.connect(database)
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute(sql)
        rows = cursor.fetchall() if cursor.description else []
        connection.close()
        return rows

    def lead(self, db):
        """From now on the case's database is this cluster's."""
        db.place = lambda: (self.place.dir, str(self.port))
        db.name = "postgres"


def pooler(place, host, port, size=3):
    """PgBouncer in transaction mode in front of a server; its port."""
    if not os.path.exists("/usr/sbin/pgbouncer"):
        raise Skip("no pgbouncer is installed (package pgbouncer)")
    at = free_port()
    place.write("pgbouncer.ini", f"[databases]\n* = host={host} port={port} user=postgres\n[pgbouncer]\n"
                f"listen_addr=127.0.0.1\nlisten_port={at}\nauth_type=any\npool_mode=transaction\n"
                f"default_pool_size={size}\nunix_socket_dir=\n")
    place.start("/usr/sbin/pgbouncer", place.path("pgbouncer.ini"), log="pgbouncer.log", end=signal.SIGTERM)

    def answers():
        with socket.socket() as found:
            return found.connect_ex(("127.0.0.1", at)) == 0

    until("the pooler answers", answers)
    return at
