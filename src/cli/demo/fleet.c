/* SPDX-License-Identifier: MIT */
/* Workers as processes of this very program, and the mishaps that befall them. */
#include "cli/demo/demo.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>

enum {
	SECOND_US = 1000000,
	FIRST_US = 1500000, /* a quiet start, to see how it should be */
	EVERY_US = 900000,
	JITTER_US = 800000,
	PAUSE_US = 3500000, /* the lease is 2 s, and a worker may be as late as one more */
	BACK_US = 1500000,
	STOP_MS = 1000,
};

static int start_one(struct ob_demo_fleet *fleet, struct ob_err *err)
{
	static const char *const argv[] = { "outbox", "--config", "outbox.yaml", "work", NULL };
	struct ob_child_conf conf = {
		.program = "/proc/self/exe",
		.argv = argv,
		.dir = fleet->files->dir,
		.log = fleet->files->log,
	};
	struct ob_demo_process *process = &fleet->processes[fleet->count];

	if (fleet->count == OB_DEMO_PROCESSES)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "too many workers");
	*process = (struct ob_demo_process){ .role = OB_DEMO_WORKS };
	int r = ob_child_start(&process->child, &conf, err);
	if (r == 0)
		fleet->count++;
	return r;
}

int ob_demo_fleet_start(struct ob_demo_fleet *fleet, int64_t now_us, struct ob_err *err)
{
	int r = 0;

	fleet->next_us = now_us + FIRST_US;
	ob_rng_init_random(&fleet->rng);
	while (fleet->count < OB_DEMO_WORKERS && r == 0)
		r = start_one(fleet, err);
	return r;
}

static void remove_process(struct ob_demo_fleet *fleet, size_t index)
{
	fleet->count--;
	for (size_t i = index; i < fleet->count; i++)
		fleet->processes[i] = fleet->processes[i + 1];
}

static void kill_one(struct ob_demo_fleet *fleet, size_t index)
{
	struct ob_demo_process *process = &fleet->processes[index];

	(void)snprintf(fleet->news, sizeof(fleet->news), "kill -9 %d", (int)process->child.pid);
	ob_child_done(&process->child);
	fleet->killed++;
	remove_process(fleet, index);
}

/*
 * A process that is stopped inside a transaction keeps the database locked, for the shop
 * too. That is how SQLite is, but it shows nothing about leases: so hold both locks
 * while it is stopped.
 */
static void pause_one(struct ob_demo_fleet *fleet, size_t index, int64_t now_us)
{
	struct ob_demo_process *process = &fleet->processes[index];
	struct ob_err err = OB_ERR_INIT;
	OB_AUTOCLOSE int fd = open(fleet->files->events, O_RDONLY | O_CLOEXEC);

	if (ob_store_tx_begin(fleet->store, &err) == 0) {
		if (fd < 0 || flock(fd, LOCK_EX) == 0)
			ob_child_signal(&process->child, SIGSTOP);
		if (ob_child_wait_stop(&process->child, STOP_MS)) {
			process->role = OB_DEMO_PAUSED;
			process->until_us = now_us + PAUSE_US;
			fleet->paused++;
			(void)snprintf(fleet->news, sizeof(fleet->news), "kill -STOP %d",
				       (int)process->child.pid);
		}
	}
	(void)ob_store_tx_end(fleet->store, false, &err);
}

/* To one of those that work; a fresh one takes its place. */
static int mishap(struct ob_demo_fleet *fleet, int64_t now_us, struct ob_err *err)
{
	size_t candidates[OB_DEMO_PROCESSES], count = 0;

	for (size_t i = 0; i < fleet->count; i++) {
		if (fleet->processes[i].role == OB_DEMO_WORKS)
			candidates[count++] = i;
	}
	if (count == 0 || fleet->count + 1 >= OB_DEMO_PROCESSES)
		return 0;
	size_t victim = candidates[ob_rng_below(&fleet->rng, count)];
	/* kill first, then in turns and by chance */
	bool killing = fleet->killed == 0 || (fleet->paused > 0 && ob_rng_below(&fleet->rng, 2));

	if (killing)
		kill_one(fleet, victim);
	else
		pause_one(fleet, victim, now_us);
	return start_one(fleet, err);
}

static int ended(const struct ob_demo_fleet *fleet, const struct ob_demo_process *process,
		 struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
			  "worker %d ended by itself with %s %d; its log is in '%s'",
			  (int)process->child.pid, process->child.code < 0 ? "signal" : "code",
			  process->child.code < 0 ? -process->child.code : process->child.code,
			  fleet->files->log);
}

/* 1: it is gone, as it should. */
static int tick_one(struct ob_demo_fleet *fleet, struct ob_demo_process *process, int64_t now_us,
		    struct ob_err *err)
{
	bool over = ob_child_look(&process->child) == OB_CHILD_ENDED;

	if (over && (process->role != OB_DEMO_LEAVES || process->child.code != 0))
		return ended(fleet, process, err);
	if (over)
		return 1;
	if (process->role == OB_DEMO_PAUSED && now_us >= process->until_us) {
		ob_child_signal(&process->child, SIGCONT);
		process->role = OB_DEMO_RESUMED;
		process->until_us = now_us + BACK_US;
		(void)snprintf(fleet->news, sizeof(fleet->news), "kill -CONT %d",
			       (int)process->child.pid);
	} else if (process->role == OB_DEMO_RESUMED && now_us >= process->until_us) {
		ob_child_signal(&process->child, SIGTERM);
		process->role = OB_DEMO_LEAVES;
	}
	return 0;
}

int ob_demo_fleet_tick(struct ob_demo_fleet *fleet, int64_t now_us, struct ob_err *err)
{
	for (size_t i = fleet->count; i-- > 0;) {
		int r = tick_one(fleet, &fleet->processes[i], now_us, err);

		if (r < 0)
			return r;
		if (r > 0)
			remove_process(fleet, i);
	}
	if (!fleet->chaos || now_us < fleet->next_us)
		return 0;
	fleet->next_us = now_us + EVERY_US + (int64_t)ob_rng_below(&fleet->rng, JITTER_US);
	return mishap(fleet, now_us, err);
}

void ob_demo_fleet_calm(struct ob_demo_fleet *fleet)
{
	fleet->chaos = false;
	for (size_t i = 0; i < fleet->count; i++) {
		if (fleet->processes[i].role == OB_DEMO_PAUSED)
			fleet->processes[i].until_us = 0;
	}
}

int ob_demo_fleet_stop(struct ob_demo_fleet *fleet, int timeout_ms, struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < fleet->count; i++) {
		ob_child_signal(&fleet->processes[i].child, SIGCONT);
		if (fleet->processes[i].role != OB_DEMO_LEAVES)
			ob_child_signal(&fleet->processes[i].child, SIGTERM);
		fleet->processes[i].role = OB_DEMO_LEAVES;
	}
	for (size_t i = 0; i < fleet->count && r == 0; i++) {
		struct ob_child *child = &fleet->processes[i].child;

		if (!ob_child_wait_end(child, timeout_ms))
			r = ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				       "worker %d did not stop; its log is in '%s'",
				       (int)child->pid, fleet->files->log);
		else if (child->code != 0)
			r = ended(fleet, &fleet->processes[i], err);
	}
	ob_demo_fleet_done(fleet);
	return r;
}

void ob_demo_fleet_done(struct ob_demo_fleet *fleet)
{
	for (size_t i = 0; i < fleet->count; i++)
		ob_child_done(&fleet->processes[i].child);
	fleet->count = 0;
}
