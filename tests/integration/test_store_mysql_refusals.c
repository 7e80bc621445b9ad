/* SPDX-License-Identifier: MIT */
/* The MySQL store: addresses, servers and tables that it does not work with, and setups at once. */
#include "mysql_fixture.h"

#include <pthread.h>

/* ---- what is refused ------------------------------------------------- */

static void expect_refused(const char *url, const char *option, const char *value,
			   enum ob_err_kind kind, const char *message)
{
	const struct ob_opt_value options[] = { { option, value } };
	const struct ob_store_conf conf = { .url = url,
					    .options = options,
					    .option_count = option ? 1 : 0 };
	struct ob_store *store = NULL;

	ck_assert_int_lt(ob_store_connect(&conf, &store, &fault), 0);
	ck_assert_int_eq(fault.kind, kind);
	ck_assert_msg(strstr(fault.msg, message), "'%s' is not in: %s", message, fault.msg);
	ck_assert_msg(!strstr(fault.msg, "s3cret"), "%s", fault.msg);
}

OB_TEST(an_address_that_is_wrong_is_named_without_its_password)
{
	char url[256], path[128];

	fixture_begin(0);
	(void)mysql_server_socket(&server, path);
	expect_refused("mysql:shop", NULL, NULL, OB_ERR_FATAL, "has no //");
	expect_refused("mysql://u:s3cret@h:99999/d", NULL, NULL, OB_ERR_FATAL,
		       "has a port that is not between 1 and 65535");
	expect_refused("mysql://u:s3cret@h:x/d", NULL, NULL, OB_ERR_FATAL,
		       "has a port that is no number");
	expect_refused("mysql://u:s3cret@h", NULL, NULL, OB_ERR_FATAL, "names no database");
	expect_refused("mysql://u:s3cret%zz@h/d", NULL, NULL, OB_ERR_FATAL, "two hex digits");
	expect_refused("mysql://u:s3cret@h/d?sokcet=x", NULL, NULL, OB_ERR_FATAL,
		       "has an option 'sokcet' that a mysql store does not know");
	expect_refused("mysql://u:s3cret@127.0.0.1:1/d", NULL, NULL, OB_ERR_DOWN,
		       "connecting: 127.0.0.1:1, database 'd': Can't connect");
	(void)snprintf(url, sizeof(url), "mariadb://root:s3cret@/%s?socket=%s", database, path);
	make_user("shop", "right");
	(void)snprintf(url, sizeof(url), "mysql://shop@/%s?socket=%s", database, path);
	expect_refused(url, "password", "s3cret", OB_ERR_FATAL,
		       "Access denied for user 'shop'@'localhost' (using password: YES); correct "
		       "the user and the password of the store");
	mysql_server_url(&server, "root", "nowhere", url);
	expect_refused(url, NULL, NULL, OB_ERR_FATAL,
		       "Unknown database 'nowhere'; create the database, or correct its name in "
		       "the url");
	fixture_end();
}
OB_TEST_END

static void expect_check(struct ob_store *store, const char *message)
{
	ck_assert_int_lt(ob_store_check(store, &fault), 0);
	ck_assert_int_eq(fault.kind, OB_ERR_FATAL);
	ck_assert_msg(strstr(fault.msg, message), "'%s' is not in: %s", message, fault.msg);
}

OB_TEST(a_server_that_breaks_a_promise_is_refused_at_the_start)
{
	fixture_begin(2);
	struct ob_store *store = fixture_store("root");
	ok(ob_store_check(store, &fault));
	sql(admin, "SET GLOBAL read_only = 1");
	expect_check(store, "the server is read-only, perhaps a replica");
	sql(admin, "SET GLOBAL read_only = 0, sql_mode = ''");
	expect_check(store, "add STRICT_TRANS_TABLES to the global sql_mode");
	sql(admin, "SET GLOBAL sql_mode = DEFAULT, auto_increment_increment = 2");
	expect_check(store, "auto_increment_increment is 2");
	sql(admin, "SET GLOBAL auto_increment_increment = 1");
	ok(ob_store_check(store, &fault));
	ob_store_free(store);
	fixture_end();
}
OB_TEST_END

static int set_up(struct ob_store *store, uint32_t partitions, struct ob_err *err)
{
	const struct ob_setup setup = { .partition_count = partitions };
	struct ob_setup_done done;

	return ob_store_setup(store, &setup, &done, err);
}

/* What the check refuses with this text is mended by a setup. */
static void expect_mended(struct ob_store *store, const char *message)
{
	expect_check(store, message);
	ok(set_up(store, 2, &fault));
	ok(ob_store_check(store, &fault));
}

