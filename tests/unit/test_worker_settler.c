/* SPDX-License-Identifier: MIT */
/* A worker with somebody beside it who settles: here one whom the test holds in hand. */
#include "fake_settler.h"
#include "suite.h"

enum { BATCH = 10, KEYS = 80 };

static struct rig rig;
static struct fake_settler fake;
static struct rig_node *node;

/* ---- the box ----------------------------------------------------------- */

/* One node that has leases, and nothing to do. */
static void make(void)
{
	rig_init(&rig);
	rig.relay.batch_size = BATCH;
	fake_settler_init(&fake, rig.db);
	rig.settler = &fake.base;
	node = rig_start(&rig, &ob_sink_memory);
	rig.settler = NULL;
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig_metrics(node).partitions, 8);
}

static void unmake(void)
{
	/* A worker may still want to end its job. */
	for (uint32_t i = 0; i < rig.node_count; i++) {
		if (rig.nodes[i].worker)
			rig_kill(&rig, &rig.nodes[i]);
	}
	fake_settler_done(&fake);
	rig_done(&rig);
}

static const char *name(int key)
{
	static char text[16];

	(void)snprintf(text, sizeof(text), "k%d", key);
	return text;
}

static void push(int each)
{
	for (int i = 1; i <= each; i++) {
		for (int k = 0; k < KEYS; k++)
			rig_push_many(&rig, name(k), i, i);
	}
}

/* Until a job runs that does not end. */
static void begin_job(void)
{
	fake.hold = true;
	push(2);
	rig_run_ms(&rig, 50);
	ck_assert_ptr_nonnull(fake.job);
	ck_assert_uint_ge(fake.published, BATCH / 2);
}

/* ---- when -------------------------------------------------------------- */

OB_TEST(a_settle_goes_beside_only_while_there_is_more_to_fetch)
{
	make();
	rig_push_many(&rig, "few", 1, BATCH - 1);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), BATCH - 1);
	ck_assert_uint_eq(fake.started, 0);
	push(3);
	rig_push_many(&rig, "few", BATCH, BATCH + 4);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_gt(fake.started, 3);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 3 * KEYS + BATCH + 4);
	ck_assert_uint_eq(rig.log.count, 3 * KEYS + BATCH + 4);
	ck_assert_uint_eq(rig_metrics(node).published, 3 * KEYS + BATCH + 4);
	ck_assert_uint_gt(rig_metrics(node).settles, fake.started);
	ck_assert(rig_stored_in_order(&rig));
	unmake();
}
OB_TEST_END

/* A read that runs beside the settle cannot have seen its exceptions. */
OB_TEST(what_is_read_beside_the_settle_of_a_failure_does_not_overtake_it)
{
	make();
	fake.hold = true;
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig_push(&rig, "bad", "1");
	push(1);
	rig_run_ms(&rig, 50);
	ck_assert_ptr_nonnull(fake.job);
	ck_assert_uint_eq(fake.change_count, 1);
	/* It would pass now, and so would those after it. */
	rig.poison_count = 0;
	rig_push_many(&rig, "bad", 2, 4);
	rig_run_ms(&rig, 1000);
	ck_assert_str_eq(rig_stored(&rig, "bad"), "");
	fake.hold = false;
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_FAILED), 1);
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_WAITING), 3);
	rig_run_ms(&rig, 6000);
	ck_assert_str_eq(rig_stored(&rig, "bad"), "1 2 3 4");
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), KEYS + 4);
	ck_assert(rig_stored_once(&rig));
	unmake();
}
OB_TEST_END

/* The retry among so many others that there is more to read. */
OB_TEST(failures_and_retries_go_beside_too)
{
	make();
	rig.poison[0] = "k3";
	rig.poison_count = 1;
	push(3);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_FAILED), 1);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PARKED), 2);
	rig.poison_count = 0;
	rig_run_ms(&rig, 3900);
	rig.plan.ack_delay_us = 100000;
	push(3);
	rig_run_ms(&rig, 8000);
	ck_assert_uint_gt(fake.started, 3);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 6 * KEYS);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
	ck_assert(rig_stored_once(&rig));
	ck_assert(rig_stored_in_order(&rig));
	unmake();
}
OB_TEST_END

/* Everything goes out, and nothing of it beside the worker. */
static void goes_alone(void)
{
	push(3);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 3 * KEYS);
	ck_assert_uint_eq(fake.started, 0);
	unmake();
}

