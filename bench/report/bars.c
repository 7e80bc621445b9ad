/* SPDX-License-Identifier: MIT */
/* One row a bar. The median counts. */
#include "bench/report/bars.h"

#include <string.h>

#define AT_LEAST(text, name, metric, value, unit) \
	{ \
		text, name, metric, false, value, unit, NULL \
	}
#define AT_MOST(text, name, metric, value, unit) \
	{ \
		text, name, metric, true, value, unit, NULL \
	}

#define AT_MOST_OF(text, name, metric, bound, unit) \
	{ \
		text, name, metric, true, 0, unit, bound \
	}

const struct bench_bar bench_bars[] = {
	AT_LEAST("PostgreSQL → Redis, 1 M messages of 300 B, 16 partitions, against the baseline, "
		 "keep",
		 "postgres-redis", "ratio_keep", 3.2, "×"),
	AT_LEAST("the same against the baseline, delete", "postgres-redis", "ratio_delete", 1.7,
		 "×"),
	AT_LEAST("the same against the bare loop by cursor, which is unsafe", "postgres-redis",
		 "ratio_cursor", 1.25, "×"),
	AT_LEAST("the same against the loop in Node with DELETE on its own narrow table",
		 "postgres-redis", "ratio_node", 1.8, "×"),
	AT_MOST("PostgreSQL CPU of a message", "postgres-redis", "relay_store_cpu_us", 4.5, "µs"),
	AT_MOST("WAL of a message", "postgres-redis", "relay_log_bytes", 15, "B"),
	AT_MOST("resident memory, draining 1 M messages of 300 B", "postgres-redis",
		"relay_peak_mb", 20, "MB"),
	AT_LEAST("MariaDB → Redis against the baseline, keep", "mysql-redis", "ratio_keep", 2.5,
		 "×"),
	AT_MOST("MariaDB CPU of a message", "mysql-redis", "relay_store_cpu_us", 10, "µs"),
	AT_LEAST("SQLite → file against the baseline, keep", "sqlite-file", "ratio_keep", 2, "×"),
	AT_LEAST("PostgreSQL → Kafka (librdkafka's mock) against the baseline, keep",
		 "postgres-kafka", "ratio_keep", 2.5, "×"),
	AT_LEAST("PostgreSQL → NATS against the baseline, keep", "postgres-nats", "ratio_keep", 1,
		 "×"),
	AT_LEAST("PostgreSQL → RabbitMQ against the baseline, keep", "postgres-rabbitmq",
		 "ratio_keep", 1, "×"),
	AT_LEAST("PostgreSQL → HTTP against the baseline, keep", "postgres-http", "ratio_keep", 1,
		 "×"),
	AT_LEAST("PostgreSQL → Kafka against the baseline, delete", "postgres-kafka",
		 "ratio_delete", 1, "×"),
	AT_LEAST("PostgreSQL → NATS against the baseline, delete", "postgres-nats", "ratio_delete",
		 1, "×"),
	AT_LEAST("PostgreSQL → RabbitMQ against the baseline, delete", "postgres-rabbitmq",
		 "ratio_delete", 1, "×"),
	AT_LEAST("PostgreSQL → HTTP against the baseline, delete", "postgres-http", "ratio_delete",
		 1, "×"),
	AT_LEAST("fan-out to two Redis streams: the slower against one alone, PostgreSQL",
		 "fanout-postgres", "ratio", 0.8, "×"),
	AT_LEAST("outbox consume by ids against a bare loop with ids, PostgreSQL",
		 "consume-postgres-ids", "ratio", 0.8, "×"),
	AT_LEAST("the same by position, PostgreSQL", "consume-postgres-position", "ratio", 1.2,
		 "×"),
	AT_LEAST("outbox consume by ids against a bare loop with ids, SQLite", "consume-sqlite-ids",
		 "ratio", 0.8, "×"),
	AT_LEAST("the same by position, SQLite", "consume-sqlite-position", "ratio", 1.2, "×"),
	AT_LEAST("15 of 1,000 messages refused over 300 keys against none, PostgreSQL",
		 "refused-postgres", "ratio", 0.5, "×"),
	AT_LEAST("15 of 1,000 messages refused over 300 keys against none, MariaDB",
		 "refused-mysql", "ratio", 0.5, "×"),
	AT_MOST("PostgreSQL, commit → Redis at 200/s, p50", "latency-postgres-200", "p50_ms", 0.8,
		"ms"),
	AT_MOST("PostgreSQL, commit → Redis at 200/s, p99", "latency-postgres-200", "p99_ms", 4,
		"ms"),
	AT_MOST("PostgreSQL CPU of a message at 200/s, writers and relay, against the baseline",
		"latency-postgres-200", "ratio_cpu", 0.6, "×"),
	AT_MOST("the same, of the relay alone", "latency-postgres-200", "ratio_share", 0.6, "×"),
	AT_MOST("SQLite, commit → file at 200/s, p50", "latency-sqlite-200", "p50_ms", 5, "ms"),
	AT_LEAST("drain with a backlog of 10 M against 100 k, PostgreSQL", "backlog-postgres",
		 "ratio", 0.9, "×"),
	AT_LEAST("drain with 1 M finished rows against none, PostgreSQL", "finished-postgres",
		 "ratio", 0.9, "×"),
	AT_LEAST("drain with 1 M finished rows against none, MariaDB", "finished-mysql", "ratio",
		 0.9, "×"),
	AT_LEAST("drain with 1 M finished rows against none, SQLite", "finished-sqlite", "ratio",
		 0.9, "×"),
	AT_LEAST("drain behind a writer and a snapshot, both 60 s old, against none, PostgreSQL",
		 "held-postgres", "ratio", 0.9, "×"),
	AT_LEAST("drain behind a writer and a snapshot, both 60 s old, against none, MariaDB",
		 "held-mysql", "ratio", 0.9, "×"),
	AT_MOST_OF("repeats after kill -9 during a drain of 50,000, worst of 20, PostgreSQL; bar: "
		   "what was in flight",
		   "repeats-postgres", "repeats_worst", "in_flight_worst", ""),
	AT_MOST_OF("repeats after kill -9 during a drain of 50,000, worst of 20, MariaDB; bar: "
		   "what was in flight",
		   "repeats-mysql", "repeats_worst", "in_flight_worst", ""),
	AT_MOST_OF("repeats after kill -9 during a drain of 50,000, worst of 20, SQLite; bar: what "
		   "was in flight",
		   "repeats-sqlite", "repeats_worst", "in_flight_worst", ""),
	AT_MOST("kill -9 of the only owner until messages flow again, worst, PostgreSQL",
		"takeover-postgres", "outage_worst_s", 1.5, "s"),
	AT_MOST("kill -9 of the only owner until messages flow again, worst, MariaDB",
		"takeover-mysql", "outage_worst_s", 1.5, "s"),
	AT_MOST("lines of src/store, src/relay and src/log against the baseline", "lines", "ratio",
		0.75, "×"),
	AT_LEAST("PostgreSQL → Redis, all messages of one key, against the bare loop", "one-key",
		 "ratio_cursor", 0.6, "×"),
	AT_LEAST("push in batches of 100 on PostgreSQL, against a bare INSERT of 100 rows",
		 "push-postgres-100-1", "ratio", 0.9, "×"),
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

double bench_bar_value(const struct bench_bar *bar, const struct bench_result *result)
{
	return bar->bound ? bench_result_median(result, bar->bound) : bar->value;
}

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
		double value = bench_bar_value(bar, &results[i]);
		bool clears = bar->at_most ? median <= value : median >= value;
		return clears ? BENCH_PASS : BENCH_MISS;
	}
	return BENCH_UNMEASURED;
}
