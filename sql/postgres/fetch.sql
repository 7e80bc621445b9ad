-- Finding the rows that may be sent, and reading rows. The columns of fetch, claim and
-- list are the same, in the order that src/store/postgres_rows.c reads them.

-- name: fetch
-- $1 target, $2 partitions, $3 where each begins, $4 how many of each, $5 seq in flight, $6 ordering
-- (0 by key, 1 by partition, 2 none), $7 the size of a large message, $8 which partitions are read as
-- they are: nothing is in flight or held there, and the caller sees what is not due.
-- Rows of priority 0, which most have, and for which an index scan can begin at a number: each partition
-- reads its ready index from its place on and stops at its part. The caller puts the parts in order
-- and divides. Large messages come with their size (as stored, compressed) instead of what is in them:
-- the caller asks for those that it has room for.
-- Not priority = 0: then the order would be that of seq alone, and the primary key has it too.
-- Planned once, so that values come as parameters: NOT IN is a hash there, and (SELECT ...) is
-- computed once. Names with # cannot be columns of a layout.
SELECT {seq}, {id}, {aggregate_type}, {aggregate_id}, {event_type}, CASE WHEN "#size" <= $7::bigint THEN {payload} END,
       {?headers}CASE WHEN "#size" <= $7::bigint THEN {headers} END{/}{!headers}NULL::json{/},
       {correlation_id|NULL::text}, {causation_id|NULL::text}, {ordering_key}, {target}, {sequence_number|NULL::bigint},
       {?occurred_at}{occurred_at}{/}{!occurred_at}{created_at}{/}, {created_at}, {revision|1},
       {priority}, {attempts}, {status}, {partition_no}, CASE WHEN "#size" > $7::bigint THEN "#size" END,
       ({available_at} <= (SELECT clock_timestamp()) AND {locked_until} <= (SELECT clock_timestamp()))::int
  FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $8::bigint[]) AS u ("#p", "#low", "#n", "#as_is")
 CROSS JOIN LATERAL (
    SELECT m.*, greatest(pg_column_size(m.{payload}) - 4, 0){?headers} + greatest(pg_column_size(m.{headers}) - 4, 0){/} AS "#size"
      FROM {outbox} AS m
      WHERE m.{target} = $1 AND m.{partition_no} = "#p"::smallint AND m.{status} = 0 AND m.{priority} >= 0 AND m.{priority} <= 0 AND m.{seq} >= "#low"
        AND ("#as_is" = 1
             OR (m.{available_at} <= (SELECT clock_timestamp()) AND m.{locked_until} <= (SELECT clock_timestamp())
                 AND m.{seq} NOT IN (SELECT unnest($5::bigint[]))))
        AND ("#as_is" = 1 OR $6::bigint = 2
             OR (SELECT NOT EXISTS (SELECT 1 FROM {outbox} AS h
                  WHERE h.{target} = $1 AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1)
                    AND h.{partition_no} = ANY ($2::bigint[]::smallint[])))
             OR NOT EXISTS (SELECT 1 FROM {outbox} AS h
                  WHERE h.{target} = $1 AND h.{partition_no} = "#p"::smallint
                    AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1)
                    AND ($6::bigint = 1 OR h.{ordering_key} = m.{ordering_key})))
      ORDER BY m.{priority} DESC, m.{seq} LIMIT "#n") AS c

