/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store: what a fetch reads, and who gets a row that many want. */
#include "claimers.h"
#include "pg_fixture.h"

#include <poll.h>

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

OB_TEST(eight_workers_claim_twenty_thousand_rows_once_each)
{
	struct ob_store *stores[CLAIMERS];

	fixture_new();
	PGconn *app = app_open();
	for (int i = 0; i < CLAIMERS; i++)
		stores[i] = i ? store_open() : store_new(16);
	exec(app,
	     "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "
	     "SELECT 'order', (i %% 500)::text, 'e', '{}' FROM generate_series(1, %d) AS i",
	     CLAIM_ROWS);
	claimers_run(stores);
	PQfinish(app);
}
OB_TEST_END

PG_SUITE("store_postgres_reads", a_fetch_reads_the_ready_index_and_little_else,
	 eight_workers_claim_twenty_thousand_rows_once_each)
