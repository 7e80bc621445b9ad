-- Operators, statistics, cleaning.

-- name: verb_retry
UPDATE {outbox} SET {status} = 0, {attempts} = 0, {available_at} = (SELECT clock_timestamp()), {published_at} = NULL,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 'epoch'
 WHERE {seq} = ANY ($1::bigint[])

-- name: verb_skip
UPDATE {outbox} SET {status} = -1, {published_at} = (SELECT clock_timestamp()),
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 'epoch'
 WHERE {seq} = ANY ($1::bigint[])

-- name: verb_discard
DELETE FROM {outbox} WHERE {seq} = ANY ($1::bigint[])

-- name: verb_priority
UPDATE {outbox} SET {priority} = $2::bigint::smallint,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 'epoch'
 WHERE {seq} = ANY ($1::bigint[])

-- name: clean
-- $1 target or NULL, $2 status, $3 age in us, $4 limit. Rows that someone works on wait for the next time.
DELETE FROM {outbox} WHERE {seq} IN (
       SELECT {seq} FROM {outbox}
        WHERE ($1::text IS NULL OR {target} = $1) AND {status} = $2::bigint::smallint AND {status} IN (1, -1)
          AND {published_at} <= (SELECT clock_timestamp()) - $3::bigint * interval '1 microsecond'
        ORDER BY {published_at} LIMIT $4::bigint FOR UPDATE SKIP LOCKED)

-- name: clean_throughput
-- A month is more than anything shows.
DELETE FROM {throughput} WHERE minute < (SELECT clock_timestamp()) - interval '31 days'

-- name: stats
-- $1 target or NULL. Three parts, each from the index that knows it.
SELECT target, sum(pending)::bigint, sum(delayed)::bigint, sum(processing)::bigint, sum(failed)::bigint,
       sum(parked)::bigint, sum(dead)::bigint, sum(published)::bigint, sum(held)::bigint, min(oldest)
  FROM (
  SELECT {target} AS target,
         count(*) FILTER (WHERE {locked_until} <= (SELECT clock_timestamp()) AND {available_at} <= (SELECT clock_timestamp())) AS pending,
         count(*) FILTER (WHERE {locked_until} <= (SELECT clock_timestamp()) AND {available_at} > (SELECT clock_timestamp())) AS delayed,
         count(*) FILTER (WHERE {locked_until} > (SELECT clock_timestamp())) AS processing,
         0 AS failed, 0 AS parked, 0 AS dead, 0 AS published, 0 AS held,
         min({created_at}) FILTER (WHERE {available_at} <= (SELECT clock_timestamp())) AS oldest
    FROM {outbox} WHERE {status} = 0 AND ($1::text IS NULL OR {target} = $1) GROUP BY {target}
  UNION ALL
  SELECT {target}, 0, 0, count(*) FILTER (WHERE {status} = 2 AND {locked_until} > (SELECT clock_timestamp())),
         count(*) FILTER (WHERE {status} = 2 AND {locked_until} <= (SELECT clock_timestamp())),
         count(*) FILTER (WHERE {status} = 3), count(*) FILTER (WHERE {status} < 0), 0,
         count(DISTINCT {ordering_key}) FILTER (WHERE {status} IN (2, -2)),
         min({created_at}) FILTER (WHERE {status} > 0 AND {available_at} <= (SELECT clock_timestamp()))
    FROM {outbox} WHERE {status} NOT IN (0, 1) AND ($1::text IS NULL OR {target} = $1) GROUP BY {target}
  UNION ALL
  SELECT {target}, 0, 0, 0, 0, 0, 0, count(*), 0, NULL
    FROM {outbox} WHERE {status} IN (1, -1) AND {status} = 1 AND ($1::text IS NULL OR {target} = $1) GROUP BY {target}
  ) AS parts GROUP BY target ORDER BY target

-- name: throughput
-- $1 target or NULL, $2 minutes.
SELECT minute, sum(published)::bigint, sum(failed)::bigint
  FROM {throughput}
 WHERE minute > date_trunc('minute', (SELECT clock_timestamp()), 'UTC') - $2::bigint * interval '1 minute'
   AND minute <= (SELECT clock_timestamp()) AND ($1::text IS NULL OR target = $1)
 GROUP BY minute HAVING sum(published) > 0 OR sum(failed) > 0 ORDER BY minute
