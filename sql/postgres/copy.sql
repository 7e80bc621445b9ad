-- A table of the application's own, with Debezium's columns: each new row is copied into the outbox by
-- the insert itself. The table is never changed.

-- name: copy_head
-- It runs with the rights of whoever made it: the application needs none on our table. pg_temp stands
-- last in its search_path, so that nobody's temporary table takes the place of ours.
SELECT set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''), 'pg_temp'), true);
CREATE OR REPLACE FUNCTION {fn:copy}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $copy$

-- name: copy_body
-- Only the branch that is taken is planned, so each may read the column as its own type.
-- A time is a number of milliseconds, or a timestamp; without a zone it is UTC.
DECLARE
  body {?+binary_payload}bytea{/}{!+binary_payload}json{/};
  event_time timestamptz;
BEGIN
  {?+binary_payload}
  IF pg_typeof(NEW.{source:payload})::text = 'bytea' THEN
    body := NEW.{source:payload};
  ELSE
    body := convert_to(NEW.{source:payload}::text, 'UTF8');
  END IF;{/}{!+binary_payload}
  body := NEW.{source:payload}::text::json;{/}
  {?source:occurred_at}
  IF pg_typeof(NEW.{source:occurred_at})::text IN ('bigint', 'integer', 'numeric') THEN
    event_time := to_timestamp(NEW.{source:occurred_at} / 1000.0);
  ELSIF pg_typeof(NEW.{source:occurred_at})::text = 'timestamp without time zone' THEN
    event_time := NEW.{source:occurred_at} AT TIME ZONE 'UTC';
  ELSE
    event_time := NEW.{source:occurred_at};
  END IF;{/}
  INSERT INTO {outbox} ({id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}
    {?source:headers}, {headers}{/}
    {?source:occurred_at}, {occurred_at}{/}
    {?source:partition_key}, {partition_key}{/}
    {?source:correlation_id}, {correlation_id}{/}
    {?source:causation_id}, {causation_id}{/}
    {?source:revision}, {revision}{/})
  VALUES ({?+string_id}lower(NEW.{source:id}::text){/}{!+string_id}NEW.{source:id}::text::uuid{/},
    NEW.{source:aggregate_type}::text, NEW.{source:aggregate_id}::text, NEW.{source:event_type}::text, body
    {?source:headers}, NEW.{source:headers}::text::json{/}
    {?source:occurred_at}, coalesce(event_time, clock_timestamp()){/}
    {?source:partition_key}, NEW.{source:partition_key}::text{/}
    {?source:correlation_id}, NEW.{source:correlation_id}::text{/}
    {?source:causation_id}, NEW.{source:causation_id}::text{/}
    {?source:revision}, coalesce(NEW.{source:revision}, 1)::integer{/});
  RETURN NULL;
END

-- name: copy_tail
-- Nobody else may put such a trigger on a table of theirs.
$copy$;
REVOKE ALL ON FUNCTION {fn:copy}() FROM PUBLIC;
CREATE OR REPLACE TRIGGER {name:copy} AFTER INSERT ON {source} FOR EACH ROW EXECUTE FUNCTION {fn:copy}();

-- name: copy_trigger
-- Of the table $1, the trigger $2: what its function does.
SELECT p.prosrc FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
 WHERE t.tgrelid = $1::bigint::oid AND t.tgname = $2 AND t.tgenabled <> 'D' AND NOT t.tgisinternal
