-- Readers, their journal and their exceptions.

-- name: reader_get
SELECT target FROM {readers} WHERE name = :reader;

-- name: reader_add
INSERT INTO {readers} (name, target, filter, temporary, created_at)
VALUES (:reader, :target, :filter, :temporary, :now);

-- name: reader_begin
-- Its first journal rows, in all partitions.
{>numbers} INSERT INTO {batches} (reader, partition_no, batch, epoch, owner, at, pos)
SELECT :reader, n.i, 0, 0, zeroblob(16), :now, :pos FROM n;

-- name: numbers
-- The numbers of all partitions, in all lanes.
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n
  WHERE i + 1 < {=lanes} * (SELECT value FROM {meta} WHERE name = 'partition_count'))

-- name: newest
-- Is journal row b the newest of reader r in partition n.i?
b.reader = r.name AND b.partition_no = n.i AND b.batch = (SELECT max(c.batch) FROM {batches} AS c WHERE c.reader = r.name AND c.partition_no = n.i)

-- name: readers
{>numbers} SELECT r.name, r.target, r.filter, r.temporary, r.created_at, min(b.pos), max(b.pos), max(b.at),
       (SELECT count(*) FROM {workers} AS w WHERE w.reader = r.name AND w.heartbeat_until > :now),
       (SELECT count(*) FROM (SELECT 1 FROM {exceptions} AS e
         WHERE e.reader = r.name AND e.state NOT IN ({=done}, {=discarded}) LIMIT 10001))
  FROM {readers} AS r CROSS JOIN n CROSS JOIN {batches} AS b ON {>newest}
 WHERE :reader IS NULL OR r.name = :reader
 GROUP BY r.name ORDER BY r.name;

-- name: place_by_time
-- There is no index on the time: a reader begins once, a writer would pay for ever. Numbers are
-- the order of commits, times need not be: so the first row, not a search by halves.
SELECT o.{seq} FROM {outbox} AS o WHERE o.{created_at} >= :at ORDER BY o.{seq} LIMIT 1;

-- ---- journal ----------------------------------------------------------

-- name: journal_newest
SELECT batch, epoch, owner, pos FROM {batches}
 WHERE reader = :reader AND partition_no = :partition ORDER BY batch DESC LIMIT 1;

-- name: journal_row
SELECT batch, epoch, owner, pos FROM {batches}
 WHERE reader = :reader AND partition_no = :partition AND batch = :batch;

-- name: journal_add
INSERT INTO {batches} (reader, partition_no, batch, epoch, owner, at, pos, published, failed)
VALUES (:reader, :partition, :batch, :epoch, :owner, :now, :pos, :published, :failed);

-- ---- exceptions -------------------------------------------------------

-- name: exception_add
-- One that is there is a repeat, or an operator's decision: it stays.
INSERT OR IGNORE INTO {exceptions} (reader, partition_no, seq, state, attempts, due, queue, last_error, since)
VALUES (:reader, :partition, :seq, :state, :attempts, :due, :queue, :error, :now);

-- name: exception_set
-- Not what an operator has changed since it was read; an operator's own change applies always.
UPDATE {exceptions}
   SET state = :state, attempts = :attempts, due = :due, queue = :queue, last_error = coalesce(:error, last_error), since = :now
 WHERE reader = :reader AND partition_no = :partition AND seq = :seq
   AND (:operator OR (attempts = :was_attempts AND state IN ({=waiting}, {=failed}, {=delayed})));

-- name: exception_remove
DELETE FROM {exceptions} WHERE reader = :reader AND partition_no = :partition AND seq = :seq;

-- name: promote
-- The head of a queue that waits for nothing any more is due at once.
UPDATE {exceptions} SET due = :now
 WHERE reader = :reader AND partition_no = :partition AND state = {=waiting} AND due IS NULL
   AND seq = (SELECT min(h.seq) FROM {exceptions} AS h
               WHERE h.reader = :reader AND h.partition_no = :partition AND h.queue = :queue);

-- ---- seek and remove --------------------------------------------------

-- name: seek_journal
-- The next row of every partition: the new place, with the new epoch of its lease.
{>numbers} INSERT INTO {batches} (reader, partition_no, batch, epoch, owner, at, pos)
SELECT r.name, n.i, b.batch + 1, l.lease_epoch, zeroblob(16), :now, :pos
  FROM {readers} AS r CROSS JOIN n CROSS JOIN {batches} AS b ON {>newest}
 CROSS JOIN {leases} AS l ON l.reader = r.name AND l.partition_no = n.i % (SELECT value FROM {meta} WHERE name = 'partition_count')
 WHERE r.name = :reader;

-- name: seek_exceptions
-- These rows are read again.
DELETE FROM {exceptions} WHERE reader = :reader AND seq > :pos;

-- name: busy_workers
SELECT count(*) FROM {workers} WHERE reader = :reader AND heartbeat_until > :now;

-- name: remove_reader
DELETE FROM {readers} WHERE name = :reader;

-- name: remove_batches
DELETE FROM {batches} WHERE reader = :reader;

-- name: remove_exceptions
DELETE FROM {exceptions} WHERE reader = :reader;

-- name: remove_leases
DELETE FROM {leases} WHERE reader = :reader;

