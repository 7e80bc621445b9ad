# SPDX-License-Identifier: MIT
"""The log as an event store: the examples of docs/events.md, and the functions and procedures of SQL."""
import json
import os
import re
import subprocess
import sys
import threading

from harness import OUTBOX, case, main, shell

PAGE = sys.argv.pop(1)
BLOCK = re.compile(r"^(?:<!-- run: ([a-z0-9 ]+) -->\n)?```[a-z]*\n(.*?)^```$", re.M | re.S)
ID = "0195a1b2-0000-7000-8000-00000000000a"

with open(PAGE, encoding="utf-8") as page:
    blocks = BLOCK.findall(page.read())
# An example without a mark would be one that nobody has run.
assert sorted(name for name, _ in blocks) == ["mysql mariadb", "postgres psql", "sqlite sqlite3"], blocks
blocks = dict(blocks)


def begin(db):
    db.configure()
    db.outbox("setup", "--events")


def uuid(db, n):
    return f"0195a1b2-0000-7000-8000-{n:012d}" if db.kind == "postgres" else bytes.fromhex(f"0195a1b2000070008000{n:012d}")


def stored(db):
    return db.run("SELECT sequence_number, event_type FROM outbox WHERE aggregate_type = 'account' AND aggregate_id = '42' "
                  "ORDER BY sequence_number")


def append(db, cursor, expected, event_id=None, name="42", event="e"):
    """One event; the row that comes back: version, position, repeated."""
    if db.kind == "postgres":
        cursor.execute("SELECT first_version, first_position, repeated FROM outbox_append('account', %s, %s, ARRAY[%s], ARRAY['{}']::json[], "
                       "ids => CASE WHEN %s::uuid IS NOT NULL THEN ARRAY[%s::uuid] END)", (name, expected, event, event_id, event_id))
        return cursor.fetchone()
    cursor.execute("CALL outbox_append('account', %s, %s, %s, '{}', NULL, %s, NULL)", (name, expected, event, event_id))
    row = cursor.fetchone()
    while cursor.nextset():
        pass
    return row


def committed(db, *args, **named):
    connection = db.connect()
    try:
        row = append(db, connection.cursor(), *args, **named)
        connection.commit()
        return row
    finally:
        connection.close()


def refused(db, *args):
    try:
        committed(db, *args)
    except Exception as error:  # each driver has its own
        return f"{getattr(error, 'pgcode', '')} {error}"
    raise AssertionError("was not refused")


@case()
def the_example_of_the_page_appends_three_versions(db):
    begin(db)
    env = dict(os.environ, HOME=db.dir)
    if db.kind == "postgres":
        env.update(PGHOST=os.environ["TEST_POSTGRES_DIR"], PGPORT=os.environ["TEST_POSTGRES_PORT"], PGUSER="postgres")
        command = ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-d", db.name]
    elif db.kind == "mysql":
        db.write(".my.cnf", f"[client]\nuser=root\nsocket={os.environ['TEST_MYSQL_SOCKET']}\n")
        command = ["mariadb", db.name]
    else:
        command = ["sqlite3", "-bail", db.file]
    shell(command, next(text for name, text in blocks.items() if name.startswith(db.kind)), cwd=db.dir, env=env)
    assert stored(db) == [(1, "Opened"), (2, "Deposited"), (3, "Withdrawn")], stored(db)
    assert [m["event_type"] for m in db.deliver()] == ["Opened", "Deposited", "Withdrawn"]


@case("postgres", "mysql")
def a_conflict_has_an_sqlstate_and_names_both_versions(db):
    begin(db)
    assert committed(db, 0)[0] == 1
    text = refused(db, 0)
    assert "expected version 0, actual version 1" in text, text
    assert "OB001" in text or db.kind == "mysql", text
    assert "conflict" in refused(db, 7)
    assert committed(db, -1)[0] == 2
    assert committed(db, -2)[0] == 3
    assert stored(db) == [(1, "e"), (2, "e"), (3, "e")]


