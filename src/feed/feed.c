/* SPDX-License-Identifier: MIT */
/* The only caller of the feeds' tables, and the list of the feeds. */
#include "feed/feed.h"

#include "base/cleanup.h"
#include "config.h"
#include "feed/backends.h"

#include <assert.h>
#include <stdlib.h>

#if HAVE_REDIS
#define REDIS_FEED &ob_feed_redis
#else
#define REDIS_FEED NULL
#endif

#if HAVE_KAFKA
#define KAFKA_FEED &ob_feed_kafka
#else
#define KAFKA_FEED NULL
#endif

#if HAVE_RABBITMQ
#define RABBITMQ_FEED &ob_feed_rabbitmq
#else
#define RABBITMQ_FEED NULL
#endif

#if HAVE_NATS
#define NATS_FEED &ob_feed_nats
#else
#define NATS_FEED NULL
#endif

const struct ob_feed_backend ob_feed_backends[] = {
	{ .name = "redis",
	  .ops = REDIS_FEED,
	  .package = "libhiredis-dev and libssl-dev",
	  .help = "A Redis stream, read by a consumer group." },
	{ .name = "kafka",
	  .ops = KAFKA_FEED,
	  .package = "librdkafka-dev",
	  .help = "A Kafka topic, read by a consumer group." },
	{ .name = "rabbitmq",
	  .ops = RABBITMQ_FEED,
	  .package = "librabbitmq-dev and libssl-dev",
	  .help = "A RabbitMQ queue." },
	{ .name = "nats",
	  .ops = NATS_FEED,
	  .package = "libnats-dev",
	  .help = "A NATS JetStream stream, read by a pull consumer." },
	{ .name = NULL },
};

enum { NAMES_MAX = 16 };

int ob_feed_find(const char *type, const struct ob_feed_backend **ret_backend, struct ob_err *err)
{
	const char *names[NAMES_MAX];
	struct ob_buf known = OB_BUF_INIT(300);
	size_t count = 0;

	for (const struct ob_feed_backend *b = ob_feed_backends; b->name; b++) {
		if (strcmp(b->name, type) == 0 && b->ops) {
			*ret_backend = b;
			return 0;
		}
		if (strcmp(b->name, type) == 0)
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "the %s source is not in this build: install %s and "
					  "build again",
					  b->name, b->package);
		names[count++] = b->name;
		ob_buf_addf(&known, "%s%s", count > 1 ? ", " : "", b->name);
	}
	const char *near = ob_suggest(type, names, count);
	(void)ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			 "no source type '%.80s'%s%s%s (known: %s)", type,
			 near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "",
			 ob_buf_str(&known));
	ob_buf_done(&known);
	return err->status;
}

/* ---- options --------------------------------------------------------- */

static bool is_link_opt(const struct ob_feed_ops *ops, const char *name)
{
	for (const char *const *n = ops->link_opts; n && *n; n++) {
		if (strcmp(*n, name) == 0)
			return true;
	}
	return false;
}

const struct ob_opt *ob_feed_opt(const struct ob_feed_ops *ops, const char *name)
{
	const struct ob_opt *own = ob_opt_find(ops->opts, name);

	if (own || !ops->link || !is_link_opt(ops, name))
		return own;
	return ob_opt_find(ops->link->opts, name);
}

static int make_link(struct ob_feed *feed, const struct ob_feed_conf *conf, struct ob_err *err)
{
	OB_AUTOFREE struct ob_opt_value *options = calloc(conf->option_count + 1, sizeof(*options));
	size_t count = 0;

	if (!options)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating the %s source",
				  conf->ops->name);
	for (size_t i = 0; i < conf->option_count; i++) {
		if (is_link_opt(conf->ops, conf->options[i].name))
			options[count++] = conf->options[i];
	}
	return ob_sink_new(conf->ops->link, options, count, feed->clock, &feed->link, err);
}

