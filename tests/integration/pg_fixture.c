/* SPDX-License-Identifier: MIT */
/* Databases, connections and stores for the tests on PostgreSQL. */
#include "pg_fixture.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

struct pg_server server;
struct ob_err err;
struct ob_batch batch;
char url[256];

static char database[64];

int pg_suite_run(const char *name, const TTest *const *tests, size_t count, const char *only)
{
	int r = EXIT_SUCCESS;

	if (!pg_server_start(&server, NULL))
		(void)printf("1..0 # SKIP %s\n", server.reason);
	else
		r = ob_suite_run(name, tests, count, only);
	pg_server_stop(&server);
	return r;
}

static PGconn *connect_to(const char *where)
{
	PGconn *conn = PQconnectdb(where);

	ck_assert_msg(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
	exec(conn, "SET client_min_messages = error");
	return conn;
}

void fixture_new(void)
{
	char admin_url[256];

	ob_batch_init(&batch);
	pg_server_url(&server, "postgres", "postgres", admin_url);
	PGconn *admin = connect_to(admin_url);
	(void)snprintf(database, sizeof(database), "t%d", (int)getpid());
	exec(admin, "CREATE DATABASE %s TEMPLATE template0", database);
	PQfinish(admin);
	pg_server_url(&server, "postgres", database, url);
}

const char *url_of(const char *user)
{
	static char other[256];

	pg_server_url(&server, user, database, other);
	return other;
}

PGconn *app_open(void)
{
	return connect_to(url);
}

void exec(PGconn *conn, const char *fmt, ...)
{
	char sql[4096];
	va_list ap;

	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): the line above is not seen */
	int n = vsnprintf(sql, sizeof(sql), fmt, ap);
	va_end(ap);
	ck_assert_int_lt(n, (int)sizeof(sql));
	PGresult *result = PQexec(conn, sql);
	ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK ||
			      PQresultStatus(result) == PGRES_TUPLES_OK,
		      "%s: %s", sql, PQerrorMessage(conn));
	PQclear(result);
}

const char *text(PGconn *conn, const char *sql)
{
	static char value[4096];
	PGresult *result = PQexec(conn, sql);

	ck_assert_msg(PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0, "%s: %s",
		      sql, PQerrorMessage(conn));
	(void)snprintf(value, sizeof(value), "%s",
		       PQgetisnull(result, 0, 0) ? "NULL" : PQgetvalue(result, 0, 0));
	PQclear(result);
	return value;
}

int64_t number(PGconn *conn, const char *sql)
{
	return strtoll(text(conn, sql), NULL, 10);
}

struct ob_store *store_open_with(const struct ob_opt_value *options)
{
	struct ob_store_conf conf = { .url = url, .options = options };
	struct ob_store *store = NULL;

	while (options && options[conf.option_count].name)
		conf.option_count++;
	ok(ob_store_connect(&conf, &store, &err));
	return store;
}

struct ob_store *store_open(void)
{
	return store_open_with(NULL);
}

int store_setup(struct ob_store *store, uint32_t partitions)
{
	struct ob_setup_done done;

	return ob_store_setup(store, &(struct ob_setup){ partitions }, &done, &err);
}

struct ob_store *store_new(uint32_t partitions)
{
	struct ob_store *store = store_open();

	ok(store_setup(store, partitions));
	return store;
}

void expect_refused(const char *where, enum ob_err_kind kind, const char *message)
{
	const struct ob_store_conf conf = { .url = where };
	struct ob_store *store = NULL;

	ck_assert_int_lt(ob_store_connect(&conf, &store, &err), 0);
	ck_assert_msg(strstr(err.msg, message), "'%s' is not in: %s", message, err.msg);
	ck_assert_int_eq(err.kind, kind);
}

void put(struct ob_store *store, const char *label, const char *key)
{
	const struct outbox_message message = { .aggregate_type = "order",
						.event_type = label,
						.partition_key = key,
						.payload = "{}" };
	size_t index;

	ok(ob_store_tx_begin(store, &err));
	ok(ob_store_tx_push(store, &message, 1, NULL, &index, &err));
	ok(ob_store_tx_end(store, true, &err));
}

const char *fetched(struct ob_store *store)
{
	static char labels[4096];
	uint32_t all[64];
	const struct ob_fetch fetch = {
		.target = "default",
		.partitions = all,
		.partition_count = 64,
		.limit = 1000,
		.max_bytes = 1 << 20,
	};
	size_t n = 0;

	for (uint32_t i = 0; i < 64; i++)
		all[i] = i;
	ok(ob_store_fetch(store, &fetch, &batch, &err));
	labels[0] = '\0';
	for (uint32_t i = 0; i < batch.count && n < sizeof(labels) - 64; i++)
		n += (size_t)snprintf(labels + n, sizeof(labels) - n, "%s%.40s", i ? " " : "",
				      batch.messages[i].event_type.p);
	return labels;
}

static struct ob_uuid uuid(uint8_t n)
{
	return (struct ob_uuid){ { [0] = n, [6] = 0x40, [8] = 0x80 } };
}

struct ob_settle hold(struct ob_store *store, uint8_t owner, int64_t ttl_ms)
{
	static struct ob_arena arena = { .max = 1 << 20 };
	struct ob_uuid id = uuid(owner);
	struct ob_lease *leases;
	size_t count;
	uint32_t all;

	ok(ob_store_seed(store, "default", &all, &err));
	ok(ob_store_take(store, "default", &id, all, ttl_ms, &arena, &leases, &count, &err));
	return (struct ob_settle){
		.target = "default", .owner = id, .leases = leases, .lease_count = count
	};
}

struct ob_settled publish(struct ob_store *store, struct ob_settle settle)
{
	struct ob_outcome outcomes[16];
	struct ob_settled settled;

	ck_assert_uint_le(batch.count, 16);
	for (uint32_t i = 0; i < batch.count; i++)
		outcomes[i] = (struct ob_outcome){ .message = &batch.messages[i] };
	settle.outcomes = outcomes;
	settle.outcome_count = batch.count;
	ok(ob_store_settle(store, &settle, NULL, &settled, &err));
	return settled;
}
