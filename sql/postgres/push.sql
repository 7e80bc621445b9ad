-- Writing messages: one statement for any number, an array for each field.

-- name: push
-- $1 id, $2 aggregate_type, $3 aggregate_id, $4 event_type, $5 payload, $6 target, $7 priority,
-- $8 delay in ms (0: none), $9 revision, $10 sequence_number, $11 headers, $12 snapshot, $13 correlation_id,
-- $14 causation_id, $15 partition_key, $16 occurred_at in us since 1970 (NULL: now). Columns from $7 on are
-- named only when a message of the call sets them: each array that is taken apart costs. The numbers stay,
-- so the caller tells the types of all. unnest() gives rows in the order of the call, and there is no plan
-- but to insert them so; an ORDER BY would sort them for nothing.
INSERT INTO {outbox} ({id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {target}
  {?priority}, {priority}{/}
  {?available_at}, {available_at}{/}
  {?revision}, {revision}{/}
  {?sequence_number}, {sequence_number}{/}
  {?headers}, {headers}{/}
  {?snapshot}, {snapshot}{/}
  {?correlation_id}, {correlation_id}{/}
  {?causation_id}, {causation_id}{/}
  {?partition_key}, {partition_key}{/}
  {?occurred_at}, {occurred_at}{/})
SELECT u.id{?+string_id}::text{/}, u.aggregate_type, u.aggregate_id, u.event_type, u.payload, u.target
  {?priority}, u.priority::smallint{/}
  {?available_at}, CASE WHEN u.delay = 0 THEN 'epoch' ELSE clock_timestamp() + u.delay * interval '1 millisecond' END{/}
  {?revision}, u.revision::integer{/}
  {?sequence_number}, u.sequence_number{/}
  {?headers}, u.headers{/}
  {?snapshot}, u.snapshot{/}
  {?correlation_id}, u.correlation_id{/}
  {?causation_id}, u.causation_id{/}
  {?partition_key}, u.partition_key{/}
  {?occurred_at}, coalesce(timestamptz 'epoch' + u.occurred_at * interval '1 microsecond', clock_timestamp()){/}
  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], {?+binary_payload}$5::bytea[]{/}{!+binary_payload}$5::json[]{/}, $6::text[]
    {?priority}, $7::bigint[]{/}
    {?available_at}, $8::bigint[]{/}
    {?revision}, $9::bigint[]{/}
    {?sequence_number}, $10::bigint[]{/}
    {?headers}, $11::json[]{/}
    {?snapshot}, $12::json[]{/}
    {?correlation_id}, $13::text[]{/}
    {?causation_id}, $14::text[]{/}
    {?partition_key}, $15::text[]{/}
    {?occurred_at}, $16::bigint[]{/})
    AS u (id, aggregate_type, aggregate_id, event_type, payload, target
    {?priority}, priority{/}
    {?available_at}, delay{/}
    {?revision}, revision{/}
    {?sequence_number}, sequence_number{/}
    {?headers}, headers{/}
    {?snapshot}, snapshot{/}
    {?correlation_id}, correlation_id{/}
    {?causation_id}, causation_id{/}
    {?partition_key}, partition_key{/}
    {?occurred_at}, occurred_at{/})

-- name: push_find
-- Which message of the call is the duplicate: the first whose id ($1) or sequence number ($3 types, $4 ids,
-- $5 numbers) is stored for its target ($2), or stands in the call before. 0 is its id, 1 its number.
SELECT u.n - 1, CASE WHEN u.same_id > 1 OR EXISTS (
         SELECT 1 FROM {outbox} AS i WHERE i.{id} = u.id{?+string_id}::text{/} AND i.{target} = u.target) THEN 0 ELSE 1 END
  FROM (SELECT *, row_number() OVER (PARTITION BY id, target ORDER BY n) AS same_id,
               row_number() OVER (PARTITION BY target, aggregate_type, aggregate_id, sequence_number ORDER BY n) AS same_number
          FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY
            AS u (id, target, aggregate_type, aggregate_id, sequence_number, n)) AS u
 WHERE u.same_id > 1 OR EXISTS (
       SELECT 1 FROM {outbox} AS i WHERE i.{id} = u.id{?+string_id}::text{/} AND i.{target} = u.target)
    {?sequence_number}OR (u.sequence_number IS NOT NULL AND u.aggregate_id IS NOT NULL AND (u.same_number > 1 OR EXISTS (
       SELECT 1 FROM {outbox} AS q WHERE q.{target} = u.target AND q.{aggregate_type} = u.aggregate_type
          AND q.{aggregate_id} = u.aggregate_id AND q.{sequence_number} = u.sequence_number))){/}
 ORDER BY u.n LIMIT 1
