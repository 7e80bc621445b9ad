/* SPDX-License-Identifier: MIT */
/* An append in steps, the same on every database: look at the stream, insert, tell what a refusal
 * was. */
#ifndef OB_LIB_EVENTS_STEPS_H
#define OB_LIB_EVENTS_STEPS_H

#include "lib/driver.h"

/* What a database does for it, inside the caller's transaction. */
struct ob_append_steps {
	void *driver;
	int (*look)(void *driver, const struct ob_stream_key *stream, struct ob_stream_state *ret,
		    struct outbox_error *err);
	/* The version as it is now, whatever the transaction's snapshot shows. */
	int (*actual)(void *driver, const struct ob_stream_key *stream, int64_t *ret,
		      struct outbox_error *err);
	int (*insert)(void *driver, const struct ob_push_row *rows, size_t count,
		      struct outbox_error *err);
	/*
	 * Insert rows if the stream is open and has the version before the first of them.
	 * *ret_stored false: it has not, or this cannot tell; nothing was written, and the other
	 * steps follow. Optional.
	 */
	int (*insert_expected)(void *driver, const struct ob_push_row *rows, size_t count,
			       bool *ret_stored, struct outbox_error *err);
	/* The version of an event in its stream; 0: it is not there. */
	int (*version_of)(void *driver, const struct ob_stream_key *stream,
			  const struct ob_uuid *id, int64_t *ret, struct outbox_error *err);
	/* Positions of the first and the last of these versions. */
	int (*place)(void *driver, const struct ob_stream_key *stream, int64_t first, int64_t last,
		     int64_t ret[2], struct outbox_error *err);
};

int ob_append_by_steps(const struct ob_append_steps *steps, const struct ob_append *call,
		       struct ob_append_done *ret, struct outbox_error *err);

#endif
