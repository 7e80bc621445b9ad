/* SPDX-License-Identifier: MIT */
/* Contract: statistics, throughput and lists. */
#include "store_harness.h"

static struct ob_stats *stats;
static size_t stats_count;

static void look(const char *target)
{
	int64_t now = 0;

	store_ok(ob_store_stats(fx.store, target, &fx.arena, &stats, &stats_count, &now, &fx.err));
	ck_assert_int_eq(now, ob_clock_real_us(&fx.clock.clock));
}

OB_TEST(an_empty_outbox_has_no_statistics)
{
	store_begin(1);
	look(NULL);
	ck_assert_uint_eq(stats_count, 0);
	look("default");
	ck_assert_uint_eq(stats_count, 0);
}
OB_TEST_END

OB_TEST(rows_are_counted_by_state_and_target)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put_key("published", "1");
	store_put_key("f1", "2");
	store_put_key("parked", "2");
	store_put_key("dead", "3");
	store_put_key("held", "4");
	store_put_key("pending", "5");
	store_put((struct outbox_message){ .event_type = "delayed", .delay_ms = 60000 });
	store_put((struct outbox_message){ .event_type = "x", .target = "audit" });
	store_fetch(99, OB_ORDER_KEY);
	fx.outcome.delay_ms = 5000;
	store_settle("published", OB_OUTCOME_PUBLISHED);
	store_settle("f1", OB_OUTCOME_RETRY);
	store_settle("dead", OB_OUTCOME_DEAD);
	fx.settle.hold_dead = true;
	store_settle("held", OB_OUTCOME_DEAD);
	store_put_key("claimed", NULL);
	store_operate(OB_VERB_SKIP, "pending", 1, 0);
	store_claim(fx.store, 1, 1, 9000);
	store_put_key("pending2", "6");

	look(NULL);
	ck_assert_uint_eq(stats_count, 2);
	ck_assert_str_eq(stats[0].target.p, "audit");
	ck_assert_uint_eq(stats[0].count[OB_VIEW_PENDING], 1);
	ck_assert_uint_eq(stats[0].held_keys, 0);
	ck_assert_str_eq(stats[1].target.p, "default");
	ck_assert_uint_eq(stats[1].count[OB_VIEW_PENDING], 1);
	ck_assert_uint_eq(stats[1].count[OB_VIEW_DELAYED], 1);
	ck_assert_uint_eq(stats[1].count[OB_VIEW_PROCESSING], 1);
	ck_assert_uint_eq(stats[1].count[OB_VIEW_FAILED], 1);
	ck_assert_uint_eq(stats[1].count[OB_VIEW_PARKED], 1);
	ck_assert_uint_eq(stats[1].count[OB_VIEW_DEAD], 3);
	ck_assert_uint_eq(stats[1].count[OB_VIEW_PUBLISHED], 1);
	ck_assert_uint_eq(stats[1].held_keys, 2);
	look("audit");
	ck_assert_uint_eq(stats_count, 1);
	ck_assert_str_eq(stats[0].target.p, "audit");
}
OB_TEST_END

OB_TEST(a_key_held_twice_counts_once)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put_key("a1", "a");
	store_put_key("a2", "a");
	store_put_key("none", NULL);
	store_fetch(99, OB_ORDER_KEY);
	fx.settle.ordering = OB_ORDER_NONE;
	store_settle("a1", OB_OUTCOME_RETRY);
	store_settle("a2", OB_OUTCOME_RETRY);
	store_settle("none", OB_OUTCOME_RETRY);
	look(NULL);
	ck_assert_uint_eq(stats[0].held_keys, 1);
	ck_assert_uint_eq(stats[0].count[OB_VIEW_FAILED], 3);
}
OB_TEST_END

OB_TEST(the_oldest_message_that_is_due_is_known)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put((struct outbox_message){ .event_type = "late", .delay_ms = 9000 });
	look(NULL);
	ck_assert_int_eq(stats[0].oldest_due_us, 0);
	store_advance_ms(1000);
	store_put_key("a", "a");
	store_advance_ms(1000);
	store_put_key("b", "b");
	look(NULL);
	ck_assert_int_eq(stats[0].oldest_due_us, fx.start_us + 1000000);
	store_fetch_settle("a", OB_OUTCOME_PUBLISHED);
	look(NULL);
	ck_assert_int_eq(stats[0].oldest_due_us, fx.start_us + 2000000);
	/* A retry that is not due does not count; what waits behind it does. */
	fx.outcome.delay_ms = 30000;
	store_fetch_settle("b", OB_OUTCOME_RETRY);
	look(NULL);
	ck_assert_int_eq(stats[0].oldest_due_us, 0);
	store_put_key("b2", "b");
	look(NULL);
	ck_assert_int_eq(stats[0].oldest_due_us, fx.start_us + 2000000);
	/* What is dead is not due, even when it holds its key. */
	fx.settle.hold_dead = true;
	store_put_key("c", "c");
	store_operate(OB_VERB_DISCARD, "b2", 1, 0);
	store_fetch_settle("c", OB_OUTCOME_DEAD);
	look(NULL);
	ck_assert_int_eq(stats[0].oldest_due_us, 0);
	store_advance_ms(7000);
	look(NULL);
	ck_assert_int_eq(stats[0].oldest_due_us, fx.start_us);
}
OB_TEST_END

