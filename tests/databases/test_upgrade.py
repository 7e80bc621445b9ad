# SPDX-License-Identifier: MIT
"""The data directory of one MySQL under the next one, with our tables in it.

OUTBOX_TEST_MYSQL_OLD and OUTBOX_TEST_MYSQL_NEW name directories that tools/matrix-servers has made.
"""
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile

from harness import case, main
from relays import insert, until, waiting

OLD, NEW = (os.environ.get(f"OUTBOX_TEST_MYSQL_{which}") for which in ("OLD", "NEW"))


class Server:
    """One data directory, under one program after the other."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="outbox-my.")
        os.chmod(self.dir, 0o755)
        self.process, self.options = None, {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("mysql")
            self.options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.dir, user.pw_uid, user.pw_gid)
        subprocess.run([f"{OLD}/install", f"--datadir={self.dir}/data"], check=True, **self.options)
        os.environ["TEST_MYSQL_SOCKET"] = f"{self.dir}/socket"

    def start(self, root):
        with open(f"{self.dir}/log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [f"{root}/mysqld", "--no-defaults", f"--datadir={self.dir}/data", f"--socket={self.dir}/socket",
                 "--skip-networking", "--mysqlx=OFF", "--secure-file-priv=", f"--pid-file={self.dir}/pid"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.options)
        until("the server answers", self.answers)

    def answers(self):
        import pymysql
        with open(f"{self.dir}/log", encoding="utf-8", errors="replace") as log:
            assert self.process.poll() is None, log.read()[-3000:]
        try:
            pymysql.connect(unix_socket=f"{self.dir}/socket", user="root").close()
        except pymysql.MySQLError:
            return False
        return True

    def stop(self):
        """As one does before an upgrade: in order."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(120) == 0

    def remove(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir)


server = None


def numbers(lines):
    return sorted(line["payload"]["n"] for line in lines)


@case("mysql")
def a_data_directory_is_upgraded_with_our_tables_in_it(db):
    """What was delivered stays so, what waited is delivered, and all goes on as before."""
    before = db.version()
    db.configure()
    db.outbox("setup")
    db.run(insert(db, 1, 300, 20))
    assert numbers(db.deliver()) == list(range(1, 301))
    db.run(insert(db, 301, 400, 20))
    db.run("CALL outbox_push('one', 'k', 'E', '{\"n\":401}', NULL, NULL)")
    server.stop()
    server.start(NEW)
    assert db.version() > before, (before, db.version())
    assert waiting(db) == 101
    db.outbox("setup")
    db.run("CALL outbox_push('one', 'k', 'E', '{\"n\":402}', NULL, NULL)")
    db.outbox("push", "--type", "one", "--aggregate", "k", "--event", "E", "--payload", '{"n":403}')
    db.run(insert(db, 404, 500, 20))
    lines = db.deliver()
    assert numbers(lines) == list(range(301, 501))
    assert [line["payload"]["n"] for line in lines if line["aggregate_type"] == "one"] == [401, 402, 403]
    assert db.deliver() == []


if not OLD or not NEW:
    print("1..0 # SKIP OUTBOX_TEST_MYSQL_OLD and _NEW name no servers; `make matrix-servers` fetches them")
    sys.exit(0)
server = Server()
try:
    server.start(OLD)
    sys.exit(main())
finally:
    server.remove()
