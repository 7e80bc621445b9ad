-- Operators, statistics, cleaning.
--
-- "target BETWEEN :target_min AND :target_max": both the name for one target, '' and an
-- empty blob (above every text) for all of them, so that one statement uses the index either way.

-- name: verb_retry
UPDATE {outbox} SET {status} = 0, {attempts} = 0, {available_at} = :now, {published_at} = NULL,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 0
 WHERE {seq} = :seq;

-- name: verb_skip
UPDATE {outbox} SET {status} = -1, {published_at} = :now,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 0
 WHERE {seq} = :seq;

-- name: verb_discard
DELETE FROM {outbox} WHERE {seq} = :seq;

-- name: verb_priority
UPDATE {outbox} SET {priority} = :priority,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 0
 WHERE {seq} = :seq;

-- name: next_target
-- Of the finished rows, the first behind :target.
SELECT min({target}) FROM {outbox} WHERE {status} IN (1, -1) AND {target} > :target;

-- name: clean
DELETE FROM {outbox} WHERE {seq} IN (
       SELECT {seq} FROM {outbox}
        WHERE {target} = :target AND {status} = :status AND {status} IN (1, -1)
          AND {published_at} <= :now - :age
        ORDER BY {published_at} LIMIT :limit);

-- name: clean_throughput
-- A month is more than anything shows.
DELETE FROM {throughput} WHERE minute < :now - 2678400000000;

-- name: stats_waiting
-- Pending, delayed, and the oldest that is due; seq is the order of insertion.
SELECT {target}, count(*), sum({available_at} > :now), min(CASE WHEN {available_at} <= :now THEN {seq} END)
  FROM {outbox}
 WHERE {status} = 0 AND {target} BETWEEN :target_min AND :target_max
 GROUP BY {target};

-- name: stats_published
SELECT {target}, count(*)
  FROM {outbox}
 WHERE {status} IN (1, -1) AND {status} = 1 AND {target} BETWEEN :target_min AND :target_max
 GROUP BY {target};

-- name: stats_exceptions
SELECT {target}, {status}, count(*), min(CASE WHEN {status} > 0 AND {available_at} <= :now THEN {seq} END)
  FROM {outbox}
 WHERE {status} NOT IN (0, 1) AND {target} BETWEEN :target_min AND :target_max
 GROUP BY {target}, {status};

-- name: stats_claims
SELECT {target}, {status}, {available_at} > :now, count(*)
  FROM {outbox}
 WHERE {locked_until} > 0 AND {locked_until} > :now AND {status} IN (0, 2)
   AND {target} BETWEEN :target_min AND :target_max
 GROUP BY 1, 2, 3;

-- name: stats_held
SELECT {target}, count(DISTINCT {ordering_key})
  FROM {outbox}
 WHERE {status} NOT IN (0, 1) AND {status} IN (2, -2)
   AND {target} BETWEEN :target_min AND :target_max
 GROUP BY {target};

-- name: created_at
SELECT {created_at} FROM {outbox} WHERE {seq} = :seq;

-- name: throughput
SELECT minute, sum(published), sum(failed)
  FROM {throughput}
 WHERE minute > :now / 60000000 * 60000000 - :minutes * 60000000
   AND minute <= :now AND target BETWEEN :target_min AND :target_max
   AND (published > 0 OR failed > 0)
 GROUP BY minute ORDER BY minute;
