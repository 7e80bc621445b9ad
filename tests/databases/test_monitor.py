# SPDX-License-Identifier: MIT
"""The API of the monitor on every database: each answer is as openapi.json says."""
import json
import re
import sys

from harness import case, main
from monitor import Monitor, configure, push, push_json, with_failures

LARGE = '{"n": 9007199254740993, "big": 1e400, "n": 2, "password": "x", "in": {"TOKEN": [1, {"a": "}"}], "ok": "\\u0041"}}'


@case()
def an_empty_outbox_has_an_answer_everywhere(db):
    configure(db)
    db.outbox("setup")
    with Monitor(db) as m:
        state = m.sampled()
        assert state["role"] == "operator" and state["readers"] == [] and state["alerts"] == [], state
        assert state["stores"][0]["ok"] and db.kind[:5] in state["stores"][0]["describe"].lower().replace("maria", "mysql")
        for path in ("throughput", "failures", "messages", "keys", "partitions", "doctor", "audit", "streams", "openapi.json"):
            m.get(f"/api/v1/{path}")
        m.get("/api/v1/messages/01a1ee3b-9ada-7065-81a5-97cd2b538b57", 404)
        m.get("/api/v1/messages/nonsense", 400)
        m.get("/api/v1/messages?id=01a1", 404)
        m.get("/api/v1/keys?reader=nobody", 404)
        m.get("/api/v1/failures?by=color", 400)
        m.get("/api/v1/messages?state=lost", 400)
        m.get("/api/v1/messages?limit=0", 400)
        m.get("/api/v1/state?store=x")
        m.get("/api/v1/messages?store=x", 404)


@case()
def what_waits_fails_and_is_dead_is_told(db):
    with_failures(db)
    with Monitor(db) as m:
        state = m.sampled()
        reader, = state["readers"]
        counts = {name: count["n"] for name, count in reader["counts"].items()}
        assert counts == {"pending": 0, "delayed": 0, "failed": 1, "parked": 1, "dead": 2}, counts
        assert reader["held_keys"]["n"] == 1 and reader["oldest_dead_us"] and reader["sink_type"] == "exec"
        # nobody runs it: that is said
        assert [a["text"] for a in state["alerts"]] == ["nobody runs relay default"], state["alerts"]
        groups = m.get("/api/v1/failures")["groups"]
        assert sorted(g["count"] for g in groups) == [1, 2] and all("#" in g["cause"] for g in groups), groups
        assert m.get("/api/v1/failures?by=key&state=dead")["groups"][0]["states"] == {"failed": 0, "dead": 1}
        keys = m.get("/api/v1/keys")["keys"]
        assert len(keys) == 1 and keys[0]["key"] == "order:300" and keys[0]["parked"] == 1, keys
        assert keys[0]["head"]["state"] == "failed" and keys[0]["head"]["attempts"] == 1
        parts = m.get("/api/v1/partitions")
        assert len(parts["partitions"]) == 4 and parts["readers"][0]["reader"] == "default"


@case()
def a_relay_that_runs_is_told(db):
    configure(db, "listen: 127.0.0.1:0", relay="leasing: { heartbeat_ttl: 3s, lease_renew: 500ms, lease_ttl: 3s }")
    db.outbox("setup", "--partitions", "4")
    with Monitor(db, work=True) as m:
        push(db, *[("Good", i, {"n": i}) for i in range(50)])
        state = m.sampled(lambda s: s["readers"] and s["readers"][0]["published_hour"] == 50)
        reader, = state["readers"]
        assert reader["workers"] == 1 and reader["leased"] == reader["partitions"] == 4, reader
        assert reader["sink_state"]["state"] == "ok" and not state["alerts"], state
        worker, = state["workers"]
        assert worker["pid"] == m.process.pid and worker["alive"] and worker["partitions"] == 4, worker
        points = m.get("/api/v1/throughput?minutes=60")["points"]
        assert sum(p["published"] for p in points) == 50, points
        metrics = m.get("/metrics").text
        assert 'outbox_messages_total{store="main",relay="default",sink="out",outcome="published"} 50\n' in metrics
        assert 'outbox_delivery_seconds_count{store="main",relay="default",sink="out"} 50\n' in metrics
        assert 'outbox_leases{store="main",relay="default"} 4\n' in metrics
        for path in ("/healthz", "/readyz", "/startupz"):
            assert m.get(path).text == "ok\n"


