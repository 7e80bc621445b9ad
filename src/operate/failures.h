/* SPDX-License-Identifier: MIT */
/* Failed and dead messages in groups: by what went wrong, by type, relay, sink or key. */
#ifndef OB_OPERATE_FAILURES_H
#define OB_OPERATE_FAILURES_H

#include "base/jout.h"
#include "config/config.h"

/* What a group has in common besides its reader; the text is for people. */
#define OB_FAILURES_MAP(X) \
	X(CAUSE, "cause") /* the error with its numbers blanked, and the event type */ \
	X(TYPE, "type")   /* the event type */ \
	X(RELAY, "relay") \
	X(SINK, "sink") \
	X(KEY, "key")

enum ob_failures_by {
#define X(name, text) OB_FAILURES_##name,
	OB_FAILURES_MAP(X)
#undef X
		OB_FAILURES_COUNT
};

/* SCAN: messages that are read for it, of each reader, at most; so many parked ones are counted. */
enum { OB_FAILURES_SCAN = 10000, OB_FAILURES_SAMPLE = 5, OB_FAILURES_ID = 24 };

struct ob_failure_group {
	char id[OB_FAILURES_ID];              /* the same as long as what it has in common is */
	struct ob_str reader, sink;           /* the sink as configured; absent: not known */
	struct ob_str cause, event_type, key; /* absent: they differ, or there is none */
	uint64_t failed, dead;
	uint64_t keys_held, parked;             /* keys that these hold, messages behind them */
	int64_t first_us, last_us, next_due_us; /* of the failures; 0: none is due */
	struct ob_uuid sample[OB_FAILURES_SAMPLE];
	size_t sample_count;
	const struct ob_uuid *ids; /* failed + dead, by number; only if they were asked for */
};

struct ob_failures {
	struct ob_arena arena;
	enum ob_failures_by by;
	struct ob_failure_group *groups; /* the largest first */
	size_t count;
	uint64_t scanned;
	bool capped; /* there were more messages than are read */
	int64_t now_us;
};

struct ob_failures_ask {
	enum ob_failures_by by;
	const char *reader; /* NULL: all that are no replay */
	unsigned views;     /* of FAILED and DEAD; 0: both */
	bool ids;           /* fill in those of each group */
};

/* `config` (may be NULL) tells the sinks. The caller ends *failures in every case. */
int ob_failures_take(struct ob_failures *failures, struct ob_store *store,
		     const struct ob_config *config, const struct ob_failures_ask *ask,
		     struct ob_err *err);
void ob_failures_done(struct ob_failures *failures);

/* "cause" ...; and back: the number, or -1. */
const char *ob_failures_by_name(enum ob_failures_by by);
int ob_failures_by_parse(const char *name);
/* By what a group of that id was made: the number, or -1. */
int ob_failures_by_of(const char *id);
/* The group of that id, or NULL. */
const struct ob_failure_group *ob_failures_find(const struct ob_failures *failures, const char *id);
/* Append one object about it. */
void ob_failure_group_json(struct ob_jout *j, const struct ob_failure_group *group);
/* Append the whole: {by, groups, capped, scanned}. */
void ob_failures_json(struct ob_jout *j, const struct ob_failures *failures);

#endif
