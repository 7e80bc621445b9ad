/* SPDX-License-Identifier: MIT */
/*
 * Contract: workers that fight over one partition, and operators between them, each on a thread and
 * a connection of its own. The journal decides: what was recorded by one is recorded by no other.
 */
#include "store_harness.h"

#include <pthread.h>
#include <stdatomic.h>

enum { WORKERS = 4, MESSAGES = 60 };

static atomic_uint_fast64_t last_epoch;
static atomic_int recorded[MESSAGES]; /* how often, by message */
static atomic_bool over;              /* a worker found nothing more */

struct racer {
	struct ob_store *store;
	pthread_t thread;
	struct ob_uuid id;
	struct ob_err err;
	bool contradicts; /* a call that succeeded left an error, or the other way round */
};

/* Again while others are in the way; false: it failed. */
#define UNTIL_DONE(r, call) \
	({ \
		int done_; \
		do { \
			(r)->err = OB_ERR_INIT; \
			done_ = (call); \
		} while (done_ < 0 && (r)->err.kind == OB_ERR_DOWN); \
		(r)->contradicts = \
			(r)->contradicts || (done_ < 0) != ((r)->err.kind != OB_ERR_NONE); \
		done_ >= 0; \
	})

/* Settle, past operators' rows; true: it is recorded. */
static bool settle(struct racer *r, struct ob_settle_part *part)
{
	struct ob_settle settle = {
		.reader = "main", .owner = r->id, .parts = part, .part_count = 1
	};

	for (;;) {
		if (!UNTIL_DONE(r, ob_store_settle(r->store, &settle, &r->err)))
			return false;
		if (part->settled != OB_SETTLE_MOVED)
			return part->settled == OB_SETTLED;
		part->batch++;
	}
}

/* Own the partition for some reads; false: there is nothing more, or it failed. */
static bool work_once(struct racer *r, struct ob_batch *batch)
{
	struct ob_owned owned = { .partition = 0, .epoch = atomic_fetch_add(&last_epoch, 1) + 1 };
	struct ob_read_done done;
	bool more = true;

	if (!UNTIL_DONE(r, ob_store_take_over(r->store, "main", &r->id, &owned, 1, &r->err)))
		return false;
	for (int i = 0; !owned.lost && more && i < 3; i++) {
		struct ob_read_part from = { .partition = 0, .from = owned.progress };
		struct ob_read read = { .reader = "main",
					.target = "default",
					.parts = &from,
					.part_count = 1,
					.limit = 2,
					.max_bytes = 9999 };

		if (!UNTIL_DONE(r, ob_store_read(r->store, &read, batch, &done, &r->err)))
			break;
		struct ob_settle_part part = { .partition = 0,
					       .epoch = owned.epoch,
					       .batch = owned.batch + 1,
					       .progress = from.after };
		more = batch->count > 0 || done.more;
		bool settled = settle(r, &part);
		for (uint32_t n = 0; settled && n < batch->count; n++)
			atomic_fetch_add(
				&recorded[strtol(batch->messages[n].event_type.p, NULL, 10)], 1);
		owned.batch = part.batch;
		ob_progress_done(&owned.progress);
		owned.progress = from.after;
		if (!settled)
			break;
	}
	ob_progress_done(&owned.progress);
	return more && r->err.kind == OB_ERR_NONE;
}

static void *work(void *arg)
{
	struct racer *r = arg;
	struct ob_batch batch;

	ob_batch_init(&batch);
	while (!atomic_load(&over) && work_once(r, &batch))
		;
	atomic_store(&over, true);
	ob_batch_done(&batch);
	return NULL;
}

static void put_messages(void)
{
	char label[8];

	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	for (int i = 0; i < MESSAGES; i++) {
		(void)snprintf(label, sizeof(label), "%d", i);
		store_push(fx.store,
			   (struct outbox_message){ .event_type = label, .partition_key = "k" });
	}
	store_commit(fx.store);
}