@case("postgres", "mysql")
def a_repeated_id_returns_the_first_result(db):
    begin(db)
    committed(db, 0)
    first = committed(db, 1, ID)
    committed(db, 2)
    for expected in (1, -1, -2):
        again = committed(db, expected, ID)
        assert again[:2] == first[:2] and again[2], (expected, first, again)
    assert [version for version, _ in stored(db)] == [1, 2, 3]


@case("postgres", "mysql")
def a_stream_that_ended_is_refused_with_its_own_error(db):
    begin(db)
    committed(db, 0)
    db.run("INSERT INTO outbox_streams (target, aggregate_type, aggregate_id, end_state) VALUES ('default', 'account', '42', 2)")
    assert "tombstoned" in refused(db, 1)


@case("postgres", "mysql")
def writers_that_race_for_one_stream_leave_no_gap(db):
    begin(db)
    won, errors = [], []

    def run():
        connection = db.connect()
        cursor = connection.cursor()
        for _ in range(25):
            try:
                cursor.execute("SELECT COALESCE(MAX(sequence_number), 0) FROM outbox WHERE aggregate_type = 'account' AND aggregate_id = '42'")
                won.append(append(db, cursor, cursor.fetchone()[0])[0])
                connection.commit()
            except Exception as error:
                connection.rollback()
                errors.append(str(error))
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    versions = [version for version, _ in stored(db)]
    assert versions == list(range(1, len(versions) + 1)), versions
    assert sorted(won) == versions and len(won) + len(errors) == 100, (len(won), errors[:3])
    others = [error for error in errors if "conflict" not in error and "Deadlock" not in error]
    assert not others, others[:3]


def category(db, after=0, limit=1000, member=0, size=1, seen=None):
    """Rows of a category: (stream, version), the last position, and on PostgreSQL what was seen."""
    connection = db.connect()
    cursor = connection.cursor()
    if db.kind == "postgres":
        cursor.execute("SELECT aggregate_id, version, position, now_seen::text FROM outbox_read_category('account', %s, %s, %s, %s, %s::pg_snapshot)",
                       (after, limit, member, size, seen))
        rows = cursor.fetchall()
    else:
        cursor.execute("CALL outbox_read_category('account', %s, %s, %s, %s)", (after, limit, member, size))
        rows = [(row[0], row[2], row[1], None) for row in cursor.fetchall()]
    connection.close()
    if not rows:
        return [], after, seen
    return [row[:2] for row in rows], max([after] + [row[2] for row in rows]), rows[0][3]


@case("postgres", "mysql")
def a_category_is_divided_among_its_members(db):
    begin(db)
    streams = [str(n) for n in range(20)]
    for version in (0, 1):
        for name in streams:
            committed(db, version, name=name)
    everything = category(db)[0]
    assert everything == [(name, version) for version in (1, 2) for name in streams], everything
    parts = [category(db, member=member, size=3)[0] for member in range(3)]
    assert sorted(sum(parts, [])) == sorted(everything)
    owners = [{name for name, _ in part} for part in parts]
    assert all(owners) and not owners[0] & owners[1] and not owners[1] & owners[2], owners
    paged, after = [], 0
    while True:
        rows, after, _ = category(db, after, limit=7)
        if not rows:
            break
        paged += rows
    assert paged == everything
    try:
        category(db, member=3, size=3)
    except Exception as error:  # each driver has its own
        assert "member" in str(error)
    else:
        raise AssertionError("member 3 of 3 was taken")


@case("postgres")
def a_late_commit_below_the_position_is_not_passed(db):
    begin(db)
    late = db.connect()
    append(db, late.cursor(), 0, name="late")
    committed(db, 0, name="early")
    rows, after, seen = category(db)
    assert rows == [("early", 1)]
    late.commit()
    committed(db, 0, name="next")
    rows, after, seen = category(db, after, seen=seen)
    assert rows == [("late", 1), ("next", 1)], rows
    assert category(db, after, seen=seen)[0] == []


@case("postgres", "mysql")
def a_partitioned_log_is_no_event_store(db):
    db.configure()
    assert "no event store" in db.outbox("setup", "--partitioned", "--events", code=1).replace("is no\nevent", "is no event")


