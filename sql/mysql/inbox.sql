-- The consumer's side: what was handled, who consumes, how far, and what is parked.

-- name: inbox_table
-- One row for each message that a consumer has handled. The primary key decides which of two deliveries is new: the second waits
-- until the transaction of the first has ended.
CREATE TABLE IF NOT EXISTS {fn:inbox} (
  consumer VARCHAR(250) NOT NULL,
  id VARCHAR(255) NOT NULL,
  handled_at DATETIME(6) NOT NULL,
  PRIMARY KEY (consumer, id),
  KEY {name:inbox_age} (handled_at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: consumers_table
-- Who consumes. Every write of a consumer checks its epoch.
CREATE TABLE IF NOT EXISTS {fn:consumers} (
  name VARCHAR(250) NOT NULL PRIMARY KEY,
  source VARCHAR(1024) NOT NULL,
  owner VARBINARY(16),
  epoch BIGINT NOT NULL DEFAULT 0,
  lease_until DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00',
  updated_at DATETIME(6) NOT NULL,
  handled BIGINT NOT NULL DEFAULT 0,
  duplicates BIGINT NOT NULL DEFAULT 0,
  failed BIGINT NOT NULL DEFAULT 0,
  lag_messages BIGINT,
  oldest_us BIGINT
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: members_table
-- Processes that consume, and what they tell of themselves: JSON.
CREATE TABLE IF NOT EXISTS {fn:consumer_members} (
  consumer VARCHAR(250) NOT NULL,
  id VARBINARY(16) NOT NULL,
  hostname VARCHAR(255) NOT NULL,
  pid INT NOT NULL,
  started_at DATETIME(6) NOT NULL,
  heartbeat_until DATETIME(6) NOT NULL,
  state VARCHAR(4000) NOT NULL,
  PRIMARY KEY (consumer, id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: positions_table
-- How far a consumer with `dedup: position` is, in each part of its source.
CREATE TABLE IF NOT EXISTS {fn:positions} (
  consumer VARCHAR(250) NOT NULL,
  source VARCHAR(250) NOT NULL,
  part VARCHAR(250) NOT NULL,
  position VARCHAR(64) NOT NULL,
  updated_at DATETIME(6) NOT NULL,
  PRIMARY KEY (consumer, source, part)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: parked_table
-- A message that failed, and what came after it with the same key. n is the order; the lowest of a queue is its head, and only a head
-- is ever due.
CREATE TABLE IF NOT EXISTS {fn:parked} (
  n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  consumer VARCHAR(200) NOT NULL,
  mark VARCHAR(500) NOT NULL,
  queue VARCHAR(511),
  id VARCHAR(255),
  event_type VARCHAR(255),
  state TINYINT NOT NULL,
  attempts INT NOT NULL DEFAULT 0,
  due DATETIME(6),
  since DATETIME(6) NOT NULL,
  place VARCHAR(500) NOT NULL,
  reason TEXT,
  message LONGTEXT NOT NULL,
  UNIQUE KEY {name:parked_mark} (consumer, mark),
  KEY {name:parked_due} (consumer, due),
  KEY {name:parked_queue} (consumer, queue, n)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 {>collation};

-- name: inbox_drop
DROP FUNCTION IF EXISTS {fn:inbox};

-- name: inbox_function
-- In your own transaction: SELECT outbox_inbox('billing', :id). 1: new, handle it; 0: seen, pass it over. It is declared DETERMINISTIC
-- because a server with a binary log takes no other; rows are logged, not the call.
CREATE FUNCTION {fn:inbox} (in_consumer TEXT CHARACTER SET utf8mb4, in_id TEXT CHARACTER SET utf8mb4) RETURNS TINYINT
  DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
  IF in_consumer IS NULL OR in_id IS NULL OR in_consumer = '' OR in_id = '' OR CHAR_LENGTH(in_consumer) > 250 OR CHAR_LENGTH(in_id) > 255 THEN
    SIGNAL SQLSTATE 'OB003' SET MESSAGE_TEXT = 'outbox_inbox needs the name of a consumer and the id of a message';
  END IF;
  INSERT IGNORE INTO {fn:inbox} (consumer, id, handled_at) VALUES (in_consumer, in_id, UTC_TIMESTAMP(6));
  RETURN ROW_COUNT();
END;

-- name: inbox_there

-- name: inbox_push
INSERT IGNORE INTO {fn:inbox} (consumer, id, handled_at) VALUES (CONVERT(? USING utf8mb4), CONVERT(? USING utf8mb4), UTC_TIMESTAMP(6))

-- name: inbox_add
INSERT IGNORE INTO {fn:inbox} (consumer, id, handled_at) VALUES (:consumer, :id, UTC_TIMESTAMP(6))

-- name: inbox_purge
DELETE FROM {fn:inbox} WHERE handled_at < TIMESTAMPADD(MICROSECOND, -:age, UTC_TIMESTAMP(6)) ORDER BY handled_at LIMIT :limit

-- name: consumer_make
INSERT INTO {fn:consumers} (name, source, updated_at) VALUES (:consumer, :source, UTC_TIMESTAMP(6)) ON DUPLICATE KEY UPDATE source = VALUES(source)

-- name: consumer_take
-- Assignments see those before them: the epoch comes first.
UPDATE {fn:consumers} SET epoch = epoch + IF(owner = :owner AND lease_until > UTC_TIMESTAMP(6), 0, 1), owner = :owner,
       lease_until = TIMESTAMPADD(MICROSECOND, :ttl, UTC_TIMESTAMP(6)), updated_at = UTC_TIMESTAMP(6)
 WHERE name = :consumer AND (owner IS NULL OR owner = :owner OR lease_until <= UTC_TIMESTAMP(6))

-- name: consumer_state
SELECT epoch, owner <=> :owner, owner IS NOT NULL, lease_until FROM {fn:consumers} WHERE name = :consumer

-- name: consumer_renew
UPDATE {fn:consumers} SET lease_until = TIMESTAMPADD(MICROSECOND, :ttl, UTC_TIMESTAMP(6)), updated_at = UTC_TIMESTAMP(6),
       handled = handled + :handled, duplicates = duplicates + :duplicates, failed = failed + :failed, lag_messages = :lag, oldest_us = :oldest
 WHERE name = :consumer AND owner = :owner AND epoch = :epoch

-- name: consumer_count
UPDATE {fn:consumers} SET handled = handled + :handled, duplicates = duplicates + :duplicates, failed = failed + :failed
 WHERE name = :consumer AND :handled + :duplicates + :failed > 0

-- name: member_beat
INSERT INTO {fn:consumer_members} (consumer, id, hostname, pid, started_at, heartbeat_until, state)
VALUES (:consumer, :owner, :hostname, :pid, UTC_TIMESTAMP(6), TIMESTAMPADD(MICROSECOND, :ttl, UTC_TIMESTAMP(6)), :state)
    ON DUPLICATE KEY UPDATE heartbeat_until = VALUES(heartbeat_until), state = VALUES(state)

-- name: member_leave
DELETE FROM {fn:consumer_members} WHERE consumer = :consumer AND id = :owner

-- name: members_forget
-- Those that fell silent are shown for a while: their last words say why.
DELETE FROM {fn:consumer_members} WHERE consumer = :consumer AND heartbeat_until < TIMESTAMPADD(MICROSECOND, -:age, UTC_TIMESTAMP(6))

-- name: members
SELECT consumer, id, hostname, pid, started_at, heartbeat_until, heartbeat_until > UTC_TIMESTAMP(6), state
  FROM {fn:consumer_members} WHERE :consumer IS NULL OR consumer = :consumer ORDER BY consumer, started_at, id

-- name: consumer_release
UPDATE {fn:consumers} SET owner = NULL, lease_until = '1970-01-01 00:00:00', updated_at = UTC_TIMESTAMP(6)
 WHERE name = :consumer AND owner = :owner AND epoch = :epoch

-- name: consumer_fence
-- Whoever takes over updates the row: it waits for this transaction, or this one finds another epoch.
SELECT 1 FROM {fn:consumers} WHERE name = :consumer AND epoch = :epoch LOCK IN SHARE MODE

-- name: consumer_list
SELECT c.name, c.source, c.owner, c.epoch, c.owner IS NOT NULL AND c.lease_until > UTC_TIMESTAMP(6), c.updated_at, c.handled, c.duplicates, c.failed,
       COALESCE(c.lag_messages, -1), COALESCE(c.oldest_us, -1), COUNT(p.n), COALESCE(SUM(p.state >= 2), 0), MIN(p.since), UTC_TIMESTAMP(6)
  FROM {fn:consumers} AS c LEFT JOIN {fn:parked} AS p ON p.consumer = c.name
 WHERE :consumer IS NULL OR c.name = :consumer
 GROUP BY c.name ORDER BY c.name

-- name: positions
SELECT part, position FROM {fn:positions} WHERE consumer = :consumer AND source = :source

-- name: position_set
INSERT INTO {fn:positions} (consumer, source, part, position, updated_at) VALUES (:consumer, :source, :part, :position, UTC_TIMESTAMP(6))
    ON DUPLICATE KEY UPDATE position = VALUES(position), updated_at = VALUES(updated_at)

-- name: park
INSERT INTO {fn:parked} (consumer, mark, queue, id, event_type, state, attempts, due, since, place, reason, message)
SELECT :consumer, :mark, :queue, :id, :event_type, :state, :attempts, TIMESTAMPADD(MICROSECOND, :delay, UTC_TIMESTAMP(6)), UTC_TIMESTAMP(6), :place, :reason, :message
  FROM (SELECT 1) AS one WHERE NOT EXISTS (SELECT 1 FROM {fn:parked} AS p WHERE p.consumer = :consumer AND p.mark = :mark)

-- name: parked_keys
SELECT queue, COUNT(*) FROM {fn:parked} WHERE consumer = :consumer AND queue IS NOT NULL AND state < 3 GROUP BY queue

-- name: parked_count
SELECT COUNT(*), COALESCE(SUM(state >= 2), 0), MIN(since) FROM {fn:parked} WHERE consumer = :consumer

-- name: parked_columns
p.n, p.queue, p.id, p.event_type, p.state, p.attempts, p.due, p.since, p.place, p.reason, p.message, p.consumer,
  p.state = 1 OR EXISTS (SELECT 1 FROM {fn:parked} AS b WHERE b.consumer = p.consumer AND b.queue = p.queue AND b.n < p.n AND b.state < 3)

-- name: parked_due
SELECT {>parked_columns} FROM {fn:parked} AS p WHERE p.consumer = :consumer AND p.due <= UTC_TIMESTAMP(6) ORDER BY p.due, p.n LIMIT :limit

-- name: parked_wait
SELECT GREATEST(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), MIN(due)), 0) DIV 1000 FROM {fn:parked} WHERE consumer = :consumer AND due IS NOT NULL

-- name: parked_list
SELECT {>parked_columns} FROM {fn:parked} AS p
 WHERE (:consumer IS NULL OR p.consumer = :consumer) AND (:id IS NULL OR p.id = :id OR p.mark = :id)
   AND (:queue IS NULL OR p.queue = :queue) AND (:state < 0 OR p.state = :state)
   AND p.n > :after AND (:error IS NULL OR INSTR(COALESCE(p.reason, ''), :error) > 0)
 ORDER BY p.n LIMIT :limit

-- name: parked_lock
-- One verb, or one outcome, at a time.
SELECT 1 FROM {fn:consumers} WHERE name = :consumer FOR UPDATE

-- name: parked_state
SELECT p.state, p.queue, EXISTS (SELECT 1 FROM {fn:parked} AS b WHERE b.consumer = p.consumer AND b.queue = p.queue AND b.n < p.n AND b.state < 3)
  FROM {fn:parked} AS p WHERE p.n = :n AND p.consumer = :consumer

-- name: parked_set
UPDATE {fn:parked} SET state = :state, attempts = :attempts, due = TIMESTAMPADD(MICROSECOND, :delay, UTC_TIMESTAMP(6)), reason = COALESCE(:reason, reason)
 WHERE n = :n AND consumer = :consumer

-- name: parked_unqueue
UPDATE {fn:parked} SET queue = NULL WHERE n = :n AND consumer = :consumer

-- name: parked_remove
DELETE FROM {fn:parked} WHERE n = :n AND consumer = :consumer

-- name: parked_promote
-- The new head of the queue is due.
UPDATE {fn:parked} SET state = 0, due = UTC_TIMESTAMP(6)
 WHERE n = (SELECT head.n FROM (SELECT MIN(n) AS n FROM {fn:parked} WHERE consumer = :consumer AND queue = :queue AND state < 3) AS head) AND state = 1
