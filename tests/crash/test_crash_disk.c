/* SPDX-License-Identifier: MIT */
/*
 * A database server whose disk is full: producers get an error, nobody is lost or charged,
 * and once there is room again the worker goes on by itself. The tables live in a small
 * filesystem in memory, in a mount namespace of this program alone.
 */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

enum { WRITES = 40, TRIES = 20000 };

static char volume[] = "/tmp/outbox-volume.XXXXXX";

/* True when there is one. */
static bool make_volume(void)
{
	if (!mkdtemp(volume) || unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", volume, "tmpfs", 0, "size=32m,mode=0700") < 0)
		return false;
	rig_volume = volume;
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

OB_TEST(a_full_disk_of_the_server_costs_nothing_but_time)
{
	static struct rig rig;
	struct ob_child worker;
	struct ob_err err = OB_ERR_INIT;
	char filler[96];
	int tries = 0;

	if (!rig_volume) {
		(void)printf("# N/A a full disk: mounting is not permitted here\n");
		return;
	}
	(void)snprintf(filler, sizeof(filler), "%s/filler", volume);
	rig_init(&rig, "full disk", 5);
	rig_start(&rig, &worker, NULL, "worker.log");
	for (int i = 0; i < WRITES; i++)
		rig_write(&rig);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
	fill(filler);
	while (shop_step(&rig.shop, RIG_SOON_MS, &err) == 0)
		ck_assert_msg(++tries < TRIES, "the disk is never full");
	ck_assert_msg(err.kind == OB_ERR_DOWN, "%s", err.msg);
	ck_assert_int_eq(ob_child_look(&worker), OB_CHILD_RUNS);

	ck_assert_int_eq(unlink(filler), 0);
	for (int i = 0; i < WRITES; i++)
		rig_write(&rig);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
	rig_stop(&rig, &worker);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	rig.crashes++; /* a settle may have failed behind the confirmation */
	rig_audit(&rig);
	rig_done(&rig);
}
OB_TEST_END

int main(int argc, char **argv)
{
	const TTest *const tests[] = { a_full_disk_of_the_server_costs_nothing_but_time };

	(void)make_volume();
	int r = rig_suite_run("crash_disk", tests, 1, argc > 1 ? argv[1] : NULL);
	if (rig_volume)
		(void)umount2(volume, MNT_DETACH);
	(void)rmdir(volume);
	return r;
}
