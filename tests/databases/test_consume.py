# SPDX-License-Identifier: MIT
"""outbox consume on every database, with a Redis stream as its source."""
import json
import signal
import subprocess
import sys
import time

from consumers import POISON, Consumer, begin, by_key, configure, handled, parked, pending, poisoned, redis, stream, until
from harness import OUTBOX, case, main


@case()
def messages_are_handled_once_and_acknowledged(db):
    begin(db)
    ids = [redis.add(stream(db), n % 3, n) for n in range(20)]
    out = db.outbox("consume", "billing", "--once")
    assert out == "20 handled, 0 duplicates, 0 failed, 0 parked\n", out
    assert [n for n, _ in handled(db)] == list(range(20))
    assert sorted(id for (id,) in db.run("SELECT id FROM outbox_inbox WHERE consumer = 'billing'")) == sorted(ids)
    assert pending(db) == 0
    assert db.outbox("consume", "billing", "--once") == "0 handled, 0 duplicates, 0 failed, 0 parked\n"


@case()
def a_copy_of_a_message_is_a_duplicate(db):
    begin(db)
    id = redis.add(stream(db), 1, 1)
    redis.add(stream(db), 1, 1, id=id)
    redis.add(stream(db), 1, 2)
    assert db.outbox("consume", "--once") == "2 handled, 1 duplicates, 0 failed, 0 parked\n"
    redis.add(stream(db), 1, 1, id=id)
    assert db.outbox("consume", "--once") == "0 handled, 1 duplicates, 0 failed, 0 parked\n"
    assert handled(db) == [(1, "order:1"), (2, "order:1")]


@case()
def poison_on_one_key_of_a_hundred_holds_that_key_alone(db):
    poisoned(db)
    for n in range(300):
        redis.add(stream(db), n % 100, n, bad=int(n == 42))
    db.outbox("consume", "--once", code=1)
    keys = by_key(db)
    assert len(keys) == 99 and "order:42" not in keys
    assert all(values == sorted(values) and len(values) == 3 for values in keys.values()), keys
    assert pending(db) == 0, "what is parked is acknowledged"
    rows = parked(db)
    assert [row["state"] for row in rows] in (["failed", "waiting", "waiting"], ["dead", "waiting", "waiting"]), rows
    # Another message of the key comes behind them.
    redis.add(stream(db), 42, 1042)
    consumer = Consumer(db)
    until("dead", lambda: parked(db)[0]["state"] == "dead", consumer.process)
    until("parked", lambda: len(parked(db)) == 4, consumer.process)
    assert parked(db)[0]["attempts"] == 3 and "order:42" not in by_key(db)
    # Retried while it is still poison, it fails again; then in order, with all that waits.
    db.run("DELETE FROM poison")
    assert "retried 1 message" in db.outbox("dlq", "retry", "billing", rows[0]["id"])
    until("handled", lambda: not parked(db), consumer.process)
    assert by_key(db)["order:42"] == [42, 142, 242, 1042]
    redis.add(stream(db), 42, 2042)
    until("the key goes on", lambda: by_key(db)["order:42"][-1] == 2042, consumer.process)
    consumer.stop()


@case()
def a_failed_message_is_tried_again_and_then_its_key_goes_on(db):
    poisoned(db)
    redis.add(stream(db), 1, 1, bad=1)
    redis.add(stream(db), 1, 2)
    redis.add(stream(db), 2, 3)
    consumer = Consumer(db)
    until("parked", lambda: len(parked(db)) == 2, consumer.process)
    db.run("DELETE FROM poison")
    db.outbox("dlq", "retry", "billing", "--all", "--yes")
    until("all is handled", lambda: [n for n, _ in handled(db)] == [1, 2, 3], consumer.process)
    assert by_key(db)["order:1"] == [1, 2]
    consumer.stop()


