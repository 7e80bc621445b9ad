-- Reading the log, the exceptions that are due, and listing.

-- name: message_columns
-- What sending needs of a message; the order is that of row.c.
o.{seq}, o.{partition_no}, o.{id}, o.{aggregate_type}, o.{aggregate_id}, o.{event_type},
{?revision}o.{revision}{/}{!revision}1{/},
{?sequence_number}o.{sequence_number}{/}{!sequence_number}NULL{/},
{?correlation_id}o.{correlation_id}{/}{!correlation_id}NULL{/},
{?causation_id}o.{causation_id}{/}{!causation_id}NULL{/},
o.{ordering_key}, o.{priority}, o.{target},
{?occurred_at}o.{occurred_at}{/}{!occurred_at}o.{created_at}{/},
o.{created_at}, o.{available_at},
{?headers}o.{headers}{/}{!headers}NULL{/}, o.{payload}

-- name: position
-- Of reader r in the partition of row o: up to here, everything without an exception is delivered.
(SELECT p.pos FROM {batches} AS p WHERE p.reader = r.name AND p.partition_no = o.{partition_no} ORDER BY p.batch DESC LIMIT 1)

-- name: published_at
-- The first journal row that is still kept and covers row o.
CASE WHEN (e.seq IS NULL OR e.state = {=done}) AND o.{seq} <= {>position} THEN
  (SELECT p.at FROM {batches} AS p WHERE p.reader = r.name AND p.partition_no = o.{partition_no} AND p.pos >= o.{seq}
    ORDER BY p.batch LIMIT 1) END

-- name: follows
-- Is there a lower row in the queue of exception e?
EXISTS (SELECT 1 FROM {exceptions} AS h
         WHERE h.reader = e.reader AND h.partition_no = e.partition_no AND h.queue = e.queue AND h.seq < e.seq)

-- name: exception_view
CASE e.state
  WHEN {=waiting} THEN CASE WHEN {>follows} THEN 'parked' ELSE 'pending' END
  WHEN {=failed} THEN 'failed'
  WHEN {=delayed} THEN 'delayed'
  WHEN {=dead} THEN 'dead'
  WHEN {=dead_hold} THEN 'dead'
  WHEN {=discarded} THEN 'discarded'
  WHEN {=done} THEN 'published' END

-- name: view_until_now
-- The state of message o for reader r, as people see it: this, an expression for now, and
-- view_after_now.
CASE WHEN e.seq IS NOT NULL THEN {>exception_view}
  WHEN o.{seq} <= {>position} THEN 'published'
  WHEN o.{available_at} >

-- name: view_after_now
  THEN 'delayed'
  WHEN EXISTS (SELECT 1 FROM {exceptions} AS h
                WHERE h.reader = r.name AND h.partition_no = o.{partition_no} AND h.queue IN (o.{ordering_key}, ''))
  THEN 'parked' ELSE 'pending' END

-- name: walk
-- All partitions in one walk of the primary key.
SELECT {>message_columns} FROM {outbox} AS o
 WHERE o.{seq} > :pos AND o.{seq} <= :end AND o.{target} = :target ORDER BY o.{seq};

-- name: load
SELECT {>message_columns} FROM {outbox} AS o WHERE o.{seq} = :seq;

-- name: end_of_log
-- The highest number that was ever committed, also of rows that are gone.
SELECT seq FROM sqlite_sequence WHERE name = :table COLLATE NOCASE;

-- name: any_exception
SELECT EXISTS (SELECT 1 FROM {exceptions} WHERE reader = :reader);

-- name: next_exception
-- Of one partition, the first from a number on: up to there no row has an exception of its own.
SELECT min(seq) FROM {exceptions} WHERE reader = :reader AND partition_no = :partition AND seq >= :seq;

-- name: any_queue
SELECT EXISTS (SELECT 1 FROM {exceptions} WHERE reader = :reader AND partition_no = :partition AND queue IS NOT NULL);

-- name: in_queue
SELECT EXISTS (SELECT 1 FROM {exceptions} WHERE reader = :reader AND partition_no = :partition AND queue = :queue);

-- name: due
-- Rows without a queue, and heads of queues.
SELECT e.seq, e.state, e.attempts, e.queue FROM {exceptions} AS e
 WHERE e.reader = :reader AND e.partition_no = :partition AND e.due <= :now
   AND e.state IN ({=waiting}, {=failed}, {=delayed}) AND (e.queue IS NULL OR NOT {>follows})
 ORDER BY e.due;

