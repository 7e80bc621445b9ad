/* SPDX-License-Identifier: MIT */
/* The settler of fake_settler.h. */
#include "fake_settler.h"

#include <check.h>

static bool start(struct ob_settler *settler, struct ob_settle_job *job)
{
	struct fake_settler *fake = (struct fake_settler *)settler;

	ck_assert_ptr_null(fake->job);
	for (size_t i = 0; i < job->settle.outcome_count; i++) {
		ck_assert_int_eq(job->settle.outcomes[i].kind, OB_OUTCOME_PUBLISHED);
		ck_assert_uint_eq(job->settle.outcomes[i].message->attempts, 0);
	}
	if (fake->refuse)
		return false;
	if (fake->schema_goes)
		ob_memdb_set_version(fake->db, 99);
	fake->started++;
	fake->count = (uint32_t)job->settle.outcome_count;
	fake->job = job;
	return true;
}

static void record(struct fake_settler *fake, struct ob_settle_job *job)
{
	job->err = (struct ob_err)OB_ERR_INIT;
	job->r = 0;
	if (fake->fail == OB_ERR_NONE || fake->reply_lost)
		job->r = ob_store_settle(fake->store, &job->settle, job->lost, &job->settled,
					 &job->err);
	ck_assert_msg(job->r >= 0, "%s", job->err.msg);
	if (fake->fail != OB_ERR_NONE)
		job->r = ob_err_set(&job->err, OUTBOX_ESTORE, fake->fail, "as the test wants it");
}

static bool ended(struct ob_settler *settler, bool wait)
{
	struct fake_settler *fake = (struct fake_settler *)settler;

	ck_assert_ptr_nonnull(fake->job);
	if (fake->hold && !wait)
		return false;
	fake->waited += wait;
	record(fake, fake->job);
	fake->job = NULL;
	return true;
}

void fake_settler_init(struct fake_settler *fake, struct ob_memdb *db)
{
	struct ob_err err = OB_ERR_INIT;

	fake->base = (struct ob_settler){ start, ended };
	fake->db = db;
	if (ob_store_memory_open(db, &fake->store, &err) < 0)
		ck_abort_msg("%s", err.msg);
}

void fake_settler_done(struct fake_settler *fake)
{
	ob_store_free(fake->store);
}
