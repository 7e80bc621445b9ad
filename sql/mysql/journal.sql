-- The journal: readers, takeovers, recording.

-- name: whole_key
-- MySQL steps back in the index only when it is ordered by the whole key, MariaDB only when it is not: else each
-- reads and sorts all rows of the partition.
/*!80000 b.reader DESC, b.partition_no DESC, */

-- name: newest_batch
-- Of the partition v.p. One step from the end of the index, however long the journal is.
(SELECT b.batch FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = v.p ORDER BY {>whole_key} b.batch DESC LIMIT 1)

-- name: newest_epoch
(SELECT b.epoch FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = v.p ORDER BY {>whole_key} b.batch DESC LIMIT 1)

-- name: partition_list
JSON_TABLE(:parts, '$[*]' COLUMNS (p INT PATH '$')) AS v

-- name: journal_columns
(reader, partition_no, batch, epoch, owner, at, pos, published, failed, seen)

-- name: reader_insert
INSERT IGNORE INTO {readers} (name, target, filter, temporary, created_at)
VALUES (:reader, :target, :filter, :temporary, UTC_TIMESTAMP(6))

-- name: reader_target
SELECT target FROM {readers} WHERE name = :reader

-- name: reader_begin
-- For a reader without a journal.
INSERT INTO {batches} {>journal_columns}
SELECT :reader, v.p, 0, 0, :owner, UTC_TIMESTAMP(6), :pos, 0, 0, :seen
  FROM {>partition_list}
 WHERE NOT EXISTS (SELECT 1 FROM {batches} AS b WHERE b.reader = :reader)
 ORDER BY v.p

-- name: readers
SELECT r.name, r.target, r.filter, r.temporary, r.created_at,
       (SELECT COUNT(*) FROM {workers} AS w WHERE w.reader = r.name AND w.heartbeat_until > UTC_TIMESTAMP(6))
  FROM {readers} AS r ORDER BY r.name

-- name: reader_exceptions
SELECT COUNT(*) FROM (
  SELECT 1 FROM {exceptions} AS e WHERE e.reader = :reader AND e.state NOT IN ({=done}, {=discarded}) LIMIT 10001) AS t

-- name: progress
-- The newest journal row of each partition of a reader.
SELECT b.partition_no, b.batch, b.epoch, b.owner, b.at, b.pos, b.seen
  FROM (SELECT v.p, {>newest_batch} AS batch FROM {>partition_list}) AS n
  STRAIGHT_JOIN {batches} AS b ON b.reader = :reader AND b.partition_no = n.p AND b.batch = n.batch
 ORDER BY b.partition_no

-- name: progress_before
-- The progress that each partition of a reader had so long ago.
SELECT b.partition_no, b.batch, b.epoch, b.owner, b.at, b.pos, b.seen
  FROM (SELECT v.p, (SELECT b.batch FROM {batches} AS b
                      WHERE b.reader = :reader AND b.partition_no = v.p AND b.at <= TIMESTAMPADD(MICROSECOND, -:age, UTC_TIMESTAMP(6))
                      ORDER BY {>whole_key} b.batch DESC LIMIT 1) AS batch FROM {>partition_list}) AS n
  STRAIGHT_JOIN {batches} AS b ON b.reader = :reader AND b.partition_no = n.p AND b.batch = n.batch
 ORDER BY b.partition_no

-- name: last_number
SELECT MAX(m.{seq}) FROM {outbox} AS m

-- name: first_created_since
SELECT MIN(m.{seq}) FROM {outbox} AS m WHERE m.{created_at} >= TIMESTAMPADD(MICROSECOND, :at, TIMESTAMP'1970-01-01 00:00:00.000000')

-- name: highest_epoch
SELECT GREATEST(COALESCE((SELECT MAX(l.lease_epoch) FROM {leases} AS l WHERE l.reader = :reader), 0),
                COALESCE((SELECT MAX(t.epoch) FROM (
                  SELECT {>newest_epoch} AS epoch
                    FROM {>partition_list}) AS t), 0))

-- name: leases_move
UPDATE {leases} SET lease_owner = NULL, lease_until = '1970-01-01 00:00:00', lease_epoch = GREATEST(lease_epoch + 1, :epoch), updated_at = UTC_TIMESTAMP(6)
 WHERE reader = :reader

-- name: journal_move
-- A place for all partitions, above what anybody may still record.
INSERT INTO {batches} {>journal_columns}
SELECT :reader, v.p, COALESCE({>newest_batch}, -1) + 1, :epoch, :owner, UTC_TIMESTAMP(6), :pos, 0, 0, :seen
  FROM {>partition_list}
 ORDER BY v.p

-- name: exceptions_uncover
DELETE FROM {exceptions} WHERE reader = :reader AND (seq > :pos :gaps)

-- name: reader_busy
SELECT COUNT(*) FROM {workers} WHERE reader = :reader AND heartbeat_until > UTC_TIMESTAMP(6)

-- name: reader_lock
SELECT target FROM {readers} WHERE name = :reader FOR UPDATE

