/* SPDX-License-Identifier: MIT */
/* Who takes over, how fast, and what a worker may do that comes back after it lost its lease. */
#include "rig.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

enum { WRITES = 60, PACES = 20 /* transactions that a takeover or a restart may wait for */ };

static struct rig rig;
static struct ob_child first, second;

static void write_some(int count)
{
	for (int i = 0; i < count; i++)
		rig_write(&rig);
}

/* ---- back from a pause ------------------------------------------------- */

/*
 * A worker that stopped itself at that point. All its threads stop with it, and one that
 * renews leases may hold the write lock just then: nobody could take over from that
 * one, so it is another story, and we try again.
 */
static void start_paused(const char *fault)
{
	for (int tries = 1;; tries++) {
		rig_init(&rig, fault, 7);
		rig_start(&rig, &first, fault, "first.log");
		rig_until(&rig, rig_leased(&rig, first.pid) == RIG_PARTITIONS, RIG_SOON_MS);
		for (int i = 0; i < WRITES && rig_try_write(&rig); i++)
			;
		ck_assert_msg(ob_child_wait_stop(&first, RIG_SOON_MS), "%s never fired", fault);
		if (!rig_locked(&rig))
			return;
		ck_assert_msg(tries < 5, "%s: it always stops with the lock in its hands", fault);
		ob_child_signal(&first, SIGKILL);
		ck_assert(ob_child_wait_end(&first, RIG_SOON_MS));
		rig_done(&rig);
	}
}

/*
 * It stops itself at that point, with messages in its hands; another delivers
 * everything; then it goes on. What it does then must leave no trace in the rows.
 */
static void pause_at(const char *fault, const char *says)
{
	start_paused(fault);
	rig.crashes++;
	rig_start(&rig, &second, NULL, "second.log");
	write_some(WRITES);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
	ck_assert_int_eq(ob_child_look(&first), OB_CHILD_STOPPED);

	char *before = rig_rows(&rig);
	ob_child_signal(&first, SIGCONT);
	rig_expect_log(&rig, "first.log", says, RIG_SOON_MS);
	rig_stop(&rig, &first);
	char *after = rig_rows(&rig);
	ck_assert_str_eq(before, after);
	free(before);
	free(after);

	write_some(WRITES);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
	rig_stop(&rig, &second);
	rig_audit(&rig);
	rig_done(&rig);
}

OB_TEST(a_worker_paused_before_its_takeover_changes_nothing_when_it_resumes)
{
	pause_at("take_over.before:1:stop", "leases lost");
}
OB_TEST_END

OB_TEST(a_worker_paused_after_its_takeover_changes_nothing_when_it_resumes)
{
	pause_at("take_over.after:1:stop", "leases lost");
}
OB_TEST_END

OB_TEST(a_worker_paused_before_it_reads_changes_nothing_when_it_resumes)
{
	pause_at("read.before:2:stop", "leases lost");
}
OB_TEST_END

OB_TEST(a_worker_paused_before_it_sends_changes_nothing_when_it_resumes)
{
	pause_at("read.after:1:stop", "leases lost");
}
OB_TEST_END

OB_TEST(a_worker_paused_between_two_sends_changes_nothing_when_it_resumes)
{
	pause_at("send.after:3:stop", "leases lost");
}
OB_TEST_END

OB_TEST(a_worker_paused_behind_the_acknowledgement_changes_nothing_when_it_resumes)
{
	pause_at("poll.after:2:stop", "leases lost");
}
OB_TEST_END

OB_TEST(a_worker_paused_before_its_settle_changes_nothing_when_it_resumes)
{
	pause_at("settle.before:2:stop", "leases lost");
}
OB_TEST_END

/*
 * Inside a transaction, with locks on what it changes. SQLite's lock cannot be taken from it;
 * servers end a transaction in which nothing happens. Heartbeats and renewals take turns, so
 * of two neighbours one is a renewal, which locks the leases.
 */
