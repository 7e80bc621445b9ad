-- Reading the log, the exceptions that are due, and listing.

-- name: message_fields
-- What sending needs of a message but its payload and headers, in the order of src/store/sql/message.h.
o.{seq}, 0, o.{id}, o.{aggregate_type}, o.{aggregate_id}, o.{event_type}, o.{ordering_key}, o.{target}, o.{partition_no}, o.{priority},
o.{created_at}, o.{available_at}, {?occurred_at}o.{occurred_at}{/}{!occurred_at}o.{created_at}{/},
{?revision}o.{revision}{/}{!revision}1{/},
{?sequence_number}o.{sequence_number}{/}{!sequence_number}NULL{/},
{?correlation_id}o.{correlation_id}{/}{!correlation_id}NULL{/},
{?causation_id}o.{causation_id}{/}{!causation_id}NULL{/}

-- name: message_columns
{>message_fields}, o.{payload}, {?headers}o.{headers}{/}{!headers}NULL{/}, {?+read_snapshot}o.{snapshot}{/}{!+read_snapshot}NULL{/}

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

-- ---- listing ----------------------------------------------------------

-- name: view_number
-- Of w.view, a name.
CASE w.view WHEN 'pending' THEN {=view_pending} WHEN 'delayed' THEN {=view_delayed} WHEN 'failed' THEN {=view_failed} WHEN 'parked' THEN {=view_parked}
  WHEN 'dead' THEN {=view_dead} WHEN 'discarded' THEN {=view_discarded} WHEN 'published' THEN {=view_published} END

-- name: viewed
-- Rows of the log with their view; without a reader everything is as for one that has read nothing.
SELECT o.{seq} AS seq, {>view_until_now} :now {>view_after_now} AS view
  FROM {outbox} AS o
  LEFT JOIN {readers} AS r ON r.name = :reader
  LEFT JOIN {exceptions} AS e ON e.reader = r.name AND e.partition_no = o.{partition_no} AND e.seq = o.{seq}
 WHERE (:reader IS NULL OR o.{target} = r.target) AND {>matches}

-- name: viewed_exceptions
-- Few rows, where the log is long.
SELECT o.{seq} AS seq, {>exception_view} AS view
  FROM {readers} AS r
 CROSS JOIN {exceptions} AS e ON e.reader = r.name
 CROSS JOIN {outbox} AS o ON o.{seq} = e.seq AND o.{target} = r.target
 WHERE r.name = :reader AND {>matches}

-- name: this_id
{?+string_id}:id_text{/}{!+string_id}:id{/}

-- name: matches
o.{seq} > :after AND o.{seq} < :before AND (:key IS NULL OR o.{ordering_key} = :key)
 AND (:aggregate_type IS NULL OR o.{aggregate_type} = :aggregate_type) AND (:aggregate_id IS NULL OR o.{aggregate_id} = :aggregate_id)
 AND (:event_type IS NULL OR o.{event_type} = :event_type)
 AND (:correlation_id IS NULL OR {?correlation_id}o.{correlation_id} = :correlation_id{/}{!correlation_id}false{/})
 AND (:error IS NULL OR instr(e.last_error, :error) > 0)

-- name: found
-- The numbers of the rows, in order; before it "viewed", what they are found in.
SELECT w.seq FROM viewed AS w WHERE :views = 0 OR (:views >> {>view_number}) & 1 ORDER BY w.seq :direction LIMIT :limit

-- name: found_all
WITH viewed AS ({>viewed}), found AS ({>found})

-- name: found_one
WITH viewed AS ({>viewed} AND o.{id} = {>this_id}), found AS ({>found})

-- name: found_open
-- Exceptions, and rows that no position covers, where these are wanted.
WITH viewed AS ({>viewed_exceptions} UNION ALL {>viewed}
    AND :backlog AND o.{seq} > {>low} AND e.seq IS NULL), found AS ({>found})

-- name: found_stream
-- Events of a stream by the index of its versions.
WITH found AS (SELECT o.{seq} AS seq FROM {outbox} AS o
   WHERE o.{target} = :stream AND o.{aggregate_type} = :aggregate_type AND o.{aggregate_id} = :aggregate_id
     {?sequence_number}AND o.{sequence_number} > 0 AND o.{sequence_number} < :before_version ORDER BY o.{sequence_number} DESC{/}
     {!sequence_number}AND o.{seq} < 0{/} LIMIT :limit)

