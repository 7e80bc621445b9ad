# SPDX-License-Identifier: MIT
"""Names and types of the user's own: each layout from setup to retry, on every database."""
import re
import sys
import uuid

from harness import case, main

PAGE = sys.argv.pop(1)

# Every column under another name; words that SQL keeps for itself among them.
RENAMED = {
    "txid": "union", "seq": "No", "id": "select", "aggregate_type": "table", "aggregate_id": "order", "event_type": "Group",
    "revision": "where", "sequence_number": "position$", "payload": "values", "headers": "_x1", "snapshot": "from",
    "correlation_id": "user", "causation_id": "default", "partition_key": "key", "ordering_key": "index",
    "partition_no": "limit", "priority": "desc", "target": "check", "occurred_at": "time", "created_at": "B" * 63,
    "available_at": "a" * 63,
}
OPTIONAL = ("revision", "sequence_number", "headers", "snapshot", "correlation_id", "causation_id", "partition_key",
            "occurred_at")


class Layout:
    def __init__(self, db, table="outbox", columns=None, string_id=False, binary=False):
        self.db, self.table, self.string_id, self.binary = db, table, string_id, binary
        self.names = {name: name for name in RENAMED}
        self.names.update(columns or {})
        self.changed = columns or {}
        self.last = table.split(".")[-1]
        self.quote = "`" if db.kind == "mysql" else '"'

    def yaml(self):
        columns = ", ".join(f'{ours}: {"~" if name is None else repr(name)}' for ours, name in self.changed.items())
        return (f"table: '{self.table}', id_type: {'string' if self.string_id else 'uuid'}, "
                f"payload_type: {'binary' if self.binary else 'json'}, columns: {{ {columns} }}")

    def quoted(self, *names):
        return ".".join(self.quote + name + self.quote for name in names)

    def where(self):
        return self.quoted(*self.table.split("."))

    def column(self, name):
        return self.quoted(self.names[name])

    def id_value(self, number):
        value = uuid.UUID(int=number)
        return str(value) if self.string_id or self.db.kind == "postgres" else value.bytes

    def insert(self, number, event):
        names = [self.column(n) for n in ("id", "aggregate_type", "aggregate_id", "event_type", "payload")]
        markers = ", ".join([self.db.marker] * 5)
        payload = '{"n": 1}'.encode() if self.binary else '{"n": 1}'
        self.db.run(f"INSERT INTO {self.where()} ({', '.join(names)}) VALUES ({markers})",
                    self.id_value(number), "order", "7", event, payload)

    def call(self, event):
        """Push by the function or procedure; false where there is none."""
        db = self.db
        name = self.quoted(*self.table.split(".")[:-1], self.last + "_push")
        payload = '{"n": 1}'.encode() if self.binary else '{"n": 1}'
        if db.kind == "postgres":
            db.run(f"SELECT {name}('order', '7', %s, %s)", event, payload)
        elif db.kind == "mysql":
            db.run(f"CALL {name}('order', '7', %s, %s, NULL, NULL)", event, payload)
        return db.kind != "sqlite"


def events(messages):
    return [message["event_type"] for message in messages]


def round_trip(db, layout):
    """From setup to retry; all three ways of writing."""
    db.configure(layout.yaml())
    assert "created version 2" in db.outbox("setup")
    assert "already at version 2" in db.outbox("setup")
    layout.insert(5, "Inserted")
    pushed = db.outbox("push", "--type", "order", "--aggregate", "7", "--event", "Pushed", "--payload", '{"n": 1}').strip()
    wanted = ["Inserted", "Pushed"] + (["Called"] if layout.call("Called") else [])
    assert [line.split()[-2] for line in db.outbox("list", "pending").splitlines()[1:]] == wanted
    got = db.deliver()
    assert events(got) == wanted, got
    assert got[0]["id"] == str(uuid.UUID(int=5)) and got[1]["id"] == pushed, got
    for message in got:
        if layout.binary:
            assert message.get("payload") == {"n": 1} or message["payload_base64"] == "eyJuIjogMX0=", message
        else:
            assert message["payload"] == {"n": 1}, message
    # an operator's day; a second delivery would show here
    layout.insert(6, "Again")
    again = str(uuid.UUID(int=6))
    db.outbox("skip", again)
    assert "dead" in db.outbox("show", again)
    db.outbox("retry", again)
    db.outbox("partitions", "resize", "5")
    assert events(db.deliver()) == ["Again"]
    layout.insert(7, "Unordered")
    db.configure(layout.yaml(), relay="ordering: none")
    assert events(db.deliver()) == ["Unordered"]
    layout.insert(8, "Gone")
    db.outbox("discard", str(uuid.UUID(int=8)))
    assert db.deliver() == []
    db.outbox("status")
    # a second reader has it all, and what it has passed is removed with the first one's
    db.configure(layout.yaml(), name="second")
    assert events(db.deliver()) == wanted + ["Again", "Unordered", "Gone"]
    view = layout.quoted(*layout.table.split(".")[:-1], layout.last + "_messages")
    states = db.run(f"SELECT reader, state, count(*) FROM {view} GROUP BY reader, state ORDER BY reader, state")
    assert states == [("default", "discarded", 1), ("default", "published", len(wanted) + 2),
                      ("second", "published", len(wanted) + 3)], states
    db.outbox("readers", "seek", "second", "beginning", "--yes")
    assert events(db.deliver()) == wanted + ["Again", "Unordered", "Gone"]
    db.outbox("cleanup", "--published", "0")
    assert db.run(f"SELECT count(*) FROM {layout.where()}") == [(0,)]


