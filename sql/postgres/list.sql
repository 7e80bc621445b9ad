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
-- $1 reader (NULL: every target), $2 id, $3 key, $4 aggregate_type, $5 aggregate_id, $6 event_type: NULL is any. $8 after this seq, $9 before this one.
($1::text IS NULL OR (m.{target} = (SELECT r.target FROM {readers} AS r WHERE r.name = $1)) IS TRUE)
AND ($2::uuid IS NULL OR m.{id} = $2::uuid{?+string_id}::text{/}) AND ($3::text IS NULL OR m.{ordering_key} = $3)
AND ($4::text IS NULL OR m.{aggregate_type} = $4) AND ($5::text IS NULL OR m.{aggregate_id} = $5)
AND ($6::text IS NULL OR m.{event_type} = $6) AND m.{seq} > $8::bigint AND m.{seq} < $9::bigint

-- name: in_views
-- $7: bits of views; 0 is any.
($7::bigint = 0 OR $7::bigint >> ({>view_of}) & 1 = 1)

-- name: beside
-- The exception and the newest journal row of m. LATERAL with a limit: loops, which keep the order of m.
LEFT JOIN LATERAL (SELECT e.* FROM {exceptions} AS e WHERE e.reader = $1 AND e.partition_no = m.{partition_no} AND e.seq = m.{seq} LIMIT 1) AS e ON true
LEFT JOIN LATERAL (SELECT b.* FROM {batches} AS b WHERE b.reader = $1 AND b.partition_no = m.{partition_no} ORDER BY b.batch DESC LIMIT 1) AS b ON true

-- name: list_rows
-- Columns of the messages that "#found" names, as rows.h has them. @ stands for nothing or DESC.
SELECT {>message_columns}, m.{payload}, {?headers}m.{headers}{/}{!headers}NULL::json{/},
       {?partition_key}m.{partition_key}{/}{!partition_key}NULL::text{/}, {?snapshot}m.{snapshot}{/}{!snapshot}NULL::json{/}, e.last_error,
       ({>view_of})::bigint, e.state::bigint, e.attempts::bigint, e.due, e.since, {>published_at}
  FROM "#found" AS f CROSS JOIN LATERAL (SELECT m.* FROM {outbox} AS m WHERE m.{seq} = f.seq OFFSET 0) AS m {>beside}
 ORDER BY f.seq @

-- name: verb_rows
-- What a verb must know of them.
SELECT f.seq, m.{partition_no}, e.state::bigint, e.attempts::bigint, e.queue, ({>covered})::int
  FROM "#found" AS f CROSS JOIN LATERAL (SELECT m.* FROM {outbox} AS m WHERE m.{seq} = f.seq OFFSET 0) AS m {>beside}
 ORDER BY f.seq

-- name: verb_these
-- $1 reader, $2 seq.
WITH "#found" AS MATERIALIZED (SELECT unnest($2::bigint[]) AS seq)
{>verb_rows}

-- name: found_all
-- By number, through everything.
WITH "#found" AS MATERIALIZED (
  SELECT m.{seq} AS seq FROM {outbox} AS m {>beside} WHERE {>matches} AND {>in_views} ORDER BY m.{seq} @ LIMIT $10::bigint
)

-- name: found_one
-- By its id.
WITH "#found" AS MATERIALIZED (
  SELECT m.{seq} AS seq FROM (
    SELECT m.* FROM {outbox} AS m
     WHERE m.{id} = $2::uuid{?+string_id}::text{/} OFFSET 0) AS m
  {>beside} WHERE {>matches} AND {>in_views} ORDER BY m.{seq} @ LIMIT $10::bigint
)

