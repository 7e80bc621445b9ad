/* SPDX-License-Identifier: MIT */
/* Pushing into SQLite when something is wrong: the code, and nothing left behind. */
#include "sqlite_fixture.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define ID_A "00112233-4455-4677-8899-aabbccddee01"
#define ID_B "00112233-4455-4677-8899-aabbccddee02"

/* What most tests need: a database, a writer, an open transaction. */
struct world {
	sqlite3 *db;
	outbox *ob;
};

static struct world begin(void)
{
	struct world w;

	fixture_init();
	w.db = fixture_new();
	w.ob = fixture_outbox(w.db, NULL);
	exec(w.db, "BEGIN IMMEDIATE");
	return w;
}

/* The transaction must still be usable: store one more and commit. */
static void end(struct world w, int64_t expected_rows)
{
	ck_assert_int_eq(rows(w.db), expected_rows);
	ck_assert_int_eq(push(w.ob, (struct outbox_message){ GOOD }), 0);
	exec(w.db, "COMMIT");
	ck_assert_int_eq(rows(w.db), expected_rows + 1);
	outbox_close(w.ob);
	ck_assert_int_eq(sqlite3_close(w.db), SQLITE_OK);
	fixture_done();
}

static void leave(struct world w)
{
	outbox_close(w.ob);
	ck_assert_int_eq(sqlite3_close(w.db), SQLITE_OK);
	fixture_done();
}

static bool says(const char *what)
{
	return strstr(error.message, what);
}

/* ---- duplicates ------------------------------------------------------ */

OB_TEST(a_second_id_and_a_second_sequence_are_told_apart)
{
	struct world w = begin();
	struct outbox_message first = { GOOD, .aggregate_id = "1", .sequence_number = 7,
					.id = ID_A };
	struct outbox_message m = first;

	ck_assert_int_eq(push(w.ob, first), 0);
	/* The same message again: its id counts. */
	ck_assert_int_eq(push(w.ob, first), OUTBOX_EDUPID);
	ck_assert_str_eq(error.native, "SQLITE_2067");
	ck_assert(says(ID_A));
	m.sequence_number = 8;
	ck_assert_int_eq(push(w.ob, m), OUTBOX_EDUPID);
	m.sequence_number = 7;
	m.id = ID_B;
	ck_assert_int_eq(push(w.ob, m), OUTBOX_EDUPSEQUENCE);
	ck_assert_str_eq(error.native, "SQLITE_2067");
	ck_assert(says("sequence number 7"));
	end(w, 1);
}
OB_TEST_END

OB_TEST(what_differs_in_one_part_is_no_duplicate)
{
	struct world w = begin();
	struct outbox_message m = { GOOD, .aggregate_id = "1", .sequence_number = 7, .id = ID_A };

	ck_assert_int_eq(push(w.ob, m), 0);
	m.target = "audit"; /* one message for two relays */
	ck_assert_int_eq(push(w.ob, m), 0);
	m = (struct outbox_message){ GOOD, .aggregate_id = "2", .sequence_number = 7 };
	ck_assert_int_eq(push(w.ob, m), 0);
	m.aggregate_type = "invoice";
	ck_assert_int_eq(push(w.ob, m), 0);
	/* Without aggregate_id or number there is no sequence. */
	m = (struct outbox_message){ GOOD, .sequence_number = 7 };
	ck_assert_int_eq(push(w.ob, m), 0);
	ck_assert_int_eq(push(w.ob, m), 0);
	m = (struct outbox_message){ GOOD, .aggregate_id = "1" };
	ck_assert_int_eq(push(w.ob, m), 0);
	ck_assert_int_eq(push(w.ob, m), 0);
	end(w, 8);
}
OB_TEST_END

