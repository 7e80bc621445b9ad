-- Recording progress, and what changes with it.

-- name: journal
-- :parts p, batch, epoch, pos, published, failed, which of :seens (snapshots) was seen, late position, which was seen late (0: none).
-- The fence: only the number after the newest is inserted. Not by the primary key alone: rows below the newest are pruned, and could be
-- inserted again. The snapshots are read once (SELECT), not for each row.
INSERT INTO {batches} (reader, partition_no, batch, epoch, owner, at, pos, published, failed, seen, late_pos, late_seen)
SELECT :reader, u.p::smallint, u.b, u.e, :owner::uuid, clock_timestamp(), u.pos, u.n, u.f,
       ((SELECT (:seens)::pg_snapshot[]))[u.s], u.lp, ((SELECT (:seens)::pg_snapshot[]))[u.ls]
  FROM unnest(:parts) AS u (p, b, e, pos, n, f, s, lp, ls)
 WHERE (SELECT b.batch FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = u.p::smallint ORDER BY b.batch DESC LIMIT 1) = u.b - 1
    ON CONFLICT DO NOTHING

-- name: is_won
-- Of u (p, b, e): is the journal row there :owner's (that of an operator has no owner), and has nobody taken over since? A settle
-- that is repeated after that must not bring back what the next owner has removed.
((SELECT 1 FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = u.p::smallint AND b.batch = u.b
    AND b.owner IS NOT DISTINCT FROM :owner::uuid AND b.epoch = u.e LIMIT 1) IS NOT NULL
 AND (SELECT b.epoch FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = u.p::smallint ORDER BY b.batch DESC LIMIT 1) = u.e)

-- name: won
-- Every change asks for itself.

-- name: due_of
-- 0 never, 1 in so many us, 2 at so many us since 1970.
CASE u.due_how WHEN 1 THEN (SELECT clock_timestamp()) + u.due * interval '1 microsecond'
  WHEN 2 THEN timestamptz 'epoch' + u.due * interval '1 microsecond' END

-- name: except_add
-- One that is there was made by an operator, or by this settle before its answer was lost.
INSERT INTO {exceptions} (reader, partition_no, seq, state, attempts, due, queue, last_error, since)
SELECT :reader, u.p::smallint, u.seq, u.state::smallint, u.attempts::int, {>due_of}, u.queue, u.error, clock_timestamp()
  FROM unnest(:changes) AS u (p, b, e, seq, state, attempts, was, due_how, due, queue, error)
 WHERE {>is_won}
    ON CONFLICT DO NOTHING

-- name: find
-- The place of the exception u.seq. By its place a row is found in one step whatever the planner knows of the table: joined by the
-- key, a plan that was made while there were few exceptions reads all of them for each.
CROSS JOIN LATERAL (SELECT e.ctid AS place FROM {exceptions} AS e
  WHERE e.reader = :reader AND e.partition_no = u.p::smallint AND e.seq = u.seq LIMIT 1) AS f

-- name: except_set
-- :any 1: whatever its state (an operator), else only one that is still to be sent.
UPDATE {exceptions} AS x
   SET state = u.state::smallint, attempts = u.attempts::int, due = {>due_of}, queue = u.queue, last_error = coalesce(u.error, x.last_error),
       since = CASE WHEN x.state = u.state::smallint THEN x.since ELSE clock_timestamp() END
  FROM unnest(:changes) AS u (p, b, e, seq, state, attempts, was, due_how, due, queue, error)
  {>find}
 WHERE x.ctid = f.place AND x.attempts = u.was
   AND (:any::bigint = 1 OR x.state IN ({=waiting}, {=failed}, {=delayed})) AND {>is_won}

-- name: except_remove
DELETE FROM {exceptions} AS x
 WHERE x.ctid = ANY (ARRAY(SELECT f.place FROM unnest(:changes) AS u (p, b, e, seq, state, attempts, was, due_how, due, queue, error)
  {>find} WHERE {>is_won}))

-- name: promote
-- The head of each queue becomes due if it waits without a time.
UPDATE {exceptions} AS x SET due = clock_timestamp()
 WHERE x.ctid = ANY (ARRAY(SELECT h.place FROM unnest(:queues) AS u (p, b, e, queue)
   CROSS JOIN LATERAL (SELECT h.ctid AS place, h.state, h.due FROM {exceptions} AS h
      WHERE h.reader = :reader AND h.partition_no = u.p::smallint AND h.queue = u.queue COLLATE "C" ORDER BY h.queue, h.seq LIMIT 1) AS h
   WHERE h.state = {=waiting} AND h.due IS NULL AND {>is_won}))

