-- Writing messages. The insert is push_head followed by one push_row for each message, with
-- commas between; the order of the parameters is that of the fields in src/lib/sqlite_push.c.
-- Columns that the database fills are never named. occurred_at and available_at are named only
-- when a message of the call sets them.

-- name: push_head
-- OR ABORT: whatever the table's own conflict clauses say, a row that cannot be stored is an
-- error and undoes the statement, not the transaction.
INSERT OR ABORT INTO {outbox} ({id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {target}, {priority}
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

-- name: push_row
-- The expression is the default of occurred_at, for messages that do not set it beside others that do.
(?,?,?,?,?,?,?{?revision},?{/}{?sequence_number},?{/}{?headers},?{/}{?snapshot},?{/}{?correlation_id},?{/}{?causation_id},?{/}{?partition_key},?{/}{?occurred_at},coalesce(?,{>now}){/}{?available_at},?{/})

-- name: push_find_id
-- Columns are written with their table: a quoted name alone that is no column would be taken
-- for a string.
SELECT 1 FROM {outbox} AS o WHERE o.{id} = ?1 AND o.{target} = ?2

-- name: push_find_sequence
SELECT 1 FROM {outbox} AS o
WHERE o.{target} = ?1 AND o.{aggregate_type} = ?2 AND o.{aggregate_id} = ?3 AND o.{sequence_number} = ?4

-- name: push_columns
-- ?1 the table, ?2 the database it is in, or NULL.
SELECT name, type FROM pragma_table_xinfo(?1, ?2)

-- name: stamp
-- A row that was just pushed, by a clock that is not SQLite's.
UPDATE {outbox} SET {created_at} = :now, {available_at} = :due_at
       {?occurred_at}, {occurred_at} = :occurred_at{/}
 WHERE {id} = :id AND {target} = :target;