@case()
def a_dead_message_that_is_released_lets_its_key_go_on(db):
    poisoned(db, options="on_dead: release")
    bad = redis.add(stream(db), 1, 1, bad=1)
    redis.add(stream(db), 1, 2)
    consumer = Consumer(db)
    until("the key goes on", lambda: [n for n, _ in handled(db)] == [2], consumer.process)
    until("a letter", lambda: [row["state"] for row in parked(db)] == ["letter"], consumer.process)
    db.run("DELETE FROM poison")
    assert "replayed 1 message" in db.outbox("dlq", "replay", "billing", bad)
    until("replayed", lambda: by_key(db)["order:1"] == [2, 1] and not parked(db), consumer.process)
    consumer.stop()


@case()
def skip_counts_as_handled_and_discard_does_not(db):
    poisoned(db)
    first, second = redis.add(stream(db), 1, 1, bad=1), redis.add(stream(db), 2, 2, bad=1)
    redis.add(stream(db), 1, 3)
    consumer = Consumer(db)
    until("dead", lambda: [row["state"] for row in parked(db)].count("dead") == 2, consumer.process)
    assert "it was given up after 3 attempts and holds its key" in db.outbox("dlq", "why", "billing", first)
    assert json.loads(db.outbox("dlq", "show", "billing", first))["message"]["payload"] == {"n": 1, "bad": 1}
    assert db.outbox("dlq", "skip", "billing", first) == "skipped 1 message\n"
    until("the key goes on", lambda: [n for n, _ in handled(db)] == [3], consumer.process)
    assert db.outbox("dlq", "discard", "billing", "--key", "order:2", "--yes") == "discarded 1 message\n"
    db.run("DELETE FROM poison")
    redis.add(stream(db), 1, 1, id=first)
    redis.add(stream(db), 2, 2, id=second)
    until("the discarded one is new", lambda: [n for n, _ in handled(db)] == [2, 3], consumer.process)
    until("acknowledged", lambda: pending(db) == 0, consumer.process)
    assert [n for n, _ in handled(db)] == [2, 3]
    consumer.stop()


@case()
def a_bulk_verb_is_shown_first_and_taken_down(db):
    poisoned(db)
    for n in range(3):
        redis.add(stream(db), n, n, bad=1)
    redis.add(stream(db), 0, 3)
    consumer = Consumer(db)
    until("dead", lambda: [row["state"] for row in parked(db)].count("dead") == 3, consumer.process)
    before = parked(db)
    plan = db.outbox("dlq", "skip", "billing", "--state", "dead", "--dry-run")
    assert plan.endswith("would skip 3 messages of consumer billing (state dead)\n") and before[0]["id"] in plan, plan
    assert [json.loads(line)["id"] for line in db.outbox("dlq", "skip", "billing", "--all", "--dry-run", "--json").splitlines()] == [
        row["id"] for row in before if row["state"] == "dead"]
    assert parked(db) == before, "nothing was changed"
    assert "no consumer 'biling' has run" in db.outbox("dlq", "retry", "biling", "--all", "--yes", code=1)
    assert "--yes" in db.outbox("dlq", "skip", "billing", "--all", code=2)
    assert db.outbox("dlq", "skip", "billing", "--key", "order:1", "--yes", "--reason", "known") == "skipped 1 message\n"
    entry = json.loads(db.outbox("audit", "--json").splitlines()[0])
    assert (entry["verb"], entry["reader"], entry["filter"], entry["count"], entry["reason"]) == (
        "dlq skip", "billing", "any state, key order:1", 1, "known"), entry
    db.outbox("dlq", "discard", "billing", "--all", "--yes")
    assert not parked(db)
    consumer.stop()


