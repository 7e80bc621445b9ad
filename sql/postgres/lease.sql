-- Workers and leases.

-- name: hold_session

-- name: count_minute
-- What the counters grew by since the last beat. :was_published and :was_failed: what they were when this connection wrote them last.
WITH "#grown" AS (
  SELECT greatest(:published::bigint - coalesce((SELECT published FROM {workers} WHERE id = :id::uuid), :was_published::bigint), 0) AS published,
         greatest(:failed::bigint - coalesce((SELECT failed FROM {workers} WHERE id = :id::uuid), :was_failed::bigint), 0) AS failed
)
INSERT INTO {throughput} AS t (minute, reader, worker, published, failed)
SELECT date_trunc('minute', clock_timestamp(), 'UTC'), :reader, :id::uuid, g.published, g.failed FROM "#grown" AS g WHERE g.published > 0 OR g.failed > 0
    ON CONFLICT (minute, reader, worker) DO UPDATE SET published = t.published + excluded.published, failed = t.failed + excluded.failed

-- name: beat
-- :session the key of the session lock (NULL: none). A row that was removed is made again.
INSERT INTO {workers} (id, reader, hostname, pid, started_at, heartbeat_until, published, failed, session, state)
SELECT :id::uuid, :reader, :hostname, :pid::bigint, now, now + :ttl::bigint * interval '1 microsecond', :published::bigint, :failed::bigint, :session::bigint, :state
  FROM (SELECT clock_timestamp() AS now) AS c
    ON CONFLICT (id) DO UPDATE SET heartbeat_until = excluded.heartbeat_until, published = excluded.published,
       failed = excluded.failed, session = excluded.session, state = excluded.state

-- name: session_lock
SELECT pg_try_advisory_lock($1::bigint)::int

-- name: leave_session
SELECT pg_advisory_unlock(:session::bigint)::int

-- name: numbering
-- The CACHE of the sequence of the log.
SELECT seqcache FROM pg_sequence WHERE seqrelid = pg_get_serial_sequence('{outbox}', replace('{seq}', '"', ''))::regclass

-- name: is_gone
-- Its time is over, or nobody holds its session lock.
(w.heartbeat_until <= (SELECT clock_timestamp()) OR w.session IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM pg_locks AS l
   WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
     AND (l.classid::bigint << 32 | l.objid::bigint) = w.session))

-- name: gone_workers
SELECT w.id FROM {workers} AS w WHERE w.reader = :reader AND w.id <> :self::uuid AND {>is_gone}

-- name: forget_workers
-- Those that someone has locked are passed over.
DELETE FROM {workers} WHERE id IN (SELECT w.id FROM {workers} AS w WHERE w.id = ANY (:ids) AND {>is_gone} FOR UPDATE SKIP LOCKED)

-- name: free_gone_leases
-- Of those that were forgotten: one that has come back keeps its own.
UPDATE {leases} AS l SET lease_owner = NULL, lease_until = 'epoch', updated_at = clock_timestamp()
 WHERE l.reader = :reader AND l.lease_owner = ANY (:ids) AND NOT EXISTS (SELECT 1 FROM {workers} AS w WHERE w.id = l.lease_owner)

-- name: leave_leases
UPDATE {leases} SET lease_owner = NULL, lease_until = 'epoch', updated_at = clock_timestamp()
 WHERE reader = :reader AND lease_owner = :id::uuid

-- name: leave_worker
DELETE FROM {workers} WHERE reader = :reader AND id = :id::uuid

-- name: workers
SELECT id, reader, hostname, pid, started_at, heartbeat_until, published, failed, state
  FROM {workers}
 WHERE heartbeat_until > (SELECT clock_timestamp()) AND (:reader::text IS NULL OR reader = :reader)
 ORDER BY id

-- name: partition_count
SELECT value FROM {meta} WHERE name = 'partition_count'

-- name: seed
-- An epoch that is not below the journal's, or whoever takes the lease would find itself LOST.
INSERT INTO {leases} (reader, partition_no, lease_epoch, updated_at)
SELECT :reader, i, coalesce((SELECT max(n.epoch) FROM generate_series(0, {=lanes} - 1) AS lane CROSS JOIN LATERAL (
           SELECT b.epoch FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = (lane * c.value + i)::smallint ORDER BY b.batch DESC LIMIT 1) AS n), 0),
       clock_timestamp()
  FROM (SELECT value FROM {meta} WHERE name = 'partition_count') AS c CROSS JOIN LATERAL generate_series(0, c.value - 1) AS i
    ON CONFLICT DO NOTHING