-- name: fetch_rest
-- The same for what is rare, in the same snapshot: other priorities, and failed rows that are due.
SELECT {seq}, {id}, {aggregate_type}, {aggregate_id}, {event_type}, CASE WHEN "#size" <= $7::bigint THEN {payload} END,
       {?headers}CASE WHEN "#size" <= $7::bigint THEN {headers} END{/}{!headers}NULL::json{/},
       {correlation_id|NULL::text}, {causation_id|NULL::text}, {ordering_key}, {target}, {sequence_number|NULL::bigint},
       {?occurred_at}{occurred_at}{/}{!occurred_at}{created_at}{/}, {created_at}, {revision|1},
       {priority}, {attempts}, {status}, {partition_no}, CASE WHEN "#size" > $7::bigint THEN "#size" END
  FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS u ("#p", "#low", "#n")
 CROSS JOIN (VALUES (1::smallint, 32767::smallint), ((-32768)::smallint, (-1)::smallint)) AS r ("#from", "#to")
 CROSS JOIN LATERAL (
    SELECT m.*, greatest(pg_column_size(m.{payload}) - 4, 0){?headers} + greatest(pg_column_size(m.{headers}) - 4, 0){/} AS "#size"
      FROM {outbox} AS m
      WHERE m.{target} = $1 AND m.{partition_no} = "#p"::smallint AND m.{status} = 0
        AND m.{priority} >= "#from" AND m.{priority} <= "#to" AND m.{seq} >= "#low"
        AND m.{available_at} <= (SELECT clock_timestamp()) AND m.{locked_until} <= (SELECT clock_timestamp())
        AND m.{seq} NOT IN (SELECT unnest($5::bigint[]))
        AND ($6::bigint = 2
             OR (SELECT NOT EXISTS (SELECT 1 FROM {outbox} AS h
                  WHERE h.{target} = $1 AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1)
                    AND h.{partition_no} = ANY ($2::bigint[]::smallint[])))
             OR NOT EXISTS (SELECT 1 FROM {outbox} AS h
                  WHERE h.{target} = $1 AND h.{partition_no} = "#p"::smallint
                    AND h.{status} IN (2, -2) AND h.{status} NOT IN (0, 1)
                    AND ($6::bigint = 1 OR h.{ordering_key} = m.{ordering_key})))
      ORDER BY m.{priority} DESC, m.{seq} LIMIT "#n") AS c
UNION ALL
SELECT {seq}, {id}, {aggregate_type}, {aggregate_id}, {event_type}, CASE WHEN "#size" <= $7::bigint THEN {payload} END,
       {?headers}CASE WHEN "#size" <= $7::bigint THEN {headers} END{/}{!headers}NULL::json{/},
       {correlation_id|NULL::text}, {causation_id|NULL::text}, {ordering_key}, {target}, {sequence_number|NULL::bigint},
       {?occurred_at}{occurred_at}{/}{!occurred_at}{created_at}{/}, {created_at}, {revision|1},
       {priority}, {attempts}, {status}, {partition_no}, CASE WHEN "#size" > $7::bigint THEN "#size" END
  FROM unnest($2::bigint[], $4::bigint[]) AS u ("#p", "#n")
 CROSS JOIN LATERAL (
    SELECT m.*, greatest(pg_column_size(m.{payload}) - 4, 0){?headers} + greatest(pg_column_size(m.{headers}) - 4, 0){/} AS "#size"
      FROM {outbox} AS m
      WHERE m.{target} = $1 AND m.{partition_no} = "#p"::smallint AND m.{status} = 2 AND m.{status} NOT IN (0, 1)
        AND m.{available_at} <= (SELECT clock_timestamp()) AND m.{locked_until} <= (SELECT clock_timestamp())
        AND m.{seq} NOT IN (SELECT unnest($5::bigint[]))
      ORDER BY m.{priority} DESC, m.{seq} LIMIT "#n") AS c

-- name: fetch_any_rest
-- Is there anything of that kind at all? A row if so. $1 target, $2 partitions, $3 where each begins.
(SELECT 1
   FROM unnest($2::bigint[], $3::bigint[]) AS u ("#p", "#low")
  CROSS JOIN (VALUES (1::smallint, 32767::smallint), ((-32768)::smallint, (-1)::smallint)) AS r ("#from", "#to")
  CROSS JOIN LATERAL (
    SELECT 1 FROM {outbox} AS m
      WHERE m.{target} = $1 AND m.{partition_no} = "#p"::smallint AND m.{status} = 0
        AND m.{priority} >= "#from" AND m.{priority} <= "#to" AND m.{seq} >= "#low"
      ORDER BY m.{priority} DESC, m.{seq} LIMIT 1) AS c LIMIT 1)
UNION ALL
(SELECT 1 FROM {outbox} AS m
  WHERE m.{target} = $1 AND m.{status} = 2 AND m.{status} NOT IN (0, 1) AND m.{partition_no} = ANY ($2::bigint[]::smallint[])
    AND m.{available_at} <= (SELECT clock_timestamp()) LIMIT 1)

-- name: fetch_large
-- What is in the large ones ($1) that there is room for.
SELECT {seq}, {payload}, {headers|NULL::json} FROM {outbox} WHERE {seq} = ANY ($1::bigint[]) ORDER BY {seq}

-- name: snapshot
-- Who was open when the statements before this one were run.
SELECT pg_current_snapshot()::text

