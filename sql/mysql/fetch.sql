-- Finding the rows that may be sent, and reading rows.
--
-- Finding is one statement, so it sees one moment: the lane_ parts below joined by UNION ALL, each
-- once for each partition. What no part needs beyond the ready index is read from it alone.
-- Columns: seq, priority, partition, and whether the row only tells that something is held.

-- name: lane_pending
-- From a position on: what is behind :last in the order of the index.
(SELECT m.{seq}, m.{priority}, m.{partition_no}, 0
   FROM {outbox} AS m FORCE INDEX ({name:ready})
  WHERE m.{target} = :target AND m.{status} = 0 AND m.{partition_no} = :partition
    AND (m.{priority} < :beyond OR (m.{priority} = :level AND m.{seq} > :last))
    AND m.{available_at} <= UTC_TIMESTAMP(6) AND m.{locked_until} <= UTC_TIMESTAMP(6)
  ORDER BY m.{priority} DESC, m.{seq} LIMIT :limit)

-- name: before
-- What stands before such positions, in any order: this, a before_lane for each, joined by OR, and
-- before_end. One SELECT: for each part of a UNION the server plans anew.
SELECT m.{seq}, m.{priority}, m.{partition_no}, 0
  FROM {outbox} AS m FORCE INDEX ({name:ready})
 WHERE m.{target} = :target AND m.{status} = 0 AND (

-- name: before_lane
(m.{partition_no} = :partition AND (m.{priority} > :beyond OR (m.{priority} = :level AND m.{seq} <= :last)))

-- name: before_end
) AND m.{available_at} <= UTC_TIMESTAMP(6) AND m.{locked_until} <= UTC_TIMESTAMP(6)
 LIMIT :limit

-- name: lane_pending_key
-- The key stands in the row itself, so this is used only while some key is held.
(SELECT m.{seq}, m.{priority}, m.{partition_no}, 0
   FROM {outbox} AS m FORCE INDEX ({name:ready})
  WHERE m.{target} = :target AND m.{status} = 0 AND m.{partition_no} = :partition
    AND m.{available_at} <= UTC_TIMESTAMP(6) AND m.{locked_until} <= UTC_TIMESTAMP(6)
    AND NOT EXISTS (SELECT 1 FROM {outbox} AS h FORCE INDEX ({name:keys})
         WHERE h.{target} = m.{target} AND h.{name:held_key} = m.{ordering_key} AND h.{status} IN (2, -2))
  ORDER BY m.{priority} DESC, m.{seq} LIMIT :limit)

-- name: lane_pending_partition
(SELECT m.{seq}, m.{priority}, m.{partition_no}, 0
   FROM {outbox} AS m FORCE INDEX ({name:ready})
  WHERE m.{target} = :target AND m.{status} = 0 AND m.{partition_no} = :partition
    AND m.{available_at} <= UTC_TIMESTAMP(6) AND m.{locked_until} <= UTC_TIMESTAMP(6)
    AND NOT EXISTS (SELECT 1 FROM {outbox} AS h FORCE INDEX ({name:ready})
         WHERE h.{target} = m.{target} AND h.{status} IN (2, -2) AND h.{partition_no} = m.{partition_no})
  ORDER BY m.{priority} DESC, m.{seq} LIMIT :limit)

-- name: lane_failed
(SELECT m.{seq}, m.{priority}, m.{partition_no}, 0
   FROM {outbox} AS m FORCE INDEX ({name:ready})
  WHERE m.{target} = :target AND m.{status} = 2 AND m.{partition_no} = :partition
    AND m.{available_at} <= UTC_TIMESTAMP(6) AND m.{locked_until} <= UTC_TIMESTAMP(6)
  ORDER BY m.{priority} DESC, m.{seq} LIMIT :limit)

-- name: any_held
(SELECT 0, 0, 0, 1
   FROM {outbox} AS m FORCE INDEX ({name:ready})
  WHERE m.{target} = :target AND m.{status} IN (2, -2) LIMIT 1)

-- name: lane_claim
-- For row claims. Rows of this very token are handed out again.
(SELECT m.{seq}, m.{priority}, m.{partition_no}, 0
   FROM {outbox} AS m FORCE INDEX ({name:ready})
  WHERE m.{target} = :target AND m.{status} = 0 AND m.{partition_no} = :partition
    AND m.{available_at} <= UTC_TIMESTAMP(6)
    AND (m.{locked_until} <= UTC_TIMESTAMP(6) OR m.{claim_token} = :token)
  ORDER BY m.{priority} DESC, m.{seq} LIMIT :limit)

