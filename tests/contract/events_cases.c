/* SPDX-License-Identifier: MIT */
/* What the cases about events share. */
#include "events_cases.h"

#include <inttypes.h>

const struct outbox_stream ev_ann = { .type = "account", .id = "ann" };
const struct outbox_stream ev_bob = { .type = "account", .id = "bob" };
struct outbox_error ev_fault;

void ev_begin(void)
{
	const struct ob_setup setup = { .partition_count = 4, .events = true };
	struct ob_setup_done done;

	store_begin(4);
	store_ok(ob_store_setup(fx.store, &setup, &done, &fx.err));
}

outbox *ev_open_on(struct ob_store *store)
{
	outbox *ob = NULL;

	store_ok(ob_store_tx_begin(store, &fx.err));
	store_ok(ob_store_tx_writer(store, &ob, &fx.err));
	return ob;
}

void ev_end_on(struct ob_store *store, bool commit)
{
	store_ok(ob_store_tx_end(store, commit, &fx.err));
}

/* Append events "a b c" in a transaction of their own; the status. */
int ev_try_append(const struct outbox_stream *stream, int64_t expected, const char *labels,
		  const char *const *ids, struct outbox_appended *ret)
{
	struct outbox_message events[16] = { 0 };
	struct outbox_appended ignored;
	char text[256], *save = NULL;
	size_t n = 0;

	(void)snprintf(text, sizeof(text), "%s", labels);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save), n++)
		events[n] = (struct outbox_message){ .event_type = word,
						     .payload = "{}",
						     .id = ids ? ids[n] : NULL };
	outbox *ob = ev_open_on(fx.store);
	int r = outbox_append(ob, stream, expected, events, n, NULL, ret ? ret : &ignored,
			      &ev_fault);
	ev_end_on(fx.store, r == 0);
	return r;
}

void ev_append(const struct outbox_stream *stream, int64_t expected, const char *labels)
{
	int r = ev_try_append(stream, expected, labels, NULL, NULL);

	ck_assert_msg(r == 0, "%s", ev_fault.message);
}

/* What a query returns, "Opened:1 Paid:2"; versions are told. */
const char *ev_read(struct outbox_event_query query)
{
	static char text[4096];
	const struct outbox_event *event;
	outbox_event_reader *reader = NULL;
	size_t used = 0;
	int r;

	text[0] = '\0';
	outbox *ob = ev_open_on(fx.store);
	r = outbox_events_open(ob, &query, &reader, &ev_fault);
	ck_assert_msg(r == 0, "%s", ev_fault.message);
	while ((r = outbox_events_next(reader, &event, &ev_fault)) > 0)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:%" PRId64,
					 used ? " " : "", event->event_type, event->version);
	ck_assert_msg(r == 0, "%s", ev_fault.message);
	outbox_events_close(reader);
	ev_end_on(fx.store, false);
	return text;
}
