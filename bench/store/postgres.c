/* SPDX-License-Identifier: MIT */
/* A private PostgreSQL with the settings of a small real one: fsync and full pages on. */
#include "bench/fatal.h"
#include "bench/store/sql_postgres.h"
#include "bench/store/store.h"

#include "pg_server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct postgres {
	struct pg_server server;
	PGconn *conn, *writer, *snapshot;
};

static const char *const settings[] = {
	"fsync=on",
	"full_page_writes=on",
	"synchronous_commit=on",
	"shared_buffers=512MB",
	/* No checkpoint falls into a drain, which would then write whole pages that others do not.
	 */
	"max_wal_size=32GB",
	"checkpoint_timeout=60min",
	/* Nor a vacuum of what was loaded, or of what the one before left. */
	"autovacuum_naptime=60min",
	"maintenance_work_mem=256MB",
	NULL,
};

static bool postgres_start(struct bench_store *store)
{
	struct postgres *pg = bench_need(calloc(1, sizeof(*pg)));

	store->impl = pg;
	if (!pg_server_start(&pg->server, settings)) {
		(void)snprintf(store->reason, sizeof(store->reason), "%s", pg->server.reason);
		return false;
	}
	store->pid = pg->server.pid;
	pg_server_url(&pg->server, "postgres", "postgres", store->url);
	return true;
}

static void postgres_connect(struct bench_store *store)
{
	struct postgres *pg = store->impl;

	pg->conn = bench_pg_connect(store->url);
	bench_pg_do(pg->conn, "SET client_min_messages = warning");
}

static void postgres_stop(struct bench_store *store)
{
	struct postgres *pg = store->impl;

	PQfinish(pg->conn);
	PQfinish(pg->writer);
	PQfinish(pg->snapshot);
	pg_server_stop(&pg->server);
	free(pg);
}

static void postgres_run(struct bench_store *store, const char *sql)
{
	struct postgres *pg = store->impl;

	bench_pg_do(pg->conn, sql);
}

static uint64_t postgres_number(struct bench_store *store, const char *sql)
{
	struct postgres *pg = store->impl;

	return bench_pg_number(pg->conn, sql);
}

static void postgres_empty(struct bench_store *store, const char *table)
{
	char sql[128];

	(void)snprintf(sql, sizeof(sql), "TRUNCATE TABLE %s RESTART IDENTITY", table);
	postgres_run(store, sql);
}

/* The checkpoint comes before the rows: pages written in the same stretch of the log as the rows,
 * as in life. */
static void postgres_calm(struct bench_store *store)
{
	postgres_run(store, "CHECKPOINT");
}

/* Ids that grow, as those of version 7 do. Large payloads are made of digits that do not compress.
 */
static void postgres_load(struct bench_store *store, const struct bench_load *load)
{
	char sql[1024], key[64] = "i::text";

	if (load->keys)
		(void)snprintf(key, sizeof(key), "(i %% %" PRIu64 ")::text", load->keys);
	(void)snprintf(
		sql, sizeof(sql),
		"INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) "
		"SELECT ('0190' || lpad(to_hex(i), 8, '0') || '70008000' || lpad(to_hex(i), 12, "
		"'0'))::uuid, "
		"'order', %s, 'OrderPlaced', ('{\"order\": ' || i || ', \"note\": \"' || p.pad || "
		"'\"}')::json "
		"FROM (SELECT left(string_agg(md5(n::text), ''), %zu) AS pad FROM "
		"generate_series(1, %zu) "
		"AS n) AS p, generate_series(%" PRIu64 "::bigint, %" PRIu64 "::bigint) AS i",
		key, load->payload_size, load->payload_size / 32 + 1, store->rows + 1,
		store->rows + load->count);
	postgres_run(store, sql);
	store->rows += load->count;
	postgres_run(store, "ANALYZE outbox");
}

static uint64_t postgres_log_bytes(struct bench_store *store)
{
	struct postgres *pg = store->impl;

	return bench_pg_number(pg->conn, "SELECT (pg_current_wal_lsn() - '0/0')::bigint");
}

/* Statistics come when a backend ends, at the latest. */
static uint64_t postgres_dead_rows(struct bench_store *store)
{
	struct postgres *pg = store->impl;

	return bench_pg_number(pg->conn,
			       "SELECT (n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables "
			       "WHERE relname = 'outbox'");
}

static void postgres_hold(struct bench_store *store)
{
	struct postgres *pg = store->impl;

	pg->writer = bench_pg_connect(store->url);
	bench_pg_do(pg->writer, "BEGIN");
	bench_pg_do(pg->writer,
		    "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "
		    "VALUES ('order', 'open', 'OrderPlaced', '{}')");
	pg->snapshot = bench_pg_connect(store->url);
	bench_pg_do(pg->snapshot, "BEGIN ISOLATION LEVEL REPEATABLE READ");
	(void)bench_pg_number(pg->snapshot, "SELECT count(*) FROM outbox_meta");
}

static void postgres_let_go(struct bench_store *store)
{
	struct postgres *pg = store->impl;

	PQfinish(pg->writer);
	PQfinish(pg->snapshot);
	pg->writer = pg->snapshot = NULL;
}

static void postgres_version(struct bench_store *store, char out[BENCH_TEXT_SIZE])
{
	struct postgres *pg = store->impl;

	(void)snprintf(out, BENCH_TEXT_SIZE, "%s", PQparameterStatus(pg->conn, "server_version"));
}

const struct bench_store_ops bench_store_postgres = {
	.name = "postgres",
	.title = "PostgreSQL",
	.start = postgres_start,
	.stop = postgres_stop,
	.connect = postgres_connect,
	.run = postgres_run,
	.number = postgres_number,
	.empty = postgres_empty,
	.make_events =
		"CREATE TABLE IF NOT EXISTS bench_events (position bigint GENERATED ALWAYS AS "
		"IDENTITY "
		"PRIMARY KEY, id uuid NOT NULL UNIQUE, aggregate_type text NOT NULL, aggregate_id "
		"text NOT "
		"NULL, version bigint NOT NULL, event_type text NOT NULL, payload json NOT NULL, "
		"created_at "
		"timestamptz NOT NULL DEFAULT clock_timestamp(), UNIQUE (aggregate_type, "
		"aggregate_id, "
		"version))",
	.find_log = "SELECT count(*) FROM pg_tables WHERE tablename = 'outbox_batches'",
	.calm = postgres_calm,
	.load = postgres_load,
	.log_bytes = postgres_log_bytes,
	.dead_rows = postgres_dead_rows,
	.hold = postgres_hold,
	.let_go = postgres_let_go,
	.version = postgres_version,
	.producer = { bench_pg_producer_open, bench_pg_produce, bench_pg_producer_close },
};
