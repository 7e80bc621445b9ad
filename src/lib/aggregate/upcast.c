/* SPDX-License-Identifier: MIT */
/* One forward pass over a list of upcasters: each sees what those before it made. */
#include "base/arena.h"
#include "lib/fail.h"
#include "outbox/aggregate.h"

#include <inttypes.h>
#include <stdlib.h>

/* Events that one may become, and upcasters in its history: more is a loop in someone's code. */
enum { EVENTS_MAX = 10000, HISTORY_MAX = 4096, KEEP = 1 << 16 };

struct events {
	struct outbox_event *list;
	size_t count, room;
};

struct outbox_upcast {
	const struct outbox_upcaster *const *list;
	struct ob_arena arena;
	struct events now, next;
	const struct outbox_event *from; /* the one that is being upcast */
	struct ob_buf history;
	bool failed;
};

outbox_upcast *outbox_upcast_new(const struct outbox_upcaster *const *list)
{
	outbox_upcast *u = calloc(1, sizeof(*u));

	if (u)
		*u = (outbox_upcast){ .list = list,
				      .arena = OB_ARENA_INIT(SIZE_MAX / 2),
				      .history = OB_BUF_INIT(HISTORY_MAX) };
	return u;
}

void outbox_upcast_free(outbox_upcast *u)
{
	if (!u)
		return;
	free(u->now.list);
	free(u->next.list);
	ob_arena_done(&u->arena);
	ob_buf_done(&u->history);
	free(u);
}

static bool add_event(struct events *to, const struct outbox_event *event)
{
	if (to->count == to->room) {
		size_t room = to->room ? to->room * 2 : 4;
		struct outbox_event *more = realloc(to->list, room * sizeof(*more));

		if (!more || room > (size_t)EVENTS_MAX * 2) {
			if (more)
				to->list = more;
			return false;
		}
		to->list = more;
		to->room = room;
	}
	to->list[to->count++] = *event;
	return true;
}

void outbox_upcast_emit(outbox_upcast *u, const char *event_type, int32_t revision,
			const void *payload, size_t payload_size)
{
	struct outbox_event made = *u->from;
	struct ob_str body = { payload, payload_size ? payload_size
					: payload    ? strlen(payload)
						     : 0 };
	struct ob_str own, type = OB_STR_NULL;

	if (!ob_arena_copy(&u->arena, body, &own) ||
	    !ob_arena_copy(&u->arena, ob_str(event_type), &type)) {
		u->failed = true;
		return;
	}
	made.payload = own.p;
	made.payload_size = own.n;
	if (type.p)
		made.event_type = type.p;
	made.revision = revision ? revision : u->from->revision + 1;
	if (u->history.len > 0)
		ob_buf_adds(&u->history, ", ");
	ob_buf_addf(&u->history, "%s %" PRId32 " > %s %" PRId32, u->from->event_type,
		    u->from->revision, made.event_type, made.revision);
	u->failed = u->failed || !add_event(&u->next, &made);
}

static bool matches(const struct outbox_upcaster *c, const struct outbox_event *event)
{
	return c->revision == event->revision && strcmp(c->event_type, event->event_type) == 0;
}

/* One upcaster over all events that there are now. */
static int run_upcaster(outbox_upcast *u, const struct outbox_upcaster *c, size_t *applied,
			struct outbox_error *err)
{
	u->next.count = 0;
	for (size_t i = 0; i < u->now.count; i++) {
		struct outbox_event event = u->now.list[i];

		if (!matches(c, &event)) {
			u->failed = u->failed || !add_event(&u->next, &event);
			continue;
		}
		u->from = &event;
		*err = (struct outbox_error){ 0 };
		int r = c->upcast(c, &event, u, err);
		if (r < 0) {
			char text[sizeof(err->message)];

			(void)snprintf(text, sizeof(text), "%s", err->message);
			return ob_fail(err, r, OUTBOX_NO_INDEX,
				       "upcasting event '%.60s' of revision %" PRId32
				       ", version %" PRId64 " of '%.60s': %s",
				       event.event_type, event.revision, event.version,
				       event.stream_id ? event.stream_id : "", text);
		}
		++*applied;
	}
	struct events swap = u->now;
	u->now = u->next;
	u->next = swap;
	return u->failed ? ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX,
				   "upcasting: out of memory, or more than %d events of one",
				   EVENTS_MAX)
			 : 0;
}

/* Does any event that is there now have this upcaster? */
static bool concerns(const outbox_upcast *u, const struct outbox_upcaster *c)
{
	for (size_t i = 0; i < u->now.count; i++) {
		if (matches(c, &u->now.list[i]))
			return true;
	}
	return false;
}

int outbox_upcast_event(outbox_upcast *u, const struct outbox_event *event,
			struct outbox_upcasted *ret, struct outbox_error *err)
{
	struct outbox_error unused;
	size_t applied = 0;
	int r = 0;

	if (!err)
		err = &unused;
	ob_arena_reset(&u->arena, KEEP);
	ob_buf_clear(&u->history);
	u->now.count = 0;
	u->failed = !add_event(&u->now, event);
	for (const struct outbox_upcaster *const *c = u->list; c && *c && r == 0 && !u->failed;
	     c++) {
		if (concerns(u, *c))
			r = run_upcaster(u, *c, &applied, err);
	}
	if (r == 0 && u->failed)
		r = ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	if (r < 0)
		return r;
	ret->events = u->now.list;
	ret->count = u->now.count;
	ret->applied = applied;
	ret->history = ob_buf_str(&u->history);
	return 0;
}
