/* SPDX-License-Identifier: MIT */
/* Stores: finding one by its URL, and what the memory store offers beyond the contract. */
#include "doubles/fault_store.h"
#include "doubles/memory_store.h"
#include "store/store.h"
#include "suite.h"

static struct ob_err err;

static void expect_refused(const char *url, const char *text)
{
	const struct ob_store_backend *backend = NULL;

	err = OB_ERR_INIT;
	ck_assert_int_eq(ob_store_find(url, &backend, &err), OUTBOX_ECONFIG);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_ptr_null(backend);
	ck_assert_msg(strstr(err.msg, text), "'%s' is not in: %s", text, err.msg);
	ck_assert_ptr_null(strstr(err.msg, "secret"));
}

OB_TEST(an_unknown_store_is_named_with_what_there_is)
{
	expect_refused("sqllite:x.db", "did you mean 'sqlite'?");
	expect_refused("oracle://user:secret@host/db",
		       "no store of type 'oracle' (known: sqlite, postgres, mysql)");
	expect_refused("memory:", "no store of type 'memory'");
}
OB_TEST_END

OB_TEST(a_url_without_a_type_is_refused_without_showing_it)
{
	expect_refused("secret.db", "begin with its type");
	expect_refused("secret", "has no type");
	expect_refused("", "begin with its type");
	expect_refused(":secret", "begin with its type");
	expect_refused("user secret@host:5432", "begin with its type");
	expect_refused("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:x",
		       "begin with its type");
}
OB_TEST_END

OB_TEST(every_backend_is_listed_with_help)
{
	for (const struct ob_store_backend *b = ob_store_backends; b->name; b++) {
		ck_assert_ptr_nonnull(b->help);
		ck_assert_ptr_nonnull(b->package);
		if (b->ops)
			ck_assert_str_eq(b->ops->name, b->name);
	}
}
OB_TEST_END

/* ---- the memory store ------------------------------------------------ */

static struct ob_memdb *db;
static struct ob_store *store, *other;
static struct ob_progress progress;

static void open_kind(enum ob_memdb_kind kind)
{
	const struct ob_reader reader = { .name = OB_STR("r"), .target = OB_STR("default") };
	const struct ob_place beginning = { OB_START_BEGINNING, 0 };
	bool made;

	db = ob_memdb_new(&(struct ob_memdb_conf){ .kind = kind, .partition_count = 1 });
	ck_assert_int_eq(ob_store_memory_open(db, &store, &err), 0);
	ck_assert_int_eq(ob_store_memory_open(db, &other, &err), 0);
	ck_assert_int_eq(ob_store_reader_make(store, &reader, &beginning, &made, &err), 0);
}

static void close_all(void)
{
	ob_progress_done(&progress);
	ob_store_free(store);
	ob_store_free(other);
	ob_memdb_free(db);
}

static int take_over(uint64_t epoch)
{
	struct ob_owned owned = { .partition = 0, .epoch = epoch };
	int r = ob_store_take_over(store, "r", &(struct ob_uuid){ { 1 } }, &owned, 1, &err);

	if (r < 0)
		return r;
	ck_assert(!owned.lost);
	ob_progress_done(&progress);
	progress = owned.progress;
	return 0;
}

static void push(struct ob_store *to, const char *label)
{
	const struct outbox_message message = {
		.aggregate_type = "t", .event_type = label, .payload = "1", .partition_key = "k"
	};
	size_t index;

	ck_assert_int_eq(ob_store_tx_push(to, &message, 1, NULL, &index, &err), 0);
}

static void put(struct ob_store *to, const char *label)
{
	ck_assert_int_eq(ob_store_tx_begin(to, &err), 0);
	push(to, label);
	ck_assert_int_eq(ob_store_tx_end(to, true, &err), 0);
}

/* Read on; the labels of the log, one letter each. */
static const char *read_on(void)
{
	static char labels[32];
	struct ob_read_part part = { .partition = 0, .from = progress };
	struct ob_read read = { .reader = "r",
				.target = "default",
				.parts = &part,
				.part_count = 1,
				.limit = 9,
				.exception_limit = 9,
				.max_bytes = 999 };
	struct ob_read_done done;
	struct ob_batch batch;
	uint32_t n = 0;

	ob_batch_init(&batch);
	ck_assert_int_eq(ob_store_read(store, &read, &batch, &done, &err), 0);
	for (; n < batch.count; n++)
		labels[n] = batch.messages[n].event_type.p[0];
	labels[n] = '\0';
	ob_batch_done(&batch);
	ob_progress_done(&progress);
	progress = part.after;
	return labels;
}

