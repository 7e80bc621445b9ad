/* SPDX-License-Identifier: MIT */
/*
 * The threads of a relay, each held up at a call of its own: what the others do meanwhile, and how
 * all of it ends. Also run under the thread sanitizer.
 */
#include "suite.h"
#include "threads_box.h"

/* ---- stopping -------------------------------------------------------- */

OB_TEST(a_drain_waits_for_the_sink_no_longer_than_the_shutdown_timeout)
{
	struct ob_relay *relay = make(1);
	int64_t began;

	config.shutdown_timeout_ms = 700;
	set_ack_delay_us(3600000000);
	push(10);
	start(relay);
	AWAIT(metrics(relay).in_flight == 10);
	began = now_ms();
	stop_and_join(relay, OB_STOP_DRAIN);
	ck_assert_int_ge(now_ms() - began, 700);
	ck_assert_int_lt(now_ms() - began, 20000);
	ck_assert_uint_eq(metrics(relay).published, 0);
	ck_assert_uint_eq(leased(), 0);
	ob_relay_free(relay);

	/* Nobody knows what became of them. */
	set_ack_delay_us(0);
	relay = new_relay();
	start(relay);
	AWAIT(metrics(relay).published == 10);
	stop_and_join(relay, OB_STOP_DRAIN);
	ck_assert_uint_eq(stored(), 20);
	ob_relay_free(relay);
	unmake();
}
OB_TEST_END

OB_TEST(a_drain_ends_as_soon_as_the_sink_has_answered)
{
	struct ob_relay *relay = make(2);
	int64_t began;

	config.shutdown_timeout_ms = 60000;
	set_ack_delay_us(300000);
	push(10);
	start(relay);
	AWAIT(metrics(relay).in_flight > 0);
	began = now_ms();
	stop_and_join(relay, OB_STOP_DRAIN);
	ck_assert_int_lt(now_ms() - began, 20000);
	ck_assert_uint_gt(metrics(relay).published, 0);
	ck_assert_uint_eq(metrics(relay).published, stored());
	ck_assert_uint_eq(leased(), 0);
	ob_relay_free(relay);
	unmake();
}
OB_TEST_END

OB_TEST(a_second_stop_is_more_urgent)
{
	struct ob_relay *relay = make(1);
	int64_t began;

	config.shutdown_timeout_ms = 3600000;
	set_ack_delay_us(3600000000);
	push(10);
	start(relay);
	AWAIT(metrics(relay).in_flight == 10);
	ob_relay_stop(relay, OB_STOP_DRAIN);
	(void)poll(NULL, 0, 50);
	began = now_ms();
	stop_and_join(relay, OB_STOP_NOW);
	ck_assert_int_lt(now_ms() - began, 20000);
	ck_assert_uint_eq(leased(), 0);
	ob_relay_free(relay);
	unmake();
}
OB_TEST_END

/* Nothing interrupts a call of the store; when it comes back, everything ends in order. */
static void stop_while_a_call_stalls(enum stall_op op, enum ob_stop how)
{
	struct ob_relay *relay = make(1);

	config.shutdown_timeout_ms = 100;
	stall_hold(op);
	push(200);
	start(relay);
	stall_await_waiting(op, 1);
	ob_relay_stop(relay, how);
	(void)poll(NULL, 0, 300);
	stall_let_go(op);
	join(relay);
	ck_assert_uint_eq(leased(), 0);
	ob_relay_free(relay);

	relay = new_relay();
	start(relay);
	AWAIT(stored() >= 200);
	stop_and_join(relay, OB_STOP_DRAIN);
	ob_relay_free(relay);
	/* What was sent was confirmed, and recorded before it left. */
	check_stored(200);
	unmake();
}

OB_TEST(a_stop_while_a_takeover_stalls_loses_nothing)
{
	stop_while_a_call_stalls(STALL_take_over, OB_STOP_DRAIN);
}
OB_TEST_END

