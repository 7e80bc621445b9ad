/* SPDX-License-Identifier: MIT */
/*
 * The bare loop: read on from a position, publish what was read, wait for the broker, store the
 * position, again. One thread, one thing at a time, no leases, no fence, no retry: what people
 * write, and the measure of what the relay's promises cost. It is unsafe: a transaction that
 * commits after a later number was read is never sent. It stops at the first error.
 */
#ifndef OB_BENCH_BARE_H
#define OB_BENCH_BARE_H

#include "base/buf.h"

enum { BARE_BATCH = 1000, BARE_FIELDS = 7 };

/* A row as it was fetched; borrowed from the source until the next fetch. */
struct bare_row {
	int64_t seq;
	struct ob_str id; /* text */
	struct ob_str aggregate_type, aggregate_id, event_type, key, occurred_at, revision, payload;
};

/* What the relay sends along with the payload. */
struct bare_field {
	struct ob_str name, value;
};
/* All but the payload; returns BARE_FIELDS. */
size_t bare_fields(const struct bare_row *row, struct bare_field out[BARE_FIELDS]);

struct bare_source_ops {
	const char *name;
	void *(*open)(const char *url);
	/* At most BARE_BATCH with a higher number than `after`, by number; 0: none is left. */
	size_t (*read)(void *source, int64_t after, struct bare_row *rows);
	/* Store the position, durably. */
	void (*store)(void *source, int64_t position);
};

struct bare_sink_ops {
	const char *name;
	void *(*open)(const char *address);
	/* All of them, pipelined as the client library allows; returns when all are confirmed. */
	void (*publish)(void *sink, const struct bare_row *rows, size_t count);
};

/* Drain the store into the sink and then wait to be killed. Returns an exit code. */
int bare_run(const char *source, const char *url, const char *sink, const char *address);

#endif