OB_TEST(values_that_look_like_constraints_confuse_nobody)
{
	struct world w = begin();
	struct outbox_message m = {
		GOOD,
		.aggregate_id = "outbox.id, outbox.target",
		.sequence_number = 1,
		.id = ID_A,
	};

	m.aggregate_type = "UNIQUE constraint failed: outbox.id";
	ck_assert_int_eq(push(w.ob, m), 0);
	m.id = ID_B;
	ck_assert_int_eq(push(w.ob, m), OUTBOX_EDUPSEQUENCE);
	m = (struct outbox_message){
		GOOD,
		.aggregate_id = "outbox_uniq_aggregate_sequence",
		.correlation_id = "outbox.sequence_number",
		.sequence_number = 1,
		.id = ID_A,
	};
	ck_assert_int_eq(push(w.ob, m), OUTBOX_EDUPID);
	end(w, 1);
}
OB_TEST_END

OB_TEST(the_names_of_the_indexes_do_not_matter)
{
	struct world w = begin();
	struct outbox_message m = { GOOD, .aggregate_id = "1", .sequence_number = 7, .id = ID_A };

	exec(w.db,
	     "DROP INDEX outbox_uniq_id; DROP INDEX outbox_uniq_aggregate_sequence;"
	     "CREATE UNIQUE INDEX outbox_uniq_aggregate_sequence ON outbox (id, target);"
	     "CREATE UNIQUE INDEX outbox_uniq_id ON outbox "
	     "(target, aggregate_type, aggregate_id, sequence_number)");
	ck_assert_int_eq(push(w.ob, m), 0);
	ck_assert_int_eq(push(w.ob, m), OUTBOX_EDUPID);
	m.id = NULL;
	ck_assert_int_eq(push(w.ob, m), OUTBOX_EDUPSEQUENCE);
	end(w, 1);
}
OB_TEST_END

OB_TEST(a_duplicate_inside_the_call_is_named_by_its_second_place)
{
	struct world w = begin();
	struct outbox_message ids[4] = {
		{ GOOD }, { GOOD, .id = ID_A }, { GOOD }, { GOOD, .id = ID_A }
	};
	struct outbox_message numbers[3] = {
		{ GOOD, .aggregate_id = "1", .sequence_number = 1 },
		{ GOOD, .aggregate_id = "1", .sequence_number = 2 },
		{ GOOD, .aggregate_id = "1", .sequence_number = 1 },
	};

	ck_assert_int_eq(outbox_push(w.ob, ids, 4, NULL, &error), OUTBOX_EDUPID);
	ck_assert_uint_eq(error.index, 3);
	ck_assert_int_eq(outbox_push(w.ob, numbers, 3, NULL, &error), OUTBOX_EDUPSEQUENCE);
	ck_assert_uint_eq(error.index, 2);
	ck_assert(says("message 2: "));
	end(w, 0);
}
OB_TEST_END

OB_TEST(messages_of_a_call_that_differ_in_one_part_are_no_duplicates)
{
	struct world w = begin();
	struct outbox_message numbers[5] = {
		{ GOOD, .aggregate_id = "1", .sequence_number = 1 },
		{ GOOD, .aggregate_id = "1", .sequence_number = 1, .target = "audit" },
		{ GOOD, .aggregate_id = "2", .sequence_number = 1 },
		{ GOOD, .aggregate_id = "1", .sequence_number = 1 },
		{ GOOD, .aggregate_id = "1", .sequence_number = 1 },
	};
	struct outbox_message ids[3] = {
		{ GOOD, .id = ID_A },
		{ GOOD, .id = ID_A, .target = "audit" },
		{ GOOD, .id = ID_A },
	};

	numbers[3].aggregate_type = "invoice";
	ck_assert_int_eq(outbox_push(w.ob, numbers, 5, NULL, &error), OUTBOX_EDUPSEQUENCE);
	ck_assert_uint_eq(error.index, 4);
	ck_assert_int_eq(outbox_push(w.ob, ids, 3, NULL, &error), OUTBOX_EDUPID);
	ck_assert_uint_eq(error.index, 2);
	end(w, 0);
}
OB_TEST_END

