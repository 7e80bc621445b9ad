-- A table of the application's own, with Debezium's columns: each new row is copied into the outbox by
-- the insert itself. The table is never changed. A trigger runs with the rights of whoever made it:
-- the application needs none on our table.

-- name: copy_head
CREATE TRIGGER {at_source:copy} AFTER INSERT ON {source} FOR EACH ROW

-- name: copy_body
-- An id is 16 bytes or text. A time is a number of milliseconds or a DATETIME in UTC; the first DATETIME
-- there is, read as a number, is more than any number of milliseconds before the year 2286.
INSERT INTO {outbox} ({id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}
  {?source:headers}, {headers}{/}
  {?source:occurred_at}, {occurred_at}{/}
  {?source:partition_key}, {partition_key}{/}
  {?source:correlation_id}, {correlation_id}{/}
  {?source:causation_id}, {causation_id}{/}
  {?source:revision}, {revision}{/})
VALUES ({?+string_id}LOWER(NEW.{source:id}){/}{!+string_id}UNHEX(REPLACE(IF(OCTET_LENGTH(NEW.{source:id}) = 16, HEX(NEW.{source:id}), NEW.{source:id}), '-', '')){/},
  NEW.{source:aggregate_type}, NEW.{source:aggregate_id}, NEW.{source:event_type}, NEW.{source:payload}
  {?source:headers}, NEW.{source:headers}{/}
  {?source:occurred_at}, COALESCE(IF(NEW.{source:occurred_at} + 0 < 10000000000000,
    TIMESTAMPADD(MICROSECOND, NEW.{source:occurred_at} * 1000, TIMESTAMP'1970-01-01 00:00:00.000000'),
    NEW.{source:occurred_at}), UTC_TIMESTAMP(6)){/}
  {?source:partition_key}, NEW.{source:partition_key}{/}
  {?source:correlation_id}, NEW.{source:correlation_id}{/}
  {?source:causation_id}, NEW.{source:causation_id}{/}
  {?source:revision}, COALESCE(NEW.{source:revision}, 1){/})

-- name: copy_trigger
SELECT ACTION_STATEMENT FROM information_schema.TRIGGERS
 WHERE TRIGGER_SCHEMA = COALESCE(:schema, DATABASE()) AND TRIGGER_NAME = :name
   AND EVENT_OBJECT_SCHEMA = TRIGGER_SCHEMA AND EVENT_OBJECT_TABLE = :table
