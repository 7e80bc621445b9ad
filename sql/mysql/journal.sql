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
-- The first number of each row of :parts.
JSON_TABLE(:parts, '$[*]' COLUMNS (p INT PATH '$[0]')) AS v

-- name: all_numbers
-- The numbers of all partitions, in all lanes, as v.p.
(SELECT CAST(j.i AS SIGNED) - 1 AS p FROM {meta} AS c
   JOIN JSON_TABLE(CONCAT('[0', REPEAT(',0', {=lanes} * c.value - 1), ']'), '$[*]' COLUMNS (i FOR ORDINALITY)) AS j
  WHERE c.name = 'partition_count') AS v

-- name: nobody
-- The owner of an operator's rows.
X'00000000000000000000000000000000'

-- name: journal_columns
(reader, partition_no, batch, epoch, owner, at, pos, published, failed, seen)

-- name: reader_make
INSERT IGNORE INTO {readers} (name, target, filter, temporary, created_at)
VALUES (:reader, :target, :filter, :temporary, UTC_TIMESTAMP(6))

-- name: reader_target
SELECT target FROM {readers} WHERE name = :reader

-- name: reader_begin
-- For a reader without a journal.
INSERT INTO {batches} {>journal_columns}
SELECT :reader, v.p, 0, 0, {>nobody}, UTC_TIMESTAMP(6), :pos, 0, 0, :seen
  FROM {>all_numbers}
 WHERE NOT EXISTS (SELECT 1 FROM {batches} AS b WHERE b.reader = :reader)
 ORDER BY v.p

-- name: lock_log

-- name: place

-- name: foreign_progress

-- name: readers
-- The last column: a gap is a number that may still come. Exceptions are counted up to 10001.
SELECT r.name, r.target, r.filter, r.temporary, r.created_at, p.low, p.high, p.at,
       (SELECT COUNT(*) FROM {workers} AS w WHERE w.reader = r.name AND w.heartbeat_until > UTC_TIMESTAMP(6)),
       COALESCE((SELECT 10001 FROM {exceptions} AS e WHERE e.reader = r.name AND e.state NOT IN ({=done}, {=discarded}) LIMIT 10000, 1),
                (SELECT COUNT(*) FROM {exceptions} AS e WHERE e.reader = r.name AND e.state NOT IN ({=done}, {=discarded}))),
       LEAST(p.low + 1, COALESCE(p.gap, p.low + 1))
  FROM {readers} AS r
  LEFT JOIN (SELECT b.reader, MIN(b.pos) AS low, MAX(b.pos) AS high, MAX(b.at) AS at,
                    MIN(CAST(SUBSTRING_INDEX(SUBSTRING_INDEX(b.seen, ',', 1), '-', 1) AS SIGNED)) AS gap
               FROM (SELECT reader, partition_no, MAX(batch) AS batch FROM {batches} GROUP BY reader, partition_no) AS n
               JOIN {batches} AS b ON b.reader = n.reader AND b.partition_no = n.partition_no AND b.batch = n.batch
              GROUP BY b.reader) AS p ON p.reader = r.name
 ORDER BY r.name

-- name: progress
-- The newest journal row of each partition of a reader.
SELECT b.partition_no, b.batch, b.epoch, b.owner, b.at, b.pos, b.seen, 0, NULL
  FROM (SELECT v.p, {>newest_batch} AS batch FROM {>partition_list}) AS n
  STRAIGHT_JOIN {batches} AS b ON b.reader = :reader AND b.partition_no = n.p AND b.batch = n.batch
 ORDER BY b.partition_no

-- name: reach
-- Of all partitions.
SELECT b.partition_no, b.at, b.pos, b.seen
  FROM (SELECT v.p, {>newest_batch} AS batch FROM {>all_numbers}) AS n
  STRAIGHT_JOIN {batches} AS b ON b.reader = :reader AND b.partition_no = n.p AND b.batch = n.batch

-- name: reach_before
-- The progress that each partition of a reader had so long ago.
SELECT b.partition_no, b.at, b.pos, b.seen
  FROM (SELECT v.p, (SELECT b.batch FROM {batches} AS b
                      WHERE b.reader = :reader AND b.partition_no = v.p AND b.at <= TIMESTAMPADD(MICROSECOND, -:age, UTC_TIMESTAMP(6))
                      ORDER BY {>whole_key} b.batch DESC LIMIT 1) AS batch FROM {>all_numbers}) AS n
  STRAIGHT_JOIN {batches} AS b ON b.reader = :reader AND b.partition_no = n.p AND b.batch = n.batch

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

-- name: seek_exceptions
-- Those of rows that are read again.
DELETE FROM {exceptions} WHERE reader = :reader AND (seq > :pos :seek_gaps)

-- name: seek
-- The next row of every partition: the new place, with the new epoch of its lease. A number that was taken in between is an error.
INSERT INTO {batches} {>journal_columns}
SELECT :reader, v.p, COALESCE({>newest_batch}, -1) + 1, l.lease_epoch, {>nobody}, UTC_TIMESTAMP(6), :pos, 0, 0, :seen
  FROM {>all_numbers}
  JOIN {leases} AS l ON l.reader = :reader AND l.partition_no = MOD(v.p, ({>partition_count}))
 ORDER BY v.p

-- name: reader_busy
-- Its workers; no row: there is no such reader.
SELECT (SELECT COUNT(*) FROM {workers} WHERE reader = :reader AND heartbeat_until > UTC_TIMESTAMP(6)) FROM {readers} WHERE name = :reader

-- name: reader_lock
SELECT target FROM {readers} WHERE name = :reader FOR UPDATE

-- name: remove_reader
DELETE FROM {readers} WHERE name = :reader

