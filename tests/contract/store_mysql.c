/* SPDX-License-Identifier: MIT */
/*
 * The contract suite on MariaDB: one private server, a database of its own for
 * every case. The sessions of the store take their time from the case's clock, so
 * exact instants can be tested.
 */
#include "mysql_server.h"
#include "store_harness.h"

#include <mysql.h>

static struct mysql_server server;
static MYSQL *admin; /* of the case */
static unsigned made;
static char url[256], database[64];

static const char *mysql_case_start(void)
{
	return mysql_server_start(&server, NULL) ? NULL : server.reason;
}

static void mysql_case_stop(void)
{
	mysql_server_stop(&server);
}

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void run(const char *fmt, ...)
{
	char sql[1024];
	va_list ap;

	va_start(ap, fmt);
	ck_assert_int_lt(vsnprintf(sql, sizeof(sql), fmt, ap), (int)sizeof(sql));
	va_end(ap);
	ck_assert_msg(mysql_query(admin, sql) == 0, "%s: %s", sql, mysql_error(admin));
}

static void mysql_case_make(void)
{
	char path[128];

	(void)snprintf(database, sizeof(database), "case_%d_%u", (int)getpid(), ++made);
	mysql_server_url(&server, "root", database, url);
	admin = mysql_init(NULL);
	ck_assert_msg(mysql_real_connect(admin, NULL, "root", NULL, NULL, 0,
					 mysql_server_socket(&server, path), 0),
		      "%s", mysql_error(admin));
	run("CREATE DATABASE %s", database);
}

static struct ob_store *mysql_case_open(void)
{
	const struct ob_store_conf conf = { .url = url,
					    .clock = &fx.clock.clock,
					    .read_limit_ms = fx.read_limit_ms };
	struct ob_store *store = NULL;

	store_ok(ob_store_connect(&conf, &store, &fx.err));
	return store;
}

static void mysql_case_set_version(uint32_t version)
{
	run("UPDATE %s.outbox_meta SET value = %u WHERE name = 'schema_version'", database,
	    version);
}

static size_t mysql_case_journal_count(void)
{
	run("SELECT COUNT(*) FROM %s.outbox_batches", database);
	MYSQL_RES *rows = mysql_store_result(admin);
	MYSQL_ROW row = rows ? mysql_fetch_row(rows) : NULL;

	ck_assert_ptr_nonnull(row);
	size_t count = strtoul(row[0], NULL, 10);
	mysql_free_result(rows);
	return count;
}

static void mysql_case_drop(void)
{
	run("DROP DATABASE %s", database);
	mysql_close(admin);
	admin = NULL;
}

static const struct store_skip skips[] = {
	{ "a_commit_of_another_connection_is_news_once",
	  "MySQL does not tell of another's commit: relays poll" },
	{ NULL, NULL },
};

const struct store_backend store_backend_mysql = {
	.name = "mysql",
	.start = mysql_case_start,
	.stop = mysql_case_stop,
	.make = mysql_case_make,
	.open = mysql_case_open,
	.set_version = mysql_case_set_version,
	.drop = mysql_case_drop,
	.journal_count = mysql_case_journal_count,
	.skips = skips,
};

static const struct store_skip parts_skips[] = {
	{ "a_commit_of_another_connection_is_news_once",
	  "MySQL does not tell of another's commit: relays poll" },
	{ "the_same_id_is_a_duplicate_in_one_target_only", STORE_PARTS_UNIQUE },
	{ "a_failed_push_leaves_no_id_behind", STORE_PARTS_UNIQUE },
	{ "the_same_id_twice_in_one_push_is_a_duplicate", STORE_PARTS_UNIQUE },
	{ "the_same_sequence_number_of_an_aggregate_is_told_apart", STORE_PARTS_UNIQUE },
	{ "delivering_survives_a_fault_anywhere", STORE_PARTS_UNIQUE },
	{ "a_takeover_survives_a_fault_anywhere", STORE_PARTS_UNIQUE },
	{ "operating_survives_a_fault_anywhere", STORE_PARTS_UNIQUE },
	{ "making_and_removing_readers_survives_a_fault_anywhere", STORE_PARTS_UNIQUE },
	{ "what_is_delivered_goes_when_it_is_old_enough", STORE_PARTS_WHOLE },
	{ "what_is_old_enough_goes_in_batches_while_others_record", STORE_PARTS_WHOLE },
	{ "age_counts_from_the_delivery_not_from_the_creation", STORE_PARTS_WHOLE },
	{ "the_reader_that_holds_most_is_named", STORE_PARTS_WHOLE },
	{ "a_discarded_message_goes_like_a_published_one", STORE_PARTS_WHOLE },
	{ NULL, NULL },
};

/* Three numbers in a partition: a case has rows in several of them, and beyond the last. */
const struct store_backend store_backend_mysql_parts = {
	.name = "mysql-parts",
	.start = mysql_case_start,
	.stop = mysql_case_stop,
	.make = mysql_case_make,
	.open = mysql_case_open,
	.set_version = mysql_case_set_version,
	.drop = mysql_case_drop,
	.journal_count = mysql_case_journal_count,
	.skips = parts_skips,
	.partition_rows = 3,
};
