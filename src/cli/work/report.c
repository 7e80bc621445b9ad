/* SPDX-License-Identifier: MIT */
/* What happened since the last line, for the log and for programs. */
#include "base/when.h"
#include "cli/out/jprint.h"
#include "cli/work/work.h"

#include <stdio.h>

static const char *const breakers[] = {
	[OB_BREAKER_CLOSED] = "closed",
	[OB_BREAKER_HALF_OPEN] = "half-open",
	[OB_BREAKER_OPEN] = "open",
};

struct window {
	uint64_t published, failed, retries, dead, down;
	double rate;
	struct ob_metrics_data now;
};

static struct window close_window(struct ob_work_relay *relay, int64_t span_us)
{
	const struct ob_metrics_data *before = &relay->reported;
	struct window w;

	ob_work_metrics(relay, &w.now);
	w.published = w.now.published - before->published;
	w.failed = w.now.failed - before->failed;
	w.retries = w.now.retries - before->retries;
	w.dead = w.now.dead - before->dead;
	w.down = w.now.down - before->down;
	w.rate = span_us > 0 ? (double)w.published * 1e6 / (double)span_us : 0;
	relay->reported = w.now;
	return w;
}

void ob_work_report_line(struct ob_work_relay *relay, const struct ob_sample *sample,
			 int64_t span_us, const struct ob_log *log)
{
	struct window w = close_window(relay, span_us);
	char rate[32], oldest[OB_WHEN_SIZE], backlog[24] = "?";

	(void)snprintf(rate, sizeof(rate), "%.1f/s", w.rate);
	if (sample->valid)
		(void)snprintf(backlog, sizeof(backlog), "%llu%s",
			       (unsigned long long)sample->backlog, sample->capped ? "+" : "");
	ob_when_age(sample->oldest_us, oldest);
	ob_log(log, OB_LOG_INFO, "window", OB_KV("relay", relay->conf->name),
	       OB_KI("published", (int64_t)w.published), OB_KV("rate", rate),
	       OB_KI("failed", (int64_t)w.failed), OB_KI("dead", (int64_t)w.dead),
	       OB_KV("backlog", backlog), OB_KV("oldest", sample->valid ? oldest : "?"),
	       OB_KI("in_flight", (int64_t)w.now.in_flight),
	       OB_KV("breaker", breakers[w.now.breaker]),
	       OB_KI("partitions", (int64_t)w.now.partitions));
}

static void sample_json(struct ob_jout *j, const struct ob_sample *sample)
{
	if (!sample->valid) {
		ob_jout_text(j, "backlog", OB_STR_NULL);
		ob_jout_text(j, "backlog_capped", OB_STR_NULL);
		ob_jout_text(j, "oldest_ms", OB_STR_NULL);
		ob_jout_text(j, "delayed", OB_STR_NULL);
		ob_jout_text(j, "held_keys", OB_STR_NULL);
		return;
	}
	ob_jout_int(j, "backlog", (int64_t)sample->backlog);
	ob_jout_bool(j, "backlog_capped", sample->capped);
	ob_jout_int(j, "oldest_ms", sample->oldest_us / 1000);
	ob_jout_int(j, "delayed", (int64_t)sample->delayed);
	ob_jout_int(j, "held_keys", (int64_t)sample->held_keys);
}

static void error_json(struct ob_jout *j, const struct ob_metrics_data *data)
{
	const struct ob_last_error *last =
		data->error_count ? &data->errors[data->error_count - 1] : NULL;

	ob_jout_text(j, "last_error", last ? ob_str(last->text) : OB_STR_NULL);
	ob_jout_when(j, "last_error_at", last ? last->at_us : 0);
}

int ob_work_report_json(struct ob_work_relay *relay, const struct ob_sample *sample,
			int64_t span_us, int64_t now_us)
{
	struct window w = close_window(relay, span_us);
	bool idle = w.published + w.failed + w.down == 0;
	struct ob_jout j = OB_JOUT_INIT;
	char rate[32];

	(void)snprintf(rate, sizeof(rate), "%.1f", w.rate);
	ob_jout_begin(&j, NULL, '{');
	ob_jout_when(&j, "time", now_us);
	ob_jout_text(&j, "relay", ob_str(relay->conf->name));
	ob_jout_int(&j, "span_ms", span_us / 1000);
	ob_jout_int(&j, "published", (int64_t)w.published);
	ob_jout_int(&j, "failed", (int64_t)w.failed);
	ob_jout_int(&j, "retries", (int64_t)w.retries);
	ob_jout_int(&j, "dead", (int64_t)w.dead);
	ob_jout_int(&j, "down", (int64_t)w.down);
	ob_jout_raw(&j, "rate", ob_str(rate));
	ob_jout_int(&j, "published_total", (int64_t)w.now.published);
	ob_jout_int(&j, "failed_total", (int64_t)w.now.failed);
	ob_jout_int(&j, "dead_total", (int64_t)w.now.dead);
	ob_jout_int(&j, "in_flight", (int64_t)w.now.in_flight);
	sample_json(&j, sample);
	ob_jout_int(&j, "backoff_ms", idle ? relay->conf->idle_backoff_ms : 0);
	ob_jout_text(&j, "breaker", ob_str(breakers[w.now.breaker]));
	ob_jout_int(&j, "partitions", (int64_t)w.now.partitions);
	ob_jout_int(&j, "workers", ob_work_workers(relay));
	error_json(&j, &w.now);
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	if (!r && fflush(stdout) != 0)
		r = OB_EXIT_FAILURE;
	return r;
}
