/* SPDX-License-Identifier: MIT */
/*
 * A database, a file, a shop that writes and real `outbox work` processes that
 * may die: what the crash tests share, on every store. The test that fails says which
 * rig it was.
 */
#ifndef OB_TESTS_CRASH_RIG_H
#define OB_TESTS_CRASH_RIG_H

#include "cli/demo/child.h"
#include "place.h"
#include "shop.h"

#include "run.h"
#include "suite.h"

enum {
	RIG_BATCH = 20,
	RIG_IN_FLIGHT = 4 * RIG_BATCH, /* of a worker: settled, acknowledged, sent, read ahead */
	RIG_LEASE_MS =
		2000, /* a commit on a slow disk takes a tenth of a second, and a lease two */
	RIG_SOON_MS = 60000, /* for what happens soon, unless the disk stalls */
	RIG_PARTITIONS = 16,
};

struct rig {
	char name[64]; /* in messages */
	char dir[64], events[96], url[PLACE_URL];
	char older[128];        /* a file of events that was moved away, or "" */
	struct ob_store *store; /* to look at */
	struct books books;
	struct shop shop;
	uint32_t crashes;   /* kills and pauses so far: each may repeat what was in flight */
	uint32_t in_flight; /* at most, of a worker */
	uint64_t repeats;   /* that are allowed besides */
};

/* What differs from the plain rig; NULL: nothing. */
struct rig_extra {
	const char *volume; /* the database's tables live in that directory */
	const char *store;  /* more options of the workers' store, "lock_timeout: 1s" */
	const char *sink;   /* another sink than the file, "type: exec, command: x" */
	const char *relay;  /* more options of the relay, "on_dead: hold" */
	int lease_ms;       /* another time than RIG_LEASE_MS */
};
extern struct rig_extra rig_extra;
/* Set up, with the reader of the relay at the beginning; nothing runs yet. */
void rig_init(struct rig *rig, const char *name, uint64_t seed);
void rig_done(struct rig *rig);

/* A worker with that fault ("name:n:action"; NULL: none) and its log in the rig's directory. */
void rig_start(const struct rig *rig, struct ob_child *child, const char *fault, const char *log);
/* `outbox WORD...` (words end with NULL), its output in that log. */
void rig_start_command(const struct rig *rig, struct ob_child *child, const char *const *words,
		       const char *log);
/* One transaction of the shop; tries again for a while when the database does not let it. */
void rig_write(struct rig *rig);
/* The same, tried once; false when the database did not let it. */
bool rig_try_write(struct rig *rig);
/* Messages that are neither published nor discarded. */
uint64_t rig_waiting(struct rig *rig);
/* Messages of that view; also of the published ones, which takes a walk through the log. */
uint64_t rig_count(struct rig *rig, enum ob_view view);
/* Partitions that are leased by the worker of that process; 0: by anybody. */
uint32_t rig_leased(struct rig *rig, pid_t pid);
/* Lines in the file. */
size_t rig_lines(const struct rig *rig);
/* Everything that says anything about the delivery of every row, as one text; the caller frees. */
char *rig_rows(struct rig *rig);
/* Does somebody hold a lock that nobody can write without, for longer than a moment? */
bool rig_locked(const struct rig *rig);
/*
 * Stop a worker (SIGSTOP) at a moment when it holds no lock that all others need: SQLite's, the
 * file's. Else nobody could take over, and it would be another story.
 */
void rig_pause(struct rig *rig, struct ob_child *child);
/* Of all messages together, as the reader has them. */
unsigned long rig_attempts(struct rig *rig);
/* The text of a file in the rig's directory, "" if there is none; the caller frees. */
char *rig_file(const struct rig *rig, const char *name);
/* Its last lines, for a message; the caller frees, or the end of the test does. */
char *rig_tail(const struct rig *rig, const char *name);
/* How often it says so. */
uint32_t rig_said(const struct rig *rig, const char *log, const char *text);
/* Demand that it says so within that time. */
void rig_expect_log(const struct rig *rig, const char *log, const char *text, int timeout_ms);

/* Ask it to leave (SIGTERM) and demand that it ends well. */
void rig_stop(const struct rig *rig, struct ob_child *child);

/* Demand all promises, and no more duplicates than `crashes`, and leases lost by a slow disk,
 * allow. */
void rig_audit(struct rig *rig);

int64_t rig_now_ms(void);
/* How long the slowest of a few transactions of the shop takes now: what a limit in ms has to
 * allow for. */
int rig_pace_ms(struct rig *rig);
/* A moment for others; not to be relied on. */
void rig_breathe(void);
/* Demand a condition within so many ms, by the test's own name for it. */
#define rig_until(rig, condition, timeout_ms) \
	do { \
		int64_t until_end_ = rig_now_ms() + (timeout_ms); \
		while (!(condition)) { \
			ck_assert_msg(rig_now_ms() < until_end_, "%s: not within %d ms: %s", \
				      (rig)->name, (int)(timeout_ms), #condition); \
			rig_breathe(); \
		} \
	} while (0)

/* The place that the program runs on. */
const struct place *rig_place(void);

/* main(): start the place, or report a skip; run; stop it. */
int rig_suite_run(const char *name, const TTest *const *tests, size_t count, const char *only);

#define RIG_SUITE(suite_name, ...) \
	int main(int argc, char **argv) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		return rig_suite_run(suite_name, tests, sizeof(tests) / sizeof(tests[0]), \
				     argc > 1 ? argv[1] : NULL); \
	}

#endif
