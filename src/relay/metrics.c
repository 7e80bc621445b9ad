/* SPDX-License-Identifier: MIT */
/* Counters and gauges of a worker. */
#include "relay/metrics.h"

void ob_metrics_init(struct ob_metrics *metrics, const struct ob_uuid *worker)
{
	*metrics = (struct ob_metrics){ .worker = *worker };
	(void)pthread_mutex_init(&metrics->lock, NULL);
}

void ob_metrics_done(struct ob_metrics *metrics)
{
	(void)pthread_mutex_destroy(&metrics->lock);
}

void ob_metrics_read(struct ob_metrics *metrics, struct ob_metrics_data *ret)
{
	*ret = *ob_metrics_lock(metrics);
	ob_metrics_unlock(metrics);
}

static bool is_same_error(const struct ob_last_error *a, const struct ob_last_error *b)
{
	return a->kind == b->kind && ob_uuid_eq(&a->message, &b->message) &&
	       strcmp(a->text, b->text) == 0;
}

/* An error that comes again is one error: it must not push out all others. */
static bool take_same(struct ob_metrics_data *data, struct ob_last_error *error)
{
	for (uint32_t i = 0; i < data->error_count; i++) {
		if (!is_same_error(&data->errors[i], error))
			continue;
		error->times += data->errors[i].times;
		if (data->errors[i].at_us > error->at_us)
			error->at_us = data->errors[i].at_us;
		data->error_count--;
		memmove(&data->errors[i], &data->errors[i + 1],
			(data->error_count - i) * sizeof(data->errors[0]));
		return true;
	}
	return false;
}

/* Keep it sorted by time, newest last; the oldest makes room. True if none was like it. */
static bool keep_error(struct ob_metrics_data *data, const struct ob_last_error *given)
{
	struct ob_last_error error = *given;

	bool fresh = !take_same(data, &error);
	uint32_t at = data->error_count;

	while (at > 0 && data->errors[at - 1].at_us > error.at_us)
		at--;
	if (data->error_count == OB_LAST_ERRORS) {
		if (at == 0)
			return fresh;
		at--;
		memmove(&data->errors[0], &data->errors[1], at * sizeof(data->errors[0]));
	} else {
		memmove(&data->errors[at + 1], &data->errors[at],
			(data->error_count - at) * sizeof(data->errors[0]));
		data->error_count++;
	}
	data->errors[at] = error;
	return fresh;
}

/* Of several that are not closed, the one that left it first. */
static void add_breaker(struct ob_metrics_data *sum, const struct ob_metrics_data *part)
{
	if (!part->breaker_since_us ||
	    (sum->breaker_since_us && sum->breaker_since_us <= part->breaker_since_us))
		return;
	sum->breaker_since_us = part->breaker_since_us;
	sum->probe_us = part->probe_us;
	memcpy(sum->breaker_why, part->breaker_why, sizeof(sum->breaker_why));
}

/* The newest error of each origin, and the newest pass of retention. */
static void add_last(struct ob_metrics_data *sum, const struct ob_metrics_data *part)
{
	for (int i = 0; i < OB_ERROR_ORIGINS; i++) {
		if (part->last[i].at_us > sum->last[i].at_us)
			sum->last[i] = part->last[i];
	}
	if (part->retained_us > sum->retained_us) {
		sum->retained_us = part->retained_us;
		sum->retained_rows = part->retained_rows;
		sum->retained_parts = part->retained_parts;
		memcpy(sum->retained_held, part->retained_held, sizeof(sum->retained_held));
	}
}

/* What happened, and what is there now. */
static void sum_counts(struct ob_metrics_data *sum, const struct ob_metrics_data *part)
{
#define X(name, help) sum->name += part->name;
	OB_COUNTER_MAP(X)
	OB_GAUGE_MAP(X)
#undef X
#define X(name, unit, help) ob_histogram_add(&sum->times.name, &part->times.name);
	OB_HISTOGRAM_MAP(X)
#undef X
	for (int i = 0; i < OB_WHY_COUNT; i++)
		sum->waits[i] += part->waits[i];
}

void ob_metrics_add(struct ob_metrics_data *sum, const struct ob_metrics_data *part)
{
	sum_counts(sum, part);
	sum->fetch_us += part->fetch_us;
	sum->settle_us += part->settle_us;
	if (part->last_fetch_us > sum->last_fetch_us)
		sum->last_fetch_us = part->last_fetch_us;
	if (part->last_settle_us > sum->last_settle_us)
		sum->last_settle_us = part->last_settle_us;
	if (part->oldest_unsettled_us > sum->oldest_unsettled_us)
		sum->oldest_unsettled_us = part->oldest_unsettled_us;
	if (part->breaker > sum->breaker)
		sum->breaker = part->breaker;
	sum->alarm = sum->alarm || part->alarm;
	add_breaker(sum, part);
	add_last(sum, part);
	sum->store_down = sum->store_down || part->store_down;
	for (uint32_t i = 0; i < part->error_count; i++)
		(void)keep_error(sum, &part->errors[i]);
}

/* The same error again is one that came more often. */
static void note_last(struct ob_last_error *last, const struct ob_last_error *error)
{
	bool same = last->times > 0 && last->kind == error->kind &&
		    strcmp(last->text, error->text) == 0;
	uint32_t times = same ? last->times + 1 : 1;

	*last = *error;
	last->times = times;
}

bool ob_metrics_error(struct ob_metrics *metrics, enum ob_error_of of, int64_t at_us,
		      const struct ob_err *err, const struct ob_uuid *message)
{
	struct ob_last_error error = { .at_us = at_us, .kind = err->kind, .times = 1 };

	if (!metrics)
		return true;
	if (message)
		error.message = *message;
	ob_worker_text(error.text, sizeof(error.text), ob_str(err->msg));

	struct ob_metrics_data *data = ob_metrics_lock(metrics);
	bool fresh = keep_error(data, &error);

	note_last(&data->last[of], &error);

	ob_metrics_unlock(metrics);
	return fresh;
}