OB_TEST(a_settler_that_takes_no_job_is_not_needed)
{
	make();
	fake.refuse = true;
	goes_alone();
}
OB_TEST_END

/* ---- while it runs ----------------------------------------------------- */

OB_TEST(what_is_being_settled_is_not_fetched_or_sent_again)
{
	make();
	begin_job();
	/* The worker goes on as far as its memory allows, and no further. */
	rig_run_ms(&rig, 3000);
	ck_assert_uint_gt(rig.log.count, fake.published);
	ck_assert_uint_le(rig.log.count, 4 * BATCH);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 0);
	ck_assert_uint_eq(rig_metrics(node).unsettled, rig.log.count);
	fake.hold = false;
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 2 * KEYS);
	ck_assert_uint_eq(rig.log.count, 2 * KEYS);
	ck_assert(rig_stored_in_order(&rig));
	unmake();
}
OB_TEST_END

OB_TEST(the_metrics_and_the_driver_see_what_is_being_settled)
{
	struct ob_step step;

	make();
	begin_job();
	rig_run_ms(&rig, 1000);
	ck_assert_uint_gt(fake.published, 0);
	ck_assert_uint_ge(rig_metrics(node).unsettled, fake.published);
	ck_assert_int_ge(rig_metrics(node).oldest_unsettled_us, 900000);
	ob_worker_step(node->worker, &step);
	ck_assert_int_le(step.beside_us, rig.clock.boot_us - 900000);
	ck_assert_int_gt(step.beside_us, 0);
	fake.hold = false;
	rig_run_ms(&rig, 1000);
	ck_assert_int_eq(rig_metrics(node).oldest_unsettled_us, 0);
	ob_worker_step(node->worker, &step);
	ck_assert_int_eq(step.beside_us, 0);
	ck_assert_uint_ge(rig_metrics(node).settle_us, 900000);
	unmake();
}
OB_TEST_END

/* Another node takes everything over; what the job points to stays until it has ended. */
OB_TEST(what_is_being_settled_stays_when_its_partition_is_lost)
{
	uint32_t sent;

	make();
	begin_job();
	node->paused = true;
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 40000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 2 * KEYS);
	node->paused = false;
	sent = (uint32_t)rig.log.count;
	rig_run_ms(&rig, 20000);
	ck_assert_uint_eq(rig_metrics(node).unsettled, fake.published);
	ck_assert_ptr_nonnull(fake.job);
	fake.hold = false;
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_metrics(node).lost, fake.published);
	ck_assert_uint_eq(rig_metrics(node).unsettled, 0);
	ck_assert_uint_eq(rig_metrics(node).published, 0);
	ck_assert_uint_eq(rig.log.count, sent);
	/* The leases that it got while the job ran are its own. */
	ck_assert_uint_eq(rig_metrics(node).partitions, 4);
	push(2);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 4 * KEYS);
	ck_assert_uint_gt(rig_metrics(node).published, 0);
	unmake();
}
OB_TEST_END

/* Drained is only what is settled: the next owner must not find it undecided. */
OB_TEST(a_partition_is_not_given_up_while_it_is_being_settled)
{
	make();
	begin_job();
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 4000);
	ck_assert_uint_lt(rig_metrics(&rig.nodes[1]).partitions, 4);
	fake.hold = false;
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[1]).partitions, 4);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 2 * KEYS);
	ck_assert_uint_eq(rig.log.count, 2 * KEYS);
	unmake();
}
OB_TEST_END

/* ---- leases ------------------------------------------------------------ */

/* The partitions (by hash) that the job settles. */
static uint32_t hashes_of_job(bool is_in[RIG_PARTITIONS])
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < RIG_PARTITIONS; p++)
		is_in[p] = false;
	for (uint32_t i = 0; i < fake.part_count; i++) {
		bool *at = &is_in[fake.parts[i].partition % RIG_PARTITIONS];

		n += !*at;
		*at = true;
	}
	return n;
}

OB_TEST(a_lease_that_the_job_found_lost_is_given_up)
{
	bool is_in[RIG_PARTITIONS];
	uint32_t count;

	make();
	begin_job();
	count = hashes_of_job(is_in);
	rig_steal(&rig, false);
	fake.hold = false;
	rig_run_ms(&rig, 100);
	/* Long before the next renewal. */
	ck_assert_uint_le(rig_metrics(node).partitions, RIG_PARTITIONS - count);
	ck_assert_uint_ge(rig_metrics(node).lost, fake.published);
	ck_assert(rig_said(&rig, "partition was taken over by another worker"));
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 0);
	rig_give_back(&rig);
	rig_run_ms(&rig, 60000);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 2 * KEYS);
	ck_assert(rig_stored_in_order(&rig));
	unmake();
}
OB_TEST_END

