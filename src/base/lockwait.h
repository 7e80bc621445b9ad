/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a lock that has no queue, as SQLite's write lock. Whoever asks rarely starves behind
 * busy writers: sqlite3_busy_timeout() asks ten times a second. And whoever asks again right after
 * its commit finds the lock free, since all others sleep: on a disk that syncs in 60 ms, one
 * thread alone kept the lock for five seconds. So we ask often, and rest after a long hold.
 */
#ifndef OB_BASE_LOCKWAIT_H
#define OB_BASE_LOCKWAIT_H

#include <stdint.h>

struct ob_lock_wait {
	int64_t timeout_ms;
	int64_t since_us, until_us; /* of the wait that is under way */
	int64_t locked_us;          /* since when it is held */
	int64_t rest_until_us;      /* not to be asked for before */
};

/*
 * Fits sqlite3_busy_handler(), `arg` being a struct ob_lock_wait. `count` is how often it was
 * called for this lock. 1 after a short sleep: ask again; 0: the time is over.
 */
int ob_lock_wait_again(void *arg, int count);

/* Around each hold: before asking (sleeps off what is left of the rest), when it is held, and when
 * it is free again. A hold of less than a few milliseconds costs no rest. */
void ob_lock_wait_before(struct ob_lock_wait *wait);
void ob_lock_wait_locked(struct ob_lock_wait *wait);
void ob_lock_wait_unlocked(struct ob_lock_wait *wait);

#endif
