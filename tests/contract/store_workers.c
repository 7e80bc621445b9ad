/* SPDX-License-Identifier: MIT */
/* Contract: workers, their heartbeats, and what becomes of those that are gone. */
#include "store_harness.h"

#include <poll.h>

static struct ob_lease *leases;
static size_t lease_count;

static void take(uint8_t owner, uint32_t want)
{
	const struct ob_uuid id = store_uuid(owner);

	store_ok(ob_store_take(fx.store, "main", &id, want, 9000, &fx.arena, &leases, &lease_count,
			       &fx.err));
}

static void beat_on(struct ob_store *store, uint8_t n, const char *reader, uint64_t published,
		    int64_t ttl_ms)
{
	const struct ob_worker worker = {
		.id = store_uuid(n),
		.reader = ob_str(reader),
		.hostname = OB_STR("host"),
		.pid = 40 + n,
		.published = published,
		.failed = 1,
	};

	store_ok(ob_store_beat(store, &worker, ttl_ms, &fx.err));
}

static void beat(uint8_t n, const char *reader, uint64_t published, int64_t ttl_ms)
{
	beat_on(fx.store, n, reader, published, ttl_ms);
}

static struct ob_worker *workers;

static void expect_workers(const char *reader, const char *expected)
{
	struct ob_buf text = OB_BUF_INIT(4096);
	size_t count;

	store_ok(ob_store_workers(fx.store, reader, &fx.arena, &workers, &count, &fx.err));
	ob_buf_adds(&text, "");
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(&text, "%s%u", i ? " " : "", workers[i].id.b[0]);
	ck_assert_str_eq(ob_buf_str(&text), expected);
	ob_buf_done(&text);
}

/* How many leases of "main" are free, or taken, for whoever asks. */
static uint32_t count_free(void)
{
	struct ob_partition *partitions;
	uint32_t is_free = 0;
	size_t count;

	store_ok(ob_store_partitions(fx.store, "main", &fx.arena, &partitions, &count, &fx.err));
	for (size_t i = 0; i < count; i++)
		is_free += !partitions[i].leased;
	return is_free;
}

static uint32_t reap(uint8_t self)
{
	const struct ob_uuid id = store_uuid(self);
	uint32_t gone = 77;

	store_ok(ob_store_reap(fx.store, "main", &id, &gone, &fx.err));
	return gone;
}

static void begin_seeded(uint32_t partitions)
{
	uint32_t count;

	store_begin(partitions);
	store_ok(ob_store_seed(fx.store, "main", &count, &fx.err));
}

OB_TEST(workers_join_and_are_listed_by_id)
{
	store_begin(1);
	ck_assert(store_make_reader("audit", "default", (struct ob_place){ 0 }));
	expect_workers("main", "");
	beat(3, "main", 0, 1000);
	beat(1, "main", 0, 1000);
	beat(2, "audit", 0, 1000);
	expect_workers("main", "1 3");
	expect_workers("audit", "2");
	expect_workers(NULL, "1 2 3");
	ck_assert_str_eq(workers[2].hostname.p, "host");
	ck_assert_str_eq(workers[2].reader.p, "main");
	ck_assert_int_eq(workers[2].pid, 43);
	ck_assert_int_eq(workers[2].started_at_us, fx.start_us);
	ck_assert_int_eq(workers[2].heartbeat_until_us, fx.start_us + 1000000);
}
OB_TEST_END

OB_TEST(a_heartbeat_renews_and_writes_the_counters)
{
	store_begin(1);
	beat(1, "main", 0, 1000);
	store_advance_ms(900);
	beat(1, "main", 55, 1000);
	store_advance_ms(900);
	expect_workers("main", "1");
	ck_assert_uint_eq(workers[0].published, 55);
	ck_assert_uint_eq(workers[0].failed, 1);
	ck_assert_int_eq(workers[0].started_at_us, fx.start_us);
	store_advance_ms(100);
	expect_workers("main", "");
	beat(1, "main", 60, 1000);
	expect_workers("main", "1");
}
OB_TEST_END