/* Push 11 messages of which the one `at` is a duplicate; nothing may be left of them. */
static void fail_at(struct world w, size_t at)
{
	struct outbox_message messages[11];
	struct outbox_id ids[11] = { { "untouched" } };

	for (size_t i = 0; i < 11; i++)
		messages[i] = (struct outbox_message){ GOOD };
	messages[at].id = ID_A;
	ck_assert_int_eq(outbox_push(w.ob, messages, 11, ids, &error), OUTBOX_EDUPID);
	ck_assert_uint_eq(error.index, at);
	ck_assert_str_eq(ids[0].text, "untouched");
	ck_assert_int_eq(rows(w.db), 1);
}

OB_TEST(a_failure_at_any_position_leaves_nothing)
{
	struct world w = begin();

	ck_assert_int_eq(push(w.ob, (struct outbox_message){ GOOD, .id = ID_A }), 0);
	for (size_t at = 0; at < 11; at++)
		fail_at(w, at);
	end(w, 1);
}
OB_TEST_END

OB_TEST(a_failure_in_any_statement_of_several_leaves_nothing)
{
	struct world w = begin();

	(void)sqlite3_limit(w.db, SQLITE_LIMIT_VARIABLE_NUMBER, 45); /* three rows */
	ck_assert_int_eq(push(w.ob, (struct outbox_message){ GOOD, .id = ID_A }), 0);
	for (size_t at = 0; at < 11; at++)
		fail_at(w, at);
	end(w, 1);
}
OB_TEST_END

OB_TEST(a_duplicate_of_an_earlier_statement_of_the_call_is_found)
{
	enum { COUNT = 3000 };
	struct world w = begin();
	struct outbox_message *messages = calloc(COUNT, sizeof(*messages));

	for (int i = 0; i < COUNT; i++)
		messages[i] = (struct outbox_message){ GOOD };
	messages[3].id = messages[COUNT - 1].id = ID_A;
	ck_assert_int_eq(outbox_push(w.ob, messages, COUNT, NULL, &error), OUTBOX_EDUPID);
	ck_assert_uint_eq(error.index, COUNT - 1);
	free(messages);
	end(w, 0);
}
OB_TEST_END

/* ---- other constraints ----------------------------------------------- */

OB_TEST(a_constraint_of_the_users_own_is_a_store_error)
{
	struct world w = begin();
	struct outbox_message m = { GOOD, .correlation_id = "c" };

	exec(w.db, "CREATE UNIQUE INDEX mine ON outbox (correlation_id)");
	ck_assert_int_eq(push(w.ob, m), 0);
	ck_assert_int_eq(push(w.ob, m), OUTBOX_ESTORE);
	ck_assert_str_eq(error.native, "SQLITE_2067");
	ck_assert_uint_eq(error.index, 0);
	exec(w.db,
	     "CREATE TRIGGER no BEFORE INSERT ON outbox WHEN new.causation_id = 'no' "
	     "BEGIN SELECT raise(ABORT, 'not today'); END");
	m = (struct outbox_message){ GOOD, .causation_id = "no" };
	ck_assert_int_eq(push(w.ob, m), OUTBOX_ESTORE);
	ck_assert_str_eq(error.native, "SQLITE_1811");
	ck_assert(says("not today"));
	end(w, 1);
}
OB_TEST_END

