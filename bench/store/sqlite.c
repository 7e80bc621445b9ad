/* SPDX-License-Identifier: MIT */
/* A database in a file of the bench's directory. There is no server: the library's time is its
 * users'. */
#include "bench/fatal.h"
#include "bench/store/sql_sqlite.h"
#include "bench/store/store.h"

#include <stdio.h>

static bool sqlite_start(struct bench_store *store)
{
	(void)store;
	return true;
}

static void sqlite_connect(struct bench_store *store)
{
	store->impl = bench_sqlite_connect(store->url);
}

static void sqlite_stop(struct bench_store *store)
{
	(void)sqlite3_close(store->impl);
}

static void sqlite_run(struct bench_store *store, const char *sql)
{
	bench_sqlite_do(store->impl, sql);
}

static uint64_t sqlite_number(struct bench_store *store, const char *sql)
{
	sqlite3_stmt *stmt = bench_sqlite_prepare(store->impl, sql);
	int64_t number = bench_sqlite_step(store->impl, stmt);

	(void)sqlite3_finalize(stmt);
	return (uint64_t)number;
}

static void sqlite_empty(struct bench_store *store, const char *table)
{
	char sql[128];

	(void)snprintf(sql, sizeof(sql), "DELETE FROM %s", table);
	sqlite_run(store, sql);
}

static void sqlite_calm(struct bench_store *store)
{
	sqlite_run(store, "DELETE FROM sqlite_sequence");
	sqlite_run(store, "PRAGMA wal_checkpoint(TRUNCATE)");
}

static void sqlite_load(struct bench_store *store, const struct bench_load *load)
{
	sqlite3 *db = store->impl;
	sqlite3_stmt *stmt = bench_sqlite_prepare(
		db,
		"WITH RECURSIVE n (i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2), "
		"pad (p) AS MATERIALIZED (SELECT substr(hex(randomblob(?3)), 1, ?3)) "
		"INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) "
		"SELECT CAST(printf('%016d', i) AS BLOB), 'order', "
		"CAST(iif(?4, i % ?4, i) AS TEXT), 'OrderPlaced', "
		"'{\"order\": ' || i || ', \"note\": \"' || p || '\"}' FROM n, pad");

	(void)sqlite3_bind_int64(stmt, 1, (int64_t)store->rows + 1);
	(void)sqlite3_bind_int64(stmt, 2, (int64_t)(store->rows + load->count));
	(void)sqlite3_bind_int64(stmt, 3, (int64_t)load->payload_size);
	(void)sqlite3_bind_int64(stmt, 4, (int64_t)load->keys);
	(void)bench_sqlite_step(db, stmt);
	(void)sqlite3_finalize(stmt);
	store->rows += load->count;
	sqlite_run(store, "PRAGMA wal_checkpoint(TRUNCATE)");
}

static void sqlite_version(struct bench_store *store, char out[BENCH_TEXT_SIZE])
{
	(void)store;
	(void)snprintf(out, BENCH_TEXT_SIZE, "%s", sqlite3_libversion());
}

const struct bench_store_ops bench_store_sqlite = {
	.name = "sqlite",
	.title = "SQLite",
	.start = sqlite_start,
	.stop = sqlite_stop,
	.connect = sqlite_connect,
	.run = sqlite_run,
	.number = sqlite_number,
	.empty = sqlite_empty,
	.make_events =
		"CREATE TABLE IF NOT EXISTS bench_events (position INTEGER PRIMARY KEY, id BLOB "
		"NOT NULL "
		"UNIQUE, aggregate_type TEXT NOT NULL, aggregate_id TEXT NOT NULL, version INTEGER "
		"NOT NULL, "
		"event_type TEXT NOT NULL, payload TEXT NOT NULL CHECK (json_valid(payload)), "
		"created_at "
		"INTEGER NOT NULL DEFAULT (unixepoch()), UNIQUE (aggregate_type, aggregate_id, "
		"version))",
	.find_log = "SELECT count(*) FROM sqlite_master WHERE name = 'outbox_batches'",
	.calm = sqlite_calm,
	.load = sqlite_load,
	.version = sqlite_version,
	.producer = { bench_sqlite_producer_open, bench_sqlite_produce,
		      bench_sqlite_producer_close },
};