static uint32_t copies(const struct ob_uuid *id)
{
	uint32_t n = 0;

	for (size_t i = 0; i < rig.log.count; i++)
		n += ob_uuid_eq(&rig.log.entries[i].id, id);
	return n;
}

static uint32_t partition_of(const struct ob_memsink_entry *entry)
{
	char key[16];

	(void)snprintf(key, sizeof(key), "%.*s", (int)entry->key.n, entry->key.p);
	return rig_partition(key);
}

/* Lost, noticed and taken anew, with another epoch, all while the job runs. */
static void take_anew(void)
{
	bool is_in[RIG_PARTITIONS];
	size_t sent;

	make();
	begin_job();
	rig_run_ms(&rig, 1000);
	sent = rig.log.count;
	(void)hashes_of_job(is_in);
	rig_steal(&rig, true);
	rig_run_ms(&rig, 6000);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	/* Nothing after what may have to be sent again. */
	for (size_t i = sent; i < rig.log.count; i++)
		ck_assert(!is_in[partition_of(&rig.log.entries[i])]);
	fake.hold = false;
	rig_run_ms(&rig, 100);
	fake.fail = OB_ERR_NONE;
	rig_run_ms(&rig, 900);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 2 * KEYS);
	ck_assert(rig_stored_in_order(&rig));
	/* Nobody had recorded those: they went again. */
	for (size_t i = 0; i < sent; i++)
		ck_assert_uint_eq(copies(&rig.log.entries[i].id), 2);
}

OB_TEST(a_lease_taken_anew_is_not_the_one_that_the_job_found_lost)
{
	take_anew();
	ck_assert_uint_ge(rig_metrics(node).lost, 1);
	for (size_t i = 0; i < node->view.count; i++)
		ck_assert(!node->view.leases[i].lost);
	unmake();
}
OB_TEST_END

/* The new lease says nothing about what was published under the old one. */
OB_TEST(what_a_failed_job_leaves_of_a_lost_lease_is_not_settled_under_the_next)
{
	fake.fail = OB_ERR_DOWN;
	take_anew();
	unmake();
}
OB_TEST_END

/* Only what is being settled waits for it. */
OB_TEST(other_partitions_that_are_taken_anew_do_not_wait_for_the_job)
{
	uint32_t busy = rig_partition("busy"), idle = (busy + 1) % RIG_PARTITIONS;
	int n = 0;

	make();
	fake.hold = true;
	/* More than a read, so that the settle goes beside; all of one partition. */
	for (int i = 0; i < 3 * BATCH; i++)
		rig_push(&rig, rig_key_in(busy, "b", &n), "1");
	rig_run_ms(&rig, 50);
	ck_assert_ptr_nonnull(fake.job);
	ck_assert_uint_eq(fake.part_count, 1);
	rig_steal(&rig, true);
	rig_run_ms(&rig, 6000);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);

	size_t sent = rig.log.count;

	n = 0;
	rig_push(&rig, rig_key_in(idle, "i", &n), "1");
	n = 0;
	rig_push(&rig, rig_key_in(busy, "x", &n), "1");
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig.log.count, sent + 1);
	ck_assert_uint_eq(partition_of(&rig.log.entries[sent]), idle);
	fake.hold = false;
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_delivered(&rig), 3 * BATCH + 2);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 3 * BATCH + 2);
	unmake();
}
OB_TEST_END

/* The lease ran out and nobody took it, but an operator's row has the number of the job. */
OB_TEST(a_job_of_a_lost_lease_that_an_operator_overtook_loses_nothing)
{
	make();
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	fake.hold_changes = true;
	rig_push_many(&rig, "bad", 1, 3);
	push(2);
	rig_run_ms(&rig, 50);
	ck_assert_ptr_nonnull(fake.job);
	ck_assert_uint_gt(fake.change_count, 0);
	node->leaser_hangs = true;
	rig_run_ms(&rig, 20000);
	node->leaser_hangs = false;
	rig_run_ms(&rig, 1000);
	ck_assert_ptr_nonnull(fake.job);
	/* Anything in every partition. */
	for (int k = 0; k < KEYS; k++)
		(void)rig_operate(&rig, OB_VERB_DISCARD, name(k));
	fake.hold_changes = false;
	rig.poison_count = 0;
	rig_run_ms(&rig, 30000);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	ck_assert_str_eq(rig_stored(&rig, "bad"), "1 2 3");
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED) + rig_count(&rig, OB_VIEW_DISCARDED),
			  2 * KEYS + 3);
	unmake();
}
OB_TEST_END

