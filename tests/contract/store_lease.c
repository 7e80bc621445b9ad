/* SPDX-License-Identifier: MIT */
/* Contract: workers and their heartbeats, the leases of partitions, and resizing. */
#include "store_harness.h"

static struct ob_lease *leases;
static size_t lease_count;

static void take(uint8_t owner, uint32_t want, int64_t ttl_ms)
{
	const struct ob_uuid id = store_uuid(owner);

	store_ok(ob_store_take(fx.store, "default", &id, want, ttl_ms, &fx.arena, &leases,
			       &lease_count, &fx.err));
}

static void renew(uint8_t owner, int64_t ttl_ms)
{
	const struct ob_uuid id = store_uuid(owner);

	store_ok(ob_store_renew(fx.store, "default", &id, ttl_ms, &fx.arena, &leases, &lease_count,
				&fx.err));
}

static void release(uint8_t owner, uint32_t partition)
{
	const struct ob_uuid id = store_uuid(owner);

	store_ok(ob_store_release(fx.store, "default", &id, &partition, 1, &fx.err));
}

static void begin_seeded(uint32_t partitions)
{
	uint32_t count;

	store_begin(partitions);
	store_ok(ob_store_seed(fx.store, "default", &count, &fx.err));
	ck_assert_uint_eq(count, partitions);
}

/* The leases of the last call as text: "0:1 1:1" is partition:epoch. */
static void expect_leases(const char *expected)
{
	struct ob_buf text = OB_BUF_INIT(4096);

	ob_buf_adds(&text, "");
	for (size_t i = 0; i < lease_count; i++)
		ob_buf_addf(&text, "%s%u:%llu", i ? " " : "", leases[i].partition,
			    (unsigned long long)leases[i].epoch);
	ck_assert_str_eq(ob_buf_str(&text), expected);
	ob_buf_done(&text);
}

/* ---- leases ---------------------------------------------------------- */

OB_TEST(seeding_is_idempotent)
{
	struct ob_partition *partitions;
	uint32_t seeded;
	size_t count;

	begin_seeded(3);
	take(1, 1, 1000);
	store_ok(ob_store_seed(fx.store, "default", &seeded, &fx.err));
	store_ok(ob_store_seed(fx.store, "audit", &seeded, &fx.err));
	store_ok(ob_store_partitions(fx.store, NULL, &fx.arena, &partitions, &count, &fx.err));
	ck_assert_uint_eq(count, 6);
	for (uint32_t i = 0; i < 6; i++) {
		ck_assert_str_eq(partitions[i].target.p, i < 3 ? "audit" : "default");
		ck_assert_uint_eq(partitions[i].number, i % 3);
		ck_assert_int_eq(partitions[i].leased, i == 3);
		ck_assert_uint_eq(partitions[i].epoch, i == 3);
	}
	store_ok(ob_store_partitions(fx.store, "default", &fx.arena, &partitions, &count, &fx.err));
	ck_assert_uint_eq(count, 3);
	ck_assert_uint_eq(partitions[0].owner.b[0], 1);
	ck_assert_int_eq(partitions[0].until_us, fx.start_us + 1000000);
}
OB_TEST_END

OB_TEST(free_partitions_are_taken_lowest_first_with_epoch_one)
{
	begin_seeded(4);
	take(1, 0, 1000);
	expect_leases("");
	take(1, 2, 1000);
	expect_leases("0:1 1:1");
	take(2, 9, 1000);
	expect_leases("2:1 3:1");
	take(3, 9, 1000);
	expect_leases("");
}
OB_TEST_END

OB_TEST(without_seeding_there_is_nothing_to_take)
{
	store_begin(4);
	take(1, 9, 1000);
	expect_leases("");
}
OB_TEST_END

OB_TEST(a_valid_lease_is_not_taken_but_an_expired_one_is)
{
	begin_seeded(2);
	take(1, 2, 1000);
	store_advance_ms(999);
	take(2, 2, 1000);
	expect_leases("");
	store_advance_ms(1);
	take(2, 1, 1000);
	expect_leases("0:2");
	renew(1, 1000);
	expect_leases("");
}
OB_TEST_END