-- name: lane_claim_failed
(SELECT m.{seq}, m.{priority}, m.{partition_no}, 0
   FROM {outbox} AS m FORCE INDEX ({name:ready})
  WHERE m.{target} = :target AND m.{status} = 2 AND m.{partition_no} = :partition
    AND m.{available_at} <= UTC_TIMESTAMP(6)
    AND (m.{locked_until} <= UTC_TIMESTAMP(6) OR m.{claim_token} = :token)
  ORDER BY m.{priority} DESC, m.{seq} LIMIT :limit)

-- name: load
-- Rows as far as sending needs them. What happened to a row since it was found is looked at again.
SELECT {seq}, {id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {headers|NULL},
       {correlation_id|NULL}, {causation_id|NULL}, {ordering_key}, {target}, {sequence_number|NULL},
       TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {?occurred_at}{occurred_at}{/}{!occurred_at}{created_at}{/}),
       TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {created_at}),
       {revision|1}, {priority}, {attempts}, {status}, {partition_no}
  FROM {outbox} FORCE INDEX (PRIMARY)
 WHERE {seq} IN (:seqs*) AND {status} IN (0, 2) AND {locked_until} <= UTC_TIMESTAMP(6)

-- name: load_claim
-- Rows that another claimer is just taking are his.
SELECT {seq}, {id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {headers|NULL},
       {correlation_id|NULL}, {causation_id|NULL}, {ordering_key}, {target}, {sequence_number|NULL},
       TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {?occurred_at}{occurred_at}{/}{!occurred_at}{created_at}{/}),
       TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {created_at}),
       {revision|1}, {priority}, {attempts}, {status}, {partition_no}
  FROM {outbox} FORCE INDEX (PRIMARY)
 WHERE {seq} IN (:seqs*) AND {status} IN (0, 2) AND {available_at} <= UTC_TIMESTAMP(6)
   AND ({locked_until} <= UTC_TIMESTAMP(6) OR {claim_token} = :token)
   FOR UPDATE SKIP LOCKED

-- name: claim
UPDATE {outbox} FORCE INDEX (PRIMARY)
   SET {claim_token} = :token, {locked_by} = :worker,
       {locked_until} = TIMESTAMPADD(MICROSECOND, :ttl, UTC_TIMESTAMP(6))
 WHERE {seq} IN (:seqs*)

-- name: list_any
-- A listing: one list_ head, then the conditions that are set, then an order. Each head names the
-- index that knows the rows, where there is one.
SELECT {seq}, {id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {headers|NULL},
       {correlation_id|NULL}, {causation_id|NULL}, {ordering_key}, {target}, {sequence_number|NULL},
       TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {?occurred_at}{occurred_at}{/}{!occurred_at}{created_at}{/}),
       TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {created_at}),
       {revision|1}, {priority}, {attempts}, {status}, {partition_no},
       {partition_key|NULL}, {snapshot|NULL}, {last_error}, {locked_by},
       TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {available_at}),
       TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {published_at}),
       TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {locked_until})
  FROM {outbox}

-- name: pick_any
-- The same for what only needs to know which rows.
SELECT {seq} FROM {outbox}

-- name: where_any
 WHERE {seq} > 0

-- name: where_id
 FORCE INDEX ({name:uniq_id}) WHERE {id} = :id

-- name: where_open
-- Every row but the published ones: bit n of :views is the state n as readers see it.
 FORCE INDEX ({name:ready}) WHERE {target} IN (:targets*) AND {status} IN (0, 2, 3, -1, -2)

-- name: where_troubled
 FORCE INDEX ({name:ready}) WHERE {target} IN (:targets*) AND {status} IN (2, 3, -1, -2)

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
-- pending, delayed, processing, failed, parked, dead, published.
 AND (:views >> (CASE
     WHEN {status} = 1 THEN 6
     WHEN {status} < 0 THEN 5
     WHEN {status} = 3 THEN 4
     WHEN {locked_until} > UTC_TIMESTAMP(6) THEN 2
     WHEN {status} = 2 THEN 3
     WHEN {available_at} > UTC_TIMESTAMP(6) THEN 1
     ELSE 0 END)) & 1

-- name: oldest_first
 ORDER BY {seq} LIMIT :limit

-- name: newest_first
 ORDER BY {seq} DESC LIMIT :limit
