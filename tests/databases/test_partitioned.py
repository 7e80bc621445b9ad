# SPDX-License-Identifier: MIT
"""`outbox setup --partitioned`: a log that is partitioned by number, on PostgreSQL, MySQL and MariaDB."""
import json
import sys
import threading

from harness import case, main
from monitor import Monitor

ROWS = 1000


def begin(db, layout="", relay="", user=None):
    db.configure(layout, relay, user)
    return db.outbox("setup", "--partitioned", "--partition-rows", str(ROWS), "--partitions", "2")


def push(db, count, event="E", table="outbox"):
    connection = db.connect()
    cursor = connection.cursor()
    cursor.executemany(f"INSERT INTO {table} (aggregate_type, aggregate_id, event_type, payload) VALUES ('t', %s, %s, '{{}}')",
                       [(str(n), event) for n in range(count)])
    connection.commit()
    connection.close()


def cleanup(db, *words, published="1ms"):
    return json.loads(db.outbox("cleanup", "--json", "--published", published, *words))


def partitions(db, table="outbox"):
    """Where each begins, without the one for all other numbers."""
    if db.kind == "postgres":
        names = db.run("SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = %s::regclass",
                       f'"{table}"')
    else:
        names = db.run("SELECT PARTITION_NAME FROM information_schema.PARTITIONS "
                       "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s AND PARTITION_NAME IS NOT NULL", table)
    return sorted(int(name.rsplit("p", 1)[1]) for name, in names if name.rsplit("p", 1)[-1].isdigit())


def numbers(db):
    return [row[0] for row in db.run("SELECT seq FROM outbox ORDER BY seq")]


@case("postgres", "mysql")
def setup_makes_it_and_says_what_it_is(db):
    said = begin(db)
    assert "no event store" in said and "created version 2 with 2 partitions" in said, said
    assert partitions(db) == [0, 1000, 2000, 3000]
    assert db.run("SELECT value FROM outbox_meta WHERE name = 'partition_rows'") == [(ROWS,)]
    assert db.outbox("setup") == "already at version 2\n"
    assert json.loads(db.outbox("setup", "--json"))["partitioned"] is True
    assert partitions(db) == [0, 1000, 2000, 3000]


@case("postgres", "mysql")
def what_is_printed_makes_the_same(db):
    db.configure()
    db.shell(db.outbox("setup", "--print", "--partitioned", "--partition-rows", "1000"))
    assert db.outbox("setup") == "already at version 2\n"
    assert partitions(db) == [0, 1000, 2000, 3000]
    push(db, 3)
    assert len(db.deliver()) == 3


@case("postgres", "mysql")
def a_plain_log_stays_as_it_is(db):
    db.configure()
    db.outbox("setup")
    assert "stays as it is" in db.outbox("setup", "--partitioned")
    assert partitions(db) == []
    push(db, 3)
    assert len(db.deliver()) == 3
    assert cleanup(db)["rows"] == 3


@case("postgres", "mysql")
def whole_partitions_go_and_others_are_made(db):
    begin(db)
    push(db, 3500)
    assert len(db.deliver()) == 3500
    done = cleanup(db)
    assert done["rows"] == 2999 and done["partitions_dropped"] == 3 and done["partitions_made"] >= 2, done
    left = numbers(db)
    assert left[0] == 3000 and left[-1] == 3500, left
    assert partitions(db)[0] == 3000 and partitions(db)[-1] >= 6000, partitions(db)
    done = cleanup(db)
    assert (done["rows"], done["partitions_dropped"], done["partitions_made"]) == (0, 0, 0), done
    push(db, 2)
    assert len(db.deliver()) == 2


