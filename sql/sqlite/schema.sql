-- The outbox on SQLite. Times are microseconds since 1970 UTC; ids are the 16
-- bytes of a UUID (or its text). Nothing here needs our library: a plain INSERT
-- of aggregate_type, event_type, id and payload is a message.
--
-- setup runs tables, partition, indexes and view, in this order and in one transaction.

-- name: tables
-- A row of the log never changes. seq is AUTOINCREMENT: without it SQLite hands out the number of
-- a deleted row again, and a reader that has passed it would never see the new one.
-- ordering_key is computed here for every writer, and stored: the partition's hash reads it often.
-- What may be large stands last: what stands after it would be reached through its pages.
-- A text that is no UUID would stop the relay.
-- There is no CHECK (json_valid(...)): in SQLite 3.40 such a table makes the whole
-- database unreadable for every connection with trusted_schema = OFF.
CREATE TABLE IF NOT EXISTS {outbox} (
  {seq} INTEGER PRIMARY KEY AUTOINCREMENT,
  {?+string_id}{id} TEXT NOT NULL COLLATE NOCASE CHECK ({id} GLOB '[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]-[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]-[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]-[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]-[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]'),{/}
  {!+string_id}{id} BLOB NOT NULL CHECK (length({id}) = 16),{/}
  {aggregate_type} TEXT NOT NULL CHECK (length({aggregate_type}) BETWEEN 1 AND 255),
  {aggregate_id} TEXT CHECK (length({aggregate_id}) <= 255),
  {event_type} TEXT NOT NULL CHECK (length({event_type}) BETWEEN 1 AND 255),
  {?revision}{revision} INTEGER NOT NULL DEFAULT 1,{/}
  {?sequence_number}{sequence_number} INTEGER,{/}
  {?correlation_id}{correlation_id} TEXT,{/}
  {?causation_id}{causation_id} TEXT,{/}
  {?partition_key}{partition_key} TEXT CHECK (length({partition_key}) <= 255),{/}
  {ordering_key} TEXT AS (coalesce({partition_key|NULL}, {aggregate_type} || ':' || {aggregate_id})) STORED,
  {priority} INTEGER NOT NULL DEFAULT 0 CHECK ({priority} BETWEEN -32768 AND 32767),
  {target} TEXT NOT NULL DEFAULT 'default',
  {?occurred_at}{occurred_at} INTEGER NOT NULL DEFAULT ({>now}),{/}
  {created_at} INTEGER NOT NULL DEFAULT ({>now}),
  {available_at} INTEGER NOT NULL DEFAULT 0,
  {?headers}{headers} TEXT,{/}
  {?snapshot}{snapshot} TEXT,{/}
  {?+binary_payload}{payload} BLOB{/}
  {!+binary_payload}{payload} TEXT{/}
) STRICT;

