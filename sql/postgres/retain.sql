-- Removing what nobody needs any more, and changing the partitions.

-- name: retain_lock
SELECT pg_try_advisory_xact_lock(7310027914620174696)::int

-- name: retain_bounds
-- $1 us ago. Of each partition of each reader the progress that it had then, none if it is younger; and the one that it has
-- now: a reader that was moved back needs what lies after its new place.
SELECT n.pos, n.seen::text
  FROM {readers} AS r CROSS JOIN {>all_partitions} AS i LEFT JOIN LATERAL (
    SELECT b.at, b.pos, b.seen FROM {batches} AS b
     WHERE b.reader = r.name AND b.partition_no = i::smallint AND b.at <= (SELECT clock_timestamp()) - $1::bigint * interval '1 microsecond'
     ORDER BY b.batch DESC LIMIT 1) AS n ON true
UNION ALL
SELECT n.pos, n.seen::text
  FROM {readers} AS r CROSS JOIN {>all_partitions} AS i CROSS JOIN LATERAL (
    SELECT b.pos, b.seen FROM {batches} AS b WHERE b.reader = r.name AND b.partition_no = i::smallint ORDER BY b.batch DESC LIMIT 1) AS n

-- name: retain_rows
-- Up to the seq $1, of transactions below $2, $3 rows. What nobody reads waits for its reader.
WITH "#old" AS MATERIALIZED (
  SELECT m.{seq} AS seq FROM {outbox} AS m
   WHERE m.{seq} <= $1::bigint AND (m.{txid} < $2::text::xid8) IS TRUE AND m.{target} = ANY (ARRAY(SELECT r.target FROM {readers} AS r))
     AND (SELECT 1 FROM {exceptions} AS e WHERE e.reader = ANY (ARRAY(SELECT r.name FROM {readers} AS r))
             AND e.partition_no = m.{partition_no} AND e.seq = m.{seq} LIMIT 1) IS NULL
   ORDER BY m.{seq} LIMIT $3::bigint + 1
), "#gone" AS (
  DELETE FROM {outbox} WHERE {seq} IN (SELECT seq FROM "#old" LIMIT $3::bigint) RETURNING 1
)
SELECT (SELECT count(*) FROM "#gone"), (SELECT count(*) FROM "#old")

-- name: retain_these
-- The same, of the numbers $3.
WITH "#old" AS MATERIALIZED (
  SELECT m.{seq} AS seq FROM {outbox} AS m
   WHERE m.{seq} = ANY ($3::bigint[]) AND m.{seq} <= $1::bigint AND (m.{txid} < $2::text::xid8) IS TRUE
     AND m.{target} = ANY (ARRAY(SELECT r.target FROM {readers} AS r))
     AND (SELECT 1 FROM {exceptions} AS e WHERE e.reader = ANY (ARRAY(SELECT r.name FROM {readers} AS r))
             AND e.partition_no = m.{partition_no} AND e.seq = m.{seq} LIMIT 1) IS NULL
), "#gone" AS (
  DELETE FROM {outbox} WHERE {seq} IN (SELECT seq FROM "#old") RETURNING 1
)
SELECT (SELECT count(*) FROM "#gone"), (SELECT count(*) FROM "#old")

-- name: is_covered
-- Does progress say so itself that the row of the exception e is not to be read? Or is there no such row?
coalesce((SELECT (SELECT {>covered} FROM {batches} AS b WHERE b.reader = e.reader AND b.partition_no = e.partition_no ORDER BY b.batch DESC LIMIT 1)
            FROM {outbox} AS m WHERE m.{seq} = e.seq), true)

-- name: retain_dead
-- $1 us. One of a row that is still ahead keeps it from being delivered.
DELETE FROM {exceptions} AS e
 WHERE e.state = {=dead} AND e.since <= (SELECT clock_timestamp()) - $1::bigint * interval '1 microsecond' AND {>is_covered}