OB_TEST(the_tables_own_json_check_is_named_when_ours_is_off)
{
	struct outbox_options options = { .flags = OUTBOX_NO_PAYLOAD_CHECK };
	struct world w = begin();
	struct outbox_message messages[2] = { { GOOD }, { GOOD } };
	outbox *unchecked = fixture_outbox(w.db, &options);

	exec(w.db,
	     "ALTER TABLE outbox ADD COLUMN valid INTEGER DEFAULT 1 CHECK (json_valid(payload))");
	messages[1].payload = "{oops";
	ck_assert_int_eq(outbox_push(unchecked, messages, 2, NULL, &error), OUTBOX_EPAYLOADJSON);
	ck_assert_uint_eq(error.index, 1);
	ck_assert_str_eq(error.native, "SQLITE_275");
	/* A check that is not about JSON. */
	exec(w.db,
	     "ALTER TABLE outbox ADD COLUMN small INTEGER DEFAULT 9 CHECK (event_type <> 'no')");
	messages[1] = (struct outbox_message){ GOOD };
	messages[1].event_type = "no";
	ck_assert_int_eq(outbox_push(unchecked, messages, 2, NULL, &error), OUTBOX_ESTORE);
	ck_assert_str_eq(error.native, "SQLITE_275");
	outbox_close(unchecked);
	end(w, 0);
}
OB_TEST_END

OB_TEST(rows_that_a_trigger_ignores_are_not_called_stored)
{
	struct world w = begin();
	struct outbox_message messages[4] = { { GOOD }, { GOOD }, { GOOD }, { GOOD } };

	exec(w.db,
	     "CREATE TRIGGER no BEFORE INSERT ON outbox WHEN new.priority = 1 "
	     "BEGIN SELECT raise(IGNORE); END");
	messages[3].priority = 1;
	ck_assert_int_eq(push(w.ob, messages[3]), OUTBOX_ESTORE);
	ck_assert_int_eq(rows(w.db), 0);
	/* In several statements it is undone; in one it cannot be, and the error says so. */
	(void)sqlite3_limit(w.db, SQLITE_LIMIT_VARIABLE_NUMBER, 30);
	ck_assert_int_eq(outbox_push(w.ob, messages, 4, NULL, &error), OUTBOX_ESTORE);
	ck_assert_int_eq(rows(w.db), 0);
	ck_assert(!says("roll the transaction back"));
	(void)sqlite3_limit(w.db, SQLITE_LIMIT_VARIABLE_NUMBER, 1000);
	ck_assert_int_eq(outbox_push(w.ob, messages, 4, NULL, &error), OUTBOX_ESTORE);
	ck_assert(says("roll the transaction back"));
	exec(w.db, "ROLLBACK");
	leave(w);
}
OB_TEST_END

OB_TEST(rows_that_a_failing_trigger_leaves_behind_are_reported)
{
	struct world w = begin();
	struct outbox_message messages[4] = { { GOOD }, { GOOD }, { GOOD }, { GOOD } };

	exec(w.db,
	     "CREATE TRIGGER no BEFORE INSERT ON outbox WHEN new.priority = 1 "
	     "BEGIN SELECT raise(FAIL, 'half way'); END");
	messages[0].priority = 1;
	ck_assert_int_eq(outbox_push(w.ob, messages, 4, NULL, &error), OUTBOX_ESTORE);
	ck_assert(!says("left behind"));
	messages[0].priority = 0;
	messages[3].priority = 1;
	(void)sqlite3_limit(w.db, SQLITE_LIMIT_VARIABLE_NUMBER, 45);
	ck_assert_int_eq(outbox_push(w.ob, messages, 4, NULL, &error), OUTBOX_ESTORE);
	ck_assert(!says("left behind"));
	ck_assert_int_eq(rows(w.db), 0);
	(void)sqlite3_limit(w.db, SQLITE_LIMIT_VARIABLE_NUMBER, 1000);
	ck_assert_int_eq(outbox_push(w.ob, messages, 4, NULL, &error), OUTBOX_ESTORE);
	ck_assert(says("half way"));
	ck_assert(says("left behind: roll the transaction back"));
	ck_assert_str_eq(error.native, "SQLITE_1811");
	exec(w.db, "ROLLBACK");
	leave(w);
}
OB_TEST_END

