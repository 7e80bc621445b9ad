/* SPDX-License-Identifier: MIT */
/* Which messages a verb would change: collected first, so that exactly these are changed after. */
#ifndef OB_OPERATE_PLAN_H
#define OB_OPERATE_PLAN_H

#include "config/config.h"
#include "operate/verbs.h"

/* MAX: messages of one plan. */
enum { OB_PLAN_MAX = 100000, OB_PLAN_SAMPLE = 20 };

/* Exactly one of ids, group and filter says which. All borrowed. */
struct ob_plan_ask {
	enum ob_verb verb;
	const char *reader;
	const struct ob_uuid *ids;
	size_t id_count;
	const char *group;              /* of ob_failures_take() */
	const struct ob_filter *filter; /* its views, key, ... error; views 0: the verb's usual */
};

struct ob_plan_set {
	struct ob_uuid *ids; /* by number; those whose state allows the verb */
	size_t count, room;
	size_t refused;         /* named, but their state does not allow it */
	uint64_t hash;          /* the same for the same messages */
	struct ob_batch sample; /* the first, without payloads */
	int64_t now_us;
};

/*
 * OUTBOX_ENOTFOUND: no such message, group or reader; OUTBOX_EINVAL: more than OB_PLAN_MAX. The
 * caller ends *set in every case.
 */
int ob_plan_collect(struct ob_plan_set *set, struct ob_store *store, const struct ob_config *config,
		    const struct ob_plan_ask *ask, struct ob_err *err);
void ob_plan_set_done(struct ob_plan_set *set);

/* The same as a command line, for people; `store` is its name, NULL where there is one. */
void ob_plan_command(const struct ob_plan_ask *ask, const struct ob_plan_set *set,
		     const char *store, struct ob_buf *out);
/* What was asked for in one line, for the audit: "state failed, key order:7". */
void ob_plan_scope(const struct ob_plan_ask *ask, struct ob_buf *out);

#endif
