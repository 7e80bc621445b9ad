/* SPDX-License-Identifier: MIT */
/* Which parked messages a verb would change: collected first, so that exactly these are changed
 * after. The counterpart of plan.h, with the same bounds. */
#ifndef OB_OPERATE_PARKED_H
#define OB_OPERATE_PARKED_H

#include "operate/plan.h"
#include "store/inbox.h"

/* Either ids (or places) or a filter say which. All borrowed. */
struct ob_parked_ask {
	enum ob_parked_verb verb;
	const char *consumer;
	const char *const *ids;
	size_t id_count;
	const char *key, *error;
	int state;      /* negative: those that the verb is usually about */
	int64_t age_ms; /* parked at least so long ago; 0: any */
};

struct ob_parked_plan {
	struct ob_arena arena;
	struct ob_parked *rows; /* by number, without their messages */
	size_t count, room;
	int64_t now_us; /* the database's clock */
};

/*
 * OUTBOX_ENOTFOUND: an id is not parked, or there is no such consumer; OUTBOX_EINVAL: more than
 * OB_PLAN_MAX. The caller ends *plan in every case.
 */
int ob_parked_collect(struct ob_parked_plan *plan, struct ob_store *store,
		      const struct ob_parked_ask *ask, struct ob_err *err);
void ob_parked_plan_done(struct ob_parked_plan *plan);
/*
 * Change them, in pieces. *ret_refused: those that are gone meanwhile, or wait behind another. When
 * it fails, *ret_changed has what was changed before.
 */
int ob_parked_apply(const struct ob_parked_plan *plan, struct ob_store *store,
		    const struct ob_parked_ask *ask, uint64_t *ret_changed, uint64_t *ret_refused,
		    struct ob_err *err);
/* What was asked for in one line, for people and the audit: "state dead, key order:7". */
void ob_parked_scope(const struct ob_parked_ask *ask, struct ob_buf *out);
/* "failed", "waiting", "dead", "letter" */
const char *ob_parked_state_name(enum ob_parked_state state);

#endif