/* ---- throughput ------------------------------------------------------ */

static void expect_throughput(const char *target, uint32_t minutes, const char *expected)
{
	struct ob_buf text = OB_BUF_INIT(4096);
	struct ob_minute *list;
	size_t count;

	store_ok(ob_store_throughput(fx.store, target, minutes, &fx.arena, &list, &count, &fx.err));
	ob_buf_adds(&text, "");
	for (size_t i = 0; i < count; i++) {
		ck_assert_int_eq(list[i].minute_us % 60000000, 0);
		ob_buf_addf(&text, "%s%lld:%llu/%llu", i ? " " : "",
			    (long long)((list[i].minute_us - fx.start_us / 60000000 * 60000000) /
					60000000),
			    (unsigned long long)list[i].published,
			    (unsigned long long)list[i].failed);
	}
	ck_assert_str_eq(ob_buf_str(&text), expected);
	ob_buf_done(&text);
}

OB_TEST(outcomes_are_counted_by_the_minute)
{
	store_begin(1);
	store_hold_all(&fx.me, INT64_C(3600) * 1000 * 1000);
	expect_throughput(NULL, 60, "");
	for (int i = 0; i < 6; i++)
		store_put_key((const char *[]){ "a", "b", "c", "d", "e", "f" }[i], NULL);
	store_fetch(9, OB_ORDER_KEY);
	store_settle("a", OB_OUTCOME_PUBLISHED);
	store_settle("a", OB_OUTCOME_PUBLISHED);
	store_settle("b", OB_OUTCOME_RETRY);
	store_settle("c", OB_OUTCOME_DEAD);
	store_settle("d", OB_OUTCOME_RELEASE);
	expect_throughput("default", 60, "0:1/2");
	store_advance_ms(180000);
	store_settle("d", OB_OUTCOME_PUBLISHED);
	store_settle("e", OB_OUTCOME_PUBLISHED);
	expect_throughput("default", 60, "0:1/2 3:2/0");
	expect_throughput("default", 4, "0:1/2 3:2/0");
	expect_throughput("default", 3, "3:2/0");
	expect_throughput("default", 0, "");
	expect_throughput("audit", 60, "");
	store_advance_ms(60000);
	expect_throughput("default", 1, "");
}
OB_TEST_END

OB_TEST(without_a_target_minutes_are_summed)
{
	const struct ob_uuid me = store_uuid(1);
	static struct ob_uuid token;

	store_begin(1);
	store_put_key("a", NULL);
	store_put((struct outbox_message){ .event_type = "x", .target = "audit" });
	token = me;
	fx.settle.token = &token;
	store_claim(fx.store, 1, 1, 9000);
	store_settle("a", OB_OUTCOME_PUBLISHED);
	const struct ob_claim claim = { .target = "audit",
					.token = me,
					.worker = "w",
					.limit = 1,
					.max_bytes = 99,
					.ttl_ms = 9000 };
	store_ok(ob_store_claim(fx.store, &claim, &fx.batch, &fx.err));
	fx.settle.target = "audit";
	store_settle("x", OB_OUTCOME_RETRY);
	expect_throughput(NULL, 60, "0:1/1");
	expect_throughput("default", 60, "0:1/0");
	expect_throughput("audit", 60, "0:0/1");
}
OB_TEST_END

/* ---- lists ----------------------------------------------------------- */

static void expect_list(struct ob_filter filter, const char *labels)
{
	int64_t now = 0;

	store_ok(ob_store_list(fx.store, &filter, &fx.look, &now, &fx.err));
	ck_assert_str_eq(store_labels(&fx.look), labels);
	ck_assert_int_eq(now, ob_clock_real_us(&fx.clock.clock));
}

