-- A log that is partitioned by seq: tables that hold a range of numbers each, and one (DEFAULT) for what fits into none of
-- them, so that an insert is never refused. Retention empties and drops whole ones.
--
-- What changes tables are functions with the rights of whoever made them: the relay needs none but to run them. None of
-- them waits long for a lock, and without it they change nothing.

-- name: parts_tables
CREATE TABLE IF NOT EXISTS {outbox} (
{>log_columns}
) PARTITION BY RANGE ({seq});
{>companions}
INSERT INTO {meta} (name, value) VALUES ('partition_rows', {=partition_rows}) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS {fn:default} PARTITION OF {outbox} DEFAULT {>log_storage};

-- name: parts_indexes
-- A unique index over all of them would have to hold seq. So each has its own: what is repeated is refused within one.
CREATE UNIQUE INDEX IF NOT EXISTS {name:uniq_id} ON {fn:default} ({id}, {target});
{?sequence_number}CREATE UNIQUE INDEX IF NOT EXISTS {name:uniq_aggregate_sequence}
  ON {fn:default} ({target}, {aggregate_type}, {aggregate_id}, {sequence_number})
  WHERE {sequence_number} IS NOT NULL;{/}
{>other_indexes}

-- name: leaves
-- The tables of the log: their names, and the numbers from low up to, but without, high; NULL for any other kind of bound.
SELECT c.oid AS "#oid", c.relname AS "#name", c.relkind AS "#kind", (b.x)[1]::bigint AS "#low", (b.x)[2]::bigint AS "#high"
  FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
  LEFT JOIN LATERAL regexp_match(pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM \(''(-?[0-9]+)''\) TO \(''(-?[0-9]+)''\)$') AS b (x) ON true
 WHERE i.inhparent = '{outbox}'::regclass

-- name: range_excepted
-- Does an exception of any reader name a number of the range?
EXISTS (SELECT 1 FROM {readers} AS r CROSS JOIN {>all_partitions} AS i CROSS JOIN LATERAL (
  SELECT 1 FROM {exceptions} AS e WHERE e.reader = r.name AND e.partition_no = i::smallint AND e.seq >= $1::bigint AND e.seq < $2::bigint LIMIT 1) AS e)

-- name: parts_functions
-- part_add: one more table. It is made first and attached then, which keeps nobody from writing. An index of it has the name
-- by which a duplicate is told from others. Writers may have come that far meanwhile: then their rows stand where all else does, and
-- the next time it is made further ahead.
-- part_empty: nobody can commit a row into a table that is locked. Is there still none of a transaction that a reader may not
-- have seen, and no exception, all of it may go. Who has drawn a number of it and waits for the lock inserts it afterwards.
-- part_drop: those that are empty. Nobody holds a number while the whole log is locked.
SELECT set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''), 'pg_temp'), true);
CREATE OR REPLACE FUNCTION {fn:part_add}(low bigint, high bigint) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT SET lock_timeout = '100ms' AS $part_add$
DECLARE
  place text := (SELECT quote_ident(n.nspname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = '{outbox}'::regclass);
  leaf text := replace('{name:p}', '"', '') || low;
BEGIN
  IF to_regclass(place || '.' || quote_ident(leaf)) IS NOT NULL THEN
    RAISE duplicate_table USING MESSAGE = format('table %I is in the way of a new partition: rename it', leaf);
  END IF;
  EXECUTE format('CREATE TABLE %s.%I (LIKE {outbox} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING STORAGE INCLUDING COMPRESSION) {>log_storage}', place, leaf);
  EXECUTE format('CREATE UNIQUE INDEX %I ON %s.%I ({id}, {target})', replace('{name:id_p}', '"', '') || low, place, leaf);
  {?sequence_number}EXECUTE format('CREATE UNIQUE INDEX %I ON %s.%I ({target}, {aggregate_type}, {aggregate_id}, {sequence_number}) WHERE {sequence_number} IS NOT NULL',
    replace('{name:sq_p}', '"', '') || low, place, leaf);{/}
  EXECUTE format('ALTER TABLE {outbox} ATTACH PARTITION %s.%I FOR VALUES FROM (%s) TO (%s)', place, leaf, low, high);
  RETURN true;
EXCEPTION WHEN lock_not_available OR check_violation THEN
  RETURN false;
END
$part_add$;
CREATE OR REPLACE FUNCTION {fn:part_empty}(low bigint, high bigint, txid xid8) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT SET lock_timeout = '100ms' AS $part_empty$
DECLARE
  leaf regclass := (SELECT l."#oid" FROM ({>leaves}) AS l WHERE l."#low" = $1 AND l."#high" = $2);
  held boolean;
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', leaf);
  EXECUTE format('SELECT EXISTS (SELECT 1 FROM %s AS m WHERE m.{txid} >= $1)', leaf) INTO held USING $3;
  IF held OR {>range_excepted} THEN
    RETURN false;
  END IF;
  EXECUTE format('TRUNCATE TABLE %s', leaf);
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END
$part_empty$;
CREATE OR REPLACE FUNCTION {fn:part_drop}(upto bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT SET lock_timeout = '100ms' AS $part_drop$
DECLARE
  leaf regclass;
  held boolean;
  dropped bigint := 0;
BEGIN
  LOCK TABLE ONLY {outbox} IN ACCESS EXCLUSIVE MODE;
  FOREACH leaf IN ARRAY ARRAY(SELECT l."#oid"::regclass FROM ({>leaves}) AS l WHERE l."#high" <= $1 AND pg_relation_size(l."#oid") = 0) LOOP
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', leaf);
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %s)', leaf) INTO held;
    IF NOT held THEN
      EXECUTE format('DROP TABLE %s', leaf);
      dropped := dropped + 1;
    END IF;
  END LOOP;
  RETURN dropped;
EXCEPTION WHEN lock_not_available THEN
  RETURN 0;
END
$part_drop$;
REVOKE ALL ON FUNCTION {fn:part_add}(bigint, bigint), {fn:part_empty}(bigint, bigint, xid8), {fn:part_drop}(bigint) FROM PUBLIC;

-- name: parts_first
-- The first tables of a new log.
SELECT {fn:part_add}(n * {=partition_rows}, (n + 1) * {=partition_rows}) FROM generate_series(0::bigint, {=parts_first} - 1) AS n
 WHERE NOT EXISTS (SELECT 1 FROM ({>leaves}) AS l WHERE l."#low" IS NOT NULL);

-- name: parts_kind
-- How the table $1 is partitioned: by a range of seq and nothing else?
SELECT (p.partstrat = 'r' AND p.partnatts = 1 AND a.attname IS NOT DISTINCT FROM replace('{seq}', '"', ''))::int
  FROM pg_partitioned_table AS p LEFT JOIN pg_attribute AS a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
 WHERE p.partrelid = $1::bigint::oid

-- name: parts_list
-- The tables, from the lowest number on. The last columns: whether it is partitioned itself, the one for all else, and whether it has anything.
SELECT l."#name"::text, l."#low", l."#high", (l."#kind" <> 'r')::int, (l."#oid" = p.partdefid)::int, (pg_relation_size(l."#oid") > 0)::int
  FROM ({>leaves}) AS l JOIN pg_partitioned_table AS p ON p.partrelid = '{outbox}'::regclass
 ORDER BY (l."#low", l."#name")

-- name: parts_state
-- Rows of a new partition, 0 where the log is not partitioned; and the last number: what was drawn, or is there.
SELECT coalesce((SELECT value FROM {meta} WHERE name = 'partition_rows'), 0),
       greatest(coalesce(CASE WHEN has_sequence_privilege(s.oid, 'SELECT, USAGE') THEN pg_sequence_last_value(s.oid) END, 0),
                coalesce((SELECT m.{seq} FROM {outbox} AS m ORDER BY m.{seq} DESC LIMIT 1), 0))
  FROM (SELECT pg_get_serial_sequence('{outbox}', replace('{seq}', '"', ''))::regclass::oid AS oid) AS s

-- name: part_make
SELECT {fn:part_add}($1::bigint, $2::bigint)::int

-- name: part_held
-- The numbers from $1 up to $2: is one of them of a transaction not below $3, or has an exception? Both are found by an index.
SELECT (EXISTS (SELECT 1 FROM {outbox} AS m WHERE m.{seq} >= $1::bigint AND m.{seq} < $2::bigint AND m.{txid} >= $3::text::xid8)
        OR {>range_excepted})::int

-- name: part_count
-- Their rows, and whether nobody reads one of them. All that is there was committed before: no lock is needed.
SELECT count(*), coalesce(bool_or(m.{target} <> ALL (ARRAY(SELECT r.target FROM {readers} AS r))), false)::int
  FROM {outbox} AS m WHERE m.{seq} >= $1::bigint AND m.{seq} < $2::bigint

-- name: part_clear
SELECT {fn:part_empty}($1::bigint, $2::bigint, $3::text::xid8)::int

-- name: part_remove
SELECT {fn:part_drop}($1::bigint)

-- name: retain_default
-- As retain_rows, of what fits into no partition.
WITH "#old" AS MATERIALIZED (
  SELECT m.{seq} AS seq FROM {fn:default} AS m
   WHERE m.{seq} <= $1::bigint AND (m.{txid} < $2::text::xid8) IS TRUE AND m.{target} = ANY (ARRAY(SELECT r.target FROM {readers} AS r))
     AND (SELECT 1 FROM {exceptions} AS e WHERE e.reader = ANY (ARRAY(SELECT r.name FROM {readers} AS r))
             AND e.partition_no = m.{partition_no} AND e.seq = m.{seq} LIMIT 1) IS NULL
   ORDER BY m.{seq} LIMIT $3::bigint + 1
), "#gone" AS (
  DELETE FROM {fn:default} WHERE {seq} IN (SELECT seq FROM "#old" LIMIT $3::bigint) RETURNING 1
)
SELECT (SELECT count(*) FROM "#gone"), (SELECT count(*) FROM "#old")