-- name: reader_delete
DELETE FROM {readers} WHERE name = :reader

-- name: reader_delete_batches
DELETE FROM {batches} WHERE reader = :reader

-- name: reader_delete_exceptions
DELETE FROM {exceptions} WHERE reader = :reader

-- name: reader_delete_leases
DELETE FROM {leases} WHERE reader = :reader

-- name: reader_delete_workers
DELETE FROM {workers} WHERE reader = :reader

-- name: reader_delete_throughput
DELETE FROM {throughput} WHERE reader = :reader

-- name: take_over
-- The newest row again, with the next number. Nothing where a higher epoch is, or where the newest is our own.
INSERT IGNORE INTO {batches} {>journal_columns}
SELECT b.reader, b.partition_no, b.batch + 1, n.epoch, :owner, UTC_TIMESTAMP(6), b.pos, 0, 0, b.seen
  FROM (SELECT v.p, v.epoch, {>newest_batch} AS batch
          FROM JSON_TABLE(:parts, '$[*]' COLUMNS (p INT PATH '$[0]', epoch BIGINT PATH '$[1]')) AS v) AS n
  STRAIGHT_JOIN {batches} AS b ON b.reader = :reader AND b.partition_no = n.p AND b.batch = n.batch
 WHERE b.epoch <= n.epoch AND NOT (b.epoch = n.epoch AND b.owner = :owner)
 ORDER BY b.partition_no

-- name: settle_parts
JSON_TABLE(:parts, '$[*]' COLUMNS (p INT PATH '$[0]', batch BIGINT PATH '$[1]', epoch BIGINT PATH '$[2]', pos BIGINT PATH '$[3]',
  published INT PATH '$[4]', failed INT PATH '$[5]', seen INT PATH '$[6]')) AS v

-- name: settle
-- A number that is taken already inserts nothing: that is the fence. Nor does one below the newest, whose row may
-- have been pruned, nor one of another epoch than the newest.
INSERT IGNORE INTO {batches} {>journal_columns}
SELECT :reader, v.p, v.batch, v.epoch, :owner, UTC_TIMESTAMP(6), v.pos, v.published, v.failed, ELT(v.seen, :seens)
  FROM {>settle_parts}
 WHERE v.epoch = (SELECT IF(b.batch < v.batch, b.epoch, -1) FROM {batches} AS b
                   WHERE b.reader = :reader AND b.partition_no = v.p ORDER BY {>whole_key} b.batch DESC LIMIT 1)
 ORDER BY v.p

-- name: settled
-- Partition, is the row with this number ours, newest number, its epoch.
SELECT v.p, EXISTS (SELECT 1 FROM {batches} AS b
              WHERE b.reader = :reader AND b.partition_no = v.p AND b.batch = v.batch AND b.epoch = v.epoch AND b.owner = :owner),
       {>newest_batch},
       {>newest_epoch}
  FROM {>settle_parts}

-- name: settle_won
-- The partitions whose exceptions may be changed.
SELECT GROUP_CONCAT(t.p) INTO @outbox_won FROM (
  SELECT v.p, v.epoch, EXISTS (SELECT 1 FROM {batches} AS b
                 WHERE b.reader = :reader AND b.partition_no = v.p AND b.batch = v.batch AND b.epoch = v.epoch AND b.owner = :owner) AS own,
         {>newest_epoch} AS newest
    FROM {>settle_parts}) AS t
 WHERE t.own AND t.newest = t.epoch

-- name: verb_journal
-- A verb's row: the newest again, with the next number. A number that was taken in between is an error.
INSERT INTO {batches} {>journal_columns}
SELECT b.reader, b.partition_no, b.batch + 1, b.epoch, :owner, UTC_TIMESTAMP(6), b.pos, 0, 0, b.seen
  FROM (SELECT v.p, {>newest_batch} AS batch FROM {>partition_list}) AS n
  STRAIGHT_JOIN {batches} AS b ON b.reader = :reader AND b.partition_no = n.p AND b.batch = n.batch
 ORDER BY b.partition_no

-- name: verb_won
SELECT :won INTO @outbox_won

-- name: change_list
JSON_TABLE(:changes, '$[*]' COLUMNS (p INT PATH '$[0]', seq BIGINT PATH '$[1]', state INT PATH '$[2]', attempts INT PATH '$[3]',
  was INT PATH '$[4]', delay BIGINT PATH '$[5]', available BIGINT PATH '$[6]',
  queue VARCHAR(511) {>list_collation} PATH '$[7]', error VARCHAR(1024) {>list_collation} PATH '$[8]')) AS c

-- name: list_collation
CHARACTER SET utf8mb4 {>collation_of_column}

-- name: collation_of_column
/*!80017 COLLATE utf8mb4_0900_bin */ /*M! COLLATE utf8mb4_nopad_bin */

-- name: change_due
COALESCE(TIMESTAMPADD(MICROSECOND, c.delay, UTC_TIMESTAMP(6)), TIMESTAMPADD(MICROSECOND, c.available, TIMESTAMP'1970-01-01 00:00:00.000000'))

