-- Workers and leases.

-- name: beat
-- $1 worker, $2 reader, $3 hostname, $4 pid, $5 how long in us, $6 published, $7 failed, $8 and $9 what these were when this connection wrote
-- them last, $10 the key of the session lock (NULL: none). A row that was removed is made again.
WITH "#was" AS (SELECT published, failed FROM {workers} WHERE id = $1::uuid), "#now" AS (
  INSERT INTO {workers} (id, reader, hostname, pid, started_at, heartbeat_until, published, failed, session)
  SELECT $1::uuid, $2, $3, $4::bigint, now, now + $5::bigint * interval '1 microsecond', $6::bigint, $7::bigint, $10::bigint
    FROM (SELECT clock_timestamp() AS now) AS c
      ON CONFLICT (id) DO UPDATE SET heartbeat_until = excluded.heartbeat_until, published = excluded.published,
         failed = excluded.failed, session = excluded.session
), "#grown" AS (
  SELECT greatest($6::bigint - coalesce((SELECT published FROM "#was"), $8::bigint), 0) AS published,
         greatest($7::bigint - coalesce((SELECT failed FROM "#was"), $9::bigint), 0) AS failed
)
INSERT INTO {throughput} AS t (minute, reader, worker, published, failed)
SELECT date_trunc('minute', clock_timestamp(), 'UTC'), $2, $1::uuid, g.published, g.failed FROM "#grown" AS g WHERE g.published > 0 OR g.failed > 0
    ON CONFLICT (minute, reader, worker) DO UPDATE SET published = t.published + excluded.published, failed = t.failed + excluded.failed

-- name: session_lock
SELECT pg_try_advisory_lock($1::bigint)::int

-- name: session_unlock
SELECT pg_advisory_unlock($1::bigint)::int

-- name: cache
-- Of the sequence of the log.
SELECT seqcache FROM pg_sequence WHERE seqrelid = pg_get_serial_sequence('{outbox}', replace('{seq}', '"', ''))::regclass

-- name: reap
-- Of the reader $1 and without $2: workers whose time is over, or whose session lock nobody holds, and their leases.
WITH "#dead" AS MATERIALIZED (
  SELECT w.id FROM {workers} AS w
   WHERE w.reader = $1 AND w.id <> $2::uuid
     AND (w.heartbeat_until <= (SELECT clock_timestamp()) OR w.session IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM pg_locks AS l
           WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND (l.classid::bigint << 32 | l.objid::bigint) = w.session))
     FOR UPDATE SKIP LOCKED
), "#gone" AS (
  DELETE FROM {workers} WHERE id IN (SELECT id FROM "#dead") RETURNING id
), "#freed" AS (
  UPDATE {leases} SET lease_owner = NULL, lease_until = 'epoch', updated_at = clock_timestamp()
   WHERE reader = $1 AND lease_owner IN (SELECT id FROM "#gone")
)
SELECT count(*) FROM "#gone"

-- name: leave_leases
UPDATE {leases} SET lease_owner = NULL, lease_until = 'epoch', updated_at = clock_timestamp()
 WHERE reader = $1 AND lease_owner = $2::uuid

-- name: leave_worker
DELETE FROM {workers} WHERE reader = $1 AND id = $2::uuid

-- name: workers
SELECT id, reader, hostname, pid, started_at, heartbeat_until, published, failed
  FROM {workers}
 WHERE heartbeat_until > (SELECT clock_timestamp()) AND ($1::text IS NULL OR reader = $1)
 ORDER BY id

-- name: partition_count
SELECT value FROM {meta} WHERE name = 'partition_count'

