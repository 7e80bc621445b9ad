/* SPDX-License-Identifier: MIT */
/* A database that is slow, not away: leases are kept as long as they can be, and nothing is sent
 * that they may not outlast. */
#include "relay_rig.h"
#include "suite.h"

enum { TTL_MS = 15000, TRUST_MS = 12000 }; /* of the rig; a lease is trusted for four fifths */

static struct rig rig;
static struct rig_node *node;

static int64_t now_ms(void)
{
	return rig.clock.boot_us / 1000;
}

static int64_t deadline_ms(void)
{
	ck_assert_uint_gt(node->view.count, 0);
	return node->view.leases[0].deadline_us / 1000;
}

static void make(void)
{
	rig_init(&rig);
	node = rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
}

/* Up to a renewal; the leaser is silent from then on. */
static void hang_after_a_renewal(void)
{
	int64_t was = deadline_ms();

	while (deadline_ms() == was)
		rig_run_ms(&rig, 1);
	node->leaser_hangs = true;
}

static void push(int from, int to)
{
	char key[16];

	for (int i = from; i <= to; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		rig_push(&rig, key, "1");
	}
}

/* What is at the sink when the trust ends is not forgotten: the renewal may come yet. */
OB_TEST(a_renewal_that_is_late_repeats_nothing)
{
	make();
	hang_after_a_renewal();
	rig.plan.ack_delay_us = (TRUST_MS + 1000) * 1000;
	push(1, 20);
	rig_run_ms(&rig, TRUST_MS + 500);
	ck_assert_int_gt(now_ms(), deadline_ms());
	ck_assert_uint_gt(rig_metrics(node).in_flight, 0);
	push(21, 40);
	rig_run_ms(&rig, 100);
	ck_assert_uint_le(rig_metrics(node).in_flight, 20);
	rig.plan.ack_delay_us = 0;
	node->leaser_hangs = false;
	rig_run_ms(&rig, 5000);
	ck_assert_uint_eq(rig_delivered(&rig), 40);
	ck_assert(rig_stored_once(&rig));
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 40);
	ck_assert(!rig_said(&rig, "leases lost"));
	rig_done(&rig);
}
OB_TEST_END

static void four_seconds(struct rig_node *of, const struct ob_settle *settle)
{
	(void)of;
	(void)settle;
	ob_clock_advance_us(&rig.clock, 4000000);
}

static void an_hour(struct rig_node *of, const struct ob_settle *settle)
{
	(void)of;
	(void)settle;
	ob_clock_advance_us(&rig.clock, INT64_C(3600000000));
}

/* With settles of four seconds, what is sent four seconds before the end would be sent again. */
OB_TEST(when_settles_are_slow_sending_stops_earlier)
{
	make();
	rig.on_settle = four_seconds;
	push(1, 1);
	rig_run_ms(&rig, 5000);
	ck_assert_uint_eq(rig_metrics(node).published, 1);
	rig.on_settle = NULL;
	hang_after_a_renewal();

	int64_t renewed = deadline_ms() - TRUST_MS;

	rig_run_ms(&rig, renewed + 7500 - now_ms());
	push(2, 2);
	rig_run_ms(&rig, 400);
	ck_assert_uint_eq(rig.log.count, 2);
	/* Nine seconds after the renewal: trusted for three more. */
	rig_run_ms(&rig, renewed + 9500 - now_ms());
	push(3, 3);
	rig_run_ms(&rig, 1000);
	ck_assert_int_lt(now_ms(), deadline_ms());
	ck_assert_uint_eq(rig.log.count, 2);
	node->leaser_hangs = false;
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig.log.count, 3);
	rig_done(&rig);
}
OB_TEST_END

/* And is forgotten: many fast ones later the whole time counts again. */
OB_TEST(one_slow_settle_is_not_held_against_the_database_for_ever)
{
	make();
	rig.on_settle = an_hour;
	push(1, 1);
	rig_run_ms(&rig, 10000);
	rig.on_settle = NULL;
	rig_run_ms(&rig, 10000);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	for (int i = 2; i <= 151; i++) {
		push(i, i);
		rig_run_ms(&rig, 100);
	}
	ck_assert_uint_eq(rig_delivered(&rig), 151);
	hang_after_a_renewal();
	rig_run_ms(&rig, deadline_ms() - 500 - now_ms());
	size_t before = rig.log.count;

	push(200, 200);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig.log.count, before + 1);
	rig_done(&rig);
}
OB_TEST_END

/* Calls of more than a fifth of the lease: a third one between heartbeat and renewal is one too
 * many. */
OB_TEST(while_calls_are_slow_renewals_come_first)
{
	make();
	rig.lease_call_us = 3200000;
	rig_run_ms(&rig, 20000);
	for (int i = 0; i < 400; i++) {
		rig_run_ms(&rig, 100);
		ck_assert_int_lt(now_ms(), deadline_ms());
	}
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	ck_assert(!rig_said(&rig, "leases lost"));
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(while_calls_are_slow_partitions_are_still_taken_some_time)
{
	struct ob_err err = OB_ERR_INIT;
	uint32_t number = 3;

	make();
	rig.lease_call_us = 3200000;
	rig_run_ms(&rig, 20000);
	ck_assert_int_ge(ob_store_free_leases(rig.side, "default", &number, 1, &err), 0);
	rig_run_ms(&rig, 20000);
	ck_assert_uint_lt(rig_metrics(node).partitions, RIG_PARTITIONS);
	rig_run_ms(&rig, 150000);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(leases_are_renewed_every_third_of_their_time_at_least)
{
	rig_init(&rig);
	rig.relay.leasing.lease_renew_ms = 14000;
	node = rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 1000);
	for (int i = 0; i < 300; i++) {
		rig_run_ms(&rig, 100);
		ck_assert_int_gt(deadline_ms() - now_ms(), TRUST_MS - TTL_MS / 3 - 200);
	}
	rig_done(&rig);
}
OB_TEST_END

/* Workers of one relay share the connection: what is urgent for one comes before what is not for
 * another. */
OB_TEST(a_leaser_says_when_it_cannot_wait)
{
	make();
	ck_assert(!ob_leaser_is_urgent(&node->leaser));
	ob_clock_advance_us(&rig.clock, 5000000);
	ck_assert(ob_leaser_is_urgent(&node->leaser));
	/* One that waits after an error can do nothing now. */
	node->leaser.retry_us = rig.clock.boot_us + 1;
	ck_assert(!ob_leaser_is_urgent(&node->leaser));
	node->leaser.retry_us = 0;
	node->leaser.failed = true;
	ck_assert(!ob_leaser_is_urgent(&node->leaser));
	rig_done(&rig);
}
OB_TEST_END

OB_SUITE("slow store", a_renewal_that_is_late_repeats_nothing,
	 when_settles_are_slow_sending_stops_earlier,
	 one_slow_settle_is_not_held_against_the_database_for_ever,
	 while_calls_are_slow_renewals_come_first,
	 while_calls_are_slow_partitions_are_still_taken_some_time,
	 leases_are_renewed_every_third_of_their_time_at_least, a_leaser_says_when_it_cannot_wait)
