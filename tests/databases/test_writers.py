# SPDX-License-Identifier: MIT
"""Writers that are hard on a reader of the log: many open transactions, large ones, late ones, rolled back ones."""
import random
import sys
import threading

from harness import case, main
from relays import SCALE, Books, Lines, Relay, insert, note, number, one, until

OPEN = 200
RELAY = "batch_size: 500, idle_backoff_ms: 100ms, leasing: { lease_ttl: 5s, lease_renew: 1500ms, heartbeat_ttl: 5s }"


def begin(db, relay=RELAY, **options):
    db.configure(relay=relay, **options)
    db.outbox("setup")


@case("postgres", "mysql")
def two_hundred_open_writers_hold_back_nobody(db):
    """Each has written and stays open; others go on; they end in any order, one in five by a rollback."""
    begin(db)
    chance, books, lines = random.Random(1), Books(), Lines(db)
    writers = [db.connect() for _ in range(OPEN)]
    with Relay(db) as relay:
        for i, writer in enumerate(writers):
            one(db, writer.cursor(), f"w{i}", 1)
        # as long as a minute, in the long run
        for n in range(1, 3 * SCALE + 1):
            db.run(insert(db, n, n, 7))
            note(books, n, n, 7)
            lines.wait(n, 20)
        order = list(range(OPEN))
        chance.shuffle(order)
        for i in order:
            one(db, writers[i].cursor(), f"w{i}", 2)
            if chance.random() < 0.2:
                writers[i].rollback()
            else:
                writers[i].commit()
                books.commit(f"w{i}", 1, 2)
            writers[i].close()
            connection = db.connect()
            one(db, connection.cursor(), f"w{i}", 3)
            connection.commit()
            connection.close()
            books.commit(f"w{i}", 3)
        lines.wait(books.count())
        relay.stop()
    books.audit(lines.read())


@case()
def a_large_transaction_that_commits_late_is_delivered_whole(db):
    """While it is open others go on; then all of it comes, in order, in the memory of a few batches."""
    begin(db)
    many, books, lines = 10000 * SCALE, Books(), Lines(db)
    with Relay(db) as relay:
        large = db.connect()
        cursor = large.cursor()
        cursor.execute(insert(db, 1, many, 300))
        if db.kind != "sqlite":  # which has one writer
            for n in range(1, 201):
                db.run(insert(db, n, n, 5, before="o"))
                note(books, n, n, 5, before="o")
            lines.wait(200, 30)
        large.commit()
        large.close()
        note(books, 1, many, 300)
        db.run(insert(db, 201, 400, 5, before="o"))
        note(books, 201, 400, 5, before="o")
        lines.wait(books.count())
        memory = relay.memory()
        relay.stop()
    books.audit(lines.read())
    assert memory < 100 << 20, f"it took {memory >> 20} MB"


def shop(db, seed, count, locks, books, trouble):
    """Transactions of one to four messages, one in five rolled back, each under the locks of its keys."""
    try:
        chance, connection = random.Random(seed), db.connect()
        written = 0
        while written < count:
            keys = sorted(chance.sample(range(len(locks)), chance.randint(1, 4)))
            for key in keys:
                locks[key].acquire()
            cursor = connection.cursor()
            for key in keys:
                written += 1
                one(db, cursor, f"k{key}", seed * 1000000 + written)
            if chance.random() < 0.2:
                connection.rollback()
            else:
                connection.commit()
                for i, key in enumerate(keys):
                    books.commit(f"k{key}", seed * 1000000 + written - len(keys) + 1 + i)
            for key in keys:
                locks[key].release()
        connection.close()
    except Exception as error:  # each driver has its own
        trouble.append(error)


@case("postgres", "mysql")
def one_number_in_five_that_is_rolled_back_costs_nothing(db):
    """P3 holds, and what a reader remembers of numbers that never come stays small, and then goes."""
    begin(db)
    books, lines, trouble = Books(), Lines(db), []
    locks = [threading.Lock() for _ in range(100)]
    seen = "SELECT coalesce(max(octet_length({})), 0) FROM outbox_batches".format(
        "seen::text" if db.kind == "postgres" else "seen")
    with Relay(db) as relay:
        shops = [threading.Thread(target=shop, args=(db, seed, 250 * SCALE, locks, books, trouble)) for seed in range(1, 9)]
        for thread in shops:
            thread.start()
        for thread in shops:
            thread.join()
        assert not trouble, trouble
        lines.wait(books.count())
        # eight transactions are open at a time; a few more have ended and are not proven dead yet
        assert number(db, seen) < 4000, number(db, seen)
        if db.kind == "mysql":
            newest = ("SELECT coalesce(max(length(b.seen)), 0) FROM outbox_batches AS b JOIN (SELECT partition_no, MAX(batch) AS "
                      "batch FROM outbox_batches GROUP BY partition_no) AS n USING (partition_no, batch)")
            db.run(insert(db, 1, 200, 200, before="last"))
            note(books, 1, 200, 200, before="last")
            until("no gaps", lambda: number(db, newest) == 0)
            lines.wait(books.count())
        relay.stop()
    books.audit(lines.read())


@case("postgres")
def numbers_that_begin_anew_under_load_lose_nothing(db):
    """TRUNCATE RESTART IDENTITY while everybody writes: what is committed after it is delivered."""
    begin(db)
    books, lines = Books(), Lines(db)
    stopped, trouble, written = threading.Event(), [], []

    def write():
        try:
            connection, n = db.connect(), 0
            while not stopped.is_set():
                n += 1
                one(db, connection.cursor(), "k", n)
                connection.commit()
                written.append(n)
        except Exception as error:
            trouble.append(error)

    with Relay(db) as relay:
        thread = threading.Thread(target=write)
        thread.start()
        for _ in range(3):
            lines.wait(len(lines.read()) + 500)
            # what was committed before is gone with the table, delivered or not
            db.run("TRUNCATE outbox RESTART IDENTITY")
            mark = len(written) + 1
        lines.wait(len(lines.read()) + 500)
        stopped.set()
        thread.join()
        assert not trouble, trouble
        until("the last one", lambda: lines.read()[-1]["payload"]["n"] == written[-1])
        relay.stop()
    got = [line["payload"]["n"] for line in lines.read()]
    assert got == sorted(set(got)), "out of order, or twice"
    missing = set(range(mark + 1, written[-1] + 1)) - set(got)
    assert not missing, f"{len(missing)} lost: {sorted(missing)[:5]}"
    assert number(db, "SELECT max(seq) FROM outbox") < written[-1]


sys.exit(main())
