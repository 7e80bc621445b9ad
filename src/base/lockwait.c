/* SPDX-License-Identifier: MIT */
/* Asking often at first, not quite in step with others; and letting others in. */
#include "base/lockwait.h"

#include "base/clock.h"

#include <time.h>

enum {
	ASK_US = 400, /* between two questions, at first, */
	ASK_MAX_US =
		4000,   /* and when the lock is held for long: a question costs a core some time */
	LONG_US = 5000, /* held so long, as for a slow sync, it is somebody else's turn */
	REST_MAX_US = 50000,
};

static void nap(int64_t us)
{
	(void)nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

int ob_lock_wait_again(void *arg, int count)
{
	struct ob_lock_wait *wait = arg;
	/* the machine's clock, since a virtual one stands still */
	int64_t now = ob_clock_boot_us(&ob_clock_system);

	if (count == 0) {
		wait->since_us = now;
		wait->until_us = now + wait->timeout_ms * 1000;
	}
	if (now >= wait->until_us)
		return 0;

	int64_t ask = (now - wait->since_us) / 16;

	ask = ask < ASK_US ? ASK_US : ask > ASK_MAX_US ? ASK_MAX_US : ask;
	ask += now % ask;
	nap(ask > wait->until_us - now ? wait->until_us - now : ask);
	return 1;
}

void ob_lock_wait_before(struct ob_lock_wait *wait)
{
	int64_t left = wait->rest_until_us - ob_clock_boot_us(&ob_clock_system);

	if (left > 0)
		nap(left);
}

void ob_lock_wait_locked(struct ob_lock_wait *wait)
{
	wait->locked_us = ob_clock_boot_us(&ob_clock_system);
}

void ob_lock_wait_unlocked(struct ob_lock_wait *wait)
{
	int64_t now = ob_clock_boot_us(&ob_clock_system);
	int64_t held = now - wait->locked_us, rest = held / 4;

	if (held >= LONG_US)
		wait->rest_until_us = now + (rest < REST_MAX_US ? rest : REST_MAX_US);
}
