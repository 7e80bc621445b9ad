/* SPDX-License-Identifier: MIT */
/* The loop itself, for every pair. */
#include "bench/bare/bare.h"

#include "bench/bare/parts.h"
#include "bench/fatal.h"

#include <stdlib.h>
#include <unistd.h>

static const struct bare_source_ops *const sources[] = {
#if BENCH_POSTGRES
	&bare_postgres,
#endif
#if BENCH_MYSQL
	&bare_mysql,
#endif
#if BENCH_SQLITE
	&bare_sqlite,
#endif
	NULL,
};

static const struct bare_sink_ops *const sinks[] = {
	&bare_file,
#if BENCH_REDIS
	&bare_redis,
#endif
#if BENCH_HTTP
	&bare_http,
#endif
#if BENCH_KAFKA
	&bare_kafka,
#endif
#if BENCH_NATS
	&bare_nats,
#endif
#if BENCH_RABBITMQ
	&bare_rabbitmq,
#endif
	NULL,
};

size_t bare_fields(const struct bare_row *row, struct bare_field out[BARE_FIELDS])
{
	out[0] = (struct bare_field){ OB_STR("id"), row->id };
	out[1] = (struct bare_field){ OB_STR("event_type"), row->event_type };
	out[2] = (struct bare_field){ OB_STR("aggregate_type"), row->aggregate_type };
	out[3] = (struct bare_field){ OB_STR("aggregate_id"), row->aggregate_id };
	out[4] = (struct bare_field){ OB_STR("key"), row->key };
	out[5] = (struct bare_field){ OB_STR("revision"), row->revision };
	out[6] = (struct bare_field){ OB_STR("occurred_at"), row->occurred_at };
	return BARE_FIELDS;
}

static const struct bare_source_ops *find_source(const char *name)
{
	for (size_t i = 0; sources[i]; i++) {
		if (strcmp(sources[i]->name, name) == 0)
			return sources[i];
	}
	bench_fatal("no bare loop for the store '%s'", name);
}

static const struct bare_sink_ops *find_sink(const char *name)
{
	for (size_t i = 0; sinks[i]; i++) {
		if (strcmp(sinks[i]->name, name) == 0)
			return sinks[i];
	}
	bench_fatal("no bare loop for the sink '%s'", name);
}

int bare_run(const char *source_name, const char *url, const char *sink_name, const char *address)
{
	const struct bare_source_ops *from = find_source(source_name);
	const struct bare_sink_ops *to = find_sink(sink_name);
	struct bare_row *rows = bench_need(calloc(BARE_BATCH, sizeof(*rows)));
	void *source = from->open(url);
	void *sink = to->open(address);
	int64_t position = 0; /* it is started on a full table, once */
	size_t count;

	while ((count = from->read(source, position, rows)) > 0) {
		to->publish(sink, rows, count);
		position = rows[count - 1].seq;
		from->store(source, position);
	}
	/* Alive until it was looked at, as the relay is. */
	for (;;)
		(void)pause();
}