-- name: low
-- The lowest position of the reader.
({>numbers} SELECT min((SELECT p.pos FROM {batches} AS p WHERE p.reader = :reader AND p.partition_no = n.i ORDER BY p.batch DESC LIMIT 1)) FROM n)

-- name: beside
-- Loops (CROSS JOIN), which keep the order of found: nothing sorts whole messages.
  FROM found AS f CROSS JOIN {outbox} AS o ON o.{seq} = f.seq
  LEFT JOIN {readers} AS r ON r.name = :reader
  LEFT JOIN {exceptions} AS e ON e.reader = r.name AND e.partition_no = o.{partition_no} AND e.seq = o.{seq}

-- name: list_rows
SELECT {>message_fields}, iif(:brief, NULL, o.{payload}), {?headers}iif(:brief, NULL, o.{headers}){/}{!headers}NULL{/},
       {?snapshot}iif(:brief, NULL, o.{snapshot}){/}{!snapshot}NULL{/}, {?partition_key}o.{partition_key}{/}{!partition_key}NULL{/}, e.last_error,
       (SELECT {>view_number} FROM (SELECT {>view_until_now} :now {>view_after_now} AS view) AS w), e.state, e.attempts, e.due, e.since, {>published_at},
       coalesce(length(CAST(o.{payload} AS BLOB)), -1)
{>beside};

-- name: verb_rows
SELECT o.{seq}, o.{partition_no}, e.state, e.attempts, e.queue, o.{seq} <= {>position}, o.{ordering_key}
{>beside};

-- name: list_any
{>found_all} {>list_rows}

-- name: list_any_one
{>found_one} {>list_rows}

-- name: list_all
{>found_all} {>list_rows}

-- name: list_one
{>found_one} {>list_rows}

-- name: list_stream
{>found_stream} {>list_rows}

-- name: list_open
{>found_open} {>list_rows}

-- name: verb_all
{>found_all} {>verb_rows}

-- name: verb_one
{>found_one} {>verb_rows}

-- name: verb_open
{>found_open} {>verb_rows}

-- name: verb_these
WITH found AS (SELECT value AS seq FROM json_each(:seqs)) {>verb_rows}

-- ---- statistics -------------------------------------------------------

-- name: stats_readers
SELECT name, target FROM {readers} WHERE :reader IS NULL OR name = :reader ORDER BY name;

-- name: stats_log
-- Rows that no position covers, by their view: how many, the first of them that is due or waits, how many are read at most. Numbers are
-- the order of insertion: the lowest stands for the lowest created_at.
SELECT {>view_number}, w.count, (SELECT o.{created_at} FROM {outbox} AS o WHERE o.{seq} = w.seq AND w.view <> 'delayed'), :most
  FROM (SELECT w.view, count(*) AS count, min(w.seq) AS seq
          FROM (SELECT o.{seq} AS seq, {>view_until_now} :now {>view_after_now} AS view
                  FROM {readers} AS r
                 CROSS JOIN {outbox} AS o ON o.{target} = r.target
                  LEFT JOIN {exceptions} AS e ON e.reader = r.name AND e.partition_no = o.{partition_no} AND e.seq = o.{seq}
                 WHERE r.name = :reader AND o.{seq} > {>low} AND e.seq IS NULL AND o.{seq} > {>position}
                 ORDER BY o.{seq} LIMIT :most) AS w
         GROUP BY w.view) AS w;

-- name: stats_exceptions
-- The same of all exceptions.
SELECT {>view_number}, w.count, (SELECT o.{created_at} FROM {outbox} AS o WHERE o.{seq} = w.seq), 9223372036854775807
  FROM (SELECT {>exception_view} AS view, count(*) AS count,
               min(CASE WHEN e.state = {=waiting} OR (e.state = {=failed} AND e.due <= :now) THEN e.seq END) AS seq
          FROM {exceptions} AS e WHERE e.reader = :reader GROUP BY 1) AS w;

-- name: stats_held
SELECT count(*) FROM {exceptions} AS e
 WHERE e.reader = :reader AND e.queue IS NOT NULL AND e.state IN ({=failed}, {=delayed}, {=dead_hold}) AND NOT {>follows};

-- name: throughput
SELECT minute, sum(published), sum(failed)
  FROM {throughput}
 WHERE minute > :now / 60000000 * 60000000 - :minutes * 60000000
   AND minute <= :now AND (:reader IS NULL OR reader = :reader)
   AND (published > 0 OR failed > 0)
 GROUP BY minute ORDER BY minute;
