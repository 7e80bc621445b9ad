/* SPDX-License-Identifier: MIT */
/* librdkafka's mock cluster in a process of its own. It counts offsets and keeps few records. */
#include "bench/broker/parts.h"
#include "bench/fatal.h"

#include "kafka_mock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTITIONS = 4, ANSWER_MS = 10000, LOOK_US = 20000 };

struct kafka {
	struct kafka_mock mock;
	uint64_t before; /* stored before the last clear() */
};

/* It was built beside this program. */
static void name_program(void)
{
	char path[256];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);

	while (n > 0 && path[n - 1] != '/')
		n--;
	(void)snprintf(path + (n > 0 ? n : 0), 32, "outbox-bench-kafka");
	(void)setenv("KAFKA_MOCK", path, 1);
}

static uint64_t kafka_stored(struct kafka *k)
{
	uint64_t stored = 0;

	for (int32_t i = 0; i < PARTITIONS; i++) {
		int64_t low = 0, high = 0;

		if (rd_kafka_query_watermark_offsets(k->mock.consumer, "order", i, &low, &high,
						     ANSWER_MS) == RD_KAFKA_RESP_ERR_NO_ERROR)
			stored += (uint64_t)high;
	}
	return stored;
}

static bool kafka_start(struct bench_broker *broker)
{
	struct kafka *k = bench_need(calloc(1, sizeof(*k)));

	name_program();
	broker->impl = k;
	kafka_mock_start(&k->mock);
	kafka_mock_tell(&k->mock, "topic order %d", PARTITIONS);
	broker->pid = k->mock.pid;
	(void)snprintf(broker->sink, sizeof(broker->sink), ", brokers: \"%s\"", k->mock.brokers);
	(void)snprintf(broker->address, sizeof(broker->address), "%s", k->mock.brokers);
	return true;
}

static void kafka_stop(struct bench_broker *broker)
{
	struct kafka *k = broker->impl;

	kafka_mock_end(&k->mock);
	free(k);
}

static void kafka_clear(struct bench_broker *broker)
{
	struct kafka *k = broker->impl;

	k->before = kafka_stored(k);
}

static uint64_t kafka_count(struct bench_broker *broker)
{
	struct kafka *k = broker->impl;

	return kafka_stored(k) - k->before;
}

static void kafka_version(struct bench_broker *broker, char out[BENCH_TEXT_SIZE])
{
	(void)broker;
	(void)snprintf(out, BENCH_TEXT_SIZE, "as librdkafka's mock %s", rd_kafka_version_str());
}

const struct bench_broker_ops bench_broker_kafka = {
	.name = "kafka",
	.title = "Kafka",
	.look_us = LOOK_US,
	.start = kafka_start,
	.stop = kafka_stop,
	.clear = kafka_clear,
	.count = kafka_count,
	.version = kafka_version,
};
