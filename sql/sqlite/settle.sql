-- Recording outcomes, and when rows were pushed.

-- name: stamp
-- A row that was just pushed, by a clock that is not SQLite's.
UPDATE {outbox} SET {created_at} = :now, {available_at} = :due_at
       {?occurred_at}, {occurred_at} = :occurred_at{/}
 WHERE {id} = :id AND {target} = :target;

-- name: publish
-- A row that nothing happened to since it was fetched: one statement is all it costs.
UPDATE {outbox} SET {status} = 1, {published_at} = :now, {last_error} = NULL
 WHERE {seq} = :seq AND {id} = :id AND {status} = 0 AND {locked_until} = 0;

-- name: publish_delete
DELETE FROM {outbox} WHERE {seq} = :seq AND {id} = :id AND {status} = 0 AND {locked_until} = 0;

-- name: publish_claimed
UPDATE {outbox} SET {status} = 1, {published_at} = :now, {last_error} = NULL,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 0
 WHERE {seq} = :seq AND {id} = :id AND {status} = 0 AND {claim_token} = :token;

-- name: publish_claimed_delete
DELETE FROM {outbox} WHERE {seq} = :seq AND {id} = :id AND {status} = 0 AND {claim_token} = :token;

-- name: row_state
SELECT {status}, {attempts}, {partition_no}, {ordering_key}, {target}, {claim_token}, {id} FROM {outbox} WHERE {seq} = :seq;

-- name: row_published
UPDATE {outbox} SET {status} = 1, {published_at} = :now, {last_error} = NULL,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 0
 WHERE {seq} = :seq;

-- name: row_delete
DELETE FROM {outbox} WHERE {seq} = :seq;

-- name: row_failed
UPDATE {outbox} SET {status} = :status, {attempts} = {attempts} + 1,
       {available_at} = coalesce(:due_at, {available_at}),
       {published_at} = :died_at, {last_error} = :error, {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 0
 WHERE {seq} = :seq;

-- name: row_unclaim
UPDATE {outbox} SET {claim_token} = NULL, {locked_by} = NULL, {locked_until} = 0 WHERE {seq} = :seq;

-- name: park_keys
-- Every pending row of the partition whose key something holds.
UPDATE {outbox} AS m SET {status} = 3
 WHERE m.{target} = :target AND m.{partition_no} = :partition AND m.{status} = 0
   AND EXISTS (
       SELECT 1 FROM {outbox} AS h
        WHERE h.{target} = :target AND h.{partition_no} = :partition
          AND h.{ordering_key} = m.{ordering_key}
          AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1));

-- name: park_partition
UPDATE {outbox} AS m SET {status} = 3
 WHERE m.{target} = :target AND m.{partition_no} = :partition AND m.{status} = 0
   AND EXISTS (
       SELECT 1 FROM {outbox} AS h
        WHERE h.{target} = :target AND h.{partition_no} = :partition
          AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1));

-- name: release_key
UPDATE {outbox} AS m SET {status} = 0
 WHERE m.{target} = :target AND m.{partition_no} = :partition AND m.{ordering_key} = :key
   AND m.{status} = 3 AND m.{status} NOT IN (0, 1)
   AND NOT EXISTS (
       SELECT 1 FROM {outbox} AS h
        WHERE h.{target} = :target AND h.{partition_no} = :partition AND h.{ordering_key} = :key
          AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1));

-- name: release_partition
UPDATE {outbox} AS m SET {status} = 0
 WHERE m.{target} = :target AND m.{partition_no} = :partition
   AND m.{status} = 3 AND m.{status} NOT IN (0, 1)
   AND NOT EXISTS (
       SELECT 1 FROM {outbox} AS h
        WHERE h.{target} = :target AND h.{partition_no} = :partition
          AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1));

-- name: count_minute
INSERT INTO {throughput} (minute, target, published, failed)
VALUES (:now / 60000000 * 60000000, :target, :published, :failed)
    ON CONFLICT (minute, target) DO UPDATE
   SET published = published + excluded.published, failed = failed + excluded.failed;
