-- Events: streams and their ends. The log itself is the event store; its unique index over
-- (target, aggregate_type, aggregate_id, sequence_number) guards the versions of a stream.
-- Parameters of the library are bound as bytes; CONVERT makes text of them, whatever the session's character set is.

-- name: events_table
-- A row for each stream that ended or was cut, and for no other. end_state: 0 open, 1 archived, 2 tombstoned.
CREATE TABLE IF NOT EXISTS {fn:streams} (
  target VARCHAR(255) NOT NULL,
  aggregate_type VARCHAR(255) NOT NULL,
  aggregate_id VARCHAR(255) NOT NULL,
  end_state TINYINT NOT NULL DEFAULT 0,
  first_version BIGINT NOT NULL DEFAULT 1,
  PRIMARY KEY (target, aggregate_type, aggregate_id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: events_snapshots
-- The newest snapshot of an aggregate; not of the log, and never needed: events make the same state.
CREATE TABLE IF NOT EXISTS {fn:snapshots} (
  target VARCHAR(255) NOT NULL,
  aggregate_type VARCHAR(255) NOT NULL,
  aggregate_id VARCHAR(255) NOT NULL,
  version BIGINT NOT NULL,
  revision INT NOT NULL,
  state LONGTEXT NOT NULL,
  PRIMARY KEY (target, aggregate_type, aggregate_id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: events_keys
-- The keys of data subjects, each wrapped by a master key. Without its row what it has encrypted cannot be read any more.
CREATE TABLE IF NOT EXISTS {fn:keys} (
  subject VARCHAR(255) NOT NULL PRIMARY KEY,
  key_id VARCHAR(64) NOT NULL,
  master_id VARCHAR(64) NOT NULL,
  wrapped VARCHAR(255) NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: events_drop
DROP PROCEDURE IF EXISTS {fn:append};

-- name: events_drop_read
DROP PROCEDURE IF EXISTS {fn:read_stream};

-- name: events_drop_version
DROP PROCEDURE IF EXISTS {fn:stream_version};

-- name: events_append
-- One event in your own transaction: CALL outbox_append('account', '42', 0, 'Opened', '{{"owner": "Ann"}', NULL, NULL, NULL).
-- in_expected: a version, 0 for no stream, -1 for any, -2 for a stream that exists. The last three: headers (a JSON object), the id as text,
-- the target; NULL is none, a new one, 'default'. It returns one row: version, position, repeated. Errors: SQLSTATE OB001 is a conflict,
-- OB002 a stream that ended.
CREATE PROCEDURE {fn:append} (
  in_type VARCHAR(255) CHARACTER SET utf8mb4, in_id VARCHAR(255) CHARACTER SET utf8mb4, in_expected BIGINT,
  in_event_type VARCHAR(255) CHARACTER SET utf8mb4,
  {?+binary_payload}in_payload LONGBLOB,{/}{!+binary_payload}in_payload LONGTEXT CHARACTER SET utf8mb4,{/}
  in_headers LONGTEXT CHARACTER SET utf8mb4, in_event_id VARCHAR(36) CHARACTER SET ascii, in_target VARCHAR(255) CHARACTER SET utf8mb4)
  SQL SECURITY INVOKER
append: BEGIN
  DECLARE my_target VARCHAR(255) CHARACTER SET utf8mb4 DEFAULT COALESCE(in_target, 'default');
  DECLARE my_id {?+string_id}VARCHAR(36) CHARACTER SET ascii DEFAULT LOWER(COALESCE(in_event_id, UUID())){/}{!+string_id}VARBINARY(16) DEFAULT UNHEX(REPLACE(COALESCE(in_event_id, UUID()), '-', '')){/};
  DECLARE my_version, at_version, at_position BIGINT DEFAULT 0;
  DECLARE my_end INT DEFAULT 0;
  DECLARE my_text VARCHAR(128) CHARACTER SET utf8mb4;
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
  -- Whoever has lost the race for a version meets a duplicate key.
  DECLARE EXIT HANDLER FOR 1062 BEGIN
    SELECT {sequence_number}, {seq} INTO at_version, at_position FROM {outbox} WHERE {id} = my_id AND {target} = my_target
      AND {aggregate_type} = in_type AND {aggregate_id} = in_id LOCK IN SHARE MODE;
    IF at_version > 0 AND (in_expected < 0 OR at_version = in_expected + 1) THEN
      SELECT at_version AS version, at_position AS position, 1 AS repeated;
    ELSE
      SET my_text = CONCAT('outbox: conflict: expected version ', in_expected, ', another writer has taken ', my_version + 1);
      SIGNAL SQLSTATE 'OB001' SET MESSAGE_TEXT = my_text;
    END IF;
  END;
  IF in_expected < -2 OR in_type IS NULL OR in_type = '' OR in_id IS NULL OR in_id = '' THEN
    SIGNAL SQLSTATE 'OB003' SET MESSAGE_TEXT = 'outbox: the stream needs a type and an id, expected is a version, 0, -1 or -2';
  END IF;
  SELECT end_state INTO my_end FROM {fn:streams} WHERE target = my_target AND aggregate_type = in_type AND aggregate_id = in_id;
  IF my_end > 0 THEN
    SET my_text = CONCAT('outbox: the stream is ', ELT(my_end, 'archived', 'tombstoned'));
    SIGNAL SQLSTATE 'OB002' SET MESSAGE_TEXT = my_text;
  END IF;
  SELECT COALESCE(MAX({sequence_number}), 0) INTO my_version FROM {outbox}
   WHERE {target} = my_target AND {aggregate_type} = in_type AND {aggregate_id} = in_id;
  IF in_event_id IS NOT NULL THEN
    SELECT {sequence_number}, {seq} INTO at_version, at_position FROM {outbox} WHERE {id} = my_id AND {target} = my_target
      AND {aggregate_type} = in_type AND {aggregate_id} = in_id;
    IF at_version > 0 AND (in_expected < 0 OR at_version = in_expected + 1) THEN
      SELECT at_version AS version, at_position AS position, 1 AS repeated;
      LEAVE append;
    END IF;
  END IF;
  IF (in_expected >= 0 AND in_expected <> my_version) OR (in_expected = -2 AND my_version = 0) THEN
    SET my_text = CONCAT('outbox: conflict: expected version ', in_expected, ', actual version ', my_version);
    SIGNAL SQLSTATE 'OB001' SET MESSAGE_TEXT = my_text;
  END IF;
  INSERT INTO {outbox} ({id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {target}, {sequence_number}{?headers}, {headers}{/})
  VALUES (my_id, in_type, in_id, in_event_type, in_payload, my_target, my_version + 1{?headers}, in_headers{/});
  SELECT my_version + 1 AS version, LAST_INSERT_ID() AS position, 0 AS repeated;
END;

-- name: events_read_stream
-- CALL outbox_read_stream('account', '42', 0, 100, 0): events after a version, at most so many; the last 1 is newest first, below that
-- version, with 0 from the end. A stream that ended is empty.
CREATE PROCEDURE {fn:read_stream} (
  in_type VARCHAR(255) CHARACTER SET utf8mb4, in_id VARCHAR(255) CHARACTER SET utf8mb4, in_after BIGINT, in_limit INT, in_backward INT)
  SQL SECURITY INVOKER
BEGIN
  DECLARE my_end INT DEFAULT 0;
  DECLARE my_first BIGINT DEFAULT 1;
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
  SELECT end_state, first_version INTO my_end, my_first FROM {fn:streams} WHERE target = 'default' AND aggregate_type = in_type AND aggregate_id = in_id;
  IF in_backward THEN
    SELECT {>event_named} FROM {outbox} AS o WHERE {>event_of_stream} AND o.{sequence_number} >= my_first
       AND (in_after = 0 OR o.{sequence_number} < in_after) ORDER BY o.{sequence_number} DESC LIMIT in_limit;
  ELSE
    SELECT {>event_named} FROM {outbox} AS o WHERE {>event_of_stream} AND o.{sequence_number} >= my_first
       AND o.{sequence_number} > in_after ORDER BY o.{sequence_number} LIMIT in_limit;
  END IF;
END;

-- name: events_stream_version
CREATE PROCEDURE {fn:stream_version} (in_type VARCHAR(255) CHARACTER SET utf8mb4, in_id VARCHAR(255) CHARACTER SET utf8mb4)
  SQL SECURITY INVOKER
SELECT COALESCE(MAX(o.{sequence_number}), 0) AS version FROM {outbox} AS o
 WHERE o.{target} = 'default' AND o.{aggregate_type} = in_type AND o.{aggregate_id} = in_id;

-- name: events_drop_category
DROP PROCEDURE IF EXISTS {fn:read_category};

-- name: events_read_category
-- CALL outbox_read_category('account', 0, 100, 0, 1): events of a category after a position, by position, at most so many. The last two: of
-- `size` consumers this is number `member`, from 0 on; each stream belongs to one of them. A pass up to now: transactions that are open may still
-- commit lower positions, so a position is no place to go on from while the log is written; a reader is.
CREATE PROCEDURE {fn:read_category} (in_type VARCHAR(255) CHARACTER SET utf8mb4, in_after BIGINT, in_limit INT, in_member INT, in_size INT)
  SQL SECURITY INVOKER
BEGIN
  IF in_size < 1 OR in_member < 0 OR in_member >= in_size THEN
    SIGNAL SQLSTATE 'OB003' SET MESSAGE_TEXT = 'outbox: member is a number from 0 to size - 1';
  END IF;
  SELECT o.{aggregate_id} AS aggregate_id, {>event_named} FROM {outbox} AS o FORCE INDEX (PRIMARY)
   WHERE o.{seq} > in_after AND o.{target} = 'default' AND o.{aggregate_type} = in_type AND o.{sequence_number} > 0 AND o.{aggregate_id} IS NOT NULL
     AND (in_size = 1 OR CRC32(o.{aggregate_id}) % in_size = in_member)
     AND NOT EXISTS (SELECT 1 FROM {fn:streams} AS s WHERE s.target = o.{target} AND s.aggregate_type = o.{aggregate_type}
                      AND s.aggregate_id = o.{aggregate_id} AND (s.end_state > 0 OR s.first_version > o.{sequence_number}))
   ORDER BY o.{seq} LIMIT in_limit;
END;

-- name: event_named
o.{seq} AS position, o.{sequence_number} AS version, {?+string_id}o.{id}{/}{!+string_id}INSERT(INSERT(INSERT(INSERT(LOWER(HEX(o.{id})), 9, 0, '-'), 14, 0, '-'), 19, 0, '-'), 24, 0, '-'){/} AS id,
o.{event_type} AS event_type, {?revision}o.{revision}{/}{!revision}1{/} AS revision, o.{payload} AS payload, {?headers}o.{headers}{/}{!headers}NULL{/} AS headers,
{?correlation_id}o.{correlation_id}{/}{!correlation_id}NULL{/} AS correlation_id, {?causation_id}o.{causation_id}{/}{!causation_id}NULL{/} AS causation_id,
{?occurred_at}o.{occurred_at}{/}{!occurred_at}o.{created_at}{/} AS occurred_at, o.{created_at} AS created_at

-- name: event_of_stream
my_end = 0 AND o.{target} = 'default' AND o.{aggregate_type} = in_type AND o.{aggregate_id} = in_id

-- name: stream_of_row
o.{target} = CONVERT(? USING utf8mb4) AND o.{aggregate_type} = CONVERT(? USING utf8mb4) AND o.{aggregate_id} = CONVERT(? USING utf8mb4)

-- name: stream_look
-- The version of a stream; where reads begin, times 4, and its end. Parameters: the stream twice as target, type, id. Every append runs it, and each
-- query inside another costs the server as much as half an insert: hence one number for two columns.
SELECT COALESCE(MAX(o.{sequence_number}), 0), COALESCE((SELECT s.first_version * 4 + s.end_state FROM {fn:streams} AS s WHERE {>stream_ended}), 4)
  FROM {outbox} AS o WHERE {>stream_of_row}

-- name: stream_ended
s.target = CONVERT(? USING utf8mb4) AND s.aggregate_type = CONVERT(? USING utf8mb4) AND s.aggregate_id = CONVERT(? USING utf8mb4)

-- name: stream_actual
-- The same version as it is now, whatever the transaction's snapshot shows.
SELECT COALESCE(MAX(o.{sequence_number}), 0) FROM {outbox} AS o WHERE {>stream_of_row} LOCK IN SHARE MODE

-- name: stream_keep
INSERT INTO {fn:streams} (target, aggregate_type, aggregate_id, end_state, first_version)
VALUES (CONVERT(? USING utf8mb4), CONVERT(? USING utf8mb4), CONVERT(? USING utf8mb4), ?, ?)
    ON DUPLICATE KEY UPDATE end_state = VALUES(end_state), first_version = VALUES(first_version)

-- name: stream_forget
DELETE FROM {fn:streams} WHERE target = CONVERT(? USING utf8mb4) AND aggregate_type = CONVERT(? USING utf8mb4) AND aggregate_id = CONVERT(? USING utf8mb4)

-- name: stream_place
-- Positions of a range of versions. A locking read: it shows what a repeat has met.
SELECT MIN(o.{seq}), MAX(o.{seq}) FROM {outbox} AS o WHERE {>stream_of_row} AND o.{sequence_number} BETWEEN ? AND ? LOCK IN SHARE MODE

-- name: stream_version_of
-- The version of an event in its stream.
SELECT o.{sequence_number} FROM {outbox} AS o WHERE {>stream_of_row} AND o.{id} = {>push_id} LOCK IN SHARE MODE

-- name: event_columns
-- In the order of src/lib/events/row.h.
o.{seq}, o.{sequence_number}, o.{id}, o.{aggregate_type}, o.{aggregate_id}, o.{target}, o.{event_type}, o.{payload},
{?headers}o.{headers}{/}{!headers}NULL{/}, {?correlation_id}o.{correlation_id}{/}{!correlation_id}NULL{/},
{?causation_id}o.{causation_id}{/}{!causation_id}NULL{/},
TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', {?occurred_at}o.{occurred_at}{/}{!occurred_at}o.{created_at}{/}),
TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', o.{created_at}), {?revision}o.{revision}{/}{!revision}1{/}

-- name: stream_window
-- After the stream: versions, positions, times in us, the type of the events twice (or NULL).
SELECT {>event_columns} FROM {outbox} AS o
 WHERE {>stream_of_row} AND o.{sequence_number} > ? AND o.{sequence_number} <= ? AND o.{seq} + 0 > ? AND o.{seq} + 0 <= ?
   AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', o.{created_at}) > ? AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', o.{created_at}) <= ?
   AND (? IS NULL OR o.{event_type} = CONVERT(? USING utf8mb4))

-- name: stream_forward
{>stream_window} ORDER BY o.{sequence_number} LIMIT ?

-- name: stream_backward
{>stream_window} ORDER BY o.{sequence_number} DESC LIMIT ?

-- name: streams_recent
-- The last event of each stream of a target up to a position, at most so many: a row is the last of its stream if there is no next version.
SELECT {>event_columns} FROM {outbox} AS o
 WHERE o.{target} = CONVERT(? USING utf8mb4) AND o.{seq} <= ? AND o.{sequence_number} > 0 AND o.{aggregate_id} IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM {outbox} AS n WHERE n.{target} = o.{target} AND n.{aggregate_type} = o.{aggregate_type}
                    AND n.{aggregate_id} = o.{aggregate_id} AND n.{sequence_number} > o.{sequence_number})
   AND NOT EXISTS (SELECT 1 FROM {fn:streams} AS s WHERE s.target = o.{target} AND s.aggregate_type = o.{aggregate_type}
                    AND s.aggregate_id = o.{aggregate_id} AND s.end_state > 0)
 ORDER BY o.{seq} DESC LIMIT ?

-- name: log_end
SELECT COALESCE(MAX(o.{seq}), 0) FROM {outbox} AS o

-- name: log_window
-- Positions, the target, the category twice (or NULL), times in us, the type of the events twice (or NULL), the correlation twice (or NULL),
-- 1: also what ended.
SELECT {>event_columns} FROM {outbox} AS o FORCE INDEX (PRIMARY)
 WHERE o.{seq} > ? AND o.{seq} <= ? AND o.{target} = CONVERT(? USING utf8mb4) AND o.{sequence_number} > 0 AND o.{aggregate_id} IS NOT NULL
   AND (? IS NULL OR o.{aggregate_type} = CONVERT(? USING utf8mb4))
   AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', o.{created_at}) > ? AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', o.{created_at}) <= ?
   AND (? IS NULL OR o.{event_type} = CONVERT(? USING utf8mb4))
   AND (? IS NULL OR {?correlation_id}o.{correlation_id}{/}{!correlation_id}NULL{/} = CONVERT(? USING utf8mb4))
   AND (? = 1 OR NOT EXISTS (SELECT 1 FROM {fn:streams} AS s WHERE s.target = o.{target} AND s.aggregate_type = o.{aggregate_type}
                              AND s.aggregate_id = o.{aggregate_id} AND (s.end_state > 0 OR s.first_version > o.{sequence_number})))

-- name: log_forward
{>log_window} ORDER BY o.{seq} LIMIT ?

-- name: log_backward
{>log_window} ORDER BY o.{seq} DESC LIMIT ?

-- name: snapshot_find
-- The stream and the highest version.
SELECT s.version, s.revision, s.state FROM {fn:snapshots} AS s WHERE {>stream_ended} AND s.version <= ?

-- name: snapshot_keep
-- version comes last: the others are compared with the old one.
INSERT INTO {fn:snapshots} (target, aggregate_type, aggregate_id, version, revision, state)
VALUES (CONVERT(? USING utf8mb4), CONVERT(? USING utf8mb4), CONVERT(? USING utf8mb4), ?, ?, CONVERT(? USING utf8mb4))
    ON DUPLICATE KEY UPDATE state = IF(VALUES(version) >= version, VALUES(state), state),
       revision = IF(VALUES(version) >= version, VALUES(revision), revision), version = GREATEST(version, VALUES(version))

-- name: snapshot_forget
DELETE FROM {fn:snapshots} WHERE target = CONVERT(? USING utf8mb4) AND aggregate_type = CONVERT(? USING utf8mb4) AND aggregate_id = CONVERT(? USING utf8mb4)

-- name: key_find
-- A locking read: it shows the key that another transaction has made meanwhile, whatever the snapshot.
SELECT key_id, master_id, wrapped, subject FROM {fn:keys} WHERE subject = CONVERT(? USING utf8mb4) LOCK IN SHARE MODE

-- name: key_keep
-- One that is there stays.
INSERT IGNORE INTO {fn:keys} (subject, key_id, master_id, wrapped)
VALUES (CONVERT(? USING utf8mb4), CONVERT(? USING utf8mb4), CONVERT(? USING utf8mb4), CONVERT(? USING utf8mb4))

-- name: key_rewrap
UPDATE {fn:keys} SET master_id = CONVERT(? USING utf8mb4), wrapped = CONVERT(? USING utf8mb4)
 WHERE subject = CONVERT(? USING utf8mb4) AND key_id = CONVERT(? USING utf8mb4)

-- name: key_list
-- Those after a subject that another master key wraps, at most so many.
SELECT key_id, master_id, wrapped, subject FROM {fn:keys} WHERE subject > CONVERT(? USING utf8mb4) AND master_id <> CONVERT(? USING utf8mb4) ORDER BY subject LIMIT ?

-- name: key_forget
DELETE FROM {fn:keys} WHERE subject = CONVERT(? USING utf8mb4)
