/* SPDX-License-Identifier: MIT */
/* Counters and gauges of a worker. */
#include "relay/metrics.h"

#include "base/utf8.h"

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

static bool is_same(const struct ob_last_error *a, const struct ob_last_error *b)
{
	return a->kind == b->kind && ob_uuid_eq(&a->message, &b->message) &&
	       strcmp(a->text, b->text) == 0;
}

/* An error that comes again is one error: it must not push out all others. */
static bool take_same(struct ob_metrics_data *data, struct ob_last_error *error)
{
	for (uint32_t i = 0; i < data->error_count; i++) {
		if (!is_same(&data->errors[i], error))
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

void ob_metrics_add(struct ob_metrics_data *sum, const struct ob_metrics_data *part)
{
#define X(name, help) sum->name += part->name;
	OB_COUNTER_MAP(X)
	OB_GAUGE_MAP(X)
#undef X
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
	sum->store_down = sum->store_down || part->store_down;
	for (uint32_t i = 0; i < part->error_count; i++)
		(void)keep_error(sum, &part->errors[i]);
}

/* Cut between two characters, and say so. */
static void copy_text(char out[OB_LAST_ERROR_TEXT], const char *text)
{
	static const char dots[] = "\xe2\x80\xa6";
	struct ob_buf clean = OB_BUF_INIT(8192);
	size_t n;

	ob_utf8_sanitize(&clean, ob_str(text), SIZE_MAX);
	n = clean.len;
	if (n >= OB_LAST_ERROR_TEXT) {
		n = OB_LAST_ERROR_TEXT - sizeof(dots);
		while (n > 0 && ((unsigned char)clean.data[n] & 0xc0) == 0x80)
			n--;
		memcpy(out, clean.data, n);
		memcpy(out + n, dots, sizeof(dots));
	} else {
		memcpy(out, ob_buf_str(&clean), n + 1);
	}
	ob_buf_done(&clean);
}

bool ob_metrics_error(struct ob_metrics *metrics, int64_t at_us, const struct ob_err *err,
		      const struct ob_uuid *message)
{
	struct ob_last_error error = { .at_us = at_us, .kind = err->kind, .times = 1 };

	if (!metrics)
		return true;
	if (message)
		error.message = *message;
	copy_text(error.text, err->msg);

	bool fresh = keep_error(ob_metrics_lock(metrics), &error);

	ob_metrics_unlock(metrics);
	return fresh;
}
