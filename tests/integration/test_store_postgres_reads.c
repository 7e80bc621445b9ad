/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store: what a fetch reads, and who gets a row that many want. */
#include "pg_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

/* The plan of a fetch as the store sends it, by a server that logs plans. */
OB_TEST(a_fetch_reads_the_ready_index_and_little_else)
{
	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_new(4);
	char name[64];

	ob_store_free(store);
	exec(app,
	     "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, status, "
	     "published_at) SELECT 't', i::text, 'e', '{}', 1, now() FROM generate_series(1, "
	     "20000) i");
	exec(app,
	     "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) SELECT 't', "
	     "i::text, 'e', '{}' FROM generate_series(1, 5000) i");
	exec(app, "VACUUM ANALYZE outbox");
	(void)snprintf(name, sizeof(name), "%s", text(app, "SELECT current_database()"));
	exec(app, "SELECT pg_stat_reset()");
	store = store_open();
	const uint32_t all[] = { 0, 1, 2, 3 };
	const struct ob_fetch fetch = {
		.target = "default",
		.partitions = all,
		.partition_count = 4,
		.limit = 100,
		.max_bytes = 1 << 20,
	};
	ok(ob_store_fetch(store, &fetch, &batch, &err));
	ck_assert_uint_eq(batch.count, 100);
	ob_store_free(store); /* its end writes what it counted */
	while (number(app,
		      "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = "
		      "'outbox_ready'") == 0)
		(void)poll(NULL, 0, 5);
	ck_assert_int_eq(number(app,
				"SELECT seq_scan FROM pg_stat_user_tables WHERE relname = "
				"'outbox'"),
			 0);
	ck_assert_int_le(number(app,
				"SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname "
				"= 'outbox_ready'"),
			 110);
	ck_assert_int_le(number(app,
				"SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname "
				"= 'outbox'"),
			 120);
	PQfinish(app);
}
OB_TEST_END

/* ---- claims ---------------------------------------------------------- */

enum { CLAIMERS = 8, CLAIM_ROWS = 20000 };

static atomic_uint claimed_by[CLAIM_ROWS + 1];

static void *claim_all(void *arg)
{
	struct ob_store *mine = arg;
	struct ob_err my_err = OB_ERR_INIT;
	struct ob_batch rows;
	int r = 0;

	ob_batch_init(&rows);
	do {
		struct ob_claim claim = {
			.target = "default",
			.token = ob_uuid_new(),
			.worker = "w",
			.limit = 100,
			.max_bytes = 1 << 20,
			.ttl_ms = 60000,
		};

		r = ob_store_claim(mine, &claim, &rows, &my_err);
		for (uint32_t i = 0; r >= 0 && i < rows.count; i++)
			(void)atomic_fetch_add(&claimed_by[rows.messages[i].seq], 1);
	} while (r >= 0 && rows.count > 0);
	ob_batch_done(&rows);
	return r < 0 ? arg : NULL;
}

OB_TEST(eight_workers_claim_twenty_thousand_rows_once_each)
{
	pthread_t threads[CLAIMERS];
	struct ob_store *stores[CLAIMERS];

	fixture_new();
	PGconn *app = app_open();
	for (int i = 0; i < CLAIMERS; i++)
		stores[i] = i ? store_open() : store_new(4);
	exec(app,
	     "INSERT INTO outbox (aggregate_type, event_type, payload) SELECT 't', 'e', '{}' FROM "
	     "generate_series(1, %d)",
	     CLAIM_ROWS);
	for (int i = 0; i < CLAIMERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, claim_all, stores[i]), 0);
	for (int i = 0; i < CLAIMERS; i++) {
		void *failed;

		ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
		ck_assert_ptr_null(failed);
	}
	for (int i = 1; i <= CLAIM_ROWS; i++)
		ck_assert_uint_eq(claimed_by[i], 1);
	for (int i = 0; i < CLAIMERS; i++)
		ob_store_free(stores[i]);
	PQfinish(app);
}
OB_TEST_END

PG_SUITE("store_postgres_reads", a_fetch_reads_the_ready_index_and_little_else,
	 eight_workers_claim_twenty_thousand_rows_once_each)
