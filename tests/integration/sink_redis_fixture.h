/* SPDX-License-Identifier: MIT */
/* What the tests of the Redis sink share: a server, a sink, and messages in a row. */
#ifndef OB_TESTS_SINK_REDIS_FIXTURE_H
#define OB_TESTS_SINK_REDIS_FIXTURE_H

#include "redis_server.h"
#include "sink_row.h"

extern struct redis_server server;

/* A sink, not opened, with these options: name, value, ..., NULL. The url comes first. */
#define make_sink(...) row_make_sink(&ob_sink_redis, __VA_ARGS__)
/* Of the server, "redis://USER127.0.0.1:PORT/DB"; in memory that the next call reuses. */
const char *url_of(const char *user, int db);
/* The numbers in a stream, joined: "0 1 2". In memory that the next call reuses. */
const char *stream_text(struct redis_server *from, const char *stream);

#endif
