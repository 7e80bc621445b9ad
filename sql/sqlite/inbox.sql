-- The consumer's side: what was handled, who consumes, how far, and what is parked. Times are microseconds since 1970.

-- name: inbox
-- One row for each message that a consumer has handled. In your own transaction, which BEGIN IMMEDIATE begins:
--   INSERT OR IGNORE INTO outbox_inbox (consumer, id) VALUES ('billing', :id);
--   SELECT changes();  -- 1: new, handle it; 0: seen, pass it over
CREATE TABLE IF NOT EXISTS {fn:inbox} (
  consumer TEXT NOT NULL CHECK (consumer <> '' AND length(consumer) <= 250),
  id TEXT NOT NULL CHECK (id <> '' AND length(id) <= 255),
  handled_at INTEGER NOT NULL DEFAULT ({>now}),
  PRIMARY KEY (consumer, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS {name:inbox_age} ON {name:inbox} (handled_at);
-- Who consumes. Every write of a consumer checks its epoch.
CREATE TABLE IF NOT EXISTS {fn:consumers} (
  name TEXT NOT NULL PRIMARY KEY,
  source TEXT NOT NULL,
  owner BLOB,
  epoch INTEGER NOT NULL DEFAULT 0,
  lease_until INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL DEFAULT 0,
  handled INTEGER NOT NULL DEFAULT 0,
  duplicates INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  lag_messages INTEGER,
  oldest_us INTEGER
) STRICT, WITHOUT ROWID;
-- Processes that consume, and what they tell of themselves: JSON.
CREATE TABLE IF NOT EXISTS {fn:consumer_members} (
  consumer TEXT NOT NULL,
  id BLOB NOT NULL,
  hostname TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  heartbeat_until INTEGER NOT NULL,
  state TEXT NOT NULL,
  PRIMARY KEY (consumer, id)
) STRICT, WITHOUT ROWID;
-- How far a consumer with `dedup: position` is, in each part of its source.
CREATE TABLE IF NOT EXISTS {fn:positions} (
  consumer TEXT NOT NULL,
  source TEXT NOT NULL,
  part TEXT NOT NULL,
  position TEXT NOT NULL,
  updated_at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (consumer, source, part)
) STRICT, WITHOUT ROWID;
-- A message that failed, and what came after it with the same key. n is the order; the lowest of a queue is its head, and only a head
-- is ever due.
CREATE TABLE IF NOT EXISTS {fn:parked} (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  consumer TEXT NOT NULL,
  mark TEXT NOT NULL,
  queue TEXT,
  id TEXT,
  event_type TEXT,
  state INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  due INTEGER,
  since INTEGER NOT NULL,
  place TEXT NOT NULL,
  reason TEXT,
  message TEXT NOT NULL,
  UNIQUE (consumer, mark)
) STRICT;
CREATE INDEX IF NOT EXISTS {name:parked_due} ON {name:parked} (consumer, due) WHERE due IS NOT NULL;
CREATE INDEX IF NOT EXISTS {name:parked_queue} ON {name:parked} (consumer, queue, n);

-- name: inbox_there

-- name: inbox_push
-- ?1 consumer, ?2 id
INSERT OR IGNORE INTO {fn:inbox} (consumer, id) VALUES (?1, ?2)

-- name: inbox_add
INSERT INTO {fn:inbox} (consumer, id, handled_at) VALUES (:consumer, :id, :now) ON CONFLICT DO NOTHING;

-- name: inbox_purge
DELETE FROM {fn:inbox} WHERE (consumer, id) IN (SELECT consumer, id FROM {fn:inbox} WHERE handled_at < :now - :age ORDER BY handled_at LIMIT :limit);

-- name: consumer_make
INSERT INTO {fn:consumers} (name, source, updated_at) VALUES (:consumer, :source, :now)
    ON CONFLICT (name) DO UPDATE SET source = excluded.source WHERE source <> excluded.source;

-- name: consumer_take
UPDATE {fn:consumers} SET owner = :owner, epoch = epoch + CASE WHEN owner = :owner AND lease_until > :now THEN 0 ELSE 1 END,
       lease_until = :now + :ttl, updated_at = :now
 WHERE name = :consumer AND (owner IS NULL OR owner = :owner OR lease_until <= :now);

-- name: consumer_state
SELECT epoch, owner IS :owner, owner IS NOT NULL, lease_until FROM {fn:consumers} WHERE name = :consumer;

-- name: consumer_renew
UPDATE {fn:consumers} SET lease_until = :now + :ttl, updated_at = :now, handled = handled + :handled, duplicates = duplicates + :duplicates,
       failed = failed + :failed, lag_messages = :lag, oldest_us = :oldest
 WHERE name = :consumer AND owner = :owner AND epoch = :epoch;

-- name: consumer_count
UPDATE {fn:consumers} SET handled = handled + :handled, duplicates = duplicates + :duplicates, failed = failed + :failed
 WHERE name = :consumer AND :handled + :duplicates + :failed > 0;

-- name: member_beat
INSERT INTO {fn:consumer_members} (consumer, id, hostname, pid, started_at, heartbeat_until, state)
VALUES (:consumer, :owner, :hostname, :pid, :now, :now + :ttl, :state)
    ON CONFLICT (consumer, id) DO UPDATE SET heartbeat_until = excluded.heartbeat_until, state = excluded.state;

-- name: member_leave
DELETE FROM {fn:consumer_members} WHERE consumer = :consumer AND id = :owner;

-- name: members_forget
-- Those that fell silent are shown for a while: their last words say why.
DELETE FROM {fn:consumer_members} WHERE consumer = :consumer AND heartbeat_until < :now - :age;

-- name: members
SELECT consumer, id, hostname, pid, started_at, heartbeat_until, heartbeat_until > :now, state
  FROM {fn:consumer_members} WHERE :consumer IS NULL OR consumer = :consumer ORDER BY consumer, started_at, id;

-- name: consumer_release
UPDATE {fn:consumers} SET owner = NULL, lease_until = 0, updated_at = :now WHERE name = :consumer AND owner = :owner AND epoch = :epoch;

-- name: consumer_fence
-- There is one writer at a time: whoever took over is seen.
SELECT 1 FROM {fn:consumers} WHERE name = :consumer AND epoch = :epoch;

-- name: consumer_list
SELECT who.name, who.source, who.owner, who.epoch, who.owner IS NOT NULL AND who.lease_until > :now, who.updated_at, who.handled, who.duplicates, who.failed,
       coalesce(who.lag_messages, -1), coalesce(who.oldest_us, -1),
       count(p.n), count(p.n) FILTER (WHERE p.state >= 2), min(p.since), :now
  FROM {fn:consumers} AS who LEFT JOIN {fn:parked} AS p ON p.consumer = who.name
 WHERE :consumer IS NULL OR who.name = :consumer
 GROUP BY who.name ORDER BY who.name;

-- name: positions
SELECT part, position FROM {fn:positions} WHERE consumer = :consumer AND source = :source;

-- name: position_set
INSERT INTO {fn:positions} (consumer, source, part, position, updated_at) VALUES (:consumer, :source, :part, :position, :now)
    ON CONFLICT (consumer, source, part) DO UPDATE SET position = excluded.position, updated_at = excluded.updated_at;

-- name: park
INSERT INTO {fn:parked} (consumer, mark, queue, id, event_type, state, attempts, due, since, place, reason, message)
VALUES (:consumer, :mark, :queue, :id, :event_type, :state, :attempts, :now + :delay, :now, :place, :reason, :message)
    ON CONFLICT (consumer, mark) DO NOTHING;

-- name: parked_keys
SELECT queue, count(*) FROM {fn:parked} WHERE consumer = :consumer AND queue IS NOT NULL AND state < 3 GROUP BY queue;

-- name: parked_count
SELECT count(*), count(*) FILTER (WHERE state >= 2), min(since) FROM {fn:parked} WHERE consumer = :consumer;

-- name: parked_columns
p.n, p.queue, p.id, p.event_type, p.state, p.attempts, p.due, p.since, p.place, p.reason, p.message, p.consumer,
  p.state = 1 OR EXISTS (SELECT 1 FROM {fn:parked} AS b WHERE b.consumer = p.consumer AND b.queue = p.queue AND b.n < p.n AND b.state < 3)

-- name: parked_due
SELECT {>parked_columns} FROM {fn:parked} AS p WHERE p.consumer = :consumer AND p.due <= :now ORDER BY p.due, p.n LIMIT :limit;

-- name: parked_wait
SELECT max(min(due) - :now, 0) / 1000 FROM {fn:parked} WHERE consumer = :consumer AND due IS NOT NULL;

-- name: parked_list
SELECT {>parked_columns} FROM {fn:parked} AS p
 WHERE (:consumer IS NULL OR p.consumer = :consumer) AND (:id IS NULL OR p.id = :id OR p.mark = :id)
   AND (:queue IS NULL OR p.queue = :queue) AND (:state < 0 OR p.state = :state)
   AND p.n > :after AND (:error IS NULL OR instr(coalesce(p.reason, ''), :error) > 0)
 ORDER BY p.n LIMIT :limit;

-- name: parked_lock

-- name: parked_state
SELECT p.state, p.queue, EXISTS (SELECT 1 FROM {fn:parked} AS b WHERE b.consumer = p.consumer AND b.queue = p.queue AND b.n < p.n AND b.state < 3)
  FROM {fn:parked} AS p WHERE p.n = :n AND p.consumer = :consumer;

-- name: parked_set
UPDATE {fn:parked} SET state = :state, attempts = :attempts, due = :now + :delay, reason = coalesce(:reason, reason) WHERE n = :n AND consumer = :consumer;

-- name: parked_unqueue
UPDATE {fn:parked} SET queue = NULL WHERE n = :n AND consumer = :consumer;

-- name: parked_remove
DELETE FROM {fn:parked} WHERE n = :n AND consumer = :consumer;

-- name: parked_promote
-- The new head of the queue is due.
UPDATE {fn:parked} SET state = 0, due = :now
 WHERE n = (SELECT min(n) FROM {fn:parked} WHERE consumer = :consumer AND queue = :queue AND state < 3) AND state = 1;