OB_TEST(a_conflict_clause_of_the_table_loses_no_message)
{
	fixture_init();
	sqlite3 *db = fixture_open();
	exec(db,
	     "CREATE TABLE outbox (seq INTEGER PRIMARY KEY, id BLOB UNIQUE ON CONFLICT IGNORE, "
	     "aggregate_type, aggregate_id, event_type, revision, sequence_number, payload, "
	     "headers, snapshot, correlation_id UNIQUE ON CONFLICT ROLLBACK, causation_id, "
	     "partition_key, priority, target, occurred_at, available_at)");
	outbox *ob = fixture_outbox(db, NULL);
	exec(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD, .id = ID_A }), 0);
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD, .id = ID_A }), OUTBOX_EDUPID);
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD, .correlation_id = "c" }), 0);
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD, .correlation_id = "c" }),
			 OUTBOX_ESTORE);
	ck_assert_int_eq(sqlite3_get_autocommit(db), 0);
	end((struct world){ db, ob }, 2);
}
OB_TEST_END

/* ---- the database ---------------------------------------------------- */

OB_TEST(an_error_says_when_sqlite_ended_the_transaction)
{
	struct world w = begin();

	exec(w.db,
	     "CREATE TRIGGER no BEFORE INSERT ON outbox WHEN new.priority = 1 "
	     "BEGIN SELECT raise(ROLLBACK, 'never'); END; COMMIT; BEGIN IMMEDIATE");
	ck_assert_int_eq(push(w.ob, (struct outbox_message){ GOOD, .priority = 1 }), OUTBOX_ESTORE);
	ck_assert_int_ne(sqlite3_get_autocommit(w.db), 0);
	ck_assert(says("rolled the whole transaction back"));
	ck_assert_int_eq(push(w.ob, (struct outbox_message){ GOOD }), OUTBOX_ENOTRANSACTION);
	leave(w);
}
OB_TEST_END

OB_TEST(a_full_database_is_a_store_error)
{
	struct world w = begin();
	struct outbox_message messages[50];
	char *big = malloc(100001);

	memset(big, ' ', 100000);
	big[0] = '1';
	big[100000] = '\0';
	for (int i = 0; i < 50; i++) {
		messages[i] = (struct outbox_message){ GOOD };
		messages[i].payload = big;
	}
	exec(w.db, "COMMIT; PRAGMA max_page_count = 100; BEGIN IMMEDIATE");
	ck_assert_int_eq(outbox_push(w.ob, messages, 50, NULL, &error), OUTBOX_ESTORE);
	ck_assert_str_eq(error.native, "SQLITE_13");
	bool ended = sqlite3_get_autocommit(w.db);
	ck_assert_int_eq(says("rolled the whole transaction back"), ended);
	if (!ended)
		exec(w.db, "ROLLBACK");
	ck_assert_int_eq(rows(w.db), 0);
	free(big);
	leave(w);
}
OB_TEST_END

OB_TEST(another_writer_is_busy)
{
	struct world w = begin();
	sqlite3 *other = fixture_open();

	exec(w.db, "COMMIT");
	exec(other, "BEGIN IMMEDIATE");
	exec(w.db, "BEGIN");
	ck_assert_int_eq(push(w.ob, (struct outbox_message){ GOOD }), OUTBOX_EBUSY);
	ck_assert_str_eq(error.native, "SQLITE_5");
	exec(other, "COMMIT");
	ck_assert_int_eq(sqlite3_close(other), SQLITE_OK);
	end(w, 0);
}
OB_TEST_END

OB_TEST(an_outdated_read_says_begin_immediate)
{
	struct world w = begin();
	sqlite3 *other = fixture_open();

	exec(w.db, "COMMIT; PRAGMA journal_mode = WAL; BEGIN");
	ck_assert_int_eq(rows(w.db), 0); /* now it reads a snapshot */
	exec(other, "CREATE TABLE t (x)");
	(void)sqlite3_busy_timeout(w.db, 10000); /* would not help */
	ck_assert_int_eq(push(w.ob, (struct outbox_message){ GOOD }), OUTBOX_EBUSY);
	ck_assert_str_eq(error.native, "SQLITE_517");
	ck_assert(says("BEGIN IMMEDIATE"));
	exec(w.db, "ROLLBACK; BEGIN IMMEDIATE");
	ck_assert_int_eq(sqlite3_close(other), SQLITE_OK);
	end(w, 0);
}
OB_TEST_END

