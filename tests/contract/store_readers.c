/* SPDX-License-Identifier: MIT */
/* Contract: readers are made, listed, removed, and begin where they are told to. */
#include "store_harness.h"

static struct ob_reader *readers;
static size_t reader_count;

static const struct ob_reader *look(const char *name)
{
	store_ok(ob_store_readers(fx.store, &fx.arena, &readers, &reader_count, &fx.err));
	for (size_t i = 0; i < reader_count; i++) {
		if (ob_str_eq(readers[i].name, ob_str(name)))
			return &readers[i];
	}
	return NULL;
}

/* A new reader at this place, and what it reads. */
static void expect_from(const char *name, struct ob_place place, const char *labels)
{
	ck_assert(store_make_reader(name, "default", place));
	store_be(name, "default", 1);
	store_hold_all(60000);
	store_expect_read(labels);
}

OB_TEST(a_new_reader_begins_at_the_beginning)
{
	store_begin(2);
	store_put_all("a1 b1 c1");
	expect_from("new", (struct ob_place){ OB_START_BEGINNING, 0 }, "a1 b1 c1");
}
OB_TEST_END

OB_TEST(a_new_reader_begins_at_the_end)
{
	store_begin(2);
	store_put_all("a1 b1 c1");
	expect_from("new", (struct ob_place){ OB_START_END, 0 }, "");
	store_put_all("a2 b2");
	store_expect_read("a2 b2");
}
OB_TEST_END

OB_TEST(a_reader_at_the_end_gets_what_was_open_when_it_was_made)
{
	store_begin(1);
	if (!store_has(OB_STORE_CONCURRENT_WRITERS))
		return;
	struct ob_store *slow = store_open();
	store_put_all("a1");
	store_open_with(slow, "a2 a3");
	store_put_all("a4");
	expect_from("new", (struct ob_place){ OB_START_END, 0 }, "");
	store_commit(slow);
	store_expect_read("a2 a3");
}
OB_TEST_END

OB_TEST(a_new_reader_begins_at_a_time)
{
	store_begin(2);
	store_put_all("a1 b1");
	store_advance_ms(1000);
	store_put_all("a2 b2");
	store_advance_ms(1000);
	store_put_all("a3");
	expect_from("one", (struct ob_place){ OB_START_TIME, fx.start_us + 1000000 }, "a2 b2 a3");
	expect_from("two", (struct ob_place){ OB_START_TIME, fx.start_us + 1000001 }, "a3");
	expect_from("three", (struct ob_place){ OB_START_TIME, fx.start_us + 9000000 }, "");
	expect_from("four", (struct ob_place){ OB_START_TIME, 0 }, "a1 b1 a2 b2 a3");
}
OB_TEST_END

OB_TEST(a_new_reader_begins_at_a_number)
{
	store_begin(2);
	store_put_all("a1 b1 a2 b2");
	expect_from("new", (struct ob_place){ OB_START_SEQ, store_row("a2")->seq }, "a2 b2");
}
OB_TEST_END

OB_TEST(a_reader_that_is_there_keeps_its_progress)
{
	store_begin(2);
	store_put_all("a1 b1");
	store_hold_all(60000);
	store_read(100, 0);
	store_record();
	char *before = store_dump();
	ck_assert(
		!store_make_reader("main", "default", (struct ob_place){ OB_START_BEGINNING, 0 }));
	ck_assert(!store_make_reader("main", "default", (struct ob_place){ OB_START_END, 0 }));
	store_expect_same(before, store_dump());
}
OB_TEST_END

OB_TEST(a_reader_has_one_target)
{
	const struct ob_reader other = { .name = OB_STR("main"), .target = OB_STR("audit") };
	bool made;

	store_begin(1);
	ck_assert_int_eq(
		ob_store_reader_make(fx.store, &other, &(struct ob_place){ 0 }, &made, &fx.err),
		OUTBOX_ECONFIG);
	ck_assert_int_eq(fx.err.kind, OB_ERR_FATAL);
	ck_assert_ptr_nonnull(strstr(fx.err.msg, "default"));
	ck_assert_ptr_nonnull(strstr(fx.err.msg, "audit"));
}
OB_TEST_END

OB_TEST(readers_are_listed_by_name)
{
	const struct ob_reader some = { .name = OB_STR("audit"),
					.target = OB_STR("log"),
					.filter = OB_STR("type order.*"),
					.temporary = true };
	bool made;

	store_begin(2);
	store_advance_ms(50);
	store_ok(ob_store_reader_make(fx.store, &some, &(struct ob_place){ 0 }, &made, &fx.err));
	ck_assert(store_make_reader("zoo", "default", (struct ob_place){ OB_START_END, 0 }));
	const struct ob_reader *r = look("audit");
	ck_assert_uint_eq(reader_count, 3);
	ck_assert_ptr_eq(r, &readers[0]);
	ck_assert_str_eq(readers[1].name.p, "main");
	ck_assert_str_eq(readers[2].name.p, "zoo");
	ck_assert_str_eq(r->target.p, "log");
	ck_assert_str_eq(r->filter.p, "type order.*");
	ck_assert(r->temporary);
	ck_assert(!readers[1].temporary);
	ck_assert_str_eq(readers[1].filter.p, "");
	ck_assert_int_eq(r->created_at_us, fx.start_us + 50000);
	ck_assert_int_eq(readers[1].created_at_us, fx.start_us);
}
OB_TEST_END

