-- The consumer's side: what was handled, who consumes, how far, and what is parked.

-- name: inbox
-- One row for each message that a consumer has handled. The primary key decides which of two deliveries is new: the second waits
-- until the transaction of the first has ended.
CREATE TABLE IF NOT EXISTS {fn:inbox} (
  consumer text NOT NULL CHECK (consumer <> '' AND length(consumer) <= 250),
  id text NOT NULL CHECK (id <> '' AND length(id) <= 255),
  handled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (consumer, id)
);
CREATE INDEX IF NOT EXISTS {name:inbox_age} ON {fn:inbox} USING brin (handled_at);
-- Who consumes. Every write of a consumer checks its epoch.
CREATE TABLE IF NOT EXISTS {fn:consumers} (
  name text PRIMARY KEY,
  source text NOT NULL,
  owner uuid,
  epoch bigint NOT NULL DEFAULT 0,
  lease_until timestamptz NOT NULL DEFAULT 'epoch',
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  handled bigint NOT NULL DEFAULT 0,
  duplicates bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  lag_messages bigint,
  oldest_us bigint
);
-- Processes that consume, and what they tell of themselves: JSON.
CREATE TABLE IF NOT EXISTS {fn:consumer_members} (
  consumer text NOT NULL,
  id uuid NOT NULL,
  hostname text NOT NULL,
  pid integer NOT NULL,
  started_at timestamptz NOT NULL,
  heartbeat_until timestamptz NOT NULL,
  state text NOT NULL,
  PRIMARY KEY (consumer, id)
);
-- How far a consumer with `dedup: position` is, in each part of its source.
CREATE TABLE IF NOT EXISTS {fn:positions} (
  consumer text NOT NULL,
  source text NOT NULL,
  part text NOT NULL,
  position text NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (consumer, source, part)
);
-- A message that failed, and what came after it with the same key. n is the order; the lowest of a queue is its head, and only a head
-- is ever due.
CREATE TABLE IF NOT EXISTS {fn:parked} (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  consumer text NOT NULL,
  mark text NOT NULL,
  queue text,
  id text,
  event_type text,
  state smallint NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  due timestamptz,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  place text NOT NULL,
  reason text,
  message text NOT NULL,
  UNIQUE (consumer, mark)
);
CREATE INDEX IF NOT EXISTS {name:parked_due} ON {fn:parked} (consumer, due) WHERE due IS NOT NULL;
CREATE INDEX IF NOT EXISTS {name:parked_queue} ON {fn:parked} (consumer, queue, n);
-- In your own transaction: SELECT outbox_inbox('billing', :id). True: new, handle it; false: seen, pass it over.
CREATE OR REPLACE FUNCTION {fn:inbox}(consumer text, id text) RETURNS boolean LANGUAGE plpgsql AS $inbox$
BEGIN
  IF $1 IS NULL OR $2 IS NULL THEN
    RAISE EXCEPTION 'outbox_inbox needs the name of a consumer and the id of a message' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  INSERT INTO {fn:inbox} VALUES ($1, $2) ON CONFLICT DO NOTHING;
  RETURN FOUND;
END
$inbox$;
CREATE OR REPLACE FUNCTION {fn:inbox}(consumer text, id uuid) RETURNS boolean LANGUAGE sql AS $inbox$
  SELECT {fn:inbox}($1, $2::text)
$inbox$;

-- name: inbox_there
-- Asked first: a query of a table that is not there would stand in the server's log.
SELECT (to_regclass('{fn:consumer_members}') IS NOT NULL)::int

-- name: inbox_push
-- $1 consumer, $2 id
INSERT INTO {fn:inbox} (consumer, id) VALUES ($1, $2) ON CONFLICT DO NOTHING

-- name: inbox_add
INSERT INTO {fn:inbox} (consumer, id) VALUES (:consumer, :id) ON CONFLICT DO NOTHING

