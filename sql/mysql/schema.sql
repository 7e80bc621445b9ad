-- The outbox on MySQL 8 and MariaDB. Times are UTC in DATETIME(6); ids are the 16 bytes of a
-- UUID (or its text). Nothing here needs our library: a plain INSERT of aggregate_type,
-- event_type and payload is a message.
--
-- Column types are those that a reader of the binary log can decode: no CHAR, BINARY, UUID, ENUM,
-- SET. Texts compare byte by byte, and 'a' is not 'a ': that collation is called
-- utf8mb4_nopad_bin on MariaDB and utf8mb4_0900_bin on MySQL, so both stand there, each in
-- a comment that only that server reads.
--
-- MySQL commits with every CREATE and ALTER, so setup cannot be one transaction. Each step
-- may be repeated; meta comes first with version 0, the version is written last.

-- name: meta
CREATE TABLE IF NOT EXISTS {meta} (
  name VARCHAR(64) NOT NULL PRIMARY KEY,
  value BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: meta_rows
INSERT IGNORE INTO {meta} (name, value) VALUES ('schema_version', 0), ('partition_count', {=partition_count});

-- name: collation
/*!80017 COLLATE=utf8mb4_0900_bin */ /*M! COLLATE=utf8mb4_nopad_bin */

-- name: partition_of
-- The lane (priority 0, above, below) and the hash of the key; a message without a key is spread by its id.
(CASE WHEN {priority} > 0 THEN 1 WHEN {priority} < 0 THEN 2 ELSE 0 END) * {=partition_count} + CRC32(COALESCE({ordering_key}, {id})) MOD {=partition_count}

-- name: log_columns
-- Rows are inserted by the application and never change. The server numbers them itself, without a cache,
-- and never twice. ordering_key and partition_no are computed for every writer. They are stored: both
-- servers had bugs with indexes on virtual columns.
-- The default of id is a UUID version 7. It calls SHA2: a MySQL without MD5 and SHA1 (9.6 and later) crashes
-- when it upgrades a table whose defaults call these.
-- MariaDB's JSON_VALID refuses documents nested deeper than 32 levels, MySQL's than 100.
  {seq} BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  {?+string_id}{id} VARCHAR(36) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL DEFAULT (UUID()) CHECK ({id} REGEXP '^[0-9a-fA-F]{{8}(-[0-9a-fA-F]{{4}){{3}-[0-9a-fA-F]{{12}$'),{/}
  {!+string_id}{id} VARBINARY(16) NOT NULL DEFAULT (UNHEX(CONCAT(
    LPAD(HEX(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) DIV 1000), 12, '0'),
    '7', SUBSTR(SHA2(UUID(), 256), 1, 3), SUBSTR('89ab', 1 + FLOOR(RAND() * 4), 1), SUBSTR(SHA2(UUID(), 256), 5, 15)))) CHECK (OCTET_LENGTH({id}) = 16),{/}
  {aggregate_type} VARCHAR(255) NOT NULL CHECK ({aggregate_type} <> ''),
  {aggregate_id} VARCHAR(255),
  {event_type} VARCHAR(255) NOT NULL CHECK ({event_type} <> ''),
  {?revision}{revision} INT NOT NULL DEFAULT 1,{/}
  {?sequence_number}{sequence_number} BIGINT,{/}
  {?+binary_payload}{payload} LONGBLOB,{/}
  {!+binary_payload}{payload} LONGTEXT CHECK (JSON_VALID({payload})),{/}
  {?headers}{headers} LONGTEXT CHECK (JSON_VALID({headers})),{/}
  {?snapshot}{snapshot} LONGTEXT CHECK (JSON_VALID({snapshot})),{/}
  {?correlation_id}{correlation_id} VARCHAR(255),{/}
  {?causation_id}{causation_id} VARCHAR(255),{/}
  {?partition_key}{partition_key} VARCHAR(255),{/}
  {priority} SMALLINT NOT NULL DEFAULT 0,
  {target} VARCHAR(255) NOT NULL DEFAULT 'default',
  {?occurred_at}{occurred_at} DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),{/}
  {created_at} DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  {available_at} DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00',
  {ordering_key} VARCHAR(511) GENERATED ALWAYS AS (COALESCE({partition_key|NULL}, CONCAT({aggregate_type}, ':', {aggregate_id}))) STORED,
  {partition_no} SMALLINT GENERATED ALWAYS AS ({>partition_of}) STORED

