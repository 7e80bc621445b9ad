/* SPDX-License-Identifier: MIT */
/* The only caller of the backends' tables, and the list of the backends. */
#include "sink/sink.h"

#include "config.h"

#include <assert.h>

#if HAVE_REDIS
#define REDIS_OPS &ob_sink_redis
#else
#define REDIS_OPS NULL
#endif

#if HAVE_RABBITMQ
#define RABBITMQ_OPS &ob_sink_rabbitmq
#else
#define RABBITMQ_OPS NULL
#endif

#if HAVE_NATS
#define NATS_OPS &ob_sink_nats
#else
#define NATS_OPS NULL
#endif

#if HAVE_HTTP
#define HTTP_OPS &ob_sink_http
#else
#define HTTP_OPS NULL
#endif

#if HAVE_KAFKA
#define KAFKA_OPS &ob_sink_kafka
#else
#define KAFKA_OPS NULL
#endif

const struct ob_sink_backend ob_sink_backends[] = {
	{ .name = "stdout", .ops = &ob_sink_stdout, .help = "NDJSON lines on standard output." },
	{ .name = "file",
	  .ops = &ob_sink_file,
	  .help = "NDJSON lines appended to a file, synced before they count." },
	{ .name = "exec",
	  .ops = &ob_sink_exec,
	  .help = "NDJSON lines to a program of your own, which answers each." },
	{ .name = "sql",
	  .ops = &ob_sink_sql,
	  .help = "A statement in the database of the log, with the progress in one transaction." },
	{ .name = "http",
	  .ops = HTTP_OPS,
	  .package = "libcurl4-openssl-dev and libssl-dev",
	  .help = "Webhooks: a signed POST for each message, or for a batch." },
	{ .name = "redis",
	  .ops = REDIS_OPS,
	  .package = "libhiredis-dev and libssl-dev",
	  .help = "Redis Streams: XADD, runs of one key in one script." },
	{ .name = "rabbitmq",
	  .ops = RABBITMQ_OPS,
	  .package = "librabbitmq-dev and libssl-dev",
	  .help = "RabbitMQ: an exchange and a routing key, publisher confirms." },
	{ .name = "kafka",
	  .ops = KAFKA_OPS,
	  .package = "librdkafka-dev",
	  .help = "Kafka topics: an idempotent producer, acknowledged by all replicas in sync." },
	{ .name = "nats",
	  .ops = NATS_OPS,
	  .package = "libnats-dev",
	  .help = "NATS JetStream: acknowledged by a stream, deduplicated by the id." },
	{ .name = NULL },
};

enum { NAMES_MAX = 32 };

static int unknown_type(const char *type, struct ob_err *err)
{
	const char *names[NAMES_MAX];
	struct ob_buf known = OB_BUF_INIT(300);
	size_t count = 0;

	for (const struct ob_sink_backend *b = ob_sink_backends; b->name; b++) {
		assert(count < NAMES_MAX);
		names[count++] = b->name;
		ob_buf_addf(&known, "%s%s", count > 1 ? ", " : "", b->name);
	}
	const char *near = ob_suggest(type, names, count);
	if (near)
		(void)ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				 "no sink type '%.80s', did you mean '%s'? (known: %s)", type, near,
				 ob_buf_str(&known));
	else
		(void)ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				 "no sink type '%.80s' (known: %s)", type, ob_buf_str(&known));
	ob_buf_done(&known);
	return err->status;
}

int ob_sink_find(const char *type, const struct ob_sink_backend **ret_backend, struct ob_err *err)
{
	for (const struct ob_sink_backend *b = ob_sink_backends; b->name; b++) {
		if (strcmp(b->name, type) != 0)
			continue;
		if (!b->ops && b->package)
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "the %s sink is not in this build: install %s and build "
					  "again",
					  b->name, b->package);
		if (!b->ops)
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "the %s sink is not in this build", b->name);
		*ret_backend = b;
		return 0;
	}
	return unknown_type(type, err);
}

static int set_option(const struct ob_sink_ops *ops, void *sink, const struct ob_opt_value *option,
		      struct ob_err *err)
{
	if (ob_opt_find(ops->opts, option->name))
		return ob_opt_set(ops->opts, sink, option->name, option->value, err);

	const char *near = ob_opt_suggest(ops->opts, option->name);
	if (near)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the %s sink has no option '%.80s', did you mean '%s'?",
				  ops->name, option->name, near);
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "the %s sink has no option '%.80s'",
			  ops->name, option->name);
}

static bool is_given(const struct ob_opt_value *options, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(options[i].name, name) == 0 && options[i].value[0])
			return true;
	}
	return false;
}