-- name: inbox_purge
DELETE FROM {fn:inbox} WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM {fn:inbox} WHERE handled_at < clock_timestamp() - :age::bigint * interval '1 microsecond' LIMIT :limit::bigint))

-- name: consumer_make
INSERT INTO {fn:consumers} (name, source) VALUES (:consumer, :source) ON CONFLICT (name) DO UPDATE SET source = excluded.source
 WHERE {fn:consumers}.source <> excluded.source

-- name: consumer_take
UPDATE {fn:consumers} SET owner = :owner::uuid, epoch = epoch + CASE WHEN owner = :owner::uuid AND lease_until > clock_timestamp() THEN 0 ELSE 1 END,
       lease_until = clock_timestamp() + :ttl::bigint * interval '1 microsecond', updated_at = clock_timestamp()
 WHERE name = :consumer AND (owner IS NULL OR owner = :owner::uuid OR lease_until <= clock_timestamp())

-- name: consumer_state
SELECT epoch, (owner = :owner::uuid)::int, (owner IS NOT NULL)::int, lease_until FROM {fn:consumers} WHERE name = :consumer

-- name: consumer_renew
UPDATE {fn:consumers} SET lease_until = clock_timestamp() + :ttl::bigint * interval '1 microsecond', updated_at = clock_timestamp(),
       handled = handled + :handled::bigint, duplicates = duplicates + :duplicates::bigint, failed = failed + :failed::bigint,
       lag_messages = :lag::bigint, oldest_us = :oldest::bigint
 WHERE name = :consumer AND owner = :owner::uuid AND epoch = :epoch::bigint

-- name: consumer_count
UPDATE {fn:consumers} SET handled = handled + :handled::bigint, duplicates = duplicates + :duplicates::bigint, failed = failed + :failed::bigint
 WHERE name = :consumer AND :handled::bigint + :duplicates::bigint + :failed::bigint > 0

-- name: member_beat
INSERT INTO {fn:consumer_members} (consumer, id, hostname, pid, started_at, heartbeat_until, state)
SELECT :consumer, :owner::uuid, :hostname, :pid::bigint, now, now + :ttl::bigint * interval '1 microsecond', :state
  FROM (SELECT clock_timestamp() AS now) AS c
    ON CONFLICT (consumer, id) DO UPDATE SET heartbeat_until = excluded.heartbeat_until, state = excluded.state

-- name: member_leave
DELETE FROM {fn:consumer_members} WHERE consumer = :consumer AND id = :owner::uuid

-- name: members_forget
-- Those that fell silent are shown for a while: their last words say why.
DELETE FROM {fn:consumer_members} WHERE consumer = :consumer AND heartbeat_until < clock_timestamp() - :age::bigint * interval '1 microsecond'

-- name: members
SELECT consumer, id, hostname, pid, started_at, heartbeat_until, (heartbeat_until > clock_timestamp())::int, state
  FROM {fn:consumer_members} WHERE :consumer::text IS NULL OR consumer = :consumer::text ORDER BY consumer, started_at, id

-- name: consumer_release
UPDATE {fn:consumers} SET owner = NULL, lease_until = 'epoch', updated_at = clock_timestamp()
 WHERE name = :consumer AND owner = :owner::uuid AND epoch = :epoch::bigint

-- name: consumer_fence
-- Whoever takes over updates the row: it waits for this transaction, or this one finds another epoch.
SELECT 1 FROM {fn:consumers} WHERE name = :consumer AND epoch = :epoch::bigint FOR SHARE

-- name: consumer_list
SELECT c.name, c.source, c.owner, c.epoch, (c.owner IS NOT NULL AND c.lease_until > clock_timestamp())::int, c.updated_at, c.handled, c.duplicates, c.failed,
       coalesce(c.lag_messages, -1), coalesce(c.oldest_us, -1),
       count(p.n), count(p.n) FILTER (WHERE p.state >= 2), min(p.since), clock_timestamp()
  FROM {fn:consumers} AS c LEFT JOIN {fn:parked} AS p ON p.consumer = c.name
 WHERE :consumer::text IS NULL OR c.name = :consumer::text
 GROUP BY c.name ORDER BY c.name

