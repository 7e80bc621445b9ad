# SPDX-License-Identifier: MIT
"""What the monitor lets in and what not: hosts, origins, roles, sizes, slow clients; streams, masks, health."""
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from harness import OUTBOX, Skip, case, main
from monitor import API, OPERATOR, ROOT, VIEWER, Answer, Monitor, configure, push

TOKENS = f"listen: 127.0.0.1:0, tokens: {{ viewer: {VIEWER}, operator: {OPERATOR} }}"


def setup(db, monitor="", **more):
    configure(db, monitor, **more)
    db.outbox("setup", "--partitions", "4")


def routes():
    """Every method and path of the API, with the role that it takes."""
    for path, methods in API["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation["x-role"]


@case("sqlite")
def every_route_asks_for_its_role(db):
    setup(db, TOKENS)
    rank = {"none": 0, "viewer": 1, "operator": 2}
    with Monitor(db) as m:
        m.wait_for(lambda: m.raw("GET", "/startupz").status == 200)
        for number, (method, pattern, needs) in enumerate(routes()):
            path = pattern.replace("{id}", "01a1ee3b-9ada-7065-81a5-97cd2b538b57")
            if path.endswith("/events"):
                continue  # it does not end; see below
            for role, token in (("none", None), ("none", "wrong-0123456789abcdef"), ("viewer", VIEWER), ("operator", OPERATOR)):
                if number >= 5 and token and role == "none":
                    continue  # they are slowed down; see below
                headers = {"Content-Type": "application/json"}
                if token:
                    headers["Authorization"] = f"Bearer {token}"
                answer = m.raw(method, path, "{}" if method == "POST" else None, headers)
                if pattern.endswith(("login", "logout")):
                    # the token is in the body: without one of the header they must come from our own pages
                    assert answer.status in ((403,) if role == "none" else (200, 401)), (path, role, answer.status)
                    continue
                refused = answer.status in (401, 403) and answer.json["error"]["code"] in ("token", "role", "origin")
                assert refused == (rank[role] < rank[needs]), (method, path, role, answer.status, answer.text[:200])
        for page in ("/", "/failures", "/messages", "/messages/x", "/keys", "/relays", "/doctor", "/audit", "/streams",
                     "/stream"):
            anonymous = m.raw("GET", page)
            assert anonymous.status == 401 and '{"state":null,"page":null}' in anonymous.text, page
            assert m.raw("GET", page, headers={"Authorization": f"Bearer {VIEWER}"}).status == 200


@case("sqlite")
def names_that_are_not_ours_are_refused(db):
    setup(db, "hosts: 'outbox.example.com, ops.example.com'")
    with Monitor(db) as m:
        for host in ("127.0.0.1", f"127.0.0.1:{m.port}", f"localhost:{m.port}", "LOCALHOST", f"[::1]:{m.port}",
                     "outbox.example.com", "outbox.example.com:443", "OPS.example.com"):
            assert m.raw("GET", "/api/v1/state", headers={"Host": host}).status == 200, host
        for host in ("evil.com", f"evil.com:{m.port}", "example.com", "outbox.example.com.evil.com", "10.0.0.1", "127.0.0.1.evil.com",
                     "localhost.evil.com", "[::1].evil.com", "[::1", "localhost:80x", "", " ", "x" * 300):
            answer = m.raw("GET", "/api/v1/state", headers={"Host": host})
            assert answer.status in (400, 421), (host, answer.status)
            assert m.raw("GET", "/", headers={"Host": host}).status in (400, 421), host
        # probes come with addresses of their own
        assert m.raw("GET", "/healthz", headers={"Host": "10.2.3.4:8025"}).status == 200


@case("sqlite")
def a_change_must_come_from_our_own_pages(db):
    setup(db)
    plan = json.dumps({"verb": "retry", "filter": {}})
    with Monitor(db) as m:
        db.outbox("work", "--once")
        own = f"http://127.0.0.1:{m.port}"
        good = ({"Origin": own}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "same-origin", "Origin": own})
        bad = ({}, {"Origin": "http://evil.com"}, {"Origin": "null"}, {"Origin": f"http://localhost:{m.port}"}, {"Origin": f"{own}.evil.com"},
               {"Origin": f"ftp://127.0.0.1:{m.port}"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
               {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "cross-site", "Origin": own},
               {"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.com"})
        for headers in good:
            answer = m.raw("POST", "/api/v1/plans", plan, {"Content-Type": "application/json", **headers})
            assert answer.status == 200, (headers, answer.text)
        for headers in bad:
            answer = m.raw("POST", "/api/v1/plans", plan, {"Content-Type": "application/json", **headers})
            assert answer.status == 403 and answer.json["error"]["code"] == "origin", (headers, answer.text)
        # a form of another site could send these
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            answer = m.raw("POST", "/api/v1/plans", plan, {"Content-Type": kind, "Origin": own})
            assert answer.status == 400, kind
        # nothing changes by GET
        for path in ("/api/v1/plans", "/api/v1/plans/x/run", "/api/v1/jobs/x/stop", "/api/v1/login", "/api/v1/logout"):
            assert m.raw("GET", path).status == 405, path
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            assert m.raw(method, "/api/v1/state").status in (400, 405), method
        assert "access-control-allow-origin" not in m.raw("GET", "/api/v1/state", headers={"Origin": "http://evil.com"}).headers


@case("sqlite")
def wrong_tokens_slow_down_who_sends_them(db):
    setup(db, TOKENS + ", trusted_proxies: 127.0.0.1")
    with Monitor(db) as m:
        own = {"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{m.port}"}

        def ask(token, address):
            return m.raw("GET", "/api/v1/state", headers={"Authorization": f"Bearer {token}", "X-Forwarded-For": address})

        def login(token, address):
            return m.raw("POST", "/api/v1/login", json.dumps({"token": token}), {**own, "X-Forwarded-For": address})
        m.wait_for(lambda: m.raw("GET", "/startupz").status == 200)
        session = login(VIEWER, "10.0.0.1").headers["set-cookie"].split(";")[0]
        codes = [(login if i % 2 else ask)("wrong", "10.0.0.1").status for i in range(60)]
        assert codes[:10] == [401] * 10 and 429 in codes and codes.count(401) < 60, codes
        # also the right one, or guessing would go on as before; the machine may be slow, so ask until it is
        m.wait_for(lambda: ask("wrong", "10.0.0.1").status == 429 and ask(OPERATOR, "10.0.0.1").status == 429)
        slowed = login(OPERATOR, "10.0.0.1")
        assert slowed.status == 200 or (slowed.json["error"]["code"] == "slow_down" and slowed.headers["retry-after"] == "1")
        # sessions go on, and so do others
        assert m.raw("GET", "/api/v1/state", headers={"Cookie": session, "X-Forwarded-For": "10.0.0.1"}).status == 200
        assert ask(OPERATOR, "10.0.0.2").status == 200
        # an IPv6 address is its network
        for i in range(60):
            ask("wrong", f"2001:db8::{i:x}")
        m.wait_for(lambda: ask("wrong", "2001:db8::ffff").status == 429)
        assert ask(OPERATOR, "2001:db8:0:1::1").status == 200
        m.wait_for(lambda: ask(OPERATOR, "10.0.0.1").status == 200)
        counted = int(re.search(r"^outbox_monitor_wrong_tokens_total (\d+)$", m.get("/metrics", token=VIEWER).text, re.M)[1])
        assert counted >= 20, counted


@case("sqlite")
def a_session_is_signed(db):
    setup(db, TOKENS)
    with Monitor(db) as m:
        m.post("/api/v1/login", {"token": "wrong"}, 401)
        assert "wrong" not in m.said().replace("wrong token", "")
        own = {"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{m.port}"}
        answer = m.raw("POST", "/api/v1/login", json.dumps({"token": VIEWER}), own)
        cookie = answer.headers["set-cookie"]
        assert answer.json == {"role": "viewer"} and "HttpOnly" in cookie and "SameSite=Strict" in cookie, cookie
        assert VIEWER not in cookie and "Secure" not in cookie
        value = cookie.split(";")[0]
        assert m.raw("GET", "/api/v1/state", headers={"Cookie": value}).json["role"] == "viewer"
        # the role and every other byte are under the signature
        name, text = value.split("=", 1)
        forged = ["2" + text[1:], text[:-1] + ("0" if text[-1] != "0" else "1"), text.rsplit(".", 1)[0], "", "2.99999999999999999.00.00",
                  text.replace(text.split(".")[1], str(int(text.split(".")[1]) + 1))]
        for bad in forged:
            assert m.raw("GET", "/api/v1/state", headers={"Cookie": f"{name}={bad}"}).status == 401, bad
        out = m.raw("POST", "/api/v1/logout", "{}", {**own, "Cookie": value})
        assert "Max-Age=0" in out.headers["set-cookie"]
        # a cookie alone does not let another origin act
        answer = m.raw("POST", "/api/v1/login", json.dumps({"token": OPERATOR}), own)
        value = answer.headers["set-cookie"].split(";")[0]
        foreign = {"Content-Type": "application/json", "Cookie": value, "Origin": "http://evil.com"}
        assert m.raw("POST", "/api/v1/plans", "{}", foreign).status == 403
    with Monitor(db) as m:
        assert m.raw("GET", "/api/v1/state", headers={"Cookie": value}).status == 401, "a new start has a new key"


@case("sqlite")
def every_answer_has_the_safe_headers(db):
    setup(db)
    with Monitor(db) as m:
        for path in ("/", "/app.js", "/api/v1/state", "/nothing", "/metrics", "/healthz", "/api/v1/messages/x"):
            headers = m.raw("GET", path).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
            assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
            assert headers["referrer-policy"] == "no-referrer" and headers["cross-origin-resource-policy"] == "same-origin"
            assert headers["cache-control"] == ("no-cache" if path == "/app.js" else "no-store"), path
        page = m.raw("GET", "/").text
        assert "<script>" not in page and "style=" not in page and not re.search(r"\son\w+=", page.split("<script type")[0])


@case("sqlite")
def hostile_text_never_becomes_html(db):
    setup(db)
    evil = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>"
    line = json.dumps({"aggregate_type": "order", "aggregate_id": evil[:200], "event_type": "<b>", "payload": {"x": evil}})
    subprocess.run([OUTBOX, "push"], cwd=db.dir, text=True, input=line + "\n", check=True, capture_output=True)
    with Monitor(db) as m:
        id = m.get("/api/v1/messages")["messages"][0]["id"]
        for page in ("/messages", f"/messages/{id}", "/messages?key=%3Cscript%3E", "/messages/%3Cscript%3Ealert(1)"):
            text = m.raw("GET", page).text
            data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1]
            json.loads(data)
            assert "<" not in data and "alert(1)" not in text.replace(data, ""), page
        answer = m.raw("GET", f"/api/v1/messages/{id}/payload")
        assert answer.headers["content-type"] == "application/octet-stream" and evil in answer.text
        assert m.raw("GET", "/%3Cscript%3E").headers["content-type"] == "application/json"


