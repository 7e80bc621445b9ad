/* SPDX-License-Identifier: MIT */
/* What the dashboards of work and top share: the order of relays, and what workers elsewhere tell.
 */
#include "cli/work/work.h"

#include <stdlib.h>

/* ---- the order ------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct ob_dash_relay *)a)->name,
		      ((const struct ob_dash_relay *)b)->name);
}

static int falling(double a, double b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int by_rate(const void *a, const void *b)
{
	return falling(ob_rate_now(&((const struct ob_dash_relay *)a)->rate),
		       ob_rate_now(&((const struct ob_dash_relay *)b)->rate));
}

static int by_backlog(const void *a, const void *b)
{
	return falling((double)((const struct ob_dash_relay *)a)->sample.backlog,
		       (double)((const struct ob_dash_relay *)b)->sample.backlog);
}

static int by_dead(const void *a, const void *b)
{
	return falling((double)((const struct ob_dash_relay *)a)->sample.dead,
		       (double)((const struct ob_dash_relay *)b)->sample.dead);
}

/* The first is the order they came in. */
static const struct {
	const char *name;
	int (*compare)(const void *a, const void *b);
} orders[OB_DASH_ORDERS] = { { "", NULL },
			     { "name", by_name },
			     { "rate", by_rate },
			     { "backlog", by_backlog },
			     { "dead", by_dead } };

const char *ob_dash_sort(struct ob_dash_relay *relays, size_t count, size_t order)
{
	if (orders[order].compare && count > 0)
		qsort(relays, count, sizeof(*relays), orders[order].compare);
	return orders[order].name;
}

size_t ob_dash_scroll(size_t first, size_t count, int lines)
{
	size_t last = count ? count - 1 : 0, by = (size_t)abs(lines);

	if (lines < 0)
		return first > by ? first - by : 0;
	return first < last && last - first > by ? first + by : last;
}

/* ---- relays elsewhere ------------------------------------------------ */

static enum ob_err_kind kind_of(const char *name)
{
	static const enum ob_err_kind kinds[] = { OB_ERR_RETRY, OB_ERR_REJECT, OB_ERR_LOST,
						  OB_ERR_FATAL };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(ob_err_kind_name(kinds[i]), name) == 0)
			return kinds[i];
	}
	return OB_ERR_DOWN;
}

static void gather_error(struct ob_metrics_data *data, const struct ob_worker_error *from)
{
	struct ob_metrics_data one = { .error_count = from->at_us != 0 };

	one.errors[0].at_us = from->at_us;
	one.errors[0].times = from->times;
	one.errors[0].kind = kind_of(from->kind);
	memcpy(one.errors[0].text, from->text, sizeof(one.errors[0].text));
	ob_metrics_add(data, &one);
}

static enum ob_breaker_state breaker_of(const struct ob_worker_report *report)
{
	if (!ob_worker_report_is_down(report))
		return OB_BREAKER_CLOSED;
	return strcmp(report->breaker, "half_open") == 0 ? OB_BREAKER_HALF_OPEN : OB_BREAKER_OPEN;
}

void ob_dash_gather(const struct ob_sample *sample, struct ob_metrics_data *ret)
{
	size_t shown =
		sample->worker_count < OB_DASH_WORKERS ? sample->worker_count : OB_DASH_WORKERS;

	*ret = (struct ob_metrics_data){ 0 };
	for (size_t i = 0; i < shown; i++) {
		const struct ob_dash_worker *worker = &sample->workers[i];
		const struct ob_worker_report *report = &worker->report;
		struct ob_metrics_data one = { .published = worker->published,
					       .failed = worker->failed,
					       .partitions = worker->partitions };

		if (worker->told) {
			one.breaker = breaker_of(report);
			one.alarm = report->alarm;
			one.breaker_since_us = report->breaker_since_us;
			one.probe_us = report->probe_us;
			one.in_flight = report->in_flight;
			gather_error(ret, &report->sink_error);
			gather_error(ret, &report->store_error);
		}
		ob_metrics_add(ret, &one);
	}
}