OB_TEST(a_read_only_database_is_a_store_error)
{
	struct world w = begin();

	exec(w.db, "COMMIT; PRAGMA query_only = 1; BEGIN");
	ck_assert_int_eq(push(w.ob, (struct outbox_message){ GOOD }), OUTBOX_ESTORE);
	ck_assert_str_eq(error.native, "SQLITE_8");
	ck_assert(says("readonly"));
	exec(w.db, "PRAGMA query_only = 0");
	end(w, 0);
}
OB_TEST_END

OB_TEST(a_field_longer_than_the_connection_allows_is_too_long)
{
	struct world w = begin();
	struct outbox_message m = { GOOD };
	char text_of_2000[2001];

	memset(text_of_2000, '1', 2000);
	text_of_2000[2000] = '\0';
	m.payload = text_of_2000;
	(void)sqlite3_limit(w.db, SQLITE_LIMIT_LENGTH, 1000);
	ck_assert_int_eq(push(w.ob, m), OUTBOX_ETOOLONG);
	ck_assert_str_eq(error.native, "SQLITE_18");
	end(w, 0);
}
OB_TEST_END

OB_TEST(a_running_statement_of_the_caller_is_no_other_writer)
{
	struct world w = begin();
	struct outbox_message messages[4] = { { GOOD }, { GOOD }, { GOOD }, { GOOD } };
	sqlite3_stmt *stmt;

	(void)sqlite3_limit(w.db, SQLITE_LIMIT_VARIABLE_NUMBER, 30);
	exec(w.db, "CREATE TABLE t (x)");
	ck_assert_int_eq(sqlite3_prepare_v2(w.db, "INSERT INTO t VALUES (1), (2) RETURNING x", -1,
					    &stmt, NULL),
			 SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	ck_assert_int_eq(outbox_push(w.ob, messages, 4, NULL, &error), OUTBOX_ESTORE);
	ck_assert(says("reset it"));
	(void)sqlite3_finalize(stmt);
	end(w, 0);
}
OB_TEST_END

/* ---- opening --------------------------------------------------------- */

static int try_open(sqlite3 *db, struct outbox_options options)
{
	outbox *ob = NULL;
	int r = outbox_sqlite_open(db, &options, &ob, &error);

	ck_assert_int_eq(r == 0, ob != NULL);
	outbox_close(ob);
	return r;
}

OB_TEST(tables_that_are_missing_are_named)
{
	static const struct outbox_column misspelt = { "event_type", "kind" };
	static const struct outbox_column renamed = { "event_type", "EVENT_TYPE" };

	fixture_init();
	sqlite3 *db = fixture_open();
	ck_assert_int_eq(try_open(db, (struct outbox_options){ 0 }), OUTBOX_ESCHEMA);
	ck_assert(says("outbox setup"));
	fixture_tables(db, NULL);
	ck_assert_int_eq(try_open(db, (struct outbox_options){ 0 }), 0);
	ck_assert_int_eq(try_open(db, (struct outbox_options){ .table = "nowhere.outbox" }),
			 OUTBOX_ESCHEMA);
	ck_assert(says("nowhere.outbox"));
	/* SQLite would take a misspelt column in quotes for a string. */
	ck_assert_int_eq(
		try_open(db, (struct outbox_options){ .columns = &misspelt, .column_count = 1 }),
		OUTBOX_ESCHEMA);
	ck_assert(says("'kind'"));
	ck_assert_int_eq(
		try_open(db, (struct outbox_options){ .columns = &renamed, .column_count = 1 }), 0);
	ck_assert_int_eq(try_open(db, (struct outbox_options){ .flags = OUTBOX_STRING_ID }),
			 OUTBOX_ESCHEMA);
	ck_assert(says("without OUTBOX_STRING_ID"));
	ck_assert_int_eq(try_open(db, (struct outbox_options){ .flags = OUTBOX_BINARY_PAYLOAD }),
			 OUTBOX_ESCHEMA);
	ck_assert(says("without OUTBOX_BINARY_PAYLOAD"));
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_TEST(tables_of_other_types_name_the_flag_they_need)
{
	struct ob_layout layout;

	fixture_init();
	sqlite3 *db = fixture_open();
	ob_layout_default(&layout);
	layout.string_id = true;
	fixture_tables(db, &layout);
	ck_assert_int_eq(try_open(db, (struct outbox_options){ 0 }), OUTBOX_ESCHEMA);
	ck_assert(says("with OUTBOX_STRING_ID"));
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_TEST(a_table_that_changes_while_open_is_reported)
{
	struct world w = begin();

	exec(w.db, "ALTER TABLE outbox RENAME COLUMN causation_id TO cause");
	ck_assert_int_eq(push(w.ob, (struct outbox_message){ GOOD }), OUTBOX_ESCHEMA);
	ck_assert(says("'causation_id'"));
	exec(w.db, "ALTER TABLE outbox RENAME COLUMN cause TO causation_id");
	ck_assert_int_eq(push(w.ob, (struct outbox_message){ GOOD }), 0);
	exec(w.db, "ALTER TABLE outbox RENAME TO gone");
	ck_assert_int_eq(push(w.ob, (struct outbox_message){ GOOD }), OUTBOX_ESCHEMA);
	ck_assert(says("no table 'outbox'"));
	exec(w.db, "ALTER TABLE gone RENAME TO outbox");
	end(w, 1);
}
OB_TEST_END

OB_TEST(wrong_options_are_refused)
{
	static const struct outbox_column unknown = { "no_such", "x" };
	static const struct outbox_column unnamed = { NULL, "x" };
	static const struct outbox_column required = { "payload", NULL };
	static const struct outbox_column twice = { "payload", "headers" };
	static const struct outbox_column quoted = { "payload", "pay\"load" };
	struct world w = begin();
	outbox *ob = NULL;

	ck_assert_int_eq(outbox_sqlite_open(NULL, NULL, &ob, &error), OUTBOX_EINVAL);
	ck_assert_int_eq(outbox_sqlite_open(NULL, NULL, &ob, NULL), OUTBOX_EINVAL);
	ck_assert_int_eq(try_open(w.db, (struct outbox_options){ .flags = 0x100 }), OUTBOX_EINVAL);
	ck_assert_int_eq(try_open(w.db, (struct outbox_options){ .column_count = 1 }),
			 OUTBOX_EINVAL);
	ck_assert_int_eq(try_open(w.db, (struct outbox_options){ .table = "a;b" }), OUTBOX_ECONFIG);
	ck_assert_int_eq(try_open(w.db, (struct outbox_options){ .table = "" }), OUTBOX_ECONFIG);
	ck_assert_int_eq(
		try_open(w.db, (struct outbox_options){ .columns = &unnamed, .column_count = 1 }),
		OUTBOX_EINVAL);
	ck_assert_int_eq(
		try_open(w.db, (struct outbox_options){ .columns = &unknown, .column_count = 1 }),
		OUTBOX_ECONFIG);
	ck_assert_int_eq(
		try_open(w.db, (struct outbox_options){ .columns = &required, .column_count = 1 }),
		OUTBOX_ECONFIG);
	ck_assert_int_eq(
		try_open(w.db, (struct outbox_options){ .columns = &twice, .column_count = 1 }),
		OUTBOX_ECONFIG);
	ck_assert_int_eq(
		try_open(w.db, (struct outbox_options){ .columns = &quoted, .column_count = 1 }),
		OUTBOX_ECONFIG);
	end(w, 0);
}
OB_TEST_END

OB_TEST(a_locked_or_foreign_file_is_an_error_at_opening)
{
	struct world w = begin();
	sqlite3 *other = fixture_open();
	outbox *ob = NULL;

	exec(w.db, "COMMIT; BEGIN EXCLUSIVE");
	ck_assert_int_eq(outbox_sqlite_open(other, NULL, &ob, &error), OUTBOX_EBUSY);
	exec(w.db, "COMMIT");
	ck_assert_int_eq(outbox_sqlite_open(other, NULL, &ob, &error), 0);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(other), SQLITE_OK);
	ck_assert_int_eq(sqlite3_open("/proc/self/exe", &other), SQLITE_OK);
	ck_assert_int_eq(outbox_sqlite_open(other, NULL, &ob, &error), OUTBOX_ESTORE);
	ck_assert_str_eq(error.native, "SQLITE_26");
	ck_assert_int_eq(sqlite3_close(other), SQLITE_OK);
	leave(w);
}
OB_TEST_END

OB_TEST(the_connection_keeps_its_settings)
{
	static const char *const pragmas[] = { "busy_timeout", "foreign_keys", "journal_mode",
					       "synchronous", "trusted_schema" };
	char before[5][64];
	int quoted = -1, quoted_before = -1;

	fixture_init();
	sqlite3 *db = fixture_new();
	(void)sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, -1, &quoted_before);
	for (int i = 0; i < 5; i++) {
		char sql[64];

		(void)snprintf(sql, sizeof(sql), "PRAGMA %s", pragmas[i]);
		(void)snprintf(before[i], sizeof(before[i]), "%s", text(db, sql));
	}
	outbox *ob = fixture_outbox(db, NULL);
	exec(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), 0);
	exec(db, "COMMIT");
	(void)sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, -1, &quoted);
	ck_assert_int_eq(quoted, quoted_before);
	for (int i = 0; i < 5; i++) {
		char sql[64];

		(void)snprintf(sql, sizeof(sql), "PRAGMA %s", pragmas[i]);
		ck_assert_str_eq(text(db, sql), before[i]);
	}
	leave((struct world){ db, ob });
}
OB_TEST_END

