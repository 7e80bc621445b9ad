-- Workers and leases.

-- name: session_lock
-- The name of the lock that a worker's connection holds.
CONCAT('outbox worker ', LOWER(HEX(:id)))

-- name: hold_session
SELECT IF(IS_USED_LOCK({>session_lock}) <=> CONNECTION_ID(), 1, COALESCE(GET_LOCK({>session_lock}, 0), 0)) INTO @outbox_session

-- name: this_minute
TIMESTAMPADD(MINUTE, TIMESTAMPDIFF(MINUTE, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6)), TIMESTAMP'1970-01-01 00:00:00')

-- name: count_minute
-- What the counters grew by since the last heartbeat. :was_published and :was_failed: what they were when this connection wrote them last.
INSERT INTO {throughput} (minute, reader, worker, published, failed)
SELECT {>this_minute}, :reader, :id, g.published, g.failed
  FROM (SELECT GREATEST(:published - COALESCE(MAX(w.published), :was_published), 0) AS published, GREATEST(:failed - COALESCE(MAX(w.failed), :was_failed), 0) AS failed
          FROM {workers} AS w WHERE w.id = :id) AS g
 WHERE g.published > 0 OR g.failed > 0
    ON DUPLICATE KEY UPDATE published = {throughput}.published + VALUES(published), failed = {throughput}.failed + VALUES(failed)

-- name: beat
INSERT INTO {workers} (id, reader, hostname, pid, started_at, heartbeat_until, published, failed, session, state)
VALUES (:id, :reader, :hostname, :pid, UTC_TIMESTAMP(6), TIMESTAMPADD(MICROSECOND, :ttl, UTC_TIMESTAMP(6)), :published, :failed, @outbox_session, :state)
    ON DUPLICATE KEY UPDATE heartbeat_until = VALUES(heartbeat_until), published = VALUES(published), failed = VALUES(failed), session = VALUES(session), state = VALUES(state)

-- name: is_gone
-- Its heartbeat is over, or its connection.
(w.heartbeat_until <= UTC_TIMESTAMP(6) OR (w.session AND IS_FREE_LOCK(CONCAT('outbox worker ', LOWER(HEX(w.id))))))

-- name: numbering

-- name: gone_workers
SELECT w.id FROM {workers} AS w WHERE w.reader = :reader AND w.id <> :self AND {>is_gone}

-- name: forget_workers
DELETE w FROM {workers} AS w WHERE w.id IN (:ids) AND {>is_gone}

-- name: free_gone_leases
-- Of those that were forgotten: one that has come back keeps its own.
UPDATE {leases} AS l LEFT JOIN {workers} AS w ON w.id = l.lease_owner
   SET l.lease_owner = NULL, l.lease_until = '1970-01-01 00:00:00', l.updated_at = UTC_TIMESTAMP(6)
 WHERE l.reader = :reader AND l.lease_owner IN (:ids) AND w.id IS NULL

-- name: leave_leases
UPDATE {leases} SET lease_owner = NULL, lease_until = '1970-01-01 00:00:00', updated_at = UTC_TIMESTAMP(6)
 WHERE reader = :reader AND lease_owner = :id

-- name: leave_worker
DELETE FROM {workers} WHERE id = :id AND reader = :reader

-- name: leave_session
SELECT IF(IS_USED_LOCK({>session_lock}) <=> CONNECTION_ID(), RELEASE_LOCK({>session_lock}), 0)

-- name: workers
SELECT id, reader, hostname, pid, started_at, heartbeat_until, published, failed, state
  FROM {workers}
 WHERE heartbeat_until > UTC_TIMESTAMP(6) AND (:reader IS NULL OR reader = :reader)
 ORDER BY id

-- name: all_partitions
-- Their numbers, without the lanes, as v.p.
(SELECT CAST(j.i AS SIGNED) - 1 AS p FROM {meta} AS c
   JOIN JSON_TABLE(CONCAT('[0', REPEAT(',0', c.value - 1), ']'), '$[*]' COLUMNS (i FOR ORDINALITY)) AS j
  WHERE c.name = 'partition_count') AS v

-- name: partition_count
SELECT value FROM {meta} WHERE name = 'partition_count'

-- name: seed
-- Only what is missing is inserted: an insert of what is there would lock it. An epoch that is not below the journal's, or whoever
-- takes the lease would find itself LOST.
INSERT IGNORE INTO {leases} (reader, partition_no, lease_epoch, updated_at)
SELECT :reader, v.p, GREATEST(COALESCE((SELECT b.epoch FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = v.p ORDER BY {>whole_key} b.batch DESC LIMIT 1), 0),
       COALESCE((SELECT b.epoch FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = v.p + ({>partition_count}) ORDER BY {>whole_key} b.batch DESC LIMIT 1), 0),
       COALESCE((SELECT b.epoch FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = v.p + 2 * ({>partition_count}) ORDER BY {>whole_key} b.batch DESC LIMIT 1), 0)),
       UTC_TIMESTAMP(6)
  FROM {>all_partitions}
 WHERE NOT EXISTS (SELECT 1 FROM {leases} AS l WHERE l.reader = :reader AND l.partition_no = v.p)

