-- A log that is partitioned by seq: each partition holds a range of numbers, and pmax those above all of them, so that an
-- insert is never refused. Retention drops whole ones.

-- name: parts_outbox
-- A unique key would have to hold seq. This one only finds a row by its id; it is called as it is in a plain log.
CREATE TABLE IF NOT EXISTS {outbox} (
{>log_columns},
  KEY {name:uniq_id} ({id}, {target})
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation}
PARTITION BY RANGE ({seq}) (
  PARTITION `p0` VALUES LESS THAN ({=part_1}),
  PARTITION `p{=part_1}` VALUES LESS THAN ({=part_2}),
  PARTITION `p{=part_2}` VALUES LESS THAN ({=part_3}),
  PARTITION `p{=part_3}` VALUES LESS THAN ({=part_4}),
  PARTITION `pmax` VALUES LESS THAN MAXVALUE);

-- name: parts_meta
INSERT INTO {meta} (name, value) VALUES ('partition_rows', {=part_1}) ON DUPLICATE KEY UPDATE value = {=part_1};

-- name: add_key_id
ALTER TABLE {outbox} ADD KEY {name:uniq_id} ({id}, {target});

-- name: parts_list
-- No row, or one without a name: the table is not partitioned.
SELECT PARTITION_NAME, PARTITION_METHOD, PARTITION_EXPRESSION, PARTITION_DESCRIPTION, SUBPARTITION_NAME
  FROM information_schema.PARTITIONS
 WHERE TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND TABLE_NAME = :table AND PARTITION_NAME IS NOT NULL
 ORDER BY PARTITION_ORDINAL_POSITION

-- name: part_excepted
SELECT 1 FROM {exceptions} AS e FORCE INDEX (PRIMARY)
 WHERE e.reader = :reader AND e.partition_no IN (:numbers) AND e.seq >= :low AND e.seq < :high LIMIT 1

-- name: part_above
-- Is there a row from :high on? The server numbers on from what it finds in the table: of the numbers that were handed out, the
-- highest must not go with a partition.
SELECT 1 FROM {outbox} AS m FORCE INDEX (PRIMARY) WHERE m.{seq} >= :high LIMIT 1

-- name: part_count
-- Rows, and those that nobody reads. The key of ids has all that is asked.
SELECT COUNT(*), COALESCE(SUM(m.{target} NOT IN (SELECT r.target FROM {readers} AS r)), 0)
  FROM {outbox} PARTITION (:partition) AS m FORCE INDEX ({name:uniq_id})

-- name: part_wait
-- As short as both servers can.
SET SESSION lock_wait_timeout = 1

-- name: part_lock
-- An ALTER notes the counter before it has the table for itself. When it copies rows that were inserted meanwhile, MariaDB
-- numbers on from the note, and every insert fails. So the table is locked before.
LOCK TABLES {outbox} WRITE

-- name: part_drop
ALTER TABLE {outbox} DROP PARTITION :partition

-- name: part_add
-- pmax is mostly empty; its rows are copied.
ALTER TABLE {outbox} REORGANIZE PARTITION `pmax` INTO (:partitions)

-- name: retain_rest
-- As retain_candidates, of what lies above all partitions.
SELECT STRAIGHT_JOIN m.{seq} FROM {outbox} PARTITION (`pmax`) AS m FORCE INDEX (PRIMARY)
 WHERE m.{seq} <= :pos AND m.{target} IN (SELECT r.target FROM {readers} AS r)
   AND NOT EXISTS (SELECT 1 FROM {readers} AS r
     STRAIGHT_JOIN {exceptions} AS e ON e.reader = r.name AND e.partition_no = m.{partition_no} AND e.seq = m.{seq})
 ORDER BY m.{seq} LIMIT :limit
