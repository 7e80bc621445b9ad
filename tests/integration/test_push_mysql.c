/* SPDX-License-Identifier: MIT */
/* Pushing on the application's own connection to a real MariaDB. */
#include "mysql_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct outbox_error error;

static outbox *writer(MYSQL *db, const struct outbox_options *options)
{
	outbox *ob = NULL;
	int r = outbox_mysql_open(db, options, &ob, &error);

	ck_assert_msg(r == 0, "%s", error.message);
	return ob;
}

static int push(outbox *ob, struct outbox_message message)
{
	error = (struct outbox_error){ 0 };
	return outbox_push(ob, &message, 1, NULL, &error);
}

#define pushed(...) \
	do { \
		int pushed_r_ = push(__VA_ARGS__); \
		ck_assert_msg(pushed_r_ == 0, "%s", error.message); \
	} while (0)

static long long rows(void)
{
	return number(admin, "SELECT COUNT(*) FROM outbox");
}

OB_TEST(a_push_outside_a_transaction_is_refused)
{
	fixture_begin(4);
	MYSQL *db = fixture_connect("root");
	outbox *ob = writer(db, NULL);
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), OUTBOX_ENOTRANSACTION);
	sql(db, "START TRANSACTION");
	pushed(ob, (struct outbox_message){ GOOD });
	sql(db, "COMMIT");
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), OUTBOX_ENOTRANSACTION);
	/* Without autocommit every statement is in one. */
	sql(db, "SET autocommit = 0");
	pushed(ob, (struct outbox_message){ GOOD });
	ck_assert_int_eq(rows(), 1);
	sql(db, "COMMIT");
	ck_assert_int_eq(rows(), 2);
	outbox_close(ob);
	mysql_close(db);
	fixture_end();
}
OB_TEST_END

OB_TEST(what_is_rolled_back_leaves_nothing)
{
	fixture_begin(4);
	MYSQL *db = fixture_connect("root");
	outbox *ob = writer(db, NULL);
	sql(db, "START TRANSACTION");
	pushed(ob, (struct outbox_message){ GOOD });
	sql(db, "ROLLBACK");
	ck_assert_int_eq(rows(), 0);
	outbox_close(ob);
	mysql_close(db);
	fixture_end();
}
OB_TEST_END

OB_TEST(every_field_arrives_whatever_the_session_is)
{
	static const char session_state[] =
		"SELECT CONCAT(@@sql_mode, @@time_zone, @@character_set_client, "
		"/*M! @@tx_isolation */ /*!80000 @@transaction_isolation */)";
	static const char *const sessions[] = {
		"SET NAMES latin1, sql_mode = '', time_zone = '-11:30'",
		"SET NAMES cp1251, sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'",
		("SET NAMES utf8mb3, sql_mode = /*M! 'ORACLE' */ /*!80000 'ANSI' */, "
		 "time_zone = '+13:00'"),
	};
	const struct outbox_message message = {
		.aggregate_type = "größe",
		.aggregate_id = "\xf0\x9f\x98\x80\\'\"",
		.event_type = "日本",
		.payload = "{\"a\": \"\xf0\x9f\x98\x80\\n\"}",
		.headers = "{\"é\": 1}",
		.snapshot = "[1]",
		.correlation_id = "c",
		.causation_id = "d",
		.target = "audit",
		.sequence_number = 7,
		.occurred_at_us = 253402300799999999,
		.delay_ms = 3600000,
		.revision = 3,
		.priority = -5,
	};

	for (size_t i = 0; i < 3; i++) {
		fixture_begin(4);
		sql(admin, "SET NAMES utf8mb4");
		MYSQL *db = fixture_connect("root");
		sql(db, "%s", sessions[i]);
		char *before = strdup(text(db, session_state));
		outbox *ob = writer(db, NULL);
		sql(db, "START TRANSACTION");
		pushed(ob, message);
		sql(db, "COMMIT");
		ck_assert_str_eq(text(db, session_state), before);
		free(before);
		ck_assert_str_eq(text(admin, "SELECT aggregate_type FROM outbox"), "größe");
		ck_assert_str_eq(text(admin, "SELECT aggregate_id FROM outbox"),
				 message.aggregate_id);
		ck_assert_str_eq(text(admin, "SELECT event_type FROM outbox"), "日本");
		ck_assert_str_eq(text(admin, "SELECT payload FROM outbox"), message.payload);
		ck_assert_str_eq(text(admin, "SELECT headers FROM outbox"), message.headers);
		ck_assert_str_eq(text(admin,
				      "SELECT CONCAT_WS(' ', snapshot, correlation_id, "
				      "causation_id, target, sequence_number, revision, "
				      "priority, occurred_at) FROM outbox"),
				 "[1] c d audit 7 3 -5 9999-12-31 23:59:59.999999");
		ck_assert_int_eq(number(admin,
					"SELECT ABS(TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), "
					"created_at)) < 60 FROM outbox"),
				 1);
		ck_assert_int_eq(number(admin,
					"SELECT TIMESTAMPDIFF(SECOND, created_at, "
					"available_at) FROM outbox"),
				 3600);
		outbox_close(ob);
		mysql_close(db);
		fixture_end();
	}
}
OB_TEST_END