OB_TEST(a_stop_while_a_read_stalls_loses_nothing)
{
	stop_while_a_call_stalls(STALL_read, OB_STOP_DRAIN);
}
OB_TEST_END

OB_TEST(a_stop_while_a_settle_stalls_loses_nothing)
{
	stop_while_a_call_stalls(STALL_settle, OB_STOP_DRAIN);
}
OB_TEST_END

OB_TEST(a_stop_at_once_while_a_settle_stalls_loses_nothing)
{
	stop_while_a_call_stalls(STALL_settle, OB_STOP_NOW);
}
OB_TEST_END

OB_TEST(a_stop_while_a_heartbeat_stalls_loses_nothing)
{
	stop_while_a_call_stalls(STALL_beat, OB_STOP_DRAIN);
}
OB_TEST_END

OB_TEST(a_stop_while_leases_are_taken_loses_nothing)
{
	stop_while_a_call_stalls(STALL_take, OB_STOP_DRAIN);
}
OB_TEST_END

OB_TEST(a_relay_that_is_freed_while_a_settle_stalls_waits_for_it)
{
	struct ob_relay *relay = make(1);

	push(200);
	stall_hold(STALL_settle);
	start(relay);
	stall_await_waiting(STALL_settle, 1);
	ob_relay_stop(relay, OB_STOP_NOW);
	(void)poll(NULL, 0, 50);
	stall_let_go(STALL_settle);
	ob_relay_free(relay);
	unmake();
}
OB_TEST_END

/* They expire by themselves. */
OB_TEST(leases_that_cannot_be_released_do_not_hold_up_a_stop_for_ever)
{
	struct ob_relay *relay = make(1);
	int64_t began;

	config.shutdown_timeout_ms = 100;
	push(10);
	start(relay);
	AWAIT(metrics(relay).published == 10);
	stall_fail(STALL_leave, OB_ERR_DOWN);
	stall_fail(STALL_release, OB_ERR_DOWN);
	began = now_ms();
	stop_and_join(relay, OB_STOP_DRAIN);
	/* Two seconds of grace. */
	ck_assert_int_ge(now_ms() - began, 1500);
	ck_assert_int_lt(now_ms() - began, 30000);
	ck_assert_uint_eq(leased(), PARTITIONS);
	ob_relay_free(relay);
	unmake();
}
OB_TEST_END

/* ---- the worker and its settler -------------------------------------- */

/* A loop that turns while what it waits for does not come is no sign of life. */
OB_TEST(a_settle_that_hangs_is_seen)
{
	struct ob_relay *relay = make(1);

	push(500);
	stall_hold(STALL_settle);
	start(relay);
	/* An idle loop turns once a second. */
	AWAIT(ob_relay_stalled_us(relay) > 2000000);
	stall_let_go(STALL_settle);
	AWAIT(metrics(relay).published == 500);
	AWAIT(ob_relay_stalled_us(relay) < 2000000);
	stop_and_join(relay, OB_STOP_DRAIN);
	ck_assert_int_eq(ob_relay_stalled_us(relay), 0);
	ob_relay_free(relay);
	check_stored(500);
	unmake();
}
OB_TEST_END

/* It reads and sends what its memory holds: four batches. */
OB_TEST(the_worker_goes_on_while_the_settler_waits)
{
	struct ob_relay *relay = make(1);

	push(500);
	stall_hold(STALL_settle);
	start(relay);
	stall_await_waiting(STALL_settle, 1);
	AWAIT(stored() >= 60);
	(void)poll(NULL, 0, 50);
	ck_assert_uint_le(stored(), 80);
	ck_assert_uint_eq(metrics(relay).published, 0);
	stall_let_go(STALL_settle);
	AWAIT(metrics(relay).published == 500);
	stop_and_join(relay, OB_STOP_DRAIN);
	ob_relay_free(relay);
	check_stored(500);
	unmake();
}
OB_TEST_END

