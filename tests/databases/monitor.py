# SPDX-License-Identifier: MIT
"""A monitor that runs, a client for it, and the OpenAPI file that every answer is held against."""
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from harness import OUTBOX, TIMEOUT

ROOT = pathlib.Path(__file__).resolve().parents[2]
API = json.loads((ROOT / "src/monitor/openapi.json").read_text(encoding="utf-8"))
VIEWER, OPERATOR = "viewer-0123456789abcdef", "operator-0123456789abcdef"

# A handler of the exec sink: what it says depends on the event type.
HANDLER = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    say = {"Bad": "reject", "Late": "retry"}.get(m["type"] if "type" in m else m.get("event_type"), "ok")
    print(say, m["id"], *(["HTTP 422: order", m["seq"] if "seq" in m else 7] if say != "ok" else []), flush=True)
"""


# ---- the validator ----------------------------------------------------

def resolve(schema):
    while "$ref" in schema:
        node = API
        for part in schema["$ref"].removeprefix("#/").split("/"):
            node = node[part]
        schema = node
    return schema


KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_a(value, kind):
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, KINDS[kind])


def faults(value, schema, where="answer"):
    """What in the value is not as the schema says: a list of lines. The parts of JSON Schema that our file uses."""
    schema = resolve(schema)
    known = {"type", "description", "enum", "required", "properties", "additionalProperties", "items", "oneOf",
             "maxLength", "format"}
    assert set(schema) <= known, f"the validator does not know {set(schema) - known}"
    if "oneOf" in schema:
        good = [s for s in schema["oneOf"] if not faults(value, s, where)]
        return [] if len(good) == 1 else [f"{where}: fits {len(good)} of oneOf"]
    found = []
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_a(value, kind) for kind in kinds):
        return [f"{where}: {value!r} is no {' or '.join(kinds)}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is none of {schema['enum']}")
    if isinstance(value, dict) and "properties" in schema:
        found += [f"{where}: no {name}" for name in schema.get("required", []) if name not in value]
        for name, part in value.items():
            if name in schema["properties"]:
                found += faults(part, schema["properties"][name], f"{where}.{name}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{where}: {name} is not described")
    if isinstance(value, list) and "items" in schema:
        for i, part in enumerate(value):
            found += faults(part, schema["items"], f"{where}[{i}]")
    return found


def described(method, path):
    """The operation of a URL, or None."""
    path = path.split("?")[0]
    # what is written out stands before what has a parameter
    for pattern in sorted(API["paths"], key=lambda p: p.count("{")):
        regex = "/".join("[^/]+" if part.startswith("{") else re.escape(part) for part in pattern.split("/"))
        if re.fullmatch(regex, path) and method.lower() in API["paths"][pattern]:
            return API["paths"][pattern][method.lower()]
    return None


def check_answer(method, path, answer):
    operation = described(method, path)
    assert operation, f"{method} {path} is not in openapi.json"
    response = operation["responses"].get(str(answer.status))
    assert response, f"{method} {path}: {answer.status} is not described: {answer.text[:300]}"
    content = resolve(response)["content"]
    kind = answer.headers["content-type"].split(";")[0]
    assert kind in content, f"{method} {path}: {kind} is none of {list(content)}"
    if kind == "application/json":
        found = faults(answer.json, content[kind]["schema"])
        assert not found, f"{method} {path}: " + "\n".join(found)


# ---- the client --------------------------------------------------------

class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.body)


class Monitor:
    """`outbox monitor` (or `outbox work`) in the directory of a case; ends with it."""

    def __init__(self, db, *words, work=False):
        self.db, self.work = db, work
        self.words = words or ((("work",)) if work else ("monitor", "--listen", "127.0.0.1:0"))

    def __enter__(self):
        self.log = open(self.db.path("monitor.log"), "a+", encoding="utf-8")
        self.process = subprocess.Popen([OUTBOX, *self.words], cwd=self.db.dir, text=True, stdin=subprocess.DEVNULL,
                                        stdout=self.log if self.work else subprocess.PIPE, stderr=self.log)
        if self.work:
            self.address = self.wait_for(lambda: re.search(r"address=\"?(http://[^\s\"]+)", self.said()))[1]
        else:
            line = self.process.stdout.readline()
            assert line.startswith("monitor at "), self.said()
            self.address = line.split()[-1]
        place = re.match(r"http://([^:]+):(\d+)(.*)/$", self.address)
        self.host, self.port, self.base = place[1], int(place[2]), place[3]
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.code = self.process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        if self.process.stdout:
            self.process.stdout.close()
        self.log.close()

    def said(self):
        with open(self.db.path("monitor.log"), encoding="utf-8") as file:
            return file.read()

    def wait_for(self, condition):
        # the sampler rests for long where a round takes long: a loaded machine needs patience
        end = time.monotonic() + 150
        while True:
            value = condition()
            if value:
                return value
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < end, f"not in time:\n{self.said()[-2000:]}"
            time.sleep(0.02)

    def raw(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, self.base + path, body=body, headers=headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, status=200, token=None, **headers):
        """The answer, which must be as openapi.json says."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        answer = self.raw("GET", path, headers=headers)
        check_answer("GET", path, answer)
        assert answer.status == status, f"GET {path}: {answer.status}: {answer.text[:500]}"
        return answer.json if answer.headers["content-type"] == "application/json" else answer

    def post(self, path, body=None, status=200, token=None, origin=True, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers.setdefault("Content-Type", "application/json")
        if origin:
            headers.setdefault("Origin", f"http://{self.host}:{self.port}")
        if token:
            headers["Authorization"] = f"Bearer {token}"
        answer = self.raw("POST", path, json.dumps(body if body is not None else {}), headers)
        check_answer("POST", path, answer)
        assert answer.status == status, f"POST {path}: {answer.status}: {answer.text[:500]}"
        return answer.json

    def sampled(self, condition=lambda state: True):
        """A state that was sampled and fits."""
        def ask():
            state = self.get("/api/v1/state")
            return state if state["sampled_us"] and condition(state) else None
        return self.wait_for(ask)

    def job(self, job):
        def ask():
            answer = self.get(f"/api/v1/jobs/{job}")
            return answer if answer["state"] != "running" else None
        return self.wait_for(ask)


def configure(db, monitor="", relay="", sink=None):
    """A store, an exec sink that fails by event type, and `monitor:`."""
    db.write("handler.py", HANDLER)
    sink = sink or f"type: exec, command: /usr/bin/python3 {db.path('handler.py')}"
    db.write("outbox.yaml",
             f'stores: {{ main: {{ url: "{db.url()}" }} }}\n'
             f"sinks: {{ out: {{ {sink} }} }}\n"
             f"relays: [ {{ name: default, store: main, sink: out, {relay} }} ]\n"
             f"monitor: {{ {monitor} }}\n")
    os.chmod(db.path("outbox.yaml"), 0o600)


def push_json(db, *messages):
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    done = subprocess.run([OUTBOX, "push"], cwd=db.dir, text=True, input=lines, capture_output=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr


def push(db, *messages):
    """(event, key, payload) each."""
    push_json(db, *[{"aggregate_type": "order", "aggregate_id": str(key), "event_type": event, "payload": payload}
                    for event, key, payload in messages])


def with_failures(db, monitor="", good=3, bad=2, late=1):
    """Some published, some dead, some failed with one parked behind each."""
    configure(db, monitor, relay="retry: { max_attempts: 5, base_delay: 10m, max_backoff: 1h }")
    db.outbox("setup", "--partitions", "4")
    push(db, *[("Good", 100 + i, {"n": i}) for i in range(good)], *[("Bad", 200 + i, {"n": i}) for i in range(bad)],
         *[("Late", 300 + i, {"n": i}) for i in range(late)])
    db.outbox("work", "--once", code=1)
    push(db, *[("Good", 300 + i, {"behind": True}) for i in range(late)])
    db.outbox("work", "--once")
