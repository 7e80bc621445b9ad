# SPDX-License-Identifier: MIT
"""PostgreSQL moves under a relay: a standby takes over, an archive is restored, a dump goes elsewhere, a pooler stands between."""
import os
import sys
import threading

from clusters import Cluster, Place, pooler
from harness import case, main, shell
from relays import Books, Lines, Relay, insert, note, number, one, readers, until, waiting

RELAY = "batch_size: 50, idle_backoff_ms: 100ms, leasing: { lease_ttl: 2s, lease_renew: 600ms, heartbeat_ttl: 2s }"
IN_FLIGHT = 7 * 50


class Shop(threading.Thread):
    """Writes until it is told to stop, or the server is gone: then the fate of the last one is unknown."""

    def __init__(self, db, books, first, keys=20):
        super().__init__(daemon=True)
        self.db, self.books, self.number, self.keys = db, books, first, keys
        self.stopped, self.unknown = threading.Event(), None
        self.connection = db.connect()
        self.start()

    def run(self):
        try:
            while not self.stopped.is_set():
                key = f"s{self.number % self.keys}"
                self.unknown = (key, self.number)
                one(self.db, self.connection.cursor(), key, self.number)
                self.connection.commit()
                self.books.commit(key, self.number)
                self.unknown = None
                self.number += 1
        except Exception:  # the server is gone
            pass

    def stop(self):
        self.stopped.set()
        self.join()
        try:
            self.connection.close()
        except Exception:
            pass


def settle(db, books, shop):
    """Was the last one, of which nobody said so, committed?"""
    if shop.unknown:
        key, n = shop.unknown
        if db.run("SELECT 1 FROM outbox WHERE payload->>'n' = %s", str(n)):
            books.commit(key, n)


