-- What a reader has of the log, for people: listings, verbs and counts.
--
-- The fragments share their aliases: r the reader, m the message, e its exception (or NULL), p the newest
-- journal row of its partition.

-- name: exception_of_row
LEFT JOIN {exceptions} AS e ON e.reader = r.name AND e.partition_no = m.{partition_no} AND e.seq = m.{seq}

-- name: progress_of_row
-- In this order (STRAIGHT_JOIN): else every journal row of the partition is read for every row of the log.
LEFT JOIN (SELECT reader, partition_no, MAX(batch) AS batch FROM {batches} GROUP BY reader, partition_no) AS n
    ON n.reader = r.name AND n.partition_no = m.{partition_no}
  LEFT JOIN {batches} AS p ON p.reader = n.reader AND p.partition_no = n.partition_no AND p.batch = n.batch

-- name: in_gaps
-- Is the number in the gap list, "7,12-15,40"?
EXISTS (SELECT 1 FROM JSON_TABLE(CONCAT('["', REPLACE(p.seen, ',', '","'), '"]'), '$[*]' COLUMNS (g VARCHAR(41) PATH '$')) AS j
         WHERE m.{seq} BETWEEN CAST(SUBSTRING_INDEX(j.g, '-', 1) AS SIGNED) AND CAST(SUBSTRING_INDEX(j.g, '-', -1) AS SIGNED))

-- name: covered
(m.{seq} <= p.pos AND (p.seen IS NULL OR NOT {>in_gaps}))

-- name: covered_now
-- The same for the newest journal row. :gaps are those of all partitions: for a row that is in none of them the
-- list need not be parsed.
(m.{seq} <= p.pos AND (NOT (FALSE :gaps) OR p.seen IS NULL OR NOT {>in_gaps}))

-- name: view_head
-- The state as people see it; {=view_pending} ... are the numbers of enum ob_view.
(CASE e.state
   WHEN {=waiting} THEN IF(EXISTS (SELECT 1 FROM {exceptions} AS q FORCE INDEX ({name:queue})
       WHERE q.reader = e.reader AND q.partition_no = e.partition_no AND q.queue = e.queue AND q.seq < e.seq),
     {=view_parked}, {=view_pending})
   WHEN {=failed} THEN {=view_failed}
   WHEN {=delayed} THEN {=view_delayed}
   WHEN {=dead} THEN {=view_dead}
   WHEN {=dead_hold} THEN {=view_dead}
   WHEN {=discarded} THEN {=view_discarded}
   WHEN {=done} THEN {=view_published}
   ELSE CASE

-- name: view_tail
     WHEN m.{available_at} > UTC_TIMESTAMP(6) THEN {=view_delayed}
     WHEN EXISTS (SELECT 1 FROM {exceptions} AS q FORCE INDEX ({name:queue})
       WHERE q.reader = r.name AND q.partition_no = m.{partition_no} AND q.queue IN (m.{ordering_key}, '')) THEN {=view_parked}
     ELSE {=view_pending} END
 END)

-- name: view_of
{>view_head} WHEN {>covered} THEN {=view_published} {>view_tail}

-- name: view_now
{>view_head} WHEN {>covered_now} THEN {=view_published} {>view_tail}

-- name: published_at
-- The first journal row that is still kept and covers the message.
(SELECT p.at FROM {batches} AS p
  WHERE p.reader = r.name AND p.partition_no = m.{partition_no} AND {>covered} ORDER BY p.batch LIMIT 1)

-- name: message_fields
-- A message but for its payload and headers, in the order of src/store/sql/message.h.
m.{seq}, 0 AS `#txid`, m.{id}, m.{aggregate_type}, m.{aggregate_id}, m.{event_type}, m.{ordering_key}, m.{target}, m.{partition_no}, m.{priority},
m.{created_at}, m.{available_at}, {?occurred_at}m.{occurred_at}{/}{!occurred_at}m.{created_at} AS `#occurred_at`{/},
{?revision}m.{revision}{/}{!revision}1 AS `#revision`{/}, {?sequence_number}m.{sequence_number}{/}{!sequence_number}NULL AS `#sequence_number`{/},
{?correlation_id}m.{correlation_id}{/}{!correlation_id}NULL AS `#correlation_id`{/},
{?causation_id}m.{causation_id}{/}{!causation_id}NULL AS `#causation_id`{/}

