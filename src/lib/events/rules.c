/* SPDX-License-Identifier: MIT */
/* What an append may expect of a stream; every library of a database has its own copy. */
#include "lib/events/stream.h"
#include "lib/fail.h"

#include <inttypes.h>

int ob_append_conflict(const struct ob_append *call, int64_t actual, struct outbox_error *err)
{
	const struct ob_stream_key *s = &call->stream;
	char expected[32];

	if (call->expected == OUTBOX_STREAM_EXISTS)
		(void)snprintf(expected, sizeof(expected), "a stream that exists");
	else
		(void)snprintf(expected, sizeof(expected), "version %" PRId64, call->expected);
	return ob_fail(err, OUTBOX_ECONFLICT, OUTBOX_NO_INDEX,
		       "stream '%.60s' of '%.60s': expected %s, actual version %" PRId64, s->id,
		       s->type, expected, actual);
}

int ob_append_allowed(const struct ob_append *call, const struct ob_stream_state *state,
		      struct outbox_error *err)
{
	int64_t expected = call->expected;

	if (state->end != OUTBOX_STREAM_OPEN)
		return ob_fail(err, OUTBOX_EENDED, OUTBOX_NO_INDEX, "stream '%.60s' of '%.60s' %s",
			       call->stream.id, call->stream.type,
			       state->end == OUTBOX_STREAM_TOMBSTONED
				       ? "is tombstoned: its name is not used again"
				       : "is archived: restore it before you append");
	if (expected == OUTBOX_ANY || expected == state->version ||
	    (expected == OUTBOX_STREAM_EXISTS && state->version > 0))
		return 0;
	return ob_append_conflict(call, state->version, err);
}