-- name: positions
SELECT part, position FROM {fn:positions} WHERE consumer = :consumer AND source = :source

-- name: position_set
INSERT INTO {fn:positions} (consumer, source, part, position) VALUES (:consumer, :source, :part, :position)
    ON CONFLICT (consumer, source, part) DO UPDATE SET position = excluded.position, updated_at = clock_timestamp()

-- name: park
INSERT INTO {fn:parked} (consumer, mark, queue, id, event_type, state, attempts, due, place, reason, message)
VALUES (:consumer, :mark, :queue, :id, :event_type, :state::bigint::smallint, :attempts::bigint::integer,
        clock_timestamp() + :delay::bigint * interval '1 microsecond', :place, :reason, :message)
    ON CONFLICT (consumer, mark) DO NOTHING

-- name: parked_keys
SELECT queue, count(*) FROM {fn:parked} WHERE consumer = :consumer AND queue IS NOT NULL AND state < 3 GROUP BY queue

-- name: parked_count
SELECT count(*), count(*) FILTER (WHERE state >= 2), min(since) FROM {fn:parked} WHERE consumer = :consumer

-- name: parked_columns
p.n, p.queue, p.id, p.event_type, p.state, p.attempts, p.due, p.since, p.place, p.reason, p.message, p.consumer,
  (p.state = 1 OR EXISTS (SELECT 1 FROM {fn:parked} AS b WHERE b.consumer = p.consumer AND b.queue = p.queue AND b.n < p.n AND b.state < 3))::int

-- name: parked_due
SELECT {>parked_columns} FROM {fn:parked} AS p WHERE p.consumer = :consumer AND p.due <= clock_timestamp() ORDER BY p.due, p.n LIMIT :limit::bigint

-- name: parked_wait
SELECT greatest(extract(epoch FROM min(due) - clock_timestamp()) * 1000, 0)::bigint FROM {fn:parked} WHERE consumer = :consumer AND due IS NOT NULL

-- name: parked_list
SELECT {>parked_columns} FROM {fn:parked} AS p
 WHERE (:consumer::text IS NULL OR p.consumer = :consumer::text) AND (:id::text IS NULL OR p.id = :id::text OR p.mark = :id::text)
   AND (:queue::text IS NULL OR p.queue = :queue::text) AND (:state::bigint < 0 OR p.state = :state::bigint)
   AND p.n > :after::bigint AND (:error::text IS NULL OR position(:error::text IN coalesce(p.reason, '')) > 0)
 ORDER BY p.n LIMIT :limit::bigint

-- name: parked_lock
-- One verb, or one outcome, at a time.
SELECT 1 FROM {fn:consumers} WHERE name = :consumer FOR UPDATE

-- name: parked_state
SELECT p.state, p.queue, EXISTS (SELECT 1 FROM {fn:parked} AS b WHERE b.consumer = p.consumer AND b.queue = p.queue AND b.n < p.n AND b.state < 3)::int
  FROM {fn:parked} AS p WHERE p.n = :n::bigint AND p.consumer = :consumer

-- name: parked_set
UPDATE {fn:parked} SET state = :state::bigint::smallint, attempts = :attempts::bigint::integer, due = clock_timestamp() + :delay::bigint * interval '1 microsecond',
       reason = coalesce(:reason::text, reason)
 WHERE n = :n::bigint AND consumer = :consumer

-- name: parked_unqueue
UPDATE {fn:parked} SET queue = NULL WHERE n = :n::bigint AND consumer = :consumer

-- name: parked_remove
DELETE FROM {fn:parked} WHERE n = :n::bigint AND consumer = :consumer

-- name: parked_promote
-- The new head of the queue is due.
UPDATE {fn:parked} SET state = 0, due = clock_timestamp()
 WHERE n = (SELECT min(n) FROM {fn:parked} WHERE consumer = :consumer AND queue = :queue AND state < 3) AND state = 1