static int set_options(struct ob_feed *feed, const struct ob_feed_conf *conf, struct ob_err *err)
{
	const struct ob_feed_ops *ops = conf->ops;
	int r = ob_opt_defaults(ops->opts, feed, err);

	for (size_t i = 0; i < conf->option_count && r == 0; i++) {
		const struct ob_opt_value *o = &conf->options[i];

		if (!ob_feed_opt(ops, o->name))
			r = ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				       "the %s source has no option '%.80s'", ops->name, o->name);
		else if (ob_opt_find(ops->opts, o->name))
			r = ob_opt_set(ops->opts, feed, o->name, o->value, err);
	}
	for (const struct ob_opt *opt = ops->opts; r == 0 && opt->name; opt++) {
		bool given = false;

		for (size_t i = 0; i < conf->option_count; i++)
			given |= strcmp(conf->options[i].name, opt->name) == 0;
		if ((opt->flags & OB_OPT_REQUIRED) && !given)
			r = ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				       "the %s source needs the option '%s': %s", ops->name,
				       opt->name, opt->help);
	}
	return r < 0 || !ops->link ? r : make_link(feed, conf, err);
}

int ob_feed_new(const struct ob_feed_conf *conf, const struct ob_clock *clock,
		struct ob_feed **ret_feed, struct ob_err *err)
{
	struct ob_feed *feed = calloc(1, conf->ops->size);

	if (!feed)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating the %s source",
				  conf->ops->name);
	feed->ops = conf->ops;
	feed->clock = clock;
	feed->store = conf->store;
	feed->sole = conf->sole;
	(void)snprintf(feed->group, sizeof(feed->group), "%s", conf->group ? conf->group : "");
	(void)snprintf(feed->member, sizeof(feed->member), "%s", conf->member ? conf->member : "");
	int r = set_options(feed, conf, err);
	if (r < 0) {
		ob_sink_free(feed->link);
		ob_opt_free(conf->ops->opts, feed);
		free(feed);
		return r;
	}
	*ret_feed = feed;
	return 0;
}

int ob_feed_check(const struct ob_feed_conf *conf, struct ob_err *err)
{
	struct ob_feed *feed = NULL;
	int r = ob_feed_new(conf, &ob_clock_system, &feed, err);

	if (r == 0 && feed->link && feed->link->ops->check)
		r = feed->link->ops->check(feed->link, err);
	if (r == 0 && conf->ops->check)
		r = conf->ops->check(feed, err);
	ob_feed_free(feed);
	return r;
}

void ob_feed_free(struct ob_feed *feed)
{
	if (!feed)
		return;
	feed->ops->close(feed);
	ob_sink_free(feed->link);
	ob_opt_free(feed->ops->opts, feed);
	free(feed);
}

void ob_feed_batch_done(struct ob_feed_batch *batch)
{
	ob_arena_done(&batch->arena);
}

/* ---- operations ------------------------------------------------------ */

enum { KEEP = 1 << 20 };

int ob_feed_open(struct ob_feed *feed, struct ob_err *err)
{
	return feed->ops->open(feed, err);
}

int ob_feed_seek(struct ob_feed *feed, const struct ob_str *parts,
		 const struct ob_feed_place *places, size_t count, struct ob_err *err)
{
	assert(feed->ops->caps & OB_FEED_PLACES);
	return feed->ops->seek(feed, parts, places, count, err);
}

int ob_feed_poll(struct ob_feed *feed, int timeout_ms, uint32_t max, struct ob_feed_batch *batch,
		 struct ob_err *err)
{
	ob_arena_reset(&batch->arena, KEEP);
	batch->entries = NULL;
	batch->count = 0;
	batch->lost = 0;
	batch->news[0] = '\0';
	batch->moved = false;
	return feed->ops->poll(feed, timeout_ms, max, batch, err);
}

int ob_feed_ack(struct ob_feed *feed, const uint64_t *tags, size_t count, struct ob_err *err)
{
	return count ? feed->ops->ack(feed, tags, count, err) : 0;
}

void ob_feed_give_back(struct ob_feed *feed, const uint64_t *tags, size_t count)
{
	if (count && feed->ops->give_back)
		feed->ops->give_back(feed, tags, count);
}

void ob_feed_touch(struct ob_feed *feed, const uint64_t *tags, size_t count)
{
	if (count && feed->ops->touch)
		feed->ops->touch(feed, tags, count);
}

int ob_feed_state(struct ob_feed *feed, struct ob_feed_state *ret, struct ob_err *err)
{
	*ret = (struct ob_feed_state){ -1, -1, -1 };
	return feed->ops->state(feed, ret, err);
}

int ob_feed_probe(struct ob_feed *feed, int64_t handler_ms, struct ob_findings *out,
		  struct ob_err *err)
{
	return feed->ops->probe ? feed->ops->probe(feed, handler_ms, out, err) : 0;
}

void ob_feed_describe(struct ob_feed *feed, struct ob_buf *out)
{
	feed->ops->describe(feed, out);
}
