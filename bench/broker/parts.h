/* SPDX-License-Identifier: MIT */
/* The brokers, one file each. */
#ifndef OB_BENCH_BROKER_PARTS_H
#define OB_BENCH_BROKER_PARTS_H

#include "bench/broker/broker.h"

extern const struct bench_broker_ops bench_broker_exec;
extern const struct bench_broker_ops bench_broker_file;
extern const struct bench_broker_ops bench_broker_redis;
extern const struct bench_broker_ops bench_broker_http;
extern const struct bench_broker_ops bench_broker_kafka;
extern const struct bench_broker_ops bench_broker_nats;
extern const struct bench_broker_ops bench_broker_rabbitmq;

/* redis.c: entries that were ever added to that stream. */
uint64_t bench_redis_added(struct bench_broker *broker, const char *stream);

/* exec.c: from now on refuse so many of 1,000 messages at their first attempt. */
void bench_exec_refuse(struct bench_broker *broker, uint32_t per_mille);
/* The handler; `path` is the broker's address. Returns an exit code. */
int bench_exec_handle(const char *path);

#endif
