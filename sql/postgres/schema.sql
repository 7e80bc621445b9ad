-- The outbox on PostgreSQL. Nothing here needs our library: a plain INSERT of
-- aggregate_type, event_type and payload is a message; outbox_push() does it by name.
--
-- setup runs tables (or parts_tables and what follows it in parts.sql), indexes, functions, view and notify, in this order
-- and in one transaction.

-- name: partition_of
-- lane * count + hash of the key: lane 0 for priority 0, 1 above, 2 below. Without a key, spread by id.
((CASE WHEN {priority} > 0 THEN {=partition_count} WHEN {priority} < 0 THEN 2 * {=partition_count} ELSE 0 END
  + (hashtextextended(coalesce({partition_key|NULL}, {aggregate_type} || ':' || {aggregate_id}, {id}::text), 0) & 9223372036854775807) % {=partition_count})::smallint)

-- name: log_columns
-- The log. A row never changes. txid stands first: its default runs before seq is drawn, so that a transaction that
-- draws a number is open in every snapshot until it ends. seq counts inserts: CACHE 1, so that what was inserted later has a
-- higher number. payload is json, not jsonb: its text is sent as it was written. ordering_key and partition_no are
-- computed here for every writer.
  {txid} xid8 NOT NULL DEFAULT pg_current_xact_id(),
  {seq} bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
  {?+string_id}{id} text NOT NULL DEFAULT gen_random_uuid()::text CHECK ({id} ~ '^[0-9a-f]{{8}-[0-9a-f]{{4}-[0-9a-f]{{4}-[0-9a-f]{{4}-[0-9a-f]{{12}$'),{/}
  {!+string_id}{id} uuid NOT NULL DEFAULT gen_random_uuid(),{/}
  {aggregate_type} text NOT NULL CHECK (length({aggregate_type}) BETWEEN 1 AND 255),
  {aggregate_id} text CHECK (length({aggregate_id}) <= 255),
  {event_type} text NOT NULL CHECK (length({event_type}) BETWEEN 1 AND 255),
  {?revision}{revision} integer NOT NULL DEFAULT 1,{/}
  {?sequence_number}{sequence_number} bigint,{/}
  {?+binary_payload}{payload} bytea,{/}
  {!+binary_payload}{payload} json,{/}
  {?headers}{headers} json,{/}
  {?snapshot}{snapshot} json,{/}
  {?correlation_id}{correlation_id} text,{/}
  {?causation_id}{causation_id} text,{/}
  {?partition_key}{partition_key} text CHECK (length({partition_key}) <= 255),{/}
  {priority} smallint NOT NULL DEFAULT 0,
  {target} text NOT NULL DEFAULT 'default' COLLATE "C",
  {?occurred_at}{occurred_at} timestamptz NOT NULL DEFAULT clock_timestamp(),{/}
  {created_at} timestamptz NOT NULL DEFAULT clock_timestamp(),
  {available_at} timestamptz NOT NULL DEFAULT 'epoch',
  {ordering_key} text GENERATED ALWAYS AS (coalesce({partition_key|NULL}, {aggregate_type} || ':' || {aggregate_id})) STORED,
  {partition_no} smallint NOT NULL GENERATED ALWAYS AS {>partition_of} STORED

-- name: tables
CREATE TABLE IF NOT EXISTS {outbox} (
{>log_columns}
) {>log_storage};
{>companions}

-- name: log_storage
WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05)

-- name: companions
CREATE TABLE IF NOT EXISTS {readers} (
  name text PRIMARY KEY COLLATE "C",
  target text NOT NULL COLLATE "C",
  filter text NOT NULL DEFAULT '',
  temporary boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL
);

-- The journal: the newest row of a partition is the reader's progress, and its primary key is the fence. Inserted only:
-- an updated row would grow a chain of versions under an old snapshot, which every settle walks.
CREATE TABLE IF NOT EXISTS {batches} (
  batch bigint NOT NULL,
  pos bigint NOT NULL,
  late_pos bigint NOT NULL DEFAULT 0,
  epoch bigint NOT NULL,
  at timestamptz NOT NULL,
  owner uuid,
  published integer NOT NULL DEFAULT 0,
  failed integer NOT NULL DEFAULT 0,
  partition_no smallint NOT NULL,
  reader text NOT NULL COLLATE "C",
  seen pg_snapshot NOT NULL,
  late_seen pg_snapshot,
  PRIMARY KEY (reader, partition_no, batch)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2);