OB_TEST(a_worker_frozen_inside_a_transaction_keeps_nobody_out_for_long)
{
	static const char *const faults[] = { "store.before_commit:20:stop",
					      "store.before_commit:21:stop" };
	static struct rig rigs[2];
	struct ob_child frozen[2], heir[2];

	if (!rig_place()->concurrent) {
		(void)printf(
			"# N/A a worker frozen inside a transaction: SQLite's lock stays its\n");
		return;
	}
	for (int i = 0; i < 2; i++) {
		rig_init(&rigs[i], faults[i], 7);
		rig_start(&rigs[i], &frozen[i], faults[i], "frozen.log");
	}
	for (int i = 0; i < 2; i++) {
		ck_assert_msg(ob_child_wait_stop(&frozen[i], RIG_SOON_MS), "%s never fired",
			      faults[i]);
		rigs[i].crashes++;
		rig_start(&rigs[i], &heir[i], NULL, "heir.log");
		for (int k = 0; k < WRITES; k++)
			rig_write(&rigs[i]);
	}
	for (int i = 0; i < 2; i++) {
		rig_until(&rigs[i], rig_waiting(&rigs[i]) == 0, RIG_SOON_MS);
		rig_until(&rigs[i], rig_leased(&rigs[i], heir[i].pid) == RIG_PARTITIONS,
			  RIG_SOON_MS);
		ck_assert_int_eq(ob_child_look(&frozen[i]), OB_CHILD_STOPPED);
		ob_child_signal(&frozen[i], SIGCONT);
		rig_expect_log(&rigs[i], "frozen.log", "leases lost", RIG_SOON_MS);
		rig_stop(&rigs[i], &frozen[i]);
		rig_stop(&rigs[i], &heir[i]);
		rig_audit(&rigs[i]);
		rig_done(&rigs[i]);
	}
}
OB_TEST_END

/* ---- how fast ----------------------------------------------------------- */

static void two_workers(const char *name)
{
	rig_init(&rig, name, 1);
	rig_start(&rig, &first, NULL, "first.log");
	rig_start(&rig, &second, NULL, "second.log");
	rig_until(&rig,
		  rig_leased(&rig, first.pid) == RIG_PARTITIONS / 2 &&
			  rig_leased(&rig, second.pid) == RIG_PARTITIONS / 2,
		  RIG_SOON_MS);
	write_some(WRITES);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
}

/* How long until the other has everything, and what was written meanwhile is out; less what the
 * disk is slow by. */
static int takeover_ms(int64_t since_ms)
{
	int pace_ms = rig_pace_ms(&rig);

	rig_until(&rig, rig_leased(&rig, second.pid) == RIG_PARTITIONS, RIG_SOON_MS);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);

	int took_ms = (int)(rig_now_ms() - since_ms) - PACES * pace_ms;

	rig_stop(&rig, &second);
	rig_audit(&rig);
	rig_done(&rig);
	return took_ms;
}

static int takeover_after_kill_ms(void)
{
	two_workers("kill");
	ob_child_signal(&first, SIGKILL);
	ck_assert(ob_child_wait_end(&first, RIG_SOON_MS));
	int64_t since_ms = rig_now_ms();
	rig.crashes++;
	write_some(WRITES / 2);
	return takeover_ms(since_ms);
}

static int takeover_after_stop_ms(void)
{
	two_workers("stop");
	write_some(WRITES / 2);
	rig_stop(&rig, &first);
	return takeover_ms(rig_now_ms());
}

/* A machine that is busy with something else may be slow, but not four times in a row. */
static void within(int (*measure)(void), int limit_ms)
{
	int took_ms = measure();

	for (int more = 3; more > 0 && took_ms > limit_ms; more--)
		took_ms = measure();
	ck_assert_msg(took_ms <= limit_ms, "it took %d ms, allowed are %d", took_ms, limit_ms);
}

OB_TEST(after_a_kill_the_other_takes_over_within_the_lease_and_a_second)
{
	within(takeover_after_kill_ms, RIG_LEASE_MS + 1000);
}
OB_TEST_END

/*
 * Nobody waits for a lease that the dead one's connection no longer stands for: until a message of
 * each partition that it had is out. Leases last so long here that it cannot be their end.
 */