OB_TEST(tables_that_are_not_as_they_must_be_are_refused_and_mended)
{
	fixture_begin(2);
	struct ob_store *store = fixture_store("root");
	sql(admin, "ALTER TABLE outbox DROP KEY outbox_uniq_id");
	expect_mended(store, "index 'outbox_uniq_id' is missing: run `outbox setup`");
	sql(admin, "DROP TABLE outbox_workers");
	expect_mended(store, "table 'outbox_workers' is missing; run `outbox setup`");
	sql(admin, "ALTER TABLE outbox_workers ENGINE=MyISAM");
	expect_check(store, "run ALTER TABLE outbox_workers ENGINE=InnoDB");
	sql(admin, "ALTER TABLE outbox_workers ENGINE=InnoDB");
	sql(admin, "ALTER TABLE outbox MODIFY payload LONGBLOB");
	expect_check(store, "column 'payload' of table 'outbox' is longblob, but must be longtext");
	ob_store_free(store);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_foreign_table_under_our_name_is_left_alone)
{
	fixture_begin(0);
	struct ob_store *store = fixture_store("root");
	sql(admin, "CREATE TABLE outbox (id INT PRIMARY KEY)");
	ck_assert_int_eq(set_up(store, 2, &fault), OUTBOX_ESCHEMA);
	ck_assert_msg(strstr(fault.msg, "table 'outbox' has no column"), "%s", fault.msg);
	ck_assert_str_eq(text(admin, "SHOW TABLES"), "outbox");
	ob_store_free(store);
	fixture_end();
}
OB_TEST_END

OB_TEST(missing_rights_are_named)
{
	struct ob_lease *leases;
	struct ob_arena arena = OB_ARENA_INIT(SIZE_MAX / 2);
	size_t count;

	fixture_begin(2);
	make_user("poor", NULL);
	sql(admin, "GRANT SELECT ON %s.* TO poor@localhost", database);
	struct ob_store *store = fixture_store("poor");
	ck_assert_int_eq(ob_store_take(store, "main", &(struct ob_uuid){ 0 }, 1, 1000, &arena,
				       &leases, &count, &fault),
			 OUTBOX_ESTORE);
	ck_assert_int_eq(fault.kind, OB_ERR_FATAL);
	ck_assert_msg(strstr(fault.msg, "grant this user SELECT, INSERT, UPDATE and DELETE"), "%s",
		      fault.msg);
	ob_arena_done(&arena);
	ob_store_free(store);
	fixture_end();
}
OB_TEST_END

/* ---- setup and resize ------------------------------------------------ */

static void *run_setup(void *arg)
{
	struct worker *w = arg;

	w->result = set_up(w->store, 4, &w->err);
	return NULL;
}

OB_TEST(setups_that_run_at_once_make_one_schema)
{
	static struct worker workers[4];
	pthread_t threads[4];

	fixture_begin(0);
	for (int i = 0; i < 4; i++)
		workers[i].store = fixture_store("root");
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, run_setup, &workers[i]), 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < 4; i++)
		ck_assert_msg(workers[i].result == 0, "%s", workers[i].err.msg);
	ok(ob_store_check(workers[0].store, &fault));
	for (int i = 0; i < 4; i++)
		ob_store_free(workers[i].store);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_setup_that_was_interrupted_is_finished)
{
	const struct ob_setup setup = { .partition_count = 8 };
	struct ob_setup_done done;

	fixture_begin(4);
	struct ob_store *store = fixture_store("root");
	sql(admin, "UPDATE outbox_meta SET value = 0 WHERE name = 'schema_version'");
	sql(admin, "DROP TABLE outbox, outbox_workers");
	sql(admin, "DROP PROCEDURE outbox_push");
	ck_assert_int_lt(ob_store_check(store, &fault), 0);
	ok(ob_store_setup(store, &setup, &done, &fault));
	ck_assert_uint_eq(done.from_version, 0);
	ok(ob_store_check(store, &fault));
	ck_assert_int_eq(number(admin,
				"SELECT value FROM outbox_meta WHERE name = "
				"'partition_count'"),
			 4);
	ob_store_free(store);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_resize_that_was_interrupted_is_noticed_and_finished)
{
	fixture_begin(4);
	struct ob_store *store = fixture_store("root");
	put(store, "a", "k");
	ok(ob_store_resize(store, 7, &fault));
	ok(ob_store_check(store, &fault));
	/* As if the process had died between the ALTER and the commit. */
	sql(admin, "UPDATE outbox_meta SET value = 4 WHERE name = 'partition_count'");
	expect_check(store, "a resize was interrupted; run `outbox partitions resize 7` again");
	ok(ob_store_resize(store, 7, &fault));
	ok(ob_store_check(store, &fault));
	ob_store_free(store);
	fixture_end();
}
OB_TEST_END

MYSQL_SUITE("MySQL refusals", an_address_that_is_wrong_is_named_without_its_password,
	    a_server_that_breaks_a_promise_is_refused_at_the_start,
	    tables_that_are_not_as_they_must_be_are_refused_and_mended,
	    a_foreign_table_under_our_name_is_left_alone, missing_rights_are_named,
	    setups_that_run_at_once_make_one_schema, a_setup_that_was_interrupted_is_finished,
	    a_resize_that_was_interrupted_is_noticed_and_finished)
