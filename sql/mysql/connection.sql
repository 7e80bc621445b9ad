-- The connection itself: what our session relies on, and transactions.

-- name: session
-- Whatever the server, the user or init_connect say. completion_type 2 would end the connection
-- with every commit; sql_safe_updates refuses statements by plan. With innodb_snapshot_isolation, which MariaDB
-- has on by default from 11.6 on, a statement that waited for a lock ends with an error instead of going on.
SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION',
    time_zone = '+00:00', autocommit = 1, completion_type = 0, sql_safe_updates = 0,
    sql_select_limit = 18446744073709551615, sql_big_selects = 1, group_concat_max_len = 1048576,
    innodb_lock_wait_timeout = {=lock_seconds}, lock_wait_timeout = {=lock_seconds} /*M!110602 , innodb_snapshot_isolation = 0 */

-- name: session_limit
-- Statements that the client gave up must end on the server too. The two name it differently,
-- count differently, and MySQL limits only reading. A process that is frozen inside a transaction
-- must not keep its locks, on leases for one; MySQL has no such limit.
SET SESSION /*M! max_statement_time = {=statement_seconds}, idle_transaction_timeout = 10 */ /*!80000 max_execution_time = {=statement_seconds}000, information_schema_stats_expiry = 0 */

-- name: session_isolation
-- A lock of REPEATABLE READ also covers the gap behind the last row: it would block producers.
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE

-- name: session_reads
-- Of a connection that only looks.
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY

-- name: idle_unlimited
-- While the caller of a push reads from a slow pipe.
SET @outbox_idle = 0 /*M! , SESSION idle_transaction_timeout = 0 */

-- name: idle_limited
SET @outbox_idle = 10 /*M! , SESSION idle_transaction_timeout = 10 */

-- name: begin_write
START TRANSACTION

-- name: snapshot_isolation
-- For the next transaction only.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ

-- name: begin_snapshot
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY

-- name: probe_isolation
-- For the next statement: rows of transactions that are still open, too.
SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: time
SELECT UTC_TIMESTAMP(6)

-- name: server
-- What the promises rest on. binlog_format exists on both; log_bin says whether it matters.
SELECT VERSION(), @@GLOBAL.sql_mode, @@GLOBAL.read_only, @@GLOBAL.auto_increment_increment,
       @@GLOBAL.log_bin, @@GLOBAL.binlog_format, @@GLOBAL.innodb_read_only

-- name: cluster
-- Galera numbers rows on every node by itself.
SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'

-- name: durability
-- And whether the server returns a text of JSON_TABLE with its escapes, as MariaDB 10.11.7 does: settles send keys that way.
SELECT @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog,
       (SELECT t.x <> '"' FROM JSON_TABLE(JSON_ARRAY('"'), '$[*]' COLUMNS (x VARCHAR(9) PATH '$')) AS t)

-- name: prepared
XA RECOVER

-- name: old_transactions
-- With the right PROCESS: the age of the oldest transaction in seconds, its connection, and what is not purged yet. The table has
-- the times of the host's zone.
SELECT COALESCE(TIMESTAMPDIFF(SECOND, t.trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM')), 0), COALESCE(t.trx_mysql_thread_id, 0),
       (SELECT m.COUNT FROM information_schema.INNODB_METRICS AS m WHERE m.NAME = 'trx_rseg_history_len')
  FROM (SELECT 1) AS one
  LEFT JOIN (SELECT x.trx_started, x.trx_mysql_thread_id FROM information_schema.INNODB_TRX AS x
              WHERE x.trx_mysql_thread_id <> CONNECTION_ID() ORDER BY x.trx_started LIMIT 1) AS t ON TRUE

-- name: sees_statements_mariadb
-- An error without the right PROCESS; else not 0.
SELECT 1 + COUNT(*) FROM information_schema.INNODB_TRX

-- name: sees_statements_mysql
-- Ourselves, if the performance schema is on and this user may read it.
SELECT COUNT(*) FROM performance_schema.events_statements_current AS s
  JOIN performance_schema.threads AS h ON h.THREAD_ID = s.THREAD_ID
 WHERE h.PROCESSLIST_ID = CONNECTION_ID()

-- name: lock_name
-- Names of session locks are the server's, not the database's.
CONCAT('outbox ', :purpose, ' ', LEFT(SHA2(CONCAT(COALESCE(:schema, DATABASE()), '.', :table), 256), 32))

-- name: lock
SELECT GET_LOCK({>lock_name}, :seconds)

-- name: unlock
SELECT RELEASE_LOCK({>lock_name})
