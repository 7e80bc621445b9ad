-- Recording progress, and what changes with it.

-- name: journal
-- $1 reader, $2 owner, $3 partitions, $4 batches, $5 epochs, $6 positions, $7 published, $8 failed, $9 which of $12 (snapshots) was seen,
-- $10 late positions, $11 which of $12 was seen late (0: none). The fence: only the number after the newest is inserted. Not by the
-- primary key alone: rows below the newest are pruned, and could be inserted again.
INSERT INTO {batches} (reader, partition_no, batch, epoch, owner, at, pos, published, failed, seen, late_pos, late_seen)
SELECT $1, u.p::smallint, u.b, u.e, $2::uuid, clock_timestamp(), u.pos, u.n, u.f, ($12::pg_snapshot[])[u.s], u.lp, ($12::pg_snapshot[])[u.ls]
  FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
    AS u (p, b, e, pos, n, f, s, lp, ls)
 WHERE (SELECT b.batch FROM {batches} AS b WHERE b.reader = $1 AND b.partition_no = u.p::smallint ORDER BY b.batch DESC LIMIT 1) = u.b - 1
    ON CONFLICT DO NOTHING
RETURNING partition_no

-- name: won
-- Of $3 partitions, $4 batches, $5 epochs: is the journal row there $2's (that of an operator has no owner), and has nobody
-- taken over since? A settle that is repeated after that must not bring back what the next owner has removed.
((SELECT 1 FROM {batches} AS b WHERE b.reader = $1 AND b.partition_no = u.p::smallint AND b.batch = u.b
    AND b.owner IS NOT DISTINCT FROM $2::uuid AND b.epoch = u.e LIMIT 1) IS NOT NULL
 AND (SELECT b.epoch FROM {batches} AS b WHERE b.reader = $1 AND b.partition_no = u.p::smallint ORDER BY b.batch DESC LIMIT 1) = u.e)

-- name: due_of
-- $9: 0 never, 1 in $10 us, 2 at $10 us since 1970.
CASE u.due_how WHEN 1 THEN (SELECT clock_timestamp()) + u.due * interval '1 microsecond'
  WHEN 2 THEN timestamptz 'epoch' + u.due * interval '1 microsecond' END

-- name: except_add
-- $1 to $5 as won has them; $6 seq, $7 state, $8 attempts, $9 and $10 due, $11 queue, $12 error. One that is there was made by an operator, or
-- by this settle before its answer was lost.
INSERT INTO {exceptions} (reader, partition_no, seq, state, attempts, due, queue, last_error, since)
SELECT $1, u.p::smallint, u.seq, u.state::smallint, u.attempts::int, {>due_of}, u.queue, u.error, clock_timestamp()
  FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::text[])
    AS u (p, b, e, seq, state, attempts, due_how, due, queue, error)
 WHERE {>won}
    ON CONFLICT DO NOTHING

-- name: find
-- The place of the exception u.seq. By its place a row is found in one step whatever the planner knows of the table: joined by the
-- key, a plan that was made while there were few exceptions reads all of them for each.
CROSS JOIN LATERAL (SELECT e.ctid AS place FROM {exceptions} AS e
  WHERE e.reader = $1 AND e.partition_no = u.p::smallint AND e.seq = u.seq LIMIT 1) AS f

-- name: except_set
-- As except_add; $13 attempts as they were; $14: 1 whatever its state (an operator), else only one that is still to be sent.
UPDATE {exceptions} AS x
   SET state = u.state::smallint, attempts = u.attempts::int, due = {>due_of}, queue = u.queue, last_error = coalesce(u.error, x.last_error),
       since = CASE WHEN x.state = u.state::smallint THEN x.since ELSE clock_timestamp() END
  FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::bigint[])
    AS u (p, b, e, seq, state, attempts, due_how, due, queue, error, was)
  {>find}
 WHERE x.ctid = f.place AND x.attempts = u.was
   AND ($14::bigint = 1 OR x.state IN ({=waiting}, {=failed}, {=delayed})) AND {>won}

-- name: except_remove
-- $6 seq.
DELETE FROM {exceptions} AS x
 WHERE x.ctid = ANY (ARRAY(SELECT f.place FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]) AS u (p, b, e, seq)
  {>find} WHERE {>won}))

