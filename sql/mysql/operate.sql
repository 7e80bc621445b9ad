-- Operators, statistics, cleaning.

-- name: verb_retry
UPDATE {outbox} FORCE INDEX (PRIMARY)
   SET {status} = 0, {attempts} = 0, {available_at} = UTC_TIMESTAMP(6), {published_at} = NULL,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = '1970-01-01 00:00:00'
 WHERE {seq} IN (:seqs*)

-- name: verb_skip
UPDATE {outbox} FORCE INDEX (PRIMARY)
   SET {status} = -1, {published_at} = UTC_TIMESTAMP(6),
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = '1970-01-01 00:00:00'
 WHERE {seq} IN (:seqs*)

-- name: verb_priority
UPDATE {outbox} FORCE INDEX (PRIMARY)
   SET {priority} = :priority,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = '1970-01-01 00:00:00'
 WHERE {seq} IN (:seqs*)

-- name: next_target
-- The first target behind :target.
SELECT MIN({target}) FROM {outbox} FORCE INDEX ({name:finished}) WHERE {target} > :target

-- name: clean
-- :age is negative.
DELETE FROM {outbox}
 WHERE {target} = :target AND {status} = :status
   AND {published_at} <= TIMESTAMPADD(MICROSECOND, :age, UTC_TIMESTAMP(6))
 ORDER BY {published_at} LIMIT :limit

-- name: clean_throughput
-- A month is more than anything shows.
DELETE FROM {throughput} WHERE minute < UTC_TIMESTAMP(6) - INTERVAL 31 DAY

-- name: stats_open
-- Of every state but published: all, claimed, not yet due (and not claimed), the first that is due.
SELECT {status}, COUNT(*), COUNT(CASE WHEN {locked_until} > UTC_TIMESTAMP(6) THEN 1 END),
       COUNT(CASE WHEN {locked_until} <= UTC_TIMESTAMP(6) AND {available_at} > UTC_TIMESTAMP(6) THEN 1 END),
       MIN(CASE WHEN {status} >= 0 AND {available_at} <= UTC_TIMESTAMP(6) THEN {seq} END)
  FROM {outbox} FORCE INDEX ({name:ready})
 WHERE {target} = :target AND {status} IN (0, 2, 3, -1, -2)
 GROUP BY {status}

-- name: stats_published
SELECT COUNT(*) FROM {outbox} FORCE INDEX ({name:finished}) WHERE {target} = :target AND {status} = 1

-- name: stats_held
SELECT COUNT(DISTINCT {name:held_key}) FROM {outbox} FORCE INDEX ({name:ready})
 WHERE {target} = :target AND {status} IN (2, -2)

-- name: created_at
SELECT TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {created_at}) FROM {outbox} WHERE {seq} = :seq

-- name: throughput
SELECT TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', minute),
       CAST(SUM(published) AS SIGNED), CAST(SUM(failed) AS SIGNED)
  FROM {throughput}
 WHERE TIMESTAMPDIFF(MINUTE, TIMESTAMP'1970-01-01 00:00:00', minute)
       > TIMESTAMPDIFF(MINUTE, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6)) - :minutes
   AND minute <= UTC_TIMESTAMP(6) AND (:target IS NULL OR target = :target)
   AND (published > 0 OR failed > 0)
 GROUP BY minute ORDER BY minute