OB_TEST(a_reader_tells_where_it_stands)
{
	const struct ob_worker worker = { .id = store_uuid(1),
					  .reader = OB_STR("main"),
					  .hostname = OB_STR("h") };

	store_begin(2);
	store_put_all("a1 b1 c1 d1");
	const struct ob_reader *r = look("main");
	int64_t first = store_row("a1")->seq, last = store_row("d1")->seq;
	ck_assert_int_lt(r->low_pos, first);
	ck_assert_int_eq(r->high_pos, r->low_pos);
	ck_assert_int_le(r->held_seq, first);
	ck_assert_uint_eq(r->workers, 0);
	ck_assert_uint_eq(r->exceptions, 0);

	store_hold_all(60000);
	store_advance_ms(30);
	store_settle("b1", OB_OUTCOME_RETRY);
	store_ok(ob_store_beat(fx.store, &worker, 1000, &fx.err));
	r = look("main");
	ck_assert_int_eq(r->low_pos, last);
	ck_assert_int_eq(r->high_pos, last);
	ck_assert_int_le(r->held_seq, last + 1); /* an exception may count */
	ck_assert_int_gt(r->held_seq, first);
	ck_assert_int_eq(r->moved_at_us, fx.start_us + 30000);
	ck_assert_uint_eq(r->workers, 1);
	ck_assert_uint_eq(r->exceptions, 1);

	/* One partition is ahead of the others. */
	store_put_all("a2 b2");
	store_read(100, 0);
	fx.part_count = 1;
	store_advance_ms(10);
	store_record();
	r = look("main");
	ck_assert_int_eq(r->low_pos, last);
	ck_assert_int_eq(r->high_pos, store_row("b2")->seq);
	ck_assert_int_eq(r->moved_at_us, fx.start_us + 40000);
	store_operate(OB_VERB_DISCARD, "b1", 1, 0);
	store_advance_ms(1000);
	r = look("main");
	ck_assert_uint_eq(r->workers, 0);
	ck_assert_uint_eq(r->exceptions, 0);
}
OB_TEST_END

OB_TEST(readers_of_one_target_have_their_own_progress_and_failures)
{
	store_begin(2);
	ck_assert(store_make_reader("other", "default", (struct ob_place){ 0 }));
	store_put_all("a1 a2 b1");
	store_hold_all(60000);
	store_read(100, 0);
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_record();
	store_expect_view("a1", OB_VIEW_FAILED);
	store_expect_view("b1", OB_VIEW_PUBLISHED);

	store_be("other", "default", 2);
	store_expect_view("a1", OB_VIEW_PENDING);
	store_expect_view("b1", OB_VIEW_PENDING);
	store_hold_all(60000);
	store_expect_read("a1 a2 b1");
	for (uint32_t i = 0; i < fx.batch.count; i++)
		ck_assert(!fx.batch.messages[i].held);
	store_record();
	store_expect_view("a1", OB_VIEW_PUBLISHED);
	store_be("main", "default", 200);
	store_expect_view("a1", OB_VIEW_FAILED);
}
OB_TEST_END

OB_TEST(a_removed_reader_leaves_nothing)
{
	const struct ob_worker worker = { .id = store_uuid(1),
					  .reader = OB_STR("main"),
					  .hostname = OB_STR("h") };
	struct ob_partition *partitions;
	struct ob_worker *workers;
	size_t count;

	store_begin(2);
	ck_assert(store_make_reader("stays", "default", (struct ob_place){ 0 }));
	store_put_all("a1 b1");
	store_hold_all(60000);
	store_settle("a1", OB_OUTCOME_RETRY);
	store_ok(ob_store_beat(fx.store, &worker, 1000, &fx.err));
	ck_assert_int_eq(ob_store_reader_remove(fx.store, "main", &fx.err), OUTBOX_EBUSY);
	ck_assert_int_eq(fx.err.kind, OB_ERR_DOWN);
	store_advance_ms(1000);
	store_ok(ob_store_reader_remove(fx.store, "main", &fx.err));
	ck_assert_ptr_null(look("main"));
	ck_assert_ptr_nonnull(look("stays"));
	store_ok(ob_store_partitions(fx.store, NULL, &fx.arena, &partitions, &count, &fx.err));
	ck_assert_uint_eq(count, 0);
	store_ok(ob_store_workers(fx.store, NULL, &fx.arena, &workers, &count, &fx.err));
	ck_assert_uint_eq(count, 0);

	/* Made again it is a new one. */
	ck_assert(store_make_reader("main", "default", (struct ob_place){ 0 }));
	store_be("main", "default", 3);
	store_expect_view("a1", OB_VIEW_PENDING);
	store_hold_all(60000);
	store_expect_read("a1 b1");
}
OB_TEST_END

OB_TEST(an_unknown_reader_cannot_be_removed_or_moved)
{
	const struct ob_place end = { OB_START_END, 0 };

	store_begin(1);
	ck_assert_int_eq(ob_store_reader_remove(fx.store, "nobody", &fx.err), OUTBOX_EINVAL);
	ck_assert_int_eq(ob_store_reader_seek(fx.store, "nobody", &end, &fx.err), OUTBOX_EINVAL);
}
OB_TEST_END

STORE_CASES(readers, a_new_reader_begins_at_the_beginning, a_new_reader_begins_at_the_end,
	    a_reader_at_the_end_gets_what_was_open_when_it_was_made, a_new_reader_begins_at_a_time,
	    a_new_reader_begins_at_a_number, a_reader_that_is_there_keeps_its_progress,
	    a_reader_has_one_target, readers_are_listed_by_name, a_reader_tells_where_it_stands,
	    readers_of_one_target_have_their_own_progress_and_failures,
	    a_removed_reader_leaves_nothing, an_unknown_reader_cannot_be_removed_or_moved)