@case()
def messages_are_listed_by_page_and_filter(db):
    configure(db)
    db.outbox("setup", "--partitions", "4")
    push(db, *[("Even" if i % 2 == 0 else "Odd", i % 5, {"i": i}) for i in range(25)])
    with Monitor(db) as m:
        seen, before = [], ""
        while True:
            page = m.get(f"/api/v1/messages?limit=10{before}")
            seen += [x["seq"] for x in page["messages"]]
            if not page["next"]:
                break
            before = f"&before={page['next']}"
        assert len(seen) == 25 and seen == sorted(seen, reverse=True), seen
        assert page["searched"]["complete"]
        assert len(m.get("/api/v1/messages?type=Odd")["messages"]) == 12
        assert len(m.get("/api/v1/messages?key=order:3")["messages"]) == 5
        assert len(m.get("/api/v1/messages?aggregate_id=3&type=Odd")["messages"]) == 3
        assert m.get("/api/v1/messages?state=published")["messages"] == []
        assert m.get("/api/v1/messages?correlation=x")["messages"] == []
        one = m.get("/api/v1/messages?limit=1")["messages"][0]
        for text in (one["id"], one["id"][:30], str(one["seq"])):
            assert [x["id"] for x in m.get(f"/api/v1/messages?id={text}")["messages"]] == [one["id"]], text
        # what stands in a filter is a value, whatever it looks like
        m.get("/api/v1/messages?key=%00", 400)
        m.get("/api/v1/messages?key=order:3%00x", 400)
        for text in ("'", "%27%20OR%201=1--", "%25", "\\"):
            assert m.get(f"/api/v1/messages?key={text}")["messages"] == [], text


@case()
def streams_are_listed_with_who_has_read_them(db):
    configure(db)
    db.outbox("setup", "--partitions", "4")
    events = [{"aggregate_type": kind, "aggregate_id": id, "event_type": f"E{version}", "sequence_number": version,
               "revision": 2 if version == 3 else 1, "payload": {"password": "hunter2"}}
              for version in range(1, 4) for kind, id in (("account", "7"), ("account", "8/9"), ("order", "1"))]
    push_json(db, *events)
    push(db, ("Plain", 5, {}))  # no event of a stream
    with Monitor(db) as m:
        found = m.get("/api/v1/streams")
        assert [(c["type"], c["streams"], c["events"]) for c in found["categories"]] == [("account", 2, 6), ("order", 1, 3)]
        assert [(s["type"], s["id"], s["version"]) for s in found["streams"]] == [
            ("order", "1", 3), ("account", "8/9", 3), ("account", "7", 3)], found
        assert found["complete"] and found["searched"] == 10
        assert len(m.get("/api/v1/streams?type=order")["streams"]) == 1
        stream = m.get("/api/v1/stream?type=account&id=8%2F9")
        assert [(e["version"], e["event_type"], e["revision"]) for e in stream["events"]] == [(3, "E3", 2), (2, "E2", 1), (1, "E1", 1)]
        assert stream["readers"] == [] and stream["next"] is None and "hunter2" not in json.dumps(stream)
        db.outbox("work", "--once")
        push_json(db, {**events[0], "sequence_number": 4, "event_type": "E4"})
        stream = m.get("/api/v1/stream?type=account&id=7&limit=2")
        assert stream["readers"] == ["default"] and stream["next"] == "3", stream
        assert [(e["version"], e["states"]) for e in stream["events"]] == [(4, ["pending"]), (3, ["published"])], stream
        older = m.get("/api/v1/stream?type=account&id=7&limit=2&before=3")
        assert [e["version"] for e in older["events"]] == [2, 1], older
        m.get("/api/v1/stream?type=account&id=none", 404)
        m.get("/api/v1/stream?type=account&id=7&target=other", 404)
        m.get("/api/v1/stream?type=account", 400)