-- name: retain_finished
-- What is out or never will be, once progress says so itself; a person may still want to see what was discarded ($1 us).
DELETE FROM {exceptions} AS e
 WHERE (e.state = {=done} OR e.state = {=discarded} AND e.since <= (SELECT clock_timestamp()) - $1::bigint * interval '1 microsecond') AND {>is_covered}

-- name: prune_minutes
-- Of each minute the last row stays, and the newest that is $2 us old. $1 rows of each partition, from the newest on.
DELETE FROM {batches} AS d USING (SELECT clock_timestamp() - $2::bigint * interval '1 microsecond' AS old) AS c CROSS JOIN {readers} AS r CROSS JOIN {>all_partitions} AS i CROSS JOIN LATERAL (
  SELECT n.batch, n.at, lag(n.at) OVER (ORDER BY n.batch DESC) AS newer FROM (
    SELECT b.batch, b.at FROM {batches} AS b WHERE b.reader = r.name AND b.partition_no = i::smallint ORDER BY b.batch DESC LIMIT $1::bigint) AS n) AS n
 WHERE d.reader = r.name AND d.partition_no = i::smallint AND d.batch = n.batch
   AND date_trunc('minute', n.newer, 'UTC') = date_trunc('minute', n.at, 'UTC')
   AND (n.newer <= c.old OR n.at > c.old)

-- name: prune_old
-- Of what is older than $2 us the newest stays: retention goes by it. $1 rows of each partition, from the oldest on.
DELETE FROM {batches} AS d USING {readers} AS r CROSS JOIN {>all_partitions} AS i CROSS JOIN LATERAL (
  SELECT n.batch, lead(n.at) OVER (ORDER BY n.batch) AS newer FROM (
    SELECT b.batch, b.at FROM {batches} AS b WHERE b.reader = r.name AND b.partition_no = i::smallint ORDER BY b.batch LIMIT $1::bigint) AS n) AS n
 WHERE d.reader = r.name AND d.partition_no = i::smallint AND d.batch = n.batch
   AND n.newer <= (SELECT clock_timestamp()) - $2::bigint * interval '1 microsecond'

-- name: retain_audit
DELETE FROM {audit} WHERE at < (SELECT clock_timestamp()) - {=audit_days} * interval '1 day'

-- name: retain_throughput
DELETE FROM {throughput} WHERE minute < (SELECT clock_timestamp()) - interval '25 hours'

-- name: ended_readers
-- Replays that nobody has run for an hour.
SELECT r.name FROM {readers} AS r
 WHERE r.temporary AND r.created_at < (SELECT clock_timestamp()) - interval '1 hour'
   AND NOT EXISTS (SELECT 1 FROM {workers} AS w WHERE w.reader = r.name AND w.heartbeat_until > (SELECT clock_timestamp()) - interval '1 hour')
   AND NOT EXISTS (SELECT 1 FROM {>all_partitions} AS i CROSS JOIN LATERAL (
     SELECT b.at FROM {batches} AS b WHERE b.reader = r.name AND b.partition_no = i::smallint ORDER BY b.batch DESC LIMIT 1) AS n
      WHERE n.at >= (SELECT clock_timestamp()) - interval '1 hour')

-- name: held_by
-- The reader that is furthest behind a message older than $1 us, and when it last moved.
SELECT r.name, p.at FROM {readers} AS r CROSS JOIN LATERAL (
    SELECT n.pos, n.at FROM {>all_partitions} AS i CROSS JOIN LATERAL (
      SELECT b.pos, b.at FROM {batches} AS b WHERE b.reader = r.name AND b.partition_no = i::smallint ORDER BY b.batch DESC LIMIT 1) AS n
     ORDER BY n.pos, n.at LIMIT 1) AS p
 CROSS JOIN LATERAL (SELECT m.{created_at} AS created_at FROM {outbox} AS m
    WHERE m.{seq} > p.pos AND (m.{target} = r.target) IS TRUE ORDER BY m.{seq} LIMIT 1) AS m
 WHERE NOT r.temporary AND m.created_at < (SELECT clock_timestamp()) - $1::bigint * interval '1 microsecond'
 ORDER BY p.pos LIMIT 1

