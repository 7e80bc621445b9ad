/* SPDX-License-Identifier: MIT */
/* Streams: their names, their ends, and what an append may expect of them. */
#ifndef OB_LIB_EVENTS_STREAM_H
#define OB_LIB_EVENTS_STREAM_H

#include "lib/driver.h"

/* Check a stream's names and fill in what was left out; *ret borrows from *stream. */
int ob_stream_key(const struct outbox_stream *stream, struct ob_stream_key *ret,
		  struct outbox_error *err);

/* May this be appended to a stream in that state? OUTBOX_EENDED, OUTBOX_ECONFLICT say why not. */
int ob_append_allowed(const struct ob_append *call, const struct ob_stream_state *state,
		      struct outbox_error *err);
/* The stream has another version than `expected`. */
int ob_append_conflict(const struct ob_append *call, int64_t actual, struct outbox_error *err);

#endif
