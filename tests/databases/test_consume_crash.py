# SPDX-License-Identifier: MIT
"""Relay and consumer are killed at random around a Redis stream, on every database; see torture.py."""
import sys

from consumers import redis, stream
from harness import case, main
from torture import own_sqlite, same_database, torture


class Stream:
    """A Redis stream of its own."""
    name = "redis"

    def __init__(self, db, group=True):
        redis("DEL", stream(db))
        self.destination, self.group = stream(db), group
        self.sink = f'type: redis, url: "{redis.url()}"'
        self.source = f'{self.sink}, stream: {stream(db)}'

    def is_done(self):
        return not self.group or redis("XPENDING", self.destination, "billing")[0] == 0

    def copies(self, count):
        return f"{redis('XLEN', self.destination) - count} copies in the stream"


@case("postgres")
def effects_are_exactly_once_in_sqlite_whatever_is_killed(db):
    torture(db, Stream(db), own_sqlite(db))


@case("postgres", "mysql", "sqlite")
def effects_are_exactly_once_in_the_same_database_whatever_is_killed(db):
    torture(db, Stream(db), same_database(db))


@case("postgres")
def effects_are_exactly_once_by_position_whatever_is_killed(db):
    # A copy that a killed relay leaves in the stream has a position of its own: only ids tell those.
    torture(db, Stream(db, group=False), same_database(db), options="dedup: position", relay_too=False)


sys.exit(main())
