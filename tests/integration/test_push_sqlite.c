/* SPDX-License-Identifier: MIT */
/* Pushing into a real SQLite database: what is stored, and how. */
#include "sqlite_fixture.h"
#include "suite.h"

#include "base/clock.h"
#include "base/uuid.h"

#include <stdlib.h>

OB_TEST(a_committed_message_is_stored_and_a_rolled_back_one_is_not)
{
	fixture_init();
	sqlite3 *db = fixture_new();
	outbox *ob = fixture_outbox(db, NULL);

	exec(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), 0);
	exec(db, "ROLLBACK");
	ck_assert_int_eq(rows(db), 0);
	exec(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), 0);
	/* It never commits by itself. */
	ck_assert_int_eq(sqlite3_get_autocommit(db), 0);
	exec(db, "COMMIT");
	ck_assert_int_eq(rows(db), 1);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_TEST(outside_of_a_transaction_nothing_is_written)
{
	fixture_init();
	sqlite3 *db = fixture_new();
	outbox *ob = fixture_outbox(db, NULL);

	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), OUTBOX_ENOTRANSACTION);
	ck_assert_int_eq(rows(db), 0);
	/* A savepoint is a transaction too. */
	exec(db, "SAVEPOINT mine");
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), 0);
	exec(db, "RELEASE mine");
	ck_assert_int_eq(rows(db), 1);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

static const struct outbox_message full = {
	.aggregate_type = "order",
	.aggregate_id = "käse-1042",
	.event_type = "OrderPlaced",
	.payload = "{ \"n\" : 1.50 }",
	.headers = "{\"h\":[1]}",
	.id = "00000000-0000-4000-8000-000000000001",
	.partition_key = "tenant-7",
	.target = "kafka",
	.correlation_id = "corr",
	.causation_id = "cause",
	.sequence_number = INT64_MAX,
	.occurred_at_us = 1700000000123456,
	.revision = 3,
	.priority = -5,
	.snapshot = "[null]",
};