@case("sqlite")
def too_much_is_refused(db):
    setup(db)
    with Monitor(db) as m:
        own = {"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{m.port}"}
        assert m.raw("POST", "/api/v1/plans", "x" * 65537, own).status == 413
        # without a length it is counted
        chunked = iter([b"x" * 40000, b"x" * 40000])
        connection = http.client.HTTPConnection(m.host, m.port, timeout=30)
        connection.request("POST", "/api/v1/plans", body=chunked, headers=own, encode_chunked=True)
        assert Answer(connection.getresponse()).status == 413
        connection.close()
        try:
            assert m.raw("GET", "/api/v1/state", headers={"X": "y" * 100000}).status in (400, 413, 431)
        except (ConnectionError, http.client.HTTPException):
            pass  # it hung up in the middle
        assert m.raw("GET", "/api/v1/messages?key=" + "k" * 20000).status in (200, 400, 414, 431)
        for body in ("", "[]", "{", '"x"', '{"verb":"retry","verb":"skip"}', '{"a":' * 3000, "\x00"):
            assert m.raw("POST", "/api/v1/plans", body, own).status == 400, body[:20]
        assert m.get("/api/v1/state")["role"] == "operator"


@case("sqlite")
def slow_clients_are_cut_off(db):
    setup(db)
    with Monitor(db) as m:
        began = time.monotonic()
        slow = [socket.create_connection((m.host, m.port)) for _ in range(5)]
        for s in slow:
            s.sendall(b"GET /api/v1/state HTTP/1.1\r\nHost: localhost\r\n")
            s.settimeout(1)
        idle = socket.create_connection((m.host, m.port))
        idle.settimeout(1)
        open_ones = set(slow) | {idle}
        while open_ones and time.monotonic() - began < 40:
            for s in list(open_ones):
                try:
                    if s is not idle:
                        s.sendall(b"X: y\r\n")  # a byte now and then keeps no door open
                    if s.recv(100) == b"":
                        open_ones.discard(s)
                except socket.timeout:
                    pass
                except OSError:
                    open_ones.discard(s)
            assert m.raw("GET", "/healthz").status == 200
        assert not open_ones, f"{len(open_ones)} still there after {time.monotonic() - began:.0f} s"
        for s in [*slow, idle]:
            s.close()