@case("postgres")
def a_standby_takes_over_and_progress_holds(db):
    """The primary dies under load, its standby is promoted: nothing is lost, and only what was in flight comes again."""
    with Place() as place:
        primary = Cluster(place, "primary").init().start("wal_level=replica")
        standby = Cluster(place, "standby").backup_of(primary, "-R").start()
        until("it streams", lambda: primary.run("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"))
        # from now on a commit is one on both
        primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.run("SELECT pg_reload_conf()")
        until("it is in step", lambda: primary.run("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))
        primary.lead(db)
        db.configure(relay=RELAY)
        db.outbox("setup")
        books, lines = Books(), Lines(db)
        late = primary.connect()
        one(db, late.cursor(), "late", 1)
        with Relay(db) as relay:
            shop = Shop(db, books, 1)
            lines.wait(500)
            # committed with a low number after the position has passed it
            late.commit()
            books.commit("late", 1)
            lines.wait(len(lines.read()) + 200)
            primary.crash()
            shop.stop()
            relay.kill()
        standby.run("SELECT pg_promote()")
        standby.lead(db)
        db.configure(relay=RELAY)
        settle(db, books, shop)
        with Relay(db) as relay:
            shop = Shop(db, books, 1000000)
            lines.wait(len(lines.read()) + 300)
            shop.stop()
            until("nothing waits", lambda: waiting(db) == 0)
            lines.wait(books.count())
            relay.stop()
        books.audit(lines.read(), repeats=IN_FLIGHT)


@case("postgres")
def what_is_restored_to_a_point_in_time_goes_on_from_there(db):
    """An archive, restored to a point between two deliveries: what that database had not delivered is, and new rows,
    whose transaction ids were in use before, too."""
    with Place() as place:
        os.mkdir(place.path("archive"), 0o777)
        os.chmod(place.path("archive"), 0o777)
        first = Cluster(place, "first").init().start(
            # whole or not at all: the crash below may come in the middle of a copy
            "wal_level=replica", "archive_mode=on",
            f"archive_command=cp %p {place.path('archive')}/%f.tmp && mv {place.path('archive')}/%f.tmp {place.path('archive')}/%f")
        first.lead(db)
        db.configure(relay=RELAY)
        db.outbox("setup")
        before, lines = Books(), Lines(db)
        db.run(insert(db, 1, 300, 20))
        note(before, 1, 300, 20)
        with Relay(db) as relay:
            lines.wait(300)
            relay.stop()
        copy = Cluster(place, "copy").backup_of(first)
        late = first.connect()
        one(db, late.cursor(), "late", 1)
        # the point: 100 delivered more, 100 that are not, one whose transaction is open
        db.run(insert(db, 301, 400, 20))
        with Relay(db) as relay:
            lines.wait(400)
            relay.stop()
        db.run(insert(db, 401, 500, 20))
        first.run("SELECT pg_create_restore_point('here')")
        delivered = len(lines.read())
        late.commit()
        db.run(insert(db, 501, 900, 20))
        with Relay(db) as relay:
            lines.wait(901)
            relay.stop()
        segment = first.run("SELECT pg_walfile_name(pg_current_wal_lsn())")[0][0]
        first.run("SELECT pg_switch_wal()")
        until("it is archived", lambda: os.path.exists(place.path(f"archive/{segment}")))
        first.crash()
        place.write("copy/recovery.signal", "")
        copy.start(f"restore_command=cp {place.path('archive')}/%f %p", "recovery_target_name=here",
                   "recovery_target_action=promote", "archive_mode=off")
        until("it is a primary", lambda: copy.run("SELECT NOT pg_is_in_recovery()")[0][0])
        copy.lead(db)
        db.configure(relay=RELAY)
        os.remove(db.path("out.ndjson"))
        again, after = Lines(db), Books()
        assert number(db, "SELECT count(*) FROM outbox") == 500
        assert delivered == 400 and waiting(db) == 100, waiting(db)
        note(after, 401, 500, 20)
        with Relay(db) as relay:
            shop = Shop(db, after, 1000000)
            again.wait(600)
            shop.stop()
            again.wait(after.count())
            until("nothing waits", lambda: waiting(db) == 0)
            relay.stop()
        after.audit(again.read())


@case("postgres")
def a_dump_restored_elsewhere_is_refused_until_it_is_adopted(db):
    """Transaction ids of another cluster mean nothing here. Adopting delivers what was not, and nothing twice."""
    with Place() as place:
        db.configure(relay=RELAY)
        db.outbox("setup")
        books, lines = Books(), Lines(db)
        db.run(insert(db, 1, 300, 20))
        with Relay(db) as relay:
            lines.wait(300)
            # a row below the position that is committed after it has passed
            late = db.connect()
            one(db, late.cursor(), "late", 1)
            db.run(insert(db, 301, 400, 20))
            lines.wait(400)
            relay.stop()
        late.commit()
        late.close()
        books.commit("late", 1)
        db.run(insert(db, 401, 500, 20))
        note(books, 401, 500, 20)
        dump = shell([os.path.join(Cluster(place, "other").bin, "pg_dump"), db.url()], "")
        os.remove(db.path("out.ndjson"))
        other = Cluster(place, "other").init().start()
        other.lead(db)
        db.shell(dump)
        db.configure(relay=RELAY)
        text = db.outbox("work", "--once", code=1)
        assert "outbox adopt" in text, text
        with_new = Lines(db)
        assert with_new.read() == []
        text = db.outbox("adopt", "--yes")
        assert "101 messages" in text, text
        db.run(insert(db, 501, 600, 20))
        note(books, 501, 600, 20)
        with Relay(db) as relay:
            with_new.wait(201)
            until("nothing waits", lambda: waiting(db) == 0)
            relay.stop()
        books.audit(with_new.read())
        # and once is enough
        db.outbox("work", "--once")


@case("postgres")
def a_first_backlog_drains_through_a_pooler(db):
    """Transaction mode, 20,000 rows on a table that was never analysed, two relays: no stall, no lease lost."""
    # The disk is not the subject: with a sync of half a second for each batch this takes minutes.
    settings = {"relay": RELAY.replace("50", "500", 1), "sink": "type: file, path: out.ndjson, fsync: false"}
    db.configure(**settings)
    db.outbox("setup")
    db.run("ALTER TABLE outbox SET (autovacuum_enabled = off)")
    db.run(insert(db, 1, 20000, 300))
    books, lines = Books(), Lines(db)
    note(books, 1, 20000, 300)
    with Place() as place:
        at = pooler(place, *db.place())
        db.url = lambda user=None: f"postgresql://postgres@127.0.0.1:{at}/{db.name}"
        db.configure(**settings)
        with Relay(db, log="first.log") as first, Relay(db, log="second.log") as second:
            shop = Shop(db, books, 1000000)
            lines.wait(20000, 60)
            shop.stop()
            lines.wait(books.count())
            for relay in (first, second):
                assert "leases lost" not in relay.said() and "store failed" not in relay.said(), relay.said()
                relay.stop()
        assert all(reader["workers"] == 0 for reader in readers(db).values())
    books.audit(lines.read())


sys.exit(main())
