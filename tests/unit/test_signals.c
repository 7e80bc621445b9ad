/* SPDX-License-Identifier: MIT */
/* Signals arrive through the fd and mean: drain, now, reload. */
#include "base/signals.h"
#include "suite.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static struct ob_signals signals;

static void start(void)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_signals_init(&signals, &err) == 0, "%s", err.msg);
}

static bool readable(void)
{
	struct pollfd p = { .fd = signals.fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

OB_TEST(the_first_stop_drains_and_the_second_leaves_at_once)
{
	start();
	ob_signals_read(&signals);
	ck_assert_int_eq(signals.stop, OB_STOP_NO);
	ck_assert(!readable());
	ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
	ck_assert(readable());
	ob_signals_read(&signals);
	ck_assert_int_eq(signals.stop, OB_STOP_DRAIN);
	ck_assert(!readable());
	signals.stop_us -= 1000000; /* a second later */
	ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
	ob_signals_read(&signals);
	ck_assert_int_eq(signals.stop, OB_STOP_NOW);
	ck_assert_int_eq(kill(getpid(), SIGINT), 0);
	ob_signals_read(&signals);
	ck_assert_int_eq(signals.stop, OB_STOP_NOW);
	ob_signals_done(&signals);
}
OB_TEST_END

OB_TEST(an_interrupt_and_a_termination_count_together)
{
	start();
	ck_assert_int_eq(kill(getpid(), SIGINT), 0);
	ob_signals_read(&signals);
	signals.stop_us -= 1000000;
	ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
	ob_signals_read(&signals);
	ck_assert_int_eq(signals.stop, OB_STOP_NOW);
	ob_signals_done(&signals);
}
OB_TEST_END

/* timeout(1) sends one to the process and one to its group. */
OB_TEST(two_stops_within_a_second_are_one)
{
	start();
	ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
	ob_signals_read(&signals);
	ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
	ob_signals_read(&signals);
	ck_assert_int_eq(kill(getpid(), SIGINT), 0);
	ob_signals_read(&signals);
	ck_assert_int_eq(signals.stop, OB_STOP_DRAIN);
	ob_signals_done(&signals);
}
OB_TEST_END

OB_TEST(a_hangup_asks_for_a_reload_and_stops_nothing)
{
	start();
	ck_assert(!signals.reload);
	ck_assert_int_eq(kill(getpid(), SIGHUP), 0);
	ob_signals_read(&signals);
	ck_assert(signals.reload);
	ck_assert_int_eq(signals.stop, OB_STOP_NO);
	signals.reload = false;
	ob_signals_read(&signals);
	ck_assert(!signals.reload);
	ob_signals_done(&signals);
}
OB_TEST_END

OB_TEST(a_broken_pipe_is_an_error_not_the_end)
{
	int fds[2];

	start();
	ck_assert_int_eq(pipe(fds), 0);
	(void)close(fds[0]);
	ck_assert_int_eq(write(fds[1], "x", 1), -1);
	ck_assert_int_eq(errno, EPIPE);
	(void)close(fds[1]);
	ob_signals_done(&signals);
}
OB_TEST_END

static void *blocked_mask(void *arg)
{
	(void)pthread_sigmask(SIG_BLOCK, NULL, arg);
	return NULL;
}

OB_TEST(threads_started_later_do_not_take_the_signals)
{
	pthread_t thread;
	sigset_t mask;

	start();
	ck_assert_int_eq(pthread_create(&thread, NULL, blocked_mask, &mask), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(sigismember(&mask, SIGTERM), 1);
	ck_assert_int_eq(sigismember(&mask, SIGINT), 1);
	ck_assert_int_eq(sigismember(&mask, SIGHUP), 1);
	ck_assert_int_eq(sigismember(&mask, SIGSEGV), 0);
	ob_signals_done(&signals);
	ob_signals_done(&signals);
	ck_assert_int_eq(signals.fd, -1);
}
OB_TEST_END

OB_SUITE("signals", the_first_stop_drains_and_the_second_leaves_at_once,
	 an_interrupt_and_a_termination_count_together, two_stops_within_a_second_are_one,
	 a_hangup_asks_for_a_reload_and_stops_nothing, a_broken_pipe_is_an_error_not_the_end,
	 threads_started_later_do_not_take_the_signals)
