/* SPDX-License-Identifier: MIT */
/*
 * Killed at every named point: a worker passes it for the n-th time and is
 * gone, another takes over, and nothing may be lost. A point that does not
 * fire is a failure. Many run at once, since most of the time is spent waiting for leases.
 */
#include "relay/faultpoints.h"
#include "rig.h"

#include <signal.h>
#include <stdio.h>

enum { RIGS_MAX = 12, WRITES_MAX = 400, WRITES_MIN = 20 };

/* What makes a worker pass the point. */
enum trigger {
	BY_WORK, /* messages, or time */
	BY_STOP, /* SIGTERM after a while */
	BY_JOIN, /* another worker that wants its share */
};

struct point {
	const char *name;
	enum trigger trigger;
	unsigned nth[3]; /* 0: not used */
};

static const struct point points[] = {
	{ OB_FAULT_TAKE_OVER_BEFORE, BY_WORK, { 1, 0, 0 } },
	{ OB_FAULT_TAKE_OVER_AFTER, BY_WORK, { 1, 0, 0 } },
	{ OB_FAULT_READ_BEFORE, BY_WORK, { 1, 2, 9 } },
	{ OB_FAULT_READ_AFTER, BY_WORK, { 1, 3, 9 } },
	{ OB_FAULT_SEND_BEFORE, BY_WORK, { 1, 2, 33 } },
	{ OB_FAULT_SEND_AFTER, BY_WORK, { 1, 2, 33 } },
	{ OB_FAULT_POLL_AFTER, BY_WORK, { 1, 2, 7 } },
	{ OB_FAULT_SETTLE_BEFORE, BY_WORK, { 1, 2, 7 } },
	{ OB_FAULT_SETTLE_AFTER, BY_WORK, { 1, 2, 7 } },
	{ OB_FAULT_LEASE_BEAT_BEFORE, BY_WORK, { 1, 2, 0 } },
	{ OB_FAULT_LEASE_RENEW_BEFORE, BY_WORK, { 1, 2, 4 } },
	{ OB_FAULT_LEASE_RENEW_AFTER, BY_WORK, { 1, 2, 4 } },
	{ OB_FAULT_LEASE_TAKE_BEFORE, BY_WORK, { 1, 0, 0 } },
	{ OB_FAULT_LEASE_TAKE_AFTER, BY_WORK, { 1, 0, 0 } },
	{ OB_FAULT_RELEASE_BEFORE, BY_JOIN, { 1, 0, 0 } },
	{ OB_FAULT_RELEASE_AFTER, BY_JOIN, { 1, 0, 0 } },
	{ OB_FAULT_LEAVE_BEFORE, BY_STOP, { 1, 0, 0 } },
	{ OB_FAULT_LEAVE_AFTER, BY_STOP, { 1, 0, 0 } },
	{ "store.before_commit", BY_WORK, { 2, 5, 12 } },
	{ "store.after_commit", BY_WORK, { 1, 5, 12 } },
	{ "file.before_sync", BY_WORK, { 1, 2, 7 } },
	{ "file.after_sync", BY_WORK, { 1, 2, 7 } },
};
enum { POINTS = sizeof(points) / sizeof(points[0]) };

struct run {
	struct rig rig;
	const struct point *point;
	struct ob_child victim, heir;
	int64_t start_ms;
	unsigned writes;
	bool triggered;
	bool fired;
	bool over;
};

static void begin(struct run *run, const struct point *point, unsigned nth)
{
	char fault[64];

	*run = (struct run){ .point = point, .start_ms = rig_now_ms() };
	(void)snprintf(fault, sizeof(fault), "%s:%u:kill", point->name, nth);
	rig_init(&run->rig, fault, nth);
	rig_start(&run->rig, &run->victim, fault, "victim.log");
}

static void trigger(struct run *run)
{
	if (run->triggered || run->writes < WRITES_MIN ||
	    rig_leased(&run->rig, run->victim.pid) < RIG_PARTITIONS)
		return;
	run->triggered = true;
	if (run->point->trigger == BY_STOP)
		ob_child_signal(&run->victim, SIGTERM);
	else if (run->point->trigger == BY_JOIN)
		rig_start(&run->rig, &run->heir, NULL, "heir.log");
}

