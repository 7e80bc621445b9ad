/* SPDX-License-Identifier: MIT */
/* A private MariaDB with the settings of a small real one: the log is flushed at each commit,
 * to a disk. */
#include "bench/fatal.h"
#include "bench/store/sql_mysql.h"
#include "bench/store/store.h"

#include "mysql_server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct maria {
	struct mysql_server server;
	MYSQL *db, *writer, *snapshot;
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
	if (!mysql_server_start_on_disk(&m->server, settings)) {
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
	mysql_close(m->writer);
	mysql_close(m->snapshot);
	mysql_server_stop(&m->server);
	free(m);
}

static void mysql_run(struct bench_store *store, const char *sql)
{
	struct maria *m = store->impl;

	bench_mysql_do(m->db, sql);
}

static uint64_t mysql_number(struct bench_store *store, const char *sql)
{
	struct maria *m = store->impl;

	return bench_mysql_number(m->db, sql, 0);
}

static void mysql_empty(struct bench_store *store, const char *table)
{
	char sql[128];

	(void)snprintf(sql, sizeof(sql), "TRUNCATE TABLE %s", table);
	mysql_run(store, sql);
}

static void mysql_calm(struct bench_store *store)
{
	(void)store;
}

static void mysql_load(struct bench_store *store, const struct bench_load *load)
{
	char sql[1024], key[64] = "seq";

	if (load->keys)
		(void)snprintf(key, sizeof(key), "seq %% %" PRIu64, load->keys);
	(void)snprintf(sql, sizeof(sql),
		       "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) "
		       "SELECT UNHEX(CONCAT('0190', LPAD(HEX(seq), 8, '0'), '70008000', "
		       "LPAD(HEX(seq), 12, '0'))), 'order', %s, 'OrderPlaced', "
		       "CONCAT('{\"order\": ', seq, ', \"note\": \"', REPEAT('x', %zu), '\"}') "
		       "FROM seq_%" PRIu64 "_to_%" PRIu64,
		       key, load->payload_size, store->rows + 1, store->rows + load->count);
	mysql_run(store, sql);
	store->rows += load->count;
	mysql_run(store, "ANALYZE TABLE outbox");
}

static uint64_t mysql_log_bytes(struct bench_store *store)
{
	struct maria *m = store->impl;

	return bench_mysql_number(m->db, "SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'", 1);
}

static void mysql_hold(struct bench_store *store)
{
	struct maria *m = store->impl;

	m->writer = bench_mysql_connect(store->url);
	bench_mysql_do(m->writer, "START TRANSACTION");
	bench_mysql_do(m->writer,
		       "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "
		       "VALUES ('order', 'open', 'OrderPlaced', '{}')");
	m->snapshot = bench_mysql_connect(store->url);
	bench_mysql_do(m->snapshot, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
	(void)bench_mysql_number(m->snapshot, "SELECT count(*) FROM outbox_meta", 0);
}

static void mysql_let_go(struct bench_store *store)
{
	struct maria *m = store->impl;

	mysql_close(m->writer);
	mysql_close(m->snapshot);
	m->writer = m->snapshot = NULL;
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
	.run = mysql_run,
	.number = mysql_number,
	.empty = mysql_empty,
	.make_events =
		"CREATE TABLE IF NOT EXISTS bench_events (position BIGINT AUTO_INCREMENT PRIMARY "
		"KEY, id "
		"VARBINARY(16) NOT NULL UNIQUE, aggregate_type VARCHAR(255) NOT NULL, aggregate_id "
		"VARCHAR(255) NOT NULL, version BIGINT NOT NULL, event_type VARCHAR(255) NOT NULL, "
		"payload "
		"LONGTEXT NOT NULL CHECK (json_valid(payload)), created_at DATETIME(6) NOT NULL "
		"DEFAULT "
		"CURRENT_TIMESTAMP(6), UNIQUE (aggregate_type, aggregate_id, version))",
	.find_log =
		"SELECT count(*) FROM information_schema.tables WHERE table_schema = "
		"DATABASE() AND table_name = 'outbox_batches'",
	.calm = mysql_calm,
	.load = mysql_load,
	.log_bytes = mysql_log_bytes,
	.hold = mysql_hold,
	.let_go = mysql_let_go,
	.version = mysql_version,
	.producer = { bench_mysql_producer_open, bench_mysql_produce, bench_mysql_producer_close },
};