-- name: look_number
-- The last number that was drawn; NULL when nobody tells us.
SELECT CASE WHEN has_sequence_privilege(q, 'USAGE, SELECT') THEN pg_sequence_last_value(q::regclass) END
  FROM pg_get_serial_sequence('{outbox}', replace('{seq}', '"', '')) AS q

-- name: look_writers
-- Transactions of others that may have drawn a number and are open: the lock comes before the first number and goes
-- after the commit shows. Asking for the number locks like drawing one. Each with its id, which it
-- locks too, of several the first (the others are its savepoints'); NULL: none yet.
WITH "#l" AS MATERIALIZED (SELECT * FROM pg_locks)
SELECT (SELECT x.transactionid::text::bigint FROM "#l" AS x
         WHERE x.virtualtransaction = w.virtualtransaction AND x.locktype = 'transactionid' AND x.mode = 'ExclusiveLock'
         ORDER BY age(x.transactionid) DESC LIMIT 1)
  FROM (SELECT DISTINCT l.virtualtransaction FROM "#l" AS l
         WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.pid IS DISTINCT FROM pg_backend_pid()
           AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
           AND l.relation IN (to_regclass('{outbox}'), pg_get_serial_sequence('{outbox}', replace('{seq}', '"', ''))::regclass)) AS w

-- name: look
-- The lowest unfinished row of each partition ($2) from its mark ($3) on, and the snapshot. Those that
-- stand in no order of numbers are only counted up to a limit: then there is no mark. Then the lowest
-- of priority 0 that is not in flight ($4), if anyone wants to know ($5), and whether nothing else waits there.
SELECT pg_current_snapshot()::text, "#p", least(
    (SELECT m.{seq} FROM {outbox} AS m
      WHERE m.{target} = $1 AND m.{partition_no} = "#p"::smallint AND m.{status} = 0 AND m.{priority} >= 0 AND m.{priority} <= 0 AND m.{seq} >= "#low"
      ORDER BY m.{priority} DESC, m.{seq} LIMIT 1),
    (SELECT CASE WHEN count(*) < 1000 THEN min(s) ELSE 0 END FROM (
      SELECT m.{seq} AS s FROM {outbox} AS m
       WHERE m.{target} = $1 AND m.{partition_no} = "#p"::smallint AND m.{status} = 0 AND m.{priority} > 0 AND m.{seq} >= "#low" LIMIT 1000) AS x),
    (SELECT CASE WHEN count(*) < 1000 THEN min(s) ELSE 0 END FROM (
      SELECT m.{seq} AS s FROM {outbox} AS m
       WHERE m.{target} = $1 AND m.{partition_no} = "#p"::smallint AND m.{status} = 0 AND m.{priority} < 0 AND m.{seq} >= "#low" LIMIT 1000) AS x),
    (SELECT CASE WHEN count(*) < 1000 THEN min(s) ELSE 0 END FROM (
      SELECT m.{seq} AS s FROM {outbox} AS m
       WHERE m.{target} = $1 AND m.{partition_no} = "#p"::smallint AND m.{status} IN (2, 3, -2) AND m.{status} NOT IN (0, 1) LIMIT 1000) AS x)),
    CASE WHEN $5::bigint = 1 THEN (SELECT m.{seq} FROM {outbox} AS m
      WHERE m.{target} = $1 AND m.{partition_no} = "#p"::smallint AND m.{status} = 0 AND m.{priority} >= 0 AND m.{priority} <= 0 AND m.{seq} >= "#low"
        AND m.{seq} NOT IN (SELECT unnest($4::bigint[]))
      ORDER BY m.{priority} DESC, m.{seq} LIMIT 1) END,
    (NOT EXISTS (SELECT 1 FROM {outbox} AS m
       WHERE m.{target} = $1 AND m.{partition_no} = "#p"::smallint AND m.{status} IN (2, 3, -2) AND m.{status} NOT IN (0, 1)))::int
  FROM unnest($2::bigint[], $3::bigint[]) AS u ("#p", "#low")

-- name: claim
-- $1 target, $2 token, $3 worker, $4 limit, $5 bytes, $6 how long in us.
WITH "#free" AS MATERIALIZED (
  SELECT m.{seq}, m.{priority},
         coalesce(octet_length(m.{payload}{!+binary_payload}::text{/}), 0) + coalesce(octet_length({?headers}m.{headers}::text{/}{!headers}NULL{/}), 0) AS "#size"
    FROM {outbox} AS m
   WHERE m.{target} = $1 AND (m.{status} IN (0, 2)) IS TRUE AND m.{available_at} <= (SELECT clock_timestamp())
     AND (m.{locked_until} <= (SELECT clock_timestamp()) OR m.{claim_token} = $2::uuid)
   ORDER BY m.{priority} DESC, m.{seq} LIMIT $4::bigint
     FOR UPDATE SKIP LOCKED
), "#fits" AS (
  SELECT {seq} FROM (
    SELECT {seq}, row_number() OVER w AS "#n", sum("#size") OVER w AS "#total"
      FROM "#free" WINDOW w AS (ORDER BY {priority} DESC, {seq})) AS t
   WHERE "#n" = 1 OR "#total" <= $5::bigint
)
UPDATE {outbox} AS m SET {claim_token} = $2::uuid, {locked_by} = $3,
       {locked_until} = (SELECT clock_timestamp()) + $6::bigint * interval '1 microsecond'
  FROM "#fits" AS f WHERE m.{seq} = f.{seq}
RETURNING m.{seq}, m.{id}, m.{aggregate_type}, m.{aggregate_id}, m.{event_type}, m.{payload}, {?headers}m.{headers}{/}{!headers}NULL::json{/},
       {?correlation_id}m.{correlation_id}{/}{!correlation_id}NULL::text{/}, {?causation_id}m.{causation_id}{/}{!causation_id}NULL::text{/}, m.{ordering_key}, m.{target}, {?sequence_number}m.{sequence_number}{/}{!sequence_number}NULL::bigint{/},
       {?occurred_at}m.{occurred_at}{/}{!occurred_at}m.{created_at}{/}, m.{created_at}, {?revision}m.{revision}{/}{!revision}1{/},
       m.{priority}, m.{attempts}, m.{status}, m.{partition_no}

-- name: now
SELECT clock_timestamp()

-- name: list_head
SELECT {seq}, {id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {headers|NULL::json},
       {correlation_id|NULL::text}, {causation_id|NULL::text}, {ordering_key}, {target}, {sequence_number|NULL::bigint},
       {?occurred_at}{occurred_at}{/}{!occurred_at}{created_at}{/}, {created_at}, {revision|1},
       {priority}, {attempts}, {status}, {partition_no},
       {partition_key|NULL::text}, {snapshot|NULL::json}, {last_error}, {locked_by},
       {available_at}, {published_at}, {locked_until}
  FROM {outbox}

-- name: pick_head
-- What operators change; the last column: a claim is valid.
SELECT {seq}, {status}, {partition_no}, {ordering_key}, {target}, ({locked_until} > (SELECT clock_timestamp()))::int
  FROM {outbox}

-- name: matches
-- Behind a head. $1 id, $2 target, $3 key, $4 aggregate_type, $5 aggregate_id, $6 event_type: NULL is any.
-- $7 views: bit n is the state n as readers see it: pending, delayed, processing, failed, parked,
-- dead, published; 0 is any. $8 behind this seq, $9 before this one. The conditions on status
-- alone let a partial index be used.
 WHERE ($1::uuid IS NULL OR {id} = $1::uuid{?+string_id}::text{/})
   AND ($2::text IS NULL OR {target} = $2) AND ($3::text IS NULL OR {ordering_key} = $3)
   AND ($4::text IS NULL OR {aggregate_type} = $4) AND ($5::text IS NULL OR {aggregate_id} = $5)
   AND ($6::text IS NULL OR {event_type} = $6)
   AND {seq} > $8::bigint AND {seq} < $9::bigint
   AND ($7::bigint = 0 OR $7::bigint & ~3 <> 0 OR {status} = 0)
   AND ($7::bigint = 0 OR $7::bigint & ~56 <> 0 OR {status} NOT IN (0, 1))
   AND ($7::bigint = 0 OR $7::bigint & ~4 <> 0 OR {status} IN (0, 2))
   AND ($7::bigint = 0 OR $7::bigint >> (CASE
     WHEN {status} = 1 THEN 6
     WHEN {status} < 0 THEN 5
     WHEN {status} = 3 THEN 4
     WHEN {locked_until} > (SELECT clock_timestamp()) THEN 2
     WHEN {status} = 2 THEN 3
     WHEN {available_at} > (SELECT clock_timestamp()) THEN 1
     ELSE 0 END) & 1 = 1)

-- name: oldest_first
 ORDER BY {seq} LIMIT $10::bigint

-- name: newest_first
 ORDER BY {seq} DESC LIMIT $10::bigint

-- name: for_update
 FOR UPDATE