@case()
def an_entry_that_is_no_message_becomes_a_letter_once(db):
    begin(db)
    redis("XADD", stream(db), "*", "what", "ever")
    redis("XADD", stream(db), "*", "id", "17", "payload", "{}")
    redis.add(stream(db), 1, 1)
    assert db.outbox("consume", "--once") == "1 handled, 0 duplicates, 0 failed, 2 parked\n"
    rows = parked(db)
    assert [(row["state"], row["id"], row["reason"]) for row in rows] == [
        ("letter", None, "it has no id"), ("letter", None, "a field cannot be read: 'id'")], rows
    assert json.loads(db.outbox("dlq", "show", "billing", rows[0]["place"]))["entry"] == "what=ever"
    assert pending(db) == 0
    assert db.outbox("dlq", "purge", "billing", "--yes") == "removed 2 letters\n"
    assert db.outbox("dlq", "list", "billing") == "nothing is parked\n"


@case()
def a_standby_takes_over_when_the_owner_is_gone(db):
    begin(db, options="lease_ttl: 2s")
    redis.add(stream(db), 1, 1)
    first = Consumer(db)
    until("the first has it", lambda: len(handled(db)) == 1, first.process)
    second = Consumer(db)
    redis.add(stream(db), 1, 2)
    until("the first goes on", lambda: len(handled(db)) == 2, second.process)
    first.process.kill()
    first.process.wait()
    redis.add(stream(db), 1, 3)
    until("the second has taken over", lambda: len(handled(db)) == 3, second.process)
    assert db.run("SELECT epoch FROM outbox_consumers") == [(2,)]
    second.stop()
    assert db.run("SELECT owner FROM outbox_consumers") == [(None,)]


@case()
def a_paused_owner_changes_nothing_after_it_was_replaced(db):
    begin(db, options="lease_ttl: 1s")
    first = Consumer(db)
    redis.add(stream(db), 1, 0)
    until("the first has it", lambda: len(handled(db)) == 1, first.process)
    first.process.send_signal(signal.SIGSTOP)
    for n in range(1, 200):
        redis.add(stream(db), n % 7, n)
    second = Consumer(db)
    until("the second handles", lambda: len(handled(db)) == 200, second.process)
    first.process.send_signal(signal.SIGCONT)
    redis.add(stream(db), 3, 200)
    until("one more", lambda: len(handled(db)) == 201, second.process)
    assert [n for n, _ in handled(db)] == list(range(201))
    second.stop()
    first.stop()


@case()
def parked_messages_are_bounded_and_the_source_pauses(db):
    poisoned(db, options="park: { max_per_key: 3 }")
    redis.add(stream(db), 1, 0, bad=1)
    for n in range(1, 10):
        redis.add(stream(db), 1, n)
    consumer = Consumer(db)
    until("it is full", lambda: "too many messages of one key are parked" in consumer.text(), consumer.process)
    assert len(parked(db)) <= 4 and pending(db) > 0
    db.run("DELETE FROM poison")
    db.outbox("dlq", "retry", "billing", "--all", "--yes")
    until("all is handled", lambda: len(handled(db)) == 10, consumer.process)
    until("acknowledged", lambda: pending(db) == 0, consumer.process)
    assert by_key(db) == {"order:1": list(range(10))}
    consumer.stop()


@case()
def positions_replace_ids_and_win_over_the_source(db):
    begin(db, options="dedup: position")
    for n in range(50):
        redis.add(stream(db), n % 5, n)
    assert db.outbox("consume", "--once").startswith("50 handled")
    assert db.run("SELECT count(*) FROM outbox_inbox") == [(0,)]
    assert db.run("SELECT count(*) FROM outbox_positions") == [(1,)]
    last = redis("XREVRANGE", stream(db), "+", "-", "COUNT", "1")[0][0]
    assert db.run("SELECT position FROM outbox_positions") == [(last,)]
    assert db.outbox("consume", "--once").startswith("0 handled")
    # The database was restored from a backup: what it does not have comes again.
    first = redis("XRANGE", stream(db), "-", "+", "COUNT", "40")[-1][0]
    db.run(f"UPDATE outbox_positions SET position = '{first}'")
    db.run("DELETE FROM handled WHERE n >= 40")
    assert db.outbox("consume", "--once").startswith("10 handled")
    assert [n for n, _ in handled(db)] == list(range(50))


