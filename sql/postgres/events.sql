-- Events: streams and their ends. The log itself is the event store; its unique index over
-- (target, aggregate_type, aggregate_id, sequence_number) guards the versions of a stream.

-- name: events
-- A row of {streams} for each stream that ended or was cut, and for no other. end_state: 0 open, 1 archived, 2 tombstoned.
--
-- outbox_append appends events to a stream: SELECT * FROM outbox_append('account', '42', 0, ARRAY['Opened'], ARRAY['{{"owner": "Ann"}']::json[]).
-- expected: a version, 0 for no stream, -1 for any, -2 for a stream that exists. Errors: SQLSTATE OB001 is a conflict, OB002 a stream that ended.
-- The first row alone tells whether the version is free: nobody takes the next one without it. So nothing must be undone when it is not.
CREATE TABLE IF NOT EXISTS {fn:streams} (
  target text NOT NULL COLLATE "C",
  aggregate_type text NOT NULL,
  aggregate_id text NOT NULL,
  end_state smallint NOT NULL DEFAULT 0,
  first_version bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (target, aggregate_type, aggregate_id)
);
-- The newest snapshot of an aggregate; not of the log, and never needed: events make the same state.
CREATE TABLE IF NOT EXISTS {fn:snapshots} (
  target text NOT NULL COLLATE "C",
  aggregate_type text NOT NULL,
  aggregate_id text NOT NULL,
  version bigint NOT NULL,
  revision integer NOT NULL,
  state text NOT NULL,
  PRIMARY KEY (target, aggregate_type, aggregate_id)
);
-- The keys of data subjects, each wrapped by a master key. Without its row what it has encrypted cannot be read any more.
CREATE TABLE IF NOT EXISTS {fn:keys} (
  subject text NOT NULL COLLATE "C" PRIMARY KEY,
  key_id text NOT NULL,
  master_id text NOT NULL,
  wrapped text NOT NULL
);
SELECT set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''), 'pg_temp'), true);
CREATE OR REPLACE FUNCTION {fn:append}(
  aggregate_type text, aggregate_id text, expected bigint, event_types text[],
  {?+binary_payload}payloads bytea[],{/}{!+binary_payload}payloads json[],{/}
  headers json[] DEFAULT NULL, ids uuid[] DEFAULT NULL, revisions integer[] DEFAULT NULL,
  correlation_ids text[] DEFAULT NULL, causation_ids text[] DEFAULT NULL, target text DEFAULT 'default',
  OUT first_version bigint, OUT last_version bigint, OUT first_position bigint, OUT last_position bigint, OUT repeated boolean
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $append$
#variable_conflict use_column
DECLARE
  total integer := cardinality($4);
  actual bigint;
  ended smallint;
  own_ids uuid[] := coalesce($7, ARRAY(SELECT gen_random_uuid() FROM generate_series(1, cardinality($4))));
BEGIN
  IF coalesce($1, '') = '' OR coalesce($2, '') = '' OR $3 IS NULL OR $3 < -2 OR coalesce(total, 0) = 0 OR total > 100000 OR cardinality($5) IS DISTINCT FROM total
     OR cardinality(own_ids) <> total THEN
    RAISE EXCEPTION 'outbox: a stream needs a type and an id, expected is a version, 0, -1 or -2, and there are 1 to 100000 events with a payload each'
      USING ERRCODE = 'OB003';
  END IF;
  repeated := false;
  LOOP
    SELECT s.end_state INTO ended FROM {fn:streams} AS s WHERE s.target = $11 AND s.aggregate_type = $1 AND s.aggregate_id = $2;
    IF ended > 0 THEN
      RAISE EXCEPTION 'outbox: stream % of % is %', $2, $1, CASE ended WHEN 1 THEN 'archived' ELSE 'tombstoned' END USING ERRCODE = 'OB002';
    END IF;
    actual := {fn:stream_version}($1, $2, $11);
    IF $7 IS NOT NULL AND $3 <> actual THEN
      SELECT min(o.{sequence_number}), max(o.{sequence_number}), min(o.{seq}), max(o.{seq}), count(*) = total
        INTO first_version, last_version, first_position, last_position, repeated
        FROM unnest($7) WITH ORDINALITY AS u (id, n)
        JOIN {outbox} AS o ON o.{id} = u.id{?+string_id}::text{/} AND o.{target} = $11 AND o.{aggregate_type} = $1 AND o.{aggregate_id} = $2
         AND o.{sequence_number} - u.n = CASE WHEN $3 >= 0 THEN $3 ELSE
             (SELECT f.{sequence_number} - 1 FROM {outbox} AS f WHERE f.{id} = ($7)[1]{?+string_id}::text{/} AND f.{target} = $11
                 AND f.{aggregate_type} = $1 AND f.{aggregate_id} = $2) END;
      IF repeated THEN
        RETURN;
      END IF;
    END IF;
    IF ($3 >= 0 AND $3 <> actual) OR ($3 = -2 AND actual = 0) THEN
      RAISE EXCEPTION 'outbox: conflict on stream % of %: expected %, actual version %', $2, $1,
        CASE WHEN $3 = -2 THEN 'a stream that exists' ELSE 'version ' || $3 END, actual USING ERRCODE = 'OB001';
    END IF;
    INSERT INTO {outbox} ({>append_columns}) SELECT {>append_values} FROM {>append_events} WHERE u.n = 1 ON CONFLICT
      ({target}, {aggregate_type}, {aggregate_id}, {sequence_number}) WHERE {sequence_number} IS NOT NULL DO NOTHING RETURNING {seq} INTO first_position;
    EXIT WHEN FOUND;
  END LOOP;
  first_version := actual + 1;
  last_version := actual + total;
  last_position := first_position;
  IF total > 1 THEN
    WITH i AS (INSERT INTO {outbox} ({>append_columns}) SELECT {>append_values} FROM {>append_events} WHERE u.n > 1 RETURNING {seq} AS seq)
    SELECT max(i.seq) INTO last_position FROM i;
  END IF;
END
$append$;
CREATE OR REPLACE FUNCTION {fn:stream_version}(aggregate_type text, aggregate_id text, target text DEFAULT 'default')
RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $version$
#variable_conflict use_column
BEGIN
  RETURN coalesce((SELECT max(o.{sequence_number}) FROM {outbox} AS o
                    WHERE o.{target} = $3 AND o.{aggregate_type} = $1 AND o.{aggregate_id} = $2 AND o.{sequence_number} > 0), 0);
END
$version$;
CREATE OR REPLACE FUNCTION {fn:read_stream}(
  aggregate_type text, aggregate_id text, after bigint DEFAULT 0, "limit" integer DEFAULT 1000, backward boolean DEFAULT false, target text DEFAULT 'default')
RETURNS TABLE ("position" bigint, version bigint, id uuid, event_type text, revision integer, payload {?+binary_payload}bytea{/}{!+binary_payload}json{/},
  headers json, correlation_id text, causation_id text, occurred_at timestamptz, created_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $read$
#variable_conflict use_column
DECLARE
  first bigint := 1;
  ended smallint := 0;
BEGIN
  SELECT s.first_version, s.end_state INTO first, ended FROM {fn:streams} AS s WHERE s.target = $6 AND s.aggregate_type = $1 AND s.aggregate_id = $2;
  IF ended > 0 THEN
    RETURN;
  END IF;
  IF $5 THEN
    RETURN QUERY SELECT {>event_named} FROM {outbox} AS o WHERE {>event_of_stream}
       AND ($3 = 0 OR o.{sequence_number} < $3) ORDER BY o.{sequence_number} DESC LIMIT $4;
  ELSE
    RETURN QUERY SELECT {>event_named} FROM {outbox} AS o WHERE {>event_of_stream}
       AND o.{sequence_number} > $3 ORDER BY o.{sequence_number} LIMIT $4;
  END IF;
END
$read$;
CREATE OR REPLACE FUNCTION {fn:read_category}(
  aggregate_type text, after bigint DEFAULT 0, "limit" integer DEFAULT 1000, member integer DEFAULT 0, size integer DEFAULT 1,
  seen pg_snapshot DEFAULT NULL, target text DEFAULT 'default')
RETURNS TABLE ("position" bigint, aggregate_id text, version bigint, id uuid, event_type text, revision integer, payload {?+binary_payload}bytea{/}{!+binary_payload}json{/},
  headers json, correlation_id text, causation_id text, occurred_at timestamptz, created_at timestamptz, now_seen pg_snapshot)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $category$
#variable_conflict use_column
DECLARE
  now_at pg_snapshot := pg_current_snapshot();
BEGIN
  IF $5 < 1 OR $4 < 0 OR $4 >= $5 THEN
    RAISE EXCEPTION 'outbox: member is a number from 0 to size - 1' USING ERRCODE = 'OB003';
  END IF;
  -- Late: committed since the caller's last read, with a position that it has passed. All of them come first.
  IF $6 IS NOT NULL THEN
    RETURN QUERY SELECT {>category_named} FROM {outbox} AS o WHERE o.{txid} >= pg_snapshot_xmin($6) AND (o.{seq} <= $2) IS TRUE
       AND NOT pg_visible_in_snapshot(o.{txid}, $6) AND {>event_of_category} ORDER BY o.{seq};
  END IF;
  RETURN QUERY SELECT {>category_named} FROM {outbox} AS o WHERE o.{seq} > $2 AND {>event_of_category} ORDER BY o.{seq} LIMIT $3;
END
$category$;

-- name: append_expected
-- A push of events of one stream, whose version must be the one before the first of them; else no row is stored. With max() no version that is
-- missing below, where retention has removed it, can make a place look free.
{>push}
 WHERE ($10::bigint[])[1] - 1 = coalesce((SELECT max(o.{sequence_number}) FROM {outbox} AS o WHERE o.{target} = ($6::text[])[1]
         AND o.{aggregate_type} = ($2::text[])[1] AND o.{aggregate_id} = ($3::text[])[1] AND o.{sequence_number} > 0), 0)
   AND NOT EXISTS (SELECT 1 FROM {fn:streams} AS s WHERE s.target = ($6::text[])[1] AND s.aggregate_type = ($2::text[])[1]
         AND s.aggregate_id = ($3::text[])[1] AND s.end_state > 0)

-- name: category_named
o.{seq}, o.{aggregate_id}, o.{sequence_number}, o.{id}{?+string_id}::uuid{/}, o.{event_type}, {?revision}o.{revision}{/}{!revision}1{/}, o.{payload},
{?headers}o.{headers}{/}{!headers}NULL::json{/}, {?correlation_id}o.{correlation_id}{/}{!correlation_id}NULL::text{/},
{?causation_id}o.{causation_id}{/}{!causation_id}NULL::text{/}, {?occurred_at}o.{occurred_at}{/}{!occurred_at}o.{created_at}{/}, o.{created_at}, now_at

-- name: event_of_category
(o.{target} = $7 AND o.{aggregate_type} = $1 AND o.{sequence_number} > 0 AND o.{aggregate_id} IS NOT NULL) IS TRUE
AND pg_visible_in_snapshot(o.{txid}, now_at)
AND ($5 = 1 OR (hashtext(o.{aggregate_id})::bigint & 2147483647) % $5 = $4)
AND NOT EXISTS (SELECT 1 FROM {fn:streams} AS s WHERE s.target = o.{target} AND s.aggregate_type = o.{aggregate_type}
                 AND s.aggregate_id = o.{aggregate_id} AND (s.end_state > 0 OR s.first_version > o.{sequence_number}))

-- name: append_columns
{id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {target}, {sequence_number}
{?headers}, {headers}{/}
{?revision}, {revision}{/}
{?correlation_id}, {correlation_id}{/}
{?causation_id}, {causation_id}{/}

-- name: append_values
u.id{?+string_id}::text{/}, $1, $2, u.event_type, u.payload, $11, actual + u.n
{?headers}, u.header{/}
{?revision}, coalesce(u.revision, 1){/}
{?correlation_id}, u.correlation_id{/}
{?causation_id}, u.causation_id{/}

-- name: append_events
unnest(own_ids, $4, $5, $6, $8, $9, $10) WITH ORDINALITY AS u (id, event_type, payload, header, revision, correlation_id, causation_id, n)

-- name: event_named
o.{seq}, o.{sequence_number}, o.{id}{?+string_id}::uuid{/}, o.{event_type}, {?revision}o.{revision}{/}{!revision}1{/}, o.{payload},
{?headers}o.{headers}{/}{!headers}NULL::json{/}, {?correlation_id}o.{correlation_id}{/}{!correlation_id}NULL::text{/},
{?causation_id}o.{causation_id}{/}{!causation_id}NULL::text{/}, {?occurred_at}o.{occurred_at}{/}{!occurred_at}o.{created_at}{/}, o.{created_at}

-- name: event_of_stream
o.{target} = $6 AND o.{aggregate_type} = $1 AND o.{aggregate_id} = $2 AND o.{sequence_number} >= coalesce(first, 1)

-- name: stream_of_row
o.{target} = $1 AND o.{aggregate_type} = $2 AND o.{aggregate_id} = $3

-- name: stream_look
-- The version of a stream, its end, where reads begin. $1 target, $2 type, $3 id.
SELECT coalesce((SELECT max(o.{sequence_number}) FROM {outbox} AS o WHERE {>stream_of_row} AND o.{sequence_number} > 0), 0),
       coalesce(s.end_state, 0), coalesce(s.first_version, 1)
  FROM (SELECT 1) AS one LEFT JOIN {fn:streams} AS s ON s.target = $1 AND s.aggregate_type = $2 AND s.aggregate_id = $3

-- name: stream_keep
-- $4 end_state, $5 first_version.
INSERT INTO {fn:streams} AS s (target, aggregate_type, aggregate_id, end_state, first_version) VALUES ($1, $2, $3, $4::smallint, $5::bigint)
    ON CONFLICT (target, aggregate_type, aggregate_id) DO UPDATE SET end_state = excluded.end_state, first_version = excluded.first_version

-- name: stream_forget
DELETE FROM {fn:streams} WHERE target = $1 AND aggregate_type = $2 AND aggregate_id = $3

-- name: stream_place
-- Positions of the versions $4 to $5.
SELECT min(o.{seq}), max(o.{seq}) FROM {outbox} AS o WHERE {>stream_of_row} AND o.{sequence_number} BETWEEN $4::bigint AND $5::bigint

-- name: stream_version_of
-- The version of the event $4 in its stream.
SELECT o.{sequence_number} FROM {outbox} AS o WHERE {>stream_of_row} AND o.{id} = $4{?+string_id}::text{/}{!+string_id}::uuid{/}

-- name: event_columns
-- In the order of src/lib/events/row.h.
o.{seq}, o.{sequence_number}, o.{id}, o.{aggregate_type}, o.{aggregate_id}, o.{target}, o.{event_type}, o.{payload},
{?headers}o.{headers}{/}{!headers}NULL::json{/}, {?correlation_id}o.{correlation_id}{/}{!correlation_id}NULL::text{/},
{?causation_id}o.{causation_id}{/}{!causation_id}NULL::text{/},
(extract(epoch FROM {?occurred_at}o.{occurred_at}{/}{!occurred_at}o.{created_at}{/}) * 1000000)::bigint,
(extract(epoch FROM o.{created_at}) * 1000000)::bigint, {?revision}o.{revision}{/}{!revision}1{/}

-- name: stream_window
-- $4, $5 versions, $6, $7 positions, $8, $9 times in us, $10 type of the events or NULL, $11 how many. IS TRUE: no other index can serve.
SELECT {>event_columns} FROM {outbox} AS o
 WHERE {>stream_of_row} AND o.{sequence_number} > $4::bigint AND o.{sequence_number} <= $5::bigint
   AND (o.{seq} > $6::bigint AND o.{seq} <= $7::bigint) IS TRUE
   AND ((extract(epoch FROM o.{created_at}) * 1000000)::bigint > $8::bigint AND (extract(epoch FROM o.{created_at}) * 1000000)::bigint <= $9::bigint) IS TRUE
   AND ($10::text IS NULL OR o.{event_type} = $10::text)

-- name: stream_forward
{>stream_window} ORDER BY o.{sequence_number} LIMIT $11::bigint

-- name: stream_backward
{>stream_window} ORDER BY o.{sequence_number} DESC LIMIT $11::bigint

-- name: streams_recent
-- The last event of each stream of target $1 up to position $2, at most $3: a row is the last of its stream if there is no next version.
SELECT {>event_columns} FROM {outbox} AS o
 WHERE (o.{target} = $1) IS TRUE AND o.{seq} <= $2::bigint AND (o.{sequence_number} > 0) IS TRUE AND o.{aggregate_id} IS NOT NULL
   AND (SELECT 1 FROM {outbox} AS n WHERE n.{target} = o.{target} AND n.{aggregate_type} = o.{aggregate_type}
           AND n.{aggregate_id} = o.{aggregate_id} AND n.{sequence_number} > o.{sequence_number} LIMIT 1) IS NULL
   AND NOT EXISTS (SELECT 1 FROM {fn:streams} AS s WHERE s.target = o.{target} AND s.aggregate_type = o.{aggregate_type}
                    AND s.aggregate_id = o.{aggregate_id} AND s.end_state > 0)
 ORDER BY o.{seq} DESC LIMIT $3::bigint

-- name: log_now
-- What is committed now. A pass is what this snapshot shows, whatever commits while it is read.
SELECT pg_current_snapshot()::text

-- name: log_window
-- $1 target, $2 category or NULL, $3, $4 positions, $5, $6 times in us, $7 type of the events or NULL, $8 correlation or NULL, $9 1: also what ended,
-- $10 the snapshot of the pass, $11 how many. IS TRUE: no other index can serve.
SELECT {>event_columns} FROM {outbox} AS o
 WHERE o.{seq} > $3::bigint AND o.{seq} <= $4::bigint
   AND (o.{target} = $1 AND o.{sequence_number} > 0 AND o.{aggregate_id} IS NOT NULL AND ($2::text IS NULL OR o.{aggregate_type} = $2::text)) IS TRUE
   AND pg_visible_in_snapshot(o.{txid}, $10::pg_snapshot)
   AND ((extract(epoch FROM o.{created_at}) * 1000000)::bigint > $5::bigint AND (extract(epoch FROM o.{created_at}) * 1000000)::bigint <= $6::bigint) IS TRUE
   AND ($7::text IS NULL OR (o.{event_type} = $7::text) IS TRUE)
   AND ($8::text IS NULL OR ({?correlation_id}o.{correlation_id}{/}{!correlation_id}NULL::text{/} = $8::text) IS TRUE)
   AND ($9::bigint = 1 OR NOT EXISTS (SELECT 1 FROM {fn:streams} AS s WHERE s.target = o.{target} AND s.aggregate_type = o.{aggregate_type}
                                       AND s.aggregate_id = o.{aggregate_id} AND (s.end_state > 0 OR s.first_version > o.{sequence_number})))

-- name: log_forward
{>log_window} ORDER BY o.{seq} LIMIT $11::bigint

-- name: log_backward
{>log_window} ORDER BY o.{seq} DESC LIMIT $11::bigint

-- name: snapshot_find
-- $1 target, $2 type, $3 id, $4 the highest version.
SELECT version, revision, state FROM {fn:snapshots} WHERE target = $1 AND aggregate_type = $2 AND aggregate_id = $3 AND version <= $4::bigint

-- name: snapshot_keep
INSERT INTO {fn:snapshots} AS s (target, aggregate_type, aggregate_id, version, revision, state) VALUES ($1, $2, $3, $4::bigint, $5::integer, $6)
    ON CONFLICT (target, aggregate_type, aggregate_id) DO UPDATE SET version = excluded.version, revision = excluded.revision, state = excluded.state
 WHERE excluded.version >= s.version

-- name: snapshot_forget
DELETE FROM {fn:snapshots} WHERE target = $1 AND aggregate_type = $2 AND aggregate_id = $3

-- name: key_find
SELECT key_id, master_id, wrapped, subject FROM {fn:keys} WHERE subject = $1

-- name: key_keep
-- $1 subject, $2 key_id, $3 master_id, $4 wrapped. One that is there stays.
INSERT INTO {fn:keys} (subject, key_id, master_id, wrapped) VALUES ($1, $2, $3, $4) ON CONFLICT (subject) DO NOTHING

-- name: key_rewrap
-- $1 master_id, $2 wrapped, $3 subject, $4 key_id.
UPDATE {fn:keys} SET master_id = $1, wrapped = $2 WHERE subject = $3 AND key_id = $4

-- name: key_list
-- Those after subject $1 that another master key than $2 wraps, at most $3.
SELECT key_id, master_id, wrapped, subject FROM {fn:keys} WHERE subject > $1 AND master_id <> $2 ORDER BY subject LIMIT $3::bigint

-- name: key_forget
DELETE FROM {fn:keys} WHERE subject = $1