-- name: promote
-- $6 queues: the head of each becomes due if it waits without a time.
UPDATE {exceptions} AS x SET due = clock_timestamp()
 WHERE x.ctid = ANY (ARRAY(SELECT h.place FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::text[]) AS u (p, b, e, queue)
   CROSS JOIN LATERAL (SELECT h.ctid AS place, h.state, h.due FROM {exceptions} AS h
      WHERE h.reader = $1 AND h.partition_no = u.p::smallint AND h.queue = u.queue COLLATE "C" ORDER BY h.queue, h.seq LIMIT 1) AS h
   WHERE h.state = {=waiting} AND h.due IS NULL AND {>won}))

-- name: promote_all
-- After a resize: the queues of every reader.
UPDATE {exceptions} AS x SET due = clock_timestamp()
 WHERE x.queue IS NOT NULL AND x.state = {=waiting} AND x.due IS NULL
   AND (SELECT 1 FROM {exceptions} AS l WHERE l.reader = x.reader AND l.partition_no = x.partition_no AND l.queue = x.queue AND l.seq < x.seq LIMIT 1) IS NULL

-- name: journal_state
-- Why a row was not inserted: is the one of that number ours ($2), and which is the newest?
SELECT u.p, ({>won})::int, n.batch, n.epoch
  FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) AS u (p, b, e)
  LEFT JOIN LATERAL (SELECT n.batch, n.epoch FROM {batches} AS n WHERE n.reader = $1 AND n.partition_no = u.p::smallint ORDER BY n.batch DESC LIMIT 1) AS n ON true

-- name: operator_row
-- The next row of each of the partitions $2, with the progress and the epoch of the newest, and no owner.
WITH "#made" AS (
  INSERT INTO {batches} (reader, partition_no, batch, epoch, at, pos, seen, late_pos, late_seen)
  SELECT $1, n.partition_no, n.batch + 1, n.epoch, clock_timestamp(), n.pos, n.seen, n.late_pos, n.late_seen
    FROM unnest($2::bigint[]) AS u (p)
   CROSS JOIN LATERAL (SELECT * FROM {batches} AS b WHERE b.reader = $1 AND b.partition_no = u.p::smallint ORDER BY b.batch DESC LIMIT 1) AS n
   ORDER BY n.partition_no
      ON CONFLICT DO NOTHING
  RETURNING partition_no, batch, epoch
)
SELECT partition_no, batch, epoch FROM "#made" ORDER BY partition_no

-- name: take_over
-- $1 reader, $2 owner, $3 partitions, $4 epochs. The newest row of each partition, and the number of the row after it if it was inserted:
-- not if a higher epoch is there, nor if the newest is ours already.
WITH "#newest" AS MATERIALIZED (
  SELECT u.p, u.e, n.* FROM unnest($3::bigint[], $4::bigint[]) AS u (p, e)
    LEFT JOIN LATERAL (SELECT * FROM {batches} AS b WHERE b.reader = $1 AND b.partition_no = u.p::smallint ORDER BY b.batch DESC LIMIT 1) AS n ON true
), "#made" AS (
  INSERT INTO {batches} (reader, partition_no, batch, epoch, owner, at, pos, seen, late_pos, late_seen)
  SELECT $1, n.partition_no, n.batch + 1, n.e, $2::uuid, clock_timestamp(), n.pos, n.seen, n.late_pos, n.late_seen
    FROM "#newest" AS n WHERE n.epoch <= n.e AND NOT (n.epoch = n.e AND n.owner IS NOT DISTINCT FROM $2::uuid)
   ORDER BY n.partition_no
      ON CONFLICT DO NOTHING
  RETURNING partition_no, batch
)
SELECT n.p, n.epoch, (n.epoch = n.e AND n.owner IS NOT DISTINCT FROM $2::uuid)::int, n.batch, made.batch, n.pos, n.seen::text, n.late_pos, n.late_seen::text,
       (pg_snapshot_xmax(n.seen) > pg_snapshot_xmax(pg_current_snapshot()))::int
  FROM "#newest" AS n LEFT JOIN "#made" AS made ON made.partition_no = n.p

-- name: same_cluster
-- Is it the cluster whose transaction ids the journal holds?
SELECT (SELECT value FROM {meta} WHERE name = 'system_identifier'), system_identifier FROM pg_control_system()

-- name: any_ahead
-- A journal that is younger than the cluster.
SELECT count(*) FROM {batches} WHERE pg_snapshot_xmax(seen) > pg_snapshot_xmax(pg_current_snapshot())
