-- Events: streams and their ends. The log itself is the event store; its unique index over
-- (target, aggregate_type, aggregate_id, sequence_number) guards the versions of a stream.

-- name: events
-- A row for each stream that ended or was cut, and for no other. end_state: 0 open, 1 archived, 2 tombstoned.
CREATE TABLE IF NOT EXISTS {fn:streams} (
  target TEXT NOT NULL,
  aggregate_type TEXT NOT NULL,
  aggregate_id TEXT NOT NULL,
  end_state INTEGER NOT NULL DEFAULT 0,
  first_version INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (target, aggregate_type, aggregate_id)
) STRICT, WITHOUT ROWID;
-- The newest snapshot of an aggregate; not of the log, and never needed: events make the same state.
CREATE TABLE IF NOT EXISTS {fn:snapshots} (
  target TEXT NOT NULL,
  aggregate_type TEXT NOT NULL,
  aggregate_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  state TEXT NOT NULL,
  PRIMARY KEY (target, aggregate_type, aggregate_id)
) STRICT;
-- The keys of data subjects, each wrapped by a master key. Without its row what it has encrypted cannot be read any more.
CREATE TABLE IF NOT EXISTS {fn:keys} (
  subject TEXT NOT NULL PRIMARY KEY,
  key_id TEXT NOT NULL,
  master_id TEXT NOT NULL,
  wrapped TEXT NOT NULL
) STRICT;

-- name: stream_look
-- The version of a stream, its end, where reads begin. ?1 target, ?2 type, ?3 id.
SELECT coalesce((SELECT max(o.{sequence_number}) FROM {outbox} AS o
                  WHERE o.{target} = ?1 AND o.{aggregate_type} = ?2 AND o.{aggregate_id} = ?3 AND o.{sequence_number} > 0), 0),
       coalesce(s.end_state, 0), coalesce(s.first_version, 1)
  FROM (SELECT 1) LEFT JOIN {fn:streams} AS s ON s.target = ?1 AND s.aggregate_type = ?2 AND s.aggregate_id = ?3

-- name: stream_keep
-- ?4 end_state, ?5 first_version.
INSERT INTO {fn:streams} (target, aggregate_type, aggregate_id, end_state, first_version) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (target, aggregate_type, aggregate_id) DO UPDATE SET end_state = excluded.end_state, first_version = excluded.first_version

-- name: stream_forget
DELETE FROM {fn:streams} WHERE target = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3

-- name: stream_place
-- Positions of the versions ?4 to ?5.
SELECT min(o.{seq}), max(o.{seq}) FROM {outbox} AS o
 WHERE o.{target} = ?1 AND o.{aggregate_type} = ?2 AND o.{aggregate_id} = ?3 AND o.{sequence_number} BETWEEN ?4 AND ?5

-- name: stream_version_of
-- The version of the event ?4 in its stream.
SELECT o.{sequence_number} FROM {outbox} AS o
 WHERE o.{target} = ?1 AND o.{aggregate_type} = ?2 AND o.{aggregate_id} = ?3 AND o.{id} = ?4

-- name: event_columns
-- In the order of src/lib/events/row.h.
o.{seq}, o.{sequence_number}, o.{id}, o.{aggregate_type}, o.{aggregate_id}, o.{target}, o.{event_type}, o.{payload},
{?headers}o.{headers}{/}{!headers}NULL{/}, {?correlation_id}o.{correlation_id}{/}{!correlation_id}NULL{/},
{?causation_id}o.{causation_id}{/}{!causation_id}NULL{/}, {?occurred_at}o.{occurred_at}{/}{!occurred_at}o.{created_at}{/}, o.{created_at},
{?revision}o.{revision}{/}{!revision}1{/}

-- name: stream_window
-- ?4, ?5 versions, ?6, ?7 positions, ?8, ?9 times, ?10 type of the events or NULL, ?11 how many.
SELECT {>event_columns} FROM {outbox} AS o
 WHERE o.{target} = ?1 AND o.{aggregate_type} = ?2 AND o.{aggregate_id} = ?3 AND o.{sequence_number} > ?4 AND o.{sequence_number} <= ?5
   AND +o.{seq} > ?6 AND +o.{seq} <= ?7 AND o.{created_at} > ?8 AND o.{created_at} <= ?9 AND (?10 IS NULL OR o.{event_type} = ?10)