@case("sqlite")
def a_stream_tells_each_change(db):
    setup(db)
    db.outbox("work", "--once")
    with Monitor(db) as m:
        m.sampled()
        connection = http.client.HTTPConnection(m.host, m.port, timeout=60)
        connection.request("GET", "/api/v1/events", headers={"Accept": "text/event-stream"})
        response = connection.getresponse()
        assert response.status == 200 and response.getheader("Content-Type") == "text/event-stream"
        assert response.getheader("X-Accel-Buffering") == "no"

        def event():
            lines = {}
            while True:
                line = response.readline().decode().rstrip("\n")
                if not line and "data" in lines:
                    return lines
                if ": " in line:
                    name, value = line.split(": ", 1)
                    lines[name] = value
        first = event()
        assert first["event"] == "state" and json.loads(first["data"])["readers"][0]["counts"]["pending"]["n"] == 0
        assert len(first["data"]) < 8192
        push(db, ("Good", 1, {}))
        seen, last = 0, int(first["id"])
        end = time.monotonic() + 30
        while seen != 1:
            assert time.monotonic() < end
            more = event()
            assert int(more["id"]) > last
            last, seen = int(more["id"]), json.loads(more["data"])["readers"][0]["counts"]["pending"]["n"]
        assert "outbox_monitor_sse_clients 1\n" in m.get("/metrics").text
        connection.close()
        m.wait_for(lambda: "outbox_monitor_sse_clients 0\n" in m.get("/metrics").text)
        # too many are told so, and a stop ends all at once
        many = []
        for _ in range(64):
            s = socket.create_connection((m.host, m.port))
            s.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" in s.recv(200)
            many.append(s)
        m.get("/api/v1/events", 429)
        began = time.monotonic()
    assert m.code == 0 and time.monotonic() - began < 5, (m.code, time.monotonic() - began)
    for s in many:
        s.close()