-- name: prune_leases
DELETE FROM {leases}
 WHERE reader = :reader AND partition_no >= (SELECT value FROM {meta} WHERE name = 'partition_count')
   AND (lease_owner IS NULL OR lease_until <= UTC_TIMESTAMP(6))

-- name: take_look
-- Rows that someone has locked are passed over.
SELECT GROUP_CONCAT(t.p) INTO @outbox_taken FROM (
  SELECT l.partition_no AS p FROM {leases} AS l
   WHERE l.reader = :reader AND l.partition_no < (SELECT value FROM {meta} WHERE name = 'partition_count')
     AND (l.lease_owner IS NULL OR l.lease_until <= UTC_TIMESTAMP(6))
   ORDER BY l.partition_no LIMIT :want FOR UPDATE SKIP LOCKED) AS t

-- name: take
UPDATE {leases}
   SET lease_owner = :id, lease_until = TIMESTAMPADD(MICROSECOND, :ttl, UTC_TIMESTAMP(6)),
       lease_epoch = lease_epoch + 1, updated_at = UTC_TIMESTAMP(6)
 WHERE reader = :reader AND FIND_IN_SET(partition_no, @outbox_taken)

-- name: taken
SELECT partition_no, lease_epoch FROM {leases}
 WHERE reader = :reader AND FIND_IN_SET(partition_no, @outbox_taken) ORDER BY partition_no

-- name: held_leases
SELECT partition_no, lease_epoch FROM {leases}
 WHERE reader = :reader AND lease_owner = :id AND lease_until > UTC_TIMESTAMP(6)
 ORDER BY partition_no

-- name: note_held
SELECT GROUP_CONCAT(partition_no) INTO @outbox_held FROM {leases}
 WHERE reader = :reader AND lease_owner = :id AND lease_until > UTC_TIMESTAMP(6)

-- name: renew
-- By number, as they were found without a lock: a row that someone else has locked is not waited for.
UPDATE {leases} SET lease_until = TIMESTAMPADD(MICROSECOND, :ttl, UTC_TIMESTAMP(6)), updated_at = UTC_TIMESTAMP(6)
 WHERE reader = :reader AND FIND_IN_SET(partition_no, @outbox_held) AND lease_owner = :id AND lease_until > UTC_TIMESTAMP(6)

-- name: release
UPDATE {leases} SET lease_owner = NULL, lease_until = '1970-01-01 00:00:00', updated_at = UTC_TIMESTAMP(6)
 WHERE reader = :reader AND lease_owner = :id AND partition_no IN (:numbers)

-- name: forget_holders
DELETE FROM {workers} WHERE reader = :reader AND id IN (SELECT l.lease_owner FROM {leases} AS l
 WHERE l.reader = :reader AND (:all OR l.partition_no IN (:numbers)))

-- name: free_leases
UPDATE {leases} SET lease_owner = NULL, lease_until = '1970-01-01 00:00:00', lease_epoch = lease_epoch + 1, updated_at = UTC_TIMESTAMP(6)
 WHERE reader = :reader AND (:all OR partition_no IN (:numbers))

-- name: partitions
SELECT l.reader, l.partition_no, l.lease_owner, l.lease_epoch, l.lease_until,
       l.lease_owner IS NOT NULL AND l.lease_until > UTC_TIMESTAMP(6), b.pos, b.at
  FROM {leases} AS l
  LEFT JOIN (SELECT reader, partition_no, MAX(batch) AS batch FROM {batches} GROUP BY reader, partition_no) AS n
    ON n.reader = l.reader AND n.partition_no = l.partition_no
  LEFT JOIN {batches} AS b ON b.reader = n.reader AND b.partition_no = n.partition_no AND b.batch = n.batch
 WHERE :reader IS NULL OR l.reader = :reader
 ORDER BY l.reader, l.partition_no

-- name: audit
INSERT INTO {audit} (at, who, origin, verb, reader, filter, messages, plan, reason)
VALUES (UTC_TIMESTAMP(6), :who, :origin, :verb, :reader, :filter, :messages, :plan, :reason)
    ON DUPLICATE KEY UPDATE messages = {audit}.messages + :more

-- name: audits
SELECT number, at, who, origin, verb, reader, filter, messages, plan, reason
  FROM {audit}
 WHERE number < :before AND (:reader IS NULL OR reader = :reader) AND (:verb IS NULL OR verb = :verb)
 ORDER BY number DESC LIMIT :limit
