-- Retention: rows that every reader has behind it, and what else is old.

-- name: retain_candidates
-- A plain read: it sees committed rows only, so the DELETE by number waits for no writer. What nobody reads waits for its reader.
-- STRAIGHT_JOIN: MariaDB 11 may begin with the readers otherwise, and then sorts all that may go, for each batch.
SELECT STRAIGHT_JOIN m.{seq} FROM {outbox} AS m FORCE INDEX (PRIMARY)
 WHERE m.{seq} <= :pos AND m.{target} IN (SELECT r.target FROM {readers} AS r)
   AND NOT EXISTS (SELECT 1 FROM {readers} AS r
     STRAIGHT_JOIN {exceptions} AS e ON e.reader = r.name AND e.partition_no = m.{partition_no} AND e.seq = m.{seq})
 ORDER BY m.{seq} LIMIT :limit

-- name: retain_these
-- The same, of these numbers.
SELECT m.{seq} FROM {outbox} AS m FORCE INDEX (PRIMARY)
 WHERE m.{seq} IN (:numbers) AND m.{seq} <= :pos AND m.{target} IN (SELECT r.target FROM {readers} AS r)
   AND NOT EXISTS (SELECT 1 FROM {readers} AS r
     STRAIGHT_JOIN {exceptions} AS e ON e.reader = r.name AND e.partition_no = m.{partition_no} AND e.seq = m.{seq})
 ORDER BY m.{seq} LIMIT :limit

-- name: retain_delete
DELETE FROM {outbox} WHERE {seq} IN (:numbers)

-- name: forget_exceptions
-- Of rows that progress covers: any other would be delivered after all.
DELETE e FROM {exceptions} AS e
  JOIN (SELECT partition_no, MAX(batch) AS batch FROM {batches} WHERE reader = :reader GROUP BY partition_no) AS n
    ON n.partition_no = e.partition_no
  JOIN {batches} AS p ON p.reader = :reader AND p.partition_no = n.partition_no AND p.batch = n.batch
  JOIN {outbox} AS m ON m.{seq} = e.seq
 WHERE e.reader = :reader AND {>covered} AND e.since <= TIMESTAMPADD(MICROSECOND, -:age, UTC_TIMESTAMP(6)) AND e.state IN (:states)

-- name: prune_journal
DELETE FROM {batches} WHERE reader = :reader AND partition_no = :partition AND batch IN (:numbers)

-- name: old_batches
-- The newest row of a partition stays for ever, and the newest that is old enough: retention goes by it. Of the
-- younger ones the last of each minute stays.
SELECT b.partition_no, b.batch FROM {batches} AS b
  JOIN (SELECT a.partition_no, MAX(a.batch) AS batch,
               MAX(IF(a.at <= TIMESTAMPADD(MICROSECOND, -:age, UTC_TIMESTAMP(6)), a.batch, NULL)) AS bound
          FROM {batches} AS a WHERE a.reader = :reader AND a.partition_no = :partition) AS n
 WHERE b.reader = :reader AND b.partition_no = :partition AND b.batch < n.batch
   AND (b.batch < n.bound OR (b.at > TIMESTAMPADD(MICROSECOND, -:age, UTC_TIMESTAMP(6)) AND EXISTS (
     SELECT 1 FROM {batches} AS c WHERE c.reader = :reader AND c.partition_no = :partition AND c.batch = b.batch + 1
        AND TIMESTAMPDIFF(MINUTE, '1970-01-01', c.at) = TIMESTAMPDIFF(MINUTE, '1970-01-01', b.at))))
 ORDER BY b.batch LIMIT :limit

-- name: forget_audit
DELETE FROM {audit} WHERE at < TIMESTAMPADD(DAY, -{=audit_days}, UTC_TIMESTAMP(6))

-- name: forget_throughput
DELETE FROM {throughput} WHERE minute < TIMESTAMPADD(HOUR, -25, UTC_TIMESTAMP(6))

-- name: ended_readers
-- Replays whose workers are gone for an hour.
SELECT r.name FROM {readers} AS r
 WHERE r.temporary AND r.created_at <= TIMESTAMPADD(HOUR, -1, UTC_TIMESTAMP(6))
   AND NOT EXISTS (SELECT 1 FROM {workers} AS w WHERE w.reader = r.name AND w.heartbeat_until > TIMESTAMPADD(HOUR, -1, UTC_TIMESTAMP(6)))
   AND NOT EXISTS (SELECT 1 FROM {batches} AS b WHERE b.reader = r.name AND b.at > TIMESTAMPADD(HOUR, -1, UTC_TIMESTAMP(6)))

-- name: all_readers
SELECT name FROM {readers} ORDER BY name

-- name: old_row_after
-- Is there a row that the reader has not behind it and that is older than it should be?
SELECT 1 FROM {outbox} AS m FORCE INDEX (PRIMARY)
 WHERE m.{seq} > :pos AND m.{created_at} <= TIMESTAMPADD(MICROSECOND, -:age, UTC_TIMESTAMP(6)) LIMIT 1
