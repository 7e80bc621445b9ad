/* SPDX-License-Identifier: MIT */
/* The sources and sinks of the bare loop, one file each. */
#ifndef OB_BENCH_BARE_PARTS_H
#define OB_BENCH_BARE_PARTS_H

#include "bench/bare/bare.h"

extern const struct bare_source_ops bare_postgres;
extern const struct bare_source_ops bare_mysql;
extern const struct bare_source_ops bare_sqlite;

extern const struct bare_sink_ops bare_file;
extern const struct bare_sink_ops bare_redis;
extern const struct bare_sink_ops bare_http;
extern const struct bare_sink_ops bare_kafka;
extern const struct bare_sink_ops bare_nats;
extern const struct bare_sink_ops bare_rabbitmq;

#endif
