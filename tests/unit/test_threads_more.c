/* SPDX-License-Identifier: MIT */
/* The same for retention in a relay, a relay without threads, and relays that come and go. */
#include "suite.h"
#include "threads_box.h"

/* ---- retention ------------------------------------------------------- */

static struct ob_relay *make_retaining(void)
{
	struct ob_relay *relay;

	retains = true;
	relay = make(1);
	return relay;
}

OB_TEST(what_is_published_is_removed_batch_by_batch)
{
	struct ob_relay *relay = make_retaining();

	push(300);
	stall_hold(STALL_retain);
	start(relay);
	AWAIT(metrics(relay).published == 300);
	/* A drain records the progress of all partitions, also of those that had nothing. */
	ob_relay_stop(relay, OB_STOP_DRAIN);
	stall_let_go(STALL_retain);
	join(relay);
	ob_relay_free(relay);
	relay = new_relay();
	start(relay);
	AWAIT(rows() == 0);
	ck_assert_uint_gt(stall_calls(STALL_retain), 300 / 7);
	AWAIT(metrics(relay).cleaned > 200);
	stop_and_join(relay, OB_STOP_DRAIN);
	ob_relay_free(relay);
	check_stored(300);
	unmake();
}
OB_TEST_END

OB_TEST(delivery_goes_on_while_retention_stalls)
{
	struct ob_relay *relay = make_retaining();

	stall_hold(STALL_retain);
	start(relay);
	stall_await_waiting(STALL_retain, 1);
	push(300);
	AWAIT(metrics(relay).published == 300);
	ck_assert_uint_eq(leased(), PARTITIONS);
	ck_assert_uint_eq(rows(), 300);
	/* The stop waits for the batch that runs. */
	ob_relay_stop(relay, OB_STOP_DRAIN);

	struct pollfd fd = { .fd = ob_relay_done_fd(relay), .events = POLLIN };

	ck_assert_int_eq(poll(&fd, 1, 30000), 1);
	stall_let_go(STALL_retain);
	join(relay);
	ob_relay_free(relay);
	check_stored(300);
	unmake();
}
OB_TEST_END

OB_TEST(retention_that_fails_tries_again_on_a_new_connection)
{
	struct ob_relay *relay = make_retaining();
	uint32_t opens;

	stall_fail(STALL_retain, OB_ERR_DOWN);
	start(relay);
	AWAIT(atomic_load(&retention_failures) >= 2);
	opens = stall_opens();
	push(100);
	AWAIT(metrics(relay).published == 100);
	ck_assert_uint_eq(metrics(relay).cleaned, 0);
	AWAIT(stall_opens() > opens + 1);
	stall_fail(STALL_retain, OB_ERR_NONE);

	int failures = atomic_load(&retention_failures);
	uint32_t calls = stall_calls(STALL_retain);

	AWAIT(stall_calls(STALL_retain) > calls + 2);
	ck_assert_int_le(atomic_load(&retention_failures), failures + 1);
	stop_and_join(relay, OB_STOP_DRAIN);
	ob_relay_free(relay);
	unmake();
}
OB_TEST_END

/* Between two passes the server has its connection back. */
OB_TEST(retention_has_a_connection_only_while_it_works)
{
	struct ob_relay *relay = make_retaining();
	uint32_t others;

	retention.every_ms = 300;
	start(relay);
	AWAIT(stall_calls(STALL_retain) >= 1);
	others = 2; /* the control thread's and the worker's */
	AWAIT(stall_open_count() == others);
	AWAIT(stall_calls(STALL_retain) >= 2);
	AWAIT(stall_open_count() == others);
	stop_and_join(relay, OB_STOP_DRAIN);
	ob_relay_free(relay);
	unmake();
}
OB_TEST_END

OB_TEST(without_retention_nothing_is_removed)
{
	struct ob_relay *relay = make(1);

	push(50);
	start(relay);
	AWAIT(metrics(relay).published == 50);
	(void)poll(NULL, 0, 100);
	ck_assert_uint_eq(stall_calls(STALL_retain), 0);
	ck_assert_uint_eq(rows(), 50);
	stop_and_join(relay, OB_STOP_DRAIN);
	ob_relay_free(relay);
	unmake();
}
OB_TEST_END

