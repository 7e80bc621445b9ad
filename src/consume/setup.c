/* SPDX-License-Identifier: MIT */
/* Putting a consumer of the configuration together. */
#include "consume/setup.h"

#include "base/uuid.h"

#include <string.h>

const struct ob_config_consumer *ob_consume_find(const struct ob_config *config, const char *name)
{
	if (!name)
		return config->consumer_count == 1 ? &config->consumers[0] : NULL;
	for (size_t i = 0; i < config->consumer_count; i++) {
		if (strcmp(config->consumers[i].name, name) == 0)
			return &config->consumers[i];
	}
	return NULL;
}

static int make_feed(struct ob_consume_setup *s, struct ob_err *err)
{
	const struct ob_config_consumer *conf = s->conf;
	struct ob_buf text = OB_BUF_INIT(sizeof(s->source) - 1);
	char member[OB_UUID_TEXT_SIZE];
	bool sole = conf->ordering == 0;

	/* A sole member has one name: what it left pending is its own after a restart. */
	ob_uuid_format(&s->lease.owner, member);
	const struct ob_feed_conf feed = { .ops = conf->feed,
					   .options = conf->feed_options,
					   .option_count = conf->feed_option_count,
					   .store = conf->log ? &conf->log->conf : NULL,
					   .group = conf->name,
					   .member = sole ? "outbox" : member,
					   .sole = sole };
	int r = ob_feed_new(&feed, &ob_clock_system, &s->feed, err);
	if (r < 0)
		return r;
	ob_feed_describe(s->feed, &text);
	(void)snprintf(s->source, sizeof(s->source), "%s", ob_buf_str(&text));
	ob_buf_done(&text);
	return 0;
}

static int make_handler(struct ob_consume_setup *s, const struct ob_sink_ops *function,
			struct ob_err *err)
{
	const struct ob_config_consumer *conf = s->conf;
	struct ob_sink *sink = NULL;

	if (function ? function->in_store != NULL : conf->by == OB_CONSUME_SQL) {
		const struct ob_handler_sql_conf sql = { .store = &conf->store->conf,
							 .statement = conf->sql,
							 .in_store = function,
							 .source = s->source,
							 .dedup = (enum ob_dedup)conf->dedup,
							 .lanes = conf->lanes,
							 .batch = conf->batch_size,
							 .lease = &s->lease };

		return ob_handler_sql_new(&sql, &s->handler, err);
	}
	int r = ob_sink_new(function ? function : conf->handler, conf->handler_options,
			    function ? 0 : conf->handler_option_count, &ob_clock_system, &sink,
			    err);
	return r < 0 ? r : ob_handler_of_sink_take(sink, &s->handler, err);
}

static struct ob_consumer_conf engine_conf(const struct ob_consume_setup *s)
{
	const struct ob_config_consumer *conf = s->conf;

	return (struct ob_consumer_conf){
		.name = conf->name,
		.dedup = (enum ob_dedup)conf->dedup,
		.ordered = conf->ordering == 0,
		.hold = conf->on_dead == OB_ON_DEAD_HOLD,
		.policy = { .retry = { conf->retry.base_delay_ms, conf->retry.max_backoff_ms,
				       conf->retry.multiplier, conf->retry.jitter },
			    .max_attempts = conf->retry.max_attempts },
		.failures = conf->failures,
		.failure_count = conf->failure_count,
		.batch = conf->batch_size,
		.window = conf->window,
		.max_per_key = conf->park.max_per_key,
		.max_parked = conf->park.max_total,
		.lease_ttl_ms = conf->lease_ttl_ms,
		.retention_ms = conf->store->retention.inbox_ms,
		.purge_batch = conf->store->retention.batch,
		.letter_destination = conf->letter_destination,
		.source = s->source,
	};
}

int ob_consume_setup(struct ob_consume_setup *s, const struct ob_config_consumer *conf,
		     const struct ob_sink_ops *function, const struct ob_log *log,
		     struct ob_err *err)
{
	*s = (struct ob_consume_setup){ .conf = conf };
	s->lease = (struct ob_consumer_lease){ .consumer = conf->name, .owner = ob_uuid_new() };
	int r = ob_store_connect(&conf->store->conf, &s->store, err);
	if (r == 0)
		r = make_feed(s, err);
	if (r == 0)
		r = make_handler(s, function, err);
	if (r == 0 && conf->letter_sink)
		r = ob_sink_new(conf->letter_sink->ops, conf->letter_sink->options,
				conf->letter_sink->option_count, &ob_clock_system, &s->letters,
				err);
	if (r < 0)
		return r;
	const struct ob_consumer_conf engine = engine_conf(s);
	const struct ob_consumer_parts parts = { .feed = s->feed,
						 .handler = s->handler,
						 .store = s->store,
						 .letters = s->letters,
						 .lease = &s->lease,
						 .clock = &ob_clock_system,
						 .log = log };
	return ob_consumer_new(&engine, &parts, &s->consumer, err);
}

void ob_consume_setup_done(struct ob_consume_setup *s)
{
	ob_consumer_free(s->consumer);
	if (s->handler)
		s->handler->ops->free(s->handler);
	ob_sink_free(s->letters);
	ob_feed_free(s->feed);
	ob_store_free(s->store);
	*s = (struct ob_consume_setup){ 0 };
}