-- name: lock_tables
LOCK TABLE {outbox}, {readers}, {batches}, {exceptions}, {leases} IN ACCESS EXCLUSIVE MODE

-- name: any_lease
SELECT EXISTS (SELECT 1 FROM {leases} WHERE lease_owner IS NOT NULL AND lease_until > (SELECT clock_timestamp()))::int

-- name: resize_begin
-- Nobody writes now, so a snapshot of this moment shows every row of the log. Of each reader: up to where nothing is missing, and numbers
-- above all that were used. What is delivered above that place is noted as done.
CREATE TEMPORARY TABLE {name:resize} ON COMMIT DROP AS
SELECT r.name AS reader, r.target, coalesce(
         (SELECT m.{seq} - 1 FROM {outbox} AS m
           CROSS JOIN LATERAL (SELECT b.* FROM {batches} AS b WHERE b.reader = r.name AND b.partition_no = m.{partition_no} ORDER BY b.batch DESC LIMIT 1) AS b
           WHERE m.{target} = r.target AND NOT {>covered}
             AND NOT EXISTS (SELECT 1 FROM {exceptions} AS e WHERE e.reader = r.name AND e.partition_no = m.{partition_no} AND e.seq = m.{seq})
           ORDER BY m.{seq} LIMIT 1),
         (SELECT max(b.pos) FROM {batches} AS b WHERE b.reader = r.name)) AS pos,
       (SELECT max(b.batch) FROM {batches} AS b WHERE b.reader = r.name) AS batch,
       greatest((SELECT max(b.epoch) FROM {batches} AS b WHERE b.reader = r.name), (SELECT max(l.lease_epoch) FROM {leases} AS l WHERE l.reader = r.name)) AS epoch
  FROM {readers} AS r;
INSERT INTO {exceptions} (reader, partition_no, seq, state, since)
SELECT r.reader, m.{partition_no}, m.{seq}, {=done}, clock_timestamp()
  FROM {name:resize} AS r JOIN {outbox} AS m ON m.{target} = r.target AND m.{seq} > r.pos
 CROSS JOIN LATERAL (SELECT b.* FROM {batches} AS b WHERE b.reader = r.reader AND b.partition_no = m.{partition_no} ORDER BY b.batch DESC LIMIT 1) AS b
 WHERE {>covered}
    ON CONFLICT DO NOTHING;

-- name: adopted
-- Messages that readers have still to deliver, of those that they had not passed.
SELECT count(*) FROM {name:resize} AS r JOIN {outbox} AS m ON m.{target} = r.target AND m.{seq} > r.pos
 WHERE NOT EXISTS (SELECT 1 FROM {exceptions} AS e WHERE e.reader = r.reader AND e.partition_no = m.{partition_no} AND e.seq = m.{seq})

-- name: restamp
-- Ids of another cluster mean nothing here: 3 is older than any that is given out, so every snapshot shows these rows.
DROP VIEW IF EXISTS {fn:messages};
ALTER TABLE {outbox} ALTER COLUMN {txid} TYPE xid8 USING '3'::xid8;

-- name: resize_end
-- With the new partitions. A worker that is not dead after all finds a higher number and epoch.
UPDATE {exceptions} AS e SET partition_no = m.{partition_no} FROM {outbox} AS m WHERE m.{seq} = e.seq AND e.partition_no <> m.{partition_no};
DELETE FROM {batches};
INSERT INTO {batches} (reader, partition_no, batch, epoch, at, pos, seen)
SELECT r.reader, i::smallint, r.batch + 1, r.epoch + 1, clock_timestamp(), r.pos, pg_current_snapshot()
  FROM {name:resize} AS r CROSS JOIN generate_series(0, {=lanes} * {=partition_count} - 1) AS i;
UPDATE {leases} AS l SET lease_owner = NULL, lease_until = 'epoch', updated_at = clock_timestamp(), lease_epoch = r.epoch + 1
  FROM {name:resize} AS r WHERE r.reader = l.reader;
