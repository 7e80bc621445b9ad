/* SPDX-License-Identifier: MIT */
/* What the tests of the Redis sink share: a server, a sink, and messages in a row. */
#ifndef OB_TESTS_SINK_REDIS_FIXTURE_H
#define OB_TESTS_SINK_REDIS_FIXTURE_H

#include "redis_server.h"
#include "sink_harness.h"
#include "suite.h"

enum { ROW_MAX = 512 };

extern struct redis_server server;

/* A sink, not opened, with these options: name, value, ..., NULL. The url comes first. */
struct ob_sink *make_sink(const char *url, ...) __attribute__((sentinel));
/* Of the server, "redis://USER127.0.0.1:PORT/DB"; in memory that the next call reuses. */
const char *url_of(const char *user, int db);
/* Open it or fail the test. */
void must_open(struct ob_sink *sink);
/* Open it and demand DOWN (or FATAL) with this text in the message. */
void must_not_open(struct ob_sink *sink, enum ob_err_kind kind, const char *text);

/* Messages numbered from 0, all of one key, to one stream. */
struct row {
	struct parcel parcels[ROW_MAX];
	char bodies[ROW_MAX][12];
	struct ob_ack acks[ROW_MAX]; /* by number */
	size_t count;
};
void row_init(struct row *row, size_t count, const char *key, const char *stream);
/* Send all and wait for all outcomes. */
void row_deliver(struct ob_sink *sink, struct row *row);
void row_send(struct ob_sink *sink, const struct row *row);
void row_wait(struct ob_sink *sink, struct row *row);
/* How many outcomes are of that kind. */
size_t row_count(const struct row *row, enum ob_err_kind kind);
/* The numbers in a stream, joined: "0 1 2". In memory that the next call reuses. */
const char *stream_text(struct redis_server *from, const char *stream);

#endif
