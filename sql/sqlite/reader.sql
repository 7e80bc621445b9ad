-- Readers, their journal and their exceptions.

-- name: reader_target
SELECT target FROM {readers} WHERE name = :reader;

-- name: reader_make
INSERT OR IGNORE INTO {readers} (name, target, filter, temporary, created_at)
VALUES (:reader, :target, :filter, :temporary, :now);

-- name: reader_begin
-- For a reader without a journal, in all partitions.
{>numbers} INSERT INTO {batches} (reader, partition_no, batch, epoch, owner, at, pos)
SELECT :reader, n.i, 0, 0, zeroblob(16), :now, :pos FROM n WHERE NOT EXISTS (SELECT 1 FROM {batches} AS b WHERE b.reader = :reader);

-- name: lock_log

-- name: reader_lock

-- name: foreign_progress

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
         WHERE e.reader = r.name AND e.state NOT IN ({=done}, {=discarded}) LIMIT 10001)), min(b.pos) + 1
  FROM {readers} AS r CROSS JOIN n CROSS JOIN {batches} AS b ON {>newest}
 GROUP BY r.name ORDER BY r.name;

-- name: place
-- The position before a place, and nothing that was seen. :start 0 the beginning, 1 the end, 2 a time, 3 the number :at; what lies
-- after the end is the end. There is no index on the time: a reader begins once, a writer would pay for ever. Numbers are the order of
-- commits, times need not be: so the first row, not a search by halves.
SELECT CASE :start WHEN 0 THEN 0 ELSE max(0, min(l.pos, coalesce(CASE :start WHEN 3 THEN :at
         WHEN 2 THEN (SELECT o.{seq} FROM {outbox} AS o WHERE o.{created_at} >= :at ORDER BY o.{seq} LIMIT 1) END - 1, l.pos))) END, NULL
  FROM (SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = replace('{outbox}', '"', '') COLLATE NOCASE), 0) AS pos) AS l;

-- ---- journal ----------------------------------------------------------

-- name: parts
-- What :parts begins with: partition, batch, epoch.
(SELECT json_extract(value, '$[0]') AS p, json_extract(value, '$[1]') AS batch, json_extract(value, '$[2]') AS epoch, value AS part FROM json_each(:parts)) AS v

-- name: newest_batch
(SELECT b.batch FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = v.p ORDER BY b.batch DESC LIMIT 1)

-- name: newest_epoch
(SELECT b.epoch FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = v.p ORDER BY b.batch DESC LIMIT 1)

-- name: journal
-- The fence. SQLite has one writer, so nobody adds a row between the query and ours. That the number is free is not enough: old rows
-- are pruned, and a worker that was frozen for an hour would find its own free again. The newest row is never pruned, and has our epoch
-- unless someone took over.
INSERT INTO {batches} (reader, partition_no, batch, epoch, owner, at, pos, published, failed)
SELECT :reader, v.p, v.batch, v.epoch, :owner, :now, json_extract(v.part, '$[3]'), json_extract(v.part, '$[4]'), json_extract(v.part, '$[5]')
  FROM {>parts}
 WHERE {>newest_epoch} = v.epoch AND {>newest_batch} < v.batch;

-- name: journal_state
-- Is the row of that number ours, and which is the newest?
SELECT v.p, EXISTS (SELECT 1 FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = v.p AND b.batch = v.batch
                       AND b.epoch = v.epoch AND b.owner = :owner), {>newest_batch}, {>newest_epoch}
  FROM {>parts};

-- name: wanted
-- :parts of a takeover: partition, epoch.
(SELECT json_extract(value, '$[0]') AS p, json_extract(value, '$[1]') AS epoch FROM json_each(:parts)) AS v

-- name: take_over
-- :parts p, epoch. The newest row again, with the next number: not if a higher epoch is there, nor if the newest is ours already.
INSERT INTO {batches} (reader, partition_no, batch, epoch, owner, at, pos)
SELECT b.reader, b.partition_no, b.batch + 1, v.epoch, :owner, :now, b.pos
  FROM {>wanted} CROSS JOIN {batches} AS b ON b.reader = :reader AND b.partition_no = v.p AND b.batch = {>newest_batch}
 WHERE b.epoch <= v.epoch AND NOT (b.epoch = v.epoch AND b.owner = :owner);

-- name: progress
SELECT b.partition_no, b.batch, b.epoch, b.owner, b.at, b.pos, NULL, 0, NULL
  FROM {>wanted} CROSS JOIN {batches} AS b ON b.reader = :reader AND b.partition_no = v.p AND b.batch = {>newest_batch};

-- name: operator_row
-- The next row of each partition, with the progress and the epoch of the newest, and no owner.
INSERT INTO {batches} (reader, partition_no, batch, epoch, owner, at, pos)
SELECT b.reader, b.partition_no, b.batch + 1, b.epoch, zeroblob(16), :now, b.pos
  FROM {>parts} CROSS JOIN {batches} AS b ON b.reader = :reader AND b.partition_no = v.p AND b.batch = {>newest_batch}
 WHERE true
RETURNING partition_no, batch, epoch;

-- name: operator_made

-- ---- exceptions -------------------------------------------------------

-- name: won
-- Every change asks for itself.

-- name: is_won
-- Is the row of the fence v.p, v.batch, v.epoch there and :owner's (that of an operator has none), and has nobody taken over since?
EXISTS (SELECT 1 FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = v.p AND b.batch = v.batch AND b.epoch = v.epoch
           AND b.owner = coalesce(:owner, zeroblob(16))) AND {>newest_epoch} = v.epoch