/* The shop goes on while the victim lives, and for a while after. */
static void before(struct run *run)
{
	if (run->writes < WRITES_MAX) {
		rig_write(&run->rig);
		run->writes++;
	}
	if (run->point->trigger != BY_WORK)
		trigger(run);
	if (ob_child_look(&run->victim) != OB_CHILD_ENDED) {
		ck_assert_msg(rig_now_ms() < run->start_ms + RIG_SOON_MS, "%s never fired:\n%s",
			      run->rig.name, rig_tail(&run->rig, "victim.log"));
		return;
	}
	ck_assert_msg(run->victim.code == -SIGKILL, "%s: it ended with %d instead:\n%s",
		      run->rig.name, run->victim.code, rig_tail(&run->rig, "victim.log"));
	run->fired = true;
	run->rig.crashes++;
	if (run->heir.state == OB_CHILD_NONE)
		rig_start(&run->rig, &run->heir, NULL, "heir.log");
	for (; run->writes < WRITES_MIN; run->writes++)
		rig_write(&run->rig);
	run->start_ms = rig_now_ms();
}

static void after(struct run *run)
{
	if (rig_waiting(&run->rig) > 0) {
		ck_assert_msg(rig_now_ms() < run->start_ms + RIG_SOON_MS,
			      "%s: %u are still waiting:\n%s", run->rig.name,
			      (unsigned)rig_waiting(&run->rig), rig_tail(&run->rig, "heir.log"));
		return;
	}
	rig_stop(&run->rig, &run->heir);
	rig_audit(&run->rig);
	rig_done(&run->rig);
	run->over = true;
}

static void run_all(struct run *runs, size_t count)
{
	size_t left = count;

	while (left > 0) {
		left = count;
		for (size_t i = 0; i < count; i++) {
			if (runs[i].over)
				left--;
			else if (runs[i].fired)
				after(&runs[i]);
			else
				before(&runs[i]);
		}
		rig_breathe();
	}
}

/* The points first..last-1 with every n, a handful at a time. */
static void kill_at(size_t first, size_t last)
{
	static struct run runs[RIGS_MAX];
	size_t count = 0;

	for (size_t i = first; i < last; i++) {
		/* On a server, where each takes longer, one number of each point: one in the midst.
		 */
		size_t only = rig_place()->concurrent ? points[i].nth[1] != 0 : 3;

		for (size_t k = 0; k < 3; k++) {
			if (points[i].nth[k] == 0 || (only < 3 && k != only))
				continue;
			begin(&runs[count++], &points[i], points[i].nth[k]);
			if (count == RIGS_MAX) {
				run_all(runs, count);
				count = 0;
			}
		}
	}
	run_all(runs, count);
}

static size_t index_of(const char *name)
{
	size_t i = 0;

	while (i < POINTS && strcmp(points[i].name, name) != 0)
		i++;
	return i;
}

OB_TEST(every_point_of_the_relay_is_in_the_table)
{
#define X(symbol, name, text) ck_assert_msg(index_of(name) < POINTS, "%s is not tested", name);
	OB_FAULT_POINT_MAP(X)
#undef X
}
OB_TEST_END

OB_TEST(a_kill_while_messages_are_sent_loses_nothing)
{
	kill_at(index_of(OB_FAULT_TAKE_OVER_BEFORE), index_of(OB_FAULT_SETTLE_BEFORE));
}
OB_TEST_END

OB_TEST(a_kill_while_outcomes_are_settled_loses_nothing)
{
	kill_at(index_of(OB_FAULT_SETTLE_BEFORE), index_of(OB_FAULT_LEASE_BEAT_BEFORE));
}
OB_TEST_END

OB_TEST(a_kill_while_leases_are_kept_loses_nothing)
{
	kill_at(index_of(OB_FAULT_LEASE_BEAT_BEFORE), index_of(OB_FAULT_RELEASE_BEFORE));
}
OB_TEST_END

OB_TEST(a_kill_while_partitions_are_given_back_loses_nothing)
{
	kill_at(index_of(OB_FAULT_RELEASE_BEFORE), index_of("store.before_commit"));
}
OB_TEST_END

OB_TEST(a_kill_around_the_commit_or_the_sync_loses_nothing)
{
	kill_at(index_of("store.before_commit"), POINTS);
}
OB_TEST_END

RIG_SUITE("crash_points", every_point_of_the_relay_is_in_the_table,
	  a_kill_while_messages_are_sent_loses_nothing,
	  a_kill_while_outcomes_are_settled_loses_nothing,
	  a_kill_while_leases_are_kept_loses_nothing,
	  a_kill_while_partitions_are_given_back_loses_nothing,
	  a_kill_around_the_commit_or_the_sync_loses_nothing)