OB_TEST(a_heartbeat_carries_what_the_worker_knows)
{
	static char large[OB_WORKER_STATE_MAX + 1];
	struct ob_worker worker = { .id = store_uuid(1),
				    .reader = OB_STR("main"),
				    .hostname = OB_STR("host"),
				    .state = OB_STR("{\"sink\":\"Grüße 'x' \\\\ 😀\"}") };

	store_begin(1);
	store_ok(ob_store_beat(fx.store, &worker, 1000, &fx.err));
	expect_workers("main", "1");
	ck_assert_str_eq(workers[0].state.p, worker.state.p);
	memset(large, 'x', sizeof(large) - 1);
	worker.state = ob_str(large);
	store_ok(ob_store_beat(fx.store, &worker, 1000, &fx.err));
	expect_workers(NULL, "1");
	ck_assert_str_eq(workers[0].state.p, large);
	beat(1, "main", 0, 1000);
	expect_workers("main", "1");
	ck_assert_str_eq(workers[0].state.p, "");
}
OB_TEST_END

OB_TEST(leaving_releases_ones_leases_and_touches_nobody_else)
{
	const struct ob_uuid one = store_uuid(1);

	begin_seeded(3);
	beat(1, "main", 0, 9000);
	beat(2, "main", 0, 9000);
	take(1, 2);
	take(2, 1);
	store_ok(ob_store_leave(fx.store, "main", &one, &fx.err));
	expect_workers("main", "2");
	ck_assert_uint_eq(count_free(), 2);
	take(2, 9);
	ck_assert_uint_eq(lease_count, 2);
	store_ok(ob_store_leave(fx.store, "main", &one, &fx.err));
	beat(1, "main", 0, 9000);
	expect_workers("main", "1 2");
}
OB_TEST_END

OB_TEST(a_worker_whose_heartbeat_is_over_is_reaped)
{
	begin_seeded(3);
	beat(1, "main", 0, 1000);
	beat(2, "main", 0, 1001);
	take(1, 2);
	take(2, 1);
	store_advance_ms(999);
	ck_assert_uint_eq(reap(3), 0);
	ck_assert_uint_eq(count_free(), 0);
	store_advance_ms(1);
	ck_assert_uint_eq(reap(3), 1);
	ck_assert_uint_eq(count_free(), 2);
	expect_workers("main", "2");
	take(3, 9);
	ck_assert_uint_eq(lease_count, 2);
	ck_assert_uint_eq(leases[0].epoch, 2);
	ck_assert_uint_eq(reap(3), 0);
}
OB_TEST_END

OB_TEST(nobody_reaps_himself_or_another_readers_workers)
{
	begin_seeded(1);
	ck_assert(store_make_reader("audit", "default", (struct ob_place){ 0 }));
	beat(1, "main", 0, 1000);
	beat(2, "audit", 0, 1000);
	take(1, 1);
	store_advance_ms(1000);
	ck_assert_uint_eq(reap(1), 0);
	ck_assert_uint_eq(count_free(), 0);
	ck_assert_uint_eq(reap(3), 1);
	ck_assert_uint_eq(count_free(), 1);
	beat(2, "audit", 5, 1000);
	expect_workers(NULL, "2");
}
OB_TEST_END

OB_TEST(a_worker_whose_connection_is_gone_is_reaped_at_once)
{
	begin_seeded(2);
	struct ob_store *other = store_open();
	beat_on(other, 1, "main", 0, 1000000);
	beat(2, "main", 0, 1000000);
	take(1, 1);
	take(2, 1);
	ck_assert_uint_eq(reap(2), 0);
	store_close(other);
	/* The server may need a moment to see it. */
	uint32_t gone = 0;
	for (int i = 0; i < 500 && gone == 0; i++) {
		gone = reap(2);
		if (gone == 0)
			(void)poll(NULL, 0, 10);
	}
	ck_assert_uint_eq(gone, 1);
	expect_workers("main", "2");
	ck_assert_uint_eq(count_free(), 1);
	ck_assert_uint_eq(reap(2), 0);
}
OB_TEST_END

