/* SPDX-License-Identifier: MIT */
/* The brokers, one file each. */
#ifndef OB_BENCH_BROKER_PARTS_H
#define OB_BENCH_BROKER_PARTS_H

#include "bench/broker.h"

extern const struct bench_broker_ops bench_broker_file;
extern const struct bench_broker_ops bench_broker_redis;
extern const struct bench_broker_ops bench_broker_http;
extern const struct bench_broker_ops bench_broker_kafka;
extern const struct bench_broker_ops bench_broker_nats;
extern const struct bench_broker_ops bench_broker_rabbitmq;

#endif
