/* SPDX-License-Identifier: MIT */
/* Contract: making the tables, finding them missing or foreign, and being woken. */
#include "store_harness.h"

static int setup(struct ob_store *store, uint32_t count, struct ob_setup_done *done)
{
	const struct ob_setup wanted = { .partition_count = count,
					 .partitioned = fx.backend->partition_rows > 0,
					 .partition_rows = fx.backend->partition_rows };

	return ob_store_setup(store, &wanted, done, &fx.err);
}

OB_TEST(setup_makes_the_tables_once)
{
	struct ob_setup_done done;
	uint32_t count;

	store_begin(0);
	store_ok(setup(fx.store, 7, &done));
	ck_assert_uint_eq(done.from_version, 0);
	ck_assert_uint_eq(done.to_version, OB_SCHEMA_VERSION);
	store_ok(ob_store_check(fx.store, &fx.err));

	/* A second time it does nothing, and the number of partitions stays. */
	ck_assert(store_make_reader("main", "default", (struct ob_place){ OB_START_BEGINNING, 0 }));
	store_put_key("a", "k");
	store_ok(setup(store_open(), 9, &done));
	ck_assert_uint_eq(done.from_version, OB_SCHEMA_VERSION);
	ck_assert_uint_eq(done.to_version, OB_SCHEMA_VERSION);
	store_ok(ob_store_seed(fx.store, "main", &count, &fx.err));
	ck_assert_uint_eq(count, 7);
	store_expect_view("a", OB_VIEW_PENDING);
}
OB_TEST_END

OB_TEST(a_number_of_partitions_out_of_range_is_refused)
{
	struct ob_setup_done done;

	store_begin(0);
	ck_assert_int_eq(setup(fx.store, 0, &done), OUTBOX_EINVAL);
	ck_assert_int_eq(setup(fx.store, OB_PARTITIONS_MAX + 1, &done), OUTBOX_EINVAL);
	ck_assert_int_eq(ob_store_check(fx.store, &fx.err), OUTBOX_ESCHEMA);
	store_ok(setup(fx.store, OB_PARTITIONS_MAX, &done));
}
OB_TEST_END

OB_TEST(without_tables_every_operation_says_so)
{
	const struct ob_filter everything = { .reader = "main" };
	const struct ob_reader reader = { .name = OB_STR("main"), .target = OB_STR("default") };
	const struct ob_retain retain = { .limit = 1 };
	struct ob_read_part part = { .partition = 0 };
	struct ob_read read = {
		.reader = "main", .target = "default", .parts = &part, .part_count = 1, .limit = 1
	};
	struct ob_owned owned = { .partition = 0 };
	struct ob_settle_part settled = { .partition = 0 };
	struct ob_settle settle = { .reader = "main", .parts = &settled, .part_count = 1 };
	struct ob_retained retained;
	uint32_t count;
	int64_t now;
	bool made;

	store_begin(0);
#define REFUSED(call) \
	do { \
		fx.err = OB_ERR_INIT; \
		ck_assert_int_eq(call, OUTBOX_ESCHEMA); \
		ck_assert_int_eq(fx.err.kind, OB_ERR_FATAL); \
	} while (0)
	REFUSED(ob_store_check(fx.store, &fx.err));
	REFUSED(ob_store_reader_make(fx.store, &reader, &(struct ob_place){ 0 }, &made, &fx.err));
	REFUSED(ob_store_take_over(fx.store, "main", &fx.me, &owned, 1, &fx.err));
	REFUSED(ob_store_read(fx.store, &read, &fx.batch, &fx.done, &fx.err));
	REFUSED(ob_store_settle(fx.store, &settle, &fx.err));
	REFUSED(ob_store_seed(fx.store, "main", &count, &fx.err));
	REFUSED(ob_store_list(fx.store, &everything, &fx.look, &now, &fx.err));
	REFUSED(ob_store_retain(fx.store, &retain, &fx.arena, &retained, &fx.err));
#undef REFUSED
}
OB_TEST_END

OB_TEST(a_newer_schema_is_refused_and_not_changed)
{
	struct ob_setup_done done;

	store_begin(3);
	store_put_key("a", "k");
	fx.backend->set_version(OB_SCHEMA_VERSION + 1);
	struct ob_store *late = store_open();
	ck_assert_int_eq(setup(late, 3, &done), OUTBOX_ESCHEMA);
	ck_assert_int_eq(fx.err.kind, OB_ERR_FATAL);
	ck_assert_int_eq(ob_store_check(late, &fx.err), OUTBOX_ESCHEMA);
	fx.backend->set_version(OB_SCHEMA_VERSION);
	store_ok(ob_store_check(late, &fx.err));
	store_expect_view("a", OB_VIEW_PENDING);
}
OB_TEST_END

OB_TEST(a_commit_of_another_connection_is_news_once)
{
	bool news;

	store_begin(1);
	struct ob_store *waiting = store_open();
	store_ok(ob_store_wake_check(waiting, &news, &fx.err));
	store_ok(ob_store_wake_check(waiting, &news, &fx.err));
	ck_assert(!news);
	store_put_key("a", NULL);
	store_ok(ob_store_wake_check(waiting, &news, &fx.err));
	ck_assert(news);
	store_ok(ob_store_wake_check(waiting, &news, &fx.err));
	ck_assert(!news);
}
OB_TEST_END

OB_TEST(a_store_describes_itself_in_one_line)
{
	struct ob_buf out = OB_BUF_INIT(4096);

	store_begin(0);
	ob_store_describe(fx.store, &out);
	ck_assert_uint_gt(out.len, 0);
	ck_assert_ptr_null(strchr(ob_buf_str(&out), '\n'));
	ob_buf_done(&out);
}
OB_TEST_END

STORE_CASES(setup, setup_makes_the_tables_once, a_number_of_partitions_out_of_range_is_refused,
	    without_tables_every_operation_says_so, a_newer_schema_is_refused_and_not_changed,
	    a_commit_of_another_connection_is_news_once, a_store_describes_itself_in_one_line)