CREATE TABLE IF NOT EXISTS {exceptions} (
  seq bigint NOT NULL,
  due timestamptz,
  since timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  partition_no smallint NOT NULL,
  state smallint NOT NULL,
  reader text NOT NULL COLLATE "C",
  queue text COLLATE "C",
  last_error text,
  PRIMARY KEY (reader, partition_no, seq)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE IF NOT EXISTS {leases} (
  reader text NOT NULL COLLATE "C",
  partition_no smallint NOT NULL,
  lease_owner uuid,
  lease_until timestamptz NOT NULL DEFAULT 'epoch',
  lease_epoch bigint NOT NULL DEFAULT 0,
  updated_at timestamptz NOT NULL DEFAULT 'epoch',
  PRIMARY KEY (reader, partition_no)
) WITH (fillfactor = 50);

-- session: the key of the advisory lock that the worker's connection holds; NULL: it holds none.
CREATE TABLE IF NOT EXISTS {workers} (
  id uuid PRIMARY KEY,
  reader text NOT NULL COLLATE "C",
  hostname text NOT NULL,
  pid integer NOT NULL,
  started_at timestamptz NOT NULL,
  heartbeat_until timestamptz NOT NULL,
  published bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  session bigint,
  state text NOT NULL DEFAULT ''
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS {throughput} (
  minute timestamptz NOT NULL,
  reader text NOT NULL COLLATE "C",
  worker uuid NOT NULL,
  published bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (minute, reader, worker)
) WITH (fillfactor = 50);

-- What people did. plan names one decision: a verb that runs in pieces counts up one row.
CREATE TABLE IF NOT EXISTS {audit} (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL,
  messages bigint NOT NULL DEFAULT 0,
  who text NOT NULL,
  origin text NOT NULL,
  verb text NOT NULL,
  reader text NOT NULL DEFAULT '' COLLATE "C",
  filter text NOT NULL DEFAULT '',
  plan text NOT NULL UNIQUE COLLATE "C",
  reason text NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS {name:audit_at} ON {audit} (at);

CREATE TABLE IF NOT EXISTS {meta} (
  name text PRIMARY KEY,
  value bigint NOT NULL
);

-- Transaction ids mean something in the cluster alone that drew them.
INSERT INTO {meta} (name, value)
SELECT 'schema_version', {=schema_version} UNION ALL SELECT 'partition_count', {=partition_count}
 UNION ALL SELECT 'system_identifier', system_identifier FROM pg_control_system()
    ON CONFLICT DO NOTHING;

-- name: add_state
-- To a table that was made before it.
ALTER TABLE {workers} ADD COLUMN state text NOT NULL DEFAULT '';

-- name: indexes
CREATE UNIQUE INDEX IF NOT EXISTS {name:uniq_id} ON {outbox} ({id}, {target});

{?sequence_number}CREATE UNIQUE INDEX IF NOT EXISTS {name:uniq_aggregate_sequence}
  ON {outbox} ({target}, {aggregate_type}, {aggregate_id}, {sequence_number})
  WHERE {sequence_number} IS NOT NULL;{/}

{>other_indexes}

-- name: other_indexes
-- What committed after a snapshot.
CREATE INDEX IF NOT EXISTS {name:late} ON {outbox} ({txid}, {seq});

CREATE INDEX IF NOT EXISTS {name:exceptions_due} ON {exceptions} (reader, partition_no, due) WHERE due IS NOT NULL;

CREATE INDEX IF NOT EXISTS {name:exceptions_queue} ON {exceptions} (reader, partition_no, queue, seq) WHERE queue IS NOT NULL;

-- name: functions
-- A message from any language: SELECT outbox_push('order', '1042', 'OrderPlaced', '{{"total": 5}').
-- Names in it are bound now, whatever search_path the caller has. It returns the id without RETURNING,
-- for which the caller would need the right to read.
CREATE OR REPLACE FUNCTION {fn:push}(
  aggregate_type text, aggregate_id text, event_type text,
  {?+binary_payload}payload bytea,{/}{!+binary_payload}payload json,{/}
  headers json DEFAULT NULL, id uuid DEFAULT NULL, partition_key text DEFAULT NULL,
  target text DEFAULT 'default', priority integer DEFAULT 0, sequence_number bigint DEFAULT NULL,
  correlation_id text DEFAULT NULL, causation_id text DEFAULT NULL, delay interval DEFAULT NULL
) RETURNS uuid LANGUAGE sql
BEGIN ATOMIC
  WITH message AS MATERIALIZED (SELECT coalesce($6, gen_random_uuid()) AS id), stored AS (
    INSERT INTO {outbox} ({id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {target}, {priority}, {available_at}
      {?headers}, {headers}{/}
      {?partition_key}, {partition_key}{/}
      {?sequence_number}, {sequence_number}{/}
      {?correlation_id}, {correlation_id}{/}
      {?causation_id}, {causation_id}{/})
    SELECT message.id{?+string_id}::text{/}, $1, $2, $3, $4, $8, $9, coalesce(clock_timestamp() + $13, 'epoch')
      {?headers}, $5{/}
      {?partition_key}, $7{/}
      {?sequence_number}, $10{/}
      {?correlation_id}, $11{/}
      {?causation_id}, $12{/} FROM message)
  SELECT message.id FROM message;
END;

-- name: truncated
-- An exception of a row that is gone would be taken for one of the row that gets its number next.
SELECT set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''), 'pg_temp'), true);
CREATE OR REPLACE FUNCTION {fn:truncated}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $truncated$
BEGIN
  DELETE FROM {exceptions};
  RETURN NULL;
END
$truncated$;
REVOKE ALL ON FUNCTION {fn:truncated}() FROM PUBLIC;
CREATE OR REPLACE TRIGGER {name:truncated} AFTER TRUNCATE ON {outbox} FOR EACH STATEMENT EXECUTE FUNCTION {fn:truncated}();

-- name: view
-- One row for each message and reader of its target, for people: what `list` shows.
CREATE OR REPLACE VIEW {fn:messages} AS
SELECT r.name AS reader, m.{seq} AS seq, m.{id} AS id, m.{aggregate_type} AS aggregate_type, m.{aggregate_id} AS aggregate_id,
       m.{event_type} AS event_type, m.{ordering_key} AS key, m.{target} AS target, m.{partition_no} AS partition_no, m.{priority} AS priority,
       m.{created_at} AS created_at,
       CASE {>view_of} WHEN {=view_pending} THEN 'pending' WHEN {=view_delayed} THEN 'delayed' WHEN {=view_failed} THEN 'failed'
         WHEN {=view_parked} THEN 'parked' WHEN {=view_dead} THEN 'dead' WHEN {=view_discarded} THEN 'discarded' ELSE 'published' END AS state,
       coalesce(e.attempts, 0) AS attempts, e.due, {>published_at} AS published_at, e.last_error
  FROM {readers} AS r JOIN {outbox} AS m ON m.{target} = r.target
  LEFT JOIN {exceptions} AS e ON e.reader = r.name AND e.partition_no = m.{partition_no} AND e.seq = m.{seq}
  LEFT JOIN LATERAL (SELECT * FROM {batches} AS n WHERE n.reader = r.name AND n.partition_no = m.{partition_no}
                      ORDER BY n.batch DESC LIMIT 1) AS b ON true;

-- name: notify_on
-- Wakes the relay at each commit that inserted something.
CREATE OR REPLACE FUNCTION {fn:wake}() RETURNS trigger LANGUAGE plpgsql AS $wake$
BEGIN
  PERFORM pg_catalog.pg_notify(TG_TABLE_NAME, '');
  RETURN NULL;
END
$wake$;

CREATE OR REPLACE TRIGGER {name:wake} AFTER INSERT ON {outbox} FOR EACH STATEMENT EXECUTE FUNCTION {fn:wake}();

-- name: notify_off
DROP TRIGGER IF EXISTS {name:wake} ON {outbox};

-- name: repartition
-- A stored column is computed anew by replacing it. The view names it.
DROP VIEW IF EXISTS {fn:messages};
ALTER TABLE {outbox} DROP COLUMN {partition_no};
ALTER TABLE {outbox} ADD COLUMN {partition_no} smallint NOT NULL GENERATED ALWAYS AS {>partition_of} STORED;

-- name: print_begin
-- Around the others, for psql.
BEGIN;

-- name: print_end
COMMIT;

-- name: setup_lock
-- One setup at a time in a database, until the end of the transaction.
SELECT pg_advisory_xact_lock(7310027914620174695)

-- name: object
-- $1 is a quoted name, with its schema or found by search_path; $2 what we must be allowed to do,
-- of which what we are not comes back.
SELECT c.relkind::text, c.oid::bigint,
       (SELECT string_agg(p, ', ') FROM unnest($2::text[]) AS p WHERE NOT has_table_privilege(c.oid, p))
  FROM pg_class AS c WHERE c.oid = to_regclass($1)

-- name: columns
-- Of the table $1; the last: its identity or serial sequence belongs to it, and the cache of that.
SELECT a.attname::text, format_type(a.atttypid, NULL), a.attgenerated <> '',
       coalesce((SELECT s.seqcache FROM pg_sequence AS s
                  JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = s.seqrelid
                 WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid
                   AND d.refobjsubid = a.attnum AND d.deptype IN ('a', 'i') LIMIT 1), 0)
  FROM pg_attribute AS a
 WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped

-- name: table_indexes
-- Of the tables $1 and $2, those that can be used, and whether our trigger is there.
-- A partitioned log has its unique indexes on the partitions: of these the one that takes what fits nowhere is named.
SELECT c.relname::text FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
 WHERE (i.indrelid IN ($1::bigint::oid, $2::bigint::oid)
        OR i.indrelid = (SELECT p.partdefid FROM pg_partitioned_table AS p WHERE p.partrelid = $1::bigint::oid)) AND i.indisvalid
UNION ALL
SELECT '(trigger)' FROM pg_trigger
 WHERE tgrelid = $1::bigint::oid AND tgenabled <> 'D' AND NOT tgisinternal AND tgname = (SELECT relname || '_wake' FROM pg_class WHERE oid = $1::bigint::oid)

-- name: meta_get
SELECT name, value FROM {meta}

-- name: meta_set
UPDATE {meta} SET value = $2::bigint WHERE name = $1