CREATE TABLE IF NOT EXISTS {readers} (
  name TEXT PRIMARY KEY NOT NULL,
  target TEXT NOT NULL,
  filter TEXT NOT NULL DEFAULT '',
  temporary INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The journal: the newest row of a partition is its progress, and its primary key is the fence.
CREATE TABLE IF NOT EXISTS {batches} (
  reader TEXT NOT NULL,
  partition_no INTEGER NOT NULL,
  batch INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  owner BLOB NOT NULL,
  at INTEGER NOT NULL,
  pos INTEGER NOT NULL,
  published INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (reader, partition_no, batch)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS {exceptions} (
  reader TEXT NOT NULL,
  partition_no INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  state INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  due INTEGER,
  queue TEXT,
  last_error TEXT,
  since INTEGER NOT NULL,
  PRIMARY KEY (reader, partition_no, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS {leases} (
  reader TEXT NOT NULL,
  partition_no INTEGER NOT NULL,
  lease_owner BLOB,
  lease_until INTEGER NOT NULL DEFAULT 0,
  lease_epoch INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (reader, partition_no)
) STRICT, WITHOUT ROWID;

-- session: 0, SQLite has no locks that live as long as a connection.
CREATE TABLE IF NOT EXISTS {workers} (
  id BLOB PRIMARY KEY NOT NULL,
  reader TEXT NOT NULL,
  hostname TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  heartbeat_until INTEGER NOT NULL,
  published INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  session INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS {throughput} (
  minute INTEGER NOT NULL,
  reader TEXT NOT NULL,
  worker BLOB NOT NULL,
  published INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (minute, reader, worker)
) STRICT, WITHOUT ROWID;

-- What people did. plan names one decision: a verb that runs in pieces counts up one row.
CREATE TABLE IF NOT EXISTS {audit} (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  who TEXT NOT NULL,
  origin TEXT NOT NULL,
  verb TEXT NOT NULL,
  reader TEXT NOT NULL DEFAULT '',
  filter TEXT NOT NULL DEFAULT '',
  messages INTEGER NOT NULL DEFAULT 0,
  plan TEXT NOT NULL UNIQUE,
  reason TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX IF NOT EXISTS {name:audit_at} ON {audit} (at);

CREATE TABLE IF NOT EXISTS {meta} (
  name TEXT PRIMARY KEY NOT NULL,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT OR IGNORE INTO {meta} (name, value) VALUES ('schema_version', {=schema_version}), ('partition_count', {=partition_count});

-- name: add_state
-- To a table that was made before it.
ALTER TABLE {workers} ADD COLUMN state TEXT NOT NULL DEFAULT '';

-- name: now
-- The host's clock, as SQL has it: for writers without our library, and the view.
CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000

-- name: go_on
-- A log that was dropped and is made anew goes on above every position: no reader passes over it.
INSERT INTO sqlite_sequence (name, seq) SELECT :table, max(pos) FROM {batches} HAVING max(pos) > 0;

-- name: partition
-- Which partition a row is in, for every writer: the lane of its priority, and in it the hash of
-- its key. SQLite has no hash function, so this takes the length of the key and a few of its last
-- characters, where ids differ; a message without a key is spread by its id. The remainder keeps
-- the product inside 63 bits: SQLite would turn a larger one into a float. A virtual column takes
-- no room and can be replaced without rewriting the table.
ALTER TABLE {outbox} ADD COLUMN {partition_no} INTEGER AS (
    coalesce((((length(coalesce({ordering_key}, hex({id})))
      + unicode(substr(coalesce({ordering_key}, hex({id})), -1)) * 31
      + unicode(substr(coalesce({ordering_key}, hex({id})), -2)) * 1009
      + unicode(substr(coalesce({ordering_key}, hex({id})), -4)) * 30011
      + unicode(substr(coalesce({ordering_key}, hex({id})), -8)) * 900001)
      % 2147483647 * 2654435761) >> 24) % {=partition_count}, 0)
    + CASE WHEN {priority} = 0 THEN 0 WHEN {priority} > 0 THEN {=partition_count} ELSE {=partition_count} * 2 END) VIRTUAL;

-- name: indexes
CREATE UNIQUE INDEX IF NOT EXISTS {name:uniq_id} ON {outbox} ({id}, {target});

{?sequence_number}CREATE UNIQUE INDEX IF NOT EXISTS {name:uniq_aggregate_sequence}
  ON {outbox} ({target}, {aggregate_type}, {aggregate_id}, {sequence_number})
  WHERE {sequence_number} IS NOT NULL;{/}

CREATE INDEX IF NOT EXISTS {name:due} ON {exceptions} (reader, partition_no, due) WHERE due IS NOT NULL;

CREATE INDEX IF NOT EXISTS {name:queue} ON {exceptions} (reader, partition_no, queue, seq) WHERE queue IS NOT NULL;

-- name: view
-- One row for each message and each reader of its target, as `outbox list` shows them.
CREATE VIEW IF NOT EXISTS {name:messages} AS
SELECT r.name AS reader, o.{seq}, o.{id}, o.{aggregate_type}, o.{aggregate_id}, o.{event_type},
       {?revision}o.{revision},{/}
       {?sequence_number}o.{sequence_number},{/}
       o.{ordering_key}, o.{partition_no}, o.{priority}, o.{target},
       {?occurred_at}o.{occurred_at},{/}
       o.{created_at}, o.{available_at},
       {>view_until_now} {>now} {>view_after_now} AS state,
       coalesce(e.attempts, 0) AS attempts, e.due, {>published_at} AS published_at, e.last_error,
       {?correlation_id}o.{correlation_id},{/}
       {?causation_id}o.{causation_id},{/}
       {?headers}o.{headers},{/}
       o.{payload}
  FROM {readers} AS r
  JOIN {outbox} AS o ON o.{target} = r.target
  LEFT JOIN {exceptions} AS e ON e.reader = r.name AND e.partition_no = o.{partition_no} AND e.seq = o.{seq};

-- name: unpartition
DROP VIEW IF EXISTS {name:messages};
ALTER TABLE {outbox} DROP COLUMN {partition_no};

-- name: print_begin
-- Around those above, for the sqlite3 shell.
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;

-- name: print_end
COMMIT;

-- name: object
SELECT type, sql FROM sqlite_schema WHERE name = :name COLLATE NOCASE;

-- name: columns
-- hidden: 2 is a virtual, 3 a stored generated column.
SELECT name, type, hidden FROM pragma_table_xinfo(:table);

-- name: meta_get
SELECT value FROM {meta} WHERE name = :name;

-- name: meta_set
UPDATE {meta} SET value = :value WHERE name = :name;

-- name: any_lease
SELECT EXISTS (SELECT 1 FROM {leases} WHERE lease_owner IS NOT NULL AND lease_until > :now);

-- name: resize_done
-- New partitions begin at the lowest position of the old ones. What is above it and was delivered
-- by its old partition says so itself.
{>numbers} INSERT INTO {exceptions} (reader, partition_no, seq, state, since)
SELECT r.name, o.{partition_no}, o.{seq}, {=done}, :now
  FROM {readers} AS r
 CROSS JOIN {outbox} AS o ON o.{seq} > (SELECT min(b.pos) FROM n CROSS JOIN {batches} AS b ON {>newest}) AND o.{target} = r.target
  LEFT JOIN {exceptions} AS e ON e.reader = r.name AND e.partition_no = o.{partition_no} AND e.seq = o.{seq}
 WHERE e.seq IS NULL AND o.{seq} <= {>position};

-- name: resize_journal
-- New rows for :count partitions, above every old number and epoch: an owner of before is LOST.
{>numbers}, m (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM m WHERE i + 1 < {=lanes} * :count)
INSERT INTO {batches} (reader, partition_no, batch, epoch, owner, at, pos)
SELECT r.name, m.i, k.batch, k.epoch, zeroblob(16), :now, k.pos
  FROM (SELECT r.name AS reader, max(b.batch) + 1 AS batch, min(b.pos) AS pos,
               max(max(b.epoch) + 1, (SELECT coalesce(max(l.lease_epoch), 0) FROM {leases} AS l WHERE l.reader = r.name)) AS epoch
          FROM {readers} AS r CROSS JOIN n CROSS JOIN {batches} AS b ON {>newest} GROUP BY r.name) AS k
 CROSS JOIN {readers} AS r ON r.name = k.reader
 CROSS JOIN m;

-- name: resize_forget
-- The numbers of partitions mean other rows from now on.
DELETE FROM {batches} WHERE EXISTS (
  SELECT 1 FROM (SELECT b.reader, max(b.batch) AS batch FROM {batches} AS b GROUP BY b.reader) AS k
   WHERE k.reader = {batches}.reader AND k.batch > {batches}.batch);

-- name: resize_leases
-- Before resize_journal: all leases of a reader get the epoch that its new rows will have.
UPDATE {leases} SET lease_owner = NULL, lease_until = 0, updated_at = :now, lease_epoch = k.epoch
  FROM (SELECT l.reader, 1 + max(max(l.lease_epoch), (SELECT coalesce(max(b.epoch), 0) FROM {batches} AS b WHERE b.reader = l.reader)) AS epoch
          FROM {leases} AS l GROUP BY l.reader) AS k
 WHERE k.reader = {leases}.reader;

-- name: resize_lost
-- An exception without its row has nowhere to go.
DELETE FROM {exceptions} WHERE NOT EXISTS (SELECT 1 FROM {outbox} AS o WHERE o.{seq} = {exceptions}.seq);

-- name: resize_move
UPDATE {exceptions} SET partition_no = (SELECT o.{partition_no} FROM {outbox} AS o WHERE o.{seq} = {exceptions}.seq);

-- name: resize_promote
-- Where the whole partition is one queue, its rows have moved into several, each with a head.
UPDATE {exceptions} AS e SET due = :now
 WHERE e.state = {=waiting} AND e.due IS NULL AND e.queue IS NOT NULL AND NOT {>follows};
