-- What people see of the messages, for one reader.

-- name: covered
-- Does the journal row b cover the message m?
(b.pos >= m.{seq} AND (pg_visible_in_snapshot(m.{txid}, b.seen)
  OR b.late_seen IS NOT NULL AND b.late_pos >= m.{seq} AND pg_visible_in_snapshot(m.{txid}, b.late_seen)))

-- name: follows
-- Has the exception e a lower one in its queue?
(e.queue IS NOT NULL AND (SELECT 1 FROM {exceptions} AS l
   WHERE l.reader = e.reader AND l.partition_no = e.partition_no AND l.queue = e.queue AND l.seq < e.seq LIMIT 1) IS NOT NULL)

-- name: view_of
-- Of the message m with its exception e (or none) and the newest journal row b.
CASE WHEN e.state = {=waiting} THEN CASE WHEN {>follows} THEN {=view_parked} ELSE {=view_pending} END
  WHEN e.state = {=failed} THEN {=view_failed}
  WHEN e.state = {=delayed} THEN {=view_delayed}
  WHEN e.state IN ({=dead}, {=dead_hold}) THEN {=view_dead}
  WHEN e.state = {=discarded} THEN {=view_discarded}
  WHEN e.state = {=done} OR {>covered} THEN {=view_published}
  WHEN m.{available_at} > (SELECT clock_timestamp()) THEN {=view_delayed}
  WHEN (SELECT 1 FROM {exceptions} AS q WHERE q.reader = b.reader AND q.partition_no = b.partition_no
           AND q.queue IN (m.{ordering_key} COLLATE "C", '') LIMIT 1) IS NOT NULL THEN {=view_parked}
  ELSE {=view_pending} END

-- name: published_at
-- The time of the first journal row that covers m, by bisection: those after it cover it too.
CASE WHEN (e.state IS NULL OR e.state = {=done}) AND {>covered} THEN (
  WITH RECURSIVE "#find" (reader, part, low, high, at) AS (
    SELECT b.reader, b.partition_no, (SELECT f.batch FROM {batches} AS f
             WHERE f.reader = b.reader AND f.partition_no = b.partition_no ORDER BY f.batch LIMIT 1), b.batch - 1, b.at
    UNION ALL
    SELECT f.reader, f.part, CASE WHEN x.yes IS FALSE THEN x.batch + 1 ELSE f.low END,
           CASE WHEN x.yes IS FALSE THEN f.high ELSE f.low + (f.high - f.low) / 2 - 1 END, CASE WHEN x.yes THEN x.at ELSE f.at END
      FROM "#find" AS f LEFT JOIN LATERAL (
        SELECT b.batch, b.at, {>covered} AS yes FROM {batches} AS b
         WHERE b.reader = f.reader AND b.partition_no = f.part AND b.batch >= f.low + (f.high - f.low) / 2 AND b.batch <= f.high
         ORDER BY b.batch LIMIT 1) AS x ON true
     WHERE f.low <= f.high
  ) SELECT min(at) FROM "#find") END

-- name: matches
-- Without a reader: every target.
(:reader::text IS NULL OR (m.{target} = (SELECT r.target FROM {readers} AS r WHERE r.name = :reader)) IS TRUE)
AND (:id::uuid IS NULL OR m.{id} = :id::uuid{?+string_id}::text{/}) AND (:key::text IS NULL OR m.{ordering_key} = :key)
AND (:aggregate_type::text IS NULL OR m.{aggregate_type} = :aggregate_type) AND (:aggregate_id::text IS NULL OR m.{aggregate_id} = :aggregate_id)
AND (:event_type::text IS NULL OR m.{event_type} = :event_type)
AND (:correlation_id::text IS NULL OR {?correlation_id}m.{correlation_id} = :correlation_id{/}{!correlation_id}false{/})
AND (:error::text IS NULL OR strpos(e.last_error, :error) > 0) AND m.{seq} > :after::bigint AND m.{seq} < :before::bigint

-- name: in_views
-- Bits of views; 0 is any.
(:views::bigint = 0 OR :views::bigint >> ({>view_of}) & 1 = 1)

-- name: beside
-- The exception and the newest journal row of m. LATERAL with a limit: loops, which keep the order of m.
LEFT JOIN LATERAL (SELECT e.* FROM {exceptions} AS e WHERE e.reader = :reader AND e.partition_no = m.{partition_no} AND e.seq = m.{seq} LIMIT 1) AS e ON true
LEFT JOIN LATERAL (SELECT b.* FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = m.{partition_no} ORDER BY b.batch DESC LIMIT 1) AS b ON true

