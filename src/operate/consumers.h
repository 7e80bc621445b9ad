/* SPDX-License-Identifier: MIT */
/*
 * The consumers of one database, as they stand in it: their rows, the processes that run them, and
 * what these tell. For commands and monitors on any machine.
 */
#ifndef OB_OPERATE_CONSUMERS_H
#define OB_OPERATE_CONSUMERS_H

#include "base/consumer_report.h"
#include "base/jout.h"
#include "store/inbox.h"

struct ob_consumer_process {
	struct ob_consumer_member member;
	struct ob_consumer_report report;
	bool told; /* the report could be read */
};

struct ob_consumer_view {
	struct ob_consumer_row row;
	struct ob_consumer_process *processes; /* the one with the lease first */
	size_t process_count, alive;
	/* Of the process that works; else of the one that was heard last. NULL: nobody tells. */
	const struct ob_consumer_process *leader;
	double rate;        /* of all that are alive */
	uint64_t in_flight; /* likewise */
};

struct ob_consumers {
	struct ob_arena arena;
	struct ob_consumer_view *views; /* by name */
	size_t count;
	bool installed; /* false: the database has no tables of consumers, and count is 0 */
	int64_t now_us; /* the database's clock; 0: there is no consumer */
};

/* `consumer` NULL: all. The caller ends *consumers in every case. */
int ob_consumers_take(struct ob_consumers *consumers, struct ob_store *store, const char *consumer,
		      struct ob_err *err);
void ob_consumers_done(struct ob_consumers *consumers);

/*
 * Its state in a word, the worst that is true: "stopped" (no process is alive), "full" (no room to
 * park: the source is paused), "source down", "handler down", "failing" (most keys fail), "waiting"
 * (processes are alive and none has the lease), "held" (dead messages hold keys) or "ok".
 */
const char *ob_consumer_word(const struct ob_consumer_view *view);
/* Does someone have to act? Not of "ok", "held", "waiting". */
bool ob_consumer_is_bad(const struct ob_consumer_view *view);
/* What is wrong and since when, in one line: "handler down since 3m: connection refused"; "" if
 * nothing is. */
void ob_consumer_trouble_text(const struct ob_consumer_view *view, struct ob_buf *out);
/* Append one object: the consumer, its numbers, its processes with their reports. */
void ob_consumer_view_json(struct ob_jout *j, const struct ob_consumer_view *view);

#endif
