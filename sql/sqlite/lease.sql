-- Workers and leases.

-- name: hold_session

-- name: count_minute
-- What the counters grew by since the last beat. :was_published and :was_failed: what they were when this connection wrote them last.
INSERT INTO {throughput} (minute, reader, worker, published, failed)
SELECT :now / 60000000 * 60000000, :reader, :id, g.published, g.failed
  FROM (SELECT max(:published - coalesce((SELECT published FROM {workers} WHERE id = :id), :was_published), 0) AS published,
               max(:failed - coalesce((SELECT failed FROM {workers} WHERE id = :id), :was_failed), 0) AS failed) AS g
 WHERE g.published > 0 OR g.failed > 0
    ON CONFLICT (minute, reader, worker) DO UPDATE
   SET published = published + excluded.published, failed = failed + excluded.failed;

-- name: beat
INSERT INTO {workers} (id, reader, hostname, pid, started_at, heartbeat_until, published, failed, state)
VALUES (:id, :reader, :hostname, :pid, :now, :now + :ttl, :published, :failed, :state)
    ON CONFLICT (id) DO UPDATE
   SET heartbeat_until = excluded.heartbeat_until, published = excluded.published, failed = excluded.failed, state = excluded.state;

-- name: numbering

-- name: gone_workers
-- SQLite has no lock that ends with a connection: only time tells that a worker is gone.
SELECT id FROM {workers} WHERE reader = :reader AND heartbeat_until <= :now AND id <> :self;

-- name: forget_workers
DELETE FROM {workers} WHERE lower(hex(id)) IN (SELECT value FROM json_each(:ids)) AND heartbeat_until <= :now;

-- name: free_gone_leases
UPDATE {leases} SET lease_owner = NULL, lease_until = 0, updated_at = :now
 WHERE reader = :reader AND lower(hex(lease_owner)) IN (SELECT value FROM json_each(:ids))
   AND lease_owner NOT IN (SELECT id FROM {workers});

-- name: leave_leases
UPDATE {leases} SET lease_owner = NULL, lease_until = 0, updated_at = :now
 WHERE reader = :reader AND lease_owner = :id;

-- name: leave_worker
DELETE FROM {workers} WHERE id = :id AND reader = :reader;

-- name: leave_session

-- name: workers
SELECT id, reader, hostname, pid, started_at, heartbeat_until, published, failed, state
  FROM {workers}
 WHERE heartbeat_until > :now AND (:reader IS NULL OR reader = :reader)
 ORDER BY id;

-- name: partition_count
SELECT value FROM {meta} WHERE name = 'partition_count';

-- name: seed
-- A lease that is new goes on with the epoch of the journal: epochs never fall.
WITH RECURSIVE counted (count) AS (SELECT value FROM {meta} WHERE name = 'partition_count'),
     n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n, counted WHERE i + 1 < count)
INSERT INTO {leases} (reader, partition_no, lease_epoch, updated_at)
SELECT :reader, i, coalesce((SELECT max(b.epoch) FROM {batches} AS b
          WHERE b.reader = :reader AND b.partition_no IN (i, i + count, i + count * 2)), 0), :now
  FROM n, counted WHERE NOT EXISTS (SELECT 1 FROM {leases} AS l WHERE l.reader = :reader AND l.partition_no = i);

-- name: prune_leases
DELETE FROM {leases}
 WHERE reader = :reader AND partition_no >= (SELECT value FROM {meta} WHERE name = 'partition_count')
   AND (lease_owner IS NULL OR lease_until <= :now);

-- name: take_look

-- name: take
UPDATE {leases}
   SET lease_owner = :id, lease_until = :now + :ttl, lease_epoch = lease_epoch + 1, updated_at = :now
 WHERE reader = :reader AND partition_no IN (
       SELECT partition_no FROM {leases}
        WHERE reader = :reader AND (lease_owner IS NULL OR lease_until <= :now)
          AND partition_no < (SELECT value FROM {meta} WHERE name = 'partition_count')
        ORDER BY partition_no LIMIT :want)
RETURNING partition_no, lease_epoch;

-- name: taken

-- name: note_held

-- name: renew
UPDATE {leases} SET lease_until = :now + :ttl, updated_at = :now
 WHERE reader = :reader AND lease_owner = :id AND lease_until > :now
RETURNING partition_no, lease_epoch;

-- name: held_leases

-- name: release
UPDATE {leases} SET lease_owner = NULL, lease_until = 0, updated_at = :now
 WHERE reader = :reader AND lease_owner = :id AND partition_no IN (SELECT value FROM json_each(:numbers));

-- name: forget_holders
-- Who held one joins again with its next beat, if it lives.
DELETE FROM {workers} WHERE reader = :reader AND id IN (SELECT l.lease_owner FROM {leases} AS l
  WHERE l.reader = :reader AND (:all OR l.partition_no IN (SELECT value FROM json_each(:numbers))));

-- name: free_leases
UPDATE {leases} SET lease_owner = NULL, lease_until = 0, lease_epoch = lease_epoch + 1, updated_at = :now
 WHERE reader = :reader AND (:all OR partition_no IN (SELECT value FROM json_each(:numbers)));

-- name: partitions
SELECT l.reader, l.partition_no, l.lease_owner, l.lease_epoch, l.lease_until,
       l.lease_owner IS NOT NULL AND l.lease_until > :now, b.pos, b.at
  FROM {leases} AS l
  LEFT JOIN {batches} AS b ON b.reader = l.reader AND b.partition_no = l.partition_no
   AND b.batch = (SELECT max(c.batch) FROM {batches} AS c WHERE c.reader = l.reader AND c.partition_no = l.partition_no)
 WHERE :reader IS NULL OR l.reader = :reader
 ORDER BY l.reader, l.partition_no;

-- name: audit
INSERT INTO {audit} (at, who, origin, verb, reader, filter, messages, plan, reason)
VALUES (:now, :who, :origin, :verb, :reader, :filter, :messages, :plan, :reason)
    ON CONFLICT (plan) DO UPDATE SET messages = messages + :more;

-- name: audits
SELECT number, at, who, origin, verb, reader, filter, messages, plan, reason
  FROM {audit}
 WHERE number < :before AND (:reader IS NULL OR reader = :reader) AND (:verb IS NULL OR verb = :verb)
 ORDER BY number DESC LIMIT :limit;
