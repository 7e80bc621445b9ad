-- Reading the log. A read is one pipeline in one snapshot: snapshot, due, late, next, log_end.
-- Names in "#.." cannot collide with a column of the layout.

-- name: message_columns
-- A message but for its payload, headers and snapshot, in the order of rows.h.
m.{seq}, m.{txid}, m.{id}, m.{aggregate_type}, m.{aggregate_id}, m.{event_type}, m.{ordering_key}, m.{target},
m.{partition_no}, m.{priority}, m.{created_at}, m.{available_at}, {?occurred_at}m.{occurred_at}{/}{!occurred_at}m.{created_at}{/},
{?revision}m.{revision}{/}{!revision}1{/}, {?sequence_number}m.{sequence_number}{/}{!sequence_number}NULL::bigint{/},
{?correlation_id}m.{correlation_id}{/}{!correlation_id}NULL::text{/}, {?causation_id}m.{causation_id}{/}{!causation_id}NULL::text{/}

-- name: bodies
-- Large ones stay where they are; their size comes instead.
CASE WHEN m."#size" <= $5::bigint THEN m.{payload} END,
{?headers}CASE WHEN m."#size" <= $5::bigint THEN m.{headers} END{/}{!headers}NULL::json{/},
{?+read_snapshot}CASE WHEN m."#size" <= $5::bigint THEN m.{snapshot} END{/}{!+read_snapshot}NULL::json{/},
CASE WHEN m."#size" > $5::bigint THEN coalesce(octet_length(m.{payload}{!+binary_payload}::text{/}), 0) + coalesce(octet_length({headers|NULL}::text), 0)
  {?+read_snapshot}+ coalesce(octet_length(m.{snapshot}::text), 0){/} END

-- name: size
-- Bytes of payload and headers, and a few more. Only what is compressed must be unpacked for it.
{?+binary_payload}coalesce(octet_length(m.{payload}), 0){/}
{!+binary_payload}CASE WHEN pg_column_compression(m.{payload}) IS NOT NULL THEN octet_length(m.{payload}::text) ELSE coalesce(pg_column_size(m.{payload}), 0) END{/}
{?headers}+ CASE WHEN m.{headers} IS NULL THEN 0 ELSE octet_length(m.{headers}::text) END{/}
{?+read_snapshot}+ CASE WHEN m.{snapshot} IS NULL THEN 0 ELSE octet_length(m.{snapshot}::text) END{/}

-- name: any_exception
-- Asked once for each statement: without exceptions nothing more is asked. Not EXISTS, which may become a scan of all.
(SELECT 1 FROM {exceptions} AS e WHERE e.reader = $1 LIMIT 1) IS NOT NULL

-- name: flag
-- 2: the row has an exception of its own; 1: its queue has one ($6: 0 keys, 1 partitions, else none).
CASE WHEN {>any_exception} THEN CASE
  WHEN (SELECT 1 FROM {exceptions} AS e
         WHERE e.reader = $1 AND e.partition_no = m.{partition_no} AND e.seq = m.{seq} LIMIT 1) IS NOT NULL THEN 2
  WHEN (SELECT 1 FROM {exceptions} AS e
         WHERE e.reader = $1 AND e.partition_no = m.{partition_no}
           AND e.queue = (CASE $6::bigint WHEN 0 THEN m.{ordering_key} WHEN 1 THEN '' END) COLLATE "C" LIMIT 1) IS NOT NULL THEN 1
  END END

-- name: any_due
-- Has the reader an exception that is due some time?
(SELECT 1 FROM {exceptions} AS e WHERE e.reader = $1 AND e.due IS NOT NULL LIMIT 1) IS NOT NULL

-- name: snapshot
SELECT pg_current_snapshot()::text, clock_timestamp(), ({>any_due})::int

-- name: next
-- $1 reader, $2 target, $3 positions by partition_no + 1, $4 rows, $5 bytes, $6 ordering, $7 the lowest position, $8 the end.
-- All partitions in one walk of the primary key. IS TRUE: no other index can serve, whatever statistics say.
SELECT {>message_columns}, {>bodies}, "#flag"::bigint
  FROM (SELECT m.*, {>size} AS "#size", {>flag} AS "#flag" FROM {outbox} AS m
         WHERE m.{seq} > $7::bigint AND m.{seq} <= $8::bigint AND (m.{target} = $2) IS TRUE
           AND (m.{seq} > ($3::bigint[])[m.{partition_no} + 1]) IS TRUE
         ORDER BY m.{seq} LIMIT $4::bigint) AS m

-- name: oldest_end
-- Of all the snapshots: every one of them shows what was committed before it, but for its own list of open ones.
(SELECT pg_snapshot_xmax(s) FROM unnest($10::pg_snapshot[]) AS s ORDER BY 1 LIMIT 1)

-- name: late_matches
m.{seq} <= $11::bigint AND m.{seq} > $12::bigint AND (m.{target} = $2) IS TRUE
AND (m.{seq} <= ($3::bigint[])[m.{partition_no} + 1] AND m.{seq} > ($9::bigint[])[m.{partition_no} + 1]) IS TRUE
AND NOT pg_visible_in_snapshot(m.{txid}, ($10::pg_snapshot[])[($7::bigint[])[m.{partition_no} + 1]])
AND coalesce(pg_visible_in_snapshot(m.{txid}, ($10::pg_snapshot[])[($8::bigint[])[m.{partition_no} + 1]]), true)