/* ---- duplicates ------------------------------------------------------ */

static const char id1[] = "01890a5d-ac96-774b-bcce-b302099a8057";
static const char id2[] = "01890a5d-ac96-774b-bcce-b302099a8058";

OB_TEST(duplicates_are_told_apart_and_leave_the_transaction_usable)
{
	struct outbox_message several[] = {
		{ GOOD },
		{ GOOD, .aggregate_id = "1", .sequence_number = 5 },
		{ GOOD, .id = id1 },
	};

	fixture_begin(4);
	MYSQL *db = fixture_connect("root");
	outbox *ob = writer(db, NULL);
	sql(db, "START TRANSACTION");
	pushed(ob, (struct outbox_message){ GOOD, .id = id1 });
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD, .id = id1 }), OUTBOX_EDUPID);
	ck_assert_str_eq(error.native, "1062");
	ck_assert_uint_eq(error.index, 0);
	/* For another target it is another message. */
	pushed(ob, (struct outbox_message){ GOOD, .id = id1, .target = "audit" });
	pushed(ob, (struct outbox_message){ GOOD, .aggregate_id = "1", .sequence_number = 5 });
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD, .aggregate_id = "1",
							   .sequence_number = 5 }),
			 OUTBOX_EDUPSEQUENCE);
	ck_assert_int_eq(outbox_push(ob, several, 3, NULL, &error), OUTBOX_EDUPSEQUENCE);
	ck_assert_uint_eq(error.index, 1);
	several[1].sequence_number = 6;
	ck_assert_int_eq(outbox_push(ob, several, 3, NULL, &error), OUTBOX_EDUPID);
	ck_assert_uint_eq(error.index, 2);
	several[2].id = NULL;
	ck_assert_int_eq(outbox_push(ob, several, 3, NULL, &error), 0);
	/* Twice in one call. */
	several[0].id = several[2].id = "01890a5d-ac96-774b-bcce-b302099a8058";
	several[1].sequence_number = 7;
	ck_assert_int_eq(outbox_push(ob, several, 3, NULL, &error), OUTBOX_EDUPID);
	ck_assert_uint_eq(error.index, 2);
	sql(db, "COMMIT");
	ck_assert_int_eq(rows(), 6);
	outbox_close(ob);
	mysql_close(db);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_duplicate_that_the_snapshot_does_not_show_is_named)
{
	fixture_begin(4);
	MYSQL *db = fixture_connect("root"), *other = fixture_connect("root");
	outbox *ob = writer(db, NULL), *second = writer(other, NULL);
	sql(db, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
	sql(other, "START TRANSACTION");
	pushed(second, (struct outbox_message){ GOOD, .id = id1 });
	sql(other, "COMMIT");
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD, .id = id1 }), OUTBOX_EDUPID);
	sql(db, "COMMIT");
	outbox_close(ob);
	outbox_close(second);
	mysql_close(db);
	mysql_close(other);
	fixture_end();
}
OB_TEST_END

