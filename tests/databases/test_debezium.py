# SPDX-License-Identifier: MIT
"""An existing table with Debezium's columns: new rows are delivered, the table stays as it is."""
import sys
import uuid

from harness import case, main

TABLE = {
    "sqlite": "CREATE TABLE outboxevent (id TEXT PRIMARY KEY, aggregatetype TEXT NOT NULL, aggregateid TEXT NOT NULL, "
              "type TEXT NOT NULL, payload TEXT, timestamp INTEGER, meta TEXT)",
    "postgres": "CREATE TABLE outboxevent (id uuid PRIMARY KEY, aggregatetype varchar(255) NOT NULL, "
                "aggregateid varchar(255) NOT NULL, type varchar(255) NOT NULL, payload jsonb, timestamp timestamp, meta json)",
    "mysql": "CREATE TABLE outboxevent (id CHAR(36) PRIMARY KEY, aggregatetype VARCHAR(255) NOT NULL, "
             "aggregateid VARCHAR(255) NOT NULL, type VARCHAR(255) NOT NULL, payload JSON, timestamp DATETIME(6), meta JSON)",
}
LAYOUT = "table: relayed, id_type: string, debezium: { table: outboxevent }"
INSERT = "INSERT INTO outboxevent (id, aggregatetype, aggregateid, type, payload) VALUES "


def begin(db, layout=LAYOUT, table=None):
    db.run(table or TABLE[db.kind])
    db.configure(layout)
    db.outbox("setup")


def row(number, event, aggregate="7"):
    return f"('{uuid.UUID(int=number)}', 'order', '{aggregate}', '{event}', '{{\"n\": {number}}}')"


def events(messages):
    return [message["event_type"] for message in messages]


@case()
def rows_are_delivered_once_in_order_and_stay_as_they_are(db):
    begin(db)
    db.run(INSERT + row(1, "Placed"))
    db.run(INSERT + ", ".join(row(n, f"E{n}") for n in range(2, 30)))
    before = db.run("SELECT * FROM outboxevent ORDER BY id")
    got = db.deliver()
    assert events(got) == ["Placed"] + [f"E{n}" for n in range(2, 30)], events(got)
    assert got[0]["id"] == str(uuid.UUID(int=1)) and got[0]["payload"] == {"n": 1}
    assert got[0]["aggregate_type"] == "order" and got[0]["key"] == "order:7"
    assert db.deliver() == []
    assert db.run("SELECT * FROM outboxevent ORDER BY id") == before


@case()
def a_row_that_is_deleted_at_once_is_delivered(db):
    begin(db)
    connection = db.connect()
    cursor = connection.cursor()
    for number in (1, 2):
        cursor.execute(INSERT + row(number, f"E{number}"))
        cursor.execute("DELETE FROM outboxevent")
    connection.commit()
    connection.close()
    assert db.run("SELECT count(*) FROM outboxevent") == [(0,)]
    assert events(db.deliver()) == ["E1", "E2"]


@case()
def what_is_rolled_back_or_changed_is_not_delivered(db):
    begin(db)
    connection = db.connect()
    cursor = connection.cursor()
    cursor.execute(INSERT + row(1, "Ghost"))
    connection.rollback()
    cursor.execute(INSERT + row(2, "Real"))
    connection.commit()
    cursor.execute("UPDATE outboxevent SET type = 'Changed'")
    connection.commit()
    connection.close()
    assert events(db.deliver()) == ["Real"]


@case()
def setup_again_changes_nothing_and_takes_new_columns_over(db):
    begin(db)
    assert "already at version" in db.outbox("setup")
    db.run(INSERT + row(1, "A"))
    assert events(db.deliver()) == ["A"]
    db.configure("table: relayed, id_type: string, debezium: { table: outboxevent, "
                 "columns: { occurred_at: timestamp, headers: meta, partition_key: aggregateid } }")
    if db.kind == "mysql":
        assert "run DROP TRIGGER relayed_copy" in db.outbox("setup", code=1)
        db.run("DROP TRIGGER relayed_copy")
    else:
        assert "has no trigger 'relayed_copy' as this layout needs it" in db.outbox("work", "--once", code=1)
    db.outbox("setup")
    moment = {"sqlite": "1770000000123"}.get(db.kind, "'2026-02-02 02:40:00.123'")
    db.run("INSERT INTO outboxevent (id, aggregatetype, aggregateid, type, payload, timestamp, meta) VALUES "
           f"('{uuid.UUID(int=2)}', 'order', '7', 'B', '{{}}', {moment}, '{{\"trace\": \"t\"}}')")
    got = db.deliver()
    assert events(got) == ["B"] and got[0]["key"] == "7", got
    assert got[0]["occurred_at"] == "2026-02-02T02:40:00.123000Z", got
    assert got[0]["headers"] == {"trace": "t"}, got


@case("postgres", "mysql")
def a_time_may_be_milliseconds_and_an_id_bytes(db):
    types = {"postgres": ("uuid", "bytea", "bigint"), "mysql": ("BINARY(16)", "BLOB", "BIGINT")}[db.kind]
    begin(db, "table: relayed, payload_type: binary, debezium: { table: ev, columns: { occurred_at: at } }",
          "CREATE TABLE ev (id {} PRIMARY KEY, aggregatetype varchar(255), aggregateid varchar(255), "
          "type varchar(255), payload {}, at {})".format(*types))
    key = uuid.UUID(int=77)
    db.run("INSERT INTO ev VALUES (%s, 'order', '7', 'A', %s, 1770000000123)",
           key.bytes if db.kind == "mysql" else str(key), b"\x00\xff")
    db.run("INSERT INTO ev VALUES (%s, 'order', '7', 'Gone', NULL, NULL)",
           uuid.UUID(int=78).bytes if db.kind == "mysql" else str(uuid.UUID(int=78)))
    got = db.deliver()
    assert events(got) == ["A", "Gone"] and got[0]["id"] == str(key), got
    assert got[0]["occurred_at"] == "2026-02-02T02:40:00.123000Z", got
    assert got[0]["payload_base64"] == "AP8=" and got[1]["tombstone"], got


