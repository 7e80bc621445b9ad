/* SPDX-License-Identifier: MIT */
/* A heartbeat comes every few seconds: a rate is taken over several of them. */
#include "monitor/rates.h"

#include <stdio.h>
#include <stdlib.h>

void ob_rates_done(struct ob_rates *r)
{
	free(r->workers);
	free(r->readers);
	*r = (struct ob_rates){ 0 };
}

static struct ob_rate_reader *find_reader(const struct ob_rates *r, struct ob_str name)
{
	for (size_t i = 0; i < r->reader_count; i++) {
		if (ob_str_eq(ob_str(r->readers[i].name), name))
			return &r->readers[i];
	}
	return NULL;
}

static struct ob_rate_reader *add_reader(struct ob_rates *r, struct ob_str name)
{
	struct ob_rate_reader *more =
		reallocarray(r->readers, r->reader_count + 1, sizeof(*r->readers));

	if (!more || name.n >= sizeof(more->name))
		return NULL;
	r->readers = more;
	more += r->reader_count++;
	*more = (struct ob_rate_reader){ 0 };
	(void)snprintf(more->name, sizeof(more->name), "%.*s", (int)name.n, name.p);
	return more;
}

/* What a worker published since it was seen last; of a new one nothing is known. */
static uint64_t grown(const struct ob_rates *r, const struct ob_worker *worker)
{
	for (size_t i = 0; i < r->worker_count; i++) {
		const struct ob_rate_worker *was = &r->workers[i];

		if (ob_uuid_eq(&was->id, &worker->id))
			return worker->published > was->published
				       ? worker->published - was->published
				       : 0;
	}
	return 0;
}

static void push_point(struct ob_rate_reader *reader, int64_t now_us)
{
	if (reader->count == OB_RATES_RING) {
		memmove(&reader->ring[0], &reader->ring[1],
			(OB_RATES_RING - 1) * sizeof(reader->ring[0]));
		reader->count--;
	}
	reader->ring[reader->count].at_us = now_us;
	reader->ring[reader->count++].total = reader->total;
}

void ob_rates_note(struct ob_rates *r, const struct ob_worker *workers, size_t count,
		   int64_t now_us)
{
	struct ob_rate_worker *next = calloc(count ? count : 1, sizeof(*next));

	if (!next)
		return;
	for (size_t i = 0; i < count; i++) {
		struct ob_rate_reader *reader = find_reader(r, workers[i].reader);

		if (!reader)
			reader = add_reader(r, workers[i].reader);
		if (reader)
			reader->total += grown(r, &workers[i]);
		next[i] = (struct ob_rate_worker){ .id = workers[i].id,
						   .published = workers[i].published };
	}
	free(r->workers);
	r->workers = next;
	r->worker_count = count;
	for (size_t i = 0; i < r->reader_count; i++)
		push_point(&r->readers[i], now_us);
}

double ob_rates_read(const struct ob_rates *r, struct ob_str name)
{
	const struct ob_rate_reader *reader = find_reader(r, name);

	if (!reader)
		return 0;
	if (reader->count < 2)
		return -1;
	int64_t span = reader->ring[reader->count - 1].at_us - reader->ring[0].at_us;
	uint64_t by = reader->ring[reader->count - 1].total - reader->ring[0].total;
	return span > 0 ? (double)by * 1e6 / (double)span : -1;
}
