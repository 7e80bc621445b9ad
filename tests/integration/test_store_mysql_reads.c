/* SPDX-License-Identifier: MIT */
/* The MySQL store: what a fetch reads, and who gets a row that many want. */
#include "claimers.h"
#include "mysql_fixture.h"

/* ---- claims ---------------------------------------------------------- */

OB_TEST(eight_workers_claim_twenty_thousand_rows_once_each)
{
	struct ob_store *stores[CLAIMERS];

	fixture_begin(16);
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "
	    "SELECT 'order', seq %% 500, 'e', '{}' FROM seq_1_to_%d",
	    CLAIM_ROWS);
	for (int i = 0; i < CLAIMERS; i++)
		stores[i] = fixture_store("root");
	claimers_run(stores);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_fetch_reads_no_more_rows_than_it_returns)
{
	static const char reads[] =
		"SELECT SUM(VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS "
		"WHERE VARIABLE_NAME IN ('HANDLER_READ_NEXT', 'HANDLER_READ_KEY', "
		"'HANDLER_READ_RND')";
	struct worker w;

	fixture_begin(4);
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, status, "
	    "published_at) SELECT 'order', seq, 'e', '{}', 1, UTC_TIMESTAMP(6) FROM "
	    "seq_1_to_5000");
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "
	    "SELECT 'order', seq, 'e', '{}' FROM seq_1_to_2000");
	worker_begin(&w, "root");
	ok(worker_fetch(&w, 400)); /* prepares the statements */
	long long before = number(admin, reads);
	long long own = number(admin, reads) - before;
	before = number(admin, reads);
	ok(worker_fetch(&w, 400));
	long long after = number(admin, reads) - before - own;
	ck_assert_uint_eq(w.batch.count, 400);
	/* Each row once in the index and once by its number, and a few to begin. */
	ck_assert_msg(after <= 2 * 400 + 50, "%lld reads", after);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

MYSQL_SUITE("MySQL reads", eight_workers_claim_twenty_thousand_rows_once_each,
	    a_fetch_reads_no_more_rows_than_it_returns)
