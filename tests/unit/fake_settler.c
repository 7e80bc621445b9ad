/* SPDX-License-Identifier: MIT */
/* The settler of fake_settler.h. */
#include "fake_settler.h"

#include <check.h>

static bool start(struct ob_store_thread *settler, struct ob_store_job *base)
{
	struct fake_settler *fake = (struct fake_settler *)settler;
	struct ob_settle_job *job = (struct ob_settle_job *)base;

	ck_assert_ptr_null(fake->job);
	if (fake->refuse)
		return false;
	if (fake->schema_goes)
		ob_memdb_set_version(fake->db, 99);
	fake->started++;
	fake->part_count = (uint32_t)job->settle.part_count;
	fake->change_count = (uint32_t)job->settle.change_count;
	fake->published = 0;
	for (uint32_t i = 0; i < fake->part_count; i++) {
		fake->parts[i] = job->settle.parts[i];
		fake->published += fake->parts[i].published;
	}
	fake->job = job;
	return true;
}

static void record(struct fake_settler *fake, struct ob_settle_job *job)
{
	struct ob_store_job *base = &job->base;

	base->err = (struct ob_err)OB_ERR_INIT;
	base->r = 0;
	if (fake->fail == OB_ERR_NONE || fake->reply_lost)
		base->r = base->call(base, fake->store, &base->err);
	ck_assert_msg(base->r >= 0, "%s", base->err.msg);
	if (fake->fail != OB_ERR_NONE)
		base->r = ob_err_set(&base->err, OUTBOX_ESTORE, fake->fail, "as the test wants it");
}

static bool ended(struct ob_store_thread *settler, bool wait)
{
	struct fake_settler *fake = (struct fake_settler *)settler;

	ck_assert_ptr_nonnull(fake->job);
	if (!wait && (fake->hold || (fake->hold_changes && fake->change_count > 0)))
		return false;
	fake->waited += wait;
	record(fake, fake->job);
	fake->job = NULL;
	return true;
}

void fake_settler_init(struct fake_settler *fake, struct ob_memdb *db)
{
	struct ob_err err = OB_ERR_INIT;

	fake->base = (struct ob_store_thread){ start, ended };
	fake->db = db;
	if (ob_store_memory_open(db, &fake->store, &err) < 0)
		ck_abort_msg("%s", err.msg);
}

void fake_settler_done(struct fake_settler *fake)
{
	ob_store_free(fake->store);
}
