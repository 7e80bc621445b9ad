/* SPDX-License-Identifier: MIT */
/* Contract: statistics. */
#include "store_harness.h"

static struct ob_stats *stats;
static size_t stats_count;

static void look(const char *reader, uint64_t cap)
{
	int64_t now = 0;

	store_ok(ob_store_stats(fx.store, reader, cap, &fx.arena, &stats, &stats_count, &now,
				&fx.err));
	ck_assert_int_eq(now, ob_clock_real_us(&fx.clock.clock));
}

OB_TEST(an_empty_log_has_nothing_to_count)
{
	store_begin(1);
	look(NULL, 0);
	ck_assert_uint_eq(stats_count, 1);
	ck_assert_str_eq(stats[0].reader.p, "main");
	ck_assert_str_eq(stats[0].target.p, "default");
	for (int v = 0; v < OB_VIEW_COUNT; v++) {
		ck_assert_uint_eq(stats[0].count[v], 0);
		ck_assert(!stats[0].capped[v]);
	}
	ck_assert_int_eq(stats[0].oldest_due_us, 0);
	look("nobody", 0);
	ck_assert_uint_eq(stats_count, 0);
}
OB_TEST_END

/* All lie above the lowest position, some of them not above that of their own partition. */
OB_TEST(what_one_partition_has_behind_it_is_not_pending_there)
{
	store_begin(2);
	store_hold_all(60000);
	store_put_all("a1 b1 c1 d1 e1 f1");
	store_read(99, 0);

	uint32_t first = fx.parts[0].partition;
	uint64_t left = 0;

	for (uint32_t i = 0; i < fx.batch.count; i++)
		left += fx.batch.messages[i].partition != first;
	ck_assert_uint_gt(left, 0);
	ck_assert_uint_lt(left, fx.batch.count);
	fx.part_count = 1;
	store_record();
	look("main", 0);
	ck_assert_uint_eq(stats[0].count[OB_VIEW_PENDING], left);
}
OB_TEST_END

OB_TEST(messages_are_counted_by_view_for_each_reader)
{
	store_begin(1);
	ck_assert(store_make_reader("audit", "log", (struct ob_place){ 0 }));
	store_hold_all(60000);
	store_put_all("a1 a2 b1 c1 d1");
	store_put((struct outbox_message){ .event_type = "f1", .delay_ms = 60000 });
	store_put((struct outbox_message){ .event_type = "x", .target = "log" });
	store_read(99, 0);
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("b1", OB_OUTCOME_DEAD);
	store_outcome("f1", OB_OUTCOME_DELAY);
	fx.decide.hold_dead = true;
	store_outcome("c1", OB_OUTCOME_DEAD);
	store_record();
	store_put_all("e1 g1 h1");
	store_operate(OB_VERB_DISCARD, "h1", 1, 0);

	look(NULL, 0);
	ck_assert_uint_eq(stats_count, 2);
	ck_assert_str_eq(stats[0].reader.p, "audit");
	ck_assert_str_eq(stats[0].target.p, "log");
	ck_assert_uint_eq(stats[0].count[OB_VIEW_PENDING], 1);
	ck_assert_uint_eq(stats[0].held_keys, 0);
	ck_assert_str_eq(stats[1].reader.p, "main");
	ck_assert_uint_eq(stats[1].count[OB_VIEW_PENDING], 2);
	ck_assert_uint_eq(stats[1].count[OB_VIEW_DELAYED], 1);
	ck_assert_uint_eq(stats[1].count[OB_VIEW_FAILED], 1);
	ck_assert_uint_eq(stats[1].count[OB_VIEW_PARKED], 1);
	ck_assert_uint_eq(stats[1].count[OB_VIEW_DEAD], 2);
	ck_assert_uint_eq(stats[1].count[OB_VIEW_DISCARDED], 1);
	ck_assert_uint_eq(stats[1].count[OB_VIEW_PUBLISHED], 0);
	ck_assert_uint_eq(stats[1].held_keys, 2);
	look("audit", 0);
	ck_assert_uint_eq(stats_count, 1);
	ck_assert_str_eq(stats[0].reader.p, "audit");
}
OB_TEST_END

OB_TEST(counting_stops_at_the_cap)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_all("a1 b1 c1 d1 e1");
	store_read(99, 0);
	for (int i = 0; i < 3; i++)
		store_outcome((const char *[]){ "a1", "b1", "c1" }[i], OB_OUTCOME_DEAD);
	store_record();
	store_put_all("v1 w1 x1 y1 z1");
	look("main", 4);
	ck_assert_uint_eq(stats[0].count[OB_VIEW_PENDING], 4);
	ck_assert(stats[0].capped[OB_VIEW_PENDING]);
	ck_assert_uint_eq(stats[0].count[OB_VIEW_DEAD], 3);
	ck_assert(!stats[0].capped[OB_VIEW_DEAD]);
	look("main", 2);
	ck_assert_uint_eq(stats[0].count[OB_VIEW_DEAD], 2);
	ck_assert(stats[0].capped[OB_VIEW_DEAD]);
	look("main", 100);
	ck_assert_uint_eq(stats[0].count[OB_VIEW_PENDING], 5);
	ck_assert(!stats[0].capped[OB_VIEW_PENDING]);
}
OB_TEST_END

