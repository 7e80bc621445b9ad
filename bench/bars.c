/* SPDX-License-Identifier: MIT */
/* One row a bar. The median counts. */
#include "bench/bars.h"

#include <string.h>

#define AT_LEAST(text, name, metric, value, unit) \
	{ \
		text, name, metric, false, value, unit \
	}
#define AT_MOST(text, name, metric, value, unit) \
	{ \
		text, name, metric, true, value, unit \
	}

const struct bench_bar bench_bars[] = {
	AT_LEAST("PostgreSQL → Redis, keep, 200,000 messages of 300 B, against the bare loop",
		 "postgres-redis-keep", "ratio", 1.2, "×"),
	AT_LEAST("PostgreSQL → Redis, delete", "postgres-redis-delete", "ratio", 1.1, "×"),
	AT_LEAST("MariaDB → Redis, keep", "mysql-redis-keep", "ratio", 1.0, "×"),
	AT_LEAST("SQLite → file, keep", "sqlite-file-keep", "ratio", 1.0, "×"),
	AT_LEAST("SQLite → file, delete", "sqlite-file-delete", "ratio", 1.0, "×"),
	AT_LEAST("PostgreSQL → Kafka (librdkafka's mock)", "postgres-kafka-keep", "ratio", 0.9,
		 "×"),
	AT_LEAST("PostgreSQL → NATS", "postgres-nats-keep", "ratio", 0.9, "×"),
	AT_LEAST("PostgreSQL → RabbitMQ", "postgres-rabbitmq-keep", "ratio", 0.9, "×"),
	AT_LEAST("PostgreSQL → Redis, all messages of one key", "one-key", "ratio", 0.6, "×"),
	AT_MOST("PostgreSQL, commit → Redis at 200/s, p50", "latency-postgres-200", "p50_ms", 1,
		"ms"),
	AT_MOST("PostgreSQL, commit → Redis at 200/s, p99", "latency-postgres-200", "p99_ms", 5,
		"ms"),
	AT_MOST("SQLite, commit → file at 200/s, p50", "latency-sqlite-200", "p50_ms", 5, "ms"),
	AT_LEAST("drain with a backlog of 5 M against 100 k, PostgreSQL", "backlog-postgres",
		 "ratio_largest", 0.8, "×"),
	AT_LEAST("drain behind a writer and a snapshot, both 60 s old, against none",
		 "backlog-postgres", "ratio_held", 0.7, "×"),
	AT_LEAST("drain with 1 M finished rows against none, PostgreSQL", "finished-postgres",
		 "ratio_published", 0.8, "×"),
	AT_LEAST("drain with 1 M finished rows against none, MariaDB", "finished-mysql",
		 "ratio_published", 0.8, "×"),
	AT_LEAST("drain with 1 M finished rows against none, SQLite", "finished-sqlite",
		 "ratio_published", 0.8, "×"),
	AT_LEAST("push in batches of 100 on PostgreSQL, against a bare INSERT of 100 rows",
		 "push-postgres-100-1", "ratio", 0.9, "×"),
	AT_MOST("resident memory, 1 M messages of 300 B", "backlog-postgres", "relay_peak_mb", 20,
		"MB"),
	AT_MOST("resident memory, messages of 100 kB", "memory-large", "relay_peak_mb", 64, "MB"),
	AT_MOST("idle CPU, PostgreSQL", "idle-postgres", "idle_cpu_percent", 0.5, "%"),
	AT_MOST("idle CPU, SQLite", "idle-sqlite", "idle_cpu_percent", 0.5, "%"),
	AT_MOST("idle resident memory, PostgreSQL", "idle-postgres", "resident_mb", 15, "MB"),
	AT_MOST("idle resident memory, SQLite", "idle-sqlite", "resident_mb", 15, "MB"),
	AT_MOST("start to first delivery, PostgreSQL → Redis", "start-postgres", "first_ms", 100,
		"ms"),
	AT_MOST("start to first delivery, SQLite → file", "start-sqlite", "first_ms", 100, "ms"),
	{ .name = NULL },
};

enum bench_verdict bench_bar_judge(const struct bench_bar *bar, const struct bench_result *results,
				   size_t count, const struct bench_result **ret_result)
{
	*ret_result = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct bench_series *series = bench_result_get(&results[i], bar->metric);

		if (strcmp(results[i].name, bar->name) != 0)
			continue;
		*ret_result = &results[i];
		if (!series)
			return BENCH_UNMEASURED;
		double median = bench_series_median(series);
		bool clears = bar->at_most ? median <= bar->value : median >= bar->value;
		return clears ? BENCH_PASS : BENCH_MISS;
	}
	return BENCH_UNMEASURED;
}