OB_TEST(renewing_extends_and_keeps_the_epoch)
{
	begin_seeded(2);
	take(1, 2, 1000);
	store_advance_ms(600);
	renew(1, 1000);
	expect_leases("0:1 1:1");
	store_advance_ms(999);
	take(2, 2, 1000);
	expect_leases("");
	renew(2, 1000);
	expect_leases("");
}
OB_TEST_END

OB_TEST(an_expired_lease_cannot_be_renewed_even_if_nobody_took_it)
{
	begin_seeded(1);
	take(1, 1, 1000);
	store_advance_ms(1000);
	renew(1, 1000);
	expect_leases("");
	take(1, 1, 1000);
	expect_leases("0:2");
}
OB_TEST_END

OB_TEST(releasing_frees_at_once_but_only_what_is_ones_own)
{
	begin_seeded(2);
	take(1, 2, 1000);
	release(2, 0);
	take(2, 2, 1000);
	expect_leases("");
	release(1, 1);
	renew(1, 1000);
	expect_leases("0:1");
	take(2, 2, 1000);
	expect_leases("1:2");
	store_ok(ob_store_release(fx.store, "default", &fx.me, NULL, 0, &fx.err));
}
OB_TEST_END

OB_TEST(the_epoch_only_grows)
{
	uint64_t last = 0;

	begin_seeded(1);
	for (uint8_t i = 0; i < 6; i++) {
		take(i % 2, 1, 1000);
		ck_assert_uint_eq(lease_count, 1);
		ck_assert_uint_gt(leases[0].epoch, last);
		last = leases[0].epoch;
		if (i % 3 == 0)
			release(i % 2, 0);
		else
			store_advance_ms(1000);
	}
}
OB_TEST_END

OB_TEST(leases_of_targets_are_apart)
{
	const struct ob_uuid one = store_uuid(1);
	uint32_t count;

	begin_seeded(1);
	store_ok(ob_store_seed(fx.store, "audit", &count, &fx.err));
	take(1, 9, 1000);
	expect_leases("0:1");
	store_ok(ob_store_take(fx.store, "audit", &one, 9, 1000, &fx.arena, &leases, &lease_count,
			       &fx.err));
	expect_leases("0:1");
	store_ok(ob_store_leave(fx.store, "audit", &one, &fx.err));
	renew(1, 1000);
	expect_leases("0:1");
}
OB_TEST_END

/* ---- workers --------------------------------------------------------- */

static void beat(uint8_t n, const char *target, uint64_t published, int64_t ttl_ms)
{
	const struct ob_worker worker = {
		.id = store_uuid(n),
		.target = ob_str(target),
		.hostname = OB_STR("host"),
		.pid = 40 + n,
		.published = published,
		.failed = 1,
	};

	store_ok(ob_store_beat(fx.store, &worker, ttl_ms, &fx.err));
}

static struct ob_worker *workers;

static void expect_workers(const char *target, const char *expected)
{
	struct ob_buf text = OB_BUF_INIT(4096);
	size_t count;

	store_ok(ob_store_workers(fx.store, target, &fx.arena, &workers, &count, &fx.err));
	ob_buf_adds(&text, "");
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(&text, "%s%u", i ? " " : "", workers[i].id.b[0]);
	ck_assert_str_eq(ob_buf_str(&text), expected);
	ob_buf_done(&text);
}

OB_TEST(workers_join_and_are_listed_by_id)
{
	store_begin(1);
	expect_workers("default", "");
	beat(3, "default", 0, 1000);
	beat(1, "default", 0, 1000);
	beat(2, "audit", 0, 1000);
	expect_workers("default", "1 3");
	expect_workers("audit", "2");
	expect_workers(NULL, "1 2 3");
	ck_assert_str_eq(workers[2].hostname.p, "host");
	ck_assert_str_eq(workers[2].target.p, "default");
	ck_assert_int_eq(workers[2].pid, 43);
	ck_assert_int_eq(workers[2].started_at_us, fx.start_us);
	ck_assert_int_eq(workers[2].heartbeat_until_us, fx.start_us + 1000000);
}
OB_TEST_END

