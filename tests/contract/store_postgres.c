/* SPDX-License-Identifier: MIT */
/*
 * The contract suite on PostgreSQL: one private server, a schema of its own for every
 * case. The schema holds a clock_timestamp() that stands in front of the server's, so that
 * the database's clock is the case's: it is read wherever the store's SQL and its tables ask
 * for the time, and exact instants can be tested.
 */
#include "pg_server.h"
#include "store_harness.h"

#include <libpq-fe.h>
#include <stdarg.h>

static struct pg_server server;
static PGconn *admin; /* of the case */
static unsigned made;
static char url[256], schema[64], path[128];

static const char *postgres_start(void)
{
	/* A vacuum that holds a lock for a moment would make retention leave a partition for later.
	 */
	static const char *const quiet[] = { "autovacuum=off", NULL };

	return pg_server_start(&server, quiet) ? NULL : server.reason;
}

static void postgres_stop(void)
{
	pg_server_stop(&server);
}

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void run(const char *fmt, ...)
{
	char sql[1024];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(sql, sizeof(sql), fmt, ap);
	va_end(ap);
	ck_assert_int_lt(n, (int)sizeof(sql));
	PGresult *result = PQexec(admin, sql);
	ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK ||
			      PQresultStatus(result) == PGRES_TUPLES_OK,
		      "%s: %s", sql, PQerrorMessage(admin));
	PQclear(result);
}

/* Can the schema of the case's last database be emptied and used again? Making tables is slow. */
static bool use_again(void)
{
	if (!made || fx.partition_count == 0)
		return false;
	char sql[256];
	(void)snprintf(
		sql, sizeof(sql),
		"SELECT value FROM %s.outbox_meta WHERE name = 'partition_count' AND value = %u",
		schema, fx.partition_count);
	PGresult *result = PQexec(admin, sql);
	bool same = PQntuples(result) == 1;
	PQclear(result);
	return same;
}

static void empty(void)
{
	static const char *const tables[] = {
		"",        "_readers", "_batches",    "_exceptions",
		"_leases", "_workers", "_throughput", "_audit",
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		run("DELETE FROM %s.outbox%s", schema, tables[i]);
	run("ALTER TABLE %s.outbox ALTER COLUMN seq RESTART", schema);
	run("UPDATE %s.clock SET at = timestamptz 'epoch' + %lld * interval '1 us'", schema,
	    (long long)fx.start_us);
}

static void postgres_make(void)
{
	if (use_again()) {
		empty();
		return;
	}
	PQfinish(admin);
	pg_server_url(&server, "postgres", "postgres", url);
	(void)snprintf(schema, sizeof(schema), "case_%d_%u", (int)getpid(), ++made);
	(void)snprintf(path, sizeof(path), "%s, pg_catalog", schema);
	admin = PQconnectdb(url);
	ck_assert_msg(PQstatus(admin) == CONNECTION_OK, "%s", PQerrorMessage(admin));
	run("SET client_min_messages = warning");
	run("CREATE SCHEMA %s", schema);
	run("CREATE TABLE %s.clock AS SELECT timestamptz 'epoch' + %lld * interval '1 us' AS at",
	    schema, (long long)fx.start_us);
	run("CREATE FUNCTION %s.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE"
	    " AS 'SELECT at FROM %s.clock'",
	    schema, schema);
}

static struct ob_store *postgres_open(void)
{
	const struct ob_opt_value options[] = { { "search_path", path } };
	const struct ob_store_conf conf = {
		.url = url, .options = options, .option_count = 1, .read_limit_ms = fx.read_limit_ms
	};
	struct ob_store *store = NULL;

	store_ok(ob_store_connect(&conf, &store, &fx.err));
	return store;
}

static void postgres_set_version(uint32_t version)
{
	run("UPDATE %s.outbox_meta SET value = %u WHERE name = 'schema_version'", schema, version);
}

/* It goes with the server. */
static void postgres_drop(void)
{
}

static void postgres_advance(int64_t ms)
{
	run("UPDATE %s.clock SET at = at + %lld * interval '1 ms'", schema, (long long)ms);
}

static size_t postgres_journal_count(void)
{
	char sql[128];

	(void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s.outbox_batches", schema);
	PGresult *result = PQexec(admin, sql);
	size_t count = (size_t)strtoull(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	return count;
}

static const struct store_skip parts_skips[] = {
	{ "the_same_id_is_a_duplicate_in_one_target_only", STORE_PARTS_UNIQUE },
	{ "a_failed_push_leaves_no_id_behind", STORE_PARTS_UNIQUE },
	{ "delivering_survives_a_fault_anywhere", STORE_PARTS_UNIQUE },
	{ "a_takeover_survives_a_fault_anywhere", STORE_PARTS_UNIQUE },
	{ "operating_survives_a_fault_anywhere", STORE_PARTS_UNIQUE },
	{ "making_and_removing_readers_survives_a_fault_anywhere", STORE_PARTS_UNIQUE },
	{ "what_is_delivered_goes_when_it_is_old_enough", STORE_PARTS_WHOLE },
	{ "what_is_old_enough_goes_in_batches_while_others_record", STORE_PARTS_WHOLE },
	{ "age_counts_from_the_delivery_not_from_the_creation", STORE_PARTS_WHOLE },
	{ "the_reader_that_holds_most_is_named", STORE_PARTS_WHOLE },
	{ NULL, NULL },
};

/* Three numbers in a partition: a case has rows in several of them, and beyond the last. */
const struct store_backend store_backend_postgres_parts = {
	.name = "postgres-parts",
	.start = postgres_start,
	.stop = postgres_stop,
	.make = postgres_make,
	.open = postgres_open,
	.set_version = postgres_set_version,
	.drop = postgres_drop,
	.advance = postgres_advance,
	.journal_count = postgres_journal_count,
	.skips = parts_skips,
	.partition_rows = 3,
};

const struct store_backend store_backend_postgres = {
	.name = "postgres",
	.start = postgres_start,
	.stop = postgres_stop,
	.make = postgres_make,
	.open = postgres_open,
	.set_version = postgres_set_version,
	.drop = postgres_drop,
	.advance = postgres_advance,
	.journal_count = postgres_journal_count,
};
