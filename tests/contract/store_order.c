/* SPDX-License-Identifier: MIT */
/*
 * Contract: the known ways in which outboxes lose or reorder what producers wrote one after the
 * other, and in which two workers come to have one partition.
 */
#include "store_harness.h"

#include <pthread.h>

static void begin_with(struct ob_store *store, const char *label)
{
	store_ok(ob_store_tx_begin(store, &fx.err));
	store_push(store, (struct outbox_message){ .event_type = label, .partition_key = "other" });
}

/*
 * The second of two producers began first, and a third one stays open all the time: neither the
 * beginning of a transaction nor the oldest open one says anything about the order.
 */
OB_TEST(producers_that_wrote_one_after_the_other_keep_their_order)
{
	store_begin(1);
	if (!store_has(OB_STORE_CONCURRENT_WRITERS))
		return;
	store_hold_all(60000);
	struct ob_store *second = store_open(), *third = store_open();
	begin_with(second, "x");
	begin_with(third, "y");
	store_put_key("first", "k");
	store_push(second, (struct outbox_message){ .event_type = "second", .partition_key = "k" });
	store_ok(ob_store_tx_end(second, true, &fx.err));
	store_expect_read("x first second");
	store_ok(ob_store_tx_end(third, true, &fx.err));
	store_expect_read("y");
	store_forget();
	store_expect_read("x y first second");
}
OB_TEST_END

/* ---- workers that start at once -------------------------------------- */

enum { TAKERS = 6, LANES = 16, ROWS = 64 };

struct taker {
	struct ob_store *store;
	pthread_t thread;
	struct ob_uuid id;
	struct ob_arena arena;
	struct ob_lease *leases;
	size_t count;
	struct ob_err err;
};

static pthread_barrier_t together;

static void *take(void *arg)
{
	struct taker *t = arg;

	(void)pthread_barrier_wait(&together);
	/* Busy is no error: another takes just now. */
	while (ob_store_take(t->store, "main", &t->id, LANES, 60000, &t->arena, &t->leases,
			     &t->count, &t->err) < 0 &&
	       t->err.kind == OB_ERR_DOWN)
		t->err = OB_ERR_INIT;
	return NULL;
}

/* What the taker would have in flight, by partition. */
static uint32_t read_of(const struct taker *t, unsigned in_flight[LANES])
{
	struct ob_owned owned[LANES] = { 0 };
	struct ob_read_part parts[LANES];
	struct ob_read read = { .reader = "main",
				.target = "default",
				.parts = parts,
				.part_count = t->count,
				.limit = ROWS,
				.max_bytes = 1 << 20 };

	ck_assert_uint_le(t->count, LANES);
	for (size_t i = 0; i < t->count; i++) {
		in_flight[t->leases[i].partition]++;
		owned[i] = (struct ob_owned){ .partition = t->leases[i].partition,
					      .epoch = t->leases[i].epoch };
	}
	store_ok(ob_store_take_over(t->store, "main", &t->id, owned, t->count, &fx.err));
	for (size_t i = 0; i < t->count; i++) {
		ck_assert(!owned[i].lost);
		parts[i] = (struct ob_read_part){ .partition = owned[i].partition,
						  .from = owned[i].progress };
	}
	store_ok(ob_store_read(t->store, &read, &fx.batch, &fx.done, &fx.err));
	for (size_t i = 0; i < t->count; i++) {
		ob_progress_done(&owned[i].progress);
		if (t->count > 0)
			ob_progress_done(&parts[i].after);
	}
	return fx.batch.count;
}

OB_TEST(workers_that_start_at_once_never_have_one_partition_in_flight_twice)
{
	static struct taker takers[TAKERS];
	unsigned in_flight[LANES] = { 0 };
	uint32_t count, rows = 0;

	store_begin(LANES);
	for (int i = 0; i < ROWS; i++) {
		char key[8];

		(void)snprintf(key, sizeof(key), "k%d", i % 20);
		store_put_key("m", key);
	}
	store_ok(ob_store_seed(fx.store, "main", &count, &fx.err));
	ck_assert_int_eq(pthread_barrier_init(&together, NULL, TAKERS), 0);
	for (int i = 0; i < TAKERS; i++) {
		takers[i] = (struct taker){ .store = store_open(),
					    .id = store_uuid((uint8_t)(i + 1)),
					    .arena = OB_ARENA_INIT(1 << 20),
					    .err = OB_ERR_INIT };
		ck_assert_int_eq(pthread_create(&takers[i].thread, NULL, take, &takers[i]), 0);
	}
	for (int i = 0; i < TAKERS; i++)
		ck_assert_int_eq(pthread_join(takers[i].thread, NULL), 0);
	for (int i = 0; i < TAKERS; i++) {
		ck_assert_msg(takers[i].err.kind == OB_ERR_NONE, "%s", takers[i].err.msg);
		rows += read_of(&takers[i], in_flight);
		ob_arena_done(&takers[i].arena);
	}
	for (int i = 0; i < LANES; i++)
		ck_assert_msg(in_flight[i] == 1, "partition %d is in flight %u times", i,
			      in_flight[i]);
	ck_assert_uint_eq(rows, ROWS);
	(void)pthread_barrier_destroy(&together);
}
OB_TEST_END

STORE_CASES(order, producers_that_wrote_one_after_the_other_keep_their_order,
	    workers_that_start_at_once_never_have_one_partition_in_flight_twice)