OB_TEST(a_heartbeat_renews_and_writes_the_counters)
{
	store_begin(1);
	beat(1, "default", 0, 1000);
	store_advance_ms(900);
	beat(1, "default", 55, 1000);
	store_advance_ms(900);
	expect_workers("default", "1");
	ck_assert_uint_eq(workers[0].published, 55);
	ck_assert_uint_eq(workers[0].failed, 1);
	ck_assert_int_eq(workers[0].started_at_us, fx.start_us);
	store_advance_ms(100);
	expect_workers("default", "");
	beat(1, "default", 60, 1000);
	expect_workers("default", "1");
}
OB_TEST_END

OB_TEST(leaving_releases_ones_leases_and_touches_nobody_else)
{
	const struct ob_uuid one = store_uuid(1);

	begin_seeded(3);
	beat(1, "default", 0, 9000);
	beat(2, "default", 0, 9000);
	take(1, 2, 9000);
	take(2, 1, 9000);
	store_ok(ob_store_leave(fx.store, "default", &one, &fx.err));
	expect_workers("default", "2");
	renew(1, 9000);
	expect_leases("");
	renew(2, 9000);
	expect_leases("2:1");
	take(2, 9, 9000);
	expect_leases("0:2 1:2");
	store_ok(ob_store_leave(fx.store, "default", &one, &fx.err));
	beat(1, "default", 0, 9000);
	expect_workers("default", "1 2");
}
OB_TEST_END

/* ---- resizing -------------------------------------------------------- */

static void put_many(int count)
{
	char label[16];

	for (int i = 0; i < count; i++) {
		(void)snprintf(label, sizeof(label), "m%d", i);
		store_put_key(label, i % 5 ? label : NULL);
	}
}

OB_TEST(resizing_is_refused_while_a_lease_is_valid)
{
	begin_seeded(4);
	put_many(20);
	take(1, 1, 1000);
	char *before = store_dump();
	ck_assert_int_eq(ob_store_resize(fx.store, 2, &fx.err), OUTBOX_EBUSY);
	char *after = store_dump();
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
	store_fetch(99, OB_ORDER_KEY);
	ck_assert_uint_eq(fx.batch.count, 20);
	store_advance_ms(1000);
	store_ok(ob_store_resize(fx.store, 2, &fx.err));
}
OB_TEST_END

OB_TEST(resizing_to_the_same_number_changes_nothing)
{
	begin_seeded(4);
	take(1, 2, 1000);
	char *before = store_dump();
	store_ok(ob_store_resize(fx.store, 4, &fx.err));
	char *after = store_dump();
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
}
OB_TEST_END

OB_TEST(a_size_out_of_range_is_refused)
{
	store_begin(4);
	ck_assert_int_eq(ob_store_resize(fx.store, 0, &fx.err), OUTBOX_EINVAL);
	ck_assert_int_eq(ob_store_resize(fx.store, OB_PARTITIONS_MAX + 1, &fx.err), OUTBOX_EINVAL);
}
OB_TEST_END

static void resize_and_fetch_all(uint32_t to)
{
	uint32_t count;

	store_ok(ob_store_resize(fx.store, to, &fx.err));
	store_ok(ob_store_seed(fx.store, "default", &count, &fx.err));
	ck_assert_uint_eq(count, to);
	fx.partition_count = to;
	store_fetch(99, OB_ORDER_KEY);
	ck_assert_uint_eq(fx.batch.count, 20);
	for (uint32_t i = 0; i < 20; i++)
		ck_assert_uint_lt(fx.batch.messages[i].partition, to);
}

OB_TEST(shrinking_and_growing_strand_no_row)
{
	begin_seeded(8);
	put_many(20);
	resize_and_fetch_all(3);
	resize_and_fetch_all(1);
	resize_and_fetch_all(16);
	put_many(0);
	store_put_key("new", "k");
	ck_assert_uint_lt(store_row("new")->partition, 16);
}
OB_TEST_END