-- name: message_columns
{>message_fields}, m.{payload}, {?headers}m.{headers}{/}{!headers}NULL AS `#headers`{/}, {?+read_snapshot}m.{snapshot}{/}{!+read_snapshot}NULL AS `#snapshot`{/}

-- name: list_columns
-- A message, and what only a listing shows.
SELECT STRAIGHT_JOIN {>message_fields}, IF(:brief, NULL, m.{payload}), {?headers}IF(:brief, NULL, m.{headers}){/}{!headers}NULL AS `#headers`{/},
       {?snapshot}IF(:brief, NULL, m.{snapshot}){/}{!snapshot}NULL AS `#snapshot`{/}, {?partition_key}m.{partition_key}{/}{!partition_key}NULL AS `#partition_key`{/},
       e.last_error, {>view_now}, e.state, e.attempts, e.due, e.since, IF((e.seq IS NULL AND {>covered_now}) OR e.state = {=done}, {>published_at}, NULL),
       COALESCE(OCTET_LENGTH(m.{payload}), -1)

-- name: verb_columns
-- What a verb must know of it.
SELECT STRAIGHT_JOIN m.{seq}, m.{partition_no}, e.state, e.attempts, e.queue, {>covered_now}, m.{ordering_key}

-- name: from_log
  FROM {readers} AS r
  JOIN {outbox} AS m FORCE INDEX (PRIMARY) ON m.{target} = r.target
  {>exception_of_row}
  {>progress_of_row}
 WHERE r.name = :reader AND {>matches}

-- name: from_id
  FROM {readers} AS r
  JOIN {outbox} AS m FORCE INDEX ({name:uniq_id}) ON m.{target} = r.target AND m.{id} = {>this_id}
  {>exception_of_row}
  {>progress_of_row}
 WHERE r.name = :reader AND {>matches}

-- name: from_exceptions
-- Few rows, where the log is long.
  FROM {readers} AS r
  JOIN {exceptions} AS e ON e.reader = r.name
  STRAIGHT_JOIN {outbox} AS m FORCE INDEX (PRIMARY) ON m.{seq} = e.seq AND m.{target} = r.target
  {>progress_of_row}
 WHERE r.name = :reader AND {>matches}

-- name: and_open
-- Rows that some partition's progress does not cover, and that are no exception, where these are wanted.
 AND :backlog AND e.seq IS NULL AND (m.{seq} > :low :gaps)

-- name: this_id
{?+string_id}:id_text{/}{!+string_id}:id{/}

-- name: matches
m.{seq} > :after AND m.{seq} < :before AND (:id IS NULL OR m.{id} = {>this_id}) AND (:key IS NULL OR m.{ordering_key} = :key)
 AND (:aggregate_type IS NULL OR m.{aggregate_type} = :aggregate_type) AND (:aggregate_id IS NULL OR m.{aggregate_id} = :aggregate_id)
 AND (:event_type IS NULL OR m.{event_type} = :event_type)
 AND (:correlation_id IS NULL OR {?correlation_id}m.{correlation_id} = :correlation_id{/}{!correlation_id}FALSE{/})
 AND (:error IS NULL OR LOCATE(:error, e.last_error) > 0) AND (:views = 0 OR (:views >> {>view_now}) & 1)

-- name: in_order
 ORDER BY m.{seq} :direction LIMIT :limit

-- name: all_in_order
 ORDER BY 1 :direction LIMIT :limit

-- name: list_any
-- As a reader would see it that has read nothing.
{>list_columns}
  FROM (SELECT CAST(NULL AS CHAR) AS name) AS r
  JOIN {outbox} AS m FORCE INDEX (PRIMARY)
  {>exception_of_row}
  {>progress_of_row}
 WHERE {>matches} {>in_order}

-- name: list_any_one
{>list_any}

-- name: list_all
{>list_columns} {>from_log} {>in_order}

-- name: list_one
{>list_columns} {>from_id} {>in_order}

