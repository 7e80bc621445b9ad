/* SPDX-License-Identifier: MIT */
/*
 * A database whose disk is full: producers get an error, the worker says that it cannot settle, no
 * message is lost or charged, and once there is room again the worker goes on by itself. The tables
 * live in a small filesystem in memory, in a mount namespace of this program alone.
 */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

enum { WRITES = 40, BACKLOG = 500, TRIES = 20000 };

static char volume[] = "/tmp/outbox-volume.XXXXXX";

/* True when there is one. */
static bool make_volume(void)
{
	if (!mkdtemp(volume) || unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", volume, "tmpfs", 0, "size=32m,mode=0700") < 0)
		return false;
	rig_extra.volume = volume;
	return true;
}

/* Take all room that is left. */
static void fill(const char *path)
{
	static const char block[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	ck_assert_int_eq(errno, ENOSPC);
	ck_assert_int_eq(close(fd), 0);
}

static struct rig rig;
static struct ob_child worker;
static char filler[96];

static void begin(const char *name)
{
	(void)snprintf(filler, sizeof(filler), "%s/filler", volume);
	rig_init(&rig, name, 5);
	rig_start(&rig, &worker, NULL, "worker.log");
	for (int i = 0; i < WRITES; i++)
		rig_write(&rig);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
}

/*
 * One line: what failed, what comes next, and what to do about it. Whichever write finds no room
 * first says it: a settle, or a heartbeat; a worker that cannot renew its leases sends nothing, and
 * so has nothing to settle.
 */
static bool has_said_so(void)
{
	char *log = rig_file(&rig, "worker.log"), *rest, *line;
	bool said = false;

	for (line = strtok_r(log, "\n", &rest); line && !said; line = strtok_r(NULL, "\n", &rest))
		said = (strstr(line, "store failed for the leases, trying again") ||
			(strstr(line, "store failed, trying again") &&
			 strstr(line, "doing=settling"))) &&
		       strstr(line, "free some disk space");
	free(log);
	return said;
}

/* ---- who starts the server again ---------------------------------------- */

/* MariaDB crashes when it finds no room for a rollback. */
static atomic_bool is_down, has_room, closing;
static atomic_uint revived;

static void *guard(void *arg)
{
	bool (*crashed)(void) = rig_place()->crashed;

	(void)arg;
	while (!atomic_load(&closing)) {
		if (crashed && crashed()) {
			atomic_store(&is_down, true);
			if (atomic_load(&has_room)) {
				rig_place()->again();
				(void)atomic_fetch_add(&revived, 1);
				atomic_store(&is_down, false);
			}
		}
		rig_breathe();
	}
	return NULL;
}

/* ---- the disk ------------------------------------------------------------ */

static void make_room(void)
{
	(void)unlink(filler);
	atomic_store(&has_room, true);
}

static void take_room(void)
{
	atomic_store(&has_room, false);
	fill(filler);
}

/* Nothing waits; asked once, of a server that may be away. */
static bool is_drained(void)
{
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_err err = OB_ERR_INIT;
	struct ob_stats *stats;
	size_t count;
	int64_t now;
	bool drained =
		ob_store_stats(rig.store, "default", 1, &arena, &stats, &count, &now, &err) == 0 &&
		count == 1 && stats->count[OB_VIEW_PENDING] == 0;

	ob_arena_done(&arena);
	return drained;
}

/* Much to settle, and no room for it. */
static void fill_behind_the_worker(void)
{
	make_room();
	rig_pause(&rig, &worker);
	rig.crashes++;
	for (int i = 0; i < BACKLOG; i++)
		rig_write(&rig);
	take_room();
	ob_child_signal(&worker, SIGCONT);
	rig_until(&rig, has_said_so() || atomic_load(&is_down) || is_drained(), RIG_SOON_MS);
}

/* Nobody can write: they are told so, or that their commit failed. The worker is paused, so that
 * no server crashes at the moment of a commit, of which then nobody could tell. */
static void expect_full(void)
{
	uint64_t committed = rig.books.journal.committed;

	ob_child_signal(&worker, SIGSTOP);
	ck_assert(ob_child_wait_stop(&worker, RIG_SOON_MS));
	for (int refused = 0, tries = 0; refused < WRITES; tries++) {
		ck_assert_msg(tries < TRIES, "the disk is never full");
		refused = rig_try_write(&rig) && rig.books.journal.committed > committed
				  ? 0
				  : refused + 1;
		committed = rig.books.journal.committed;
	}
	ob_child_signal(&worker, SIGCONT);
}

OB_TEST(a_worker_whose_disk_is_full_says_so_and_goes_on_when_there_is_room)
{
	if (!rig_extra.volume) {
		(void)printf("# SKIP a full disk: mounting is not permitted here\n");
		return;
	}
	/* Ours, so that we see when it crashes. */
	const char *missing = rig_place()->start();
	pthread_t guardian;
	ck_assert_msg(!missing, "%s", missing);
	atomic_store(&has_room, true);
	ck_assert_int_eq(pthread_create(&guardian, NULL, guard, NULL), 0);
	begin("full disk");
	/* What was free inside the files may be enough at first. */
	while (!has_said_so())
		fill_behind_the_worker();
	expect_full();
	make_room();
	for (int i = 0; i < WRITES; i++)
		rig_write(&rig);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
	ck_assert_int_eq(ob_child_look(&worker), OB_CHILD_RUNS);
	rig_stop(&rig, &worker);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	rig.crashes += atomic_load(&revived);
	rig_audit(&rig);
	rig_done(&rig);
	atomic_store(&closing, true);
	ck_assert_int_eq(pthread_join(guardian, NULL), 0);
	rig_place()->stop();
}
OB_TEST_END

int main(int argc, char **argv)
{
	const TTest *const tests[] = {
		a_worker_whose_disk_is_full_says_so_and_goes_on_when_there_is_room
	};

	(void)make_volume();
	int r = rig_suite_run("crash_disk", tests, 1, argc > 1 ? argv[1] : NULL);
	if (rig_extra.volume)
		(void)umount2(volume, MNT_DETACH);
	(void)rmdir(volume);
	return r;
}