@case()
def with_positions_a_failing_key_is_parked_too(db):
    poisoned(db, options="dedup: position")
    for n in range(30):
        redis.add(stream(db), n % 3, n, bad=int(n == 4))
    consumer = Consumer(db)
    until("the others are handled", lambda: len(handled(db)) == 21, consumer.process)
    db.run("DELETE FROM poison")
    db.outbox("dlq", "retry", "billing", "--all", "--yes")
    until("all is handled", lambda: len(handled(db)) == 30 and not parked(db), consumer.process)
    assert all(values == sorted(values) for values in by_key(db).values())
    consumer.stop()


@case()
def what_consumers_know_is_shown_from_any_machine(db):
    begin(db, options="lease_ttl: 1s")
    assert db.outbox("consumers") == "no consumer has run yet\n"
    assert "no consumer 'billing' has run yet" in db.outbox("consumers", "billing", code=1)
    first = Consumer(db)
    for n in range(10):
        redis.add(stream(db), n % 3, n)
    until("handled", lambda: len(handled(db)) == 10, first.process)
    second = Consumer(db)

    def told():
        return json.loads(db.outbox("consumers", "--json") or "{}")

    until("both tell", lambda: len(told()["processes"]) == 2 and told()["handled"] == 10, second.process)
    seen = told()
    works, waits = seen["processes"]
    assert (works["pid"], works["has_lease"], works["alive"]) == (first.process.pid, True, True), seen
    assert (waits["pid"], waits["has_lease"], waits["alive"]) == (second.process.pid, False, True), seen
    assert (seen["status"], seen["trouble"], seen["failed"], seen["dead"]) == ("ok", None, 0, 0), seen
    state = works["state"]
    assert (state["handled"], state["source_state"], state["handler_state"], state["breaker"]) == (10, "up", "up", "closed"), state
    assert stream(db) in state["source"] and state["handler"].startswith("sql") and state["dedup"] == "ids"
    assert state["version"] in db.outbox("--version")
    until("the lag is known", lambda: told()["lag"] is not None, first.process)
    table = db.outbox("consumers", "billing")
    assert "has the lease" in table and "stands by" in table, table
    assert db.outbox("consumers", "--fail-if-down") == ""
    first.process.kill()
    first.process.wait()
    second.stop()
    until("it falls silent", lambda: told()["status"] == "stopped")
    assert told()["handled"] == 10, "what the second counted is not lost, and not counted twice"
    check = db.start("consumers", "--fail-if-down")
    assert check.communicate(timeout=60)[0].startswith("consumer billing: no process runs it since ") and check.returncode == 1


@case("sqlite")
def the_stream_that_is_not_there_is_waited_for(db):
    begin(db)
    consumer = Consumer(db)
    until("it says so", lambda: f"stream '{stream(db)}' does not exist" in consumer.text(), consumer.process)
    redis.add(stream(db), 1, 1)
    until("handled", lambda: len(handled(db)) == 1, consumer.process)
    # Deleted meanwhile, and made again.
    redis("DEL", stream(db))
    redis.add(stream(db), 1, 2)
    until("handled again", lambda: len(handled(db)) == 2, consumer.process)
    # The group is removed: it is made again from the beginning, and copies are told.
    redis("XGROUP", "DESTROY", stream(db), "billing")
    redis.add(stream(db), 1, 3)
    until("handled again", lambda: len(handled(db)) == 3, consumer.process)
    assert "was gone: made again, from the beginning" in consumer.text()
    consumer.stop()


