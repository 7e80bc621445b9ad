-- Readers: where they begin, and what becomes of them.

-- name: place
-- Progress at a place. :start 0 the beginning, 1 the end, 2 a time (:at us since 1970), 3 the number :at. Delivered is what the
-- snapshot shows up to pos: what is open now comes later, as late.
SELECT CASE :start::bigint WHEN 0 THEN 0 WHEN 3 THEN :at::bigint - 1
         WHEN 2 THEN coalesce((SELECT m.{seq} - 1 FROM {outbox} AS m
           WHERE (m.{target} = :target) IS TRUE AND m.{created_at} >= timestamptz 'epoch' + :at::bigint * interval '1 microsecond'
           ORDER BY m.{seq} LIMIT 1), l.pos) ELSE l.pos END, l.seen::text
  FROM (SELECT greatest((SELECT m.{seq} FROM {outbox} AS m ORDER BY m.{seq} DESC LIMIT 1),
          (SELECT CASE WHEN has_sequence_privilege(q, 'SELECT, USAGE') THEN pg_sequence_last_value(q) END
             FROM (SELECT pg_get_serial_sequence('{outbox}', replace('{seq}', '"', ''))::regclass) AS s (q)), 0) AS pos, pg_current_snapshot() AS seen) AS l

-- name: lock_log
-- So that no resize comes between.
LOCK TABLE {outbox} IN ACCESS SHARE MODE

-- name: all_partitions
generate_series(0, {=lanes} * (SELECT value FROM {meta} WHERE name = 'partition_count') - 1)

-- name: reader_make
INSERT INTO {readers} (name, target, filter, temporary, created_at)
SELECT :reader, :target, :filter, :temporary::bigint = 1, clock_timestamp() ON CONFLICT DO NOTHING

-- name: reader_begin
-- For a reader without a journal.
INSERT INTO {batches} (reader, partition_no, batch, epoch, at, pos, seen)
SELECT :reader, i::smallint, 0, 0, clock_timestamp(), :pos::bigint, :seen::text::pg_snapshot FROM {>all_partitions} AS i
 WHERE NOT EXISTS (SELECT 1 FROM {batches} AS b WHERE b.reader = :reader)

-- name: reader_target
SELECT target FROM {readers} WHERE name = :reader

-- name: readers
SELECT r.name, r.target, r.filter, r.temporary::int, r.created_at, p.low, p.high, p.at,
       (SELECT count(*) FROM {workers} AS w WHERE w.reader = r.name AND w.heartbeat_until > (SELECT clock_timestamp())),
       (SELECT count(*) FROM (SELECT 1 FROM {exceptions} AS e WHERE e.reader = r.name AND e.state NOT IN ({=done}, {=discarded}) LIMIT 10001) AS e), p.low + 1
  FROM {readers} AS r CROSS JOIN LATERAL (
    SELECT min(n.pos) AS low, max(n.pos) AS high, max(n.at) AS at FROM {>all_partitions} AS i CROSS JOIN LATERAL (
      SELECT b.pos, b.at FROM {batches} AS b WHERE b.reader = r.name AND b.partition_no = i::smallint ORDER BY b.batch DESC LIMIT 1) AS n) AS p
 ORDER BY r.name

-- name: seek
-- Returns what is missing: a number that someone else took at this moment.
WITH "#made" AS (
  INSERT INTO {batches} (reader, partition_no, batch, epoch, at, pos, seen)
  SELECT :reader, i::smallint, n.batch + 1, l.lease_epoch, clock_timestamp(), :pos::bigint, :seen::text::pg_snapshot
    FROM {>all_partitions} AS i
    JOIN {leases} AS l ON l.reader = :reader AND l.partition_no = i % (SELECT value FROM {meta} WHERE name = 'partition_count')
   CROSS JOIN LATERAL (SELECT b.batch FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = i::smallint ORDER BY b.batch DESC LIMIT 1) AS n
      ON CONFLICT DO NOTHING RETURNING 1
)
SELECT (SELECT count(*) FROM {>all_partitions}) - (SELECT count(*) FROM "#made")

-- name: reader_lock

-- name: seek_forget
-- Retention would go by what it had before.
DELETE FROM {batches} AS d
 WHERE d.reader = :reader AND d.batch < (SELECT b.batch FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = d.partition_no ORDER BY b.batch DESC LIMIT 1)

-- name: seek_exceptions
-- Those of rows that are read again.
DELETE FROM {exceptions} AS e
 WHERE e.reader = :reader AND e.seq > (SELECT b.pos FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = e.partition_no ORDER BY b.batch DESC LIMIT 1)

-- name: reader_busy
-- Its workers; no row: there is no such reader.
SELECT (SELECT count(*) FROM {workers} WHERE reader = :reader AND heartbeat_until > (SELECT clock_timestamp())) FROM {readers} WHERE name = :reader

-- name: remove_leases
DELETE FROM {leases} WHERE reader = :reader

-- name: remove_workers
DELETE FROM {workers} WHERE reader = :reader

-- name: remove_exceptions
DELETE FROM {exceptions} WHERE reader = :reader

-- name: remove_batches
DELETE FROM {batches} WHERE reader = :reader

-- name: remove_reader
DELETE FROM {readers} WHERE name = :reader

-- name: reader_refilter
UPDATE {readers} SET filter = :filter WHERE name = :reader
