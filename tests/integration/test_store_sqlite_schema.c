/* SPDX-License-Identifier: MIT */
/* The tables of the SQLite store: making and checking them, their layouts, indexes and partitions.
 */
#include "store/sqlite/stmt.h"
#include "store_sqlite_fixture.h"

/* ---- making ---------------------------------------------------------- */

static void setup_a(void)
{
	const struct ob_setup wish = { .partition_count = 8 };
	struct ob_store *store = NULL;
	struct ob_setup_done done = { .from_version = 9, .to_version = 9 };
	char url[200];
	/* With the default busy_timeout: they do wait for each other. */
	const struct ob_store_conf conf = { .url = url };

	(void)snprintf(url, sizeof(url), "sqlite:%s", file("a.db"));
	/* All of them begin while there is nothing. */
	if (ob_store_connect(&conf, &store, &err) < 0 ||
	    ob_store_setup(store, &wish, &done, &err) < 0) {
		(void)fprintf(stderr, "# %s\n", err.msg);
		_exit(3);
	}
	if (done.from_version == 0)
		sql_on("made.db",
		       "PRAGMA busy_timeout = 9000; CREATE TABLE IF NOT EXISTS t (x); "
		       "INSERT INTO t VALUES (1)");
	ob_store_free(store);
}

OB_TEST(several_processes_set_up_at_once_and_one_makes_the_tables)
{
	pid_t pids[4];

	(void)file("a.db");
	for (int i = 0; i < 4; i++)
		pids[i] = in_child(setup_a);
	for (int i = 0; i < 4; i++)
		wait_child(pids[i]);
	ck_assert_int_eq(number_on("made.db", "SELECT count(*) FROM t"), 1);
	struct ob_store *store = open_store("a.db", NULL);
	ok(ob_store_check(store, &err));
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(the_printed_sql_makes_what_setup_makes)
{
	const struct ob_setup wish = { .partition_count = 5 };
	struct ob_buf out = OB_BUF_INIT(1 << 20);
	const char *schema = "SELECT count(*) FROM sqlite_schema";

	ok(ob_store_setup_sql(&ob_store_sqlite, NULL, &wish, &out, &err));
	sql_on("a.db", ob_buf_str(&out));
	struct ob_store *store = open_store("a.db", NULL);
	ok(ob_store_check(store, &err));
	ok(setup(store));
	ob_store_free(store);
	ck_assert_int_eq(number_on("a.db",
				   "SELECT value FROM outbox_meta WHERE name = "
				   "'partition_count'"),
			 5);
	ob_store_free(new_store("b.db", NULL));
	ck_assert_int_eq(number_on("a.db", schema), number_on("b.db", schema));
	ob_buf_done(&out);
}
OB_TEST_END

/* ---- what is not ours ------------------------------------------------ */

/* Neither setup nor check accept it, both say this, and nothing is changed. */
static void expect_foreign(const char *create, const char *says)
{
	sql_on("a.db", create);
	int64_t before = number_on("a.db", "SELECT sum(length(sql)) FROM sqlite_schema");
	struct ob_store *store = open_store("a.db", NULL);

	fails(setup(store), OUTBOX_ESCHEMA, OB_ERR_FATAL, says);
	fails(ob_store_check(store, &err), OUTBOX_ESCHEMA, OB_ERR_FATAL, says);
	ob_store_free(store);
	ck_assert_int_eq(number_on("a.db", "SELECT sum(length(sql)) FROM sqlite_schema"), before);
}

OB_TEST(a_foreign_table_is_refused_and_its_missing_column_named)
{
	expect_foreign("CREATE TABLE outbox (seq INTEGER PRIMARY KEY, id BLOB, subject TEXT)",
		       "table 'outbox' has no column 'aggregate_type'");
}
OB_TEST_END

OB_TEST(a_foreign_companion_is_refused)
{
	expect_foreign("CREATE TABLE outbox_workers (id BLOB, name TEXT)",
		       "table 'outbox_workers' has no column 'reader'");
}
OB_TEST_END

OB_TEST(a_view_under_our_name_is_refused)
{
	expect_foreign("CREATE VIEW outbox AS SELECT 1", "is no table");
}
OB_TEST_END

OB_TEST(a_foreign_meta_table_is_refused)
{
	expect_foreign("CREATE TABLE outbox_meta (name TEXT, value INTEGER)",
		       "not made by `outbox setup`");
}
OB_TEST_END

OB_TEST(a_newer_schema_asks_for_a_newer_program)
{
	ob_store_free(new_store("a.db", NULL));
	expect_foreign("UPDATE outbox_meta SET value = 3 WHERE name = 'schema_version'",
		       "made by a newer outbox; upgrade this program");
}
OB_TEST_END

OB_TEST(an_older_schema_is_refused_and_says_what_to_do)
{
	struct ob_store *store = new_store("a.db", NULL);

	sql_on("a.db", "UPDATE outbox_meta SET value = 1 WHERE name = 'schema_version'");
	fails(ob_store_check(store, &err), OUTBOX_ESCHEMA, OB_ERR_FATAL, "run `outbox setup`");
	fails(setup(store), OUTBOX_ESCHEMA, OB_ERR_FATAL, "choose another table name");
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(a_partitioned_log_is_refused)
{
	const struct ob_setup wish = { .partition_count = 4, .partitioned = true };
	struct ob_store *store = open_store("a.db", NULL);
	struct ob_buf out = OB_BUF_INIT(1 << 20);
	struct ob_setup_done done;

	fails(ob_store_setup(store, &wish, &done, &err), OUTBOX_EINVAL, OB_ERR_FATAL,
	      "SQLite has no partitioned tables");
	fails(ob_store_setup_sql(&ob_store_sqlite, NULL, &wish, &out, &err), OUTBOX_EINVAL,
	      OB_ERR_FATAL, "SQLite has no partitioned tables");
	ck_assert_int_lt(access(file("a.db"), F_OK), 0);
	ob_buf_done(&out);
	ob_store_free(store);
}
OB_TEST_END

/* ---- what the promises rest on --------------------------------------- */

OB_TEST(a_missing_index_or_companion_is_found_and_repaired)
{
	static const char *const parts[] = { "INDEX outbox_uniq_id",    "INDEX outbox_due",
					     "INDEX outbox_queue",      "VIEW outbox_messages",
					     "TABLE outbox_throughput", "TABLE outbox_workers",
					     "TABLE outbox_audit" };
	struct ob_store *store = new_store("a.db", NULL);
	char drop[64];

	put(store, "1", 3);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		(void)snprintf(drop, sizeof(drop), "DROP %s", parts[i]);
		sql_on("a.db", drop);
		fails(ob_store_check(store, &err), OUTBOX_ESCHEMA, OB_ERR_FATAL, "is missing");
		ok(setup(store));
		ok(ob_store_check(store, &err));
	}
	ck_assert_int_eq(number_on("a.db", "SELECT count(*) FROM outbox"), 3);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(a_log_that_is_made_anew_goes_on_above_every_position)
{
	struct ob_store *store = new_store("a.db", NULL);
	struct ob_batch batch;

	ob_batch_init(&batch);
	put(store, "1", 7);
	ck_assert_uint_eq(read_all(store, &batch), 7);
	(void)settle(store, &batch, OB_OUTCOME_PUBLISHED);
	sql_on("a.db", "DROP VIEW outbox_messages; DROP TABLE outbox");
	fails(ob_store_check(store, &err), OUTBOX_ESCHEMA, OB_ERR_FATAL, "is missing");
	ok(setup(store));
	put(store, "1", 2);
	ck_assert_uint_eq(read_all(store, &batch), 2);
	ck_assert_int_eq(batch.messages[0].seq, 8);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(numbers_that_begin_anew_stop_the_reader)
{
	const struct ob_place beginning = { .start = OB_START_BEGINNING };
	struct ob_store *store = new_store("a.db", NULL);
	struct ob_batch batch;

	ob_batch_init(&batch);
	put(store, "1", 7);
	ck_assert_uint_eq(read_all(store, &batch), 7);
	(void)settle(store, &batch, OB_OUTCOME_PUBLISHED);
	sql_on("a.db", "DELETE FROM outbox; DELETE FROM sqlite_sequence");
	put(store, "1", 2);
	fails(try_read(store, &batch), OUTBOX_ESTORE, OB_ERR_FATAL, "seek default beginning");
	ok(ob_store_reader_seek(store, "default", &beginning, &err));
	ck_assert_uint_eq(read_all(store, &batch), 2);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

/* Make the tables with a part of their SQL replaced. */
static void make_altered(const char *from, const char *to)
{
	const struct ob_setup wish = { .partition_count = 4 };
	struct ob_buf out = OB_BUF_INIT(1 << 20), altered = OB_BUF_INIT(1 << 20);

	ok(ob_store_setup_sql(&ob_store_sqlite, NULL, &wish, &out, &err));
	const char *at = strstr(ob_buf_str(&out), from);
	ck_assert_ptr_nonnull(at);
	ob_buf_add(&altered, (struct ob_str){ out.data, (size_t)(at - out.data) });
	ob_buf_adds(&altered, to);
	ob_buf_adds(&altered, at + strlen(from));
	sql_on("a.db", ob_buf_str(&altered));
	ob_buf_done(&out);
	ob_buf_done(&altered);
}

static void expect_check(const char *says)
{
	struct ob_store *store = open_store("a.db", NULL);

	fails(ob_store_check(store, &err), OUTBOX_ESCHEMA, OB_ERR_FATAL, says);
	ob_store_free(store);
}

OB_TEST(a_table_without_autoincrement_is_found)
{
	make_altered("PRIMARY KEY AUTOINCREMENT", "PRIMARY KEY");
	expect_check("AUTOINCREMENT");
}
OB_TEST_END

OB_TEST(a_partition_that_is_not_computed_is_found)
{
	/* The expression becomes the default of another column. */
	make_altered("ADD COLUMN \"partition_no\" INTEGER AS (",
		     "ADD COLUMN \"partition_no\" INTEGER DEFAULT 0;"
		     "ALTER TABLE outbox ADD COLUMN other INTEGER AS (");
	expect_check("is not generated");
}
OB_TEST_END

OB_TEST(a_layout_that_does_not_fit_is_found)
{
	struct ob_layout layout;
	struct ob_store *store;

	ob_store_free(new_store("a.db", NULL));
	ob_layout_default(&layout);
	layout.string_id = true;
	store = open_store("a.db", &layout);
	fails(ob_store_check(store, &err), OUTBOX_ESCHEMA, OB_ERR_FATAL, "'id' is BLOB");
	ob_store_free(store);
	ob_layout_default(&layout);
	layout.binary_payload = true;
	store = open_store("a.db", &layout);
	fails(ob_store_check(store, &err), OUTBOX_ESCHEMA, OB_ERR_FATAL, "'payload' is TEXT");
	ob_store_free(store);
	ob_layout_default(&layout);
	ok(ob_layout_set_column(&layout, "event_type", "kind", &err));
	store = open_store("a.db", &layout);
	fails(ob_store_check(store, &err), OUTBOX_ESCHEMA, OB_ERR_FATAL, "no column 'kind'");
	ob_store_free(store);
	ok(ob_layout_set_table(&layout, "shop.outbox", &err));
	fails(try_open(file("a.db"), &layout, &store), OUTBOX_ECONFIG, OB_ERR_FATAL,
	      "SQLite has no schemas");
}
OB_TEST_END

/* ---- layouts --------------------------------------------------------- */

/* A statement that walks the whole log, or all of the journal, is named. */
static void expect_good_plan(struct ob_store *store, const char *text, bool may_sort)
{
	static const char *const aliases[] = { "o", "p", "b", "c" }; /* of outbox and batches */
	struct ob_buf explain = OB_BUF_INIT(1 << 16);
	sqlite3_stmt *plan;

	ob_buf_addf(&explain, "EXPLAIN QUERY PLAN %s", text);
	int code = sqlite3_prepare_v2(lite(store)->db, ob_buf_str(&explain), -1, &plan, NULL);
	ob_buf_done(&explain);
	if (code != SQLITE_OK)
		return; /* BEGIN, PRAGMA */
	while (sqlite3_step(plan) == SQLITE_ROW) {
		const char *detail = (const char *)sqlite3_column_text(plan, 3);
		const char *name = strncmp(detail, "SCAN ", 5) == 0 ? detail + 5 : "";
		bool bad = strcmp(name, store->layout->table[OB_TABLE_outbox]) == 0 ||
			   strcmp(name, store->layout->table[OB_TABLE_batches]) == 0 ||
			   (!may_sort && strncmp(detail, "USE TEMP B-TREE FOR ORDER", 25) == 0);

		for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
			bad |= strcmp(name, aliases[i]) == 0;
		ck_assert_msg(!bad, "%s: %s", text, detail);
	}
	(void)sqlite3_finalize(plan);
}

/* Those of filters have another text each time. */
static bool is_filter(int id)
{
	return id >= OB_SQL_list_any && id <= OB_SQL_verb_open;
}

static void expect_good_plans(struct ob_store *store)
{
	const struct ob_setup wish = { .partition_count = 16, .inbox = true };
	struct ob_setup_done done;

	ok(ob_store_setup(store, &wish, &done, &err));
	for (int id = 0; id < LITE_COUNT; id++) {
		if (is_filter(id) || id == LITE_only_read || strcmp(lite_template(id), "\n") == 0)
			continue; /* or a step of other databases */
		ok(lite_bind(lite(store), id, OB_NO_ARGS, &err));
		/* Once in the life of a reader or a log, and what a resize replaces. */
		if (id != OB_SQL_place && id != LITE_go_on && id != LITE_resize_forget)
			expect_good_plan(store, sqlite3_sql(lite(store)->stmt[id]),
					 id == OB_SQL_stats_exceptions || id == OB_SQL_verb_these ||
						 id == LITE_holder);
	}
}

static int note_filter(unsigned type, void *text, void *stmt, void *unused)
{
	const char *sql = sqlite3_sql(stmt);

	(void)type;
	(void)unused;
	if (strncmp(sql, "WITH viewed", 11) == 0 || strncmp(sql, "WITH found", 10) == 0)
		(void)snprintf(text, 1 << 16, "%s", sql);
	return 0;
}

/* The statement that lists what matches. */
static const char *filter_sql(struct ob_store *store, const struct ob_filter *filter)
{
	static char text[1 << 16];
	struct ob_batch found;
	int64_t now;

	text[0] = '\0';
	ob_batch_init(&found);
	(void)sqlite3_trace_v2(lite(store)->db, SQLITE_TRACE_STMT, note_filter, text);
	ok(ob_store_list(store, filter, &found, &now, &err));
	(void)sqlite3_trace_v2(lite(store)->db, 0, NULL, NULL);
	ob_batch_done(&found);
	ck_assert_str_ne(text, "");
	return text;
}

/* Filters that an index or the position answers. Published rows may stand anywhere: these are
 * walked, in order, up to the limit. */
static void expect_good_picks(struct ob_store *store)
{
	static const struct ob_uuid id = { { 1 } };
	static const struct ob_filter filters[] = {
		{ .id = &id },
		{ .id = &id, .reader = "default" },
		{ .reader = "default", .views = 1 << OB_VIEW_DEAD },
		{ .reader = "default", .views = 1 << OB_VIEW_FAILED | 1 << OB_VIEW_DISCARDED },
		{ .reader = "default", .views = 1 << OB_VIEW_PENDING },
		{ .reader = "default", .views = 1 << OB_VIEW_PARKED, .newest_first = true },
		{ .reader = "default", .after_seq = 7 },
		{ .reader = "default", .after_seq = 7, .newest_first = true },
		{ .reader = "default",
		  .stream = "default",
		  .aggregate_type = "t",
		  .aggregate_id = "1",
		  .newest_first = true,
		  .limit = 50 },
	};

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		expect_good_plan(store, filter_sql(store, &filters[i]),
				 filters[i].id || filters[i].views);
	const struct ob_filter all = { .reader = "default", .newest_first = true };
	expect_good_plan(store, filter_sql(store, &all), false);
}

static uint64_t operate(struct ob_store *store, enum ob_verb verb, unsigned views)
{
	const struct ob_operate wish = { .verb = verb,
					 .filter = { .reader = "default", .views = views } };
	uint64_t changed, refused;

	ok(ob_store_operate(store, &wish, &changed, &refused, &err));
	ck_assert_uint_eq(refused, 0);
	return changed;
}

static void expect_failed(struct ob_store *store, const struct ob_uuid *id)
{
	const struct ob_filter by_id = { .reader = "default", .id = id };
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_stats *stats;
	struct ob_batch found;
	int64_t now;
	size_t count;

	ok(ob_store_stats(store, "default", 0, &arena, &stats, &count, &now, &err));
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(stats[0].count[OB_VIEW_FAILED], 1);
	ck_assert_uint_eq(stats[0].count[OB_VIEW_PARKED], 2);
	ck_assert_uint_eq(stats[0].held_keys, 1);
	ob_batch_init(&found);
	ok(ob_store_list(store, &by_id, &found, &now, &err));
	ck_assert_uint_eq(found.count, 1);
	ck_assert_uint_eq(found.messages[0].view, OB_VIEW_FAILED);
	ck_assert_uint_eq(found.messages[0].attempts, 2);
	ck_assert(ob_str_eq(found.messages[0].last_error, OB_STR("why")));
	ob_batch_done(&found);
	ob_arena_done(&arena);
}

static int64_t count_view(struct ob_store *store, const char *state)
{
	char text[160];

	(void)snprintf(text, sizeof(text),
		       "SELECT count(*) FROM \"%s_messages\" WHERE state = '%s'",
		       store->layout->table[OB_TABLE_outbox], state);
	return number(lite(store)->db, text);
}

/* Once around: push, read, fail, park, list, skip, retry, publish, resize, remove. */
static void once_around(struct ob_store *store)
{
	const struct ob_retain all = { .published_ms = 0, .dead_ms = 0, .limit = 99 };
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_retained retained;
	struct ob_batch batch;

	ob_batch_init(&batch);
	put(store, "1", 1);
	ck_assert_uint_eq(read_all(store, &batch), 1);
	ck_assert(ob_str_eq(batch.messages[0].event_type, OB_STR("OrderPlaced")));
	ck_assert_int_eq(batch.messages[0].revision, 1);
	ck_assert_int_gt(batch.messages[0].occurred_at_us, 0);
	ck_assert_uint_eq(settle(store, &batch, OB_OUTCOME_RETRY), 16 * OB_LANES);
	put(store, "1", 2);
	ck_assert_uint_eq(read_all(store, &batch), 3);
	ck_assert(batch.messages[0].excepted && batch.messages[1].held && batch.messages[2].held);
	ck_assert_uint_eq(settle(store, &batch, OB_OUTCOME_RETRY), 16 * OB_LANES);
	expect_failed(store, &batch.messages[0].id);
	ck_assert_int_eq(count_view(store, "parked"), 2);

	ck_assert_uint_eq(operate(store, OB_VERB_SKIP, 1 << OB_VIEW_FAILED), 1);
	ck_assert_int_eq(count_view(store, "dead"), 1);
	ck_assert_uint_eq(operate(store, OB_VERB_RETRY, 1 << OB_VIEW_DEAD), 1);
	ck_assert_uint_eq(read_all(store, &batch), 3);
	ck_assert_uint_eq(settle(store, &batch, OB_OUTCOME_PUBLISHED), 16 * OB_LANES);
	ck_assert_int_eq(count_view(store, "published"), 3);

	put(store, "1", 1);
	ok(ob_store_resize(store, 3, &err));
	ok(ob_store_check(store, &err));
	ck_assert_uint_eq(read_all(store, &batch), 1);
	ck_assert_uint_eq(settle(store, &batch, OB_OUTCOME_PUBLISHED), 3 * OB_LANES);
	expect_good_plans(store);
	expect_good_picks(store);
	ok(ob_store_retain(store, &all, &arena, &retained, &err));
	ck_assert_uint_eq(retained.rows, 4);
	ob_batch_done(&batch);
	ob_arena_done(&arena);
}

OB_TEST(no_statement_reads_the_whole_table)
{
	struct ob_store *store = new_store("a.db", NULL);

	once_around(store);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(hostile_but_legal_names_work)
{
	static const char *const names[][2] = {
		{ "seq", "select" },           { "id", "order" },
		{ "aggregate_type", "group" }, { "aggregate_id", "table" },
		{ "event_type", "from" },      { "payload", "where" },
		{ "headers", "index" },        { "created_at", "case" },
		{ "target", "null" },          { "ordering_key", "key" },
		{ "partition_no", "in" },      { "priority", "limit" },
		{ "available_at", "not" },     { "snapshot", "queue" },
		{ "correlation_id", "name" },  { "causation_id", "state" },
	};
	struct ob_layout layout;

	ob_layout_default(&layout);
	ok(ob_layout_set_table(&layout, "update", &err));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ok(ob_layout_set_column(&layout, names[i][0], names[i][1], &err));
	struct ob_store *store = new_store("a.db", &layout);
	once_around(store);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(optional_columns_can_all_be_switched_off)
{
	struct ob_layout layout;

	ob_layout_default(&layout);
#define X(name, optional) \
	if (optional) \
		ok(ob_layout_set_column(&layout, #name, NULL, &err));
	OB_COLUMN_MAP(X)
#undef X
	struct ob_store *store = new_store("a.db", &layout);
	once_around(store);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(ids_may_be_text_of_either_case)
{
	struct ob_layout layout;
	struct ob_batch batch;

	ob_layout_default(&layout);
	layout.string_id = true;
	struct ob_store *store = new_store("a.db", &layout);
	once_around(store);
	sql_on("a.db",
	       "INSERT INTO outbox (id, aggregate_type, event_type, payload) VALUES "
	       "('018F2B2E-9ABC-7DEF-8123-456789ABCDEF', 'a', 'e', '{}')");
	ob_batch_init(&batch);
	ck_assert_uint_eq(read_all(store, &batch), 1);
	ck_assert_uint_eq(batch.messages[0].id.b[15], 0xef);
	ck_assert_uint_eq(settle(store, &batch, OB_OUTCOME_PUBLISHED), 3 * OB_LANES);
	ck_assert_uint_eq(read_all(store, &batch), 0);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(a_binary_payload_keeps_every_byte)
{
	static const char bytes[] = "\0\xff\xfe\0x";
	const struct outbox_message message = {
		.aggregate_type = "a",
		.event_type = "e",
		.payload = bytes,
		.payload_size = sizeof(bytes),
	};
	struct ob_layout layout;
	struct ob_batch batch;

	ob_layout_default(&layout);
	layout.binary_payload = true;
	struct ob_store *store = new_store("a.db", &layout);
	ok(try_put(store, message, 1));
	ob_batch_init(&batch);
	ck_assert_uint_eq(read_all(store, &batch), 1);
	ck_assert(ob_str_eq(batch.messages[0].payload, (struct ob_str){ bytes, sizeof(bytes) }));
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

/* ---- plain SQL ------------------------------------------------------- */

OB_TEST(a_plain_insert_is_a_message_with_a_partition)
{
	struct ob_store *store = new_store("a.db", NULL);
	struct ob_batch batch;

	sql_on("a.db",
	       "PRAGMA trusted_schema = OFF;"
	       "INSERT INTO outbox (id, aggregate_type, event_type, payload) "
	       "VALUES (randomblob(16), 'order', 'Placed', '{}');"
	       "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 99) "
	       "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) "
	       "SELECT randomblob(16), 'order', i, 'Placed', '{}' FROM n;"
	       "INSERT INTO outbox (id, aggregate_type, event_type, partition_key) "
	       "VALUES (randomblob(16), 'order', 'Gone', '')");
	ob_batch_init(&batch);
	ck_assert_uint_eq(read_all(store, &batch), 101);
	for (uint32_t i = 0; i < batch.count; i++) {
		ck_assert_uint_lt(batch.messages[i].partition, 16);
		ck_assert_int_gt(batch.messages[i].created_at_us, INT64_C(1600000000000000));
	}
	ck_assert_int_gt(number_on("a.db", "SELECT count(DISTINCT partition_no) FROM outbox"), 12);
	ck_assert_uint_eq(settle(store, &batch, OB_OUTCOME_PUBLISHED), 16 * OB_LANES);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(a_bad_id_is_named_and_not_skipped)
{
	struct ob_store *store = new_store("a.db", NULL);
	struct ob_batch batch;

	sql_on("a.db",
	       "PRAGMA ignore_check_constraints = ON;"
	       "INSERT INTO outbox (id, aggregate_type, event_type, payload) "
	       "VALUES (x'0102', 'order', 'Placed', '{}')");
	ob_batch_init(&batch);
	fails(try_read(store, &batch), OUTBOX_ESTORE, OB_ERR_FATAL, "seq 1 is no UUID");
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

/* ---- partitions and cost --------------------------------------------- */

OB_TEST(a_resize_keeps_rows_numbers_and_what_others_added)
{
	static const char sum[] =
		"SELECT total(seq * length(payload)) || "
		"group_concat(hex(id) || aggregate_id || mine) = (SELECT x FROM "
		"kept) FROM outbox";
	struct ob_store *store = new_store("a.db", NULL);
	struct ob_batch batch;

	sql_on("a.db",
	       "ALTER TABLE outbox ADD COLUMN mine INTEGER DEFAULT 7;"
	       "CREATE INDEX mine_index ON outbox (mine);"
	       "CREATE TABLE log (x);"
	       "CREATE TRIGGER mine_trigger AFTER INSERT ON outbox BEGIN "
	       "INSERT INTO log VALUES (new.seq); END;");
	for (int i = 0; i < 40; i++) {
		char key[8];
		(void)snprintf(key, sizeof(key), "%d", i);
		put(store, key, 1);
	}
	sql_on("a.db",
	       "DELETE FROM outbox WHERE seq = 40;"
	       "CREATE TABLE kept AS SELECT total(seq * length(payload)) "
	       "|| group_concat(hex(id) || aggregate_id || mine) AS x FROM outbox");
	ob_batch_init(&batch);
	for (uint32_t count = 64; count >= 1; count /= 4) {
		ok(ob_store_resize(store, count, &err));
		ok(ob_store_check(store, &err));
		ck_assert_int_eq(number_on("a.db", sum), 1);
		ck_assert_uint_eq(read_all(store, &batch), 39);
		for (uint32_t i = 0; i < batch.count; i++)
			ck_assert_uint_lt(batch.messages[i].partition, count);
		batch.count = 0; /* the worker leaves, and nothing is recorded */
		sql_on("a.db", "UPDATE outbox_leases SET lease_until = 0");
	}
	put(store, "x", 1);
	ck_assert_int_eq(number_on("a.db", "SELECT max(seq) FROM outbox"), 41);
	ck_assert_int_eq(number_on("a.db", "SELECT count(*) FROM log"), 41);
	ck_assert_int_eq(number_on("a.db",
				   "SELECT count(*) FROM sqlite_schema WHERE name = "
				   "'mine_index'"),
			 1);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

LITE_SUITE("store_sqlite_schema", several_processes_set_up_at_once_and_one_makes_the_tables,
	   the_printed_sql_makes_what_setup_makes,
	   a_foreign_table_is_refused_and_its_missing_column_named, a_foreign_companion_is_refused,
	   a_view_under_our_name_is_refused, a_foreign_meta_table_is_refused,
	   a_newer_schema_asks_for_a_newer_program, an_older_schema_is_refused_and_says_what_to_do,
	   a_partitioned_log_is_refused, a_missing_index_or_companion_is_found_and_repaired,
	   a_log_that_is_made_anew_goes_on_above_every_position,
	   numbers_that_begin_anew_stop_the_reader, a_table_without_autoincrement_is_found,
	   a_partition_that_is_not_computed_is_found, a_layout_that_does_not_fit_is_found,
	   no_statement_reads_the_whole_table, hostile_but_legal_names_work,
	   optional_columns_can_all_be_switched_off, ids_may_be_text_of_either_case,
	   a_binary_payload_keeps_every_byte, a_plain_insert_is_a_message_with_a_partition,
	   a_bad_id_is_named_and_not_skipped, a_resize_keeps_rows_numbers_and_what_others_added)
