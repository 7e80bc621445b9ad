/* SPDX-License-Identifier: MIT */
/* A database in a file of the bench's directory. There is no server: the library's time is its
 * users'. */
#include "bench/fatal.h"
#include "bench/sql_sqlite.h"
#include "bench/store.h"

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

static void sqlite_clear(struct bench_store *store)
{
	bench_sqlite_do(store->impl, "DELETE FROM outbox");
	bench_sqlite_do(store->impl, "DELETE FROM sqlite_sequence");
	bench_sqlite_do(store->impl, "PRAGMA wal_checkpoint(TRUNCATE)");
	store->rows = 0;
}

static void insert(struct bench_store *store, const struct bench_load *load, uint64_t count,
		   bool published)
{
	sqlite3 *db = store->impl;
	sqlite3_stmt *stmt = bench_sqlite_prepare(
		db,
		"WITH RECURSIVE n (i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2), "
		"pad (p) AS MATERIALIZED (SELECT substr(hex(randomblob(?3)), 1, ?3)) "
		"INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload, "
		"status, "
		"published_at) SELECT CAST(printf('%016d', i) AS BLOB), 'order', "
		"iif(?4, '1', CAST(i AS TEXT)), 'OrderPlaced', "
		"'{\"order\": ' || i || ', \"note\": \"' || p || '\"}', ?5, "
		"iif(?5, CAST(strftime('%s', 'now') AS INTEGER) * 1000000, NULL) FROM n, pad");

	(void)sqlite3_bind_int64(stmt, 1, (int64_t)store->rows + 1);
	(void)sqlite3_bind_int64(stmt, 2, (int64_t)(store->rows + count));
	(void)sqlite3_bind_int64(stmt, 3, (int64_t)load->payload_size);
	(void)sqlite3_bind_int(stmt, 4, load->one_key);
	(void)sqlite3_bind_int(stmt, 5, published);
	(void)bench_sqlite_step(db, stmt);
	(void)sqlite3_finalize(stmt);
	store->rows += count;
}

static void sqlite_load(struct bench_store *store, const struct bench_load *load)
{
	bench_sqlite_do(store->impl, "BEGIN IMMEDIATE");
	if (load->published)
		insert(store, load, load->published, true);
	if (load->pending)
		insert(store, load, load->pending, false);
	bench_sqlite_do(store->impl, "COMMIT");
	bench_sqlite_do(store->impl, "PRAGMA wal_checkpoint(TRUNCATE)");
}

static bool sqlite_is_settled(struct bench_store *store)
{
	sqlite3_stmt *stmt = bench_sqlite_prepare(store->impl,
						  "SELECT count(*) FROM (SELECT 1 FROM outbox "
						  "WHERE target = 'default' AND status = 0 "
						  "LIMIT 1)");
	int64_t waiting = bench_sqlite_step(store->impl, stmt);

	(void)sqlite3_finalize(stmt);
	return waiting == 0;
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
	.clear = sqlite_clear,
	.load = sqlite_load,
	.is_settled = sqlite_is_settled,
	.version = sqlite_version,
	.producer = { bench_sqlite_producer_open, bench_sqlite_produce,
		      bench_sqlite_producer_close },
};