static int first_messages_after_kill_ms(void)
{
	rig_extra.lease_ms = 30000;
	two_workers("kill, direct connection");
	write_some(WRITES);
	ob_child_signal(&first, SIGKILL);
	int64_t since_ms = rig_now_ms();
	ck_assert(ob_child_wait_end(&first, RIG_SOON_MS));
	rig.crashes++;
	write_some(WRITES);
	return takeover_ms(since_ms);
}

OB_TEST(after_a_kill_messages_flow_again_within_two_seconds)
{
	if (!rig_place()->concurrent) {
		(void)printf("# N/A a takeover at once: SQLite has no connection to lose\n");
		return;
	}
	within(first_messages_after_kill_ms, 2000);
}
OB_TEST_END

OB_TEST(after_a_stop_the_other_takes_over_within_half_a_second)
{
	within(takeover_after_stop_ms, 500);
}
OB_TEST_END

/* ---- a clock that is set back -------------------------------------------- */

/* As the tables look when the database's clock has been set back by an hour. */
static void set_clock_back(void)
{
	const char *half = rig_place()->half_hour;
	char sql[320];

	(void)snprintf(sql, sizeof(sql),
		       "UPDATE outbox_leases SET lease_until = lease_until + %s + %s; "
		       "UPDATE outbox_workers SET heartbeat_until = heartbeat_until + %s + %s",
		       half, half, half, half);
	rig_place()->run(rig.url, sql);
}

static int64_t leased_for_long(void)
{
	char sql[256];

	(void)snprintf(sql, sizeof(sql),
		       "SELECT count(*) FROM outbox_leases WHERE lease_until > "
		       "(SELECT max(at) FROM outbox_batches) + %s",
		       rig_place()->half_hour);
	return rig_place()->number(rig.url, sql);
}

static void end_with(struct ob_child *heir)
{
	rig_until(&rig, rig_leased(&rig, heir->pid) == RIG_PARTITIONS, RIG_SOON_MS);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
	rig_stop(&rig, heir);
	rig_audit(&rig);
	rig_done(&rig);
}

OB_TEST(a_clock_set_back_does_not_stop_who_works)
{
	two_workers("clock back, alive");
	set_clock_back();
	write_some(WRITES);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
	/* by now both have renewed, and the one that dies leaves nothing behind for an hour */
	rig_until(&rig, leased_for_long() == 0, RIG_SOON_MS);
	ob_child_signal(&first, SIGKILL);
	ck_assert(ob_child_wait_end(&first, RIG_SOON_MS));
	rig.crashes++;
	write_some(WRITES);
	end_with(&second);
}
OB_TEST_END

/* It was away when the clock was set back, and stays so: its leases last for an hour more. */
OB_TEST(leases_of_a_worker_that_is_away_can_be_freed_after_the_clock_was_set_back)
{
	static const char *const words[] = { "partitions", "free",  "--all", "--reader",
					     "default",    "--yes", NULL };
	struct ob_child command;

	two_workers("clock back, away");
	rig_pause(&rig, &first);
	rig.crashes++;
	set_clock_back();
	write_some(WRITES);
	rig_start_command(&rig, &command, words, "free.log");
	ck_assert(ob_child_wait_end(&command, RIG_SOON_MS));
	ck_assert_msg(command.code == 0, "%s", rig_tail(&rig, "free.log"));
	rig.crashes++; /* the other one was working */
	rig_until(&rig, rig_leased(&rig, second.pid) == RIG_PARTITIONS, RIG_SOON_MS);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
	/* and it can change nothing when it is back */
	char *before = rig_rows(&rig);
	ob_child_signal(&first, SIGCONT);
	rig_expect_log(&rig, "first.log", "leases lost", RIG_SOON_MS);
	rig_stop(&rig, &first);
	char *after = rig_rows(&rig);
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
	end_with(&second);
}
OB_TEST_END

/* ---- another number of partitions ---------------------------------------- */

