/* SPDX-License-Identifier: MIT */
/* What the tests of sinks with a server share: opening one, and messages in a row. */
#ifndef OB_TESTS_SINK_ROWS_H
#define OB_TESTS_SINK_ROWS_H

#include "sink_harness.h"
#include "suite.h"

enum { ROW_MAX = 512 };

/* A sink, not opened, with these options: name, value, ..., NULL. */
struct ob_sink *row_make_sink(const struct ob_sink_ops *ops, ...) __attribute__((sentinel));
/* Open it or fail the test. */
void must_open(struct ob_sink *sink);
/* Open it and demand DOWN (or FATAL) with this text in the message. */
void must_not_open(struct ob_sink *sink, enum ob_err_kind kind, const char *text);

/* Messages numbered from 0, all of one key and to one destination unless a test changes that. */
struct row {
	struct parcel parcels[ROW_MAX];
	char bodies[ROW_MAX][12];
	struct ob_ack acks[ROW_MAX]; /* by number */
	size_t count;
};
void row_init(struct row *row, size_t count, const char *key, const char *destination);
/* Send all and wait for all outcomes. */
void row_deliver(struct ob_sink *sink, struct row *row);
void row_send(struct ob_sink *sink, const struct row *row);
void row_wait(struct ob_sink *sink, struct row *row);
/* How many outcomes are of that kind. */
size_t row_count(const struct row *row, enum ob_err_kind kind);

#endif
