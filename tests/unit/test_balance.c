/* SPDX-License-Identifier: MIT */
/* Shares, and leasers against the memory store. */
#include "relay_rig.h"
#include "suite.h"

static struct rig rig;

OB_TEST(shares_add_up_and_the_first_take_the_remainder)
{
	for (uint32_t partitions = 0; partitions < 40; partitions++) {
		for (uint32_t workers = 1; workers < 20; workers++) {
			uint32_t sum = 0, last = UINT32_MAX;

			for (uint32_t i = 0; i < workers; i++) {
				uint32_t share = ob_fair_share(partitions, workers, i);

				ck_assert_uint_le(share, last);
				last = share;
				sum += share;
			}
			ck_assert_uint_eq(sum, partitions);
		}
	}
	ck_assert_uint_eq(ob_fair_share(16, 3, 0), 6);
	ck_assert_uint_eq(ob_fair_share(16, 3, 1), 5);
	ck_assert_uint_eq(ob_fair_share(16, 0, 0), 0);
	ck_assert_uint_eq(ob_fair_share(16, 2, 2), 0);
}
OB_TEST_END

static uint64_t owned(uint32_t node)
{
	return rig_metrics(&rig.nodes[node]).partitions;
}

OB_TEST(one_worker_takes_all_and_keeps_its_epochs)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 500);
	ck_assert_uint_eq(owned(0), 8);
	rig_run_ms(&rig, 120000);
	ck_assert_uint_eq(owned(0), 8);
	for (size_t i = 0; i < 8; i++)
		ck_assert_uint_eq(rig.nodes[0].view.leases[i].epoch, 1);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_join_moves_only_what_must_move)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(owned(0) + owned(1), 8);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(owned(0), 3);
	ck_assert_uint_eq(owned(1), 3);
	ck_assert_uint_eq(owned(2), 2);
	/* Partition 0 never changed hands. */
	ck_assert_uint_eq(rig.nodes[0].view.leases[0].partition, 0);
	ck_assert_uint_eq(rig.nodes[0].view.leases[0].epoch, 1);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_leave_hands_over_within_half_a_second)
{
	struct ob_err err = OB_ERR_INIT;

	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 2000);
	ob_worker_stop(rig.nodes[0].worker, OB_STOP_DRAIN);
	rig_run_ms(&rig, 1);
	ck_assert_int_eq(rig.nodes[0].state, OB_WORKER_STOPPED);
	rig.nodes[0].paused = true;
	ck_assert_int_ge(ob_leaser_leave(&rig.nodes[0].leaser, &err), 0);
	rig_run_ms(&rig, 500);
	ck_assert_uint_eq(owned(1), 8);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(more_workers_than_partitions_leave_some_idle)
{
	rig_init(&rig);
	rig.relay.leasing.partition_count = 8;
	for (int i = 0; i < 4; i++)
		rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 3000);
	for (uint32_t i = 0; i < 4; i++)
		ck_assert_uint_eq(owned(i), 2);
	rig_done(&rig);
}
OB_TEST_END

/* The leaser's connection fails from now on; the worker's does not. */
OB_TEST(a_renewal_that_fails_extends_no_trust)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_store *failing;
	struct ob_store_fault_plan plan = {
		.nth = 1, .only = 1u << OB_STORE_FAULT_renew | 1u << OB_STORE_FAULT_take
	};

	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 500);

	int64_t deadline = rig.nodes[0].view.leases[0].deadline_us;

	ck_assert_int_ge(ob_store_fault_new(rig.nodes[0].lease_store, &plan, &failing, &err), 0);
	rig.nodes[0].lease_store = failing;
	rig.nodes[0].leaser.conf.store = failing;
	/* One failed renewal: the deadline stays until the next one succeeds. */
	while (!ob_store_fault_counted(failing).fired)
		rig_run_ms(&rig, 10);
	ck_assert_int_eq(rig.nodes[0].view.leases[0].deadline_us, deadline);
	rig_run_ms(&rig, 1000);
	ck_assert_int_gt(rig.nodes[0].view.leases[0].deadline_us, deadline);
	ck_assert_uint_eq(rig.nodes[0].view.leases[0].epoch, 1);
	rig_done(&rig);
}
OB_TEST_END