OB_TEST(a_queue_counts_once_however_long_it_is)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_all("a1 a2 a3 b1");
	store_put_key("none", NULL);
	store_read(99, 0);
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("a3", OB_OUTCOME_PARK);
	store_outcome("b1", OB_OUTCOME_SPILL); /* a head that waits holds nobody */
	store_outcome("none", OB_OUTCOME_RETRY);
	store_record();
	look("main", 0);
	ck_assert_uint_eq(stats[0].held_keys, 1);
}
OB_TEST_END

OB_TEST(the_oldest_message_that_is_due_is_known)
{
	store_begin(1);
	store_hold_all(INT64_C(100000000));
	store_put((struct outbox_message){ .event_type = "later", .delay_ms = 50000 });
	look("main", 0);
	ck_assert_int_eq(stats[0].oldest_due_us, 0);
	store_advance_ms(1000);
	store_put_all("a1");
	store_advance_ms(1000);
	store_put_all("b1");
	look("main", 0);
	ck_assert_int_eq(stats[0].oldest_due_us, fx.start_us + 1000000);
	store_read(99, 0);
	store_outcome("later", OB_OUTCOME_DELAY);
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_record();
	look("main", 0);
	ck_assert_int_eq(stats[0].oldest_due_us, 0);
	store_advance_ms(5000);
	look("main", 0);
	ck_assert_int_eq(stats[0].oldest_due_us, fx.start_us + 1000000);
	store_operate(OB_VERB_SKIP, "a1", 1, 0);
	look("main", 0);
	ck_assert_int_eq(stats[0].oldest_due_us, 0);
	store_put_all("c1");
	look("main", 0);
	ck_assert_int_eq(stats[0].oldest_due_us, fx.start_us + 7000000);
}
OB_TEST_END

OB_TEST(a_connection_that_only_reads_cannot_write)
{
	const struct ob_worker worker = { .id = { { 7 } },
					  .reader = OB_STR("main"),
					  .hostname = OB_STR("h") };
	const struct ob_operate operate = { .verb = OB_VERB_DISCARD,
					    .filter = { .reader = "main" } };
	const struct ob_filter all = { .reader = "main" };
	struct ob_worker *workers;
	uint64_t changed, refused;
	size_t count = 0;
	int64_t now_us;

	store_begin(1);
	if (!fx.store->ops->sql)
		return; /* the memory has no such connection */
	store_put_all("a1 a2");
	fx.read_limit_ms = 5000;
	struct ob_store *reads = store_open();
	fx.read_limit_ms = 0;
	store_ok(ob_store_list(reads, &all, &fx.look, &now_us, &fx.err));
	ck_assert_uint_eq(fx.look.count, 2);
	store_ok(ob_store_throughput(reads, NULL, 60, &fx.arena, &(struct ob_minute *){ NULL },
				     &count, &fx.err));
	store_ok(ob_store_partitions(reads, NULL, &fx.arena, &(struct ob_partition *){ NULL },
				     &count, &fx.err));
	ck_assert_int_lt(ob_store_operate(reads, &operate, &changed, &refused, &fx.err), 0);
	ck_assert_int_lt(ob_store_beat(reads, &worker, 1000, &fx.err), 0);
	ck_assert_int_lt(ob_store_free_leases(reads, "main", NULL, 0, &fx.err), 0);
	/* Nothing of that was done, and the connection still reads. */
	store_ok(ob_store_workers(reads, NULL, &fx.arena, &workers, &count, &fx.err));
	ck_assert_uint_eq(count, 0);
	store_ok(ob_store_list(reads, &all, &fx.look, &now_us, &fx.err));
	ck_assert_uint_eq(fx.look.count, 2);
	ck_assert_int_eq(fx.look.messages[0].view, OB_VIEW_PENDING);
}
OB_TEST_END

STORE_CASES(stats, a_connection_that_only_reads_cannot_write, an_empty_log_has_nothing_to_count,
	    what_one_partition_has_behind_it_is_not_pending_there,
	    messages_are_counted_by_view_for_each_reader, counting_stops_at_the_cap,
	    a_queue_counts_once_however_long_it_is, the_oldest_message_that_is_due_is_known)