static int set_options(const struct ob_sink_ops *ops, void *sink,
		       const struct ob_opt_value *options, size_t count, struct ob_err *err)
{
	int r = ob_opt_defaults(ops->opts, sink, err);

	for (size_t i = 0; i < count && r == 0; i++)
		r = set_option(ops, sink, &options[i], err);
	for (const struct ob_opt *opt = ops->opts; r == 0 && opt && opt->name; opt++) {
		if ((opt->flags & OB_OPT_REQUIRED) && !is_given(options, count, opt->name))
			r = ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				       "the %s sink needs the option '%s': %s", ops->name,
				       opt->name, opt->help);
	}
	return r;
}

int ob_sink_new(const struct ob_sink_ops *ops, const struct ob_opt_value *options,
		size_t option_count, const struct ob_clock *clock, struct ob_sink **ret_sink,
		struct ob_err *err)
{
	assert(ops->size >= sizeof(struct ob_sink));
	assert(ops->open && ops->send && ops->poll && ops->reset && ops->close && ops->describe);

	struct ob_sink *sink = calloc(1, ops->size);
	if (!sink)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating the %s sink",
				  ops->name);
	sink->ops = ops;
	sink->clock = clock;
	int r = set_options(ops, sink, options, option_count, err);
	if (r < 0) {
		ob_opt_free(ops->opts, sink);
		free(sink);
		return r;
	}
	*ret_sink = sink;
	return 0;
}

int ob_sink_check(const struct ob_sink_ops *ops, const struct ob_opt_value *options,
		  size_t option_count, struct ob_err *err)
{
	struct ob_sink *sink = NULL;
	int r = ob_sink_new(ops, options, option_count, &ob_clock_system, &sink, err);

	if (r == 0 && ops->check)
		r = ops->check(sink, err);
	ob_sink_free(sink);
	return r;
}

int ob_sink_check_binary(const struct ob_sink_ops *ops, const struct ob_opt_value *options,
			 size_t option_count, struct ob_err *err)
{
	struct ob_sink *sink = NULL;
	int r;

	if (!ops->ce_prefix)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "CloudEvents has no binary mode for a sink of type '%s'; use "
				  "cloudevents-structured",
				  ops->name);
	if (!ops->check_binary)
		return 0;
	r = ob_sink_new(ops, options, option_count, &ob_clock_system, &sink, err);
	if (r == 0)
		r = ops->check_binary(sink, err);
	ob_sink_free(sink);
	return r;
}

void ob_sink_free(struct ob_sink *sink)
{
	if (!sink)
		return;
	sink->ops->close(sink);
	ob_opt_free(sink->ops->opts, sink);
	free(sink);
}

int ob_sink_open(struct ob_sink *sink, struct ob_err *err)
{
	int r = sink->ops->open(sink, err);

	assert(r == 0 || (r < 0 && (err->kind == OB_ERR_DOWN || err->kind == OB_ERR_FATAL)));
	return r;
}

int ob_sink_send(struct ob_sink *sink, const struct ob_delivery *delivery, struct ob_err *err)
{
	assert(delivery->message);
	int r = sink->ops->send(sink, delivery, err);

	assert(r == 0 || r == OB_SINK_FULL ||
	       (r < 0 && err->kind != OB_ERR_NONE && err->kind != OB_ERR_LOST));
	return r;
}

int ob_sink_poll(struct ob_sink *sink, int timeout_ms, struct ob_ack *acks, size_t max,
		 struct ob_err *err)
{
	assert(max > 0 && timeout_ms >= 0);
	int r = sink->ops->poll(sink, timeout_ms, acks, max, err);

	assert(r < 0 ? err->kind == OB_ERR_FATAL : (size_t)r <= max);
	return r;
}

void ob_sink_reset(struct ob_sink *sink)
{
	sink->ops->reset(sink);
}

int ob_sink_fd(struct ob_sink *sink)
{
	return sink->ops->fd ? sink->ops->fd(sink) : -1;
}

void ob_sink_describe(struct ob_sink *sink, struct ob_buf *out)
{
	sink->ops->describe(sink, out);
}

void ob_sink_advise(struct ob_sink *sink, struct ob_findings *out)
{
	if (sink->ops->advise)
		sink->ops->advise(sink, out);
}

int ob_sink_probe(struct ob_sink *sink, const struct ob_str *destinations, size_t count,
		  struct ob_findings *out, struct ob_err *err)
{
	assert(sink && (destinations || count == 0) && out && err);
	return sink->ops->probe ? sink->ops->probe(sink, destinations, count, out, err) : 0;
}
