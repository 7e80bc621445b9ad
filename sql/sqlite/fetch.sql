-- Finding the rows that may be sent, and reading rows.

-- name: candidates
-- Of one partition, behind (:priority, :seq), in the order of sending. Only the
-- ready index is read, unless the partition is held somewhere or rows are claimed.
-- :ordering is 0 by key, 1 by partition, 2 none; :token is set for a row claim.
SELECT m.{seq}, m.{priority}
  FROM {outbox} AS m
 WHERE m.{target} = :target AND m.{partition_no} = :partition AND m.{status} = 0
   AND m.{priority} <= :priority AND (m.{priority} < :priority OR m.{seq} > :seq)
   AND m.{available_at} <= :now
   AND (:token IS NULL OR m.{locked_until} <= :now OR m.{claim_token} = :token)
   AND (:ordering <> 1 OR NOT EXISTS (
        SELECT 1 FROM {outbox} AS h
         WHERE h.{target} = :target AND h.{partition_no} = :partition
           AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1)))
   AND (:ordering <> 0
        OR NOT EXISTS (
        SELECT 1 FROM {outbox} AS h
         WHERE h.{target} = :target AND h.{partition_no} = :partition
           AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1))
        OR m.{ordering_key} IS NULL
        OR NOT EXISTS (
        SELECT 1 FROM {outbox} AS h
         WHERE h.{target} = :target AND h.{partition_no} = :partition
           AND h.{ordering_key} = m.{ordering_key}
           AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1)))
UNION ALL
SELECT m.{seq}, m.{priority}
  FROM {outbox} AS m
 WHERE m.{target} = :target AND m.{partition_no} = :partition
   AND m.{status} = 2 AND m.{status} NOT IN (0, 1)
   AND m.{priority} <= :priority AND (m.{priority} < :priority OR m.{seq} > :seq)
   AND m.{available_at} <= :now
   AND (:token IS NULL OR m.{locked_until} <= :now OR m.{claim_token} = :token)
 ORDER BY 2 DESC, 1;

-- name: load
-- One row, as far as sending needs it. The caller knows the partition: computing
-- it costs more than reading the rest.
SELECT {seq}, {id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {headers|NULL},
       {correlation_id|NULL}, {causation_id|NULL}, {ordering_key}, {target}, {sequence_number|NULL},
       {?occurred_at}{occurred_at}{/}{!occurred_at}{created_at}{/}, {created_at}, {revision|1},
       {priority}, {attempts}, {status}, {locked_until}
  FROM {outbox} WHERE {seq} = :seq;

-- name: load_all
-- The same with everything else behind it.
SELECT {seq}, {id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {headers|NULL},
       {correlation_id|NULL}, {causation_id|NULL}, {ordering_key}, {target}, {sequence_number|NULL},
       {?occurred_at}{occurred_at}{/}{!occurred_at}{created_at}{/}, {created_at}, {revision|1},
       {priority}, {attempts}, {status}, {locked_until},
       {partition_no}, {partition_key|NULL}, {snapshot|NULL}, {last_error}, {locked_by},
       {available_at}, {published_at}
  FROM {outbox} WHERE {seq} = :seq;

-- name: claim
UPDATE {outbox} SET {claim_token} = :token, {locked_by} = :worker, {locked_until} = :now + :ttl
 WHERE {seq} = :seq;

-- name: pick_any
-- The rows of a filter: one pick_ head, then the conditions that are set, then an order.
-- The heads after the first are for filters that an index answers.
SELECT {seq}, {status}, {locked_until} FROM {outbox} WHERE 1

-- name: pick_id
SELECT {seq}, {status}, {locked_until} FROM {outbox} INDEXED BY {name:uniq_id} WHERE {id} = :id

-- name: pick_waiting
SELECT {seq}, {status}, {locked_until} FROM {outbox} INDEXED BY {name:ready} WHERE {status} = 0

-- name: pick_exceptions
SELECT {seq}, {status}, {locked_until} FROM {outbox} INDEXED BY {name:exceptions} WHERE {status} NOT IN (0, 1)

-- name: pick_claims
SELECT {seq}, {status}, {locked_until} FROM {outbox} INDEXED BY {name:claims} WHERE {locked_until} > 0

-- name: and_target
 AND {target} = :target

-- name: and_key
 AND {ordering_key} = :key

-- name: and_aggregate_type
 AND {aggregate_type} = :aggregate_type

-- name: and_aggregate_id
 AND {aggregate_id} = :aggregate_id

-- name: and_event_type
 AND {event_type} = :event_type

-- name: and_after
 AND {seq} > :after

-- name: and_before
 AND {seq} < :after

-- name: and_view
-- Bit n of :views is the state n as readers see it: pending, delayed, processing,
-- failed, parked, dead, published.
 AND :views >> (CASE
     WHEN {status} = 1 THEN 6
     WHEN {status} < 0 THEN 5
     WHEN {status} = 3 THEN 4
     WHEN {locked_until} > :now THEN 2
     WHEN {status} = 2 THEN 3
     WHEN {available_at} > :now THEN 1
     ELSE 0 END) & 1

-- name: oldest_first
 ORDER BY {seq} LIMIT :limit

-- name: newest_first
 ORDER BY {seq} DESC LIMIT :limit
