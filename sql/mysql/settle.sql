-- Recording outcomes.

-- name: look
-- Rows as they are now, and stay until the transaction ends.
SELECT {seq}, {id}, {status}, {attempts}, {partition_no}, {ordering_key}, {target}, {claim_token},
       {locked_until} > UTC_TIMESTAMP(6)
  FROM {outbox} FORCE INDEX (PRIMARY)
 WHERE {seq} IN (:seqs*)
 ORDER BY {seq} FOR UPDATE

-- name: rows_published
UPDATE {outbox} FORCE INDEX (PRIMARY)
   SET {status} = 1, {published_at} = UTC_TIMESTAMP(6), {last_error} = NULL,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = '1970-01-01 00:00:00'
 WHERE {seq} IN (:seqs*)

-- name: rows_plainly_published
-- The same for rows that are as they were fetched, without a look at them first. Each is named by
-- its number, and carries an id of those that were sent.
UPDATE {outbox} FORCE INDEX (PRIMARY)
   SET {status} = 1, {published_at} = UTC_TIMESTAMP(6), {last_error} = NULL,
       {claim_token} = NULL, {locked_by} = NULL, {locked_until} = '1970-01-01 00:00:00'
 WHERE {seq} IN (:seqs*) AND {status} = 0 AND {id} IN (:ids*)

-- name: rows_delete
DELETE FROM {outbox} WHERE {seq} IN (:seqs*)

-- name: rows_unclaim
UPDATE {outbox} FORCE INDEX (PRIMARY)
   SET {claim_token} = NULL, {locked_by} = NULL, {locked_until} = '1970-01-01 00:00:00'
 WHERE {seq} IN (:seqs*)

-- name: row_failed
-- :delay is NULL for a row that died.
UPDATE {outbox}
   SET {status} = :status, {attempts} = {attempts} + 1,
       {available_at} = COALESCE(TIMESTAMPADD(MICROSECOND, :delay, UTC_TIMESTAMP(6)), {available_at}),
       {published_at} = CASE WHEN :delay IS NULL THEN UTC_TIMESTAMP(6) END,
       {last_error} = :error, {claim_token} = NULL, {locked_by} = NULL,
       {locked_until} = '1970-01-01 00:00:00'
 WHERE {seq} = :seq

-- name: waiting_of_key
-- A plain read: an UPDATE with this condition would wait for every producer whose transaction is open.
SELECT {seq} FROM {outbox} FORCE INDEX ({name:ready})
 WHERE {target} = :target AND {status} = 0 AND {partition_no} = :partition AND {ordering_key} = :key

-- name: waiting_of_partition
SELECT {seq} FROM {outbox} FORCE INDEX ({name:ready})
 WHERE {target} = :target AND {status} = 0 AND {partition_no} = :partition

-- name: rows_park
UPDATE {outbox} FORCE INDEX (PRIMARY) SET {status} = 3 WHERE {seq} IN (:seqs*) AND {status} = 0

-- name: holder_of_key
-- Locks what it finds: two transactions that each let go one of two holders must see each other.
SELECT {seq} FROM {outbox} FORCE INDEX ({name:keys})
 WHERE {target} = :target AND {name:held_key} = :key AND {status} IN (2, -2) LIMIT 1 LOCK IN SHARE MODE

-- name: holder_of_partition
SELECT {seq} FROM {outbox} FORCE INDEX ({name:ready})
 WHERE {target} = :target AND {status} IN (2, -2) AND {partition_no} = :partition LIMIT 1 LOCK IN SHARE MODE

-- name: release_key
UPDATE {outbox} FORCE INDEX ({name:keys}) SET {status} = 0
 WHERE {target} = :target AND {name:held_key} = :key AND {status} = 3

-- name: release_partition
UPDATE {outbox} FORCE INDEX ({name:ready}) SET {status} = 0
 WHERE {target} = :target AND {status} = 3 AND {partition_no} = :partition

-- name: count_minute
INSERT INTO {throughput} (minute, target, published, failed)
VALUES (TIMESTAMPADD(MINUTE, TIMESTAMPDIFF(MINUTE, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6)), TIMESTAMP'1970-01-01 00:00:00'),
        :target, :published, :failed)
    ON DUPLICATE KEY UPDATE published = published + VALUES(published), failed = failed + VALUES(failed)
