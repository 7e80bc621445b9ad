/* SPDX-License-Identifier: MIT */
/* Contract: the leases of partitions. */
#include "store_harness.h"

static struct ob_lease *leases;
static size_t lease_count;

static void take(uint8_t owner, uint32_t want, int64_t ttl_ms)
{
	const struct ob_uuid id = store_uuid(owner);

	store_ok(ob_store_take(fx.store, "main", &id, want, ttl_ms, &fx.arena, &leases,
			       &lease_count, &fx.err));
}

static void renew(uint8_t owner, int64_t ttl_ms)
{
	const struct ob_uuid id = store_uuid(owner);

	store_ok(ob_store_renew(fx.store, "main", &id, ttl_ms, &fx.arena, &leases, &lease_count,
				&fx.err));
}

static void release(uint8_t owner, uint32_t partition)
{
	const struct ob_uuid id = store_uuid(owner);

	store_ok(ob_store_release(fx.store, "main", &id, &partition, 1, &fx.err));
}

static void begin_seeded(uint32_t partitions)
{
	uint32_t count;

	store_begin(partitions);
	store_ok(ob_store_seed(fx.store, "main", &count, &fx.err));
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
	store_ok(ob_store_seed(fx.store, "main", &seeded, &fx.err));
	ck_assert(store_make_reader("audit", "default", (struct ob_place){ 0 }));
	store_ok(ob_store_seed(fx.store, "audit", &seeded, &fx.err));
	store_ok(ob_store_partitions(fx.store, NULL, &fx.arena, &partitions, &count, &fx.err));
	ck_assert_uint_eq(count, 6);
	for (uint32_t i = 0; i < 6; i++) {
		ck_assert_str_eq(partitions[i].reader.p, i < 3 ? "audit" : "main");
		ck_assert_uint_eq(partitions[i].number, i % 3);
		ck_assert_int_eq(partitions[i].leased, i == 3);
		ck_assert_uint_eq(partitions[i].epoch, i == 3);
	}
	store_ok(ob_store_partitions(fx.store, "main", &fx.arena, &partitions, &count, &fx.err));
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
	store_ok(ob_store_release(fx.store, "main", &fx.me, NULL, 0, &fx.err));
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

OB_TEST(leases_of_readers_are_apart)
{
	const struct ob_uuid one = store_uuid(1);
	uint32_t count;

	begin_seeded(1);
	ck_assert(store_make_reader("audit", "default", (struct ob_place){ 0 }));
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

OB_TEST(an_operator_frees_leases_whoever_holds_them)
{
	const uint32_t some[] = { 1, 7 };
	struct ob_partition *partitions;
	size_t count;

	begin_seeded(3);
	take(1, 3, 1000000);
	store_ok(ob_store_free_leases(fx.store, "main", some, 2, &fx.err));
	renew(1, 1000000);
	expect_leases("0:1 2:1");
	store_ok(ob_store_partitions(fx.store, "main", &fx.arena, &partitions, &count, &fx.err));
	ck_assert(!partitions[1].leased);
	ck_assert(ob_uuid_is_nil(&partitions[1].owner));
	ck_assert_uint_eq(partitions[1].epoch, 2);
	take(2, 9, 1000);
	expect_leases("1:3");
	store_ok(ob_store_free_leases(fx.store, "main", NULL, 0, &fx.err));
	renew(1, 1000);
	expect_leases("");
	renew(2, 1000);
	expect_leases("");
	take(3, 9, 1000);
	expect_leases("0:3 1:5 2:3");
}
OB_TEST_END

/* Its heartbeat may be as far ahead as its leases: its share would have no owner. */
OB_TEST(who_held_a_freed_lease_is_no_worker_until_its_next_beat)
{
	const uint32_t some[] = { 0 };
	struct ob_worker worker = { .id = store_uuid(1),
				    .reader = OB_STR("main"),
				    .hostname = OB_STR("h") };
	struct ob_worker *workers;
	size_t count;

	begin_seeded(2);
	store_ok(ob_store_beat(fx.store, &worker, 1000000, &fx.err));
	take(1, 1, 1000000);
	worker.id = store_uuid(2);
	store_ok(ob_store_beat(fx.store, &worker, 1000000, &fx.err));
	take(2, 1, 1000000);
	store_ok(ob_store_free_leases(fx.store, "main", some, 1, &fx.err));
	store_ok(ob_store_workers(fx.store, "main", &fx.arena, &workers, &count, &fx.err));
	ck_assert_uint_eq(count, 1);
	ck_assert(ob_uuid_eq(&workers[0].id, &worker.id));
	worker.id = store_uuid(1);
	store_ok(ob_store_beat(fx.store, &worker, 1000000, &fx.err));
	store_ok(ob_store_workers(fx.store, "main", &fx.arena, &workers, &count, &fx.err));
	ck_assert_uint_eq(count, 2);
}
OB_TEST_END

OB_TEST(freeing_leases_touches_no_other_reader)
{
	const struct ob_uuid one = store_uuid(1);
	uint32_t seeded;

	begin_seeded(1);
	ck_assert(store_make_reader("audit", "default", (struct ob_place){ 0 }));
	store_ok(ob_store_seed(fx.store, "audit", &seeded, &fx.err));
	take(1, 1, 1000);
	store_ok(ob_store_free_leases(fx.store, "audit", NULL, 0, &fx.err));
	store_ok(ob_store_renew(fx.store, "main", &one, 1000, &fx.arena, &leases, &lease_count,
				&fx.err));
	expect_leases("0:1");
}
OB_TEST_END

OB_TEST(a_partition_tells_where_its_reader_stands)
{
	struct ob_partition *partitions;
	size_t count;

	store_begin(2);
	store_hold_all(60000);
	store_put_all("a1 b1 c1");
	store_read(99, 0);
	store_advance_ms(20);
	store_record();
	store_ok(ob_store_partitions(fx.store, "main", &fx.arena, &partitions, &count, &fx.err));
	ck_assert_uint_eq(count, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(partitions[i].pos, store_row("c1")->seq);
		ck_assert_int_eq(partitions[i].moved_at_us, fx.start_us + 20000);
	}
}
OB_TEST_END

OB_TEST(a_new_lease_begins_above_what_the_journal_has)
{
	struct ob_owned owned = { .partition = 3, .epoch = 40 }; /* lane 1 of partition 1 */
	const struct ob_uuid one = store_uuid(1);

	store_begin(2);
	store_ok(ob_store_take_over(fx.store, "main", &one, &owned, 1, &fx.err));
	ob_progress_done(&owned.progress);
	store_hold_all(60000); /* takes over: would be lost with an epoch of 1 */
	ck_assert_uint_gt(fx.parts[3].epoch, 40);
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
	    leases_of_readers_are_apart, an_operator_frees_leases_whoever_holds_them,
	    who_held_a_freed_lease_is_no_worker_until_its_next_beat,
	    freeing_leases_touches_no_other_reader, a_partition_tells_where_its_reader_stands,
	    a_new_lease_begins_above_what_the_journal_has, labels_have_two_digits)