@case()
def people_read_streams_on_the_command_line(db):
    begin(db)
    db.run("INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload, sequence_number) VALUES "
           f"({db.marker}, 'account', '42', 'Opened', '{{\"owner\": \"Ann\"}}', 1)", uuid(db, 1))
    db.run("INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload, sequence_number) VALUES "
           f"({db.marker}, 'account', '42', 'Paid', '{{}}', 2)", uuid(db, 2))
    shown = json.loads(db.outbox("events", "show", "account", "42", "--json"))
    assert shown == {"type": "account", "stream": "42", "version": 2, "first_version": 1, "state": "open"}, shown
    lines = [json.loads(line) for line in db.outbox("events", "read", "account", "42", "--json").splitlines()]
    assert [(e["version"], e["event_type"], e["payload"]) for e in lines] == [(1, "Opened", {"owner": "Ann"}), (2, "Paid", {})], lines
    assert "Opened" in db.outbox("events", "read", "account", "--event", "Opened")
    assert "Paid" in db.outbox("events", "streams")
    assert "no stream 43" in db.outbox("events", "show", "account", "43", code=1)
    assert "had no key" in db.outbox("events", "forget", "ann", "--yes")


@case("postgres", "mysql", "sqlite")
def the_printed_sql_makes_the_same(db):
    db.configure()
    text = db.outbox("setup", "--events", "--print")
    assert "outbox_streams" in text
    assert db.kind == "sqlite" or "outbox_append" in text


# How many events; a million is a long run.
MANY = int(os.environ.get("OUTBOX_TEST_EVENTS", "20000"))


def fill(db, many):
    """Events of a hundred streams, written by the database itself."""
    numbers = {
        "postgres": f"generate_series(1, {many}) AS t (n)",
        "mysql": f"(SELECT i AS n FROM JSON_TABLE(CONCAT('[0', REPEAT(',0', {many - 1}), ']'), '$[*]' COLUMNS (i FOR ORDINALITY)) AS j) AS t",
        "sqlite": f"(WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {many}) SELECT n FROM c) AS t",
    }[db.kind]
    text = {"mysql": "CAST(MOD(n, 100) AS CHAR)", "postgres": "mod(n, 100)::text", "sqlite": "CAST(n % 100 AS TEXT)"}[db.kind]
    own_id, new_id = ("id, ", "randomblob(16), ") if db.kind == "sqlite" else ("", "")
    payload = json.dumps({"cents": 5, "note": "x" * 200})
    db.run(f"INSERT INTO outbox ({own_id}aggregate_type, aggregate_id, event_type, payload, sequence_number) "
           f"SELECT {new_id}'account', {text}, 'Paid', '{payload}', {'FLOOR' if db.kind == 'mysql' else ''}((n - 1) / 100) + 1 "
           f"FROM {numbers} ORDER BY n")


@case()
def all_events_are_read_in_constant_memory(db):
    begin(db)
    fill(db, MANY)
    command = [OUTBOX, "events", "read", "account", "--limit", "0", "--json"]
    count, peak_kb = 0, 0
    with subprocess.Popen(command, cwd=db.dir, stdout=subprocess.PIPE) as process:
        for _ in process.stdout:
            count += 1
            # Its highest so far, while it waits for us: a child's rusage would count what forked it.
            if count % 1000 == 0:
                with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
                    peak_kb = max([peak_kb] + [int(line.split()[1]) for line in status if line.startswith("VmHWM:")])
    assert process.returncode == 0 and count == MANY, (process.returncode, count)
    print(f"# {MANY} events, {peak_kb / 1024:.1f} MB resident")
    with open(OUTBOX, "rb") as program:
        sanitized = b"__asan_init" in program.read()
    # The program gives SQLite a page cache of 16 MB, which a long read fills; one of your own has SQLite's 2 MB.
    most_mb = 20 + (16 if db.kind == "sqlite" else 0)
    assert peak_kb > 0 and (sanitized or peak_kb <= most_mb * 1024), peak_kb


sys.exit(main())