/* A draining partition keeps what its spills wait for; the others are served meanwhile. */
OB_TEST(a_partition_that_drains_while_its_spills_are_settled_is_not_lost)
{
	make();
	rig.plan.window = 3;
	rig_kill(&rig, node);
	rig.settler = &fake.base;
	node = rig_start(&rig, &ob_sink_memory);
	rig.settler = NULL;
	rig_run_ms(&rig, 1000);
	rig.plan.ack_delay_us = 100000;
	push(2);
	rig_run_ms(&rig, 50);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 3);
	fake.hold_changes = true;
	rig_start(&rig, &ob_sink_memory);
	/* The second node wants its share, and the sink answers while the job runs. */
	rig_run_ms(&rig, 2000);
	ck_assert_ptr_nonnull(fake.job);
	ck_assert_uint_gt(fake.change_count, 0);
	for (size_t i = 0; i < node->view.count; i++)
		ck_assert_uint_eq(node->view.leases[i].grant, node->view.leases[i].partition + 1);
	fake.hold_changes = false;
	rig.plan.ack_delay_us = 0;
	rig_run_ms(&rig, 5000);
	ck_assert_uint_eq(rig_metrics(node).partitions, 4);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[2]).partitions, 4);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 2 * KEYS);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
	ck_assert(rig_stored_once(&rig));
	ck_assert(rig_stored_in_order(&rig));
	unmake();
}
OB_TEST_END

/* ---- when it fails ----------------------------------------------------- */

static void a_failed_job_is_made_good(bool reply_lost)
{
	make();
	fake.fail = OB_ERR_DOWN;
	fake.reply_lost = reply_lost;
	push(3);
	rig_run_ms(&rig, 5000);
	ck_assert_uint_eq(fake.started, 1);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 3 * KEYS);
	ck_assert_uint_eq(rig.log.count, 3 * KEYS);
	ck_assert_uint_eq(rig_metrics(node).published, 3 * KEYS);
	/* The worker's own connection is well. */
	ck_assert_uint_eq(rig_metrics(node).store_errors, 0);
	ck_assert_uint_eq(rig_metrics(node).error_count, 1);
	ck_assert(rig_stored_in_order(&rig));
	/* Not again before its time; and then again. */
	push(3);
	rig_run_ms(&rig, 4000);
	ck_assert_uint_eq(fake.started, 1);
	fake.fail = OB_ERR_NONE;
	rig_run_ms(&rig, 2000);
	push(3);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_gt(fake.started, 1);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 9 * KEYS);
	ck_assert_uint_eq(rig.log.count, 9 * KEYS);
	unmake();
}

OB_TEST(what_a_failed_job_leaves_the_worker_settles_by_itself)
{
	a_failed_job_is_made_good(false);
}
OB_TEST_END

OB_TEST(a_job_that_was_recorded_and_says_that_it_failed_changes_nothing)
{
	a_failed_job_is_made_good(true);
}
OB_TEST_END

OB_TEST(a_fatal_error_of_the_job_ends_the_worker)
{
	make();
	begin_job();
	fake.fail = OB_ERR_FATAL;
	fake.hold = false;
	rig_run_ms(&rig, 100);
	ck_assert_int_eq(node->state, OB_WORKER_FAILED);
	ck_assert_str_eq(ob_worker_error(node->worker)->msg, "as the test wants it");
	ck_assert_uint_eq(fake.started, 1);
	unmake();
}
OB_TEST_END

OB_TEST(a_fatal_error_beside_the_job_waits_for_it)
{
	make();
	fake.schema_goes = true;
	begin_job();
	rig_run_ms(&rig, 1000);
	ck_assert_int_ne(ob_worker_error(node->worker)->kind, OB_ERR_NONE);
	ck_assert_int_eq(node->state, OB_WORKER_RUNNING);
	ob_memdb_set_version(rig.db, OB_SCHEMA_VERSION);
	fake.hold = false;
	rig_run_ms(&rig, 100);
	ck_assert_int_eq(node->state, OB_WORKER_FAILED);
	ck_assert_uint_eq(rig_metrics(node).published, fake.published);
	unmake();
}
OB_TEST_END

