# SPDX-License-Identifier: MIT
"""Maintenance on every database: what is removed, what is archived before, and what a crash leaves."""
import gzip
import json
import os
import subprocess
import sys

from harness import case, main

HOSTILE = {"text": "a\u0000b\u2028\u001b[31m<script>", "big": 9007199254740993, "deep": [[["x"]]]}


def push(db, aggregate, *words, payload="{}"):
    return db.outbox("push", "--type", "order", "--aggregate", str(aggregate), "--event", "Placed", "--payload", payload,
                     *words).strip()


def lines(path):
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def left(db):
    return [row[0] for row in db.run("SELECT seq FROM outbox ORDER BY seq")]


def cleanup(db, *words):
    return json.loads(db.outbox("cleanup", "--json", "--published", "0", *words))


def begin(db, count=0):
    db.configure()
    db.outbox("setup", "--partitions", "4")
    ids = [push(db, n) for n in range(count)]
    if count:
        assert len(db.deliver()) == count
    return ids


def crash(db, point, *words):
    """Run the program until it kills itself there; builds without fault points have none."""
    run = subprocess.run([os.environ["OUTBOX_BIN"], *words], cwd=db.path(""), capture_output=True, text=True, timeout=120,
                         env={**os.environ, "OUTBOX_FAULT": f"{point}:1:kill"})
    return run.returncode == -9


@case()
def what_is_removed_is_in_the_archive_as_it_was(db):
    begin(db)
    text = json.dumps(HOSTILE).replace("\\u0000", "") if db.kind == "postgres" else json.dumps(HOSTILE)
    first = push(db, 1, "--headers", '{"a":"b"}', "--correlation", "c1", payload=text)
    second = push(db, 2)
    assert len(db.deliver()) == 2
    done = cleanup(db, "--archive", "a.ndjson.gz")
    assert (done["rows"], done["archived"]) == (2, 2), done
    assert left(db) == []
    rows = lines(db.path("a.ndjson.gz"))
    assert [row["id"] for row in rows] == [first, second]
    assert rows[0]["payload"] == json.loads(text) and rows[0]["headers"] == {"a": "b"}, rows[0]
    assert rows[0]["correlation_id"] == "c1" and rows[0]["event_type"] == "Placed"
    assert os.stat(db.path("a.ndjson.gz")).st_mode & 0o777 == 0o600
    assert db.run("SELECT verb, messages FROM outbox_audit") == [("cleanup", 2)]


@case()
def what_must_stay_is_not_archived(db):
    begin(db, 2)
    db.run("INSERT INTO outbox_exceptions (reader, partition_no, seq, state, attempts, since) "
           "SELECT 'default', partition_no, seq, 4, 1, created_at FROM outbox WHERE seq = 1")
    push(db, 8, "--target", "nobody")
    push(db, 9)
    done = cleanup(db, "--archive", "a.ndjson.gz")
    assert (done["rows"], done["archived"]) == (1, 1), done
    assert [row["aggregate_id"] for row in lines(db.path("a.ndjson.gz"))] == ["1"]
    assert len(left(db)) == 3
    # younger than the age that is asked for
    assert len(db.deliver()) == 1
    done = json.loads(db.outbox("cleanup", "--json", "--published", "1h", "--archive", "b.ndjson.gz"))
    assert (done["rows"], done["archived"]) == (0, 0), done


@case()
def a_second_reader_that_is_behind_keeps_everything(db):
    begin(db, 3)
    db.configure(name="slow")
    assert len(db.deliver()) == 3
    db.outbox("readers", "seek", "slow", "beginning", "--yes")
    done = cleanup(db, "--archive", "a.ndjson.gz")
    assert (done["rows"], done["archived"]) == (0, 0), done
    assert len(left(db)) == 3