/* One transaction is open while another commits; what a read then says it has seen. */
static void check_kind(enum ob_memdb_kind kind, const char *seen_while_open, const char *seen_after)
{
	open_kind(kind);
	ck_assert_int_eq(take_over(1), 0);
	ck_assert_int_eq(ob_store_tx_begin(other, &err), 0);
	push(other, "s");
	put(store, "a");
	ck_assert_str_eq(read_on(), "a");
	ck_assert_int_eq(progress.pos, 2);
	ck_assert_str_eq(progress.seen->text, seen_while_open);
	ck_assert_int_eq(ob_store_tx_end(other, true, &err), 0);
	ck_assert_str_eq(read_on(), "s");
	ck_assert_int_eq(progress.pos, 2);
	ck_assert_str_eq(progress.seen ? progress.seen->text : "", seen_after);
	close_all();
}

OB_TEST(the_memory_store_tells_what_was_seen_as_databases_do)
{
	/* Ids 700 and 701 were those of making the reader and taking it over. */
	check_kind(OB_MEMDB_SNAPSHOT, "702:704:702", "704:704:");
	check_kind(OB_MEMDB_GAPS, "1", "");
}
OB_TEST_END

OB_TEST(a_plain_memory_store_has_one_writer)
{
	open_kind(OB_MEMDB_PLAIN);
	ck_assert_int_eq(take_over(1), 0);
	ck_assert_int_eq(ob_store_tx_begin(other, &err), 0);
	ck_assert_int_eq(ob_store_tx_begin(store, &err), OUTBOX_EBUSY);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	push(other, "a");
	ck_assert_int_eq(ob_store_tx_end(other, true, &err), 0);
	put(store, "b");
	ck_assert_str_eq(read_on(), "ab");
	ck_assert_ptr_null(progress.seen);
	close_all();
}
OB_TEST_END

OB_TEST(another_cluster_is_refused_until_it_is_adopted)
{
	uint64_t rows = 0;

	open_kind(OB_MEMDB_SNAPSHOT);
	ck_assert_int_eq(take_over(1), 0);
	put(store, "a");
	ck_assert_str_eq(read_on(), "a");
	struct ob_settle_part part = {
		.partition = 0, .epoch = 1, .batch = 2, .progress = progress
	};
	struct ob_settle settle = {
		.reader = "r", .owner = { { 1 } }, .parts = &part, .part_count = 1
	};
	ck_assert_int_eq(ob_store_settle(store, &settle, &err), 0);
	put(store, "b");
	ob_memdb_move_cluster(db);
	ck_assert_int_eq(take_over(2), OUTBOX_ESTORE);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "outbox adopt"));
	ck_assert_int_eq(ob_store_adopt(store, &rows, &err), 0);
	ck_assert_uint_eq(rows, 1);
	ck_assert_int_eq(take_over(2), 0);
	put(store, "c");
	ck_assert_str_eq(read_on(), "bc");
	ck_assert_str_eq(read_on(), "b"); /* it is an exception, until it is settled */
	close_all();
}
OB_TEST_END

static void count_call(void *arg)
{
	++*(int *)arg;
}

static bool count_row(void *arg, const struct ob_message *row)
{
	int *count = arg;

	ck_assert_str_eq(row->target.p, "default");
	return ++*count < 2;
}

OB_TEST(a_memory_store_can_be_watched)
{
	int calls = 0, rows = 0;
	bool news;

	db = ob_memdb_new(&(struct ob_memdb_conf){
		.partition_count = 1, .pass_time = count_call, .pass_time_arg = &calls });
	ck_assert_int_eq(ob_store_memory_open(db, &store, &err), 0);
	ck_assert_int_eq(ob_store_wake_check(store, &news, &err), 0);
	ck_assert_int_eq(calls, 2); /* before and after */
	put(store, "a");
	put(store, "b");
	put(store, "c");
	ob_memdb_each(db, count_row, &rows);
	ck_assert_int_eq(rows, 2);
	ob_memdb_set_version(db, 99);
	ck_assert_int_eq(ob_store_check(store, &err), OUTBOX_ESCHEMA);
	other = NULL;
	close_all();
}
OB_TEST_END