OB_TEST(a_resize_under_load_strands_reorders_and_repeats_nothing)
{
	static const struct {
		const char *words[4];
		uint32_t count;
	} sizes[] = {
		{ { "partitions", "resize", "5" }, 5 },
		{ { "partitions", "resize", "64" }, 64 },
		{ { "partitions", "resize", "16" }, 16 },
	};
	struct ob_child resize;

	two_workers("resize");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		rig_start_command(&rig, &resize, sizes[i].words, "resize.log");
		while (ob_child_look(&resize) != OB_CHILD_ENDED) {
			rig_write(&rig);
			rig_breathe(); /* leases of a second need a turn at the lock */
		}
		ck_assert_int_eq(resize.code, 0);
		/* and they share again */
		rig_until(&rig,
			  rig_leased(&rig, 0) == sizes[i].count &&
				  rig_leased(&rig, first.pid) >= sizes[i].count / 2 &&
				  rig_leased(&rig, second.pid) >= sizes[i].count / 2,
			  RIG_SOON_MS);
	}
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
	rig_stop(&rig, &first);
	rig_stop(&rig, &second);
	rig_audit(&rig); /* nothing crashed: no message may have come twice */
	rig_done(&rig);
}
OB_TEST_END

/* ---- a sink that is away ------------------------------------------------ */

static void allow_files(const struct ob_child *child, rlim_t soft)
{
	struct rlimit limit;

	ck_assert_int_eq(prlimit(child->pid, RLIMIT_NOFILE, NULL, &limit), 0);
	limit.rlim_cur = soft ? soft : limit.rlim_max;
	ck_assert_int_eq(prlimit(child->pid, RLIMIT_NOFILE, &limit, NULL), 0);
}

/*
 * The file is moved away, as a log rotation does, and the process may open no other: the
 * sink is down. Everything that was already open, the database, still works.
 */
OB_TEST(a_sink_that_is_down_charges_nothing_and_resumes_within_two_seconds)
{
	char moved[128];
	int64_t end_ms;

	rig_init(&rig, "down", 3);
	(void)snprintf(moved, sizeof(moved), "%s/moved.ndjson", rig.dir);
	rig_start(&rig, &first, NULL, "first.log");
	write_some(WRITES);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
	uint64_t published = rig_count(&rig, OB_VIEW_PUBLISHED);
	unsigned long attempts = rig_attempts(&rig);
	allow_files(&first, 3);
	ck_assert_int_eq(rename(rig.events, moved), 0);

	end_ms = rig_now_ms() + 4000;
	write_some(WRITES);
	int pace_ms = rig_pace_ms(&rig);
	rig_expect_log(&rig, "first.log", "sink is down", RIG_SOON_MS);
	while (rig_now_ms() < end_ms)
		rig_breathe();
	ck_assert_int_eq(ob_child_look(&first), OB_CHILD_RUNS);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), published);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PENDING), rig_waiting(&rig));
	ck_assert_uint_gt(rig_waiting(&rig), 0);
	ck_assert_uint_eq(rig_attempts(&rig), attempts);

	allow_files(&first, 0);
	rig_until(&rig, rig_waiting(&rig) == 0, 2000 + PACES * pace_ms);
	rig_stop(&rig, &first);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 0);
	(void)snprintf(rig.older, sizeof(rig.older), "%s", moved);
	rig_audit(&rig);
	rig_done(&rig);
}
OB_TEST_END

RIG_SUITE("crash_lease", a_worker_paused_before_its_takeover_changes_nothing_when_it_resumes,
	  a_worker_paused_after_its_takeover_changes_nothing_when_it_resumes,
	  a_worker_paused_before_it_reads_changes_nothing_when_it_resumes,
	  a_worker_paused_before_it_sends_changes_nothing_when_it_resumes,
	  a_worker_paused_between_two_sends_changes_nothing_when_it_resumes,
	  a_worker_paused_behind_the_acknowledgement_changes_nothing_when_it_resumes,
	  a_worker_paused_before_its_settle_changes_nothing_when_it_resumes,
	  a_worker_frozen_inside_a_transaction_keeps_nobody_out_for_long,
	  a_resize_under_load_strands_reorders_and_repeats_nothing,
	  a_clock_set_back_does_not_stop_who_works,
	  leases_of_a_worker_that_is_away_can_be_freed_after_the_clock_was_set_back,
	  after_a_kill_the_other_takes_over_within_the_lease_and_a_second,
	  after_a_kill_messages_flow_again_within_two_seconds,
	  after_a_stop_the_other_takes_over_within_half_a_second,
	  a_sink_that_is_down_charges_nothing_and_resumes_within_two_seconds)