-- name: promote_all
-- After a resize: the queues of every reader.
UPDATE {exceptions} AS x SET due = clock_timestamp()
 WHERE x.queue IS NOT NULL AND x.state = {=waiting} AND x.due IS NULL
   AND (SELECT 1 FROM {exceptions} AS l WHERE l.reader = x.reader AND l.partition_no = x.partition_no AND l.queue = x.queue AND l.seq < x.seq LIMIT 1) IS NULL

-- name: journal_state
-- Why a row was not inserted: is the one of that number ours, and which is the newest?
SELECT u.p, ({>is_won})::int, n.batch, n.epoch
  FROM unnest(:parts) AS u (p, b, e, pos, n, f, s, lp, ls)
  LEFT JOIN LATERAL (SELECT n.batch, n.epoch FROM {batches} AS n WHERE n.reader = :reader AND n.partition_no = u.p::smallint ORDER BY n.batch DESC LIMIT 1) AS n ON true

-- name: operator_row
-- The next row of each of the partitions :parts, with the progress and the epoch of the newest, and no owner.
WITH "#made" AS (
  INSERT INTO {batches} (reader, partition_no, batch, epoch, at, pos, seen, late_pos, late_seen)
  SELECT :reader, n.partition_no, n.batch + 1, n.epoch, clock_timestamp(), n.pos, n.seen, n.late_pos, n.late_seen
    FROM unnest(:parts) AS u (p)
   CROSS JOIN LATERAL (SELECT * FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = u.p::smallint ORDER BY b.batch DESC LIMIT 1) AS n
   ORDER BY n.partition_no
      ON CONFLICT DO NOTHING
  RETURNING partition_no, batch, epoch
)
SELECT partition_no, batch, epoch FROM "#made" ORDER BY partition_no

-- name: operator_made

-- name: take_over
-- :parts p, epoch. The newest row again, with the next number: not if a higher epoch is there, nor if the newest is ours already.
INSERT INTO {batches} (reader, partition_no, batch, epoch, owner, at, pos, seen, late_pos, late_seen)
SELECT :reader, n.partition_no, n.batch + 1, u.e, :owner::uuid, clock_timestamp(), n.pos, n.seen, n.late_pos, n.late_seen
  FROM unnest(:parts) AS u (p, e) CROSS JOIN LATERAL (
    SELECT * FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = u.p::smallint ORDER BY b.batch DESC LIMIT 1) AS n
 WHERE n.epoch <= u.e AND NOT (n.epoch = u.e AND n.owner IS NOT DISTINCT FROM :owner::uuid) AND NOT ({>is_foreign})
 ORDER BY n.partition_no
    ON CONFLICT DO NOTHING

-- name: progress
-- The newest row of each partition.
SELECT n.partition_no, n.batch, n.epoch, n.owner, n.at, n.pos, n.seen::text, n.late_pos, n.late_seen::text
  FROM unnest(:parts) AS u (p, e) CROSS JOIN LATERAL (
    SELECT * FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = u.p::smallint ORDER BY b.batch DESC LIMIT 1) AS n

-- name: is_foreign
-- Is it not the cluster whose transaction ids the journal holds? Its identifier is another one, or it is younger than the journal.
(SELECT coalesce((SELECT value FROM {meta} WHERE name = 'system_identifier') <> system_identifier, false) FROM pg_control_system())
 OR EXISTS (SELECT 1 FROM unnest(:parts) AS f (p, e) CROSS JOIN LATERAL (
      SELECT b.seen FROM {batches} AS b WHERE b.reader = :reader AND b.partition_no = f.p::smallint ORDER BY b.batch DESC LIMIT 1) AS n
     WHERE pg_snapshot_xmax(n.seen) > pg_snapshot_xmax(pg_current_snapshot()))

-- name: foreign_progress
SELECT ({>is_foreign})::int

-- name: same_cluster
-- Is it the cluster whose transaction ids the journal holds?
SELECT (SELECT value FROM {meta} WHERE name = 'system_identifier'), system_identifier FROM pg_control_system()

-- name: any_ahead
-- A journal that is younger than the cluster.
SELECT count(*) FROM {batches} WHERE pg_snapshot_xmax(seen) > pg_snapshot_xmax(pg_current_snapshot())
