-- A table of the application's own, with Debezium's columns: each new row is copied into the outbox by
-- the insert itself. The table is never changed.

-- name: copy_trigger
-- An application that says INSERT OR IGNORE says it for the trigger too: what was ignored here
-- would be lost, so it is an error. A time is a number of milliseconds, or text in UTC.
CREATE TRIGGER {name:copy} AFTER INSERT ON {source} FOR EACH ROW BEGIN
  INSERT INTO {outbox} ({id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}
    {?source:headers}, {headers}{/}
    {?source:occurred_at}, {occurred_at}{/}
    {?source:partition_key}, {partition_key}{/}
    {?source:correlation_id}, {correlation_id}{/}
    {?source:causation_id}, {causation_id}{/}
    {?source:revision}, {revision}{/})
  VALUES ({?+string_id}lower(NEW.{source:id}){/}{!+string_id}NEW.{source:id}{/},
    NEW.{source:aggregate_type}, NEW.{source:aggregate_id}, NEW.{source:event_type},
    CAST(NEW.{source:payload} AS {?+binary_payload}BLOB{/}{!+binary_payload}TEXT{/})
    {?source:headers}, NEW.{source:headers}{/}
    {?source:occurred_at}, coalesce(CASE typeof(NEW.{source:occurred_at}) WHEN 'integer' THEN NEW.{source:occurred_at} * 1000
      ELSE CAST(round((julianday(NEW.{source:occurred_at}) - 2440587.5) * 86400000) AS INTEGER) * 1000 END,
      {>now}){/}
    {?source:partition_key}, NEW.{source:partition_key}{/}
    {?source:correlation_id}, NEW.{source:correlation_id}{/}
    {?source:causation_id}, NEW.{source:causation_id}{/}
    {?source:revision}, coalesce(NEW.{source:revision}, 1){/});
  SELECT RAISE(ABORT, 'the row was not copied into the outbox') WHERE changes() <> 1;
END

-- name: copy_drop
DROP TRIGGER IF EXISTS {name:copy};

-- name: copy_table
-- The trigger that is there, and the table it belongs to.
SELECT tbl_name, sql FROM sqlite_schema WHERE type = 'trigger' AND name = :name COLLATE NOCASE;
