/* SPDX-License-Identifier: MIT */
#include "claimers.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>

enum { SEQ_MAX = 4 * CLAIM_ROWS };

struct claimer {
	struct ob_store *store;
	pthread_t thread;
	size_t count;
	struct ob_err err;
};

static atomic_uint handed_out[SEQ_MAX];
static pthread_barrier_t together;

static void note(struct claimer *c, const struct ob_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		int64_t seq = batch->messages[i].seq;

		if (seq > 0 && seq < SEQ_MAX)
			(void)atomic_fetch_add(&handed_out[seq], 1);
	}
	c->count += batch->count;
}

static void *run(void *arg)
{
	struct claimer *c = arg;
	struct ob_batch batch;
	struct ob_claim claim = {
		.target = "default",
		.worker = "w",
		.limit = 100,
		.max_bytes = 1 << 24,
		.ttl_ms = 3600000, /* nothing is free again while this runs, however slowly */
	};
	int r;

	ob_batch_init(&batch);
	(void)pthread_barrier_wait(&together);
	do {
		claim.token = ob_uuid_new();
		r = ob_store_claim(c->store, &claim, &batch, &c->err);
		if (r >= 0)
			note(c, &batch);
	} while (r >= 0 && batch.count > 0);
	ob_batch_done(&batch);
	return NULL;
}

void claimers_run(struct ob_store *const stores[CLAIMERS])
{
	struct claimer claimers[CLAIMERS];
	size_t count = 0;

	ck_assert_int_eq(pthread_barrier_init(&together, NULL, CLAIMERS), 0);
	for (int i = 0; i < CLAIMERS; i++) {
		claimers[i] = (struct claimer){ .store = stores[i], .err = OB_ERR_INIT };
		ck_assert_int_eq(pthread_create(&claimers[i].thread, NULL, run, &claimers[i]), 0);
	}
	for (int i = 0; i < CLAIMERS; i++)
		ck_assert_int_eq(pthread_join(claimers[i].thread, NULL), 0);
	for (int i = 0; i < CLAIMERS; i++) {
		ck_assert_msg(claimers[i].err.kind == OB_ERR_NONE, "%s", claimers[i].err.msg);
		count += claimers[i].count;
		ob_store_free(stores[i]);
	}
	for (int seq = 0; seq < SEQ_MAX; seq++)
		ck_assert_msg(handed_out[seq] <= 1, "row %d was handed out %u times", seq,
			      handed_out[seq]);
	ck_assert_uint_eq(count, CLAIM_ROWS);
	(void)pthread_barrier_destroy(&together);
}
