/* SPDX-License-Identifier: MIT */
/* Contract: another number of partitions: nothing is lost, nothing is delivered twice. */
#include "store_harness.h"

static void put_many(const char *prefix, int count)
{
	char label[16];

	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	for (int i = 0; i < count; i++) {
		(void)snprintf(label, sizeof(label), "%s%d", prefix, i);
		store_push(fx.store, (struct outbox_message){ .event_type = label,
							      .partition_key = i % 5 ? label : NULL,
							      .priority = i % 7 == 0 });
	}
	store_commit(fx.store);
}

static void resize(uint32_t to)
{
	store_ok(ob_store_resize(fx.store, to, &fx.err));
	fx.partition_count = to;
}

/* Another worker takes all, and delivers; how many it got. */
static uint32_t deliver_count(uint8_t owner)
{
	store_be("main", "default", owner);
	store_hold_all(1000);
	char *labels = store_deliver();
	uint32_t count = labels[0] != '\0';

	for (const char *p = labels; *p; p++)
		count += *p == ' ';
	free(labels);
	store_advance_ms(1000);
	return count;
}

OB_TEST(resizing_is_refused_while_a_lease_is_valid)
{
	store_begin(4);
	put_many("m", 20);
	store_hold_all(1000);
	char *before = store_dump();
	ck_assert_int_eq(ob_store_resize(fx.store, 2, &fx.err), OUTBOX_EBUSY);
	ck_assert_int_eq(fx.err.kind, OB_ERR_DOWN);
	store_expect_same(before, store_dump());
	store_read(99, 0);
	ck_assert_uint_eq(fx.batch.count, 20);
	store_advance_ms(1000);
	resize(2);
}
OB_TEST_END

OB_TEST(resizing_to_the_same_number_changes_nothing)
{
	store_begin(4);
	store_hold_all(1000);
	char *before = store_dump();
	store_ok(ob_store_resize(fx.store, 4, &fx.err));
	store_expect_same(before, store_dump());
}
OB_TEST_END

OB_TEST(a_size_out_of_range_is_refused)
{
	store_begin(4);
	ck_assert_int_eq(ob_store_resize(fx.store, 0, &fx.err), OUTBOX_EINVAL);
	ck_assert_int_eq(ob_store_resize(fx.store, OB_PARTITIONS_MAX + 1, &fx.err), OUTBOX_EINVAL);
}
OB_TEST_END

static void resize_and_read_all(uint32_t to, uint8_t owner)
{
	resize(to);
	store_be("main", "default", owner);
	store_hold_all(1000);
	store_read(99, 0);
	ck_assert_uint_eq(fx.batch.count, 20);
	for (uint32_t i = 0; i < 20; i++)
		ck_assert_uint_lt(fx.batch.messages[i].partition, OB_LANES * to);
	store_advance_ms(1000);
}

OB_TEST(shrinking_and_growing_strand_no_row)
{
	store_begin(8);
	put_many("m", 20);
	resize_and_read_all(3, 1);
	resize_and_read_all(1, 2);
	resize_and_read_all(16, 3);
	store_put_key("new", "k");
	ck_assert_uint_lt(store_row("new")->partition, 16);
	ck_assert_uint_eq(deliver_count(4), 21);
}
OB_TEST_END

OB_TEST(what_was_delivered_is_not_delivered_again)
{
	store_begin(4);
	put_many("m", 30);
	ck_assert_uint_eq(deliver_count(1), 30);
	put_many("n", 10);
	resize(7);
	ck_assert_uint_eq(deliver_count(2), 10);
	resize(2);
	ck_assert_uint_eq(deliver_count(3), 0);
	for (int i = 0; i < 30; i++) {
		char label[16];

		(void)snprintf(label, sizeof(label), "m%d", i);
		store_expect_view(label, OB_VIEW_PUBLISHED);
	}
}
OB_TEST_END