-- name: changes
-- As src/store/sql/change.c makes them.
(SELECT v.*, json_extract(value, '$[3]') AS seq, json_extract(value, '$[4]') AS state, json_extract(value, '$[5]') AS attempts, json_extract(value, '$[6]') AS was,
        CASE json_extract(value, '$[7]') WHEN 1 THEN :now + json_extract(value, '$[8]') WHEN 2 THEN json_extract(value, '$[8]') END AS due, json_extract(value, '$[9]') AS queue, json_extract(value, '$[10]') AS error
   FROM (SELECT value, json_extract(value, '$[0]') AS p, json_extract(value, '$[1]') AS batch, json_extract(value, '$[2]') AS epoch FROM json_each(:changes)) AS v) AS v

-- name: except_add
-- One that is there is a repeat, or an operator's decision: it stays.
INSERT OR IGNORE INTO {exceptions} (reader, partition_no, seq, state, attempts, due, queue, last_error, since)
SELECT :reader, v.p, v.seq, v.state, v.attempts, v.due, v.queue, v.error, :now FROM {>changes} WHERE {>is_won};

-- name: except_set
-- Not what an operator has changed since it was read; an operator's own change applies always.
UPDATE {exceptions} AS e
   SET state = v.state, attempts = v.attempts, due = v.due, queue = v.queue, last_error = coalesce(v.error, e.last_error), since = :now
  FROM {>changes}
 WHERE e.reader = :reader AND e.partition_no = v.p AND e.seq = v.seq AND {>is_won}
   AND (:any OR (e.attempts = v.was AND e.state IN ({=waiting}, {=failed}, {=delayed})));

-- name: except_remove
DELETE FROM {exceptions} WHERE reader = :reader AND (partition_no, seq) IN (SELECT v.p, v.seq FROM {>changes} WHERE {>is_won});

-- name: promote
-- The head of a queue that waits for nothing any more is due at once.
UPDATE {exceptions} SET due = :now
 WHERE reader = :reader AND state = {=waiting} AND due IS NULL AND (partition_no, seq) IN (
   SELECT v.p, (SELECT min(h.seq) FROM {exceptions} AS h WHERE h.reader = :reader AND h.partition_no = v.p AND h.queue = v.queue)
     FROM (SELECT json_extract(value, '$[0]') AS p, json_extract(value, '$[1]') AS batch, json_extract(value, '$[2]') AS epoch, json_extract(value, '$[3]') AS queue FROM json_each(:queues)) AS v
    WHERE {>is_won});

-- ---- seek and remove --------------------------------------------------

-- name: seek
-- The next row of every partition: the new place, with the new epoch of its lease.
{>numbers} INSERT INTO {batches} (reader, partition_no, batch, epoch, owner, at, pos)
SELECT r.name, n.i, b.batch + 1, l.lease_epoch, zeroblob(16), :now, :pos
  FROM {readers} AS r CROSS JOIN n CROSS JOIN {batches} AS b ON {>newest}
 CROSS JOIN {leases} AS l ON l.reader = r.name AND l.partition_no = n.i % (SELECT value FROM {meta} WHERE name = 'partition_count')
 WHERE r.name = :reader;

-- name: seek_exceptions
-- These rows are read again.
DELETE FROM {exceptions} WHERE reader = :reader AND seq > :pos;

-- name: seek_forget
-- Retention would go by what it had before.
DELETE FROM {batches} AS d
 WHERE d.reader = :reader AND d.batch < (SELECT max(b.batch) FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = d.partition_no);

-- name: reader_busy
-- Its workers; no row: there is no such reader.
SELECT (SELECT count(*) FROM {workers} WHERE reader = :reader AND heartbeat_until > :now) FROM {readers} WHERE name = :reader;

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

-- name: retain_these
-- The same, of the numbers in the list :only.
DELETE FROM {outbox} AS o
 WHERE o.{seq} IN (SELECT value FROM json_each(:only)) AND o.{seq} <= :bound
   AND EXISTS (SELECT 1 FROM {readers} AS r WHERE r.target = o.{target})
   AND NOT EXISTS (SELECT 1 FROM {readers} AS r CROSS JOIN {exceptions} AS e
        ON e.reader = r.name AND e.partition_no = o.{partition_no} AND e.seq = o.{seq});

-- name: retain_audit
DELETE FROM {audit} WHERE at < :now - {=audit_days} * 86400000000;

-- name: retain_throughput
DELETE FROM {throughput} WHERE minute < :now - 25 * 3600000000;

-- name: holder
-- The reader that is furthest back and holds rows of its target that are as old as :since.
{>numbers} SELECT k.name, k.moved_at
  FROM (SELECT r.name, r.target, min(b.pos) AS pos, max(b.at) AS moved_at
          FROM {readers} AS r CROSS JOIN n CROSS JOIN {batches} AS b ON {>newest} GROUP BY r.name) AS k
 WHERE (SELECT o.{created_at} FROM {outbox} AS o WHERE o.{seq} > k.pos AND o.{target} = k.target ORDER BY o.{seq} LIMIT 1) <= :since
 ORDER BY k.pos LIMIT 1;

-- name: reader_refilter
UPDATE {readers} SET filter = :filter WHERE name = :reader;