-- name: remove_workers
DELETE FROM {workers} WHERE reader = :reader;

-- ---- retention --------------------------------------------------------

-- name: idle_reader
-- A temporary one that was made, had a worker and moved more than an hour ago.
SELECT r.name FROM {readers} AS r
 WHERE r.temporary AND r.created_at < :now - 3600000000
   AND NOT EXISTS (SELECT 1 FROM {workers} AS w WHERE w.reader = r.name AND w.heartbeat_until > :now - 3600000000)
   AND NOT EXISTS (SELECT 1 FROM {batches} AS b WHERE b.reader = r.name AND b.at > :now - 3600000000)
 LIMIT 1;

-- name: retain_dead
-- Only what progress covers: a row that it does not cover would be read again.
DELETE FROM {exceptions} AS e
 WHERE e.state = {=dead} AND e.since <= :since
   AND e.seq <= (SELECT p.pos FROM {batches} AS p WHERE p.reader = e.reader AND p.partition_no = e.partition_no ORDER BY p.batch DESC LIMIT 1);

-- name: retain_finished
DELETE FROM {exceptions} AS e
 WHERE (e.state = {=done} OR (e.state = {=discarded} AND e.since <= :since))
   AND e.seq <= (SELECT p.pos FROM {batches} AS p WHERE p.reader = e.reader AND p.partition_no = e.partition_no ORDER BY p.batch DESC LIMIT 1);

-- name: past
-- The newest journal row of reader r in partition n.i that is as old as :since, found from the
-- oldest on: those before it were removed.
(SELECT max(c.batch) FROM {batches} AS c WHERE c.reader = r.name AND c.partition_no = n.i
    AND c.batch < coalesce((SELECT d.batch FROM {batches} AS d WHERE d.reader = r.name AND d.partition_no = n.i AND d.at > :since
                             ORDER BY d.batch LIMIT 1), 9223372036854775807))

-- name: retain_bound
-- What every reader had passed then, and has passed now: one may have been moved back. NULL: there
-- is no reader; -1: one is too young.
{>numbers} SELECT min(min(b.pos, coalesce((SELECT p.pos FROM {batches} AS p WHERE p.reader = r.name AND p.partition_no = n.i AND p.batch = {>past}), -1)))
  FROM {readers} AS r CROSS JOIN n CROSS JOIN {batches} AS b ON {>newest};

-- name: prune_old
-- What is older than the row that says where a reader was at :since.
{>numbers} DELETE FROM {batches} WHERE (reader, partition_no, batch) IN (
  SELECT b.reader, b.partition_no, b.batch
    FROM {readers} AS r CROSS JOIN n CROSS JOIN {batches} AS b ON b.reader = r.name AND b.partition_no = n.i AND b.batch < {>past});

-- name: prune_crowd
-- Of a minute that is over, the last row is enough to say when a message was published. What was
-- written before :thinned has been through this.
{>numbers} DELETE FROM {batches} WHERE (reader, partition_no, batch) IN (
  SELECT b.reader, b.partition_no, b.batch
    FROM {readers} AS r CROSS JOIN n CROSS JOIN {batches} AS b ON b.reader = r.name AND b.partition_no = n.i
     AND b.batch > coalesce((SELECT c.batch FROM {batches} AS c WHERE c.reader = r.name AND c.partition_no = n.i AND c.at < :thinned
                              ORDER BY c.batch DESC LIMIT 1), -1)
   WHERE b.at > :since AND b.at / 60000000 < :now / 60000000
     AND b.at / 60000000 = (SELECT c.at FROM {batches} AS c WHERE c.reader = r.name AND c.partition_no = n.i AND c.batch > b.batch
                             ORDER BY c.batch LIMIT 1) / 60000000);

-- name: retain_to
-- The last of the next :limit rows.
SELECT max(seq) FROM (SELECT o.{seq} AS seq FROM {outbox} AS o WHERE o.{seq} > :from AND o.{seq} <= :bound ORDER BY o.{seq} LIMIT :limit);

-- name: retain_rows
-- A row stays while a reader has an exception for it, or nobody reads its target.
DELETE FROM {outbox} AS o
 WHERE o.{seq} > :from AND o.{seq} <= :to
   AND EXISTS (SELECT 1 FROM {readers} AS r WHERE r.target = o.{target})
   AND NOT EXISTS (SELECT 1 FROM {readers} AS r CROSS JOIN {exceptions} AS e
        ON e.reader = r.name AND e.partition_no = o.{partition_no} AND e.seq = o.{seq});

-- name: retain_throughput
DELETE FROM {throughput} WHERE minute < :now - 25 * 3600000000;

-- name: holder
-- The reader that is furthest back and holds rows of its target that are as old as :since.
{>numbers} SELECT k.name, k.moved_at
  FROM (SELECT r.name, r.target, min(b.pos) AS pos, max(b.at) AS moved_at
          FROM {readers} AS r CROSS JOIN n CROSS JOIN {batches} AS b ON {>newest} GROUP BY r.name) AS k
 WHERE (SELECT o.{created_at} FROM {outbox} AS o WHERE o.{seq} > k.pos AND o.{target} = k.target ORDER BY o.{seq} LIMIT 1) <= :since
 ORDER BY k.pos LIMIT 1;