-- name: found_open
-- Without what is published: exceptions, what lies after the positions, and what came late.
WITH "#at" AS MATERIALIZED (
  SELECT n.* FROM {>all_partitions} AS i CROSS JOIN LATERAL (
    SELECT b.* FROM {batches} AS b WHERE b.reader = $1 AND b.partition_no = i::smallint ORDER BY b.batch DESC LIMIT 1) AS n
), "#found" AS MATERIALIZED (
  SELECT u.seq FROM (
    SELECT x.seq FROM "#at" AS b CROSS JOIN LATERAL (
      SELECT m.{seq} AS seq FROM {exceptions} AS e CROSS JOIN LATERAL (SELECT m.* FROM {outbox} AS m WHERE m.{seq} = e.seq OFFSET 0) AS m
       WHERE e.reader = $1 AND e.partition_no = b.partition_no AND e.seq > $8::bigint AND e.seq < $9::bigint AND {>matches} AND {>in_views}
       ORDER BY e.seq @ LIMIT $10::bigint) AS x
    UNION ALL
    SELECT x.seq FROM (
      SELECT m.{seq} AS seq FROM {outbox} AS m {>beside}
       WHERE m.{seq} > (SELECT min(pos) FROM "#at") AND e.seq IS NULL AND NOT {>covered} AND {>matches} AND {>in_views}
       ORDER BY m.{seq} @ LIMIT $10::bigint) AS x
    UNION ALL
    SELECT x.seq FROM (
      SELECT m.{seq} AS seq FROM ({>late_rows}) AS m {>beside}
       WHERE e.seq IS NULL AND NOT {>covered} AND {>matches} AND {>in_views}
       ORDER BY m.{seq} @ LIMIT $10::bigint) AS x
    ) AS u ORDER BY u.seq @ LIMIT $10::bigint
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

-- name: stats
-- $1 reader or NULL, $2 how many rows are read at most, $3 how many are counted at most. Of the exceptions, then of the log.
SELECT r.name, r.target, $2::bigint, $3::bigint,
       x.pending, x.delayed, x.failed, x.parked, x.dead, x.discarded, x.held, x.oldest, x.walked,
       l.pending, l.delayed, l.parked, l.oldest, l.walked
  FROM {readers} AS r CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE e.state = {=waiting} AND NOT e.follows) AS pending, count(*) FILTER (WHERE e.state = {=delayed}) AS delayed,
           count(*) FILTER (WHERE e.state = {=failed}) AS failed, count(*) FILTER (WHERE e.state = {=waiting} AND e.follows) AS parked,
           count(*) FILTER (WHERE e.state IN ({=dead}, {=dead_hold})) AS dead, count(*) FILTER (WHERE e.state = {=discarded}) AS discarded,
           count(*) FILTER (WHERE e.queue IS NOT NULL AND NOT e.follows AND e.state IN ({=failed}, {=delayed}, {=dead_hold})) AS held,
           min((SELECT m.{created_at} FROM {outbox} AS m WHERE m.{seq} = e.seq))
             FILTER (WHERE e.state = {=waiting} OR e.state = {=failed} AND e.due <= (SELECT clock_timestamp())) AS oldest,
           count(*) AS walked
      FROM (SELECT e.*, {>follows} AS follows FROM {exceptions} AS e WHERE e.reader = r.name LIMIT $2::bigint) AS e) AS x
 CROSS JOIN LATERAL (
    WITH "#at" AS MATERIALIZED (
      SELECT n.* FROM {>all_partitions} AS i CROSS JOIN LATERAL (
        SELECT b.* FROM {batches} AS b WHERE b.reader = r.name AND b.partition_no = i::smallint ORDER BY b.batch DESC LIMIT 1) AS n)
    SELECT count(*) FILTER (WHERE m.view = {=view_pending}) AS pending, count(*) FILTER (WHERE m.view = {=view_delayed}) AS delayed,
           count(*) FILTER (WHERE m.view = {=view_parked}) AS parked, count(*) AS walked,
           min(m.created_at) FILTER (WHERE m.view IN ({=view_pending}, {=view_parked})) AS oldest
      FROM (SELECT CASE WHEN e.seq IS NULL THEN {>view_of} END AS view, m.{created_at} AS created_at FROM (
              SELECT * FROM (SELECT m.* FROM {outbox} AS m WHERE m.{seq} > (SELECT min(pos) FROM "#at") AND (m.{target} = r.target) IS TRUE
                              ORDER BY m.{seq} LIMIT $2::bigint) AS m
              UNION ALL
              SELECT * FROM (SELECT m.* FROM ({>late_rows}) AS m WHERE (m.{target} = r.target) IS TRUE LIMIT $2::bigint) AS m) AS m
            LEFT JOIN LATERAL (SELECT e.* FROM {exceptions} AS e WHERE e.reader = r.name AND e.partition_no = m.{partition_no} AND e.seq = m.{seq} LIMIT 1) AS e ON true
            CROSS JOIN LATERAL (SELECT b.* FROM {batches} AS b WHERE b.reader = r.name AND b.partition_no = m.{partition_no} ORDER BY b.batch DESC LIMIT 1) AS b) AS m) AS l
 WHERE $1::text IS NULL OR r.name = $1
 ORDER BY r.name
