# SPDX-License-Identifier: MIT
"""A private Redis on a socket in a temporary directory, and a client for it."""
import atexit
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid


class RedisError(Exception):
    """What the server refused."""


class Redis:
    """Started with the first use, ended with the program."""

    def __init__(self, *settings):
        self.dir = tempfile.mkdtemp(prefix="outbox-redis.")
        self.socket = os.path.join(self.dir, "redis.sock")
        self.settings, self.process, self.peer = settings, None, None
        atexit.register(self.remove)
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.dir,
             "--save", "", "--appendonly", "yes", "--appendfsync", "always", *self.settings],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                self.peer = socket.socket(socket.AF_UNIX)
                self.peer.connect(self.socket)
                self.file = self.peer.makefile("rb")
                self("PING")
                return
            except (OSError, RedisError):
                assert time.monotonic() < deadline and self.process.poll() is None, "redis does not start"
                time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def remove(self):
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def url(self):
        return f"unix://{self.socket}"

    def reply(self):
        line = self.file.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise RedisError(rest.decode())
        if kind == b"+":
            return rest.decode()
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.file.read(size + 2)[:-2].decode()
        return None if int(rest) < 0 else [self.reply() for _ in range(int(rest))]

    def __call__(self, *words):
        data = [str(word).encode() for word in words]
        self.peer.sendall(b"*%d\r\n" % len(data) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in data))
        return self.reply()

    def add(self, stream, key, n, kind="Paid", id=None, **payload):
        """A message as the redis sink writes it; its id."""
        id = id or str(uuid.uuid4())
        self("XADD", stream, "*", "id", id, "event_type", kind, "aggregate_type", "order", "aggregate_id", key, "revision", "1",
             "key", f"order:{key}", "payload", json.dumps({"n": n, **payload}))
        return id