@case("postgres", "mysql")
def the_monitor_tells_what_is_ahead_and_what_may_go(db):
    begin(db)
    push(db, 1500)
    with Monitor(db) as m:
        def told():
            return [(p.get("to_seq"), p["state"]) for p in m.get("/api/v1/partitions")["table_partitions"]]
        before = [(999, "kept"), (1999, "filling"), (2999, "ahead"), (3999, "ahead"), (None, "rest")]
        assert sorted(told(), key=str) == sorted(before, key=str), told()
        db.outbox("work", "--once")
        assert (999, "may go") in told() and (1999, "filling") in told(), told()
        cleanup(db)
        assert 999 not in [high for high, _ in told()], told()


@case("postgres", "mysql")
def numbers_beyond_the_partitions_are_kept_and_delivered(db):
    begin(db)
    push(db, 4500)
    made = cleanup(db)["partitions_made"]
    assert made >= 2, made
    assert len(db.deliver()) == 4500
    push(db, 700)
    assert len(db.deliver()) == 700
    cleanup(db)
    assert min(numbers(db), default=4000) >= 4000
    assert len(numbers(db)) <= 1200


@case("postgres", "mysql")
def at_once_removes_rows_of_a_partition_that_stays(db):
    begin(db)
    push(db, 1500)
    assert len(db.deliver()) == 1500
    assert cleanup(db, published="0s")["rows"] == 1500
    assert numbers(db) == []


@case("postgres", "mysql")
def a_row_that_waits_holds_its_partition_only(db):
    begin(db)
    push(db, 1200)
    soon = "now() + interval '1 day'" if db.kind == "postgres" else "UTC_TIMESTAMP(6) + INTERVAL 1 DAY"
    db.run(f"INSERT INTO outbox (aggregate_type, event_type, payload, available_at) VALUES ('t', 'Later', '{{}}', {soon})")
    push(db, 2300)
    assert len(db.deliver()) == 3500
    assert cleanup(db)["partitions_dropped"] == 2
    left = numbers(db)
    assert left[0] == 1000 and 1201 in left and 2000 not in left and left[-1] == 3501


@case("postgres", "mysql")
def a_reader_that_is_behind_holds_what_it_has_not_passed(db):
    begin(db)
    push(db, 1500)
    db.deliver()
    db.configure(name="slow")
    assert len(db.deliver("--relay", "slow")) == 1500
    push(db, 2500)
    db.configure()
    assert len(db.deliver()) == 2500
    assert cleanup(db)["partitions_dropped"] == 1
    assert numbers(db)[0] == 1000
    db.configure(name="slow")
    assert len(db.deliver("--relay", "slow")) == 2500
    db.configure()
    assert cleanup(db)["partitions_dropped"] >= 2
    assert min(numbers(db), default=3000) >= 3000


@case("postgres", "mysql")
def an_open_transaction_with_a_low_number_is_not_lost(db):
    begin(db)
    push(db, 10)
    late = db.connect()
    cursor = late.cursor()
    cursor.execute("INSERT INTO outbox (aggregate_type, event_type, payload) VALUES ('t', 'Late', '{}')")
    push(db, 3500)
    assert len(db.deliver()) == 3510
    cleanup(db)
    late.commit()
    late.close()
    cleanup(db)
    assert [m["event_type"] for m in db.deliver()] == ["Late"]
    for _ in range(2):
        db.deliver()
        cleanup(db)
    assert min(numbers(db), default=3000) >= 3000


@case("postgres", "mysql")
def nothing_is_lost_while_writers_push(db):
    begin(db)
    stop, failures, pushed = threading.Event(), [], []

    def write(number):
        connection = db.connect()
        cursor = connection.cursor()
        count = 0
        try:
            while not stop.is_set():
                for _ in range(50):
                    cursor.execute("INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('t', %s, 'E', '{}')",
                                   (f"{number}-{count}",))
                    count += 1
                connection.commit()
        except Exception as error:  # pylint: disable=broad-except
            failures.append(str(error))
        connection.close()
        pushed.append(count)

    writers = [threading.Thread(target=write, args=(n,), daemon=True) for n in range(3)]
    for thread in writers:
        thread.start()
    got, dropped, made = [], 0, 0
    for _ in range(200):
        got += [m["id"] for m in db.deliver()]
        done = cleanup(db)
        dropped, made = dropped + done["partitions_dropped"], made + done["partitions_made"]
        if dropped >= 3 and made >= 4:
            break
    stop.set()
    for thread in writers:
        thread.join()
    got += [m["id"] for m in db.deliver()]
    assert not failures, failures
    assert len(set(got)) == len(got) == sum(pushed), (len(set(got)), len(got), pushed)
    assert dropped >= 3 and made >= 4, (dropped, made)


