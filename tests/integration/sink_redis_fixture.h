/* SPDX-License-Identifier: MIT */
/* What the tests of the Redis sink share: a server and a sink. */
#ifndef OB_TESTS_SINK_REDIS_FIXTURE_H
#define OB_TESTS_SINK_REDIS_FIXTURE_H

#include "redis_server.h"
#include "sink_rows.h"

extern struct redis_server server;

/* A sink, not opened: its url, then further options: name, value, ..., NULL. */
#define make_sink(...) row_make_sink(&ob_sink_redis, "url", __VA_ARGS__)
/* Of the server, "redis://USER127.0.0.1:PORT/DB"; in memory that the next call reuses. */
const char *url_of(const char *user, int db);
/* The numbers in a stream, joined: "0 1 2". In memory that the next call reuses. */
const char *stream_text(struct redis_server *from, const char *stream);

#endif