OB_TEST(a_worker_that_comes_back_on_a_new_connection_stays)
{
	begin_seeded(1);
	struct ob_store *first = store_open();
	beat_on(first, 1, "main", 0, 1000000);
	take(1, 1);
	store_close(first);
	struct ob_store *second = store_open();
	/* The old session may still hold the lock for a moment. */
	for (int i = 0; i < 20; i++) {
		beat_on(second, 1, "main", 0, 1000000);
		(void)poll(NULL, 0, 5);
	}
	beat_on(second, 1, "main", 0, 1000000);
	ck_assert_uint_eq(reap(2), 0);
	ck_assert_uint_eq(count_free(), 0);
}
OB_TEST_END

/* ---- throughput ------------------------------------------------------ */

static void expect_throughput(const char *reader, uint32_t minutes, const char *expected)
{
	struct ob_buf text = OB_BUF_INIT(4096);
	struct ob_minute *list;
	size_t count;

	store_ok(ob_store_throughput(fx.store, reader, minutes, &fx.arena, &list, &count, &fx.err));
	ob_buf_adds(&text, "");
	for (size_t i = 0; i < count; i++) {
		ck_assert_int_eq(list[i].minute_us % 60000000, 0);
		ob_buf_addf(&text, "%s%lld:%llu/%llu", i ? " " : "",
			    (long long)(list[i].minute_us / 60000000 - fx.start_us / 60000000),
			    (unsigned long long)list[i].published,
			    (unsigned long long)list[i].failed);
	}
	ck_assert_str_eq(ob_buf_str(&text), expected);
	ob_buf_done(&text);
}

static void beat_counts(uint8_t n, const char *reader, uint64_t published, uint64_t failed)
{
	const struct ob_worker worker = { .id = store_uuid(n),
					  .reader = ob_str(reader),
					  .hostname = OB_STR("h"),
					  .published = published,
					  .failed = failed };

	store_ok(ob_store_beat(fx.store, &worker, INT64_C(3600000), &fx.err));
}

OB_TEST(what_a_worker_did_since_its_last_beat_counts_for_the_minute)
{
	store_begin(1);
	expect_throughput(NULL, 60, "");
	beat_counts(1, "main", 0, 0);
	expect_throughput(NULL, 60, "");
	beat_counts(1, "main", 5, 1);
	beat_counts(1, "main", 7, 1);
	beat_counts(2, "main", 10, 0);
	expect_throughput("main", 60, "0:17/1");
	store_advance_ms(180000);
	beat_counts(1, "main", 8, 4);
	expect_throughput("main", 60, "0:17/1 3:1/3");
	expect_throughput("main", 4, "0:17/1 3:1/3");
	expect_throughput("main", 3, "3:1/3");
	expect_throughput("main", 0, "");
	expect_throughput("audit", 60, "");
	store_advance_ms(60000);
	expect_throughput("main", 1, "");
}
OB_TEST_END

OB_TEST(without_a_reader_minutes_are_summed)
{
	store_begin(1);
	ck_assert(store_make_reader("audit", "default", (struct ob_place){ 0 }));
	beat_counts(1, "main", 5, 1);
	beat_counts(2, "audit", 1, 1);
	expect_throughput(NULL, 60, "0:6/2");
	expect_throughput("main", 60, "0:5/1");
	expect_throughput("audit", 60, "0:1/1");
}
OB_TEST_END

STORE_CASES(workers, workers_join_and_are_listed_by_id, a_heartbeat_renews_and_writes_the_counters,
	    a_heartbeat_carries_what_the_worker_knows,
	    leaving_releases_ones_leases_and_touches_nobody_else,
	    a_worker_whose_heartbeat_is_over_is_reaped,
	    nobody_reaps_himself_or_another_readers_workers,
	    a_worker_whose_connection_is_gone_is_reaped_at_once,
	    a_worker_that_comes_back_on_a_new_connection_stays,
	    what_a_worker_did_since_its_last_beat_counts_for_the_minute,
	    without_a_reader_minutes_are_summed)