/* Perhaps our connection is gone, and with it the lock that tells the others that we live. */
OB_TEST(after_a_failed_call_the_worker_is_cut_off_until_the_next_heartbeat)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_store *failing;
	struct ob_store_fault_plan plan = { .nth = 1, .only = UINT64_C(1) << OB_STORE_FAULT_reap };

	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 600);
	ck_assert(!atomic_load(&rig.nodes[0].view.cut));
	ck_assert_int_ge(ob_store_fault_new(rig.nodes[0].lease_store, &plan, &failing, &err), 0);
	rig.nodes[0].lease_store = failing;
	rig.nodes[0].leaser.conf.store = failing;
	while (!ob_store_fault_counted(failing).fired)
		rig_run_ms(&rig, 10);
	ck_assert(atomic_load(&rig.nodes[0].view.cut));
	ck_assert(rig_said(&rig, "store failed for the leases, trying again"));
	rig_push(&rig, "a", "1");
	rig_run_ms(&rig, 30);
	ck_assert_uint_eq(rig.log.count, 0);
	/* Beaten first, long before it would be time. */
	rig_run_ms(&rig, 200);
	ck_assert(rig_said(&rig, "store is back"));
	ck_assert(!atomic_load(&rig.nodes[0].view.cut));
	ck_assert_uint_eq(rig.log.count, 1);
	ck_assert_uint_eq(owned(0), 8);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_fatal_error_ends_the_leaser_and_nothing_is_sent)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 500);
	/* Its reads find the same: the schema of another version. */
	ob_memdb_set_version(rig.db, 99);
	for (int i = 0; i < 100 && !rig.nodes[0].leaser.failed; i++) {
		int64_t wake;

		ob_clock_advance_us(&rig.clock, 100000);
		(void)ob_leaser_step(&rig.nodes[0].leaser, &wake);
	}
	ck_assert(rig.nodes[0].leaser.failed);
	ck_assert_int_eq(rig.nodes[0].leaser.err.kind, OB_ERR_FATAL);
	ck_assert(atomic_load(&rig.nodes[0].view.cut));
	ck_assert(rig_said(&rig, "leases cannot be kept, stopping"));
	ob_memdb_set_version(rig.db, OB_SCHEMA_VERSION);
	rig_done(&rig);
}
OB_TEST_END

/* Whose connection is gone has nothing to wait for. */
OB_TEST(the_partitions_of_a_node_that_died_are_reaped_at_once)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 2000);
	rig_kill(&rig, &rig.nodes[1]);
	rig_run_ms(&rig, 600);
	ck_assert_uint_eq(owned(0), 8);
	ck_assert(rig_said(&rig, "workers are gone, their partitions are taken over"));
	rig_done(&rig);
}
OB_TEST_END

/* One by one, as they become empty: nobody waits for the slowest. */
OB_TEST(a_leaser_that_drains_gives_its_partitions_back_as_they_become_empty)
{
	uint32_t slow = rig_partition("slow");

	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 500);
	rig.plan.ack_delay_us = 5000000;
	rig_push(&rig, "slow", "1");
	rig_run_ms(&rig, 100);
	rig_start(&rig, &ob_sink_memory);
	ob_leaser_drain(&rig.nodes[0].leaser);
	rig_run_ms(&rig, 1500);
	ck_assert_uint_eq(owned(0), 1);
	ck_assert_uint_eq(rig.nodes[0].view.leases[0].partition, slow);
	ck_assert_uint_ge(owned(1), 3);
	rig_run_ms(&rig, 5000);
	ck_assert_uint_eq(owned(0), 0);
	ck_assert_uint_eq(rig.log.count, 1);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 1);
	rig_done(&rig);
}
OB_TEST_END

/* ---- an answer while a release runs ---------------------------------- */

static const struct ob_store_ops *plain_ops;
static struct ob_lease_view *answering;

/* The worker says of another partition that it is drained, while the store has this call. */
static int release_and_answer(struct ob_store *store, const char *reader,
			      const struct ob_uuid *owner, const uint32_t *partitions, size_t count,
			      struct ob_err *err)
{
	for (size_t i = 0; answering && i < answering->count; i++) {
		if (answering->leases[i].drained)
			continue;
		answering->leases[i].draining = answering->leases[i].drained = true;
		atomic_fetch_add(&answering->answers, 1);
		answering = NULL;
	}
	return plain_ops->release(store, reader, owner, partitions, count, err);
}