@case("sqlite")
def payloads_are_masked_on_the_server(db):
    setup(db, TOKENS + ", mask: '*password*,card', payloads: { viewer: masked }")
    secret = '{"Password": "s3cret", "a": {"card": [1, {"x": "4111"}], "ok": 9007199254740993}, "cardinal": 1, "pass\\u0077ord": 5, "note": "password"}'
    db.outbox("push", "--type", "order", "--aggregate", "1", "--event", "E", "--payload", secret)
    with Monitor(db) as m:
        id = m.get("/api/v1/messages", token=VIEWER)["messages"][0]["id"]
        shown = m.get(f"/api/v1/messages/{id}", token=VIEWER)["message"]
        assert shown["payload_mode"] == "masked", shown
        assert "s3cret" not in shown["payload"] and "4111" not in shown["payload"] and "9007199254740993" in shown["payload"]
        masked = json.loads(shown["payload"])
        assert masked["Password"] == "***" and masked["a"] == {"card": "***", "ok": 9007199254740993} and masked["cardinal"] == 1, masked
        assert masked["password"] == "***" and masked["note"] == "password"
        m.get(f"/api/v1/messages/{id}/payload", 403, token=VIEWER)
        assert "s3cret" in m.get(f"/api/v1/messages/{id}", token=OPERATOR)["message"]["payload"]
        # also in the page itself
        assert "s3cret" not in m.raw("GET", f"/messages/{id}", headers={"Authorization": f"Bearer {VIEWER}"}).text
    setup(db, TOKENS + ", payloads: { viewer: hidden, operator: masked }")
    with Monitor(db) as m:
        hidden = m.get(f"/api/v1/messages/{id}", token=VIEWER)["message"]
        assert hidden["payload"] is None and hidden["payload_mode"] == "hidden" and hidden["headers"] is None
        m.get(f"/api/v1/messages/{id}/payload", 403, token=OPERATOR)


@case("sqlite")
def a_large_payload_is_cut_and_can_be_saved(db):
    setup(db)
    text = json.dumps({"x": "ä" * 2500000})
    push(db, ("Good", 1, {"x": "ä" * 2500000}))
    with Monitor(db) as m:
        id = m.get("/api/v1/messages")["messages"][0]["id"]
        shown = m.get(f"/api/v1/messages/{id}")["message"]
        assert shown["payload_cut"] and len(shown["payload"].encode()) <= 256 << 10, len(shown["payload"])
        assert len(m.get(f"/api/v1/messages/{id}/payload").body) == shown["payload_bytes"] >= len(text) // 2


