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
	struct ob_store *second = store_open(), *third = store_open();
	begin_with(second, "x");
	begin_with(third, "y");
	store_put_key("first", "k");
	store_push(second, (struct outbox_message){ .event_type = "second", .partition_key = "k" });
	store_ok(ob_store_tx_end(second, true, &fx.err));
	store_fetch(9, OB_ORDER_KEY);
	ck_assert_str_eq(store_labels(&fx.batch), "x first second");
	store_ok(ob_store_tx_end(third, true, &fx.err));
	store_fetch(9, OB_ORDER_KEY);
	ck_assert_str_eq(store_labels(&fx.batch), "x y first second");
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
	while (ob_store_take(t->store, "default", &t->id, LANES, 60000, &t->arena, &t->leases,
			     &t->count, &t->err) < 0 &&
	       t->err.kind == OB_ERR_DOWN)
		t->err = OB_ERR_INIT;
	return NULL;
}

/* What the taker would have in flight, by partition. */
static uint32_t fetch_of(const struct taker *t, unsigned in_flight[LANES])
{
	uint32_t partitions[LANES];
	const struct ob_fetch fetch = {
		.target = "default",
		.partitions = partitions,
		.partition_count = t->count,
		.limit = ROWS,
		.max_bytes = 1 << 20,
	};

	ck_assert_uint_le(t->count, LANES);
	for (size_t i = 0; i < t->count; i++) {
		partitions[i] = t->leases[i].partition;
		in_flight[partitions[i]]++;
	}
	store_ok(ob_store_fetch(t->store, &fetch, &fx.batch, &fx.err));
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
	store_ok(ob_store_seed(fx.store, "default", &count, &fx.err));
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
		rows += fetch_of(&takers[i], in_flight);
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