OB_TEST(a_settler_that_fails_is_replaced_by_the_worker)
{
	struct ob_relay *relay = make(1);

	push(500);
	stall_hold(STALL_settle);
	start(relay);
	stall_await_waiting(STALL_settle, 1);
	stall_fail(STALL_settle, OB_ERR_DOWN);
	stall_let_go(STALL_settle);
	AWAIT(metrics(relay).store_errors > 0);
	stall_fail(STALL_settle, OB_ERR_NONE);
	AWAIT(metrics(relay).published == 500);
	stop_and_join(relay, OB_STOP_DRAIN);
	ob_relay_free(relay);
	check_stored(500);
	unmake();
}
OB_TEST_END

OB_TEST(a_fatal_settle_ends_the_relay_with_its_reason)
{
	struct ob_relay *relay = make(2);
	struct ob_err err = OB_ERR_INIT;

	push(500);
	stall_fail(STALL_settle, OB_ERR_FATAL);
	start(relay);

	struct pollfd fd = { .fd = ob_relay_done_fd(relay), .events = POLLIN };

	ck_assert_int_eq(poll(&fd, 1, 50000), 1);
	ck_assert_int_eq(ob_relay_join(relay, &err), OUTBOX_ESTORE);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_str_eq(err.msg, "as the test wants it");
	ck_assert_uint_eq(leased(), 0);
	ob_relay_free(relay);
	unmake();
}
OB_TEST_END

/* ---- the control thread ---------------------------------------------- */

/* Or a slow database would cost the leases. */
OB_TEST(leases_are_renewed_while_the_workers_calls_stall)
{
	struct ob_relay *relay = make(2);

	config.leasing.lease_ttl_ms = config.leasing.heartbeat_ttl_ms = 1000;
	config.leasing.lease_renew_ms = 300;
	ob_relay_free(relay);
	relay = new_relay();
	start(relay);
	AWAIT(leased() == PARTITIONS);
	stall_hold(STALL_read);
	push(100);
	stall_await_waiting(STALL_read, 1);
	for (int i = 0; i < 30; i++) {
		(void)poll(NULL, 0, 100);
		ck_assert_uint_eq(leased(), PARTITIONS);
	}
	stall_let_go(STALL_read);
	AWAIT(metrics(relay).published == 100);
	stop_and_join(relay, OB_STOP_DRAIN);
	ob_relay_free(relay);
	check_stored(100);
	unmake();
}
OB_TEST_END

/* A lease that was not renewed is trusted for four fifths of its time, and not a moment longer. */
OB_TEST(nothing_is_sent_while_renewals_stall_for_too_long)
{
	struct ob_relay *relay = make(1);

	config.leasing.lease_ttl_ms = config.leasing.heartbeat_ttl_ms = 1000;
	config.leasing.lease_renew_ms = 300;
	ob_relay_free(relay);
	relay = new_relay();
	start(relay);
	push(100);
	AWAIT(metrics(relay).published == 100);
	stall_hold(STALL_beat);
	stall_hold(STALL_renew);
	(void)poll(NULL, 0, 1500);
	ck_assert_uint_eq(leased(), 0);
	push(100);
	(void)poll(NULL, 0, 300);
	ck_assert_uint_eq(stored(), 100);
	stall_let_go(STALL_beat);
	stall_let_go(STALL_renew);
	AWAIT(metrics(relay).published == 200);
	stop_and_join(relay, OB_STOP_DRAIN);
	ob_relay_free(relay);
	check_stored(200);
	unmake();
}
OB_TEST_END

