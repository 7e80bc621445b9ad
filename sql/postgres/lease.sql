-- Workers and leases.

-- name: beat
INSERT INTO {workers} (id, target, hostname, pid, started_at, heartbeat_until, published, failed)
SELECT $1::uuid, $2, $3, $4::bigint, now, now + $5::bigint * interval '1 microsecond', $6::bigint, $7::bigint
  FROM (SELECT clock_timestamp() AS now) AS c
    ON CONFLICT (id) DO UPDATE
   SET heartbeat_until = excluded.heartbeat_until, published = excluded.published, failed = excluded.failed

-- name: forget_workers
-- Those that died without a word.
DELETE FROM {workers} WHERE target = $1 AND heartbeat_until <= (SELECT clock_timestamp()) AND id <> $2::uuid

-- name: leave_leases
UPDATE {partitions} SET lease_owner = NULL, lease_until = 'epoch', updated_at = clock_timestamp()
 WHERE target = $1 AND lease_owner = $2::uuid

-- name: leave_worker
DELETE FROM {workers} WHERE target = $1 AND id = $2::uuid

-- name: workers
SELECT id, target, hostname, pid, started_at, heartbeat_until, published, failed
  FROM {workers}
 WHERE heartbeat_until > (SELECT clock_timestamp()) AND ($1::text IS NULL OR target = $1)
 ORDER BY id

-- name: seed
INSERT INTO {partitions} (target, partition_no, updated_at)
SELECT $1, i, clock_timestamp()
  FROM generate_series(0, (SELECT value::int - 1 FROM {meta} WHERE name = 'partition_count')) AS i
    ON CONFLICT DO NOTHING

-- name: prune
DELETE FROM {partitions}
 WHERE target = $1 AND partition_no >= (SELECT value FROM {meta} WHERE name = 'partition_count')
   AND (lease_owner IS NULL OR lease_until <= (SELECT clock_timestamp()))

-- name: partition_count
SELECT value FROM {meta} WHERE name = 'partition_count'

-- name: take
-- SKIP LOCKED: a row that someone is just settling under or taking is left for the next time.
UPDATE {partitions} AS p
   SET lease_owner = $2::uuid, lease_until = (SELECT clock_timestamp()) + $4::bigint * interval '1 microsecond',
       lease_epoch = p.lease_epoch + 1, updated_at = clock_timestamp()
  FROM (SELECT partition_no FROM {partitions}
         WHERE target = $1 AND (lease_owner IS NULL OR lease_until <= (SELECT clock_timestamp()))
           AND partition_no < (SELECT value FROM {meta} WHERE name = 'partition_count')
         ORDER BY partition_no LIMIT $3::bigint FOR UPDATE SKIP LOCKED) AS f
 WHERE p.target = $1 AND p.partition_no = f.partition_no
RETURNING p.partition_no, p.lease_epoch

-- name: renew
UPDATE {partitions}
   SET lease_until = (SELECT clock_timestamp()) + $3::bigint * interval '1 microsecond', updated_at = clock_timestamp()
 WHERE target = $1 AND lease_owner = $2::uuid AND lease_until > (SELECT clock_timestamp())
RETURNING partition_no, lease_epoch

-- name: release
UPDATE {partitions} SET lease_owner = NULL, lease_until = 'epoch', updated_at = clock_timestamp()
 WHERE target = $1 AND lease_owner = $2::uuid AND partition_no = ANY ($3::bigint[])

-- name: partitions
SELECT target, partition_no, lease_owner, lease_epoch, lease_until,
       (lease_owner IS NOT NULL AND lease_until > (SELECT clock_timestamp()))::int
  FROM {partitions}
 WHERE $1::text IS NULL OR target = $1
 ORDER BY target, partition_no