/* ---- once ------------------------------------------------------------ */

struct once {
	struct ob_relay *relay;
	pthread_t thread;
	int r;
	struct ob_err err;
};

static void *once_main(void *arg)
{
	struct once *once = arg;

	once->r = ob_relay_once(once->relay, &once->err);
	return NULL;
}

static void begin_once(struct once *once, struct ob_relay *relay)
{
	*once = (struct once){ .relay = relay, .err = OB_ERR_INIT };
	ck_assert_int_eq(pthread_create(&once->thread, NULL, once_main, once), 0);
}

static int end_once(struct once *once)
{
	ck_assert_int_eq(pthread_join(once->thread, NULL), 0);
	ob_relay_free(once->relay);
	return once->r;
}

static void once_with_a_call_that_stalls(enum stall_op op)
{
	struct ob_relay *relay = make(1);
	struct once once;

	push(200);
	stall_hold(op);
	begin_once(&once, relay);
	stall_await_waiting(op, 1);
	(void)poll(NULL, 0, 100);
	push(100);
	stall_let_go(op);
	ck_assert_int_ge(end_once(&once), 200);
	/* What came after its last look is left for the next one. */
	begin_once(&once, new_relay());
	ck_assert_int_ge(end_once(&once), 0);
	check_stored(300);
	ck_assert_uint_eq(leased(), 0);
	unmake();
}

OB_TEST(once_waits_for_a_read_that_stalls)
{
	once_with_a_call_that_stalls(STALL_read);
}
OB_TEST_END

OB_TEST(once_waits_for_a_settle_that_stalls)
{
	once_with_a_call_that_stalls(STALL_settle);
}
OB_TEST_END

OB_TEST(once_waits_for_leases_that_stall)
{
	once_with_a_call_that_stalls(STALL_take);
}
OB_TEST_END

OB_TEST(a_stop_ends_once_without_an_error)
{
	struct once once;
	struct ob_relay *relay = make(1);

	set_ack_delay_us(200000);
	push(10);
	begin_once(&once, relay);
	AWAIT(metrics(once.relay).in_flight > 0);
	ob_relay_stop(once.relay, OB_STOP_DRAIN);
	/* What was under way is waited for and recorded. */
	ck_assert_int_eq(end_once(&once), (int)stored());
	ck_assert_uint_eq(leased(), 0);
	unmake();
}
OB_TEST_END

/* The same limit as for threads. */
OB_TEST(a_stop_of_once_waits_for_the_sink_no_longer_than_the_shutdown_timeout)
{
	struct once once;
	struct ob_relay *relay = make(1);
	int64_t began;

	config.shutdown_timeout_ms = 300;
	set_ack_delay_us(3600000000);
	push(10);
	begin_once(&once, relay);
	AWAIT(metrics(once.relay).in_flight > 0);
	began = now_ms();
	ob_relay_stop(once.relay, OB_STOP_DRAIN);
	ck_assert_int_eq(end_once(&once), 0);
	ck_assert_int_lt(now_ms() - began, 30000);
	ck_assert_uint_eq(leased(), 0);
	unmake();
}
OB_TEST_END

OB_TEST(once_says_that_the_store_is_down)
{
	struct once once;
	struct ob_relay *relay = make(1);

	push(10);
	stall_fail(STALL_read, OB_ERR_DOWN);
	begin_once(&once, relay);
	ck_assert_int_eq(end_once(&once), OUTBOX_ESTORE);
	ck_assert_int_eq(once.err.kind, OB_ERR_DOWN);
	unmake();
}
OB_TEST_END

/* The leases have a connection of their own, which fails by itself. */
static void once_without_leases(enum stall_op op)
{
	struct once once;
	struct ob_relay *relay = make(1);

	push(10);
	stall_fail(op, OB_ERR_DOWN);
	begin_once(&once, relay);
	ck_assert_int_eq(end_once(&once), OUTBOX_ESTORE);
	ck_assert_int_eq(once.err.kind, OB_ERR_DOWN);
	unmake();
}

OB_TEST(once_ends_when_the_store_takes_no_heartbeat)
{
	once_without_leases(STALL_beat);
}
OB_TEST_END

