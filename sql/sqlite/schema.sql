-- The outbox on SQLite. Times are microseconds since 1970 UTC; ids are the 16
-- bytes of a UUID (or its text). Nothing here needs our library: a plain INSERT
-- of aggregate_type, event_type, id and payload is a message.
--
-- setup runs tables, partition and indexes, in this order and in one transaction.

-- name: tables
-- seq is AUTOINCREMENT: without it SQLite hands out the number of a deleted row again.
-- ordering_key is computed here for every writer, and stored: the partition's hash reads it often.
-- published_at of a dead row is when it died. A text that is no UUID would stop the relay.
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
  {?+binary_payload}{payload} BLOB,{/}
  {!+binary_payload}{payload} TEXT,{/}
  {?headers}{headers} TEXT,{/}
  {?snapshot}{snapshot} TEXT,{/}
  {?correlation_id}{correlation_id} TEXT,{/}
  {?causation_id}{causation_id} TEXT,{/}
  {?partition_key}{partition_key} TEXT CHECK (length({partition_key}) <= 255),{/}
  {priority} INTEGER NOT NULL DEFAULT 0 CHECK ({priority} BETWEEN -32768 AND 32767),
  {target} TEXT NOT NULL DEFAULT 'default',
  {?occurred_at}{occurred_at} INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),{/}
  {created_at} INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
  {status} INTEGER NOT NULL DEFAULT 0 CHECK ({status} BETWEEN -2 AND 3),
  {attempts} INTEGER NOT NULL DEFAULT 0,
  {available_at} INTEGER NOT NULL DEFAULT 0,
  {published_at} INTEGER,
  {last_error} TEXT,
  {claim_token} BLOB,
  {locked_by} TEXT,
  {locked_until} INTEGER NOT NULL DEFAULT 0,
  {ordering_key} TEXT AS (coalesce({partition_key|NULL}, {aggregate_type} || ':' || {aggregate_id})) STORED
) STRICT;

CREATE TABLE IF NOT EXISTS {workers} (
  id BLOB PRIMARY KEY NOT NULL,
  target TEXT NOT NULL,
  hostname TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  heartbeat_until INTEGER NOT NULL,
  published INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS {partitions} (
  target TEXT NOT NULL,
  partition_no INTEGER NOT NULL,
  lease_owner BLOB,
  lease_until INTEGER NOT NULL DEFAULT 0,
  lease_epoch INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (target, partition_no)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS {throughput} (
  minute INTEGER NOT NULL,
  target TEXT NOT NULL,
  published INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (minute, target)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS {meta} (
  name TEXT PRIMARY KEY NOT NULL,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT OR IGNORE INTO {meta} (name, value) VALUES ('schema_version', {=schema_version}), ('partition_count', {=partition_count});

-- name: partition
-- Which partition a row is in, for every writer. SQLite has no hash function, so this
-- takes the length of the key and a few of its last characters, where ids differ; a
-- message without a key is spread by its id. Each character costs as much as a
-- B-tree lookup, in every insert and settle. The remainder keeps the product inside 63
-- bits: SQLite would turn a larger one into a float. A virtual column takes no
-- room and can be replaced without rewriting the table.
ALTER TABLE {outbox} ADD COLUMN {partition_no} INTEGER AS (
    coalesce((((length(coalesce({ordering_key}, hex({id})))
      + unicode(substr(coalesce({ordering_key}, hex({id})), -1)) * 31
      + unicode(substr(coalesce({ordering_key}, hex({id})), -2)) * 1009
      + unicode(substr(coalesce({ordering_key}, hex({id})), -4)) * 30011
      + unicode(substr(coalesce({ordering_key}, hex({id})), -8)) * 900001)
      % 2147483647 * 2654435761) >> 24) % {=partition_count}, 0)) VIRTUAL;

-- name: indexes
-- A message that goes through untroubled is in three of them at a time: the two
-- unique ones and ready, then finished. The others hold only what is in trouble.
CREATE UNIQUE INDEX IF NOT EXISTS {name:uniq_id} ON {outbox} ({id}, {target});

{?sequence_number}CREATE UNIQUE INDEX IF NOT EXISTS {name:uniq_aggregate_sequence}
  ON {outbox} ({target}, {aggregate_type}, {aggregate_id}, {sequence_number})
  WHERE {sequence_number} IS NOT NULL;{/}

-- available_at is here so that a row that is not due is passed over without reading it.
CREATE INDEX IF NOT EXISTS {name:ready} ON {outbox} ({target}, {partition_no}, {priority} DESC, {seq}, {available_at})
  WHERE {status} = 0;

-- By key: who holds it, who waits behind.
CREATE INDEX IF NOT EXISTS {name:keys} ON {outbox} ({target}, {partition_no}, {ordering_key}, {status})
  WHERE {status} NOT IN (0, 1);

-- By state: retries that are due, partitions that are held.
CREATE INDEX IF NOT EXISTS {name:exceptions} ON {outbox} ({target}, {status}, {partition_no}, {available_at})
  WHERE {status} NOT IN (0, 1);

-- By age, for cleaning up and counting.
CREATE INDEX IF NOT EXISTS {name:finished} ON {outbox} ({target}, {status}, {published_at})
  WHERE {status} IN (1, -1);

CREATE INDEX IF NOT EXISTS {name:claims} ON {outbox} ({target}, {locked_until}) WHERE {locked_until} > 0;

-- name: unpartition
DROP INDEX IF EXISTS {name:ready};
DROP INDEX IF EXISTS {name:keys};
DROP INDEX IF EXISTS {name:exceptions};
ALTER TABLE {outbox} DROP COLUMN {partition_no};

-- name: print_begin
-- Around the three above, for the sqlite3 shell.
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
SELECT EXISTS (SELECT 1 FROM {partitions} WHERE lease_owner IS NOT NULL AND lease_until > :now);

-- name: free_leases
UPDATE {partitions} SET lease_owner = NULL, lease_until = 0, lease_epoch = lease_epoch + 1, updated_at = :now;

-- name: release_moved
-- After a resize: what held a row by partition may stand in another one now.
UPDATE {outbox} AS m SET {status} = 0
 WHERE m.{status} = 3 AND m.{status} NOT IN (0, 1)
   AND (m.{ordering_key} IS NULL OR NOT EXISTS (
       SELECT 1 FROM {outbox} AS h
        WHERE h.{target} = m.{target} AND h.{partition_no} = m.{partition_no}
          AND h.{ordering_key} = m.{ordering_key}
          AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1)));
