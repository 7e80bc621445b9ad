-- The outbox on MySQL 8 and MariaDB. Times are UTC in DATETIME(6); ids are the 16 bytes of a
-- UUID (or its text). Nothing here needs our library: a plain INSERT of aggregate_type,
-- event_type and payload is a message.
--
-- Column types are those that a reader of the binary log can decode: no CHAR, BINARY, UUID, ENUM,
-- SET. Texts compare byte by byte, and 'a' is not 'a ': that collation is called
-- utf8mb4_nopad_bin on MariaDB and utf8mb4_0900_bin on MySQL, so both stand there, each in
-- a comment that only the one reads.
--
-- MySQL commits with every CREATE and ALTER, so setup cannot be one transaction. Each step
-- may be repeated; meta comes first with version 0, the version is written last.

-- name: meta
CREATE TABLE IF NOT EXISTS {meta} (
  name VARCHAR(64) NOT NULL PRIMARY KEY,
  value BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 /*!80017 COLLATE=utf8mb4_0900_bin */ /*M! COLLATE=utf8mb4_nopad_bin */;

-- name: meta_rows
INSERT IGNORE INTO {meta} (name, value) VALUES ('schema_version', 0), ('partition_count', {=partition_count});

-- name: outbox
-- The server numbers rows itself, without a cache, and never twice. ordering_key is computed for
-- every writer, and so is partition_no, the row's lane: a message without a key is spread by its
-- id. They are stored: both servers had bugs with indexes on virtual columns. The column behind
-- locked_until repeats the key of rows in trouble, and is NULL for all others, so that an index
-- finds them and publishing a message does not touch it.
-- The default of id is a UUID version 7. published_at of a dead row is when it died.
-- MariaDB's JSON_VALID refuses documents nested deeper than 32 levels, MySQL's than 100.
CREATE TABLE IF NOT EXISTS {outbox} (
  {seq} BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  {?+string_id}{id} VARCHAR(36) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL DEFAULT (UUID()) CHECK ({id} REGEXP '^[0-9a-fA-F]{{8}(-[0-9a-fA-F]{{4}){{3}-[0-9a-fA-F]{{12}$'),{/}
  {!+string_id}{id} VARBINARY(16) NOT NULL DEFAULT (UNHEX(CONCAT(
    LPAD(HEX(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) DIV 1000), 12, '0'),
    '7', SUBSTR(MD5(UUID()), 1, 3), SUBSTR('89ab', 1 + FLOOR(RAND() * 4), 1), SUBSTR(MD5(UUID()), 5, 15)))) CHECK (OCTET_LENGTH({id}) = 16),{/}
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
  {status} SMALLINT NOT NULL DEFAULT 0 CHECK ({status} BETWEEN -2 AND 3),
  {attempts} INT NOT NULL DEFAULT 0,
  {available_at} DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00',
  {published_at} DATETIME(6),
  {last_error} VARCHAR(1024),
  {claim_token} VARBINARY(16),
  {locked_by} VARCHAR(255),
  {locked_until} DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00',
  {ordering_key} VARCHAR(511) GENERATED ALWAYS AS (COALESCE({partition_key|NULL}, CONCAT({aggregate_type}, ':', {aggregate_id}))) STORED,
  {name:held_key} VARCHAR(511) GENERATED ALWAYS AS (CASE WHEN {status} IN (2, 3, -2) THEN {ordering_key} END) STORED,
  {partition_no} SMALLINT GENERATED ALWAYS AS (CRC32(COALESCE({ordering_key}, {id})) MOD {=partition_count}) STORED,
  UNIQUE KEY {name:uniq_id} ({id}, {target}),
  {?sequence_number}UNIQUE KEY {name:uniq_aggregate_sequence} ({target}, {aggregate_type}, {aggregate_id}, {sequence_number}),{/}
  KEY {name:ready} ({target}, {status}, {partition_no}, {priority} DESC, {seq}, {available_at}, {locked_until}, {claim_token}),
  KEY {name:keys} ({target}, {name:held_key}),
  KEY {name:finished} ({target}, {status}, {published_at})
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 /*!80017 COLLATE=utf8mb4_0900_bin */ /*M! COLLATE=utf8mb4_nopad_bin */;

-- name: add_ready
-- The waiting rows of a lane stand together, in the order of sending; finished ones are elsewhere
-- in it. With the last three columns the index alone tells who is due and not claimed.
-- MariaDB before 10.8 reads DESC and ignores it: there a fetch sorts the lane's waiting rows.
ALTER TABLE {outbox} ADD KEY {name:ready} ({target}, {status}, {partition_no}, {priority} DESC, {seq}, {available_at}, {locked_until}, {claim_token});

-- name: add_keys
-- Who holds a key, and who waits behind.
ALTER TABLE {outbox} ADD KEY {name:keys} ({target}, {name:held_key});

-- name: add_finished
-- By age, for cleaning up.
ALTER TABLE {outbox} ADD KEY {name:finished} ({target}, {status}, {published_at});

-- name: add_uniq_id
ALTER TABLE {outbox} ADD UNIQUE KEY {name:uniq_id} ({id}, {target});

-- name: add_uniq_aggregate_sequence
ALTER TABLE {outbox} {?sequence_number}ADD UNIQUE KEY {name:uniq_aggregate_sequence} ({target}, {aggregate_type}, {aggregate_id}, {sequence_number}){/};

-- name: workers_table
CREATE TABLE IF NOT EXISTS {workers} (
  id VARBINARY(16) NOT NULL PRIMARY KEY,
  target VARCHAR(255) NOT NULL,
  hostname VARCHAR(255) NOT NULL,
  pid INT NOT NULL,
  started_at DATETIME(6) NOT NULL,
  heartbeat_until DATETIME(6) NOT NULL,
  published BIGINT NOT NULL DEFAULT 0,
  failed BIGINT NOT NULL DEFAULT 0
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 /*!80017 COLLATE=utf8mb4_0900_bin */ /*M! COLLATE=utf8mb4_nopad_bin */;

-- name: partitions_table
CREATE TABLE IF NOT EXISTS {partitions} (
  target VARCHAR(255) NOT NULL,
  partition_no SMALLINT NOT NULL,
  lease_owner VARBINARY(16),
  lease_until DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00',
  lease_epoch BIGINT NOT NULL DEFAULT 0,
  updated_at DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00',
  PRIMARY KEY (target, partition_no)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 /*!80017 COLLATE=utf8mb4_0900_bin */ /*M! COLLATE=utf8mb4_nopad_bin */;

-- name: throughput_table
CREATE TABLE IF NOT EXISTS {throughput} (
  minute DATETIME(6) NOT NULL,
  target VARCHAR(255) NOT NULL,
  published BIGINT NOT NULL DEFAULT 0,
  failed BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (minute, target)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 /*!80017 COLLATE=utf8mb4_0900_bin */ /*M! COLLATE=utf8mb4_nopad_bin */;

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
ALTER TABLE {outbox} MODIFY COLUMN {partition_no} SMALLINT GENERATED ALWAYS AS (CRC32(COALESCE({ordering_key}, {id})) MOD {=partition_count}) STORED;

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

-- name: lock_leases
-- All of them, for as long as a resize takes.
SELECT partition_no FROM {partitions} ORDER BY target, partition_no FOR UPDATE

-- name: any_lease
SELECT EXISTS (SELECT 1 FROM {partitions} WHERE lease_owner IS NOT NULL AND lease_until > UTC_TIMESTAMP(6))

-- name: free_leases
UPDATE {partitions} SET lease_owner = NULL, lease_until = '1970-01-01 00:00:00',
       lease_epoch = lease_epoch + 1, updated_at = UTC_TIMESTAMP(6)

-- name: moved
-- After a resize: what held a row by partition may stand in another one now. A plain read: the
-- scan of an UPDATE would wait for every producer whose transaction is open.
SELECT m.{seq} FROM {outbox} AS m
 WHERE m.{status} = 3 AND NOT EXISTS (
       SELECT 1 FROM {outbox} AS h
        WHERE h.{target} = m.{target} AND h.{name:held_key} = m.{name:held_key} AND h.{status} IN (2, -2))
 ORDER BY m.{seq}

-- name: rows_unpark
UPDATE {outbox} FORCE INDEX (PRIMARY) SET {status} = 0 WHERE {seq} IN (:seqs*) AND {status} = 3