@case()
def one_message_tells_why_it_waits(db):
    with_failures(db)
    with Monitor(db) as m:
        parked = m.get("/api/v1/messages?state=parked")["messages"][0]
        answer = m.get(f"/api/v1/messages/{parked['id']}")
        reader, = answer["readers"]
        assert reader["why"]["code"] == "held" and reader["state"] == "parked", reader
        head = m.get(f"/api/v1/messages/{reader['why']['link_id']}")
        assert head["readers"][0]["why"]["code"] == "retry_waits"
        assert head["readers"][0]["verbs"] == ["retry", "skip", "discard"]
        assert answer["key"] == {"before": 1, "behind": 0, "capped": False}, answer["key"]
        assert json.loads(answer["message"]["payload"]) == {"behind": True}
        done = m.get("/api/v1/messages?state=published")["messages"][0]
        assert m.get(f"/api/v1/messages/{done['id']}")["readers"][0]["verbs"] == []


@case()
def a_payload_appears_as_it_is_stored(db):
    configure(db)
    db.outbox("setup")
    db.outbox("push", "--type", "order", "--aggregate", "1", "--event", "E", "--payload", LARGE)
    with Monitor(db) as m:
        id = m.get("/api/v1/messages")["messages"][0]["id"]
        shown = m.get(f"/api/v1/messages/{id}")["message"]
        stored = m.get(f"/api/v1/messages/{id}/payload")
        assert shown["payload"] == stored.text and shown["payload_json"], shown
        assert "9007199254740993" in stored.text
        assert stored.headers["content-type"] == "application/octet-stream"
        assert stored.headers["content-disposition"].startswith("attachment")
        if db.kind != "mysql":
            assert "1e400" in stored.text or "1E+400" in stored.text or "1" + "0" * 400 in stored.text


@case()
def a_verb_is_planned_then_run(db):
    with_failures(db, bad=3)
    with Monitor(db) as m:
        plan = m.post("/api/v1/plans", {"verb": "retry", "filter": {"state": ["dead"]}, "reason": "mended"})
        assert plan["count"] == 3 and len(plan["sample"]) == 3 and not plan["type_number"], plan
        assert plan["command"] == "outbox retry --reader default --state dead", plan["command"]
        # nothing happened yet
        assert m.get("/api/v1/failures?state=dead")["groups"][0]["count"] == 3
        job = m.post(f"/api/v1/plans/{plan['plan']}/run", {"count": 3}, 202)
        done = m.job(job["job"])
        assert done["state"] == "done" and done["done"] == 3 and done["failed"] == 0, done
        assert m.get("/api/v1/failures?state=dead")["groups"] == []
        # a plan runs once
        m.post(f"/api/v1/plans/{plan['plan']}/run", {"count": 3}, 404)
        entry, = m.get("/api/v1/audit")["entries"]
        assert (entry["verb"], entry["count"], entry["plan"], entry["reason"]) == ("retry", 3, plan["plan"], "mended")
        assert entry["who"].startswith("operator@") and entry["origin"] == "monitor" and entry["reader"] == "default"
        assert 'msg="verb"' in m.said() and "reason=mended" in m.said(), m.said()
    # and it is what the relay sees
    db.outbox("work", "--once", code=1)
    with Monitor(db) as m:
        assert m.get("/api/v1/failures?state=dead")["groups"][0]["count"] == 3


@case()
def a_plan_of_another_set_is_refused(db):
    with_failures(db, bad=2)
    with Monitor(db) as m:
        plan = m.post("/api/v1/plans", {"verb": "discard", "filter": {"state": ["dead"]}})
        m.post(f"/api/v1/plans/{plan['plan']}/run", {"count": 7}, 409)
        plan = m.post("/api/v1/plans", {"verb": "discard", "filter": {"state": ["dead"]}})
        dead = m.get("/api/v1/messages?state=dead")["messages"]
        db.outbox("discard", dead[0]["id"], "--reader", "default")
        answer = m.post(f"/api/v1/plans/{plan['plan']}/run", {"count": 2}, 409)
        assert answer["count"] == 1 and answer["error"]["code"] == "changed", answer
        assert len(m.get("/api/v1/messages?state=dead")["messages"]) == 1


