-- Operators, statistics, cleaning.
--
-- "target BETWEEN :target_min AND :target_max": both the name for one target, '' and an
-- empty blob (above every text) for all of them, so that one statement uses the index either way.

-- name: verb_retry
UPDATE {outbox} SET {status} = 0, {attempts} = 0, {available_at} = 0,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 0
 WHERE {seq} = :seq;

-- name: verb_skip
UPDATE {outbox} SET {status} = -1,
       {available_at} = CASE WHEN {status} = -1 THEN {available_at} ELSE :now END,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 0
 WHERE {seq} = :seq;

-- name: verb_discard
DELETE FROM {outbox} WHERE {seq} = :seq;

-- name: verb_priority
UPDATE {outbox} SET {priority} = :priority WHERE {seq} = :seq;

-- name: next_published_target
SELECT min({target}) FROM {outbox} WHERE {status} = 1 AND {target} > :target;

-- name: next_dead_target
SELECT min({target}) FROM {outbox} WHERE {status} NOT IN (0, 1) AND {target} > :target;

-- name: clean_published
DELETE FROM {outbox} WHERE {seq} IN (
       SELECT {seq} FROM {outbox}
        WHERE {status} = 1 AND {target} = :target AND {published_at} <= :now - :age
        ORDER BY {published_at} LIMIT :limit);

-- name: clean_dead
DELETE FROM {outbox} WHERE {seq} IN (
       SELECT {seq} FROM {outbox}
        WHERE {status} NOT IN (0, 1) AND {target} = :target AND {status} = -1
          AND {available_at} <= :now - :age
        LIMIT :limit);

-- name: clean_throughput
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
 WHERE {status} = 1 AND {target} BETWEEN :target_min AND :target_max
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
 WHERE target BETWEEN :target_min AND :target_max
 GROUP BY minute ORDER BY minute DESC LIMIT :minutes;
