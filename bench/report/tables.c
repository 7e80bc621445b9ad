/* SPDX-License-Identifier: MIT */
/* Which figures stand in which table. */
#include "bench/report/report.h"

#include <math.h>
#include <string.h>

static const struct bench_column drain[] = {
	{ "relay msg/s", "relay_rate", 0, true },   { "keep msg/s", "keep_rate", 0, true },
	{ "delete msg/s", "delete_rate", 0, true }, { "cursor msg/s", "cursor_rate", 0, true },
	{ "Node msg/s", "node_rate", 0, true },     { "× keep", "ratio_keep", 2, true },
	{ "× delete", "ratio_delete", 2, true },    { "× cursor", "ratio_cursor", 2, true },
	{ "× Node", "ratio_node", 2, true },        { NULL, NULL, 0, false },
};

static const struct bench_column cost[] = {
	{ "relay CPU µs", "relay_cpu_us", 1, false },
	{ "(keep)", "keep_cpu_us", 1, false },
	{ "(cursor)", "cursor_cpu_us", 1, false },
	{ "database CPU µs", "relay_store_cpu_us", 1, false },
	{ "(keep)", "keep_store_cpu_us", 1, false },
	{ "(delete)", "delete_store_cpu_us", 1, false },
	{ "(cursor)", "cursor_store_cpu_us", 1, false },
	{ "(Node)", "node_store_cpu_us", 1, false },
	{ "broker CPU µs", "relay_broker_cpu_us", 1, false },
	{ "log B", "relay_log_bytes", 1, false },
	{ "(keep)", "keep_log_bytes", 0, false },
	{ "(delete)", "delete_log_bytes", 0, false },
	{ "dead rows", "relay_dead_rows", 2, false },
	{ "(keep)", "keep_dead_rows", 2, false },
	{ "peak MB", "relay_peak_mb", 1, false },
	{ "(keep)", "keep_peak_mb", 1, false },
	{ NULL, NULL, 0, false },
};

static const struct bench_column fanout[] = {
	{ "one relay msg/s", "one_rate", 0, true },
	{ "each of two msg/s", "each_rate", 0, true },
	{ "ratio", "ratio", 2, true },
	{ NULL, NULL, 0, false },
};

static const struct bench_column refused[] = {
	{ "clean msg/s", "clean_rate", 0, true },
	{ "refused msg/s", "refused_rate", 0, true },
	{ "ratio", "ratio", 2, true },
	{ "(keep) clean", "keep_clean_rate", 0, true },
	{ "(keep) refused", "keep_refused_rate", 0, true },
	{ "(keep) ratio", "keep_ratio", 2, true },
	{ NULL, NULL, 0, false },
};

static const struct bench_column latency[] = {
	{ "p50 ms", "p50_ms", 2, true },
	{ "(keep)", "keep_p50_ms", 2, true },
	{ "p99 ms", "p99_ms", 2, true },
	{ "(keep)", "keep_p99_ms", 2, true },
	{ "max ms", "max_ms", 1, false },
	{ "commit alone, p50", "commit_p50_ms", 2, false },
	{ "producer late ms", "producer_late_ms", 1, false },
	{ "database CPU µs", "store_cpu_us", 0, true },
	{ "(keep)", "keep_store_cpu_us", 0, true },
	{ "ratio", "ratio_cpu", 2, false },
	{ "of it the relay's", "store_share", 0, true },
	{ "(keep)", "keep_store_share", 0, true },
	{ "ratio", "ratio_share", 2, false },
	{ NULL, NULL, 0, false },
};

static const struct bench_column backlog[] = {
	{ "large msg/s", "rate_large", 0, true },
	{ "100 k msg/s", "rate_small", 0, true },
	{ "ratio", "ratio", 2, false },
	{ NULL, NULL, 0, false },
};

static const struct bench_column finished[] = {
	{ "with finished rows msg/s", "rate_large", 0, true },
	{ "fresh msg/s", "rate_small", 0, true },
	{ "ratio", "ratio", 2, false },
	{ NULL, NULL, 0, false },
};

static const struct bench_column held[] = {
	{ "open transactions msg/s", "rate_large", 0, true },
	{ "none msg/s", "rate_small", 0, true },
	{ "ratio", "ratio", 2, false },
	{ NULL, NULL, 0, false },
};

