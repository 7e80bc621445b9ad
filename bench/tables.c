/* SPDX-License-Identifier: MIT */
/* Which figures stand in which table. */
#include "bench/report.h"

#include <math.h>
#include <string.h>

static const struct bench_column drain[] = {
	{ "relay msg/s", "relay_rate", 0, true },
	{ "bare msg/s", "bare_rate", 0, true },
	{ "ratio", "ratio", 2, true },
	{ "relay CPU µs", "relay_cpu_us", 1, false },
	{ "bare CPU µs", "bare_cpu_us", 1, false },
	{ "database CPU µs", "relay_store_cpu_us", 1, false },
	{ "(bare)", "bare_store_cpu_us", 1, false },
	{ "broker CPU µs", "relay_broker_cpu_us", 1, false },
	{ "log B", "relay_log_bytes", 0, false },
	{ "(bare)", "bare_log_bytes", 0, false },
	{ "dead rows", "relay_dead_rows", 2, false },
	{ "peak MB", "relay_peak_mb", 1, false },
	{ NULL, NULL, 0, false },
};

static const struct bench_column latency[] = {
	{ "p50 ms", "p50_ms", 2, true },
	{ "p99 ms", "p99_ms", 2, true },
	{ "max ms", "max_ms", 1, true },
	{ "commit alone, p50", "commit_p50_ms", 2, true },
	{ "producer late ms", "producer_late_ms", 1, false },
	{ NULL, NULL, 0, false },
};

static const struct bench_column growth[] = {
	{ "10 k", "rate_10k", 0, true },
	{ "100 k", "rate_100k", 0, true },
	{ "1 M", "rate_1m", 0, false },
	{ "largest", "rate_largest", 0, true },
	{ "against 100 k", "ratio_largest", 2, false },
	{ "open transactions", "rate_held", 0, false },
	{ "against none", "ratio_held", 2, false },
	{ "peak MB at 1 M", "relay_peak_mb", 1, false },
	{ NULL, NULL, 0, false },
};

static const struct bench_column finished[] = {
	{ "fresh msg/s", "rate_fresh", 0, true },
	{ "with finished rows msg/s", "rate_published", 0, true },
	{ "ratio", "ratio_published", 2, false },
	{ NULL, NULL, 0, false },
};

static const struct bench_column push[] = {
	{ "push msg/s", "push_rate", 0, true },
	{ "bare msg/s", "bare_rate", 0, true },
	{ "ratio", "ratio", 2, true },
	{ "database CPU µs", "push_store_cpu_us", 1, false },
	{ "(bare)", "bare_store_cpu_us", 1, false },
	{ "log B", "push_log_bytes", 0, false },
	{ "(bare)", "bare_log_bytes", 0, false },
	{ NULL, NULL, 0, false },
};

static const struct bench_column process[] = {
	{ "start to first delivery ms", "first_ms", 1, true },
	{ "idle CPU %", "idle_cpu_percent", 2, false },
	{ "resident MB", "resident_mb", 1, false },
	{ "peak MB", "relay_peak_mb", 1, false },
	{ "msg/s", "relay_rate", 0, false },
	{ NULL, NULL, 0, false },
};

const struct bench_group bench_groups[] = {
	{ .name = "drain",
	  .title = "Draining: the relay beside the bare loop",
	  .columns = drain,
	  .limit = true,
	  .first = "relay_rate",
	  .second = "bare_rate",
	  .first_title = "relay",
	  .second_title = "bare loop",
	  .unit = "messages/s" },
	{ .name = "latency",
	  .title = "From commit to a reader of the broker",
	  .columns = latency,
	  .first = "p50_ms",
	  .second = "p99_ms",
	  .first_title = "p50",
	  .second_title = "p99",
	  .unit = "ms",
	  .decimals = 2 },
	{ .name = "growth", .title = "Drain rate by backlog, messages/s", .columns = growth },
	{ .name = "finished",
	  .title = "Drain rate beside finished rows",
	  .columns = finished,
	  .first = "rate_published",
	  .second = "rate_fresh",
	  .first_title = "1 M finished rows",
	  .second_title = "fresh table",
	  .unit = "messages/s" },
	{ .name = "push",
	  .title = "Writing: the library beside a prepared INSERT",
	  .columns = push,
	  .first = "push_rate",
	  .second = "bare_rate",
	  .first_title = "outbox_push()",
	  .second_title = "bare INSERT",
	  .unit = "messages/s" },
	{ .name = "process", .title = "The process", .columns = process },
	{ .name = NULL },
};

void bench_format(char *out, size_t size, double value, int decimals)
{
	char plain[64];
	size_t used = 0;

	(void)snprintf(plain, sizeof(plain), "%.*f", decimals, fabs(value));
	size_t whole = strcspn(plain, ".");

	if (value < 0 && used + 1 < size)
		out[used++] = '-';
	for (size_t i = 0; plain[i] && used + 2 < size; i++) {
		if (i > 0 && i < whole && (whole - i) % 3 == 0)
			out[used++] = ',';
		out[used++] = plain[i];
	}
	out[used] = '\0';
}