OB_TEST(blanks_and_case_make_different_aggregates)
{
	fixture_begin(4);
	MYSQL *db = fixture_connect("root");
	outbox *ob = writer(db, NULL);
	sql(db, "START TRANSACTION");
	pushed(ob, (struct outbox_message){ GOOD, .aggregate_id = "a", .sequence_number = 1 });
	pushed(ob, (struct outbox_message){ GOOD, .aggregate_id = "A", .sequence_number = 1 });
	pushed(ob, (struct outbox_message){ GOOD, .aggregate_id = "a ", .sequence_number = 1 });
	sql(db, "COMMIT");
	outbox_close(ob);
	mysql_close(db);
	fixture_end();
}
OB_TEST_END

/* ---- many, and large ------------------------------------------------- */

enum { MANY = 1700 };

OB_TEST(many_messages_are_all_or_nothing)
{
	static struct outbox_message messages[MANY];
	static struct outbox_id ids[MANY];

	fixture_begin(4);
	MYSQL *db = fixture_connect("root");
	outbox *ob = writer(db, NULL);
	for (int i = 0; i < MANY; i++)
		messages[i] = (struct outbox_message){ GOOD, .priority = i };
	sql(db, "START TRANSACTION");
	messages[MANY - 1].id = id1;
	pushed(ob, (struct outbox_message){ GOOD, .id = id1 });
	ck_assert_int_eq(outbox_push(ob, messages, MANY, ids, &error), OUTBOX_EDUPID);
	ck_assert_uint_eq(error.index, MANY - 1);
	messages[MANY - 1].id = NULL;
	ck_assert_int_eq(outbox_push(ob, messages, MANY, ids, &error), 0);
	sql(db, "COMMIT");
	ck_assert_int_eq(rows(), MANY + 1);
	ck_assert_int_eq(number(admin,
				"SELECT COUNT(*) FROM outbox AS a JOIN outbox AS b ON b.seq = "
				"a.seq + 1 AND b.priority < a.priority"),
			 0);
	outbox_close(ob);
	mysql_close(db);
	fixture_end();
}
OB_TEST_END

OB_TEST(what_is_too_large_for_the_server_is_refused_before_it_costs_the_connection)
{
	const size_t size = 20 << 20;
	char *large = malloc(size);

	fixture_begin(4);
	sql(admin, "SET GLOBAL max_allowed_packet = %d", 16 << 20); /* sessions to come */
	memset(large, ' ', size);
	large[0] = '1'; /* JSON, wherever it is cut off */
	MYSQL *db = fixture_connect("root");
	outbox *ob = writer(db, NULL);
	sql(db, "START TRANSACTION");
	ck_assert_int_eq(push(ob, (struct outbox_message){ .aggregate_type = "a",
							   .event_type = "b",
							   .payload = large,
							   .payload_size = size }),
			 OUTBOX_ETOOLONG);
	ck_assert_ptr_nonnull(strstr(error.message, "max_allowed_packet"));
	/* Several that only together are too large go one by one. */
	struct outbox_message several[3];
	for (int i = 0; i < 3; i++)
		several[i] = (struct outbox_message){ .aggregate_type = "a",
						      .event_type = "b",
						      .payload = large,
						      .payload_size = 7 << 20 };
	int r = outbox_push(ob, several, 3, NULL, &error);
	ck_assert_msg(r == 0, "%s", error.message);
	sql(db, "COMMIT");
	ck_assert_int_eq(rows(), 3);
	free(large);
	outbox_close(ob);
	mysql_close(db);
	fixture_end();
}
OB_TEST_END

/* ---- faults ---------------------------------------------------------- */

OB_TEST(the_tables_own_check_names_the_document)
{
	const struct outbox_options options = { .flags = OUTBOX_NO_PAYLOAD_CHECK |
							 OUTBOX_NO_HEADERS_CHECK };

	fixture_begin(4);
	MYSQL *db = fixture_connect("root");
	sql(db, "SET sql_mode = ''");
	outbox *ob = writer(db, &options);
	sql(db, "START TRANSACTION");
	ck_assert_int_eq(push(ob, (struct outbox_message){ .aggregate_type = "a",
							   .event_type = "b",
							   .payload = "{" }),
			 OUTBOX_EPAYLOADJSON);
	ck_assert_int_eq(push(ob, (struct outbox_message){ .aggregate_type = "a",
							   .event_type = "b",
							   .payload = "\"\xff\"" }),
			 OUTBOX_EPAYLOADJSON);
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD, .headers = "nope" }),
			 OUTBOX_EHEADERSJSON);
	pushed(ob, (struct outbox_message){ GOOD });
	sql(db, "COMMIT");
	ck_assert_int_eq(rows(), 1);
	outbox_close(ob);
	mysql_close(db);
	fixture_end();
}
OB_TEST_END