-- name: prune_leases
DELETE FROM {leases}
 WHERE reader = :reader AND partition_no >= (SELECT value FROM {meta} WHERE name = 'partition_count')
   AND (lease_owner IS NULL OR lease_until <= (SELECT clock_timestamp()))

-- name: take_look

-- name: take
-- SKIP LOCKED: a row that someone is just taking is left for the next time.
UPDATE {leases} AS p
   SET lease_owner = :id::uuid, lease_until = (SELECT clock_timestamp()) + :ttl::bigint * interval '1 microsecond',
       lease_epoch = p.lease_epoch + 1, updated_at = clock_timestamp()
  FROM (SELECT partition_no FROM {leases}
         WHERE reader = :reader AND (lease_owner IS NULL OR lease_until <= (SELECT clock_timestamp()))
           AND partition_no < (SELECT value FROM {meta} WHERE name = 'partition_count')
         ORDER BY partition_no LIMIT :want::bigint FOR UPDATE SKIP LOCKED) AS f
 WHERE p.reader = :reader AND p.partition_no = f.partition_no
RETURNING p.partition_no, p.lease_epoch

-- name: taken

-- name: note_held

-- name: renew
UPDATE {leases}
   SET lease_until = (SELECT clock_timestamp()) + :ttl::bigint * interval '1 microsecond', updated_at = clock_timestamp()
 WHERE reader = :reader AND lease_owner = :id::uuid AND lease_until > (SELECT clock_timestamp())
RETURNING partition_no, lease_epoch

-- name: held_leases

-- name: release
UPDATE {leases} SET lease_owner = NULL, lease_until = 'epoch', updated_at = clock_timestamp()
 WHERE reader = :reader AND lease_owner = :id::uuid AND partition_no = ANY (:numbers)

-- name: partitions
SELECT l.reader, l.partition_no, l.lease_owner, l.lease_epoch, l.lease_until,
       (l.lease_owner IS NOT NULL AND l.lease_until > (SELECT clock_timestamp()))::int, n.pos, n.at
  FROM {leases} AS l
  LEFT JOIN LATERAL (SELECT b.pos, b.at FROM {batches} AS b WHERE b.reader = l.reader AND b.partition_no = l.partition_no ORDER BY b.batch DESC LIMIT 1) AS n ON true
 WHERE :reader::text IS NULL OR l.reader = :reader
 ORDER BY l.reader, l.partition_no

-- name: forget_holders
-- Who held one joins again with its next beat, if it lives.
DELETE FROM {workers} WHERE reader = :reader AND id IN (SELECT l.lease_owner FROM {leases} AS l
  WHERE l.reader = :reader AND (:all::bigint = 1 OR l.partition_no = ANY (:numbers)))

-- name: free_leases
UPDATE {leases} SET lease_owner = NULL, lease_until = 'epoch', lease_epoch = lease_epoch + 1, updated_at = clock_timestamp()
 WHERE reader = :reader AND (:all::bigint = 1 OR partition_no = ANY (:numbers))

-- name: throughput
SELECT minute, sum(published)::bigint, sum(failed)::bigint
  FROM {throughput}
 WHERE minute > date_trunc('minute', (SELECT clock_timestamp()), 'UTC') - :minutes::bigint * interval '1 minute'
   AND minute <= (SELECT clock_timestamp()) AND (:reader::text IS NULL OR reader = :reader)
 GROUP BY minute HAVING sum(published) > 0 OR sum(failed) > 0 ORDER BY minute

-- name: audit
INSERT INTO {audit} AS a (at, who, origin, verb, reader, filter, messages, plan, reason)
VALUES (clock_timestamp(), :who, :origin, :verb, :reader, :filter, :messages::bigint, :plan, :reason)
    ON CONFLICT (plan) DO UPDATE SET messages = a.messages + :more::bigint

-- name: audits
SELECT number, at, who, origin, verb, reader, filter, messages, plan, reason
  FROM {audit}
 WHERE number < :before::bigint AND (:reader::text IS NULL OR reader = :reader) AND (:verb::text IS NULL OR verb = :verb)
 ORDER BY number DESC LIMIT :limit::bigint
