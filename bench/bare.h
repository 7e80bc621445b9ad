/* SPDX-License-Identifier: MIT */
/*
 * The bare loop: fetch a batch, publish it, wait for the broker, settle it, again. One thread,
 * one thing at a time, no leases, no fence, no retry, no promise: what a competent engineer writes
 * first, and the measure of what the relay's promises cost. It stops at the first error.
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
	void *(*open)(const char *url, bool delete_rows);
	/* At most BARE_BATCH; 0: none is left. */
	size_t (*fetch)(void *source, struct bare_row *rows);
	/* Durably, with the relay's own default. */
	void (*settle)(void *source, const struct bare_row *rows, size_t count);
};

struct bare_sink_ops {
	const char *name;
	void *(*open)(const char *address);
	/* All of them, pipelined as the client library allows; returns when all are confirmed. */
	void (*publish)(void *sink, const struct bare_row *rows, size_t count);
};

/* Drain the store into the sink and then wait to be killed. Returns an exit code. */
int bare_run(const char *source, const char *url, const char *sink, const char *address,
	     bool delete_rows);

#endif