static const struct bench_column killed[] = {
	{ "repeats", "repeats", 0, true },
	{ "worst", "repeats_worst", 0, false },
	{ "sent and not recorded", "in_flight", 0, true },
	{ "(keep) repeats", "keep_repeats", 0, true },
	{ "(keep) worst", "keep_repeats_worst", 0, false },
	{ "until messages flow again, s", "outage_s", 2, true },
	{ "(keep)", "keep_outage_s", 1, true },
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

static const struct bench_column consume[] = {
	{ "outbox consume/s", "consume_rate", 0, true },
	{ "bare loop/s", "bare_rate", 0, true },
	{ "ratio", "ratio", 2, true },
	{ NULL, NULL, 0, false },
};

static const struct bench_column append[] = {
	{ "append/s", "append_rate", 0, true },
	{ "bare INSERT/s", "bare_rate", 0, true },
	{ "ratio", "ratio", 2, true },
	{ "event + outbox row/s", "twice_rate", 0, true },
	{ "ratio", "twice_ratio", 2, true },
	{ "p50 ms", "p50_ms", 2, false },
	{ "p99 ms", "p99_ms", 2, false },
	{ "p99.9 ms", "p999_ms", 2, false },
	{ "bare p50 ms", "bare_p50_ms", 2, false },
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

static const struct bench_column lines[] = {
	{ "lines", "lines", 0, false },
	{ "baseline", "keep_lines", 0, false },
	{ "ratio", "ratio", 2, false },
	{ NULL, NULL, 0, false },
};

const struct bench_group bench_groups[] = {
	{ .name = "drain",
	  .title = "Draining: the relay beside the baseline and the loops",
	  .columns = drain,
	  .limit = true,
	  .first = "relay_rate",
	  .second = "keep_rate",
	  .ratio = "ratio_keep",
	  .first_title = "relay",
	  .second_title = "baseline, keep",
	  .unit = "messages/s" },
	{ .name = "drain", .title = "What a message costs there", .columns = cost },
	{ .name = "fanout", .title = "Fan-out", .columns = fanout },
	{ .name = "refused",
	  .title = "15 of 1,000 messages refused once, 300 keys",
	  .columns = refused },
	{ .name = "latency",
	  .title = "From commit to a reader of the broker",
	  .columns = latency,
	  .first = "p50_ms",
	  .second = "p99_ms",
	  .first_title = "p50",
	  .second_title = "p99",
	  .unit = "ms",
	  .decimals = 2 },
	{ .name = "backlog", .title = "Drain rate of a large backlog", .columns = backlog },
	{ .name = "finished",
	  .title = "Drain rate beside finished rows",
	  .columns = finished,
	  .first = "rate_large",
	  .second = "rate_small",
	  .ratio = "ratio",
	  .first_title = "1 M finished rows",
	  .second_title = "fresh table",
	  .unit = "messages/s" },
	{ .name = "held",
	  .title = "Drain rate behind a writer and a snapshot, both 60 s old",
	  .columns = held },
	{ .name = "kill", .title = "After kill -9", .columns = killed },
	{ .name = "push",
	  .title = "Writing: the library beside a prepared INSERT",
	  .columns = push,
	  .first = "push_rate",
	  .second = "bare_rate",
	  .ratio = "ratio",
	  .first_title = "outbox_push()",
	  .second_title = "bare INSERT",
	  .unit = "messages/s" },
	{ .name = "append",
	  .title = "Appending events: outbox_append() beside a prepared INSERT into the same table",
	  .columns = append,
	  .first = "append_rate",
	  .second = "bare_rate",
	  .ratio = "ratio",
	  .first_title = "outbox_append()",
	  .second_title = "bare INSERT",
	  .unit = "events/s" },
	{ .name = "consume",
	  .title = "Consuming a Redis stream: outbox consume beside a bare loop that inserts the "
		   "id and applies in one transaction of 100 messages",
	  .columns = consume,
	  .first = "consume_rate",
	  .second = "bare_rate",
	  .ratio = "ratio",
	  .first_title = "outbox consume",
	  .second_title = "bare loop",
	  .unit = "messages/s" },
	{ .name = "process", .title = "The process", .columns = process },
	{ .name = "lines", .title = "Lines of C", .columns = lines },
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