-- name: list_rows
-- Columns of the messages that "#found" names, in the order of src/store/sql/message.h.
SELECT {>message_columns}, CASE WHEN :brief::bigint = 0 THEN m.{payload} END, {?headers}CASE WHEN :brief::bigint = 0 THEN m.{headers} END{/}{!headers}NULL::json{/},
       {?snapshot}CASE WHEN :brief::bigint = 0 THEN m.{snapshot} END{/}{!snapshot}NULL::json{/}, {?partition_key}m.{partition_key}{/}{!partition_key}NULL::text{/}, e.last_error,
       ({>view_of})::bigint, e.state::bigint, e.attempts::bigint, e.due, e.since, {>published_at},
       coalesce(octet_length(m.{payload}{!+binary_payload}::text{/}), -1)::bigint
  FROM "#found" AS f CROSS JOIN LATERAL (SELECT m.* FROM {outbox} AS m WHERE m.{seq} = f.seq OFFSET 0) AS m {>beside}
 ORDER BY f.seq :direction

-- name: verb_rows
-- What a verb must know of them.
SELECT f.seq, m.{partition_no}, e.state::bigint, e.attempts::bigint, e.queue, ({>covered})::int, m.{ordering_key}
  FROM "#found" AS f CROSS JOIN LATERAL (SELECT m.* FROM {outbox} AS m WHERE m.{seq} = f.seq OFFSET 0) AS m {>beside}
 ORDER BY f.seq

-- name: verb_these
WITH "#found" AS MATERIALIZED (SELECT unnest(:seqs) AS seq)
{>verb_rows}

-- name: found_all
-- By number, through everything.
WITH "#found" AS MATERIALIZED (
  SELECT m.{seq} AS seq FROM {outbox} AS m {>beside} WHERE {>matches} AND {>in_views} ORDER BY m.{seq} :direction LIMIT :limit::bigint
)

-- name: found_one
-- By its id.
WITH "#found" AS MATERIALIZED (
  SELECT m.{seq} AS seq FROM (
    SELECT m.* FROM {outbox} AS m
     WHERE m.{id} = :id::uuid{?+string_id}::text{/} OFFSET 0) AS m
  {>beside} WHERE {>matches} AND {>in_views} ORDER BY m.{seq} :direction LIMIT :limit::bigint
)

-- name: found_stream
-- Events of a stream by the index of its versions.
WITH "#found" AS MATERIALIZED (
  SELECT m.{seq} AS seq FROM {outbox} AS m
   WHERE m.{target} = :stream::text AND m.{aggregate_type} = :aggregate_type::text AND m.{aggregate_id} = :aggregate_id::text
     {?sequence_number}AND m.{sequence_number} > 0 AND m.{sequence_number} < :before_version::bigint ORDER BY m.{sequence_number} DESC{/}
     {!sequence_number}AND m.{seq} < 0{/} LIMIT :limit::bigint
)

-- name: waits
-- Are rows that are no exception wanted? Asked once: a long backlog is not read for what failed.
:backlog::bigint <> 0

-- name: found_open
-- Without what is published: exceptions, what lies after the positions, and what came late.
WITH "#at" AS MATERIALIZED (
  SELECT n.* FROM {>all_partitions} AS i CROSS JOIN LATERAL (
    SELECT b.* FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = i::smallint ORDER BY b.batch DESC LIMIT 1) AS n
), "#found" AS MATERIALIZED (
  SELECT u.seq FROM (
    SELECT x.seq FROM "#at" AS b CROSS JOIN LATERAL (
      SELECT m.{seq} AS seq FROM {exceptions} AS e CROSS JOIN LATERAL (SELECT m.* FROM {outbox} AS m WHERE m.{seq} = e.seq OFFSET 0) AS m
       WHERE e.reader = :reader AND e.partition_no = b.partition_no AND e.seq > :after::bigint AND e.seq < :before::bigint AND {>matches} AND {>in_views}
       ORDER BY e.seq :direction LIMIT :limit::bigint) AS x
    UNION ALL
    SELECT x.seq FROM (
      SELECT m.{seq} AS seq FROM {outbox} AS m {>beside}
       WHERE {>waits} AND m.{seq} > (SELECT min(pos) FROM "#at") AND e.seq IS NULL AND NOT {>covered} AND {>matches} AND {>in_views}
       ORDER BY m.{seq} :direction LIMIT :limit::bigint) AS x
    UNION ALL
    SELECT x.seq FROM (
      SELECT m.{seq} AS seq FROM ({>late_rows}) AS m {>beside}
       WHERE {>waits} AND e.seq IS NULL AND NOT {>covered} AND {>matches} AND {>in_views}
       ORDER BY m.{seq} :direction LIMIT :limit::bigint) AS x
    ) AS u ORDER BY u.seq :direction LIMIT :limit::bigint
)