OB_TEST(a_list_goes_both_ways_and_by_pages)
{
	store_begin(4);
	store_put_key("a", "1");
	store_put_key("b", "2");
	store_put_key("c", "3");
	store_put_key("d", "4");
	expect_list((struct ob_filter){ 0 }, "a b c d");
	expect_list((struct ob_filter){ .newest_first = true }, "d c b a");
	expect_list((struct ob_filter){ .limit = 2 }, "a b");
	int64_t after = fx.look.messages[1].seq;
	expect_list((struct ob_filter){ .limit = 2, .after_seq = after }, "c d");
	expect_list((struct ob_filter){ .newest_first = true, .after_seq = after }, "a");
	expect_list((struct ob_filter){ .after_seq = fx.look.messages[0].seq, .limit = 1 }, "b");
}
OB_TEST_END

OB_TEST(every_member_of_a_filter_narrows)
{
	store_begin(1);
	store_put((struct outbox_message){
		.event_type = "a", .aggregate_type = "order", .aggregate_id = "1" });
	store_put((struct outbox_message){
		.event_type = "b", .aggregate_type = "order", .aggregate_id = "2" });
	store_put((struct outbox_message){
		.event_type = "c", .aggregate_type = "user", .aggregate_id = "1" });
	store_put((struct outbox_message){
		.event_type = "d", .aggregate_type = "note", .target = "audit", .delay_ms = 9 });
	expect_list((struct ob_filter){ .aggregate_type = "order" }, "a b");
	expect_list((struct ob_filter){ .aggregate_id = "1" }, "a c");
	expect_list((struct ob_filter){ .aggregate_id = "1", .aggregate_type = "user" }, "c");
	expect_list((struct ob_filter){ .key = "order:2" }, "b");
	expect_list((struct ob_filter){ .target = "audit" }, "d");
	expect_list((struct ob_filter){ .event_type = "c" }, "c");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_DELAYED }, "d");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PENDING }, "a b c");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PENDING | 1U << OB_VIEW_DELAYED },
		    "a b c d");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_DEAD }, "");
	struct ob_uuid id = store_row("b")->id;
	expect_list((struct ob_filter){ .id = &id }, "b");
	expect_list((struct ob_filter){ .id = &id, .target = "audit" }, "");
	expect_list((struct ob_filter){ .key = "order:%" }, "");
}
OB_TEST_END

OB_TEST(both_kinds_of_dead_are_listed_as_dead)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put_key("a", "1");
	store_put_key("b", "2");
	store_fetch_settle("a", OB_OUTCOME_DEAD);
	fx.settle.hold_dead = true;
	store_fetch_settle("b", OB_OUTCOME_DEAD);
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_DEAD }, "a b");
}
OB_TEST_END

OB_TEST(a_claimed_row_is_listed_as_processing_until_it_expires)
{
	store_begin(1);
	store_put_key("a", NULL);
	store_claim(fx.store, 1, 1, 1000);
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PROCESSING }, "a");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PENDING }, "");
	store_advance_ms(1000);
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PROCESSING }, "");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PENDING }, "a");
}
OB_TEST_END

OB_TEST(a_listed_row_has_all_its_fields)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put((struct outbox_message){ .event_type = "a",
					   .partition_key = "tenant",
					   .snapshot = "{\"s\":1}",
					   .headers = "{\"h\":1}" });
	fx.outcome.error = OB_STR("why");
	fx.outcome.delay_ms = 500;
	store_fetch_settle("a", OB_OUTCOME_RETRY);
	const struct ob_message *row = store_row("a");
	ck_assert_str_eq(row->partition_key.p, "tenant");
	ck_assert_str_eq(row->key.p, "tenant");
	ck_assert_str_eq(row->snapshot.p, "{\"s\":1}");
	ck_assert_str_eq(row->headers.p, "{\"h\":1}");
	ck_assert_str_eq(row->payload.p, "{}");
	ck_assert_str_eq(row->last_error.p, "why");
	ck_assert_int_eq(row->available_at_us, fx.start_us + 500000);
	ck_assert_int_eq(row->published_at_us, 0);
	ck_assert_int_eq(row->locked_until_us, 0);
	ck_assert_ptr_null(row->locked_by.p);
	ck_assert_int_eq(row->created_at_us, fx.start_us);
	ck_assert_int_eq(row->occurred_at_us, fx.start_us);
}
OB_TEST_END

STORE_CASES(look, an_empty_outbox_has_no_statistics, rows_are_counted_by_state_and_target,
	    a_key_held_twice_counts_once, the_oldest_message_that_is_due_is_known,
	    outcomes_are_counted_by_the_minute, without_a_target_minutes_are_summed,
	    a_list_goes_both_ways_and_by_pages, every_member_of_a_filter_narrows,
	    both_kinds_of_dead_are_listed_as_dead,
	    a_claimed_row_is_listed_as_processing_until_it_expires, a_listed_row_has_all_its_fields)
