/* SPDX-License-Identifier: MIT */
#include "mysql_fixture.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct mysql_server server;
MYSQL *admin;
char database[64];
struct ob_err fault;

int fixture_main(const char *name, const TTest *const *tests, size_t count, const char *only)
{
	int failed = 0;

	if (mysql_server_start(&server, NULL))
		failed = ob_suite_run(name, tests, count, only);
	else
		(void)printf("1..0 # SKIP %s\n", server.reason);
	mysql_server_stop(&server);
	return failed;
}

static MYSQL *connect_to(const char *user, const char *name)
{
	char path[128];
	MYSQL *db = mysql_init(NULL);

	ck_assert_msg(mysql_real_connect(db, NULL, user, NULL, name, 0,
					 mysql_server_socket(&server, path), 0),
		      "%s", mysql_error(db));
	return db;
}

MYSQL *fixture_connect(const char *user)
{
	return connect_to(user, database);
}

struct ob_store *fixture_store_with(const char *url, const char *option, const char *value)
{
	const struct ob_opt_value options[] = { { option, value } };
	const struct ob_store_conf conf = {
		.url = url,
		.options = options,
		.option_count = option ? 1 : 0,
	};
	struct ob_store *store = NULL;

	ok(ob_store_connect(&conf, &store, &fault));
	return store;
}

struct ob_store *fixture_store(const char *user)
{
	static char urls[16][256];
	static unsigned used;
	char *url = urls[used++ % 16]; /* the store keeps it */

	mysql_server_url(&server, user, database, url);
	return fixture_store_with(url, "lock_timeout", "1s");
}

void fixture_begin(uint32_t partitions)
{
	static unsigned made;
	const struct ob_setup setup = { .partition_count = partitions };
	struct ob_setup_done done;

	(void)snprintf(database, sizeof(database), "t_%d_%u", (int)getpid(), ++made);
	admin = connect_to("root", NULL);
	/* An earlier test may have changed them. */
	sql(admin,
	    "SET GLOBAL sql_mode = DEFAULT, time_zone = DEFAULT, init_connect = DEFAULT, "
	    "tx_isolation = DEFAULT, read_only = 0, auto_increment_increment = 1");
	sql(admin, "CREATE DATABASE %s", database);
	sql(admin, "USE %s", database);
	if (partitions == 0)
		return;
	struct ob_store *store = fixture_store("root");
	ok(ob_store_setup(store, &setup, &done, &fault));
	ob_store_free(store);
}

void fixture_end(void)
{
	sql(admin, "DROP DATABASE %s", database);
	mysql_close(admin);
}

void sql(MYSQL *db, const char *fmt, ...)
{
	char query[4096];
	va_list ap;

	va_start(ap, fmt);
	ck_assert_int_lt(vsnprintf(query, sizeof(query), fmt, ap), (int)sizeof(query));
	va_end(ap);
	ck_assert_msg(mysql_query(db, query) == 0, "%s: %s", query, mysql_error(db));
	MYSQL_RES *result = mysql_store_result(db);
	if (result)
		mysql_free_result(result);
}

const char *text(MYSQL *db, const char *query)
{
	static char value[4096];

	ck_assert_msg(mysql_query(db, query) == 0, "%s: %s", query, mysql_error(db));
	MYSQL_RES *result = mysql_store_result(db);
	ck_assert_ptr_nonnull(result);
	MYSQL_ROW row = mysql_fetch_row(result);
	(void)snprintf(value, sizeof(value), "%s", !row ? "(no row)" : !row[0] ? "(null)" : row[0]);
	mysql_free_result(result);
	return value;
}

long long number(MYSQL *db, const char *query)
{
	return strtoll(text(db, query), NULL, 10);
}

void wait_for_a_waiter(void)
{
	const int64_t end = ob_clock_boot_us(&ob_clock_system) + 20000000;

	/* The table of transactions would be stale: the server renews it ten times a second. */
	while (number(admin,
		      "SELECT variable_value FROM information_schema.GLOBAL_STATUS "
		      "WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'") == 0) {
		ck_assert_msg(ob_clock_boot_us(&ob_clock_system) < end, "nothing waits");
		(void)poll(NULL, 0, 1);
	}
}

void put(struct ob_store *store, const char *event_type, const char *key)
{
	const struct outbox_message message = { .aggregate_type = "order",
						.event_type = event_type,
						.partition_key = key,
						.payload = "{}" };
	size_t index;

	ok(ob_store_tx_begin(store, &fault));
	ok(ob_store_tx_push(store, &message, 1, NULL, &index, &fault));
	ok(ob_store_tx_end(store, true, &fault));
}

/* ---- a worker ------------------------------------------------------- */

const struct ob_uuid worker_id = { { 1, [6] = 0x40, [8] = 0x80 } };

void worker_begin(struct worker *w, const char *user)
{
	struct ob_lease *leases;
	uint32_t all;

	*w = (struct worker){ .store = fixture_store(user), .arena = OB_ARENA_INIT(SIZE_MAX / 2) };
	ob_batch_init(&w->batch);
	ok(ob_store_seed(w->store, "default", &all, &fault));
	ok(ob_store_take(w->store, "default", &worker_id, all, 60000, &w->arena, &leases,
			 &w->lease_count, &fault));
	ck_assert_uint_le(w->lease_count, 64);
	for (size_t i = 0; i < w->lease_count; i++)
		w->leases[i] = leases[i];
}

void worker_end(struct worker *w)
{
	ob_batch_done(&w->batch);
	ob_arena_done(&w->arena);
	ob_store_free(w->store);
}

int worker_fetch(struct worker *w, uint32_t limit)
{
	uint32_t partitions[64];
	const struct ob_fetch fetch = {
		.target = "default",
		.partitions = partitions,
		.partition_count = w->lease_count,
		.limit = limit,
		.max_bytes = 1 << 24,
	};

	for (size_t i = 0; i < w->lease_count; i++)
		partitions[i] = w->leases[i].partition;
	return ob_store_fetch(w->store, &fetch, &w->batch, &w->err);
}

int worker_settle(struct worker *w, enum ob_outcome_kind kind)
{
	static struct ob_outcome outcomes[2000];
	const struct ob_settle settle = {
		.target = "default",
		.owner = worker_id,
		.leases = w->leases,
		.lease_count = w->lease_count,
		.outcomes = outcomes,
		.outcome_count = w->batch.count,
		.delete_published = w->delete_published,
	};

	for (uint32_t i = 0; i < w->batch.count; i++)
		outcomes[i] = (struct ob_outcome){ .message = &w->batch.messages[i],
						   .kind = kind,
						   .delay_ms = 3600000 };
	return ob_store_settle(w->store, &settle, NULL, &w->settled, &w->err);
}

void *settle_in_thread(void *arg)
{
	struct worker *w = arg;

	w->result = worker_settle(w, OB_OUTCOME_PUBLISHED);
	return NULL;
}