-- name: seed
-- An epoch that is not below the journal's, or whoever takes the lease would find itself LOST.
INSERT INTO {leases} (reader, partition_no, lease_epoch, updated_at)
SELECT $1, i, coalesce((SELECT max(n.epoch) FROM generate_series(0, {=lanes} - 1) AS lane CROSS JOIN LATERAL (
           SELECT b.epoch FROM {batches} AS b WHERE b.reader = $1 AND b.partition_no = (lane * c.value + i)::smallint ORDER BY b.batch DESC LIMIT 1) AS n), 0),
       clock_timestamp()
  FROM (SELECT value FROM {meta} WHERE name = 'partition_count') AS c CROSS JOIN LATERAL generate_series(0, c.value - 1) AS i
    ON CONFLICT DO NOTHING

-- name: prune
DELETE FROM {leases}
 WHERE reader = $1 AND partition_no >= (SELECT value FROM {meta} WHERE name = 'partition_count')
   AND (lease_owner IS NULL OR lease_until <= (SELECT clock_timestamp()))

-- name: take
-- SKIP LOCKED: a row that someone is just taking is left for the next time.
UPDATE {leases} AS p
   SET lease_owner = $2::uuid, lease_until = (SELECT clock_timestamp()) + $4::bigint * interval '1 microsecond',
       lease_epoch = p.lease_epoch + 1, updated_at = clock_timestamp()
  FROM (SELECT partition_no FROM {leases}
         WHERE reader = $1 AND (lease_owner IS NULL OR lease_until <= (SELECT clock_timestamp()))
           AND partition_no < (SELECT value FROM {meta} WHERE name = 'partition_count')
         ORDER BY partition_no LIMIT $3::bigint FOR UPDATE SKIP LOCKED) AS f
 WHERE p.reader = $1 AND p.partition_no = f.partition_no
RETURNING p.partition_no, p.lease_epoch

-- name: renew
UPDATE {leases}
   SET lease_until = (SELECT clock_timestamp()) + $3::bigint * interval '1 microsecond', updated_at = clock_timestamp()
 WHERE reader = $1 AND lease_owner = $2::uuid AND lease_until > (SELECT clock_timestamp())
RETURNING partition_no, lease_epoch

-- name: release
UPDATE {leases} SET lease_owner = NULL, lease_until = 'epoch', updated_at = clock_timestamp()
 WHERE reader = $1 AND lease_owner = $2::uuid AND partition_no = ANY ($3::bigint[])

-- name: partitions
SELECT l.reader, l.partition_no, l.lease_owner, l.lease_epoch, l.lease_until,
       (l.lease_owner IS NOT NULL AND l.lease_until > (SELECT clock_timestamp()))::int, n.pos, n.at
  FROM {leases} AS l
  LEFT JOIN LATERAL (SELECT b.pos, b.at FROM {batches} AS b WHERE b.reader = l.reader AND b.partition_no = l.partition_no ORDER BY b.batch DESC LIMIT 1) AS n ON true
 WHERE $1::text IS NULL OR l.reader = $1
 ORDER BY l.reader, l.partition_no

-- name: free_leases
-- $2 partitions; empty: all. Who held one joins again with its next beat, if it lives.
WITH holders AS (
  DELETE FROM {workers} WHERE reader = $1 AND id IN (SELECT l.lease_owner FROM {leases} AS l
    WHERE l.reader = $1 AND (cardinality($2::bigint[]) = 0 OR l.partition_no = ANY ($2::bigint[])))
)
UPDATE {leases} SET lease_owner = NULL, lease_until = 'epoch', lease_epoch = lease_epoch + 1, updated_at = clock_timestamp()
 WHERE reader = $1 AND (cardinality($2::bigint[]) = 0 OR partition_no = ANY ($2::bigint[]))

-- name: throughput
-- $1 reader or NULL, $2 minutes.
SELECT minute, sum(published)::bigint, sum(failed)::bigint
  FROM {throughput}
 WHERE minute > date_trunc('minute', (SELECT clock_timestamp()), 'UTC') - $2::bigint * interval '1 minute'
   AND minute <= (SELECT clock_timestamp()) AND ($1::text IS NULL OR reader = $1)
 GROUP BY minute HAVING sum(published) > 0 OR sum(failed) > 0 ORDER BY minute