/* ---- the fault decorator --------------------------------------------- */

static int diagnose(struct ob_store *self, struct ob_findings *out, struct ob_err *unused)
{
	static const struct ob_check check = { "care", "Care is taken.", "take it" };

	(void)self;
	(void)unused;
	ob_finding_add(out, &check, OB_LEVEL_WARNING, "no care");
	return 0;
}

static int setup_sql(const struct ob_layout *layout, const struct ob_setup *setup,
		     struct ob_buf *out, struct ob_err *unused)
{
	(void)layout;
	(void)setup;
	(void)unused;
	ob_buf_adds(out, "CREATE");
	return 0;
}

static int grants_sql(const struct ob_layout *layout, const struct ob_setup *setup,
		      struct ob_buf *out, struct ob_err *unused)
{
	return setup_sql(layout, setup, out, unused);
}

static void nothing_to_close(struct ob_store *self)
{
	(void)self;
}

static const struct ob_store_ops diagnosing = {
	.name = "diagnosing",
	.size = sizeof(struct ob_store),
	.close = nothing_to_close,
	.diagnose = diagnose,
	.setup_sql = setup_sql,
	.grants_sql = grants_sql,
};

static struct ob_store *wrapped(const struct ob_store_ops *ops,
				const struct ob_store_fault_plan *plan)
{
	const struct ob_store_conf conf = { .url = "x:" };
	struct ob_store *inner = NULL, *wrapper = NULL;

	ck_assert_int_eq(ob_store_new(ops, &conf, &inner, &err), 0);
	ck_assert_int_eq(ob_store_fault_new(inner, plan, &wrapper, &err), 0);
	return wrapper;
}

/* An operation that is added to the table must not end at the decorator. */
OB_TEST(the_fault_decorator_has_every_operation)
{
	const struct ob_store_fault_plan none = { 0 };
	const size_t first = offsetof(struct ob_store_ops, open);
	const size_t count = (sizeof(struct ob_store_ops) - first) / sizeof(void *);
	struct ob_store *wrapper = wrapped(&diagnosing, &none);
	void *slots[(sizeof(*wrapper->ops) - offsetof(struct ob_store_ops, open)) / sizeof(void *)];

	memcpy(slots, (const char *)wrapper->ops + first, sizeof(slots));
	for (size_t i = 0; i < count; i++)
		ck_assert_msg(slots[i] != NULL, "the operation at offset %zu of the table",
			      first + i * sizeof(void *));
	ck_assert_str_eq(wrapper->ops->name, "diagnosing");
	ob_store_free(wrapper);
}
OB_TEST_END

OB_TEST(findings_pass_the_fault_decorator)
{
	const struct ob_store_fault_plan lost_reply = {
		.nth = 1, .mode = OB_FAULT_AFTER, .only = UINT64_C(1) << OB_STORE_FAULT_diagnose
	};
	struct ob_buf out = OB_BUF_INIT(100);
	struct ob_store *wrapper = wrapped(&diagnosing, &lost_reply);

	struct ob_findings found;
	ob_findings_init(&found);
	ck_assert_int_eq(ob_store_diagnose(wrapper, &found, &err), OUTBOX_ESTORE);
	ck_assert_uint_eq(found.count, 0);
	ck_assert_int_eq(ob_store_diagnose(wrapper, &found, &err), 0);
	ck_assert_uint_eq(found.count, 1);
	ck_assert_str_eq(found.list[0].text.p, "no care");
	ob_findings_done(&found);
	const struct ob_setup setup = { .partition_count = 1 };
	ck_assert_int_eq(ob_store_setup_sql(wrapper->ops, NULL, &setup, &out, &err), 0);
	ck_assert_str_eq(ob_buf_str(&out), "CREATE");
	ob_buf_done(&out);
	ob_store_free(wrapper);
}
OB_TEST_END

OB_SUITE("store", an_unknown_store_is_named_with_what_there_is,
	 a_url_without_a_type_is_refused_without_showing_it, every_backend_is_listed_with_help,
	 the_memory_store_tells_what_was_seen_as_databases_do, a_plain_memory_store_has_one_writer,
	 another_cluster_is_refused_until_it_is_adopted, a_memory_store_can_be_watched,
	 the_fault_decorator_has_every_operation, findings_pass_the_fault_decorator)