#define INSERT_ID \
	"INSERT INTO outbox (id, aggregate_type, event_type, payload) VALUES " \
	"(UNHEX(REPLACE('%s', '-', '')), 'a', 'b', '{}')"

OB_TEST(a_lock_that_lasts_is_busy_and_costs_nothing)
{
	fixture_begin(4);
	MYSQL *db = fixture_connect("root");
	outbox *ob = writer(db, NULL);
	sql(db, "SET innodb_lock_wait_timeout = 1");
	sql(admin, "START TRANSACTION");
	sql(admin, INSERT_ID, id1);
	sql(db, "START TRANSACTION");
	/* It waits for the other's row with the same id. */
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD, .id = id1 }), OUTBOX_EBUSY);
	ck_assert_str_eq(error.native, "1205");
	sql(admin, "ROLLBACK");
	pushed(ob, (struct outbox_message){ GOOD, .id = id1 });
	sql(db, "COMMIT");
	ck_assert_int_eq(rows(), 1);
	outbox_close(ob);
	mysql_close(db);
	fixture_end();
}
OB_TEST_END

/* A push on a thread of its own, since it waits. */
struct waiting {
	outbox *ob;
	const char *id;
	int result;
};

static void *push_in_thread(void *arg)
{
	struct waiting *w = arg;

	w->result = push(w->ob, (struct outbox_message){ GOOD, .id = w->id });
	return NULL;
}

OB_TEST(a_deadlock_costs_the_whole_transaction_and_the_error_says_so)
{
	struct waiting w = { .id = id2 };
	pthread_t thread;

	fixture_begin(4);
	sql(admin, "CREATE TABLE orders (n INT PRIMARY KEY) ENGINE=InnoDB");
	MYSQL *db = fixture_connect("root");
	w.ob = writer(db, NULL);
	sql(db, "START TRANSACTION");
	sql(db, "INSERT INTO orders VALUES (1)");
	pushed(w.ob, (struct outbox_message){ GOOD, .id = id1 });
	/* The server rolls back whoever changed less. */
	sql(admin, "START TRANSACTION");
	sql(admin, "INSERT INTO orders SELECT 1000 + seq FROM " NUMBERS_TO_D, 1000);
	sql(admin, INSERT_ID, id2);
	ck_assert_int_eq(pthread_create(&thread, NULL, push_in_thread, &w), 0);
	wait_for_a_waiter();
	sql(admin, INSERT_ID, id1); /* this closes the circle */
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(w.result, OUTBOX_EBUSY);
	ck_assert_str_eq(error.native, "1213");
	ck_assert_uint_eq(error.index, OUTBOX_NO_INDEX);
	ck_assert_msg(strstr(error.message, "the server rolled the whole transaction back"), "%s",
		      error.message);
	/* Nothing can be pushed by mistake into no transaction at all. */
	ck_assert_int_eq(push(w.ob, (struct outbox_message){ GOOD }), OUTBOX_ENOTRANSACTION);
	sql(db, "COMMIT");
	sql(admin, "COMMIT");
	ck_assert_int_eq(number(admin, "SELECT COUNT(*) FROM orders WHERE n = 1"), 0);
	ck_assert_int_eq(rows(), 2);
	outbox_close(w.ob);
	mysql_close(db);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_session_that_was_reset_goes_on)
{
	fixture_begin(4);
	MYSQL *db = fixture_connect("root");
	outbox *ob = writer(db, NULL);
	ck_assert_int_eq(mysql_reset_connection(db), 0);
	sql(db, "START TRANSACTION");
	pushed(ob, (struct outbox_message){ GOOD });
	sql(db, "COMMIT");
	ck_assert_int_eq(rows(), 1);
	outbox_close(ob);
	mysql_close(db);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_lost_connection_is_named)
{
	fixture_begin(4);
	MYSQL *db = fixture_connect("root");
	outbox *ob = writer(db, NULL);
	sql(db, "START TRANSACTION");
	sql(admin, "KILL %lu", mysql_thread_id(db));
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), OUTBOX_ESTORE);
	ck_assert_ptr_nonnull(strstr(error.message, "the connection is lost"));
	outbox_close(ob);
	mysql_close(db);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_table_that_does_not_fit_is_refused_when_opening)
{
	const struct outbox_column columns[] = { { "event_type", "kind" } };
	const struct outbox_options renamed = { .columns = columns, .column_count = 1 };
	const struct outbox_options bytes = { .flags = OUTBOX_BINARY_PAYLOAD };
	outbox *ob = NULL;

	fixture_begin(0);
	MYSQL *db = fixture_connect("root");
	ck_assert_int_eq(outbox_mysql_open(db, NULL, &ob, &error), OUTBOX_ESCHEMA);
	ck_assert_str_eq(error.message, "there is no table 'outbox': run `outbox setup`");
	mysql_close(db);
	fixture_end();
	fixture_begin(4);
	db = fixture_connect("root");
	ck_assert_int_eq(outbox_mysql_open(db, &renamed, &ob, &error), OUTBOX_ESCHEMA);
	ck_assert_str_eq(error.message,
			 "table 'outbox' has no column 'kind': run `outbox setup`, "
			 "or name the columns in the options");
	ck_assert_int_eq(outbox_mysql_open(db, &bytes, &ob, &error), OUTBOX_ESCHEMA);
	ck_assert_str_eq(error.message,
			 "column 'payload' of table 'outbox' is longtext: open the "
			 "outbox without OUTBOX_BINARY_PAYLOAD");
	ck_assert_int_eq(outbox_mysql_open(NULL, NULL, &ob, &error), OUTBOX_EINVAL);
	mysql_close(db);
	fixture_end();
}
OB_TEST_END

