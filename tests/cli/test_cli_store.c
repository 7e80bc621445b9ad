/* SPDX-License-Identifier: MIT */
/* setup, list, show and status on a real database, good and bad. */
#include "outbox.h"

#include <fcntl.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ID "0196a1f0-3c5b-7000-8000-00c0ffee0001"

static void begin_store(void)
{
	begin();
	set_env("OUTBOX_STORE=sqlite:test.db");
	expect(0, "created version 1 with 16 partitions\n", "", "setup", NULL);
}

/* Run SQL on the test's database, as an application would. */
static void run_sql(const char *sql)
{
	sqlite3 *db;
	char *error = NULL;

	ck_assert_int_eq(sqlite3_open(path_of("test.db"), &db), SQLITE_OK);
	int r = sqlite3_exec(db, sql, NULL, NULL, &error);
	ck_assert_msg(r == SQLITE_OK, "%s: %s", sql, error);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static void push(const char *type, const char *id, const char *event)
{
	expect(0, NULL, "", "push", "--type", type, "--aggregate", id, "--event", event,
	       "--payload", "{\"n\":[1,{}]}", NULL);
}

/* ---- setup ----------------------------------------------------------- */

OB_TEST(setup_says_what_it_did)
{
	begin();
	expect(0, NULL, "", "init", NULL);
	expect(0, "created version 1 with 16 partitions\n", "", "setup", NULL);
	expect(0, "already at version 1\n", "", "setup", NULL);
	expect(0, "already at version 1\n", "", "setup", "--partitions", "4", NULL);
	expect(0, "{\"from_version\":1,\"to_version\":1}\n", "", "setup", "--json", NULL);
	expect(0, "{\"from_version\":0,\"to_version\":1,\"partitions\":4}\n", "", "--store",
	       "sqlite:other.db", "setup", "--partitions", "4", "--json", NULL);
	end();
}
OB_TEST_END

OB_TEST(the_sql_that_setup_prints_makes_the_same_tables)
{
	begin();
	set_env("OUTBOX_STORE=sqlite:test.db");
	struct ob_run r = outbox(NULL, "setup", "--print", "--partitions", "8", NULL);
	ck_assert_int_eq(r.code, 0);
	ck_assert_msg(access(path_of("test.db"), F_OK) != 0, "--print made a database");
	run_sql(r.out);
	ob_run_done(&r);
	expect(0, "already at version 1\n", "", "setup", NULL);
	push("order", "1", "Placed");
	end();
}
OB_TEST_END

/* ---- databases that are not well ------------------------------------- */

OB_TEST(a_database_without_tables_says_what_to_do)
{
	begin();
	set_env("OUTBOX_STORE=sqlite:test.db");
	run_sql("CREATE TABLE mine (x)");
	struct ob_run r = outbox(NULL, "list", NULL);
	ck_assert_int_eq(r.code, 1);
	ck_assert_str_eq(r.out, "");
	ck_assert_ptr_nonnull(strstr(r.err, "outbox setup"));
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_SUITE("cli_store", setup_says_what_it_did, the_sql_that_setup_prints_makes_the_same_tables,
	 a_database_without_tables_says_what_to_do)
