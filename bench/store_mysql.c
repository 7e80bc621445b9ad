/* SPDX-License-Identifier: MIT */
/* A private MariaDB with the settings of a small real one: the log is flushed at each commit. */
#include "bench/fatal.h"
#include "bench/sql_mysql.h"
#include "bench/store.h"

#include "mysql_server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct maria {
	struct mysql_server server;
	MYSQL *db;
};

static const char *const settings[] = {
	"--innodb-flush-log-at-trx-commit=1",
	"--innodb-flush-method=fsync",
	"--innodb-buffer-pool-size=1G",
	"--innodb-log-file-size=1G",
	"--sync-binlog=0",
	NULL,
};

static bool mysql_start(struct bench_store *store)
{
	struct maria *m = bench_need(calloc(1, sizeof(*m)));

	store->impl = m;
	if (!mysql_server_start(&m->server, settings)) {
		(void)snprintf(store->reason, sizeof(store->reason), "%s", m->server.reason);
		return false;
	}
	store->pid = m->server.pid;
	mysql_server_url(&m->server, "root", "mysql", store->url);
	MYSQL *db = bench_mysql_connect(store->url);
	bench_mysql_do(db, "CREATE DATABASE bench");
	mysql_close(db);
	mysql_server_url(&m->server, "root", "bench", store->url);
	return true;
}

static void mysql_start_session(struct bench_store *store)
{
	struct maria *m = store->impl;

	m->db = bench_mysql_connect(store->url);
	bench_mysql_do(m->db, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
}

static void mysql_stop(struct bench_store *store)
{
	struct maria *m = store->impl;

	mysql_close(m->db);
	mysql_server_stop(&m->server);
	free(m);
}

static void mysql_clear(struct bench_store *store)
{
	struct maria *m = store->impl;

	bench_mysql_do(m->db, "TRUNCATE TABLE outbox");
	store->rows = 0;
}

static void insert(struct bench_store *store, const struct bench_load *load, uint64_t count,
		   bool published)
{
	struct maria *m = store->impl;
	char sql[1024];

	(void)snprintf(
		sql, sizeof(sql),
		"INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload, "
		"status, "
		"published_at) SELECT UNHEX(CONCAT('0190', LPAD(HEX(seq), 8, '0'), '70008000', "
		"LPAD(HEX(seq), 12, '0'))), 'order', %s, 'OrderPlaced', "
		"CONCAT('{\"order\": ', seq, ', \"note\": \"', REPEAT('x', %zu), '\"}'), %d, %s "
		"FROM seq_%" PRIu64 "_to_%" PRIu64,
		load->one_key ? "'1'" : "seq", load->payload_size, published,
		published ? "UTC_TIMESTAMP(6)" : "NULL", store->rows + 1, store->rows + count);
	bench_mysql_do(m->db, sql);
	store->rows += count;
}

static void mysql_load(struct bench_store *store, const struct bench_load *load)
{
	struct maria *m = store->impl;

	if (load->published)
		insert(store, load, load->published, true);
	if (load->pending)
		insert(store, load, load->pending, false);
	bench_mysql_do(m->db, "ANALYZE TABLE outbox");
}

static bool mysql_is_settled(struct bench_store *store)
{
	struct maria *m = store->impl;

	return bench_mysql_number(m->db,
				  "SELECT count(*) FROM (SELECT 1 FROM outbox WHERE target = "
				  "'default' AND status = 0 LIMIT 1) AS waiting",
				  0) == 0;
}

static uint64_t mysql_log_bytes(struct bench_store *store)
{
	struct maria *m = store->impl;

	return bench_mysql_number(m->db, "SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'", 1);
}

static void mysql_version(struct bench_store *store, char out[BENCH_TEXT_SIZE])
{
	struct maria *m = store->impl;

	(void)snprintf(out, BENCH_TEXT_SIZE, "%s", mysql_get_server_info(m->db));
}

const struct bench_store_ops bench_store_mysql = {
	.name = "mysql",
	.title = "MariaDB",
	.start = mysql_start,
	.stop = mysql_stop,
	.connect = mysql_start_session,
	.clear = mysql_clear,
	.load = mysql_load,
	.is_settled = mysql_is_settled,
	.log_bytes = mysql_log_bytes,
	.version = mysql_version,
	.producer = { bench_mysql_producer_open, bench_mysql_produce, bench_mysql_producer_close },
};
