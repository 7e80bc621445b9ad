-- The connection itself. Settings are made for each transaction and end with it, so
-- that nothing depends on whose connection a pooler hands out. On a connection that is ours
-- alone, those of what runs all the time are made once.

-- name: begin
-- READ WRITE: a standby refuses, also to read; nothing may be sent from there.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE

-- name: begin_read
-- Of a connection that only looks.
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY

-- name: begin_snapshot
-- All statements see the same.
BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE

-- name: pins
-- Whatever the server, the database or the role sets. $1 search_path, $2 statement_timeout,
-- $3 lock_timeout, $4 synchronous_commit, $5 idle_in_transaction_session_timeout,
-- $6 plan_cache_mode, $7 whether they end with the transaction. row_security off: a policy that hides
-- rows is an error. Without sorts (where an order can be had otherwise) rows are read by the index that has it. The last two are for statements that are sent without a BEGIN: all
-- see the same, and may write.
SELECT set_config('search_path', $1, "#t"), set_config('statement_timeout', $2, "#t"),
       set_config('lock_timeout', $3, "#t"), set_config('synchronous_commit', $4, "#t"),
       set_config('idle_in_transaction_session_timeout', $5, "#t"),
       set_config('TimeZone', 'UTC', "#t"), set_config('DateStyle', 'ISO', "#t"),
       set_config('standard_conforming_strings', 'on', "#t"), set_config('transform_null_equals', 'off', "#t"),
       set_config('row_security', 'off', "#t"), set_config('jit', 'off', "#t"),
       set_config('enable_seqscan', 'off', "#t"), set_config('enable_indexscan', 'on', "#t"),
       set_config('enable_bitmapscan', 'off', "#t"), set_config('enable_sort', 'off', "#t"),
       set_config('enable_hashjoin', 'off', "#t"), set_config('enable_mergejoin', 'off', "#t"), set_config('max_parallel_workers_per_gather', '0', "#t"), set_config('plan_cache_mode', $6, "#t"),
       set_config('default_transaction_isolation', 'repeatable read', "#t"), set_config('default_transaction_read_only', 'off', "#t")
  FROM (SELECT $7::bigint = 1) AS x ("#t")

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: hello
-- What a new connection must know. The schemas of its own search_path, without those of the system.
SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int8, pg_catalog.pg_backend_pid()::pg_catalog.int8,
       coalesce((SELECT pg_catalog.string_agg(pg_catalog.quote_ident(n), ', ')
                   FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) AS n WHERE n <> 'pg_catalog'), ''),
       pg_catalog.current_setting('server_encoding'), pg_catalog.current_setting('server_version'),
       pg_catalog.current_database()::pg_catalog.text, pg_catalog.current_setting('default_transaction_isolation')

-- name: listen
-- The channel has the name of the table.
LISTEN {bare}

-- name: notify
-- To ourselves, to see whether it arrives.
SELECT pg_notify($1, $2)

-- name: ping
SELECT 1

-- name: diagnose
-- reset_val: of the user and the database, not what a transaction of ours has set. Ages in seconds.
SELECT current_setting('fsync'), (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
       current_setting('full_page_writes'),
       (SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()),
       (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(prepared))::bigint, 0) FROM pg_prepared_xacts WHERE database = current_database()),
       coalesce(extract(epoch FROM clock_timestamp() - a.xact_start)::bigint, 0), coalesce(a.pid, 0)::bigint, a.state,
       (SELECT count(*) FROM pg_stat_activity AS h
         WHERE h.datname = current_database() AND h.backend_type IS NULL)
  FROM (SELECT 1) AS one
  LEFT JOIN (SELECT s.xact_start, s.pid, s.state FROM pg_stat_activity AS s
              WHERE s.datname = current_database() AND s.backend_type = 'client backend' AND s.pid <> pg_backend_pid() AND s.xact_start IS NOT NULL
              ORDER BY s.xact_start LIMIT 1) AS a ON true

-- name: diagnose_tables
-- Our tables, of a partitioned log its partitions: rows and vacuum as the statistics have them, -1 for never.
SELECT c.relname::text, coalesce(s.n_live_tup, 0), coalesce(s.n_dead_tup, 0),
       coalesce(extract(epoch FROM clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum))::bigint, -1),
       age(c.relfrozenxid)::bigint, current_setting('autovacuum_freeze_max_age')::bigint
  FROM (SELECT to_regclass(n)::oid AS oid
          FROM unnest(ARRAY['{outbox}', '{readers}', '{batches}', '{exceptions}', '{leases}', '{workers}', '{throughput}', '{audit}']) AS n) AS t
  JOIN pg_class AS c ON c.oid = t.oid OR c.oid IN (SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = t.oid)
  LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid
 WHERE c.relkind = 'r'