-- name: change_add
-- What is there already is a repeat, or an operator's decision.
INSERT IGNORE INTO {exceptions} (reader, partition_no, seq, state, attempts, due, queue, last_error, since)
SELECT :reader, c.p, c.seq, c.state, c.attempts, {>change_due}, c.queue, c.error, UTC_TIMESTAMP(6)
  FROM {>change_list}
 WHERE FIND_IN_SET(c.p, @outbox_won)

-- name: change_set
UPDATE {>change_list}
  STRAIGHT_JOIN {exceptions} AS e ON e.reader = :reader AND e.partition_no = c.p AND e.seq = c.seq
   SET e.state = c.state, e.attempts = c.attempts, e.due = {>change_due}, e.queue = c.queue,
       e.last_error = COALESCE(c.error, e.last_error), e.since = UTC_TIMESTAMP(6)
 WHERE FIND_IN_SET(c.p, @outbox_won) AND e.attempts = c.was AND (:any OR e.state IN ({=waiting}, {=failed}, {=delayed}))

-- name: change_remove
DELETE e FROM {>change_list}
  STRAIGHT_JOIN {exceptions} AS e ON e.reader = :reader AND e.partition_no = c.p AND e.seq = c.seq
 WHERE FIND_IN_SET(c.p, @outbox_won)

-- name: promote
-- The head of each queue, if it only waits.
UPDATE (SELECT c.p, (SELECT q.seq FROM {exceptions} AS q FORCE INDEX ({name:queue})
                      WHERE q.reader = :reader AND q.partition_no = c.p AND q.queue = c.queue ORDER BY q.seq LIMIT 1) AS seq
          FROM JSON_TABLE(:queues, '$[*]' COLUMNS (p INT PATH '$[0]', queue VARCHAR(511) {>list_collation} PATH '$[1]')) AS c
         WHERE FIND_IN_SET(c.p, @outbox_won)) AS h
  STRAIGHT_JOIN {exceptions} AS e ON e.reader = :reader AND e.partition_no = h.p AND e.seq = h.seq
   SET e.due = UTC_TIMESTAMP(6)
 WHERE e.state = {=waiting} AND e.due IS NULL

-- name: resize_done
-- What the old partition's progress covers and the new one does not.
INSERT IGNORE INTO {exceptions} (reader, partition_no, seq, state, attempts, since)
SELECT r.name, m.{partition_no}, m.{seq}, {=done}, 0, UTC_TIMESTAMP(6)
  FROM {readers} AS r
  JOIN {outbox} AS m FORCE INDEX (PRIMARY) ON m.{target} = r.target
  JOIN (SELECT partition_no, MAX(batch) AS batch FROM {batches} WHERE reader = :reader GROUP BY partition_no) AS n
    ON n.partition_no = (CASE WHEN m.{priority} > 0 THEN 1 WHEN m.{priority} < 0 THEN 2 ELSE 0 END) * :old + CRC32(COALESCE(m.{ordering_key}, m.{id})) MOD :old
  JOIN {batches} AS p ON p.reader = :reader AND p.partition_no = n.partition_no AND p.batch = n.batch
 WHERE r.name = :reader AND (m.{seq} > :pos :gaps) AND {>covered}

-- name: resize_exceptions
UPDATE {exceptions} AS e JOIN {outbox} AS m FORCE INDEX (PRIMARY) ON m.{seq} = e.seq
   SET e.partition_no = m.{partition_no}
 WHERE e.reader = :reader

-- name: resize_promote
UPDATE (SELECT q.partition_no AS p, MIN(q.seq) AS seq FROM {exceptions} AS q
         WHERE q.reader = :reader AND q.queue IS NOT NULL GROUP BY q.partition_no, q.queue) AS h
  STRAIGHT_JOIN {exceptions} AS e ON e.reader = :reader AND e.partition_no = h.p AND e.seq = h.seq
   SET e.due = UTC_TIMESTAMP(6)
 WHERE e.state = {=waiting} AND e.due IS NULL

-- name: resize_forget
-- The rows of before speak of other partitions; only those that were just written count.
DELETE b FROM {batches} AS b
  JOIN (SELECT reader, partition_no, MAX(batch) AS batch FROM {batches} WHERE reader = :reader GROUP BY reader, partition_no) AS n
    ON n.reader = b.reader AND n.partition_no = b.partition_no AND b.batch < n.batch
 WHERE b.reader = :reader

-- name: resize_forget_gone
DELETE FROM {batches} WHERE reader = :reader AND partition_no >= :count

-- name: lock_leases
-- All of them, for as long as a resize takes.
SELECT partition_no FROM {leases} ORDER BY reader, partition_no FOR UPDATE

-- name: any_lease
SELECT EXISTS (SELECT 1 FROM {leases} WHERE lease_owner IS NOT NULL AND lease_until > UTC_TIMESTAMP(6))
