-- Workers and leases.

-- name: beat
INSERT INTO {workers} (id, target, hostname, pid, started_at, heartbeat_until, published, failed)
VALUES (:id, :target, :hostname, :pid, :now, :now + :ttl, :published, :failed)
    ON CONFLICT (id) DO UPDATE
   SET heartbeat_until = excluded.heartbeat_until, published = excluded.published, failed = excluded.failed;

-- name: forget_workers
-- Those that died without a word.
DELETE FROM {workers} WHERE target = :target AND heartbeat_until <= :now AND id <> :id;

-- name: leave_leases
UPDATE {partitions} SET lease_owner = NULL, lease_until = 0, updated_at = :now
 WHERE target = :target AND lease_owner = :owner;

-- name: leave_worker
DELETE FROM {workers} WHERE id = :owner AND target = :target;

-- name: workers
SELECT id, target, hostname, pid, started_at, heartbeat_until, published, failed
  FROM {workers}
 WHERE heartbeat_until > :now AND (:target IS NULL OR target = :target)
 ORDER BY id;

-- name: seed
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :count)
INSERT OR IGNORE INTO {partitions} (target, partition_no, updated_at) SELECT :target, i, :now FROM n;

-- name: prune
DELETE FROM {partitions}
 WHERE target = :target AND partition_no >= :count AND (lease_owner IS NULL OR lease_until <= :now);

-- name: take
UPDATE {partitions}
   SET lease_owner = :owner, lease_until = :now + :ttl, lease_epoch = lease_epoch + 1, updated_at = :now
 WHERE target = :target AND partition_no IN (
       SELECT partition_no FROM {partitions}
        WHERE target = :target AND (lease_owner IS NULL OR lease_until <= :now)
          AND partition_no < (SELECT value FROM {meta} WHERE name = 'partition_count')
        ORDER BY partition_no LIMIT :want)
RETURNING partition_no, lease_epoch;

-- name: renew
UPDATE {partitions} SET lease_until = :now + :ttl, updated_at = :now
 WHERE target = :target AND lease_owner = :owner AND lease_until > :now
RETURNING partition_no, lease_epoch;

-- name: release
UPDATE {partitions} SET lease_owner = NULL, lease_until = 0, updated_at = :now
 WHERE target = :target AND partition_no = :partition AND lease_owner = :owner;

-- name: fence
SELECT lease_owner, lease_epoch FROM {partitions} WHERE target = :target AND partition_no = :partition;

-- name: partitions
SELECT target, partition_no, lease_owner, lease_epoch, lease_until
  FROM {partitions}
 WHERE :target IS NULL OR target = :target
 ORDER BY target, partition_no;