-- name: remove_batches
DELETE FROM {batches} WHERE reader = :reader

-- name: remove_exceptions
DELETE FROM {exceptions} WHERE reader = :reader

-- name: remove_leases
DELETE FROM {leases} WHERE reader = :reader

-- name: remove_workers
DELETE FROM {workers} WHERE reader = :reader

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

-- name: journal
-- A number that is taken already inserts nothing: that is the fence. Nor does one below the newest, whose row may
-- have been pruned, nor one of another epoch than the newest.
INSERT IGNORE INTO {batches} {>journal_columns}
SELECT :reader, v.p, v.batch, v.epoch, :owner, UTC_TIMESTAMP(6), v.pos, v.published, v.failed, ELT(v.seen, :seens)
  FROM {>settle_parts}
 WHERE v.epoch = (SELECT IF(b.batch < v.batch, b.epoch, -1) FROM {batches} AS b
                   WHERE b.reader = :reader AND b.partition_no = v.p ORDER BY {>whole_key} b.batch DESC LIMIT 1)
 ORDER BY v.p

-- name: journal_state
-- Partition, is the row with this number ours, newest number, its epoch.
SELECT v.p, EXISTS (SELECT 1 FROM {batches} AS b
              WHERE b.reader = :reader AND b.partition_no = v.p AND b.batch = v.batch AND b.epoch = v.epoch AND b.owner = :owner),
       {>newest_batch},
       {>newest_epoch}
  FROM {>settle_parts}

-- name: won
-- The partitions whose exceptions may be changed.
SELECT GROUP_CONCAT(t.p) INTO @outbox_won FROM (
  SELECT v.p, v.epoch, EXISTS (SELECT 1 FROM {batches} AS b
                 WHERE b.reader = :reader AND b.partition_no = v.p AND b.batch = v.batch AND b.epoch = v.epoch AND b.owner = COALESCE(:owner, {>nobody})) AS own,
         {>newest_epoch} AS newest
    FROM {>settle_parts}) AS t
 WHERE t.own AND t.newest = t.epoch

-- name: operator_row
-- An operator's row: the newest again, with the next number. A number that was taken in between is an error.
INSERT INTO {batches} {>journal_columns}
SELECT b.reader, b.partition_no, b.batch + 1, b.epoch, {>nobody}, UTC_TIMESTAMP(6), b.pos, 0, 0, b.seen
  FROM (SELECT v.p, {>newest_batch} AS batch FROM {>partition_list}) AS n
  STRAIGHT_JOIN {batches} AS b ON b.reader = :reader AND b.partition_no = n.p AND b.batch = n.batch
 ORDER BY b.partition_no

-- name: operator_made
SELECT v.p, {>newest_batch}, {>newest_epoch} FROM {>partition_list}

-- name: change_list
-- As src/store/sql/change.c makes it.
JSON_TABLE(:changes, '$[*]' COLUMNS (p INT PATH '$[0]', seq BIGINT PATH '$[3]', state INT PATH '$[4]', attempts INT PATH '$[5]',
  was INT PATH '$[6]', due_how INT PATH '$[7]', due BIGINT PATH '$[8]',
  queue VARCHAR(511) {>list_collation} PATH '$[9]', error VARCHAR(1024) {>list_collation} PATH '$[10]')) AS c

-- name: list_collation
CHARACTER SET utf8mb4 {>collation_of_column}

-- name: collation_of_column
/*!80017 COLLATE utf8mb4_0900_bin */ /*M! COLLATE utf8mb4_nopad_bin */

-- name: change_due
CASE c.due_how WHEN 1 THEN TIMESTAMPADD(MICROSECOND, c.due, UTC_TIMESTAMP(6))
  WHEN 2 THEN TIMESTAMPADD(MICROSECOND, c.due, TIMESTAMP'1970-01-01 00:00:00.000000') END

-- name: except_add
-- What is there already is a repeat, or an operator's decision.
INSERT IGNORE INTO {exceptions} (reader, partition_no, seq, state, attempts, due, queue, last_error, since)
SELECT :reader, c.p, c.seq, c.state, c.attempts, {>change_due}, c.queue, c.error, UTC_TIMESTAMP(6)
  FROM {>change_list}
 WHERE FIND_IN_SET(c.p, @outbox_won)

-- name: except_set
UPDATE {>change_list}
  STRAIGHT_JOIN {exceptions} AS e ON e.reader = :reader AND e.partition_no = c.p AND e.seq = c.seq
   SET e.state = c.state, e.attempts = c.attempts, e.due = {>change_due}, e.queue = c.queue,
       e.last_error = COALESCE(c.error, e.last_error), e.since = UTC_TIMESTAMP(6)
 WHERE FIND_IN_SET(c.p, @outbox_won) AND e.attempts = c.was AND (:any OR e.state IN ({=waiting}, {=failed}, {=delayed}))

-- name: except_remove
DELETE e FROM {>change_list}
  STRAIGHT_JOIN {exceptions} AS e ON e.reader = :reader AND e.partition_no = c.p AND e.seq = c.seq
 WHERE FIND_IN_SET(c.p, @outbox_won)

-- name: promote
-- The head of each queue, if it only waits.
UPDATE (SELECT c.p, (SELECT q.seq FROM {exceptions} AS q FORCE INDEX ({name:queue})
                      WHERE q.reader = :reader AND q.partition_no = c.p AND q.queue = c.queue ORDER BY q.seq LIMIT 1) AS seq
          FROM JSON_TABLE(:queues, '$[*]' COLUMNS (p INT PATH '$[0]', queue VARCHAR(511) {>list_collation} PATH '$[3]')) AS c
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

-- name: seek_forget
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

-- name: reader_refilter
UPDATE {readers} SET filter = :filter WHERE name = :reader