/* ---- stopping ---------------------------------------------------------- */

static void stop_while_it_runs(enum ob_stop how, enum ob_err_kind fail)
{
	make();
	begin_job();
	ob_worker_stop(node->worker, how);
	rig_run_ms(&rig, 30000);
	ck_assert_int_eq(node->state, OB_WORKER_RUNNING);
	ck_assert_ptr_nonnull(fake.job);
	fake.fail = fail;
	fake.hold = false;
	rig_run_ms(&rig, 100);
	ck_assert_int_eq(node->state, OB_WORKER_STOPPED);
	ck_assert_uint_eq(fake.started, 1);
	/* All that was known: nothing comes twice. */
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), rig.log.count);
	ck_assert_uint_eq(rig_metrics(node).published, rig.log.count);
	unmake();
}

OB_TEST(a_drain_waits_for_the_job)
{
	stop_while_it_runs(OB_STOP_DRAIN, OB_ERR_NONE);
}
OB_TEST_END

OB_TEST(a_stop_at_once_waits_for_the_job)
{
	stop_while_it_runs(OB_STOP_NOW, OB_ERR_NONE);
}
OB_TEST_END

OB_TEST(a_stop_at_once_settles_what_a_failed_job_leaves)
{
	stop_while_it_runs(OB_STOP_NOW, OB_ERR_DOWN);
}
OB_TEST_END

OB_TEST(to_free_a_worker_waits_for_the_job)
{
	make();
	begin_job();
	rig_kill(&rig, node);
	ck_assert_uint_eq(fake.waited, 1);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), fake.published);
	unmake();
}
OB_TEST_END

/* ---- waiting ----------------------------------------------------------- */

enum { NEWS_FD = 1000 };

static int news_fd(struct ob_store *store)
{
	(void)store;
	return NEWS_FD;
}

static int waits_on(void)
{
	struct ob_step step;

	ob_worker_step(node->worker, &step);
	ck_assert(!step.worked);
	return step.store_fd;
}

/* Else what the settler writes would wake it all the time, for nothing. */
OB_TEST(a_worker_without_room_does_not_wait_for_news)
{
	make();
	struct ob_store_ops ops = *node->store->ops;
	ops.wake_fd = news_fd;
	node->store->ops = &ops;
	ck_assert_int_eq(waits_on(), NEWS_FD);
	begin_job();
	ck_assert_int_eq(waits_on(), -1);
	fake.hold = false;
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 2 * KEYS);
	ck_assert_int_eq(waits_on(), NEWS_FD);
	unmake();
}
OB_TEST_END

OB_SUITE("worker_settler", a_settle_goes_beside_only_while_there_is_more_to_fetch,
	 what_is_read_beside_the_settle_of_a_failure_does_not_overtake_it,
	 failures_and_retries_go_beside_too, a_settler_that_takes_no_job_is_not_needed,
	 what_is_being_settled_is_not_fetched_or_sent_again,
	 the_metrics_and_the_driver_see_what_is_being_settled,
	 what_is_being_settled_stays_when_its_partition_is_lost,
	 a_partition_is_not_given_up_while_it_is_being_settled,
	 a_lease_that_the_job_found_lost_is_given_up,
	 a_lease_taken_anew_is_not_the_one_that_the_job_found_lost,
	 what_a_failed_job_leaves_of_a_lost_lease_is_not_settled_under_the_next,
	 other_partitions_that_are_taken_anew_do_not_wait_for_the_job,
	 a_job_of_a_lost_lease_that_an_operator_overtook_loses_nothing,
	 a_partition_that_drains_while_its_spills_are_settled_is_not_lost,
	 what_a_failed_job_leaves_the_worker_settles_by_itself,
	 a_job_that_was_recorded_and_says_that_it_failed_changes_nothing,
	 a_fatal_error_of_the_job_ends_the_worker, a_fatal_error_beside_the_job_waits_for_it,
	 a_drain_waits_for_the_job, a_stop_at_once_waits_for_the_job,
	 a_stop_at_once_settles_what_a_failed_job_leaves, to_free_a_worker_waits_for_the_job,
	 a_worker_without_room_does_not_wait_for_news)
