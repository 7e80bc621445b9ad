/* SPDX-License-Identifier: MIT */
/* Plans for parked messages: collect, and change what was collected. */
#include "operate/parked.h"

#include "base/cleanup.h"
#include "base/when.h"

#include <stdlib.h>

/* PAGE: rows with their messages held at once; PIECE: rows of one transaction. */
enum { PAGE = 100, PIECE = 1000, ARENA_MAX = 1 << 30, FIRST_ROOM = 256 };

static const char *const state_names[] = { "failed", "waiting", "dead", "letter" };

const char *ob_parked_state_name(enum ob_parked_state state)
{
	return state <= OB_PARKED_LETTER ? state_names[state] : "unknown";
}

/* ---- collecting ------------------------------------------------------ */

/* A filter without a state is about what holds something up; discard takes what waits, too. */
static bool is_meant(const struct ob_parked_ask *ask, const struct ob_parked_plan *plan,
		     const struct ob_parked *row)
{
	if (ask->age_ms && row->since_us > plan->now_us - ask->age_ms * 1000)
		return false;
	if (row->state != OB_PARKED_WAITING || ask->verb == OB_PARKED_DISCARD)
		return true;
	return ask->id_count && ask->verb != OB_PARKED_RETRY;
}

static int too_many(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
			  "more than %d messages: narrow the filter", OB_PLAN_MAX);
}

/* Keep all but the message itself, which may be large. */
static int keep_row(struct ob_parked_plan *plan, const struct ob_parked *row, struct ob_err *err)
{
	if (plan->count == OB_PLAN_MAX)
		return too_many(err);
	if (plan->count == plan->room) {
		size_t room = plan->room ? plan->room * 2 : FIRST_ROOM;
		struct ob_parked *rows = realloc(plan->rows, room * sizeof(*rows));

		if (!rows)
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
		plan->rows = rows;
		plan->room = room;
	}
	struct ob_parked *to = &plan->rows[plan->count];
	*to = *row;
	to->message = OB_STR_NULL;
	if (!ob_arena_copy(&plan->arena, row->queue, &to->queue) ||
	    !ob_arena_copy(&plan->arena, row->id, &to->id) ||
	    !ob_arena_copy(&plan->arena, row->event_type, &to->event_type) ||
	    !ob_arena_copy(&plan->arena, row->place, &to->place) ||
	    !ob_arena_copy(&plan->arena, row->reason, &to->reason) ||
	    !ob_arena_copy(&plan->arena, row->consumer, &to->consumer))
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	plan->count++;
	return 0;
}

static int collect_filter(struct ob_parked_plan *plan, struct ob_store *store,
			  const struct ob_parked_ask *ask, struct ob_err *err)
{
	OB_CLEANUP(ob_arena_done) struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_parked_filter filter = { .consumer = ask->consumer,
					   .queue = ask->key,
					   .error = ask->error,
					   .state = ask->state,
					   .limit = PAGE };
	struct ob_parked *rows;
	size_t count;
	int r;

	do {
		ob_arena_reset(&arena, SIZE_MAX);
		r = ob_parked_list(store, &filter, &arena, &rows, &count, err);
		for (size_t i = 0; r == 0 && i < count; i++) {
			filter.after_n = rows[i].n;
			if (is_meant(ask, plan, &rows[i]))
				r = keep_row(plan, &rows[i], err);
		}
	} while (r == 0 && count == PAGE);
	return r;
}

static int collect_id(struct ob_parked_plan *plan, struct ob_store *store,
		      const struct ob_parked_ask *ask, const char *id, struct ob_err *err)
{
	OB_CLEANUP(ob_arena_done) struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	const struct ob_parked_filter filter = {
		.consumer = ask->consumer, .id = id, .state = -1, .limit = 1
	};
	struct ob_parked *rows;
	size_t count = 0;
	int r = ob_parked_list(store, &filter, &arena, &rows, &count, err);

	if (r == 0 && count == 0)
		return ob_err_set(err, OUTBOX_ENOTFOUND, OB_ERR_FATAL,
				  "consumer %s has no parked message %s", ask->consumer, id);
	if (r == 0 && is_meant(ask, plan, &rows[0]))
		r = keep_row(plan, &rows[0], err);
	return r;
}

/* A name that is not there is a mistake to hear of, not zero messages. */
static int find_consumer(struct ob_parked_plan *plan, struct ob_store *store, const char *name,
			 struct ob_err *err)
{
	struct ob_consumer_row *rows;
	size_t count = 0;
	int r = ob_consumer_list(store, name, &plan->arena, &rows, &count, err);

	if (r == 0 && count == 0)
		return ob_err_set(err, OUTBOX_ENOTFOUND, OB_ERR_FATAL,
				  "no consumer '%s' has run on this database", name);
	if (r == 0)
		plan->now_us = rows[0].now_us;
	return r;
}

int ob_parked_collect(struct ob_parked_plan *plan, struct ob_store *store,
		      const struct ob_parked_ask *ask, struct ob_err *err)
{
	*plan = (struct ob_parked_plan){ .arena = OB_ARENA_INIT(ARENA_MAX) };
	int r = find_consumer(plan, store, ask->consumer, err);

	if (r == 0 && ask->id_count == 0)
		return collect_filter(plan, store, ask, err);
	for (size_t i = 0; r == 0 && i < ask->id_count; i++)
		r = collect_id(plan, store, ask, ask->ids[i], err);
	return r;
}

void ob_parked_plan_done(struct ob_parked_plan *plan)
{
	free(plan->rows);
	ob_arena_done(&plan->arena);
	*plan = (struct ob_parked_plan){ 0 };
}

/* ---- changing -------------------------------------------------------- */

int ob_parked_apply(const struct ob_parked_plan *plan, struct ob_store *store,
		    const struct ob_parked_ask *ask, uint64_t *ret_changed, uint64_t *ret_refused,
		    struct ob_err *err)
{
	int r = 0;

	*ret_changed = *ret_refused = 0;
	for (size_t at = 0; at < plan->count && r == 0; at += PIECE) {
		size_t n = plan->count - at < PIECE ? plan->count - at : PIECE;
		uint64_t changed = 0, refused = 0;

		r = ob_parked_operate(store, ask->consumer, ask->verb, &plan->rows[at], n, &changed,
				      &refused, err);
		*ret_changed += changed;
		*ret_refused += refused;
	}
	return r;
}

void ob_parked_scope(const struct ob_parked_ask *ask, struct ob_buf *out)
{
	char age[OB_WHEN_SIZE];

	if (ask->id_count) {
		ob_buf_adds(out, "by id");
		return;
	}
	if (ask->state >= 0)
		ob_buf_addf(out, "state %s",
			    ob_parked_state_name((enum ob_parked_state)ask->state));
	else
		ob_buf_adds(out, "any state");
	if (ask->key)
		ob_buf_addf(out, ", key %s", ask->key);
	if (ask->error)
		ob_buf_addf(out, ", error %s", ask->error);
	if (ask->age_ms) {
		ob_when_age(ask->age_ms * 1000, age);
		ob_buf_addf(out, ", older than %s", age);
	}
}