static void *push_one(void *arg)
{
	/* Bytes that are no text in any character set. */
	static const char id[] = "a15cee50-98b6-7ffe-8081-c0c1f5a0b027";
	struct outbox_message message = { GOOD, .id = id };

	return outbox_push(arg, &message, 1, NULL, &error) == 0 ? arg : NULL;
}

/* Whoever watches the server must not be disturbed by an id in the text of a statement. */
OB_TEST(the_list_of_processes_can_be_read_while_an_insert_waits)
{
	pthread_t thread;
	void *done;

	fixture_begin(4);
	MYSQL *db = fixture_connect("root"), *other = fixture_connect("root");
	outbox *ob = writer(db, NULL);
	sql(db, "START TRANSACTION");
	sql(other, "LOCK TABLES outbox READ");
	ck_assert_int_eq(pthread_create(&thread, NULL, push_one, ob), 0);
	while (number(admin,
		      "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE "
		      "'Waiting for table%' AND INFO LIKE 'INSERT%'") == 0)
		(void)poll(NULL, 0, 5);
	sql(other, "UNLOCK TABLES");
	ck_assert_int_eq(pthread_join(thread, &done), 0);
	ck_assert_msg(done == ob, "%s", error.message);
	sql(db, "COMMIT");
	ck_assert_str_eq(text(admin, "SELECT HEX(id) FROM outbox"),
			 "A15CEE5098B67FFE8081C0C1F5A0B027");
	outbox_close(ob);
	mysql_close(other);
	mysql_close(db);
	fixture_end();
}
OB_TEST_END

MYSQL_SUITE("MySQL push", a_push_outside_a_transaction_is_refused,
	    what_is_rolled_back_leaves_nothing, every_field_arrives_whatever_the_session_is,
	    duplicates_are_told_apart_and_leave_the_transaction_usable,
	    a_duplicate_that_the_snapshot_does_not_show_is_named,
	    blanks_and_case_make_different_aggregates, many_messages_are_all_or_nothing,
	    what_is_too_large_for_the_server_is_refused_before_it_costs_the_connection,
	    the_tables_own_check_names_the_document, a_lock_that_lasts_is_busy_and_costs_nothing,
	    a_deadlock_costs_the_whole_transaction_and_the_error_says_so,
	    a_session_that_was_reset_goes_on, a_lost_connection_is_named,
	    a_table_that_does_not_fit_is_refused_when_opening,
	    the_list_of_processes_can_be_read_while_an_insert_waits)