static void start(struct racer *racers, int count, void *(*run)(void *))
{
	for (int i = 0; i < count; i++) {
		racers[i] =
			(struct racer){ .store = store_open(), .id = store_uuid((uint8_t)(i + 1)) };
		ck_assert_int_eq(pthread_create(&racers[i].thread, NULL, run, &racers[i]), 0);
	}
}

static void join(struct racer *racers, int count)
{
	for (int i = 0; i < count; i++) {
		ck_assert_int_eq(pthread_join(racers[i].thread, NULL), 0);
		ck_assert_msg(racers[i].err.kind == OB_ERR_NONE, "%s", racers[i].err.msg);
		ck_assert_msg(!racers[i].contradicts, "a call that succeeded left an error");
	}
}

OB_TEST(what_one_worker_records_no_other_does)
{
	static struct racer racers[WORKERS];

	store_begin(1);
	put_messages();
	start(racers, WORKERS, work);
	join(racers, WORKERS);
	for (int i = 0; i < MESSAGES; i++)
		ck_assert_msg(atomic_load(&recorded[i]) == 1, "message %d was recorded %d times", i,
			      atomic_load(&recorded[i]));
}
OB_TEST_END

static atomic_int discarded[MESSAGES];

static void *operate(void *arg)
{
	struct racer *r = arg;
	char label[8];

	for (int i = MESSAGES - 1; i >= 0 && !atomic_load(&over); i -= 2) {
		const struct ob_operate one = {
			.verb = OB_VERB_DISCARD, .filter = { .reader = "main", .event_type = label }
		};
		uint64_t changed = 0, refused = 0;

		(void)snprintf(label, sizeof(label), "%d", i);
		if (!UNTIL_DONE(r, ob_store_operate(r->store, &one, &changed, &refused, &r->err)))
			break;
		atomic_fetch_add(&discarded[i], (int)changed);
	}
	return NULL;
}

OB_TEST(an_operator_between_workers_loses_nothing)
{
	static struct racer racers[2], operators[2];

	store_begin(1);
	put_messages();
	start(racers, 2, work);
	start(operators, 2, operate);
	join(racers, 2);
	join(operators, 2);
	for (int i = 0; i < MESSAGES; i++) {
		char label[8];
		int times = atomic_load(&recorded[i]);

		(void)snprintf(label, sizeof(label), "%d", i);
		ck_assert_msg(times <= 1, "message %d was recorded %d times", i, times);
		ck_assert_msg(times == 1 || atomic_load(&discarded[i]), "message %d is lost", i);
		const struct ob_message *row = store_row(label);
		ck_assert(row->view == OB_VIEW_PUBLISHED || row->view == OB_VIEW_DISCARDED);
	}
}
OB_TEST_END

/* ---- readers --------------------------------------------------------- */

static atomic_int makers_won;

static void *make(void *arg)
{
	struct racer *r = arg;
	const struct ob_reader reader = { .name = OB_STR("new"), .target = OB_STR("default") };
	const struct ob_place beginning = { OB_START_BEGINNING, 0 };
	bool made = false;

	if (UNTIL_DONE(r, ob_store_reader_make(r->store, &reader, &beginning, &made, &r->err)))
		atomic_fetch_add(&makers_won, made);
	return NULL;
}

OB_TEST(a_reader_that_many_make_at_once_is_made_once)
{
	static struct racer racers[WORKERS];

	store_begin(2);
	store_put_all("a1 b1");
	start(racers, WORKERS, make);
	join(racers, WORKERS);
	ck_assert_int_eq(atomic_load(&makers_won), 1);
	store_be("new", "default", 7);
	store_hold_all(60000);
	store_expect_read("a1 b1");
	store_record();
}
OB_TEST_END

STORE_CASES(race, what_one_worker_records_no_other_does, an_operator_between_workers_loses_nothing,
	    a_reader_that_many_make_at_once_is_made_once)