OB_TEST(partitions_that_were_at_different_places_repeat_nothing)
{
	uint32_t total = 0, first = 0;

	store_begin(4);
	put_many("m", 40);
	/* Only one of the partitions records what it has delivered. */
	store_hold_all(1000);
	store_read(99, 0);
	for (uint32_t i = 0; i < fx.batch.count; i++)
		first += fx.batch.messages[i].partition == 2;
	ck_assert_uint_gt(first, 0);
	struct store_part two = fx.parts[2];
	size_t all = fx.part_count;
	struct store_part zero = fx.parts[0];
	fx.parts[0] = two;
	fx.part_count = 1;
	store_record();
	fx.parts[2] = fx.parts[0];
	fx.parts[0] = zero;
	fx.part_count = all;
	store_advance_ms(1000);
	resize(3);
	total = first + deliver_count(2);
	ck_assert_uint_eq(total, 40);
	ck_assert_uint_eq(deliver_count(3), 0);
}
OB_TEST_END

OB_TEST(a_transaction_that_is_open_while_it_is_resized_is_not_lost)
{
	store_begin(4);
	if (!store_has(OB_STORE_CONCURRENT_WRITERS) || strncmp(fx.backend->name, "mysql", 5) == 0 ||
	    strncmp(fx.backend->name, "postgres", 8) == 0)
		return; /* there the change of the table waits for it */
	struct ob_store *slow = store_open();
	store_open_with(slow, "a1 b1 c1");
	store_put_all("a2 b2");
	ck_assert_uint_eq(deliver_count(1), 2);
	resize(2);
	store_commit(slow);
	ck_assert_uint_eq(deliver_count(2), 3);
}
OB_TEST_END

OB_TEST(a_late_row_of_before_is_delivered_after_a_resize)
{
	store_begin(4);
	if (!store_has(OB_STORE_CONCURRENT_WRITERS))
		return;
	struct ob_store *slow = store_open();
	store_open_with(slow, "a1 b1 c1");
	store_put_all("a2 b2");
	ck_assert_uint_eq(deliver_count(1), 2);
	store_commit(slow);
	resize(2);
	ck_assert_uint_eq(deliver_count(2), 3);
	ck_assert_uint_eq(deliver_count(3), 0);
}
OB_TEST_END

OB_TEST(exceptions_move_with_their_rows)
{
	store_begin(1);
	store_hold_all(1000);
	store_put_all("a1 a2 b1 c1 d1");
	store_read(99, 0);
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("b1", OB_OUTCOME_DEAD);
	fx.decide.hold_dead = true;
	store_outcome("c1", OB_OUTCOME_DEAD);
	store_record();
	store_advance_ms(1000);
	resize(16);
	store_expect_view("a1", OB_VIEW_FAILED);
	store_expect_view("a2", OB_VIEW_PARKED);
	store_expect_view("b1", OB_VIEW_DEAD);
	store_expect_state("c1", OB_STATE_DEAD_HOLD);
	store_put_all("a3 c2");
	store_be("main", "default", 2);
	store_hold_all(60000);
	store_expect_read("a3 c2");
	ck_assert(store_got("a3")->held);
	ck_assert(store_got("c2")->held);
	store_park_flagged();
	store_record();
	store_advance_ms(5000);
	store_expect_read("a1 a2 a3");
	ck_assert_uint_eq(store_got("a1")->partition, store_row("a3")->partition);
}
OB_TEST_END

OB_TEST(rows_whose_head_moved_away_are_promoted)
{
	store_begin(1);
	store_hold_all(1000);
	fx.decide.ordering = OB_ORDER_PARTITION;
	store_put_all("a1 b1 c1 d1 e1 f1");
	store_read(99, 0);
	store_outcome("a1", OB_OUTCOME_RETRY);
	for (int i = 0; i < 5; i++)
		store_outcome((const char *[]){ "b1", "c1", "d1", "e1", "f1" }[i], OB_OUTCOME_PARK);
	store_record();
	store_advance_ms(1000);
	resize(16);
	uint32_t of_a = store_row("a1")->partition, elsewhere = 0;
	for (int i = 0; i < 5; i++)
		elsewhere +=
			store_row((const char *[]){ "b1", "c1", "d1", "e1", "f1" }[i])->partition !=
			of_a;
	store_be("main", "default", 2);
	store_hold_all(60000);
	store_read(0, 99);
	ck_assert_uint_gt(elsewhere, 0);
	ck_assert_uint_eq(fx.batch.count, elsewhere);
}
OB_TEST_END