@case("mysql")
def an_id_may_be_of_the_type_uuid(db):
    if not db.has_uuid():
        print("# N/A an_id_may_be_of_the_type_uuid: this server has no such type")
        return
    table = ("CREATE TABLE ev (id UUID PRIMARY KEY, aggregatetype VARCHAR(255), aggregateid VARCHAR(255), type VARCHAR(255), "
             "payload LONGTEXT)")
    key = uuid.UUID(int=77)
    for number, id_type in enumerate(("uuid", "string")):
        begin(db, f"table: relayed{number}, id_type: {id_type}, debezium: {{ table: ev }}", table)
        db.run("INSERT INTO ev VALUES (%s, 'order', '7', 'A', '{}')", str(key))
        assert [m["id"] for m in db.deliver()] == [str(key)]
        db.run("DROP TABLE ev")


@case()
def a_table_that_cannot_be_copied_is_refused_and_nothing_is_made(db):
    db.run("CREATE TABLE other (id INTEGER, payload TEXT)")
    db.configure("table: relayed, id_type: string, debezium: { table: nowhere }")
    assert "there is no table 'nowhere' to copy from" in db.outbox("setup", code=1)
    db.configure("table: relayed, id_type: string, debezium: { table: other }")
    text = db.outbox("setup", code=1)
    assert "column 'id' of table 'other' is int" in text.lower(), text
    db.configure("table: relayed, id_type: string, debezium: { table: other, columns: { id: nothing } }")
    assert "table 'other' has no column 'nothing'" in db.outbox("setup", code=1)
    assert "relayed" in db.refused("SELECT * FROM relayed_meta")


@case()
def a_table_of_ours_cannot_be_copied_from(db):
    db.configure("table: mine, debezium: { table: mine }")
    assert "table 'mine' is yours and one of ours" in db.outbox("config", "check", code=1)
    db.configure("debezium: { columns: { id: a } }")
    assert "needs 'table'" in db.outbox("config", "check", code=1)
    db.configure("debezium: { table: t, columns: { status: a } }")
    assert "unknown key 'status' in layout.debezium.columns" in db.outbox("config", "check", code=1)
    db.configure("debezium: { table: t, columns: { id: ~ } }")
    assert "column 'id' must be copied" in db.outbox("config", "check", code=1)
    db.configure("columns: { headers: ~ }, debezium: { table: t, columns: { headers: h } }")
    assert "column 'headers' cannot be copied: it is switched off" in db.outbox("config", "check", code=1)


@case()
def the_printed_sql_makes_the_trigger(db):
    db.run(TABLE[db.kind])
    db.configure(LAYOUT)
    db.shell(db.outbox("setup", "--print"))
    assert "already at version" in db.outbox("setup")
    db.run(INSERT + row(1, "A"))
    assert events(db.deliver()) == ["A"]


@case("sqlite")
def a_copy_that_fails_is_never_ignored(db):
    begin(db)
    assert "not copied" in db.refused("INSERT OR IGNORE INTO outboxevent VALUES ('short', 'a', 'b', 'c', '{}', 0, NULL)")
    assert db.run("SELECT count(*) FROM outboxevent") == [(0,)]


@case("postgres", "mysql")
def an_application_needs_no_right_on_our_table(db):
    begin(db)
    user = f"app_{db.name}"
    db.run(f"CREATE ROLE {user} LOGIN" if db.kind == "postgres" else f"CREATE USER {user}@localhost")
    db.run("GRANT INSERT, DELETE ON outboxevent TO " + (user if db.kind == "postgres" else f"{user}@localhost"))
    db.run(INSERT + row(1, "A"), user=user)
    assert "denied" in db.refused("SELECT * FROM relayed", user=user)
    if db.kind == "postgres":
        # a temporary table of the same name takes nothing away, and nobody else gets the trigger
        connection = db.connect(user)
        cursor = connection.cursor()
        cursor.execute("CREATE TEMP TABLE relayed AS SELECT 1 AS id")
        cursor.execute(INSERT + row(2, "B"))
        connection.commit()
        connection.close()
        assert "permission denied for function" in db.refused(
            "CREATE TEMP TABLE mine (id uuid); "
            "CREATE TRIGGER t AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION relayed_copy()", user=user)
    else:
        db.run(INSERT + row(2, "B"), user=user)
    assert events(db.deliver()) == ["A", "B"]


@case("postgres", "mysql")
def the_table_may_be_in_another_schema(db):
    other = f"{db.name}_other"
    db.run(f"CREATE SCHEMA {other}")
    db.run(TABLE[db.kind].replace("TABLE outboxevent", f"TABLE {other}.outboxevent"))
    db.configure(f"table: relayed, debezium: {{ table: {other}.outboxevent }}")
    assert "name that of our table too" in db.outbox("setup", code=1)
    mine = "public" if db.kind == "postgres" else db.name
    db.configure(f"table: {mine}.relayed, debezium: {{ table: {other}.outboxevent }}")
    db.outbox("setup")
    assert "already at version" in db.outbox("setup")
    db.run(INSERT.replace("outboxevent", f"{other}.outboxevent") + row(1, "A"))
    assert events(db.deliver()) == ["A"]


sys.exit(main())