-- name: queue_rows
-- A head and what follows it.
SELECT seq, state, attempts, state = {=waiting} OR (state = {=delayed} AND due <= :now) FROM {exceptions}
 WHERE reader = :reader AND partition_no = :partition AND queue = :queue AND seq >= :seq ORDER BY seq;

-- ---- listing: the rows of a filter, by number, and then each row ------

-- name: pick_columns
SELECT o.{seq}, o.{partition_no}, e.seq IS NOT NULL, e.state, e.attempts, e.queue, o.{seq} <= {>position}

-- name: pick_log
-- From the log; without a reader everything is as for one that has read nothing.
{>pick_columns}
  FROM {outbox} AS o
  LEFT JOIN {readers} AS r ON r.name = :reader
  LEFT JOIN {exceptions} AS e ON e.reader = r.name AND e.partition_no = o.{partition_no} AND e.seq = o.{seq}
 WHERE (:reader IS NULL OR o.{target} = r.target)

-- name: pick_exceptions
{>pick_columns}
  FROM {readers} AS r
 CROSS JOIN {exceptions} AS e ON e.reader = r.name
 CROSS JOIN {outbox} AS o ON o.{seq} = e.seq
 WHERE r.name = :reader

-- name: and_pending
-- What pick_exceptions leaves: rows that no position covers.
 AND o.{seq} > :low AND e.seq IS NULL

-- name: and_id
 AND o.{id} = :id

-- name: and_view
-- :views is a list, ',pending,failed,'.
 AND instr(:views, ',' || {>view_until_now} :now {>view_after_now} || ',') > 0

-- name: and_key
 AND o.{ordering_key} = :key

-- name: and_aggregate_type
 AND o.{aggregate_type} = :aggregate_type

-- name: and_aggregate_id
 AND o.{aggregate_id} = :aggregate_id

-- name: and_event_type
 AND o.{event_type} = :event_type

-- name: and_after
 AND o.{seq} > :after

-- name: and_before
 AND o.{seq} < :after

-- name: union
 UNION ALL

-- name: oldest_first
 ORDER BY 1 LIMIT :limit

-- name: newest_first
 ORDER BY 1 DESC LIMIT :limit

-- name: list_row
SELECT {>message_columns},
       e.attempts, e.state, e.seq IS NOT NULL,
       {?partition_key}o.{partition_key}{/}{!partition_key}NULL{/},
       {?snapshot}o.{snapshot}{/}{!snapshot}NULL{/},
       e.last_error, e.due, e.since, {>published_at},
       {>view_until_now} :now {>view_after_now}
  FROM {outbox} AS o
  LEFT JOIN {readers} AS r ON r.name = :reader
  LEFT JOIN {exceptions} AS e ON e.reader = r.name AND e.partition_no = o.{partition_no} AND e.seq = o.{seq}
 WHERE o.{seq} = :seq;

-- ---- statistics -------------------------------------------------------

-- name: stats_log
-- Rows that no position covers, at most :limit; and the first of them that is due.
SELECT w.view, count(*), min(w.seq)
  FROM (SELECT o.{seq} AS seq, {>view_until_now} :now {>view_after_now} AS view
          FROM {readers} AS r
         CROSS JOIN {outbox} AS o ON o.{target} = r.target
          LEFT JOIN {exceptions} AS e ON e.reader = r.name AND e.partition_no = o.{partition_no} AND e.seq = o.{seq}
         WHERE r.name = :reader AND o.{seq} > :low AND e.seq IS NULL AND o.{seq} > {>position}
         ORDER BY o.{seq} LIMIT :limit) AS w
 GROUP BY w.view;

-- name: stats_exceptions
SELECT {>exception_view}, count(*),
       min(CASE WHEN e.state = {=waiting} OR (e.state = {=failed} AND e.due <= :now) THEN e.seq END)
  FROM {exceptions} AS e WHERE e.reader = :reader GROUP BY 1;

-- name: stats_held
SELECT count(*) FROM {exceptions} AS e
 WHERE e.reader = :reader AND e.queue IS NOT NULL AND e.state IN ({=failed}, {=delayed}, {=dead_hold}) AND NOT {>follows};

-- name: created_at
SELECT {created_at} FROM {outbox} WHERE {seq} = :seq;

-- name: throughput
SELECT minute, sum(published), sum(failed)
  FROM {throughput}
 WHERE minute > :now / 60000000 * 60000000 - :minutes * 60000000
   AND minute <= :now AND (:reader IS NULL OR reader = :reader)
   AND (published > 0 OR failed > 0)
 GROUP BY minute ORDER BY minute;