-- name: outbox
CREATE TABLE IF NOT EXISTS {outbox} (
{>log_columns},
  UNIQUE KEY {name:uniq_id} ({id}, {target})
  {?sequence_number}, UNIQUE KEY {name:uniq_aggregate_sequence} ({target}, {aggregate_type}, {aggregate_id}, {sequence_number}){/}
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: add_uniq_id
ALTER TABLE {outbox} ADD UNIQUE KEY {name:uniq_id} ({id}, {target});

-- name: add_uniq_aggregate_sequence
ALTER TABLE {outbox} {?sequence_number}ADD UNIQUE KEY {name:uniq_aggregate_sequence} ({target}, {aggregate_type}, {aggregate_id}, {sequence_number}){/};

-- name: readers_table
-- A reader's name has 250 characters: with them the longest index entry of {exceptions} still fits.
CREATE TABLE IF NOT EXISTS {readers} (
  name VARCHAR(250) NOT NULL PRIMARY KEY,
  target VARCHAR(255) NOT NULL,
  filter VARCHAR(1024) NOT NULL DEFAULT '',
  temporary TINYINT NOT NULL DEFAULT 0,
  created_at DATETIME(6) NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: batches_table
-- The journal: inserted, pruned, never updated. Its primary key is the fence. seen is the gap list,
-- "7,12-15": numbers up to pos that were not there when the reader passed; NULL is none.
CREATE TABLE IF NOT EXISTS {batches} (
  reader VARCHAR(250) NOT NULL,
  partition_no SMALLINT NOT NULL,
  batch BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  owner VARBINARY(16) NOT NULL,
  at DATETIME(6) NOT NULL,
  pos BIGINT NOT NULL,
  published INT NOT NULL DEFAULT 0,
  failed INT NOT NULL DEFAULT 0,
  seen MEDIUMTEXT CHARACTER SET ascii,
  PRIMARY KEY (reader, partition_no, batch)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: exceptions_table
CREATE TABLE IF NOT EXISTS {exceptions} (
  reader VARCHAR(250) NOT NULL,
  partition_no SMALLINT NOT NULL,
  seq BIGINT NOT NULL,
  state TINYINT NOT NULL,
  attempts INT NOT NULL,
  due DATETIME(6),
  queue VARCHAR(511),
  last_error VARCHAR(1024),
  since DATETIME(6) NOT NULL,
  PRIMARY KEY (reader, partition_no, seq),
  KEY {name:due} (reader, partition_no, due),
  KEY {name:queue} (reader, partition_no, queue, seq)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: workers_table
-- session: whether the worker's connection holds the session lock of its id.
CREATE TABLE IF NOT EXISTS {workers} (
  id VARBINARY(16) NOT NULL PRIMARY KEY,
  reader VARCHAR(250) NOT NULL,
  hostname VARCHAR(255) NOT NULL,
  pid INT NOT NULL,
  started_at DATETIME(6) NOT NULL,
  heartbeat_until DATETIME(6) NOT NULL,
  published BIGINT NOT NULL DEFAULT 0,
  failed BIGINT NOT NULL DEFAULT 0,
  session TINYINT NOT NULL DEFAULT 0,
  state VARCHAR(4000) NOT NULL DEFAULT ''
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: leases_table
CREATE TABLE IF NOT EXISTS {leases} (
  reader VARCHAR(250) NOT NULL,
  partition_no SMALLINT NOT NULL,
  lease_owner VARBINARY(16),
  lease_until DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00',
  lease_epoch BIGINT NOT NULL DEFAULT 0,
  updated_at DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00',
  PRIMARY KEY (reader, partition_no)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: throughput_table
-- A row of each worker: no two update the same.
CREATE TABLE IF NOT EXISTS {throughput} (
  minute DATETIME(6) NOT NULL,
  reader VARCHAR(250) NOT NULL,
  worker VARBINARY(16) NOT NULL,
  published BIGINT NOT NULL DEFAULT 0,
  failed BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (minute, reader, worker)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: add_state
-- To a table that was made before it.
ALTER TABLE {workers} ADD COLUMN state VARCHAR(4000) NOT NULL DEFAULT '';

-- name: audit_table
-- What people did. plan names one decision: a verb that runs in pieces counts up one row.
CREATE TABLE IF NOT EXISTS {audit} (
  number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  at DATETIME(6) NOT NULL,
  who VARCHAR(255) NOT NULL,
  origin VARCHAR(32) NOT NULL,
  verb VARCHAR(64) NOT NULL,
  reader VARCHAR(250) NOT NULL DEFAULT '',
  filter VARCHAR(2048) NOT NULL DEFAULT '',
  messages BIGINT NOT NULL DEFAULT 0,
  plan VARCHAR(64) NOT NULL,
  reason VARCHAR(1024) NOT NULL DEFAULT '',
  UNIQUE KEY {name:audit_plan} (plan),
  KEY {name:audit_at} (at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: messages_view
-- What every reader has of every message, for people and their tools.
CREATE OR REPLACE VIEW {fn:messages} AS
SELECT r.name AS reader, m.{seq} AS seq, m.{id} AS id, m.{aggregate_type} AS aggregate_type, m.{aggregate_id} AS aggregate_id,
       m.{event_type} AS event_type, m.{payload} AS payload, {?headers}m.{headers}{/}{!headers}NULL{/} AS headers,
       m.{ordering_key} AS ordering_key, m.{partition_no} AS partition_no, m.{priority} AS priority, m.{target} AS target,
       m.{created_at} AS created_at, m.{available_at} AS available_at,
       ELT(1 + {>view_of}, 'pending', 'delayed', 'failed', 'parked', 'dead', 'discarded', 'published') AS state,
       COALESCE(e.attempts, 0) AS attempts, e.due AS due,
       CASE WHEN {>view_of} = {=view_published} THEN {>published_at} END AS published_at, e.last_error AS last_error
  FROM {readers} AS r
  JOIN {outbox} AS m ON m.{target} = r.target
  {>exception_of_row}
  {>progress_of_row};

-- name: procedure
-- For every language: CALL outbox_push('order', '1042', 'OrderPlaced', '{{"total": 9950}', NULL, NULL)
-- in your own transaction. The last two are the headers and the target; NULL is the default.
-- One statement without BEGIN and END needs no DELIMITER in the shell.
CREATE PROCEDURE {fn:push} (
  in_aggregate_type VARCHAR(255) CHARACTER SET utf8mb4, in_aggregate_id VARCHAR(255) CHARACTER SET utf8mb4,
  in_event_type VARCHAR(255) CHARACTER SET utf8mb4,
  {?+binary_payload}in_payload LONGBLOB,{/}{!+binary_payload}in_payload LONGTEXT CHARACTER SET utf8mb4,{/}
  in_headers LONGTEXT CHARACTER SET utf8mb4, in_target VARCHAR(255) CHARACTER SET utf8mb4)
  SQL SECURITY INVOKER
INSERT INTO {outbox} ({aggregate_type}, {aggregate_id}, {event_type}, {payload}, {target}{?headers}, {headers}{/})
VALUES (in_aggregate_type, in_aggregate_id, in_event_type, in_payload, COALESCE(in_target, 'default'){?headers}, in_headers{/});

-- name: version
UPDATE {meta} SET value = {=schema_version} WHERE name = 'schema_version';

-- name: repartition
-- Which partition a row is in, for every writer; rewrites the table.
ALTER TABLE {outbox} MODIFY COLUMN {partition_no} SMALLINT GENERATED ALWAYS AS ({>partition_of}) STORED;

-- name: table_info
SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES
 WHERE TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND TABLE_NAME = :table

-- name: column_info
SELECT COLUMN_NAME, DATA_TYPE, EXTRA, GENERATION_EXPRESSION, COALESCE(COLLATION_NAME, '')
  FROM information_schema.COLUMNS
 WHERE TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND TABLE_NAME = :table

-- name: index_info
-- The columns of an index, in order.
SELECT GROUP_CONCAT(LOWER(COLUMN_NAME) ORDER BY SEQ_IN_INDEX SEPARATOR ',')
  FROM information_schema.STATISTICS
 WHERE TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND TABLE_NAME = :table AND INDEX_NAME = :index

-- name: procedure_info
SELECT 1 FROM information_schema.ROUTINES
 WHERE ROUTINE_SCHEMA = COALESCE(:schema, DATABASE()) AND ROUTINE_NAME = :name AND ROUTINE_TYPE = 'PROCEDURE'

-- name: meta_get
SELECT value FROM {meta} WHERE name = :name

-- name: meta_lock
SELECT value FROM {meta} WHERE name = :name FOR UPDATE

-- name: meta_set
UPDATE {meta} SET value = :value WHERE name = :name