-- name: late
-- $1 to $6 as next has them. By partition_no + 1: $7 which of the snapshots $10 was seen; while a large late part is worked off, $8 which
-- of them shows it (0: none) and $9 up to where it is through. $11 the highest position, $12 the lowest of $9.
-- What shows now and was not seen, at or below its partition's position: of transactions that were open in a snapshot, or
-- began after the oldest. Those that are still open are not looked for: their rows would be walked every time.
-- Ranges (>=, <=), IS TRUE and the orders: no index but (txid, seq) can serve.
SELECT {>message_columns}, {>bodies}, "#flag"::bigint
  FROM (SELECT m.*, {>size} AS "#size", {>flag} AS "#flag" FROM (
          SELECT m.* FROM (SELECT DISTINCT x FROM unnest($10::pg_snapshot[]) AS s CROSS JOIN LATERAL pg_snapshot_xip(s) AS x
                            WHERE x < {>oldest_end} AND pg_visible_in_snapshot(x, pg_current_snapshot())) AS t ("#x")
           CROSS JOIN LATERAL (
            SELECT m.* FROM {outbox} AS m WHERE m.{txid} >= t."#x" AND m.{txid} <= t."#x" AND {>late_matches}
             ORDER BY m.{txid}, m.{seq} LIMIT $4::bigint) AS m
          UNION ALL
          SELECT m.* FROM (
            SELECT m.* FROM {outbox} AS m
             WHERE m.{txid} >= {>oldest_end} AND m.{txid} < pg_snapshot_xmax(pg_current_snapshot()) AND {>late_matches}
             ORDER BY m.{txid}, m.{seq} OFFSET 0) AS m
          ) AS m ORDER BY m.{seq} LIMIT $4::bigint) AS m

-- name: due
-- $1 reader, $2 partitions, $3 seq of those in memory, $4 rows, $5 bytes. Heads whose time has come, each with what stands
-- directly after it in its queue; the caller ends a queue at a row that is not to be sent. Nothing sorts at the end:
-- the loops return a queue's rows together and stop at the limit.
SELECT {>message_columns}, {>bodies}, e.state::bigint, e.attempts::bigint, e.queue, (e.due <= (SELECT clock_timestamp()))::int
  FROM (SELECT h.* FROM unnest($2::bigint[]) AS u ("#p") CROSS JOIN LATERAL (
          SELECT e.partition_no, e.seq, e.queue, e.due FROM {exceptions} AS e
           WHERE e.reader = $1 AND e.partition_no = u."#p"::smallint AND e.due <= (SELECT clock_timestamp())
             AND e.state IN ({=waiting}, {=failed}, {=delayed}) AND e.seq NOT IN (SELECT unnest($3::bigint[]))
             AND (e.queue IS NULL OR (SELECT 1 FROM {exceptions} AS l
                   WHERE l.reader = $1 AND l.partition_no = u."#p"::smallint AND l.queue = e.queue AND l.seq < e.seq LIMIT 1) IS NULL)
           ORDER BY e.due LIMIT $4::bigint) AS h
         WHERE {>any_due} ORDER BY h.due, h.seq LIMIT $4::bigint) AS h
 CROSS JOIN LATERAL (
   SELECT e.* FROM {exceptions} AS e WHERE h.queue IS NULL AND e.reader = $1 AND e.partition_no = h.partition_no AND e.seq = h.seq
   UNION ALL
   SELECT * FROM (SELECT e.* FROM {exceptions} AS e
     WHERE e.reader = $1 AND e.partition_no = h.partition_no AND e.queue = h.queue AND e.seq >= h.seq
     ORDER BY e.queue, e.seq LIMIT $4::bigint) AS e) AS e
 CROSS JOIN LATERAL (SELECT m.*, {>size} AS "#size" FROM {outbox} AS m WHERE m.{seq} = e.seq OFFSET 0) AS m
 LIMIT $4::bigint

-- name: sequence
-- Asked once by a connection: it takes long.
SELECT pg_get_serial_sequence('{outbox}', replace('{seq}', '"', ''))::regclass::oid::bigint

-- name: log_end
-- The last number that was drawn of the sequence $1; and whether the tables that were read are still those that the snapshot knows. One that
-- was written anew after the snapshot (by an ALTER TABLE) looks empty to it: such a read says nothing. Asked last, when
-- reading has locked them.
SELECT CASE WHEN has_sequence_privilege($1::bigint::oid, 'SELECT, USAGE') THEN pg_sequence_last_value($1::bigint::oid) END,
       bool_and(c.relfilenode = pg_relation_filenode(c.oid))::int
  FROM pg_class AS c WHERE c.oid = ANY (ARRAY['{outbox}'::regclass::oid, '{exceptions}'::regclass::oid]
    || ARRAY(SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = '{outbox}'::regclass))

-- name: read_large
-- The bodies of the messages $1.
SELECT m.{seq}, m.{payload}, {?headers}m.{headers}{/}{!headers}NULL::json{/}, {?+read_snapshot}m.{snapshot}{/}{!+read_snapshot}NULL::json{/}
  FROM {outbox} AS m WHERE m.{seq} = ANY ($1::bigint[]) ORDER BY m.{seq}