OB_TEST(after_a_resize_an_expired_owner_cannot_record)
{
	enum ob_settled settled[STORE_PARTS_MAX];
	struct ob_partition *partitions;
	size_t count;

	store_begin(2);
	store_hold_all(1000);
	store_put_all("a1");
	store_read(9, 0);
	uint64_t epoch = fx.parts[0].epoch;
	store_advance_ms(1000);
	store_ok(ob_store_resize(fx.store, 1, &fx.err));
	/* Also of the partitions that are gone. */
	store_outcome("a1", OB_OUTCOME_DEAD);
	store_try_record(settled);
	for (size_t i = 0; i < fx.part_count; i++)
		ck_assert_int_eq(settled[i], OB_SETTLE_LOST);
	ck_assert(!store_row("a1")->excepted);
	struct ob_owned owned = { .partition = 5, .epoch = 99 };
	store_ok(ob_store_take_over(fx.store, "main", &fx.me, &owned, 1, &fx.err));
	ck_assert(owned.lost);
	store_expect_view("a1", OB_VIEW_PENDING);
	store_ok(ob_store_partitions(fx.store, "main", &fx.arena, &partitions, &count, &fx.err));
	ck_assert_uint_ge(count, 1);
	ck_assert(ob_uuid_is_nil(&partitions[0].owner));
	ck_assert_uint_gt(partitions[0].epoch, epoch);
	fx.partition_count = 1;
}
OB_TEST_END

OB_TEST(seeding_after_a_shrink_drops_the_leases_that_are_too_many)
{
	struct ob_partition *partitions;
	size_t count;

	store_begin(8);
	store_hold_all(1000);
	store_advance_ms(1000);
	resize(3);
	store_hold_all(1000);
	store_ok(ob_store_partitions(fx.store, NULL, &fx.arena, &partitions, &count, &fx.err));
	ck_assert_uint_eq(count, 3);
	store_advance_ms(1000);
	resize(5);
	store_hold_all(1000);
	store_record();
}
OB_TEST_END

OB_TEST(all_readers_are_resized)
{
	store_begin(4);
	ck_assert(store_make_reader("other", "default", (struct ob_place){ 0 }));
	put_many("m", 20);
	ck_assert_uint_eq(deliver_count(1), 20);
	resize(2);
	store_be("other", "default", 2);
	store_hold_all(1000);
	store_read(99, 0);
	ck_assert_uint_eq(fx.batch.count, 20);
	ck_assert_uint_eq(deliver_count(3), 0);
}
OB_TEST_END

OB_TEST(a_key_stays_in_one_partition)
{
	store_begin(16);
	store_put((struct outbox_message){
		.event_type = "a", .aggregate_type = "order", .aggregate_id = "1" });
	store_put((struct outbox_message){
		.event_type = "b", .aggregate_type = "order", .aggregate_id = "1" });
	store_put((struct outbox_message){
		.event_type = "c", .aggregate_type = "x", .partition_key = "order:1" });
	uint32_t first = store_row("a")->partition;
	ck_assert_uint_eq(store_row("b")->partition, first);
	ck_assert_uint_eq(store_row("c")->partition, first);
}
OB_TEST_END

OB_TEST(keys_and_rows_without_a_key_spread_over_the_partitions)
{
	uint32_t hits[8] = { 0 };
	uint32_t used = 0;

	store_begin(8);
	store_hold_all(60000);
	put_many("m", 100);
	store_read(1000, 0);
	ck_assert_uint_eq(fx.batch.count, 100);
	for (uint32_t i = 0; i < 100; i++)
		hits[fx.batch.messages[i].partition % 8]++;
	for (int i = 0; i < 8; i++)
		used += hits[i] > 0;
	ck_assert_uint_ge(used, 6);
}
OB_TEST_END

STORE_CASES(resize, resizing_is_refused_while_a_lease_is_valid,
	    resizing_to_the_same_number_changes_nothing, a_size_out_of_range_is_refused,
	    shrinking_and_growing_strand_no_row, what_was_delivered_is_not_delivered_again,
	    partitions_that_were_at_different_places_repeat_nothing,
	    a_transaction_that_is_open_while_it_is_resized_is_not_lost,
	    a_late_row_of_before_is_delivered_after_a_resize, exceptions_move_with_their_rows,
	    rows_whose_head_moved_away_are_promoted, after_a_resize_an_expired_owner_cannot_record,
	    seeding_after_a_shrink_drops_the_leases_that_are_too_many, all_readers_are_resized,
	    a_key_stays_in_one_partition, keys_and_rows_without_a_key_spread_over_the_partitions)
