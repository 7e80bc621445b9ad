-- The outbox on SQLite. Times are microseconds since 1970 UTC; ids are the 16
-- bytes of a UUID (or its text). Nothing here needs our library: a plain INSERT
-- of aggregate_type, event_type, id and payload is a message.

-- name: schema
-- seq is AUTOINCREMENT: without it SQLite hands out the number of a deleted row again.
-- ordering_key and partition_no are computed here for every writer. The hash
-- takes the last characters of the key, where ids differ, since SQLite has no
-- hash function; a message without a key is spread by its id. The remainder keeps
-- the product inside 63 bits: SQLite would turn a larger one into a float.
CREATE TABLE {outbox} (
  {seq} INTEGER PRIMARY KEY AUTOINCREMENT,
  {?+string_id}{id} TEXT NOT NULL CHECK (length({id}) = 36),{/}
  {!+string_id}{id} BLOB NOT NULL CHECK (length({id}) = 16),{/}
  {aggregate_type} TEXT NOT NULL CHECK (length({aggregate_type}) BETWEEN 1 AND 255),
  {aggregate_id} TEXT CHECK (length({aggregate_id}) <= 255),
  {event_type} TEXT NOT NULL CHECK (length({event_type}) BETWEEN 1 AND 255),
  {?revision}{revision} INTEGER NOT NULL DEFAULT 1,{/}
  {?sequence_number}{sequence_number} INTEGER,{/}
  {?+binary_payload}{payload} BLOB,{/}
  {!+binary_payload}{payload} TEXT CHECK ({payload} IS NULL OR json_valid({payload})),{/}
  {?headers}{headers} TEXT CHECK ({headers} IS NULL OR json_valid({headers})),{/}
  {?snapshot}{snapshot} TEXT CHECK ({snapshot} IS NULL OR json_valid({snapshot})),{/}
  {?correlation_id}{correlation_id} TEXT,{/}
  {?causation_id}{causation_id} TEXT,{/}
  {?partition_key}{partition_key} TEXT CHECK (length({partition_key}) <= 255),{/}
  {priority} INTEGER NOT NULL DEFAULT 0,
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
  {ordering_key} TEXT AS (coalesce({partition_key|NULL}, {aggregate_type} || ':' || {aggregate_id})) VIRTUAL,
  {partition_no} INTEGER AS (
    (((length(coalesce({ordering_key}, hex({id})))
      + coalesce(unicode(substr(coalesce({ordering_key}, hex({id})), -1, 1)), 0) * 31
      + coalesce(unicode(substr(coalesce({ordering_key}, hex({id})), -2, 1)), 0) * 1009
      + coalesce(unicode(substr(coalesce({ordering_key}, hex({id})), -3, 1)), 0) * 30011
      + coalesce(unicode(substr(coalesce({ordering_key}, hex({id})), -4, 1)), 0) * 900001
      + coalesce(unicode(substr(coalesce({ordering_key}, hex({id})), -5, 1)), 0) * 27000011
      + coalesce(unicode(substr(coalesce({ordering_key}, hex({id})), -6, 1)), 0) * 810000017)
      % 2147483647 * 2654435761) >> 24) % {=partition_count}) VIRTUAL
) STRICT;

CREATE UNIQUE INDEX {name:uniq_id} ON {outbox} ({id}, {target});

{?sequence_number}CREATE UNIQUE INDEX {name:uniq_aggregate_sequence}
  ON {outbox} ({target}, {aggregate_type}, {aggregate_id}, {sequence_number})
  WHERE {sequence_number} IS NOT NULL;{/}

CREATE INDEX {name:ready} ON {outbox} ({target}, {partition_no}, {priority} DESC, {seq})
  WHERE {status} = 0;

CREATE INDEX {name:exceptions} ON {outbox} ({target}, {partition_no}, {ordering_key}, {status})
  WHERE {status} NOT IN (0, 1);

CREATE INDEX {name:cleanup} ON {outbox} ({status}, {published_at}) WHERE {status} IN (1, -1);

CREATE TABLE {workers} (
  id BLOB PRIMARY KEY NOT NULL,
  target TEXT NOT NULL,
  hostname TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  heartbeat_until INTEGER NOT NULL,
  published INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE {partitions} (
  target TEXT NOT NULL,
  partition_no INTEGER NOT NULL,
  lease_owner BLOB,
  lease_until INTEGER NOT NULL DEFAULT 0,
  lease_epoch INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (target, partition_no)
) STRICT, WITHOUT ROWID;

CREATE TABLE {throughput} (
  minute INTEGER NOT NULL,
  target TEXT NOT NULL,
  published INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (minute, target)
) STRICT, WITHOUT ROWID;

CREATE TABLE {meta} (
  name TEXT PRIMARY KEY NOT NULL,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO {meta} (name, value) VALUES ('schema_version', {=schema_version}), ('partition_count', {=partition_count});