OB_SUITE("push_sqlite_errors", a_second_id_and_a_second_sequence_are_told_apart,
	 what_differs_in_one_part_is_no_duplicate, values_that_look_like_constraints_confuse_nobody,
	 the_names_of_the_indexes_do_not_matter,
	 a_duplicate_inside_the_call_is_named_by_its_second_place,
	 messages_of_a_call_that_differ_in_one_part_are_no_duplicates,
	 a_failure_at_any_position_leaves_nothing,
	 a_failure_in_any_statement_of_several_leaves_nothing,
	 a_duplicate_of_an_earlier_statement_of_the_call_is_found,
	 a_constraint_of_the_users_own_is_a_store_error,
	 the_tables_own_json_check_is_named_when_ours_is_off,
	 rows_that_a_trigger_ignores_are_not_called_stored,
	 rows_that_a_failing_trigger_leaves_behind_are_reported,
	 a_conflict_clause_of_the_table_loses_no_message,
	 an_error_says_when_sqlite_ended_the_transaction, a_full_database_is_a_store_error,
	 another_writer_is_busy, an_outdated_read_says_begin_immediate,
	 a_read_only_database_is_a_store_error,
	 a_field_longer_than_the_connection_allows_is_too_long,
	 a_running_statement_of_the_caller_is_no_other_writer, tables_that_are_missing_are_named,
	 tables_of_other_types_name_the_flag_they_need, a_table_that_changes_while_open_is_reported,
	 wrong_options_are_refused, a_locked_or_foreign_file_is_an_error_at_opening,
	 the_connection_keeps_its_settings)
