/* SPDX-License-Identifier: MIT */
/* The MySQL store: what a fetch reads, and who gets a row that many want. */
#include "mysql_fixture.h"

#include <pthread.h>

/* ---- many claimers --------------------------------------------------- */

enum { CLAIMERS = 8, CLAIM_ROWS = 20000 };

struct claimer {
	struct ob_store *store;
	uint8_t number;
	int64_t seqs[CLAIM_ROWS];
	size_t count;
	char trouble[512];
};

static void *run_claimer(void *arg)
{
	struct claimer *c = arg;
	struct ob_err err = OB_ERR_INIT;
	struct ob_batch batch;
	struct ob_claim claim = { .target = "default",
				  .worker = "w",
				  .limit = 50,
				  .max_bytes = 1 << 24,
				  .ttl_ms = 600000 };

	ob_batch_init(&batch);
	do {
		claim.token = (struct ob_uuid){ { c->number, (uint8_t)(c->count & 0xff),
						  (uint8_t)(c->count >> 8), 1 } };
		if (ob_store_claim(c->store, &claim, &batch, &err) < 0) {
			(void)snprintf(c->trouble, sizeof(c->trouble), "%s", err.msg);
			break;
		}
		for (uint32_t i = 0; i < batch.count && c->count < CLAIM_ROWS; i++)
			c->seqs[c->count++] = batch.messages[i].seq;
	} while (batch.count > 0);
	ob_batch_done(&batch);
	return NULL;
}

OB_TEST(eight_claimers_get_twenty_thousand_rows_each_once)
{
	static struct claimer claimers[CLAIMERS];
	static bool seen[CLAIM_ROWS * 4];
	pthread_t threads[CLAIMERS];
	size_t count = 0;

	fixture_begin(16);
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "
	    "SELECT 'order', seq %% 500, 'e', '{}' FROM seq_1_to_%d",
	    CLAIM_ROWS);
	for (int i = 0; i < CLAIMERS; i++) {
		claimers[i].store = fixture_store("root");
		claimers[i].number = (uint8_t)(i + 1);
	}
	for (int i = 0; i < CLAIMERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, run_claimer, &claimers[i]), 0);
	for (int i = 0; i < CLAIMERS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < CLAIMERS; i++) {
		ck_assert_msg(!claimers[i].trouble[0], "%s", claimers[i].trouble);
		for (size_t k = 0; k < claimers[i].count; k++) {
			ck_assert_int_lt(claimers[i].seqs[k], CLAIM_ROWS * 4);
			ck_assert(!seen[claimers[i].seqs[k]]);
			seen[claimers[i].seqs[k]] = true;
		}
		count += claimers[i].count;
		ob_store_free(claimers[i].store);
	}
	ck_assert_uint_eq(count, CLAIM_ROWS);
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

MYSQL_SUITE("MySQL reads", eight_claimers_get_twenty_thousand_rows_each_once,
	    a_fetch_reads_no_more_rows_than_it_returns)