OB_TEST(seeding_after_a_shrink_drops_the_leases_that_are_too_many)
{
	struct ob_partition *partitions;
	uint32_t seeded;
	size_t count;

	begin_seeded(8);
	store_ok(ob_store_resize(fx.store, 3, &fx.err));
	take(1, 9, 1000);
	ck_assert_uint_eq(lease_count, 3);
	store_ok(ob_store_seed(fx.store, "default", &seeded, &fx.err));
	store_ok(ob_store_partitions(fx.store, NULL, &fx.arena, &partitions, &count, &fx.err));
	ck_assert_uint_eq(count, 3);
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
	put_many(100);
	store_fetch(1000, OB_ORDER_KEY);
	ck_assert_uint_eq(fx.batch.count, 100);
	for (uint32_t i = 0; i < 100; i++)
		hits[fx.batch.messages[i].partition]++;
	for (int i = 0; i < 8; i++)
		used += hits[i] > 0;
	ck_assert_uint_ge(used, 6);
}
OB_TEST_END

OB_TEST(after_a_resize_an_expired_owner_cannot_settle)
{
	store_begin(1);
	store_hold_all(&fx.me, 1000);
	store_put_key("a", "k");
	store_fetch(9, OB_ORDER_KEY);
	store_advance_ms(1000);
	store_ok(ob_store_resize(fx.store, 2, &fx.err));
	store_settle("a", OB_OUTCOME_PUBLISHED);
	ck_assert_uint_eq(fx.settled.lost, 1);
	store_expect_state("a", OB_STATE_PENDING);

	struct ob_partition *partitions;
	size_t count;
	store_ok(ob_store_partitions(fx.store, "default", &fx.arena, &partitions, &count, &fx.err));
	ck_assert_uint_ge(count, 1);
	ck_assert(ob_uuid_is_nil(&partitions[0].owner));
	ck_assert_uint_gt(partitions[0].epoch, fx.leases[0].epoch);
}
OB_TEST_END

OB_TEST(a_resize_frees_rows_whose_holder_may_have_moved_away)
{
	store_begin(1);
	store_hold_all(&fx.me, 1000);
	store_put_key("a1", "a");
	store_put_key("a2", "a");
	store_put_key("free", NULL);
	fx.settle.ordering = OB_ORDER_PARTITION;
	store_fetch_settle("a1", OB_OUTCOME_RETRY);
	store_advance_ms(1000);
	store_ok(ob_store_resize(fx.store, 16, &fx.err));
	store_expect_state("free", OB_STATE_PENDING);
	store_expect_state("a2", OB_STATE_PARKED);
	store_expect_state("a1", OB_STATE_FAILED);
}
OB_TEST_END

OB_TEST(labels_have_two_digits)
{
	char label[8];

	store_begin(0);
	ob_partition_label(7, label);
	ck_assert_str_eq(label, "p07");
	ob_partition_label(1023, label);
	ck_assert_str_eq(label, "p1023");
}
OB_TEST_END

STORE_CASES(lease, seeding_is_idempotent, free_partitions_are_taken_lowest_first_with_epoch_one,
	    without_seeding_there_is_nothing_to_take,
	    a_valid_lease_is_not_taken_but_an_expired_one_is, renewing_extends_and_keeps_the_epoch,
	    an_expired_lease_cannot_be_renewed_even_if_nobody_took_it,
	    releasing_frees_at_once_but_only_what_is_ones_own, the_epoch_only_grows,
	    leases_of_targets_are_apart, workers_join_and_are_listed_by_id,
	    a_heartbeat_renews_and_writes_the_counters,
	    leaving_releases_ones_leases_and_touches_nobody_else,
	    resizing_is_refused_while_a_lease_is_valid, resizing_to_the_same_number_changes_nothing,
	    a_size_out_of_range_is_refused, shrinking_and_growing_strand_no_row,
	    seeding_after_a_shrink_drops_the_leases_that_are_too_many, a_key_stays_in_one_partition,
	    keys_and_rows_without_a_key_spread_over_the_partitions,
	    after_a_resize_an_expired_owner_cannot_settle,
	    a_resize_frees_rows_whose_holder_may_have_moved_away, labels_have_two_digits)