-- name: list_stream
-- Events of a stream by the index of its versions, which is not forced: a log that is partitioned has none.
{>list_columns}
  FROM (SELECT m.{seq} AS seq FROM {outbox} AS m
         WHERE m.{target} = :stream AND m.{aggregate_type} = :aggregate_type AND m.{aggregate_id} = :aggregate_id
           {?sequence_number}AND m.{sequence_number} > 0 AND m.{sequence_number} < :before_version ORDER BY m.{sequence_number} DESC{/}
           {!sequence_number}AND m.{seq} < 0{/} LIMIT :limit) AS f
  LEFT JOIN {readers} AS r ON r.name = :reader
  JOIN {outbox} AS m FORCE INDEX (PRIMARY) ON m.{seq} = f.seq
  {>exception_of_row}
  {>progress_of_row}
 ORDER BY f.seq :direction

-- name: list_open
({>list_columns} {>from_exceptions} {>in_order}) UNION ALL ({>list_columns} {>from_log} {>and_open} {>in_order}) {>all_in_order}

-- name: verb_all
{>verb_columns} {>from_log} {>in_order}

-- name: verb_one
{>verb_columns} {>from_id} {>in_order}

-- name: verb_open
({>verb_columns} {>from_exceptions} {>in_order}) UNION ALL ({>verb_columns} {>from_log} {>and_open} {>in_order}) {>all_in_order}

-- name: verb_these
SELECT STRAIGHT_JOIN m.{seq}, m.{partition_no}, e.state, e.attempts, e.queue, {>covered}, m.{ordering_key}
  FROM {readers} AS r
  JOIN {outbox} AS m FORCE INDEX (PRIMARY) ON m.{target} = r.target
  {>exception_of_row}
  {>progress_of_row}
 WHERE r.name = :reader AND m.{seq} IN (:seqs)
 ORDER BY m.{seq}

-- name: stats_readers
SELECT r.name, r.target FROM {readers} AS r WHERE :reader IS NULL OR r.name = :reader ORDER BY r.name

-- name: stats_exceptions
-- By their view, of the first :cap + 1: how many, the oldest message that waits or is due, how many rows are read at most.
SELECT t.v, COUNT(*), MIN(t.at), :cap + 1 FROM (
  SELECT {>view_now} AS v, IF(e.state = {=waiting} OR (e.state = {=failed} AND e.due <= UTC_TIMESTAMP(6)), m.{created_at}, NULL) AS at
    FROM {readers} AS r JOIN {exceptions} AS e ON e.reader = r.name
    STRAIGHT_JOIN {outbox} AS m FORCE INDEX (PRIMARY) ON m.{seq} = e.seq
    LEFT JOIN {batches} AS p ON FALSE
   WHERE r.name = :reader AND e.state NOT IN ({=done}) LIMIT :most) AS t
 GROUP BY t.v

-- name: stats_log
-- The same of the rows that are still to be read.
SELECT t.v, COUNT(*), MIN(IF(t.v = {=view_delayed}, NULL, t.at)), :cap + 1 FROM (
  SELECT STRAIGHT_JOIN {>view_now} AS v, m.{created_at} AS at
    FROM {readers} AS r JOIN {outbox} AS m FORCE INDEX (PRIMARY) ON m.{target} = r.target
    {>exception_of_row}
    {>progress_of_row}
   WHERE r.name = :reader AND e.seq IS NULL AND (m.{seq} > :low :gaps) AND NOT {>covered_now}
   ORDER BY m.{seq} LIMIT :most) AS t
 GROUP BY t.v

-- name: stats_held
SELECT COUNT(*) FROM (
  SELECT 1 FROM {exceptions} AS e
   WHERE e.reader = :reader AND e.queue IS NOT NULL AND e.state IN ({=failed}, {=delayed}, {=dead_hold})
     AND NOT EXISTS (SELECT 1 FROM {exceptions} AS q FORCE INDEX ({name:queue})
       WHERE q.reader = e.reader AND q.partition_no = e.partition_no AND q.queue = e.queue AND q.seq < e.seq)
   LIMIT :most) AS t

-- name: throughput
SELECT minute, SUM(published), SUM(failed) FROM {throughput}
 WHERE minute > TIMESTAMPADD(MINUTE, -:minutes, UTC_TIMESTAMP(6)) AND (:reader IS NULL OR reader = :reader)
 GROUP BY minute ORDER BY minute
