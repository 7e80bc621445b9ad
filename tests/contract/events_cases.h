/* SPDX-License-Identifier: MIT */
/* What the cases about events share: appending by labels, reading as text. */
#ifndef OB_TESTS_EVENTS_CASES_H
#define OB_TESTS_EVENTS_CASES_H

#include "outbox/events.h"
#include "store_harness.h"

extern const struct outbox_stream ev_ann, ev_bob; /* of the category "account" */
extern struct outbox_error ev_fault;

/* A fresh database with the tables of an event store. */
void ev_begin(void);
/* Begin a transaction on a connection and get the library's handle; end it. */
outbox *ev_open_on(struct ob_store *store);
void ev_end_on(struct ob_store *store, bool commit);
/* Append events "a b c" in a transaction of their own; the status. */
int ev_try_append(const struct outbox_stream *stream, int64_t expected, const char *labels,
		  const char *const *ids, struct outbox_appended *ret);
/* The same; it must succeed. */
void ev_append(const struct outbox_stream *stream, int64_t expected, const char *labels);
/* What a query returns, "Opened:1 Paid:2"; versions are told. */
const char *ev_read(struct outbox_event_query query);

#endif
