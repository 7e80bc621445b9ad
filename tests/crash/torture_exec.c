/* SPDX-License-Identifier: MIT */
/* The exec sink as a receiver: its handler makes the trouble, see receiver.c. One message of a key
 * is under way at a time. */
#include "torture.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void exec_start(uint64_t seed, bool rejects, char sink[TORTURE_SINK],
		       char relay[TORTURE_SINK])
{
	const char *receiver = getenv("CRASH_RECEIVER");

	(void)relay;
	ck_assert_msg(receiver != NULL, "CRASH_RECEIVER is not set");
	(void)snprintf(sink, TORTURE_SINK,
		       "type: exec, command: \"%s %" PRIu64 " %d\", timeout: 3s, restart_max: 1s",
		       receiver, seed, rejects);
}

static void exec_calm(const struct rig *rig)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/calm", rig->dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert(fd >= 0 && close(fd) == 0);
}

static uint64_t exec_hung_up(const struct rig *rig)
{
	char path[96];
	struct stat st = { 0 };

	(void)snprintf(path, sizeof(path), "%s/left", rig->dir);
	(void)stat(path, &st);
	return (uint64_t)st.st_size;
}

static void exec_stop(void)
{
}

/* It takes one after the other, and hangs up over one. */
const struct torture_receiver torture_exec = {
	.start = exec_start,
	.calm = exec_calm,
	.hung_up = exec_hung_up,
	.repeats_each = 1,
	.stop = exec_stop,
};
