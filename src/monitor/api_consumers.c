/* SPDX-License-Identifier: MIT */
/* Consumers of a database, the processes that run them, and what they have parked. */
#include "monitor/api.h"
#include "monitor/routes.h"
#include "operate/consumers.h"

#include <inttypes.h>
#include <stdio.h>

enum { LETTERS = 100, ARENA_MAX = 64 << 20 };

static const char *const states[] = { "failed", "waiting", "dead", "letter" };

/* Without the message itself: its payload is not for every role. */
static void letter_json(struct ob_jout *j, const struct ob_parked *row)
{
	ob_jout_begin(j, NULL, '{');
	ob_jout_int(j, "n", row->n);
	ob_jout_text(j, "id", row->id);
	ob_jout_text(j, "key", row->queue);
	ob_jout_text(j, "event_type", row->event_type);
	ob_jout_text(j, "state", ob_str(states[row->state]));
	ob_jout_bool(j, "behind", row->behind);
	ob_jout_int(j, "attempts", row->attempts);
	ob_jout_us(j, "since_us", row->since_us);
	ob_jout_us(j, "due_us", row->due_us);
	ob_jout_text(j, "place", row->place);
	ob_jout_text(j, "reason", row->reason);
	ob_jout_end(j, '}');
}

/* What the named consumer has parked, oldest first. */
static int letters_json(struct ob_request *req, struct ob_store *store,
			struct ob_parked_filter *filter, struct ob_err *err)
{
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_jout *j = &req->out;
	struct ob_parked *rows = NULL;
	char next[24] = "";
	size_t count = 0;
	int r = filter->consumer ? ob_parked_list(store, filter, &arena, &rows, &count, err) : 0;

	ob_jout_begin(j, "letters", '[');
	for (size_t i = 0; r == 0 && i < count; i++)
		letter_json(j, &rows[i]);
	ob_jout_end(j, ']');
	if (count == LETTERS)
		(void)snprintf(next, sizeof(next), "%" PRId64, rows[count - 1].n);
	ob_jout_text(j, "next", next[0] ? ob_str(next) : OB_STR_NULL);
	ob_arena_done(&arena);
	return r;
}

static int consumers_json(struct ob_request *req, struct ob_asked *asked,
			  struct ob_parked_filter *filter, struct ob_err *err)
{
	struct ob_jout *j = &req->out;
	struct ob_consumers list;
	int r = ob_consumers_take(&list, asked->store, filter->consumer, err);

	if (r == 0 && filter->consumer && list.count == 0)
		r = ob_err_set(err, OUTBOX_ENOTFOUND, OB_ERR_REJECT, "there is no consumer '%.80s'",
			       filter->consumer);
	if (r == 0) {
		ob_jout_begin(j, NULL, '{');
		ob_jout_text(j, "store", ob_str(asked->pool->entry->name));
		ob_jout_bool(j, "installed", list.installed);
		ob_jout_begin(j, "consumers", '[');
		for (size_t i = 0; i < list.count; i++)
			ob_consumer_view_json(j, &list.views[i]);
		ob_jout_end(j, ']');
		r = letters_json(req, asked->store, filter, err);
		ob_jout_end(j, '}');
	}
	ob_consumers_done(&list);
	return r;
}

void ob_api_consumers(struct ob_request *req)
{
	struct ob_parked_filter filter = { .consumer = ob_request_arg(req, "consumer"),
					   .state = -1,
					   .limit = LETTERS };
	struct ob_err err = OB_ERR_INIT;
	struct ob_asked asked;

	req->type = "application/json";
	if (!ob_request_int(req, "before", 1, INT64_MAX, 0, &filter.after_n) ||
	    !ob_request_store(req, ob_request_arg(req, "store"), &asked))
		return;
	int r = consumers_json(req, &asked, &filter, &err);
	ob_request_end(req, &asked, r, &err);
}
