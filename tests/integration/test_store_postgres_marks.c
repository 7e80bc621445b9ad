/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store: what a fetch reads, beside the finished and the dead, and what it never
 * misses. */
#include "pg_fixture.h"

#include <poll.h>
#include <stdlib.h>

enum { PARTITIONS = 4 };

/* One fetch of all partitions, as a worker does it under leases that stay. */
static uint32_t fetch(struct ob_store *store, uint32_t limit)
{
	static const uint32_t partitions[PARTITIONS] = { 0, 1, 2, 3 };
	static const uint64_t epochs[PARTITIONS] = { 1, 1, 1, 1 };
	const struct ob_fetch fetch = {
		.target = "default",
		.partitions = partitions,
		.partition_count = PARTITIONS,
		.epochs = epochs,
		.limit = limit,
		.max_bytes = 64 << 20,
	};

	ok(ob_store_fetch(store, &fetch, &batch, &err));
	return batch.count;
}

/* Rows of which a key each has ten. */
static void load(PGconn *app, int64_t rows, int status)
{
	exec(app,
	     "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, status, "
	     "published_at)"
	     " SELECT 'order', (i / 10)::text, 'Placed', '{\"n\": 1}', %d, CASE WHEN %d = 1 THEN "
	     "now() END"
	     " FROM generate_series(1, %lld) AS i",
	     status, status, (long long)rows);
}

/* What scans of the ready index have read since the start; a backend tells when it ends. */
static int64_t index_reads(PGconn *app)
{
	while (number(app,
		      "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'outbox'") >
	       0)
		(void)poll(NULL, 0, 5);
	return number(app,
		      "SELECT coalesce(sum(idx_tup_read), 0)::bigint FROM pg_stat_user_indexes"
		      " WHERE indexrelname = 'outbox_ready'");
}

static int64_t full_scans(PGconn *app)
{
	return number(app, "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'outbox'");
}

static int64_t rows_wanted(void)
{
	const char *text = getenv("OUTBOX_TEST_ROWS");
	int64_t rows = text ? strtoll(text, NULL, 10) : 0;

	return rows > 0 ? rows : 50000;
}

