-- Writing messages. The insert is push_head followed by one push_row for each message, with
-- commas between; the order of the parameters is that of the fields in src/lib/mysql_push.c.
-- Columns that the database fills are never named. occurred_at and available_at are named only
-- when a message of the call sets them. Parameters are bound as bytes, so that the character set
-- of the caller's session does not matter.

-- name: push_head
INSERT INTO {outbox} ({id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {target}, {priority}
  {?revision}, {revision}{/}
  {?sequence_number}, {sequence_number}{/}
  {?headers}, {headers}{/}
  {?snapshot}, {snapshot}{/}
  {?correlation_id}, {correlation_id}{/}
  {?causation_id}, {causation_id}{/}
  {?partition_key}, {partition_key}{/}
  {?occurred_at}, {occurred_at}{/}
  {?available_at}, {available_at}{/}
) VALUES

-- name: push_id
-- Of bytes as digits: the server shows a statement with its parameters, and MySQL's information_schema.PROCESSLIST fails, for everyone, on one
-- that is not valid text.
{?+string_id}?{/}{!+string_id}UNHEX(?){/}

-- name: push_row
-- Times come as microseconds: since 1970, and from now; NULL stands for the column's default.
({>push_id},?,?,?,?,?,?{?revision},?{/}{?sequence_number},?{/}{?headers},?{/}{?snapshot},?{/}{?correlation_id},?{/}{?causation_id},?{/}{?partition_key},?{/}{?occurred_at},COALESCE(TIMESTAMPADD(MICROSECOND,?,TIMESTAMP'1970-01-01 00:00:00.000000'),UTC_TIMESTAMP(6)){/}{?available_at},COALESCE(TIMESTAMPADD(MICROSECOND,?,UTC_TIMESTAMP(6)),TIMESTAMP'1970-01-01 00:00:00.000000'){/})

-- name: push_find_id
-- A locking read: it sees what the insert met, and what it met in the caller's own transaction.
SELECT 1 FROM {outbox} WHERE {id} = {>push_id} AND {target} = CONVERT(? USING utf8mb4) LIMIT 1 LOCK IN SHARE MODE

-- name: push_find_sequence
SELECT 1 FROM {outbox}
 WHERE {target} = CONVERT(? USING utf8mb4) AND {aggregate_type} = CONVERT(? USING utf8mb4)
   AND {aggregate_id} = CONVERT(? USING utf8mb4) AND {sequence_number} = ? LIMIT 1 LOCK IN SHARE MODE

-- name: push_columns
SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS
 WHERE TABLE_SCHEMA = COALESCE(CONVERT(? USING utf8mb4), DATABASE()) AND TABLE_NAME = CONVERT(? USING utf8mb4)

-- name: push_packet
SELECT @@max_allowed_packet