OB_TEST(a_partition_that_is_drained_while_others_are_released_is_released_too)
{
	struct ob_leaser *leaser = &rig.nodes[0].leaser;
	struct ob_partition *partitions;
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_err err = OB_ERR_INIT;
	size_t count, leased = 0;
	int64_t wake;

	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 500);

	struct ob_store_ops ops = *leaser->conf.store->ops;

	plain_ops = leaser->conf.store->ops;
	ops.release = release_and_answer;
	leaser->conf.store->ops = &ops;
	answering = leaser->conf.view;
	answering->leases[0].draining = answering->leases[0].drained = true;
	atomic_fetch_add(&answering->answers, 1);
	while (ob_leaser_step(leaser, &wake) && leaser->conf.view->count > 6)
		;
	ck_assert_int_ge(
		ob_store_partitions(rig.side, "default", &arena, &partitions, &count, &err), 0);
	for (size_t i = 0; i < count; i++)
		leased += partitions[i].leased;
	/* What is leased is served, and the other way round. */
	ck_assert_uint_eq(leaser->conf.view->count, 6);
	ck_assert_uint_eq(leased, 6);
	leaser->conf.store->ops = plain_ops;
	ob_arena_done(&arena);
	rig_done(&rig);
}
OB_TEST_END

/* After the database's clock was set back, say: the node finds out, and takes them anew. */
OB_TEST(leases_that_an_operator_freed_are_taken_again)
{
	struct ob_err err = OB_ERR_INIT;

	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 500);
	ck_assert_int_ge(ob_store_free_leases(rig.side, "default", NULL, 0, &err), 0);
	rig_push_many(&rig, "a", 1, 3);
	rig_run_ms(&rig, 6000);
	ck_assert_uint_eq(owned(0), 8);
	for (size_t i = 0; i < 8; i++)
		ck_assert_uint_ge(rig.nodes[0].view.leases[i].epoch, 3);
	ck_assert_str_eq(rig_stored(&rig, "a"), "1 2 3");
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 3);
	rig_done(&rig);
}
OB_TEST_END

static void seek(enum ob_start start, int64_t at)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_ge(
		ob_store_reader_seek(rig.side, "default", &(struct ob_place){ start, at }, &err),
		0);
}

/* The worker is refused at its next settle, or loses its leases: it begins at the new place. */
OB_TEST(a_reader_that_is_moved_goes_on_at_its_new_place)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_push_many(&rig, "a", 1, 4);
	rig_run_ms(&rig, 1000);
	seek(OB_START_SEQ, 3);
	rig_run_ms(&rig, 7000);
	ck_assert_str_eq(rig_stored(&rig, "a"), "1 2 3 4 3 4");
	/* Over a backlog that the sink does not take. */
	rig.plan.down = true;
	rig_push_many(&rig, "a", 5, 8);
	rig_run_ms(&rig, 1000);
	seek(OB_START_END, 0);
	rig_run_ms(&rig, 7000);
	rig.plan.down = false;
	rig_push_many(&rig, "a", 9, 9);
	rig_run_ms(&rig, 3000);
	ck_assert_str_eq(rig_stored(&rig, "a"), "1 2 3 4 3 4 9");
	ck_assert_uint_eq(owned(0), 8);
	rig_done(&rig);
}
OB_TEST_END

/* Its number of partitions was another one. */
OB_TEST(a_node_that_starts_after_a_resize_serves_the_new_partitions)
{
	struct ob_err err = OB_ERR_INIT;
	char key[16];

	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	for (int i = 0; i < 20; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		rig_push_many(&rig, key, 1, 2);
	}
	rig.poison[0] = "k3";
	rig.poison_count = 1;
	rig_run_ms(&rig, 1000);
	ob_worker_stop(rig.nodes[0].worker, OB_STOP_DRAIN);
	rig_run_ms(&rig, 100);
	ck_assert_int_ge(ob_leaser_leave(&rig.nodes[0].leaser, &err), 0);
	rig_kill(&rig, &rig.nodes[0]);
	ck_assert_msg(ob_store_resize(rig.side, 3, &err) >= 0, "%s", err.msg);
	rig.poison_count = 0;
	rig_start(&rig, &ob_sink_memory);
	for (int i = 0; i < 20; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		rig_push_many(&rig, key, 3, 4);
	}
	rig_run_ms(&rig, 10000);
	ck_assert_uint_eq(owned(1), 3);
	ck_assert_uint_eq(rig_delivered(&rig), 80);
	ck_assert(rig_stored_once(&rig));
	ck_assert(rig_stored_in_order(&rig));
	rig_done(&rig);
}
OB_TEST_END

