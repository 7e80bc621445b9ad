-- Workers and leases.

-- name: beat
INSERT INTO {workers} (id, target, hostname, pid, started_at, heartbeat_until, published, failed)
VALUES (:id, :target, :hostname, :pid, UTC_TIMESTAMP(6), TIMESTAMPADD(MICROSECOND, :ttl, UTC_TIMESTAMP(6)), :published, :failed)
    ON DUPLICATE KEY UPDATE heartbeat_until = VALUES(heartbeat_until), published = VALUES(published), failed = VALUES(failed)

-- name: dead_workers
-- Those that died without a word.
SELECT id FROM {workers} WHERE target = :target AND heartbeat_until <= UTC_TIMESTAMP(6) AND id <> :id ORDER BY id

-- name: forget_worker
DELETE FROM {workers} WHERE id = :id AND heartbeat_until <= UTC_TIMESTAMP(6)

-- name: leave_leases
UPDATE {partitions} SET lease_owner = NULL, lease_until = '1970-01-01 00:00:00', updated_at = UTC_TIMESTAMP(6)
 WHERE target = :target AND lease_owner = :owner

-- name: leave_worker
DELETE FROM {workers} WHERE id = :owner AND target = :target

-- name: workers
SELECT id, target, hostname, pid,
       TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', started_at),
       TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', heartbeat_until), published, failed
  FROM {workers}
 WHERE heartbeat_until > UTC_TIMESTAMP(6) AND (:target IS NULL OR target = :target)
 ORDER BY id

-- name: lease_rows
SELECT partition_no FROM {partitions} WHERE target = :target ORDER BY partition_no

-- name: seed
INSERT IGNORE INTO {partitions} (target, partition_no, updated_at) VALUES (:target, :partition, UTC_TIMESTAMP(6))

-- name: prune
DELETE FROM {partitions}
 WHERE target = :target AND partition_no >= :count AND (lease_owner IS NULL OR lease_until <= UTC_TIMESTAMP(6))

-- name: take_look
SELECT p.partition_no, p.lease_epoch + 1 FROM {partitions} AS p
 WHERE p.target = :target AND p.partition_no < :count
   AND (p.lease_owner IS NULL OR p.lease_until <= UTC_TIMESTAMP(6))
 ORDER BY p.partition_no LIMIT :want FOR UPDATE

-- name: take
UPDATE {partitions}
   SET lease_owner = :owner, lease_until = TIMESTAMPADD(MICROSECOND, :ttl, UTC_TIMESTAMP(6)),
       lease_epoch = lease_epoch + 1, updated_at = UTC_TIMESTAMP(6)
 WHERE target = :target AND partition_no IN (:partitions*)

-- name: renew_look
SELECT partition_no, lease_epoch FROM {partitions}
 WHERE target = :target AND lease_owner = :owner AND lease_until > UTC_TIMESTAMP(6)
 ORDER BY partition_no

-- name: renew
-- Only what is still held: between the look and this another may have taken one.
UPDATE {partitions} SET lease_until = TIMESTAMPADD(MICROSECOND, :ttl, UTC_TIMESTAMP(6)), updated_at = UTC_TIMESTAMP(6)
 WHERE target = :target AND lease_owner = :owner AND lease_until > UTC_TIMESTAMP(6)
   AND partition_no IN (:partitions*)

-- name: release
UPDATE {partitions} SET lease_owner = NULL, lease_until = '1970-01-01 00:00:00', updated_at = UTC_TIMESTAMP(6)
 WHERE target = :target AND lease_owner = :owner AND partition_no IN (:partitions*)

-- name: fence
-- MariaDB has no FOR SHARE, MySQL 8 understands both. A takeover updates these rows: it
-- waits for us, or we for it, and then read what it wrote.
SELECT partition_no, lease_owner, lease_epoch FROM {partitions}
 WHERE target = :target AND partition_no IN (:partitions*)
 ORDER BY partition_no LOCK IN SHARE MODE

-- name: partitions
SELECT target, partition_no, lease_owner, lease_epoch,
       TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', lease_until),
       lease_owner IS NOT NULL AND lease_until > UTC_TIMESTAMP(6)
  FROM {partitions}
 WHERE :target IS NULL OR target = :target
 ORDER BY target, partition_no