@case()
def a_group_and_a_selection_can_be_acted_on(db):
    with_failures(db, bad=3, late=1)
    with Monitor(db) as m:
        groups = m.get("/api/v1/failures")["groups"]
        dead = next(g for g in groups if g["states"]["dead"])
        plan = m.post("/api/v1/plans", {"verb": "discard", "group": dead["group"]})
        assert plan["count"] == 3
        m.job(m.post(f"/api/v1/plans/{plan['plan']}/run", {"count": 3}, 202)["job"])
        assert len(m.get("/api/v1/messages?state=discarded")["messages"]) == 3
        failed = m.get("/api/v1/messages?state=failed")["messages"]
        plan = m.post("/api/v1/plans", {"verb": "skip", "ids": [x["id"] for x in failed]})
        assert plan["count"] == 1 and failed[0]["id"] in plan["command"]
        m.job(m.post(f"/api/v1/plans/{plan['plan']}/run", {"count": 1}, 202)["job"])
        assert m.get("/api/v1/keys")["keys"] == []
        # what cannot be done is said before
        published = m.get("/api/v1/messages?state=published")["messages"]
        plan = m.post("/api/v1/plans", {"verb": "retry", "ids": [published[0]["id"]]})
        assert plan["count"] == 0 and plan["refused"] == 1
        m.post("/api/v1/plans", {"verb": "retry", "ids": ["01a1ee3b-9ada-7065-81a5-97cd2b538b57"]}, 404)
        for wrong in ({}, {"verb": "retry"}, {"verb": "burn", "ids": []}, {"verb": "retry", "ids": ["x"]},
                      {"verb": "retry", "ids": [failed[0]["id"]], "group": "x"}, {"verb": "retry", "filter": 3},
                      {"verb": "retry", "filter": {"state": ["published"]}}, {"verb": "retry", "filter": {"key": 7}}):
            m.post("/api/v1/plans", wrong, 400)


@case()
def a_job_can_be_stopped(db):
    configure(db)
    db.outbox("setup", "--partitions", "4")
    db.outbox("work", "--once")
    push(db, *[("Good", i, {}) for i in range(600)])
    with Monitor(db) as m:
        plan = m.post("/api/v1/plans", {"verb": "discard", "filter": {"state": ["pending"]}})
        assert plan["count"] == 600 and plan["type_number"]
        job = m.post(f"/api/v1/plans/{plan['plan']}/run", {"count": 600}, 202)["job"]
        m.wait_for(lambda: m.get(f"/api/v1/jobs/{job}")["done"] >= 1)
        m.post(f"/api/v1/jobs/{job}/stop")
        ended = m.job(job)
        left = len(db.outbox("list", "pending", "--json").splitlines())
        assert ended["state"] == "stopped" and left == 600 - ended["done"] > 0, (ended, left)
        entry, = m.get("/api/v1/audit")["entries"]
        assert entry["count"] == ended["done"]


@case("postgres", "mysql")
def an_open_transaction_is_told(db):
    configure(db)
    db.outbox("setup")
    held = db.connect()
    held.cursor().execute("INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('t', '1', 'e', '{}')")
    with Monitor(db) as m:
        m.sampled(lambda s: (s["stores"][0]["oldest_transaction_us"] or 0) >= 1000000)
        text = m.get("/metrics").text
        assert not re.search(r'outbox_store_oldest_transaction_seconds\{store="main"\} 0\n', text), text
        held.rollback()
        held.close()
        m.sampled(lambda s: s["stores"][0]["oldest_transaction_us"] == 0)


@case()
def the_doctor_can_be_asked(db):
    configure(db)
    db.outbox("setup")
    with Monitor(db) as m:
        assert m.get("/api/v1/doctor") is None
        found = m.post("/api/v1/doctor")
        assert {f["code"] for f in found["findings"]} >= {"store_connect", "store_schema", "sink_connect"}, found
        assert m.get("/api/v1/doctor") == found


@case()
def a_reading_connection_cannot_write(db):
    """The pool of the monitor reads only, so a bug in a route cannot change anything."""
    configure(db)
    db.outbox("setup")
    push(db, ("Good", 1, {}))
    with Monitor(db) as m:
        m.sampled()
        assert len(m.get("/api/v1/messages")["messages"]) == 1
        if db.kind == "postgres":
            rows = db.run("SELECT query FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()", db.name)
            assert not any("READ WRITE" in query for query, in rows), rows


if __name__ == "__main__":
    sys.exit(main())