static int by_seq(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* OUTBOX_TEST_ROWS=1000000 for the size at which it matters. */
OB_TEST(a_fetch_reads_no_more_than_it_returns)
{
	int64_t rows = rows_wanted();

	fixture_new();
	struct ob_store *store = store_new(PARTITIONS);
	PGconn *app = app_open();

	ob_store_free(store);
	load(app, rows, 1);
	load(app, rows / 10, 0);
	exec(app, "VACUUM ANALYZE outbox");
	int64_t read = index_reads(app), scans = full_scans(app);

	store = store_open();
	ck_assert_uint_eq(fetch(store, 1000), 1000);
	ob_store_free(store);
	/* One more of each partition for the look at where the next may begin. */
	ck_assert_int_le(index_reads(app) - read, 1000 + 2 * PARTITIONS);
	ck_assert_int_eq(full_scans(app), scans);
	PQfinish(app);
}
OB_TEST_END

/* Whatever the statistics say: the primary key is in that order too, and holds every row there is.
 */
OB_TEST(rows_of_one_partition_alone_are_found_by_the_ready_index)
{
	enum { ROWS = 20000 };

	fixture_new();
	struct ob_store *store = store_new(PARTITIONS);
	PGconn *app = app_open();

	ob_store_free(store);
	exec(app,
	     "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)"
	     " SELECT 'order', '1', 'Placed', '{}' FROM generate_series(1, %d)",
	     ROWS);
	exec(app, "VACUUM ANALYZE outbox");
	store = store_open();
	for (int i = 0; i < 10; i++)
		ck_assert_uint_eq(fetch(store, 100), 100);
	ob_store_free(store);
	(void)index_reads(app); /* the store's backend has ended */
	ck_assert_int_eq(number(app,
				"SELECT idx_tup_read FROM pg_stat_user_indexes"
				" WHERE indexrelname = 'outbox_pkey'"),
			 0);
	ck_assert_int_le(number(app,
				"SELECT idx_tup_read FROM pg_stat_user_indexes"
				" WHERE indexrelname = 'outbox_ready'"),
			 10 * 2 * 100 + ROWS / 10);
	PQfinish(app);
}
OB_TEST_END

/* As a worker does it: what was returned is in flight, and not returned again. */
OB_TEST(what_is_in_flight_is_not_read_for_every_fetch)
{
	enum { ROWS = 2000, LIMIT = 40 };
	static const uint32_t partitions[PARTITIONS] = { 0, 1, 2, 3 };
	static const uint64_t epochs[PARTITIONS] = { 1, 1, 1, 1 };
	static int64_t flight[ROWS];
	struct ob_fetch fetch = {
		.target = "default",
		.partitions = partitions,
		.partition_count = PARTITIONS,
		.epochs = epochs,
		.generation = 1,
		.exclude = flight,
		.limit = LIMIT,
		.max_bytes = 64 << 20,
	};

	fixture_new();
	struct ob_store *store = store_new(PARTITIONS);
	PGconn *app = app_open();

	ob_store_free(store);
	load(app, ROWS, 0);
	exec(app, "ANALYZE outbox");
	int64_t read = index_reads(app);

	int64_t began = ob_clock_boot_us(&ob_clock_system);
	store = store_open();
	while (fetch.exclude_count < ROWS) {
		ok(ob_store_fetch(store, &fetch, &batch, &err));
		ck_assert_uint_gt(batch.count, 0);
		for (uint32_t i = 0; i < batch.count; i++) {
			for (size_t k = 0; k < fetch.exclude_count; k++)
				ck_assert_int_ne(flight[k], batch.messages[i].seq);
		}
		for (uint32_t i = 0; i < batch.count; i++)
			flight[fetch.exclude_count++] = batch.messages[i].seq;
		qsort(flight, fetch.exclude_count, sizeof(flight[0]), by_seq);
	}
	ok(ob_store_fetch(store, &fetch, &batch, &err));
	ck_assert_uint_eq(batch.count, 0);
	ob_store_free(store);
	/* Past everything each time it would be ROWS / LIMIT / 2 times as many. Some times in a
	 * second all is read, whatever is known; a second that has begun counts. */
	int64_t seconds = (ob_clock_boot_us(&ob_clock_system) - began) / 1000000 + 1;
	ck_assert_int_lt(index_reads(app) - read, (5 + 6 * seconds) * ROWS);
	PQfinish(app);
}
OB_TEST_END

/* Under a snapshot from before, no dead entry leaves the index. */
OB_TEST(the_dead_are_stepped_over_once)
{
	enum { DEAD = 20000, FETCHES = 20 };

	fixture_new();
	struct ob_store *store = store_new(PARTITIONS);
	PGconn *app = app_open(), *reader = app_open();

	ob_store_free(store);
	load(app, DEAD, 0);
	exec(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox");
	exec(app, "UPDATE outbox SET status = 1, published_at = now()");
	load(app, 1000, 0);
	int64_t read = index_reads(app);

	store = store_open();
	for (int i = 0; i < FETCHES; i++)
		ck_assert_uint_eq(fetch(store, 100), 100);
	ob_store_free(store);
	/* Twice for the first fetch and its look; from time to time all is read again. */
	ck_assert_int_lt(index_reads(app) - read, 6 * DEAD);
	PQfinish(reader);
	PQfinish(app);
}
OB_TEST_END

static void insert(PGconn *app, const char *label, const char *key)
{
	exec(app,
	     "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)"
	     " VALUES ('t', '%s', '%s', '{}')",
	     key, label);
}

/* A producer that forgets to commit must not make everybody else slow. */
OB_TEST(an_open_writer_does_not_hold_the_marks_for_long)
{
	enum { DEAD = 10000, FETCHES = 100 };

	fixture_new();
	struct ob_store *store = store_new(PARTITIONS);
	PGconn *app = app_open(), *reader = app_open(), *writer = app_open();

	ob_store_free(store);
	exec(writer, "BEGIN");
	insert(writer, "open", "k");
	load(app, DEAD, 0);
	exec(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox");
	exec(app, "UPDATE outbox SET status = 1, published_at = now()");
	load(app, 1000, 0);
	int64_t read = index_reads(app);

	store = store_open();
	/* Until it is known as one that stays. */
	for (int i = 0; i < 8; i++) {
		ck_assert_uint_eq(fetch(store, 100), 100);
		(void)poll(NULL, 0, 300);
	}
	for (int i = 0; i < FETCHES; i++)
		ck_assert_uint_eq(fetch(store, 100), 100);
	ob_store_free(store);
	ck_assert_int_lt(index_reads(app) - read, FETCHES / 3 * DEAD);
	PQfinish(writer);
	PQfinish(reader);
	PQfinish(app);
}
OB_TEST_END

static bool is_first(const char *label)
{
	return batch.count > 0 && ob_str_eq(batch.messages[0].event_type, ob_str(label));
}

/* Long enough for the marks to pass a transaction that stays open. */
static void fetch_for_a_while(struct ob_store *store)
{
	int64_t end = ob_clock_boot_us(&ob_clock_system) + 2000000;

	while (ob_clock_boot_us(&ob_clock_system) < end) {
		ck_assert_uint_eq(fetch(store, 10), 0);
		(void)poll(NULL, 0, 20);
	}
}

/* By BEGIN, by a savepoint's transaction, and prepared: whatever keeps it from showing. */
OB_TEST(a_late_commit_below_the_mark_comes_first)
{
	static const char *const ways[][3] = {
		{ "BEGIN", "SELECT 1", "COMMIT" },
		{ "BEGIN; SAVEPOINT s", "RELEASE s", "COMMIT" },
		{ "BEGIN", "PREPARE TRANSACTION 'late'", "COMMIT PREPARED 'late'" },
	};

	fixture_new();
	struct ob_store *store = store_new(PARTITIONS);
	PGconn *late = app_open(), *app = app_open();

	/* What has notified cannot be prepared. */
	exec(app, "DROP TRIGGER outbox_wake ON outbox");
	for (size_t i = 0; i < 3; i++) {
		exec(late, "%s", ways[i][0]);
		insert(late, "late", "k");
		exec(late, "%s", ways[i][1]);
		insert(app, "other", "k");
		exec(app, "UPDATE outbox SET status = 1, published_at = now()");
		fetch_for_a_while(store);
		exec(late, "%s", ways[i][2]);
		insert(app, "behind", "k");
		ck_assert_uint_eq(fetch(store, 10), 2);
		ck_assert(is_first("late"));
		exec(app, "UPDATE outbox SET status = 1, published_at = now()");
	}
	ob_store_free(store);
	PQfinish(late);
	PQfinish(app);
}
OB_TEST_END

OB_TEST(what_an_operator_brings_back_is_found_below_the_mark)
{
	const struct ob_operate retry = { .verb = OB_VERB_RETRY };
	uint64_t changed, refused;

	fixture_new();
	struct ob_store *store = store_new(PARTITIONS), *operating = store_open();
	PGconn *app = app_open();

	insert(app, "dead", "k");
	exec(app, "UPDATE outbox SET status = -1, published_at = now()");
	insert(app, "other", "k");
	exec(app, "UPDATE outbox SET status = 1, published_at = now() WHERE status = 0");
	fetch_for_a_while(store);
	ok(ob_store_operate(operating, &retry, &changed, &refused, &err));
	ck_assert_uint_eq(changed, 1);
	/* The test's own time limit is the deadline. */
	while (fetch(store, 10) == 0)
		(void)poll(NULL, 0, 20);
	ck_assert(is_first("dead"));
	ob_store_free(operating);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

PG_SUITE("store_postgres_marks", a_fetch_reads_no_more_than_it_returns,
	 rows_of_one_partition_alone_are_found_by_the_ready_index,
	 what_is_in_flight_is_not_read_for_every_fetch, the_dead_are_stepped_over_once,
	 an_open_writer_does_not_hold_the_marks_for_long, a_late_commit_below_the_mark_comes_first,
	 what_an_operator_brings_back_is_found_below_the_mark)