@case("sqlite")
def pending_entries_that_were_trimmed_are_reported_as_lost(db):
    begin(db)
    redis.add(stream(db), 1, 1)
    redis("XGROUP", "CREATE", stream(db), "billing", "0")
    redis("XREADGROUP", "GROUP", "billing", "outbox", "STREAMS", stream(db), ">")
    redis("XTRIM", stream(db), "MAXLEN", "0")
    redis.add(stream(db), 1, 2)
    out = json.loads(db.outbox("consume", "--once", "--json").splitlines()[-1])
    assert out["lost"] == 1 and out["handled"] == 1 and "was trimmed" in out["last_error"], out
    assert pending(db) == 0


@case("sqlite")
def entries_trimmed_before_they_were_read_are_reported_as_lost(db):
    begin(db)
    redis.add(stream(db), 1, 1)
    db.outbox("consume", "--once")
    for n in range(2, 7):
        redis.add(stream(db), 1, n)
    redis("XTRIM", stream(db), "MAXLEN", "2")
    out = json.loads(db.outbox("consume", "--once", "--json").splitlines()[-1])
    assert out["lost"] == 3 and out["handled"] == 2, out


@case("sqlite")
def pending_entries_of_other_members_are_claimed_to_the_end(db):
    begin(db, source="claim_idle: 1ms")
    redis.add(stream(db), 0, 0)
    redis("XGROUP", "CREATE", stream(db), "billing", "0")
    for n in range(1, 250):
        redis.add(stream(db), n % 9, n)
    redis("XREADGROUP", "GROUP", "billing", "someone", "COUNT", "250", "STREAMS", stream(db), ">")
    assert pending(db) == 250
    time.sleep(0.01)  # they are to be idle for a millisecond
    assert db.outbox("consume", "--once").startswith("250 handled")
    assert pending(db) == 0 and len(handled(db)) == 250


@case("sqlite")
def members_that_share_a_source_are_reaped_only_without_pending_entries(db):
    begin(db, options="ordering: none", source="reap_idle: 1ms, claim_idle: 1h")
    redis.add(stream(db), 0, 0)
    redis("XGROUP", "CREATE", stream(db), "billing", "0")
    redis("XGROUP", "CREATECONSUMER", stream(db), "billing", "idle")
    redis("XREADGROUP", "GROUP", "billing", "busy", "COUNT", "1", "STREAMS", stream(db), ">")
    redis.add(stream(db), 1, 1)
    time.sleep(0.01)  # they are to be idle for a millisecond
    assert db.outbox("consume", "--once").startswith("1 handled")
    names = [dict(zip(row[::2], row[1::2]))["name"] for row in redis("XINFO", "CONSUMERS", stream(db), "billing")]
    assert "busy" in names and "idle" not in names and pending(db) == 1


@case("sqlite")
def dead_letters_go_to_a_stream_with_time_reason_and_group(db):
    dead = stream(db) + "-dead"
    begin(db, handler="sql: " + json.dumps(POISON["sqlite"]),
          options=f"on_dead: release\n    dead_letters: {{ sink: letters, destination: {dead} }}",
          sinks=f'letters: {{ type: redis, url: "{redis.url()}" }}')
    redis("DEL", dead)
    db.run("CREATE TABLE poison (n INTEGER)")
    db.run("INSERT INTO poison VALUES (1)")
    id = redis.add(stream(db), 1, 1, bad=1)
    redis.add(stream(db), 1, 2)
    redis("XADD", stream(db), "*", "what", "ever")
    consumer = Consumer(db)
    until("both are there", lambda: redis("XLEN", dead) == 2, consumer.process)
    until("and here no more", lambda: not parked(db), consumer.process)
    letters = [dict(zip(fields[::2], fields[1::2])) for _, fields in redis("XRANGE", dead, "-", "+")]
    letter = next(row for row in letters if row["id"] == id)
    headers = json.loads(letter["headers"])
    assert letter["payload"] == '{"n": 1, "bad": 1}' and headers["outbox-dead-group"] == "billing", letter
    assert "NOT NULL" in headers["outbox-dead-reason"] and headers["outbox-dead-at"].startswith("20"), headers
    assert headers["outbox-dead-source"].startswith(stream(db)) and headers["outbox-dead-attempts"] == "3", headers
    consumer.stop()