@case("sqlite")
def where_others_can_reach_it_a_token_is_needed(db):
    for listen in ("0.0.0.0:0", ":0", "[::]:0", "192.0.2.7:80"):
        configure(db, f"listen: '{listen}'")
        text = db.outbox("config", "check", code=1)
        assert "monitor.listen: others can reach" in text and "monitor.token must be set" in text, text
        configure(db)
        text = db.outbox("monitor", "--listen", listen, code=1)
        assert text.count("\n") == 1 and "monitor.token must be set" in text, text
    for listen in ("x", "example.com:80", "127.0.0.1", "127.0.0.1:99999", "unix:", "[::1]", "::1:80"):
        assert "is no address to listen at" in db.outbox("monitor", "--listen", listen, code=1), listen
    configure(db, "token: short")
    assert "fewer than 16 characters" in db.outbox("config", "check", code=1)
    configure(db, f"token: {OPERATOR}, tokens: {{ viewer: {OPERATOR} }}")
    assert "the same token" in db.outbox("config", "check", code=1)
    configure(db, "base_path: outbox/")
    assert "base_path" in db.outbox("config", "check", code=1)
    setup(db, f"token: {OPERATOR}")
    with Monitor(db, "monitor", "--listen", "0.0.0.0:0") as m:
        m.host = "127.0.0.1"
        m.get("/api/v1/state", 401)
        m.get("/api/v1/state", token=OPERATOR)