-- name: stream_forward
{>stream_window} ORDER BY o.{sequence_number} LIMIT ?11

-- name: stream_backward
{>stream_window} ORDER BY o.{sequence_number} DESC LIMIT ?11

-- name: streams_recent
-- The last event of each stream of target ?1 below position ?2, at most ?3: a row is the last of its stream if there is no next version.
SELECT {>event_columns} FROM {outbox} AS o
 WHERE o.{target} = ?1 AND o.{seq} <= ?2 AND o.{sequence_number} > 0 AND o.{aggregate_id} IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM {outbox} AS n WHERE n.{target} = o.{target} AND n.{aggregate_type} = o.{aggregate_type}
                    AND n.{aggregate_id} = o.{aggregate_id} AND n.{sequence_number} > o.{sequence_number})
   AND NOT EXISTS (SELECT 1 FROM {fn:streams} AS s WHERE s.target = o.{target} AND s.aggregate_type = o.{aggregate_type}
                    AND s.aggregate_id = o.{aggregate_id} AND s.end_state > 0)
 ORDER BY o.{seq} DESC LIMIT ?3

-- name: log_end
SELECT coalesce(max({seq}), 0) FROM {outbox}

-- name: log_window
-- ?1 target, ?2 category or NULL, ?4, ?5 positions, ?6, ?7 times, ?8 type of the events or NULL, ?9 correlation or NULL, ?10 1: also what ended,
-- ?11 how many.
SELECT {>event_columns} FROM {outbox} AS o
 WHERE o.{seq} > ?4 AND o.{seq} <= ?5 AND +o.{target} = ?1 AND (?2 IS NULL OR +o.{aggregate_type} = ?2) AND o.{sequence_number} > 0
   AND o.{aggregate_id} IS NOT NULL AND o.{created_at} > ?6 AND o.{created_at} <= ?7 AND (?8 IS NULL OR o.{event_type} = ?8)
   AND (?9 IS NULL OR {?correlation_id}o.{correlation_id}{/}{!correlation_id}NULL{/} = ?9)
   AND (?10 = 1 OR NOT EXISTS (SELECT 1 FROM {fn:streams} AS s WHERE s.target = o.{target} AND s.aggregate_type = o.{aggregate_type}
                                AND s.aggregate_id = o.{aggregate_id} AND (s.end_state > 0 OR s.first_version > o.{sequence_number})))

-- name: log_forward
{>log_window} ORDER BY o.{seq} LIMIT ?11

-- name: log_backward
{>log_window} ORDER BY o.{seq} DESC LIMIT ?11

-- name: snapshot_find
-- ?1 target, ?2 type, ?3 id, ?4 the highest version.
SELECT version, revision, state FROM {fn:snapshots} WHERE target = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND version <= ?4

-- name: snapshot_keep
INSERT INTO {fn:snapshots} AS s (target, aggregate_type, aggregate_id, version, revision, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (target, aggregate_type, aggregate_id) DO UPDATE SET version = excluded.version, revision = excluded.revision, state = excluded.state
 WHERE excluded.version >= s.version

-- name: snapshot_forget
DELETE FROM {fn:snapshots} WHERE target = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3

-- name: key_find
SELECT key_id, master_id, wrapped, subject FROM {fn:keys} WHERE subject = ?1

-- name: key_keep
-- ?1 subject, ?2 key_id, ?3 master_id, ?4 wrapped. One that is there stays.
INSERT OR IGNORE INTO {fn:keys} (subject, key_id, master_id, wrapped) VALUES (?1, ?2, ?3, ?4)

-- name: key_rewrap
-- ?1 master_id, ?2 wrapped, ?3 subject, ?4 key_id.
UPDATE {fn:keys} SET master_id = ?1, wrapped = ?2 WHERE subject = ?3 AND key_id = ?4

-- name: key_list
-- Those after subject ?1 that another master key than ?2 wraps, at most ?3.
SELECT key_id, master_id, wrapped, subject FROM {fn:keys} WHERE subject > ?1 AND master_id <> ?2 ORDER BY subject LIMIT ?3

-- name: key_forget
DELETE FROM {fn:keys} WHERE subject = ?1
