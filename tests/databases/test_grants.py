# SPDX-License-Identifier: MIT
"""`outbox setup --grants`: what a producer and a relay may do, and what they may not."""
import json
import os
import sys

from harness import case, main

# Rejects what is called Bad, and fails what is called Later.
HANDLER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    word = {"Bad": "reject", "Later": "retry"}.get(message["event_type"], "ok")
    print(word, message["id"], *([] if word == "ok" else ["because"]), flush=True)
"""


def set_default_role(db, role, user):
    db.run(f"SET DEFAULT ROLE {role} {'FOR' if db.version()[1] else 'TO'} {user}@localhost")


def add_user(db, role):
    """A user with nothing but the role."""
    user = f"{role}_{db.name}"
    if db.kind == "postgres":
        db.run(f"CREATE ROLE {user} LOGIN IN ROLE outbox_{role}")
    else:
        db.run(f"CREATE USER {user}@localhost")
        db.run(f"GRANT outbox_{role} TO {user}@localhost")
        set_default_role(db, f"outbox_{role}", user)
    return user


def begin(db, role):
    db.configure()
    db.outbox("setup")
    db.shell(db.outbox("setup", "--grants"))
    db.shell(db.outbox("setup", "--grants"))  # again changes nothing
    return add_user(db, role)


def push(db, event, key="7", user=None):
    call = {"postgres": "SELECT outbox_push('order', %s, %s, '{}')",
            "mysql": "CALL outbox_push('order', %s, %s, '{}', NULL, NULL)"}[db.kind]
    return db.run(call, key, event, user=user)


def states(db):
    return dict(db.run("SELECT event_type, state FROM outbox_messages"))


def whole_log(db):
    """Every message, as somebody who may read it sees it."""
    db.configure()
    return [json.loads(line) for line in db.outbox("list", "all", "--json").splitlines()]


@case("postgres", "mysql")
def a_producer_pushes_by_function_insert_and_library(db):
    user = begin(db, "producer")
    given = push(db, "A", user=user)
    db.run("INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, headers, partition_key) "
           "VALUES ('order', '7', 'B', '{}', '{}', 'order:7')", user=user)
    db.configure(user=user)
    library = db.outbox("push", "--type", "order", "--aggregate", "7", "--event", "C", "--payload", "{}",
                        "--priority", "0", "--delay", "1ms", "--headers", '{"a": 1}').strip()
    db.configure()
    got = db.deliver()
    assert [m["event_type"] for m in got] == ["A", "B", "C"], got
    assert got[2]["id"] == library
    if db.kind == "postgres":
        assert got[0]["id"] == given[0][0]


@case("postgres", "mysql")
def a_producer_reads_and_changes_nothing(db):
    user = begin(db, "producer")
    push(db, "Secret")
    number = "txid" if db.kind == "postgres" else "seq"
    for sql in ("SELECT * FROM outbox", "SELECT id FROM outbox", "SELECT * FROM outbox_messages",
                "UPDATE outbox SET priority = 1", "UPDATE outbox SET event_type = 'x' WHERE seq = 1", "DELETE FROM outbox",
                "INSERT INTO outbox (seq, aggregate_type, event_type, payload) VALUES (99, 'a', 'b', '{}')",
                f"INSERT INTO outbox ({number}, aggregate_type, event_type, payload) VALUES ('99', 'a', 'b', '{{}}')",
                "INSERT INTO outbox (created_at, aggregate_type, event_type, payload) "
                "VALUES ('2020-01-01', 'a', 'b', '{}')",
                "SELECT * FROM outbox_readers", "DELETE FROM outbox_readers", "DELETE FROM outbox_batches",
                "DELETE FROM outbox_exceptions", "SELECT * FROM outbox_leases",
                "UPDATE outbox_leases SET lease_owner = NULL",
                "DELETE FROM outbox_workers", "UPDATE outbox_meta SET value = 2",
                "ALTER TABLE outbox ADD COLUMN x INT", "DROP TABLE outbox_meta", "TRUNCATE TABLE outbox"):
        text = db.refused(sql, user=user)
        assert "denied" in text or "must be owner" in text or "GENERATED ALWAYS" in text, (sql, text)
    db.configure(user=user)
    for words in (("list",), ("status",), ("work", "--once"), ("retry", "--state", "dead", "--yes")):
        text = db.outbox(*words, code=1)
        assert "denied" in text or "may not" in text or "grant" in text.lower(), (words, text)
    assert [m["event_type"] for m in whole_log(db)] == ["Secret"]


@case("postgres", "mysql")
def a_relay_works_fully(db):
    user = begin(db, "relay")
    db.write("handler.py", HANDLER)
    sink = 'type: exec, command: "/usr/bin/python3 handler.py"'
    retry = "retry: { base_delay: 1h, max_backoff: 1h }"
    for event, key in (("Good", "1"), ("Bad", "2"), ("Later", "3"), ("Behind", "3"), ("Fine", "4")):
        push(db, event, key)
    db.configure(user=user, sink=sink, relay=retry)
    assert "2 messages failed" in db.outbox("work", "--once", code=1)
    assert states(db) == {"Good": "published", "Bad": "dead", "Later": "failed", "Behind": "parked",
                          "Fine": "published"}, states(db)
    assert "1" in db.outbox("status") and "Later" in db.outbox("list", "failed")
    db.outbox("partitions")
    db.run("UPDATE outbox SET event_type = concat(event_type, ' cured') WHERE event_type IN ('Bad', 'Later')")
    db.outbox("retry", "--state", "dead,failed", "--yes")
    db.outbox("work", "--once")
    assert set(states(db).values()) == {"published"} and "Later cured" in states(db), states(db)
    push(db, "Skipped", "5")
    push(db, "Discarded", "6")
    db.outbox("skip", "--key", "order:5", "--state", "pending", "--yes")
    db.outbox("discard", "--key", "order:6", "--state", "pending", "--yes")
    assert states(db)["Skipped"] == "dead" and states(db)["Discarded"] == "discarded", states(db)
    # another reader, moved and removed, and one for a moment
    db.configure(user=user, sink=sink, relay=retry + ", ordering: none", name="second")
    db.outbox("work", "--once")
    db.outbox("readers", "seek", "second", "beginning", "--yes")
    assert '"reader":"second"' in db.outbox("readers", "list", "--json")
    db.outbox("readers", "remove", "second", "--yes")
    db.configure(user=user, sink=sink, relay=retry)
    db.outbox("replay", "--event", "Good", "--yes")
    db.outbox("partitions", "free", "--all", "--reader", "default", "--yes")
    # retention leaves what was given up, and removes the rest
    db.outbox("work", "--once")
    db.outbox("cleanup", "--published", "0")
    assert states(db) == {"Skipped": "dead"}, states(db)


@case("postgres", "mysql")
def a_relay_cannot_change_tables_or_push(db):
    user = begin(db, "relay")
    for sql in ("ALTER TABLE outbox ADD COLUMN x INT", "DROP TABLE outbox", "CREATE TABLE mine (x INT)",
                "UPDATE outbox SET event_type = 'x'", "UPDATE outbox_batches SET pos = 1",
                "INSERT INTO outbox (aggregate_type, event_type, payload) VALUES ('a', 'b', '{}')",
                "UPDATE outbox_meta SET value = 2", "DROP INDEX outbox_uniq_id ON outbox" if db.kind == "mysql" else
                "DROP INDEX outbox_uniq_id", "TRUNCATE TABLE outbox"):
        text = db.refused(sql, user=user)
        assert "denied" in text or "must be owner" in text, (sql, text)
    db.configure(user=user)
    text = db.outbox("partitions", "resize", "3", code=1)
    assert "denied" in text or "owner" in text or "grant" in text.lower(), text
    text = db.outbox("push", "--type", "a", "--event", "b", "--payload", "{}", code=1)
    assert "grant" in text.lower(), text
    # what is there already needs no right to make it
    if db.kind == "postgres":
        assert "already at version" in db.outbox("setup")


@case("sqlite")
def sqlite_says_that_files_have_rights_and_not_users(db):
    db.configure()
    assert db.outbox("setup", "--grants") == (
        "-- SQLite has no users: whoever may write the file and its directory may push and relay.\n")
    assert not os.path.exists(db.file)


@case("sqlite")
def the_grants_are_one_thing_at_a_time(db):
    db.configure()
    assert "give one of them" in db.outbox("setup", "--print", "--grants", code=2)
    assert "--json has no meaning" in db.outbox("setup", "--grants", "--json", code=2)


@case("postgres", "mysql")
def the_roles_are_called_after_the_table(db):
    layout = ("table: app.events" if db.kind == "postgres" else f"table: {db.name}.events") + \
        ", columns: { event_type: select, headers: ~, snapshot: ~ }"
    if db.kind == "postgres":
        db.run("CREATE SCHEMA app")
    db.configure(layout)
    db.outbox("setup")
    db.shell(db.outbox("setup", "--grants"))
    user = f"u_{db.name}"
    if db.kind == "postgres":
        db.run(f"CREATE ROLE {user} LOGIN IN ROLE events_producer")
        db.run("SELECT app.events_push('order', '1', 'A', '{}')", user=user)
        db.refused("SELECT * FROM app.events", user=user)
    else:
        db.run(f"CREATE USER {user}@localhost")
        db.run(f"GRANT events_producer TO {user}@localhost")
        set_default_role(db, "events_producer", user)
        db.run("CALL events_push('order', '1', 'A', '{}', NULL, NULL)", user=user)
        db.refused("SELECT * FROM events", user=user)
    assert [m["event_type"] for m in db.deliver()] == ["A"]


sys.exit(main())