@case("sqlite")
def a_taken_port_is_no_end_of_the_relays(db):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        setup(db, f"listen: '127.0.0.1:{port}'")
        text = db.outbox("monitor", code=1)
        assert f"cannot listen at 127.0.0.1:{port}: Address already in use" in text, text
        log = open(db.path("work.log"), "w+", encoding="utf-8")
        work = subprocess.Popen([OUTBOX, "work"], cwd=db.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            push(db, ("Good", 1, {}))
            end = time.monotonic() + 30
            while "published" not in db.outbox("list", "all"):
                assert work.poll() is None and time.monotonic() < end
                time.sleep(0.05)
            log.seek(0)
            assert "no monitor, the relays go on" in log.read()
        finally:
            work.send_signal(signal.SIGTERM)
            assert work.wait(30) == 0
            log.close()


@case("sqlite")
def it_works_behind_a_proxy_and_at_a_unix_socket(db):
    setup(db, f"base_path: /ops/outbox, trusted_proxies: 127.0.0.1, token: {OPERATOR}, hosts: x.example")
    with Monitor(db) as m:
        assert m.base == "/ops/outbox"
        page = m.raw("GET", "/", headers={"Authorization": f"Bearer {OPERATOR}"}).text
        assert '<base href="/ops/outbox/">' in page
        m.get("/api/v1/state", token=OPERATOR)
        own = {"Content-Type": "application/json", "Host": "x.example", "Origin": "https://x.example",
               "X-Forwarded-Proto": "https", "X-Forwarded-For": "10.9.9.9, 10.1.2.3", "X-Forwarded-User": "anna"}
        answer = m.raw("POST", "/api/v1/login", json.dumps({"token": OPERATOR}), own)
        assert answer.status == 200 and "Secure" in answer.headers["set-cookie"] and "Path=/ops/outbox/" in answer.headers["set-cookie"]
        m.raw("POST", "/api/v1/login", json.dumps({"token": "x"}), own)
        assert "origin=10.1.2.3" in m.said()
        m.base = ""  # the proxy has removed it
        m.get("/api/v1/state", token=OPERATOR)
    configure(db)
    path = db.path("m.sock")
    process = subprocess.Popen([OUTBOX, "monitor", "--listen", f"unix:{path}"], cwd=db.dir, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == f"monitor at unix:{path}\n"
        assert oct(os.stat(path).st_mode & 0o777) == "0o600"
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: anything\r\nConnection: close\r\n\r\n")
        assert b"200 OK" in s.recv(1000)
        s.close()
        assert db.outbox("health", "--listen", f"unix:{path}").strip() == "ok"
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        process.stdout.close()
    assert not os.path.exists(path)


@case("sqlite")
def health_says_what_is_so(db):
    setup(db, "listen: 127.0.0.1:0", sink="type: http, url: 'http://127.0.0.1:9/x', allow_private: true")
    assert "no answer from 127.0.0.1:1" in db.outbox("health", "--listen", "127.0.0.1:1", code=1)
    with Monitor(db, work=True) as m:
        at = f"127.0.0.1:{m.port}"
        m.wait_for(lambda: m.raw("GET", "/readyz").status == 200)
        assert db.outbox("health", "--listen", at).strip() == "ok"
        assert db.outbox("health", "--ready", "--listen", at).strip() == "ok"
        push(db, ("Good", 1, {}))
        m.wait_for(lambda: "sink out of relay default is down" in m.raw("GET", "/readyz").text)
        # a destination that is away makes nobody restart us
        assert m.raw("GET", "/readyz").status == 200 and m.raw("GET", "/healthz").text == "ok\n"
        assert "degraded" in db.outbox("health", "--ready", "--listen", at)
        state = m.sampled(lambda s: s["readers"] and s["readers"][0]["sink_state"]["state"] == "open")
        assert any("the sink of relay default is down" in a["text"] for a in state["alerts"]), state["alerts"]
        assert state["readers"][0]["sink_state"]["why"]
        metrics = m.get("/metrics").text
        assert 'outbox_sink_up{store="main",relay="default",sink="out"} 0\n' in metrics
        assert 'outbox_breaker_state{store="main",relay="default",sink="out",state="open"} 1\n' in metrics
        assert m.raw("GET", "/livez").status == 404 and m.raw("POST", "/healthz").status == 405


@case("sqlite")
def a_store_that_is_away_is_shown(db):
    setup(db)
    with Monitor(db) as m:
        m.sampled()
        os.rename(db.file, db.file + ".away")
        state = m.sampled(lambda s: not s["stores"][0]["ok"])
        assert "does not answer" in state["alerts"][0]["text"], state["alerts"]
        m.get("/api/v1/messages", 503)
        assert m.raw("GET", "/readyz").text.startswith("degraded") and m.raw("GET", "/healthz").status == 200
        assert 'outbox_store_up{store="main"} 0\n' in m.get("/metrics").text
        os.rename(db.file + ".away", db.file)
        m.sampled(lambda s: s["stores"][0]["ok"])


def promtool(text):
    if not shutil.which("promtool"):
        raise Skip("promtool is not installed")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


@case("sqlite")
def metrics_are_valid_and_the_documented_ones(db):
    setup(db, "listen: 127.0.0.1:0")
    push(db, ("Good", 'a"\\\nb', {}))
    with Monitor(db, work=True) as m:
        m.sampled(lambda s: s["readers"])
        text = m.wait_for(lambda: m.get("/metrics").text if "outbox_messages_total{" in m.get("/metrics").text else None)
        promtool(text)
        names = set(re.findall(r"^# TYPE (\w+)", text, re.M))
        documented = (ROOT / "docs/operate.md").read_text(encoding="utf-8").split("## Metrics", 1)[1].split("\n## ", 1)[0]
        documented += (ROOT / "docs/consume.md").read_text(encoding="utf-8")
        told = {name for line in documented.splitlines() if line.startswith("| `") for name in re.findall(r"`((?:outbox|process)_\w+)", line.split("|")[1])}
        # the completeness check has no metric of its own yet
        assert told - names == {"outbox_unaccounted_messages"} and not names - told, (told - names, names - told)
        # every series of a relay is there from the start; those of consumers come with a consumer
        for name in (name for name in names if not name.startswith("outbox_consumer_")):
            assert re.search(rf"^{name}(_count)?[{{ ]", text, re.M), name
        for label in set(re.findall(r"(\w+)=\"", text)):
            assert label in {"store", "relay", "sink", "outcome", "kind", "state", "source", "reason", "verb", "le", "code", "version", "revision"}, label
    text = db.outbox("metrics")
    promtool(text)
    assert 'outbox_pending_messages{store="main",relay="default",state="due"} 0\n' in text


@case("sqlite")
def the_pages_are_small(db):
    setup(db)
    raw = packed = 0
    with Monitor(db) as m:
        for name in ("", "app.js", "style.css"):
            plain = m.raw("GET", f"/{name}")
            small = m.raw("GET", f"/{name}", headers={"Accept-Encoding": "gzip"})
            assert plain.status == small.status == 200
            if name:
                assert gzip.decompress(small.body) == plain.body
                again = m.raw("GET", f"/{name}", headers={"If-None-Match": plain.headers["etag"]})
                assert again.status == 304 and not again.body
            body = plain.body if name else (ROOT / "src/monitor/ui/index.html").read_bytes()
            raw += len(body)
            packed += len(small.body) if name else len(gzip.compress(body))
    assert raw <= 60 * 1024 and packed <= 20 * 1024, (raw, packed)


if __name__ == "__main__":
    sys.exit(main())
