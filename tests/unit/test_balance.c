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
	 a_renewal_that_fails_extends_no_trust, past_the_local_deadline_nothing_is_sent)
