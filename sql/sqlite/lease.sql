-- Workers and leases.

-- name: beat_before
-- What the worker said last.
SELECT published, failed FROM {workers} WHERE id = :id;

-- name: beat
INSERT INTO {workers} (id, reader, hostname, pid, started_at, heartbeat_until, published, failed)
VALUES (:id, :reader, :hostname, :pid, :now, :now + :ttl, :published, :failed)
    ON CONFLICT (id) DO UPDATE
   SET heartbeat_until = excluded.heartbeat_until, published = excluded.published, failed = excluded.failed;

-- name: count_minute
INSERT INTO {throughput} (minute, reader, worker, published, failed)
VALUES (:now / 60000000 * 60000000, :reader, :id, :published, :failed)
    ON CONFLICT (minute, reader, worker) DO UPDATE
   SET published = published + excluded.published, failed = failed + excluded.failed;

-- name: any_gone
SELECT EXISTS (SELECT 1 FROM {workers} WHERE reader = :reader AND heartbeat_until <= :now AND id <> :id);

-- name: reap_leases
UPDATE {leases} SET lease_owner = NULL, lease_until = 0, updated_at = :now
 WHERE reader = :reader AND lease_owner IN (
       SELECT id FROM {workers} WHERE reader = :reader AND heartbeat_until <= :now AND id <> :id);

-- name: reap_workers
DELETE FROM {workers} WHERE reader = :reader AND heartbeat_until <= :now AND id <> :id;

-- name: leave_leases
UPDATE {leases} SET lease_owner = NULL, lease_until = 0, updated_at = :now
 WHERE reader = :reader AND lease_owner = :id;

-- name: leave_worker
DELETE FROM {workers} WHERE id = :id AND reader = :reader;

-- name: workers
SELECT id, reader, hostname, pid, started_at, heartbeat_until, published, failed
  FROM {workers}
 WHERE heartbeat_until > :now AND (:reader IS NULL OR reader = :reader)
 ORDER BY id;

-- name: seed
-- A lease that is new goes on with the epoch of the journal: epochs never fall.
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :count)
INSERT INTO {leases} (reader, partition_no, lease_epoch, updated_at)
SELECT :reader, i, coalesce((SELECT max(b.epoch) FROM {batches} AS b
          WHERE b.reader = :reader AND b.partition_no IN (i, i + :count, i + :count * 2)), 0), :now
  FROM n WHERE NOT EXISTS (SELECT 1 FROM {leases} AS l WHERE l.reader = :reader AND l.partition_no = i);

-- name: prune_leases
DELETE FROM {leases}
 WHERE reader = :reader AND partition_no >= :count AND (lease_owner IS NULL OR lease_until <= :now);

-- name: take
UPDATE {leases}
   SET lease_owner = :id, lease_until = :now + :ttl, lease_epoch = lease_epoch + 1, updated_at = :now
 WHERE reader = :reader AND partition_no IN (
       SELECT partition_no FROM {leases}
        WHERE reader = :reader AND (lease_owner IS NULL OR lease_until <= :now)
          AND partition_no < (SELECT value FROM {meta} WHERE name = 'partition_count')
        ORDER BY partition_no LIMIT :want)
RETURNING partition_no, lease_epoch;

-- name: renew
UPDATE {leases} SET lease_until = :now + :ttl, updated_at = :now
 WHERE reader = :reader AND lease_owner = :id AND lease_until > :now
RETURNING partition_no, lease_epoch;

-- name: release
UPDATE {leases} SET lease_owner = NULL, lease_until = 0, updated_at = :now
 WHERE reader = :reader AND partition_no = :partition AND lease_owner = :id;

-- name: forget_holders
-- Of one of them, or of all.
DELETE FROM {workers} WHERE reader = :reader AND id IN (SELECT l.lease_owner FROM {leases} AS l
  WHERE l.reader = :reader AND (:partition IS NULL OR l.partition_no = :partition));

-- name: free_leases
-- One of them, or all.
UPDATE {leases} SET lease_owner = NULL, lease_until = 0, lease_epoch = lease_epoch + 1, updated_at = :now
 WHERE reader = :reader AND (:partition IS NULL OR partition_no = :partition);

-- name: partitions
SELECT l.reader, l.partition_no, l.lease_owner, l.lease_epoch, l.lease_until,
       l.lease_owner IS NOT NULL AND l.lease_until > :now, b.pos, b.at
  FROM {leases} AS l
  LEFT JOIN {batches} AS b ON b.reader = l.reader AND b.partition_no = l.partition_no
   AND b.batch = (SELECT max(c.batch) FROM {batches} AS c WHERE c.reader = l.reader AND c.partition_no = l.partition_no)
 WHERE :reader IS NULL OR l.reader = :reader
 ORDER BY l.reader, l.partition_no;
