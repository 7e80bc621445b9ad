-- Recording outcomes.

-- name: fence
-- Locks those of the leases ($3 partitions, $4 epochs) of $1 that are still $2's: a takeover must
-- change the row, so it waits for us or has changed it. Statements behind this one see what it
-- locked.
SELECT partition_no::bigint FROM {partitions}
 WHERE target = $1 AND lease_owner = $2::uuid
   AND (partition_no, lease_epoch) IN (SELECT * FROM unnest($3::bigint[], $4::bigint[]))
 ORDER BY partition_no FOR SHARE

-- name: publish
-- Rows that nothing happened to since they were fetched ($1 seq, ascending as the pages are that
-- they stand on, $2 id), behind fence ($3 to $6 are its parameters). IS TRUE: rows are found by their
-- number, whatever other index the statistics speak for. A row that does not apply, or a lease that
-- is not ours, divides by zero: that undoes the transaction, and the long way is taken.
WITH "#hit" AS (
  UPDATE {outbox} AS m SET {status} = 1, {published_at} = (SELECT clock_timestamp()), {last_error} = NULL
    FROM unnest($1::bigint[], $2::uuid[]) AS g (s, i)
   WHERE m.{seq} = g.s AND (m.{id} = g.i{?+string_id}::text{/}) IS TRUE AND (m.{status} = 0) IS TRUE AND m.{locked_until} = 'epoch'
  RETURNING 1
)
SELECT 1 / (count(*) = cardinality($1::bigint[]) AND cardinality($5::bigint[]) = (
         SELECT count(*) FROM {partitions}
          WHERE target = $3 AND lease_owner = $4::uuid
            AND (partition_no, lease_epoch) IN (SELECT * FROM unnest($5::bigint[], $6::bigint[]))))::int
  FROM "#hit"

-- name: publish_delete
WITH "#hit" AS (
  DELETE FROM {outbox} AS m USING unnest($1::bigint[], $2::uuid[]) AS g (s, i)
   WHERE m.{seq} = g.s AND (m.{id} = g.i{?+string_id}::text{/}) IS TRUE AND (m.{status} = 0) IS TRUE AND m.{locked_until} = 'epoch'
  RETURNING 1
)
SELECT 1 / (count(*) = cardinality($1::bigint[]) AND cardinality($5::bigint[]) = (
         SELECT count(*) FROM {partitions}
          WHERE target = $3 AND lease_owner = $4::uuid
            AND (partition_no, lease_epoch) IN (SELECT * FROM unnest($5::bigint[], $6::bigint[]))))::int
  FROM "#hit"

-- name: rows_state
-- Locked, so that what is decided by it stays true.
SELECT {seq}, {status}, {attempts}, {partition_no}, {ordering_key}, {target}, {claim_token}, {id}
  FROM {outbox} WHERE {seq} = ANY ($1::bigint[]) ORDER BY {seq} FOR UPDATE

-- name: rows_published
UPDATE {outbox} SET {status} = 1, {published_at} = (SELECT clock_timestamp()), {last_error} = NULL,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 'epoch'
 WHERE {seq} = ANY ($1::bigint[])

-- name: rows_delete
DELETE FROM {outbox} WHERE {seq} = ANY ($1::bigint[])

-- name: rows_failed
-- $1 seq, $2 status, $3 due in us, $4 error. A dead row keeps when it was due.
UPDATE {outbox} AS m SET {status} = u.status::smallint, {attempts} = m.{attempts} + 1,
       {available_at} = CASE WHEN u.status = 2 THEN (SELECT clock_timestamp()) + u.due * interval '1 microsecond' ELSE m.{available_at} END,
       {published_at} = CASE WHEN u.status < 0 THEN (SELECT clock_timestamp()) END,
       {last_error} = u.error, {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 'epoch'
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[]) AS u (seq, status, due, error)
 WHERE m.{seq} = u.seq

-- name: rows_unclaim
UPDATE {outbox} SET {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 'epoch' WHERE {seq} = ANY ($1::bigint[])

-- name: park_keys
-- Every pending row of the partitions $2 whose key something holds.
UPDATE {outbox} AS m SET {status} = 3
 WHERE m.{target} = $1 AND m.{partition_no} = ANY ($2::bigint[]::smallint[]) AND m.{status} = 0
   AND EXISTS (
       SELECT 1 FROM {outbox} AS h
        WHERE h.{target} = $1 AND h.{partition_no} = m.{partition_no} AND h.{ordering_key} = m.{ordering_key}
          AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1))

-- name: park_partitions
UPDATE {outbox} AS m SET {status} = 3
 WHERE m.{target} = $1 AND m.{partition_no} = ANY ($2::bigint[]::smallint[]) AND m.{status} = 0
   AND EXISTS (
       SELECT 1 FROM {outbox} AS h
        WHERE h.{target} = $1 AND h.{partition_no} = m.{partition_no}
          AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1))

-- name: release_keys
-- $1 targets, $2 partitions, $3 keys that rows stopped holding.
UPDATE {outbox} AS m SET {status} = 0
  FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::bigint[], $3::text[]) AS u (target, part, key)) AS u
 WHERE m.{target} = u.target AND m.{partition_no} = u.part::smallint AND m.{ordering_key} = u.key
   AND m.{status} = 3 AND m.{status} NOT IN (0, 1)
   AND NOT EXISTS (
       SELECT 1 FROM {outbox} AS h
        WHERE h.{target} = u.target AND h.{partition_no} = u.part::smallint AND h.{ordering_key} = u.key
          AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1))

-- name: release_partitions
UPDATE {outbox} AS m SET {status} = 0
  FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::bigint[]) AS u (target, part)) AS u
 WHERE m.{target} = u.target AND m.{partition_no} = u.part::smallint
   AND m.{status} = 3 AND m.{status} NOT IN (0, 1)
   AND NOT EXISTS (
       SELECT 1 FROM {outbox} AS h
        WHERE h.{target} = u.target AND h.{partition_no} = u.part::smallint
          AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1))

-- name: count_minute
INSERT INTO {throughput} AS t (minute, target, slot, published, failed)
VALUES (date_trunc('minute', clock_timestamp(), 'UTC'), $1, pg_backend_pid() % 64, $2::bigint, $3::bigint)
    ON CONFLICT (minute, target, slot) DO UPDATE
   SET published = t.published + excluded.published, failed = t.failed + excluded.failed
