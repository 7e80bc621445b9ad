-- Reading the log, and the proof that a missing number will stay missing.

-- name: end_of_log
-- The first and the last number after :pos. A read walks no farther than :span, however few rows are the reader's.
SELECT MIN(m.{seq}), MAX(m.{seq}) INTO @outbox_first, @outbox_last FROM {outbox} AS m WHERE m.{seq} > :pos AND m.{seq} <= :end

-- name: end_of_walk
-- And whether there is any exception: without one, no statement asks for them row by row.
SELECT @outbox_last, LEAST(@outbox_last, @outbox_first + :span),
       EXISTS (SELECT 1 FROM {exceptions} AS e WHERE e.reader = :reader)

-- name: no_flags
0, 0, m.{available_at} > UTC_TIMESTAMP(6)

-- name: row_flags
EXISTS (SELECT 1 FROM {exceptions} AS e
  WHERE e.reader = :reader AND e.partition_no = m.{partition_no} AND e.seq = m.{seq}),
:ordered AND EXISTS (SELECT 1 FROM {exceptions} AS e FORCE INDEX ({name:queue})
  WHERE e.reader = :reader AND e.partition_no = m.{partition_no} AND e.queue = IF(:whole, '', m.{ordering_key})),
m.{available_at} > UTC_TIMESTAMP(6)

-- name: average_size
-- So that the first read of a connection does not bring far more than it wants.
SELECT COALESCE(CAST(AVG(t.size) AS SIGNED), 0)
  FROM (SELECT COALESCE(OCTET_LENGTH(m.{payload}), 0) AS size FROM {outbox} AS m FORCE INDEX (PRIMARY)
         WHERE m.{seq} > :pos ORDER BY m.{seq} LIMIT 16) AS t

-- name: late
-- Rows that were gaps, of whichever partition: another's is no gap any more either. In each part of the list.
SELECT {>message_columns}, :flags
  FROM {outbox} AS m FORCE INDEX (PRIMARY)
 WHERE (:gaps) ORDER BY m.{seq} LIMIT :limit

-- name: next
SELECT {>message_columns}, :flags
  FROM {outbox} AS m FORCE INDEX (PRIMARY)
 WHERE m.{seq} > :pos AND m.{seq} <= LEAST(@outbox_last, @outbox_first + :span) AND :mine ORDER BY m.{seq} LIMIT :limit

-- name: mine
m.{target} = :target AND (:parts)

-- name: part
-- Partitions that have come equally far.
m.{partition_no} IN (:numbers)

-- name: part_from
(m.{partition_no} IN (:numbers) AND m.{seq} > :pos)

-- name: count_others
-- How many numbers of the range are rows that the reader need not see.
SELECT COUNT(*) FROM {outbox} AS m FORCE INDEX (PRIMARY)
 WHERE m.{seq} > :pos AND m.{seq} <= :last AND NOT (:mine)

-- name: list_others
SELECT m.{seq} FROM {outbox} AS m FORCE INDEX (PRIMARY)
 WHERE m.{seq} > :pos AND m.{seq} <= :last AND NOT (:mine) ORDER BY m.{seq}

-- name: numbers
SELECT m.{seq} FROM {outbox} AS m FORCE INDEX (PRIMARY) WHERE m.{seq} > :pos AND m.{seq} <= :last ORDER BY m.{seq} LIMIT :limit

-- name: due_heads
-- Exceptions that may be tried now: those without a queue, and heads.
SELECT e.partition_no, e.seq, e.queue
  FROM {exceptions} AS e FORCE INDEX ({name:due})
 WHERE e.reader = :reader AND e.partition_no IN (:numbers) AND e.due <= UTC_TIMESTAMP(6)
   AND e.state IN ({=waiting}, {=failed}, {=delayed}) AND e.seq NOT IN (:exclude)
   AND (e.queue IS NULL OR NOT EXISTS (SELECT 1 FROM {exceptions} AS q FORCE INDEX ({name:queue})
     WHERE q.reader = e.reader AND q.partition_no = e.partition_no AND q.queue = e.queue AND q.seq < e.seq))
 ORDER BY e.due, e.seq LIMIT :limit

-- name: due_row
(SELECT {>message_columns}, e.attempts, e.state, e.queue, 1
  FROM {exceptions} AS e
  STRAIGHT_JOIN {outbox} AS m FORCE INDEX (PRIMARY) ON m.{seq} = e.seq
 WHERE e.reader = :reader AND e.partition_no = :partition AND e.seq = :seq
   AND e.state IN ({=waiting}, {=failed}, {=delayed}) AND e.due <= UTC_TIMESTAMP(6))

-- name: due_queue
-- The head and what follows it; the last column says whether the row may be sent.
(SELECT {>message_columns}, e.attempts, e.state, e.queue,
       IF(e.seq = :seq, e.state IN ({=waiting}, {=failed}, {=delayed}) AND e.due <= UTC_TIMESTAMP(6),
          e.state = {=waiting} OR (e.state = {=delayed} AND e.due <= UTC_TIMESTAMP(6)))
  FROM {exceptions} AS e FORCE INDEX ({name:queue})
  STRAIGHT_JOIN {outbox} AS m FORCE INDEX (PRIMARY) ON m.{seq} = e.seq
 WHERE e.reader = :reader AND e.partition_no = :partition AND e.queue = :queue AND e.seq >= :seq
 ORDER BY e.seq LIMIT :limit)

-- name: probe
-- At READ UNCOMMITTED: which of these numbers have a row, committed or not.
SELECT m.{seq} FROM {outbox} AS m FORCE INDEX (PRIMARY) WHERE (:gaps) ORDER BY m.{seq} LIMIT :limit

-- name: in_use
-- How many statements have the table open. None: every number that was drawn has its row, or never will.
SHOW OPEN TABLES FROM :schema LIKE :pattern

-- name: statements_mariadb
-- The connections on which a statement runs, and those of them that are in the list :then. One that was seen
-- without a statement has ended the one of then. Neither a query id nor the time of a statement would tell: both
-- change while it is inside a function. Connections of replication run for ever, and hold no number of ours.
SELECT GROUP_CONCAT(ID), GROUP_CONCAT(IF(FIND_IN_SET(ID, :then), ID, NULL)) FROM information_schema.PROCESSLIST
 WHERE ID <> CONNECTION_ID()
   AND COMMAND NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Slave_IO', 'Slave_SQL', 'Slave_worker')

-- name: statements_mysql
-- The same; here the number of an event tells a statement from the next one, where the connection is instrumented.
-- Level 0: not what a function runs.
SELECT GROUP_CONCAT(t.one), GROUP_CONCAT(IF(FIND_IN_SET(t.one, :then), t.one, NULL))
  FROM (SELECT CONCAT(h.THREAD_ID, '/', COALESCE(s.EVENT_ID, 0)) AS one
          FROM performance_schema.threads AS h
          LEFT JOIN performance_schema.events_statements_current AS s
            ON s.THREAD_ID = h.THREAD_ID AND s.NESTING_EVENT_LEVEL = 0 AND s.END_EVENT_ID IS NULL
         WHERE h.TYPE = 'FOREGROUND' AND h.PROCESSLIST_ID <> CONNECTION_ID()
           AND h.PROCESSLIST_COMMAND NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID')) AS t

-- name: counter
-- What the next row gets at least.
SELECT COALESCE(AUTO_INCREMENT, 0) FROM information_schema.TABLES
 WHERE TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND TABLE_NAME = :table

-- name: id_of
SELECT m.{id} FROM {outbox} AS m WHERE m.{seq} = :seq