@case("postgres", "mysql")
def a_lock_that_is_not_had_is_no_error(db):
    begin(db)
    push(db, 3500)
    db.deliver()
    other = db.connect()
    cursor = other.cursor()
    cursor.execute("BEGIN")
    cursor.execute("SELECT COUNT(*) FROM outbox")
    cursor.fetchall()
    assert cleanup(db)["partitions_dropped"] == 0
    other.rollback()
    other.close()
    assert cleanup(db)["partitions_dropped"] == 3


@case("postgres")
def a_duplicate_is_told_within_a_partition(db):
    begin(db)
    one = "0190c0de-0000-7000-8000-000000000001"
    words = ("push", "--type", "t", "--aggregate", "1", "--event", "E", "--payload", "{}")
    db.outbox(*words, "--id", one, "--sequence", "7")
    assert "is already stored" in db.outbox(*words, "--id", one, code=1)
    assert "already has sequence number 7" in db.outbox(*words, "--sequence", "7", code=1)
    push(db, 1000)
    db.outbox(*words, "--id", one, "--sequence", "7")
    push(db, 3500)
    db.outbox(*words, "--id", one, "--sequence", "7")
    assert "is already stored" in db.outbox(*words, "--id", one, code=1)
    assert db.outbox("show", one)


@case("postgres", "mysql")
def a_relay_with_the_rights_of_its_role_keeps_them(db):
    begin(db)
    db.shell(db.outbox("setup", "--grants", "--partitioned"))
    user = f"relay_{db.name}"
    if db.kind == "postgres":
        db.run(f"CREATE ROLE {user} LOGIN IN ROLE outbox_relay")
    else:
        db.run(f"CREATE USER {user}@localhost")
        db.run(f"GRANT outbox_relay TO {user}@localhost")
        db.run(f"SET DEFAULT ROLE outbox_relay FOR {user}@localhost")
    push(db, 4500)
    db.configure(user=user)
    assert len(db.deliver()) == 4500
    done = cleanup(db)
    assert done["partitions_dropped"] >= 3 and done["partitions_made"] >= 2, done


@case("postgres", "mysql")
def names_may_be_any_that_a_layout_allows(db):
    for table in ("select", "a$b", "T" * 39):
        layout = f'table: "{table}", columns: {{ seq: "order" }}'
        said = begin(db, layout)
        assert "created" in said, said
        quoted = f'"{table}"' if db.kind == "postgres" else f"`{table}`"
        push(db, 2500, table=quoted)
        assert len(db.deliver()) == 2500
        done = cleanup(db)
        assert done["partitions_dropped"] == 2 and done["partitions_made"] >= 1, done
        assert db.outbox("setup") == "already at version 2\n"


@case("postgres", "mysql")
def the_number_of_keys_partitions_changes(db):
    begin(db)
    push(db, 1500)
    assert len(db.deliver()) == 1500
    push(db, 500)
    db.outbox("partitions", "resize", "5")
    assert len(db.deliver()) == 500
    push(db, 3000)
    assert len(db.deliver()) == 3000
    assert cleanup(db)["partitions_dropped"] >= 2
    push(db, 3000)
    assert len(db.deliver()) == 3000


