-- Readers: where they begin, and what becomes of them.

-- name: place
-- Progress at a place. $2 target, $3: 0 the beginning, 1 the end, 2 a time ($4 us since 1970), 3 the number $4. Delivered is what the
-- snapshot shows up to pos: what is open now comes later, as late.
SELECT CASE $3::bigint WHEN 0 THEN 0 WHEN 3 THEN $4::bigint - 1
         WHEN 2 THEN coalesce((SELECT m.{seq} - 1 FROM {outbox} AS m
           WHERE (m.{target} = $2) IS TRUE AND m.{created_at} >= timestamptz 'epoch' + $4::bigint * interval '1 microsecond'
           ORDER BY m.{seq} LIMIT 1), l.pos) ELSE l.pos END AS pos, pg_current_snapshot() AS seen
  FROM (SELECT greatest((SELECT m.{seq} FROM {outbox} AS m ORDER BY m.{seq} DESC LIMIT 1),
          (SELECT CASE WHEN has_sequence_privilege(q, 'SELECT, USAGE') THEN pg_sequence_last_value(q) END
             FROM (SELECT pg_get_serial_sequence('{outbox}', replace('{seq}', '"', ''))::regclass) AS s (q)), 0) AS pos) AS l

-- name: lock_log
-- So that no resize comes between.
LOCK TABLE {outbox} IN ACCESS SHARE MODE

-- name: all_partitions
generate_series(0, {=lanes} * (SELECT value FROM {meta} WHERE name = 'partition_count') - 1)

-- name: reader_make
-- $1 name, $2 target, $3 and $4 as place has them, $5 filter, $6 temporary.
WITH "#made" AS (
  INSERT INTO {readers} (name, target, filter, temporary, created_at)
  SELECT $1, $2, $5, $6::bigint = 1, clock_timestamp() ON CONFLICT DO NOTHING RETURNING name
)
INSERT INTO {batches} (reader, partition_no, batch, epoch, at, pos, seen)
SELECT r.name, i::smallint, 0, 0, clock_timestamp(), p.pos, p.seen
  FROM "#made" AS r CROSS JOIN LATERAL ({>place}) AS p CROSS JOIN {>all_partitions} AS i

-- name: reader_target
SELECT target FROM {readers} WHERE name = $1

-- name: readers
SELECT r.name, r.target, r.filter, r.temporary::int, r.created_at, p.low, p.high, p.at,
       (SELECT count(*) FROM {workers} AS w WHERE w.reader = r.name AND w.heartbeat_until > (SELECT clock_timestamp())),
       (SELECT count(*) FROM (SELECT 1 FROM {exceptions} AS e WHERE e.reader = r.name AND e.state NOT IN ({=done}, {=discarded}) LIMIT 10001) AS e)
  FROM {readers} AS r CROSS JOIN LATERAL (
    SELECT min(n.pos) AS low, max(n.pos) AS high, max(n.at) AS at FROM {>all_partitions} AS i CROSS JOIN LATERAL (
      SELECT b.pos, b.at FROM {batches} AS b WHERE b.reader = r.name AND b.partition_no = i::smallint ORDER BY b.batch DESC LIMIT 1) AS n) AS p
 ORDER BY r.name

-- name: seek_leases
UPDATE {leases} SET lease_owner = NULL, lease_until = 'epoch', lease_epoch = lease_epoch + 1, updated_at = clock_timestamp() WHERE reader = $1

-- name: seek
-- $1 to $4 as reader_make. Returns what is missing: a number that someone else took at this moment.
WITH "#made" AS (
  INSERT INTO {batches} (reader, partition_no, batch, epoch, at, pos, seen)
  SELECT $1, i::smallint, n.batch + 1, l.lease_epoch, clock_timestamp(), p.pos, p.seen
    FROM ({>place}) AS p CROSS JOIN {>all_partitions} AS i
    JOIN {leases} AS l ON l.reader = $1 AND l.partition_no = i % (SELECT value FROM {meta} WHERE name = 'partition_count')
   CROSS JOIN LATERAL (SELECT b.batch FROM {batches} AS b WHERE b.reader = $1 AND b.partition_no = i::smallint ORDER BY b.batch DESC LIMIT 1) AS n
      ON CONFLICT DO NOTHING RETURNING 1
)
SELECT (SELECT count(*) FROM {>all_partitions}) - (SELECT count(*) FROM "#made")

-- name: seek_journal
-- Retention would go by what it had before.
DELETE FROM {batches} AS d
 WHERE d.reader = $1 AND d.batch < (SELECT b.batch FROM {batches} AS b WHERE b.reader = $1 AND b.partition_no = d.partition_no ORDER BY b.batch DESC LIMIT 1)

-- name: seek_exceptions
-- Those of rows that are read again.
DELETE FROM {exceptions} AS e
 WHERE e.reader = $1 AND e.seq > (SELECT b.pos FROM {batches} AS b WHERE b.reader = $1 AND b.partition_no = e.partition_no ORDER BY b.batch DESC LIMIT 1)

-- name: reader_busy
SELECT (SELECT count(*) FROM {readers} WHERE name = $1),
       (SELECT count(*) FROM {workers} WHERE reader = $1 AND heartbeat_until > (SELECT clock_timestamp()))

-- name: reader_remove
WITH "#e" AS (DELETE FROM {exceptions} WHERE reader = $1), "#b" AS (DELETE FROM {batches} WHERE reader = $1),
     "#l" AS (DELETE FROM {leases} WHERE reader = $1), "#w" AS (DELETE FROM {workers} WHERE reader = $1)
DELETE FROM {readers} WHERE name = $1