/* Its connection may be gone, and others may be sending already. */
OB_TEST(nothing_is_sent_while_the_control_thread_cannot_reach_the_store)
{
	struct ob_relay *relay = make(1);

	config.leasing.lease_renew_ms = 100;
	ob_relay_free(relay);
	relay = new_relay();
	start(relay);
	push(100);
	AWAIT(metrics(relay).published == 100);
	stall_fail(STALL_beat, OB_ERR_DOWN);
	stall_fail(STALL_renew, OB_ERR_DOWN);

	uint32_t beats = stall_calls(STALL_beat);

	stall_await_calls(STALL_beat, beats + 2);
	push(100);
	(void)poll(NULL, 0, 300);
	ck_assert_uint_eq(stored(), 100);
	stall_fail(STALL_beat, OB_ERR_NONE);
	stall_fail(STALL_renew, OB_ERR_NONE);
	AWAIT(metrics(relay).published == 200);
	stop_and_join(relay, OB_STOP_DRAIN);
	ob_relay_free(relay);
	check_stored(200);
	unmake();
}
OB_TEST_END

OB_TEST(a_fatal_error_of_the_control_thread_ends_the_relay_with_its_reason)
{
	struct ob_relay *relay = make(2);
	struct ob_err err = OB_ERR_INIT;

	start(relay);
	AWAIT(leased() == PARTITIONS);
	stall_fail(STALL_workers, OB_ERR_FATAL);
	ck_assert_int_eq(ob_relay_join(relay, &err), OUTBOX_ESTORE);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ob_relay_free(relay);
	unmake();
}
OB_TEST_END

/* Its control thread waits in a call: it sends nothing more, and the other takes all. */
OB_TEST(another_relay_takes_over_from_one_that_hangs)
{
	struct ob_relay *one = make(1), *other;

	config.leasing.lease_ttl_ms = config.leasing.heartbeat_ttl_ms = 1000;
	config.leasing.lease_renew_ms = 300;
	ob_relay_free(one);
	one = new_relay();
	start(one);
	AWAIT(metrics(one).partitions == PARTITIONS);
	stall_hold_some(STALL_beat, 1);
	stall_await_waiting(STALL_beat, 1);
	other = new_relay();
	start(other);
	AWAIT(metrics(other).partitions == PARTITIONS);
	push(300);
	AWAIT(metrics(other).published == 300);
	ck_assert_uint_eq(metrics(one).published, 0);
	/* It is back, and gets its share. */
	stall_let_go(STALL_beat);
	AWAIT(metrics(one).partitions == PARTITIONS / 2);
	push(300);
	AWAIT(metrics(one).published + metrics(other).published == 600);
	ck_assert_uint_gt(metrics(one).published, 0);
	stop_and_join(one, OB_STOP_DRAIN);
	AWAIT(metrics(other).partitions == PARTITIONS);
	stop_and_join(other, OB_STOP_DRAIN);
	ob_relay_free(one);
	ob_relay_free(other);
	check_stored(600);
	unmake();
}
OB_TEST_END

OB_SUITE("threads", a_drain_waits_for_the_sink_no_longer_than_the_shutdown_timeout,
	 a_drain_ends_as_soon_as_the_sink_has_answered, a_second_stop_is_more_urgent,
	 a_stop_while_a_takeover_stalls_loses_nothing, a_stop_while_a_read_stalls_loses_nothing,
	 a_stop_while_a_settle_stalls_loses_nothing,
	 a_stop_at_once_while_a_settle_stalls_loses_nothing,
	 a_stop_while_a_heartbeat_stalls_loses_nothing, a_stop_while_leases_are_taken_loses_nothing,
	 a_relay_that_is_freed_while_a_settle_stalls_waits_for_it,
	 leases_that_cannot_be_released_do_not_hold_up_a_stop_for_ever, a_settle_that_hangs_is_seen,
	 the_worker_goes_on_while_the_settler_waits, a_settler_that_fails_is_replaced_by_the_worker,
	 a_fatal_settle_ends_the_relay_with_its_reason,
	 leases_are_renewed_while_the_workers_calls_stall,
	 nothing_is_sent_while_renewals_stall_for_too_long,
	 nothing_is_sent_while_the_control_thread_cannot_reach_the_store,
	 a_fatal_error_of_the_control_thread_ends_the_relay_with_its_reason,
	 another_relay_takes_over_from_one_that_hangs)