-- name: late_rows
-- At or below every position of "#at", what one of its snapshots did not show: of transactions that were open in it, or began after it.
SELECT m.* FROM (SELECT DISTINCT x AS "#x" FROM "#at" AS a CROSS JOIN LATERAL pg_snapshot_xip(a.seen) AS x
                  WHERE x < (SELECT pg_snapshot_xmax(seen) FROM "#at" ORDER BY 1 LIMIT 1)) AS t
 CROSS JOIN LATERAL (SELECT m.* FROM {outbox} AS m WHERE m.{txid} >= t."#x" AND m.{txid} <= t."#x" AND m.{seq} <= (SELECT min(pos) FROM "#at")
                      ORDER BY m.{txid}, m.{seq} OFFSET 0) AS m
UNION ALL
SELECT m.* FROM (SELECT m.* FROM {outbox} AS m
  WHERE m.{txid} >= (SELECT pg_snapshot_xmax(seen) FROM "#at" ORDER BY 1 LIMIT 1) AND m.{seq} <= (SELECT min(pos) FROM "#at")
  ORDER BY m.{txid}, m.{seq} OFFSET 0) AS m

-- name: time
SELECT clock_timestamp()

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

-- name: stats_readers
SELECT name, target FROM {readers} WHERE :reader::text IS NULL OR name = :reader ORDER BY name

-- name: counted_exceptions
-- Eight times as many rows as are counted, at most.
(SELECT e.*, {>follows} AS follows FROM {exceptions} AS e WHERE e.reader = :reader LIMIT 8 * :cap::bigint) AS e

-- name: stats_exceptions
-- By their view: how many, the oldest message that waits or is due, how many rows are read at most.
SELECT e.view, count(*), min(e.at), 8 * :cap::bigint FROM (
  SELECT CASE WHEN e.state = {=waiting} THEN CASE WHEN e.follows THEN {=view_parked} ELSE {=view_pending} END WHEN e.state = {=failed} THEN {=view_failed}
           WHEN e.state = {=delayed} THEN {=view_delayed} WHEN e.state IN ({=dead}, {=dead_hold}) THEN {=view_dead}
           WHEN e.state = {=discarded} THEN {=view_discarded} END AS view,
         CASE WHEN e.state = {=waiting} OR e.state = {=failed} AND e.due <= (SELECT clock_timestamp())
           THEN (SELECT m.{created_at} FROM {outbox} AS m WHERE m.{seq} = e.seq) END AS at
    FROM {>counted_exceptions}) AS e
 GROUP BY e.view

-- name: stats_held
SELECT count(*) FROM {>counted_exceptions} WHERE e.queue IS NOT NULL AND NOT e.follows AND e.state IN ({=failed}, {=delayed}, {=dead_hold})

-- name: stats_log
-- The same of the log: what lies after the positions, and what came late.
WITH "#at" AS MATERIALIZED (
  SELECT n.* FROM {>all_partitions} AS i CROSS JOIN LATERAL (
    SELECT b.* FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = i::smallint ORDER BY b.batch DESC LIMIT 1) AS n
), "#target" AS MATERIALIZED (SELECT r.target FROM {readers} AS r WHERE r.name = :reader)
SELECT m.view, count(*), min(m.created_at) FILTER (WHERE m.view IN ({=view_pending}, {=view_parked})), 8 * :cap::bigint
  FROM (SELECT CASE WHEN e.seq IS NULL THEN {>view_of} END AS view, m.{created_at} AS created_at FROM (
          SELECT * FROM (SELECT m.* FROM {outbox} AS m WHERE m.{seq} > (SELECT min(pos) FROM "#at") AND (m.{target} = (SELECT target FROM "#target")) IS TRUE
                          ORDER BY m.{seq} LIMIT 8 * :cap::bigint) AS m
          UNION ALL
          SELECT * FROM (SELECT m.* FROM ({>late_rows}) AS m WHERE (m.{target} = (SELECT target FROM "#target")) IS TRUE LIMIT 8 * :cap::bigint) AS m) AS m
        {>beside}) AS m
 GROUP BY m.view
