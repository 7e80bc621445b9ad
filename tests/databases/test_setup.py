# SPDX-License-Identifier: MIT
"""Setup as a deployment runs it: again, at once with others, printed, on a schema of another version."""
import re
import sys

from harness import case, main

PUSH = ("push", "--type", "order", "--aggregate", "7", "--event", "E", "--payload", "{}")


@case()
def two_processes_at_once_make_one_schema(db):
    for attempt in range(4):
        db.configure(f"table: box{attempt}")
        both = [db.start("setup") for _ in range(2)]
        texts = []
        for process in both:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, out + err
            texts.append(out)
        assert sorted(texts) == ["already at version 2\n", "created version 2 with 16 partitions\n"], texts
    db.outbox(*PUSH)
    assert len(db.deliver()) == 1


@case()
def setup_keeps_what_is_there(db):
    db.configure()
    assert db.outbox("setup", "--partitions", "3") == "created version 2 with 3 partitions\n"
    db.outbox(*PUSH)
    assert db.outbox("setup", "--partitions", "9") == "already at version 2\n"
    assert db.run("SELECT value FROM outbox_meta WHERE name = 'partition_count'") == [(3,)]
    assert len(db.deliver()) == 1


@case()
def another_version_is_refused_and_left_alone(db):
    db.configure()
    db.outbox("setup")
    db.run("UPDATE outbox_meta SET value = 99 WHERE name = 'schema_version'")
    for words in (("setup",), ("work", "--once"), ("list",), PUSH, ("partitions", "resize", "4")):
        text = db.outbox(*words, code=1)
        assert "the tables have schema version 99, made by a newer outbox; upgrade this program" in text, (words, text)
    assert db.run("SELECT value FROM outbox_meta WHERE name = 'schema_version'") == [(99,)]
    # older than the first there was: on MySQL that is a setup that did not end
    db.run("UPDATE outbox_meta SET value = 0 WHERE name = 'schema_version'")
    assert "the tables have schema version 0, this program needs 2; run `outbox setup`" in db.outbox("work", "--once", code=1)
    if db.kind == "mysql":
        db.outbox("setup")
        db.outbox("list")
    else:
        text = db.outbox("setup", code=1)
        assert "schema version 0" in text and "choose another table name" in text, text


@case()
def the_printed_sql_makes_the_same(db):
    db.configure("columns: { headers: ~ }")
    db.shell(db.outbox("setup", "--print", "--partitions", "4"))
    assert db.outbox("setup") == "already at version 2\n"
    db.outbox(*PUSH)
    assert len(db.deliver()) == 1


# What MySQL has removed or says it will, and what MariaDB has under another name only. A server that lacks a
# function crashes when it upgrades a table whose default calls it.
GONE = ("DES_DECRYPT", "DES_ENCRYPT", "DECODE", "ENCODE", "ENCRYPT", "FOUND_ROWS", "GTID_SUBTRACT_UUID", "JSON_MERGE", "MASTER_POS_WAIT",
        "MD5", "OLD_PASSWORD", "PASSWORD", "SHA", "SHA1", "SQL_CALC_FOUND_ROWS", "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS")


@case("mysql")
def the_schema_calls_no_function_that_is_deprecated(db):
    for layout in ("", "id_type: string, payload_type: binary"):
        db.configure(layout)
        text = db.outbox("setup", "--print")
        assert "CREATE TABLE" in text
        called = set(re.findall(r"\b(\w+)\s*\(", text.upper()))
        assert "COALESCE" in called and not called & set(GONE), called & set(GONE)


@case()
def a_part_that_was_lost_is_made_again(db):
    db.configure()
    db.outbox("setup")
    db.run("DROP TABLE outbox_throughput")
    assert "run `outbox setup`" in db.outbox("work", "--once", code=1)
    db.outbox("setup")
    db.outbox(*PUSH)
    assert len(db.deliver()) == 1


@case()
def what_a_log_of_this_version_lacks_is_added(db):
    db.configure()
    db.outbox("setup")
    db.outbox(*PUSH)
    assert len(db.deliver()) == 1
    db.run("DROP TABLE outbox_audit")
    db.run("ALTER TABLE outbox_workers DROP COLUMN state")
    assert "run `outbox setup`" in db.outbox("work", "--once", code=1)
    db.outbox("setup")
    db.outbox("setup")
    db.outbox(*PUSH)
    assert len(db.deliver()) == 1
    assert db.run("SELECT count(*) FROM outbox_audit") == [(0,)]


@case()
def a_table_that_is_not_ours_is_left_alone(db):
    db.run("CREATE TABLE outbox (id INTEGER, note VARCHAR(10))")
    db.run("INSERT INTO outbox VALUES (1, 'mine')")
    db.configure()
    first = "txid" if db.kind == "postgres" else "seq"
    assert f"table 'outbox' has no column '{first}': it is not ours" in db.outbox("setup", code=1)
    assert db.run("SELECT * FROM outbox") == [(1, "mine")]
    assert "outbox_meta" in db.refused("SELECT * FROM outbox_meta")


sys.exit(main())