@case()
def every_name_is_the_users_own(db):
    round_trip(db, Layout(db, "Ev$nts_1", RENAMED))


@case()
def optional_columns_are_switched_off_and_the_name_is_long(db):
    layout = Layout(db, "t" * 39, columns={name: None for name in OPTIONAL})
    round_trip(db, layout)
    # what has no column is refused, not dropped
    text = db.outbox("push", "--type", "a", "--event", "b", "--payload", "{}", "--headers", "{}", code=1)
    assert "headers is set, but its column is switched off" in text, text


@case()
def ids_are_text(db):
    layout = Layout(db, string_id=True)
    round_trip(db, layout)
    kind = {"sqlite": "SELECT typeof(id) FROM outbox", "postgres": "SELECT pg_typeof(id)::text FROM outbox",
            "mysql": "SELECT CHAR_LENGTH(id) FROM outbox"}[db.kind]
    layout.insert(9, "Kind")
    assert db.run(kind) == [({"mysql": 36}.get(db.kind, "text"),)]
    # a text that is no UUID would stop the relay: it is refused where it is written
    for wrong in ("1", "z" * 36, str(uuid.UUID(int=1)).replace("-", "0"), str(uuid.UUID(int=1)) + "0"):
        db.refused(f"INSERT INTO outbox (id, aggregate_type, event_type, payload) VALUES ('{wrong}', 'a', 'b', '{{}}')")
    assert events(db.deliver()) == ["Kind"]


@case()
def payloads_are_bytes(db):
    layout = Layout(db, binary=True)
    round_trip(db, layout)
    names = ", ".join(layout.column(n) for n in ("id", "aggregate_type", "event_type", "payload"))
    db.run(f"INSERT INTO outbox ({names}) VALUES ({', '.join([db.marker] * 4)})", layout.id_value(9), "a", "b", b"\x00\xff\x80{")
    assert db.deliver()[0]["payload_base64"] == "AP+Aew=="


@case("postgres", "mysql")
def the_table_is_in_a_schema_of_its_own_with_all_of_it_at_once(db):
    schema = f"Shop_{db.name}"
    columns = {name: None if name in OPTIONAL else RENAMED[name] for name in RENAMED}
    layout = Layout(db, f"{schema}.Order", columns, string_id=True, binary=True)
    db.run(f"CREATE SCHEMA {layout.quoted(schema)}")
    round_trip(db, layout)


@case("postgres", "mysql")
def outboxes_live_beside_each_other(db):
    db.run(f"CREATE SCHEMA {db.name}_b")
    layouts = [Layout(db, table) for table in ("outbox", "outbox2", f"{db.name}_b.outbox")]
    for layout in layouts:
        db.configure(layout.yaml())
        db.outbox("setup")
        layout.insert(1, layout.table)
    for layout in layouts:
        db.configure(layout.yaml())
        assert events(db.deliver()) == [layout.table]


@case("sqlite")
def sqlite_has_no_schemas(db):
    db.configure("table: shop.outbox")
    assert "SQLite has no schemas; write 'outbox'" in db.outbox("setup", code=1)


@case("postgres", "mysql")
def a_schema_that_is_missing_is_named(db):
    db.configure("table: nowhere.outbox")
    text = db.outbox("setup", code=1)
    assert "nowhere" in text, text


@case("sqlite")
def a_hostile_name_is_refused_with_its_place(db):
    long = "x" * 64
    for name in ('"', "`", "'", 'a"; DROP TABLE orders; --', "a`b", "", " ", "a b", "a.b.c", ".a", "a.", "1a", "naïve",
                 "表", "a\u0000b", "a\nb", "a;b", "a--b", "a/*b*/", "{outbox}", long, "\U0001f4a3", "a\\b", "%s"):
        escaped = "".join(f"\\U{ord(c):08x}" for c in name)
        for layout in (f'table: "{escaped}"', f'columns: {{ payload: "{escaped}" }}', f'debezium: {{ table: "{escaped}" }}',
                       f'debezium: {{ table: t, columns: {{ payload: "{escaped}" }} }}'):
            db.configure(layout)
            text = db.outbox("config", "check", code=1)
            assert "outbox.yaml:4:" in text and ("is not a name" in text or "empty" in text or "control" in text or
                                                 "NUL" in text), (layout, text)
    db.configure(f"table: {'t' * 40}")
    assert "use at most 39 characters" in db.outbox("config", "check", code=1)
    db.configure("columns: { payload: ID }")
    assert "have the same name" in db.outbox("config", "check", code=1)
    db.configure("columns: { payload: ~ }")
    assert "column 'payload' cannot be switched off" in db.outbox("config", "check", code=1)


@case("sqlite")
def the_examples_of_the_page_are_good_configurations(db):
    with open(PAGE, encoding="utf-8") as page:
        blocks = re.findall(r"^```yaml\n(.*?)^```$", page.read(), re.M | re.S)
    assert len(blocks) == 3
    for block in blocks:
        db.write("outbox.yaml", f'stores: {{ main: {{ url: "{db.url()}" }} }}\n{block}')
        db.outbox("config", "check")


sys.exit(main())