@case("postgres")
def a_name_that_is_taken_is_an_error(db):
    begin(db)
    db.run("CREATE TABLE outbox_p4000 (x integer)")
    push(db, 2500)
    db.deliver()
    said = db.outbox("cleanup", "--published", "1ms", code=1)
    assert "outbox_p4000" in said and "rename it" in said, said
    db.run("DROP TABLE outbox_p4000")
    assert cleanup(db)["partitions_made"] >= 1


FOREIGN = [
    ("ALTER TABLE outbox PARTITION BY RANGE COLUMNS (seq) (PARTITION p0 VALUES LESS THAN (1000), PARTITION pmax VALUES LESS THAN (MAXVALUE))",
     "not partitioned by a range"),
    ("ALTER TABLE outbox PARTITION BY RANGE (seq + 1) (PARTITION p0 VALUES LESS THAN (1000), PARTITION pmax VALUES LESS THAN MAXVALUE)",
     "not partitioned by a range"),
    ("ALTER TABLE outbox PARTITION BY HASH (seq) PARTITIONS 4", "not partitioned by a range"),
    ("ALTER TABLE outbox PARTITION BY RANGE (seq) SUBPARTITION BY HASH (seq) SUBPARTITIONS 2 "
     "(PARTITION p0 VALUES LESS THAN (1000), PARTITION pmax VALUES LESS THAN MAXVALUE)", "has subpartitions"),
    ("ALTER TABLE outbox PARTITION BY RANGE (seq) (PARTITION `p 0` VALUES LESS THAN (1000), PARTITION pmax VALUES LESS THAN MAXVALUE)",
     "unsafe name"),
    ("ALTER TABLE outbox PARTITION BY RANGE (seq) (PARTITION p0 VALUES LESS THAN (1000), PARTITION rest VALUES LESS THAN MAXVALUE)",
     "no partition pmax"),
]


@case("mysql")
def what_setup_does_not_make_is_refused_on_mysql(db):
    begin(db)
    for sql, words in FOREIGN:
        db.run(sql)
        for command in (("setup",), ("cleanup", "--published", "1ms"), ("work", "--once")):
            said = db.outbox(*command, code=1)
            assert words in said, (sql, command, said)


@case("postgres")
def what_setup_does_not_make_is_refused_on_postgres(db):
    begin(db)
    for sql, words, back in (
            ('CREATE TABLE "x y" PARTITION OF outbox FOR VALUES FROM (90000) TO (91000)', "unsafe name", 'DROP TABLE "x y"'),
            ("CREATE TABLE nested PARTITION OF outbox FOR VALUES FROM (90000) TO (91000) PARTITION BY RANGE (seq)",
             "partitioned itself", "DROP TABLE nested"),
            ("CREATE TABLE low PARTITION OF outbox FOR VALUES FROM (MINVALUE) TO (-5)", "without two bounds", "DROP TABLE low"),
            ("ALTER TABLE outbox_default RENAME TO other", "default partition of another name",
             "ALTER TABLE other RENAME TO outbox_default")):
        db.run(sql)
        for command in (("setup",), ("cleanup", "--published", "1ms"), ("work", "--once")):
            said = db.outbox(*command, code=1)
            assert words in said, (sql, command, said)
        db.run(back)
    db.outbox("work", "--once")


@case("postgres", "mysql")
def the_steps_from_a_plain_log_lose_nothing(db):
    """docs/partitioned.md, "Moving a log that exists"."""
    db.configure()
    db.outbox("setup")
    push(db, 5, "Old")
    begin(db, "table: outbox_new")  # 1. a second log, and producers write there
    push(db, 5, "New", table="outbox_new")
    db.configure()  # 2. the old relay works until nothing is left
    assert [m["event_type"] for m in db.deliver()] == ["Old"] * 5
    assert json.loads(db.outbox("status", "--json"))
    db.configure("table: outbox_new")  # 3. then that of the new log begins
    assert [m["event_type"] for m in db.deliver()] == ["New"] * 5
    assert db.deliver() == []


sys.exit(main())