@case("sqlite")
def what_cannot_work_stops_with_a_clear_error_and_acknowledges_nothing(db):
    begin(db, handler='sql: "INSERT INTO nowhere VALUES (:id)"')
    redis.add(stream(db), 1, 1)
    error = db.outbox("consume", "--once", code=1)
    assert "nowhere" in error, error
    assert pending(db) == 1
    configure(db, handler='exec: { command: "/nowhere/handler" }')
    error = db.outbox("consume", "--once", code=1)
    assert "/nowhere/handler" in error, error
    assert pending(db) == 1


@case()
def without_the_tables_it_says_which_command_makes_them(db):
    configure(db)
    db.outbox("setup")
    error = db.outbox("consume", "--once", code=1)
    assert "outbox setup --inbox" in error, error


@case("sqlite")
def the_inbox_forgets_what_is_old_and_warns_when_it_forgets_too_soon(db):
    begin(db, retention="inbox: 1s")
    redis.add(stream(db), 1, 1)
    db.outbox("consume", "--once")
    db.run("UPDATE outbox_inbox SET handled_at = handled_at - 5000000")
    redis("XADD", stream(db), "9999999999999-0", "id", "0195a1b2-0000-7000-8000-00000000000a", "payload", "{\"n\": 2}", "key", "k")
    consumer = Consumer(db)
    until("purged", lambda: db.run("SELECT id FROM outbox_inbox") == [("0195a1b2-0000-7000-8000-00000000000a",)], consumer.process)
    until("warned", lambda: "the source keeps messages longer than the inbox remembers them" in consumer.text(), consumer.process)
    consumer.stop()


def findings(db, code=0):
    """What doctor says of the consumer: its level and text, by code."""
    done = subprocess.run([OUTBOX, "doctor", "--json"], cwd=db.dir, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    found = json.loads(done.stdout)["findings"]
    return {one["code"]: (one["level"], one["text"]) for one in found if one["subject"] == "billing"}


@case("sqlite")
def doctor_compares_the_limits_of_the_source_with_the_handler(db):
    begin(db, handler='exec: { command: "cat", timeout: 90s }', options="ordering: none")
    found = findings(db)
    assert found["redis_stream"] == ("warning", f"stream {stream(db)} is not there"), found
    level, text = found["redis_claim_idle"]
    assert level == "warning" and "a handler may take 90000 ms, and entries are taken over after 60000 ms" in text, found
    redis.add(stream(db), 1, 1)
    configure(db, handler='exec: { command: "cat", timeout: 10s }', options="ordering: none")
    found = findings(db)
    assert found["redis_stream"][0] == found["redis_claim_idle"][0] == found["source_connect"][0] == "ok", found
    assert redis("XINFO", "GROUPS", stream(db)) == [], "doctor makes no group"
    configure(db, handler='exec: { command: "cat", timeout: 90s }')
    assert findings(db)["redis_claim_idle"][0] == "ok", "with one process nothing is taken over"
    redis("DEL", stream(db))
    redis("SET", stream(db), "x")
    assert findings(db, code=1)["redis_stream"] == ("error", f"key {stream(db)} is a string, no stream")
    redis("DEL", stream(db))


@case("sqlite")
def doctor_says_when_a_source_cannot_be_reached(db):
    begin(db)
    db.write("outbox.yaml", f"""
stores: {{ main: {{ url: "{db.url()}" }} }}
consumers: [ {{ name: billing, source: {{ type: redis, url: "unix:///nowhere/redis.sock", stream: s }}, sql: "SELECT :id" }} ]
""")
    level, text = findings(db, code=1)["source_connect"]
    assert level == "error" and "/nowhere/redis.sock" in text, text


sys.exit(main())