OB_TEST(every_field_comes_back_as_it_was)
{
	fixture_init();
	sqlite3 *db = fixture_new();
	outbox *ob = fixture_outbox(db, NULL);

	exec(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(push(ob, full), 0);
	exec(db, "COMMIT");
	ck_assert_str_eq(
		text(db,
		     "SELECT concat_ws FROM (SELECT aggregate_type||'|'||aggregate_id||'|'||"
		     "event_type||'|'||payload||'|'||headers||'|'||partition_key||'|'||target||"
		     "'|'||correlation_id||'|'||causation_id||'|'||snapshot AS concat_ws "
		     "FROM outbox)"),
		"order|käse-1042|OrderPlaced|{ \"n\" : 1.50 "
		"}|{\"h\":[1]}|tenant-7|kafka|corr|cause|"
		"[null]");
	/* Leading NULs of an id are bytes like others. */
	ck_assert_str_eq(text(db, "SELECT typeof(id)||hex(id) FROM outbox"),
			 "blob00000000000040008000000000000001");
	ck_assert_str_eq(text(db,
			      "SELECT sequence_number||'|'||occurred_at||'|'||revision||'|'||"
			      "priority FROM outbox"),
			 "9223372036854775807|1700000000123456|3|-5");
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_TEST(what_is_left_out_gets_its_default)
{
	fixture_init();
	sqlite3 *db = fixture_new();
	outbox *ob = fixture_outbox(db, NULL);
	int64_t before = ob_clock_real_us(&ob_clock_system);

	exec(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), 0);
	exec(db, "COMMIT");
	ck_assert_str_eq(text(db,
			      "SELECT revision||'|'||priority||'|'||target||'|'||available_at"
			      " FROM outbox"),
			 "1|0|default|0");
	ck_assert_int_eq(number(db,
				"SELECT count(*) FROM outbox WHERE aggregate_id IS NULL AND "
				"sequence_number IS NULL AND headers IS NULL AND snapshot IS NULL "
				"AND correlation_id IS NULL AND causation_id IS NULL AND "
				"partition_key IS NULL"),
			 1);
	int64_t occurred = number(db, "SELECT occurred_at FROM outbox");
	/* SQLite's clock has milliseconds. */
	ck_assert_int_ge(occurred, before - 1000);
	ck_assert_int_le(occurred, ob_clock_real_us(&ob_clock_system) + 1000);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_TEST(messages_with_and_without_times_share_one_call)
{
	struct outbox_message messages[3] = {
		{ GOOD },
		{ GOOD, .occurred_at_us = 42 },
		{ GOOD, .delay_ms = 60000 },
	};

	fixture_init();
	sqlite3 *db = fixture_new();
	outbox *ob = fixture_outbox(db, NULL);
	int64_t before = ob_clock_real_us(&ob_clock_system);

	exec(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(outbox_push(ob, messages, 3, NULL, &error), 0);
	exec(db, "COMMIT");
	int64_t after = ob_clock_real_us(&ob_clock_system);
	ck_assert_int_ge(number(db, "SELECT occurred_at FROM outbox WHERE seq = 1"), before - 1000);
	ck_assert_int_eq(number(db, "SELECT occurred_at FROM outbox WHERE seq = 2"), 42);
	ck_assert_int_eq(number(db, "SELECT max(available_at) FROM outbox WHERE seq < 3"), 0);
	int64_t due = number(db, "SELECT available_at FROM outbox WHERE seq = 3");
	ck_assert_int_ge(due, before + 60000000);
	ck_assert_int_le(due, after + 60000000);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_TEST(an_id_is_stored_as_canonical_text_on_request)
{
	struct outbox_options options = { .flags = OUTBOX_STRING_ID };
	struct ob_layout layout;
	struct outbox_id id;
	struct outbox_message messages[2] = {
		{ GOOD, .aggregate_id = "not a uuid", .id = "00112233445546778899AABBCCDDEEFF" },
		{ GOOD },
	};

	fixture_init();
	sqlite3 *db = fixture_open();
	ob_layout_default(&layout);
	layout.string_id = true;
	fixture_tables(db, &layout);
	outbox *ob = fixture_outbox(db, &options);
	exec(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(outbox_push(ob, messages, 1, NULL, &error), 0);
	ck_assert_int_eq(outbox_push(ob, messages + 1, 1, &id, &error), 0);
	/* Duplicates are found in that form too. */
	ck_assert_int_eq(outbox_push(ob, messages, 1, NULL, &error), OUTBOX_EDUPID);
	exec(db, "COMMIT");
	ck_assert_str_eq(text(db, "SELECT id||' '||aggregate_id FROM outbox WHERE seq = 1"),
			 "00112233-4455-4677-8899-aabbccddeeff not a uuid");
	ck_assert_str_eq(text(db, "SELECT id FROM outbox WHERE seq = 2"), id.text);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_TEST(a_binary_payload_is_stored_byte_for_byte)
{
	struct outbox_options options = { .flags = OUTBOX_BINARY_PAYLOAD };
	struct outbox_message m = { GOOD };
	struct ob_layout layout;

	fixture_init();
	sqlite3 *db = fixture_open();
	ob_layout_default(&layout);
	layout.binary_payload = true;
	fixture_tables(db, &layout);
	outbox *ob = fixture_outbox(db, &options);
	exec(db, "BEGIN IMMEDIATE");
	m.payload = "\0\xff\0";
	m.payload_size = 3;
	ck_assert_int_eq(push(ob, m), 0);
	m.payload = "";
	m.payload_size = 0;
	ck_assert_int_eq(push(ob, m), 0);
	m.payload = NULL;
	m.flags = OUTBOX_TOMBSTONE;
	ck_assert_int_eq(push(ob, m), 0);
	exec(db, "COMMIT");
	ck_assert_str_eq(text(db,
			      "SELECT group_concat(typeof(payload)||coalesce(hex(payload), '-')) "
			      "FROM (SELECT payload FROM outbox ORDER BY seq)"),
			 "blob00FF00,blob,null");
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

/* A layout in which no name is the default, with the options that describe it. */
static void rename_all(struct ob_layout *layout, struct outbox_column *columns,
		       struct outbox_options *options)
{
	static char names[OB_COL_COUNT][OB_IDENT_SIZE];
	static const char *const ours[] = {
#define X(name, optional) #name,
		OB_COLUMN_MAP(X)
#undef X
	};
	struct ob_err err;

	ob_layout_default(layout);
	ck_assert_int_eq(ob_layout_set_table(layout, "select", &err), 0);
	for (int c = 0; c < OB_COL_COUNT; c++) {
		/* Names that need quoting, or would be something else without it. */
		(void)snprintf(names[c], sizeof(names[c]), "%s$X", ours[c]);
		columns[c] = (struct outbox_column){ ours[c], names[c] };
		ck_assert_int_eq(ob_layout_set_column(layout, ours[c], names[c], &err), 0);
	}
	*options = (struct outbox_options){ .table = "select",
					    .columns = columns,
					    .column_count = OB_COL_COUNT };
}

OB_TEST(every_name_can_be_another)
{
	struct outbox_column columns[OB_COL_COUNT];
	struct outbox_options options;
	struct ob_layout layout;
	struct outbox_message again = full;

	fixture_init();
	sqlite3 *db = fixture_open();
	rename_all(&layout, columns, &options);
	fixture_tables(db, &layout);
	outbox *ob = fixture_outbox(db, &options);
	exec(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(push(ob, full), 0);
	ck_assert_int_eq(push(ob, full), OUTBOX_EDUPID);
	again.id = NULL;
	ck_assert_int_eq(push(ob, again), OUTBOX_EDUPSEQUENCE);
	again.sequence_number = 0;
	again.delay_ms = 1;
	ck_assert_int_eq(push(ob, again), 0);
	exec(db, "COMMIT");
	ck_assert_str_eq(text(db,
			      "SELECT hex(id$X)||'|'||event_type$X||'|'||priority$X||'|'||"
			      "occurred_at$X||'|'||snapshot$X FROM \"select\" WHERE seq$X = 1"),
			 "00000000000040008000000000000001|OrderPlaced|-5|1700000000123456|[null]");
	ck_assert_int_gt(number(db, "SELECT available_at$X FROM \"select\" WHERE seq$X = 2"), 0);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_TEST(the_table_may_lie_in_an_attached_database)
{
	struct outbox_options options = { .table = "shop.events" };

	fixture_init();
	sqlite3 *db = fixture_open();
	exec(db, "ATTACH ':memory:' AS shop");
	exec(db,
	     "CREATE TABLE shop.events (seq INTEGER PRIMARY KEY, id BLOB, aggregate_type, "
	     "aggregate_id, event_type, revision, sequence_number, payload, headers, snapshot, "
	     "correlation_id, causation_id, partition_key, priority, target, occurred_at DEFAULT "
	     "7, available_at DEFAULT 0)");
	outbox *ob = fixture_outbox(db, &options);
	exec(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), 0);
	exec(db, "COMMIT");
	/* The default of the column, whatever it is. */
	ck_assert_int_eq(number(db, "SELECT occurred_at FROM shop.events"), 7);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_TEST(columns_that_are_off_are_not_needed)
{
	static const struct outbox_column columns[] = {
		{ "revision", NULL },      { "sequence_number", NULL }, { "headers", NULL },
		{ "snapshot", NULL },      { "correlation_id", NULL },  { "causation_id", NULL },
		{ "partition_key", NULL }, { "occurred_at", NULL },
	};
	struct outbox_options options = { .columns = columns, .column_count = 8 };
	struct ob_layout layout;
	struct ob_err err;
	struct outbox_message m = { GOOD, .id = "00112233-4455-4677-8899-aabbccddeeff" };

	fixture_init();
	sqlite3 *db = fixture_open();
	ob_layout_default(&layout);
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(ob_layout_set_column(&layout, columns[i].column, NULL, &err), 0);
	fixture_tables(db, &layout);
	outbox *ob = fixture_outbox(db, &options);
	exec(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(push(ob, m), 0);
	ck_assert_int_eq(push(ob, m), OUTBOX_EDUPID);
	m.headers = "{}";
	ck_assert_int_eq(push(ob, m), OUTBOX_EINVAL);
	ck_assert_ptr_nonnull(strstr(error.message, "headers"));
	exec(db, "COMMIT");
	ck_assert_int_eq(rows(db), 1);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

/* ---- statements ------------------------------------------------------ */

struct trace {
	int statements, inserts;
};

static int count_statement(unsigned kind, void *context, void *stmt, void *sql)
{
	struct trace *trace = context;

	(void)kind;
	(void)stmt;
	trace->statements++;
	trace->inserts += strncmp(sql, "INSERT", 6) == 0;
	return 0;
}

/* `count` good messages; the caller frees. */
static struct outbox_message *many(size_t count)
{
	struct outbox_message *messages = calloc(count, sizeof(*messages));

	ck_assert_ptr_nonnull(messages);
	for (size_t i = 0; i < count; i++)
		messages[i] = (struct outbox_message){ GOOD };
	return messages;
}

OB_TEST(a_hundred_messages_are_one_statement)
{
	struct trace trace = { 0, 0 };
	struct outbox_message *messages = many(100);

	fixture_init();
	sqlite3 *db = fixture_new();
	outbox *ob = fixture_outbox(db, NULL);
	exec(db, "BEGIN IMMEDIATE");
	(void)sqlite3_trace_v2(db, SQLITE_TRACE_STMT, count_statement, &trace);
	ck_assert_int_eq(outbox_push(ob, messages, 0, NULL, &error), 0);
	ck_assert_int_eq(trace.statements, 0);
	ck_assert_int_eq(outbox_push(ob, messages, 100, NULL, &error), 0);
	ck_assert_int_eq(trace.statements, 1);
	ck_assert_int_eq(trace.inserts, 1);
	(void)sqlite3_trace_v2(db, 0, NULL, NULL);
	exec(db, "COMMIT");
	ck_assert_int_eq(rows(db), 100);
	free(messages);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_TEST(ten_thousand_messages_keep_their_order)
{
	enum { COUNT = 10000 };
	struct outbox_message *messages = many(COUNT);
	struct outbox_id *ids = calloc(COUNT, sizeof(*ids));
	sqlite3_stmt *stmt;

	fixture_init();
	sqlite3 *db = fixture_new();
	outbox *ob = fixture_outbox(db, NULL);
	for (int i = 0; i < COUNT; i++)
		messages[i].sequence_number = i + 1;
	exec(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(outbox_push(ob, messages, COUNT, ids, &error), 0);
	exec(db, "COMMIT");
	ck_assert_int_eq(rows(db), COUNT);
	ck_assert_int_eq(sqlite3_prepare_v2(db,
					    "SELECT sequence_number, id FROM outbox ORDER BY seq",
					    -1, &stmt, NULL),
			 SQLITE_OK);
	for (int i = 0; i < COUNT; i++) {
		char id[OB_UUID_TEXT_SIZE];

		ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
		ck_assert_int_eq(sqlite3_column_int(stmt, 0), i + 1);
		ob_uuid_format(sqlite3_column_blob(stmt, 1), id);
		ck_assert_str_eq(id, ids[i].text);
		ck_assert(i == 0 || strcmp(ids[i - 1].text, ids[i].text) < 0);
	}
	(void)sqlite3_finalize(stmt);
	free(messages);
	free(ids);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_TEST(a_small_limit_of_the_connection_is_obeyed)
{
	struct trace trace = { 0, 0 };
	struct outbox_message *messages = many(20);

	fixture_init();
	sqlite3 *db = fixture_new();
	outbox *ob = fixture_outbox(db, NULL);
	(void)sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, 30); /* two rows of fourteen */
	exec(db, "BEGIN IMMEDIATE");
	(void)sqlite3_trace_v2(db, SQLITE_TRACE_STMT, count_statement, &trace);
	ck_assert_int_eq(outbox_push(ob, messages, 20, NULL, &error), 0);
	ck_assert_int_eq(trace.inserts, 10);
	ck_assert_int_eq(trace.statements, 12); /* in one savepoint */
	exec(db, "COMMIT");
	ck_assert_int_eq(rows(db), 20);
	free(messages);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_TEST(a_handle_is_used_again_and_again)
{
	fixture_init();
	sqlite3 *db = fixture_new();
	outbox *ob = fixture_outbox(db, NULL);
	struct outbox_message *messages = many(5);
	int64_t stored = 0;

	for (size_t count = 1; count <= 5; count++) {
		for (int round = 0; round < 3; round++) {
			messages[0].occurred_at_us = round;
			messages[0].delay_ms = round == 2;
			exec(db, "BEGIN IMMEDIATE");
			ck_assert_int_eq(outbox_push(ob, messages, count, NULL, &error), 0);
			exec(db, "COMMIT");
			stored += (int64_t)count;
			ck_assert_int_eq(rows(db), stored);
		}
	}
	free(messages);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_TEST(a_push_may_run_inside_the_callers_own_query)
{
	sqlite3_stmt *stmt;
	int pushed = 0;

	fixture_init();
	sqlite3 *db = fixture_new();
	outbox *ob = fixture_outbox(db, NULL);
	exec(db, "CREATE TABLE orders (id INTEGER PRIMARY KEY, paid INTEGER)");
	exec(db, "INSERT INTO orders VALUES (1, 0), (2, 0), (3, 0)");
	exec(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(
		sqlite3_prepare_v2(db, "UPDATE orders SET paid = 1 RETURNING id", -1, &stmt, NULL),
		SQLITE_OK);
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), 0);
		pushed++;
	}
	(void)sqlite3_finalize(stmt);
	exec(db, "COMMIT");
	ck_assert_int_eq(pushed, 3);
	ck_assert_int_eq(rows(db), 3);
	outbox_close(ob);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	fixture_done();
}
OB_TEST_END

OB_SUITE("push_sqlite", a_committed_message_is_stored_and_a_rolled_back_one_is_not,
	 outside_of_a_transaction_nothing_is_written, every_field_comes_back_as_it_was,
	 what_is_left_out_gets_its_default, messages_with_and_without_times_share_one_call,
	 an_id_is_stored_as_canonical_text_on_request, a_binary_payload_is_stored_byte_for_byte,
	 every_name_can_be_another, the_table_may_lie_in_an_attached_database,
	 columns_that_are_off_are_not_needed, a_hundred_messages_are_one_statement,
	 ten_thousand_messages_keep_their_order, a_small_limit_of_the_connection_is_obeyed,
	 a_handle_is_used_again_and_again, a_push_may_run_inside_the_callers_own_query)