/* It holds no lease while the number changes, but lives: its own count must follow. */
OB_TEST(a_node_that_lives_through_a_resize_serves_the_new_partitions)
{
	struct ob_err err = OB_ERR_INIT;

	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_push_many(&rig, "a", 1, 2);
	rig_run_ms(&rig, 1000);
	/* It sleeps for longer than its leases last. */
	ob_clock_advance_us(&rig.clock, INT64_C(60000000));
	ck_assert_msg(ob_store_resize(rig.side, 3, &err) >= 0, "%s", err.msg);
	rig_push_many(&rig, "a", 3, 4);
	rig_push_many(&rig, "b", 1, 2);
	rig_run_ms(&rig, 10000);
	ck_assert_uint_eq(owned(0), 3);
	ck_assert_str_eq(rig_stored(&rig, "a"), "1 2 3 4");
	ck_assert_str_eq(rig_stored(&rig, "b"), "1 2");
	rig_done(&rig);
}
OB_TEST_END

/* The leaser knows the new number before the worker has forgotten the old partitions. */
OB_TEST(a_worker_with_messages_in_memory_forgets_them_when_the_partitions_change)
{
	struct ob_err err = OB_ERR_INIT;
	int64_t wake;
	char key[16];

	rig_init(&rig);
	rig.plan.window = 2;
	rig.plan.ack_delay_us = 3600000000;
	rig_start(&rig, &ob_sink_memory);
	for (int i = 0; i < 30; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		rig_push_message(&rig, (struct outbox_message){ .partition_key = key,
								.payload = "1",
								.priority = i % 3 - 1 });
	}
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).in_flight, 2);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).queued, 28);
	ob_clock_advance_us(&rig.clock, INT64_C(60000000));
	ck_assert_msg(ob_store_resize(rig.side, 3, &err) >= 0, "%s", err.msg);
	while (ob_leaser_step(&rig.nodes[0].leaser, &wake))
		;
	ck_assert_uint_eq(rig.nodes[0].view.partition_count, 3);
	ck_assert_uint_eq(rig.nodes[0].view.count, 3);
	rig.plan.ack_delay_us = 0;
	rig_run_ms(&rig, 5000);
	ck_assert_uint_eq(rig_delivered(&rig), 30);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 30);
	/* Two were at the sink. */
	ck_assert_uint_eq(rig.log.count, 32);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(past_the_local_deadline_nothing_is_sent)
{
	char key[16];

	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 500);
	/* The leaser hangs; the worker goes on by itself. */
	rig.nodes[0].paused = true;
	ob_clock_advance_us(&rig.clock, 13 * INT64_C(1000000));
	for (int i = 0; i < 20; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		rig_push(&rig, key, "1");
	}
	for (int i = 0; i < 1000; i++) {
		struct ob_step step;

		ob_worker_step(rig.nodes[0].worker, &step);
	}
	ck_assert_uint_eq(rig.log.count, 0);
	rig.nodes[0].paused = false;
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig.log.count, 20);
	rig_done(&rig);
}
OB_TEST_END

OB_SUITE("balance", shares_add_up_and_the_first_take_the_remainder,
	 one_worker_takes_all_and_keeps_its_epochs, a_join_moves_only_what_must_move,
	 a_leave_hands_over_within_half_a_second, more_workers_than_partitions_leave_some_idle,
	 a_renewal_that_fails_extends_no_trust,
	 after_a_failed_call_the_worker_is_cut_off_until_the_next_heartbeat,
	 a_fatal_error_ends_the_leaser_and_nothing_is_sent,
	 the_partitions_of_a_node_that_died_are_reaped_at_once,
	 a_leaser_that_drains_gives_its_partitions_back_as_they_become_empty,
	 a_partition_that_is_drained_while_others_are_released_is_released_too,
	 leases_that_an_operator_freed_are_taken_again,
	 a_reader_that_is_moved_goes_on_at_its_new_place,
	 a_node_that_starts_after_a_resize_serves_the_new_partitions,
	 a_node_that_lives_through_a_resize_serves_the_new_partitions,
	 a_worker_with_messages_in_memory_forgets_them_when_the_partitions_change,
	 past_the_local_deadline_nothing_is_sent)