@case()
def an_archive_that_is_there_is_refused_or_added_to(db):
    begin(db, 1)
    cleanup(db, "--archive", "a.ndjson.gz")
    push(db, 5)
    db.deliver()
    assert "a.ndjson.gz exists: name another file, or add to it with --append" in db.outbox(
        "cleanup", "--published", "0", "--archive", "a.ndjson.gz", code=1)
    assert len(left(db)) == 1
    cleanup(db, "--archive", "a.ndjson.gz", "--append")
    assert [row["aggregate_id"] for row in lines(db.path("a.ndjson.gz"))] == ["0", "5"]
    with open(db.path("a.ndjson.gz"), "rb+") as file:
        file.truncate(os.path.getsize(db.path("a.ndjson.gz")) - 5)
    assert "ends in the middle" in db.outbox("cleanup", "--published", "0", "--archive", "a.ndjson.gz", "--append", code=1)
    db.write("plain.gz", "not compressed\n")
    assert "is no gzip file" in db.outbox("cleanup", "--published", "0", "--archive", "plain.gz", "--append", code=1)
    assert "--append belongs to --archive" in db.outbox("cleanup", "--append", code=2)


@case()
def a_crash_leaves_rows_in_both_never_in_neither(db):
    begin(db, 3)
    if not crash(db, "archive.synced", "cleanup", "--published", "0", "--archive", "a.ndjson.gz"):
        return
    assert len(lines(db.path("a.ndjson.gz"))) == 3 and len(left(db)) == 3
    assert crash(db, "archive.before_sync", "cleanup", "--published", "0", "--archive", "b.ndjson.gz")
    assert len(left(db)) == 3
    done = cleanup(db, "--archive", "c.ndjson.gz")
    assert (done["rows"], done["archived"]) == (3, 3), done
    assert len(lines(db.path("c.ndjson.gz"))) == 3 and left(db) == []


@case()
def many_rows_go_page_by_page(db):
    begin(db)
    connection = db.connect()
    cursor = connection.cursor()
    if db.kind == "sqlite":
        insert = "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) VALUES (randomblob(16), 'order', ?, 'E', '{}')"
    else:
        insert = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', %s, 'E', '{}')"
    cursor.executemany(insert, [(str(n),) for n in range(1001)])
    connection.commit()
    connection.close()
    assert len(db.deliver()) == 1001
    done = cleanup(db, "--archive", "a.ndjson.gz")
    assert (done["rows"], done["archived"]) == (1001, 1001), done
    assert len({row["id"] for row in lines(db.path("a.ndjson.gz"))}) == 1001


@case()
def maintain_does_what_a_relay_does_inside(db):
    begin(db, 2)
    db.configure(store="retention: { published: 0, every: never }")
    push(db, 7)
    done = json.loads(db.outbox("maintain", "--json"))
    assert (done["store"], done["rows"], done["busy"]) == ("main", 2, False), done
    assert done["retention"]["published_ms"] == 0 and done["retention"]["every_ms"] is None
    assert done["retention"]["held_by"] == "default" and done["retention"]["held_by_nobody"] is True
    assert left(db) == [3]
    said = db.outbox("maintain")
    assert "removed 0 rows" in said and "reader default holds back rows from number 3 on, and nobody runs it" in said, said
    assert "run 'outbox maintain'" in said
    assert db.outbox("maintain", "--quiet") == ""
    assert db.outbox("status").rstrip().endswith("and nobody runs it")


@case()
def maintain_prunes_audit_and_throughput(db):
    begin(db, 1)
    cleanup(db)
    age = {"sqlite": "at - 91 * 86400000000", "postgres": "at - interval '91 days'", "mysql": "TIMESTAMPADD(DAY, -91, at)"}
    db.run(f"UPDATE outbox_audit SET at = {age[db.kind]}")
    assert len(db.outbox("audit", "--json").splitlines()) == 1
    db.outbox("maintain")
    assert db.outbox("audit", "--json") == ""


@case("postgres", "mysql")
def maintain_makes_table_partitions_ahead_and_drops_them(db):
    db.configure(store="retention: { published: 1ms }")
    db.outbox("setup", "--partitioned", "--partition-rows", "1000", "--partitions", "2")
    connection = db.connect()
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('t', %s, 'E', '{}')",
                       [(str(n),) for n in range(2500)])
    connection.commit()
    connection.close()
    assert len(db.deliver()) == 2500
    done = json.loads(db.outbox("maintain", "--json"))
    assert done["partitions_made"] >= 1 and done["partitions_dropped"] >= 2, done
    push(db, 1)
    assert len(db.deliver()) == 1


sys.exit(main())