OB_TEST(once_ends_when_the_store_gives_no_lease)
{
	once_without_leases(STALL_take);
}
OB_TEST_END

/* What is known cannot be recorded, and the time for that is limited. */
OB_TEST(once_ends_when_nothing_can_be_settled_any_more)
{
	struct once once;
	struct ob_relay *relay = make(1);
	int64_t began = now_ms();

	config.shutdown_timeout_ms = 300;
	push(10);
	stall_fail(STALL_settle, OB_ERR_DOWN);
	begin_once(&once, relay);
	ck_assert_int_eq(end_once(&once), OUTBOX_ESTORE);
	ck_assert_int_lt(now_ms() - began, 30000);
	unmake();
}
OB_TEST_END

OB_TEST(a_second_stop_ends_once_without_waiting_for_the_sink)
{
	struct once once;
	struct ob_relay *relay = make(1);
	int64_t began;

	config.shutdown_timeout_ms = 3600000;
	set_ack_delay_us(3600000000);
	push(10);
	begin_once(&once, relay);
	AWAIT(metrics(once.relay).in_flight > 0);
	began = now_ms();
	ob_relay_stop(once.relay, OB_STOP_DRAIN);
	ob_relay_stop(once.relay, OB_STOP_NOW);
	ck_assert_int_eq(end_once(&once), 0);
	ck_assert_int_lt(now_ms() - began, 30000);
	unmake();
}
OB_TEST_END

OB_TEST(once_leaves_alone_what_another_worker_holds)
{
	struct ob_relay *other = make(1);
	struct once once;

	start(other);
	AWAIT(metrics(other).partitions == PARTITIONS);
	stall_hold(STALL_read);
	stall_await_waiting(STALL_read, 1);
	push(10);
	/* Nothing is free, and the other does not drain: it waits in a call. */
	begin_once(&once, new_relay());
	(void)poll(NULL, 0, 300);
	stall_let_go(STALL_read);
	ck_assert_int_ge(end_once(&once), 0);
	AWAIT(stored() == 10);
	stop_and_join(other, OB_STOP_DRAIN);
	ob_relay_free(other);
	check_stored(10);
	unmake();
}
OB_TEST_END

/* ---- all at once ----------------------------------------------------- */

/* Calls that take up to a few milliseconds each, and relays that come and go. */
OB_TEST(relays_that_come_and_go_deliver_everything)
{
	struct ob_relay *relays[2] = { NULL };

	retains = true;
	ob_relay_free(make(2));
	retention.published_ms = 3600000;
	stall_jitter_us(4000);
	for (int round = 0; round < 6; round++) {
		struct ob_relay **at = &relays[round % 2];

		if (*at) {
			ob_relay_stop(*at, round % 3 ? OB_STOP_DRAIN : OB_STOP_NOW);
			join(*at);
			ob_relay_free(*at);
		}
		*at = new_relay();
		start(*at);
		push(100);
		(void)poll(NULL, 0, 30 * round);
	}
	AWAIT(stored() >= 600);
	for (int i = 0; i < 2; i++) {
		ob_relay_stop(relays[i], OB_STOP_DRAIN);
		join(relays[i]);
		ob_relay_free(relays[i]);
	}
	unmake();
}
OB_TEST_END

OB_SUITE("threads more", what_is_published_is_removed_batch_by_batch,
	 delivery_goes_on_while_retention_stalls,
	 retention_that_fails_tries_again_on_a_new_connection,
	 retention_has_a_connection_only_while_it_works, without_retention_nothing_is_removed,
	 once_waits_for_a_read_that_stalls, once_waits_for_a_settle_that_stalls,
	 once_waits_for_leases_that_stall, a_stop_ends_once_without_an_error,
	 a_stop_of_once_waits_for_the_sink_no_longer_than_the_shutdown_timeout,
	 once_says_that_the_store_is_down, once_ends_when_the_store_takes_no_heartbeat,
	 once_ends_when_the_store_gives_no_lease, once_ends_when_nothing_can_be_settled_any_more,
	 a_second_stop_ends_once_without_waiting_for_the_sink,
	 once_leaves_alone_what_another_worker_holds, relays_that_come_and_go_deliver_everything)
