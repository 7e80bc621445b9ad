/* SPDX-License-Identifier: MIT */
/*
 * What a queue's limits mean for a handler. AMQP has no question for a queue's arguments, but a
 * broker that is told to declare a queue that is there, with other arguments, refuses and names the
 * first that differs. Asked again with that one, it names the next. Nothing changes: the queue is
 * there, as a passive declaration has found. Policies are not seen that way, nor is what needs
 * rights to configure the queue.
 */
#include "feed/rabbitmq/rabbitmq.h"

#include <stdlib.h>

enum { QUEUE, DELIVERY_LIMIT, CONSUMER_TIMEOUT };

const struct ob_check ob_rabbitmq_feed_checks[] = {
	[QUEUE] = { "rabbitmq_queue", "The queue of a consumer is there.",
		    "declare it, and bind it; the consumer waits for it" },
	[DELIVERY_LIMIT] = { "rabbitmq_delivery_limit",
			     "A quorum queue that gives a message up has a dead-letter exchange to "
			     "send it to. What a policy says is not seen.",
			     "set x-delivery-limit to -1, or x-dead-letter-exchange: the consumer "
			     "parks what fails, and needs no limit" },
	[CONSUMER_TIMEOUT] = { "rabbitmq_consumer_timeout",
			       "The server's consumer_timeout is longer than the handler may take.",
			       "raise consumer_timeout in rabbitmq.conf, and in the source what it "
			       "is; or shorten the handler's timeout" },
	OB_CHECK_END,
};

enum { ARGS = 32, NAME_SIZE = 64, VALUE_SIZE = 256, DEFAULT_LIMIT = 20, MAJOR_WITH_LIMIT = 4 };

/* What the queue was declared with, as far as it is known. */
struct queue_args {
	struct queue_arg {
		char name[NAME_SIZE], value[VALUE_SIZE], type[16];
	} list[ARGS];
	int count;
	bool transient, auto_delete;
};

static const char *arg(const struct queue_args *args, const char *name)
{
	for (int i = 0; i < args->count; i++) {
		if (strcmp(args->list[i].name, name) == 0)
			return args->list[i].value;
	}
	return NULL;
}

/* ---- asking ---------------------------------------------------------- */

static int open_channel(struct rabbitmq_sink *link, struct ob_err *err)
{
	amqp_channel_open_t channel = { 0 };

	return ob_rabbitmq_ask(link, OB_RABBITMQ_PROBE_CHANNEL, AMQP_CHANNEL_OPEN_METHOD, &channel,
			       AMQP_CHANNEL_OPEN_OK_METHOD, err);
}

/* 1: the broker has declared it, 0: it refuses, see *why; or an error. */
static int declare(struct rabbitmq_sink *link, amqp_queue_declare_t *method, struct ob_err *why,
		   struct ob_err *err)
{
	amqp_channel_close_ok_t bye = { 0 };

	if (ob_rabbitmq_ask(link, OB_RABBITMQ_PROBE_CHANNEL, AMQP_QUEUE_DECLARE_METHOD, method,
			    AMQP_QUEUE_DECLARE_OK_METHOD, why) == 0)
		return 1;
	if (!why->native[0]) { /* it did not answer */
		*err = *why;
		return err->status;
	}
	if (!ob_rabbitmq_add_method(&link->conn, OB_RABBITMQ_PROBE_CHANNEL,
				    AMQP_CHANNEL_CLOSE_OK_METHOD, &bye))
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a frame");
	return open_channel(link, err);
}

/* The text between `before` and a quote; false: it is not there, or too long. */
static bool quoted(const char *text, const char *before, char *out, size_t size)
{
	const char *at = strstr(text, before), *end = at ? strchr(at + strlen(before), '\'') : NULL;
	size_t n = end ? (size_t)(end - at) - strlen(before) : size;

	if (n >= size)
		return false;
	memcpy(out, at + strlen(before), n);
	out[n] = '\0';
	return true;
}

/* Learn from a refusal; false: it tells nothing new. */
static bool learn(const struct ob_err *why, struct queue_args *args)
{
	struct queue_arg *next = &args->list[args->count];

	if (args->count == ARGS || !quoted(why->msg, "inequivalent arg '", next->name, NAME_SIZE))
		return false;
	if (strcmp(next->name, "durable") == 0 && !args->transient)
		return args->transient = true;
	if (strcmp(next->name, "auto_delete") == 0 && !args->auto_delete)
		return args->auto_delete = true;
	if (arg(args, next->name) ||
	    !quoted(why->msg, "current is the value '", next->value, VALUE_SIZE) ||
	    !quoted(why->msg, "' of type '", next->type, sizeof(next->type)))
		return false;
	args->count++;
	return true;
}

static amqp_table_entry_t as_entry(const struct queue_arg *a)
{
	amqp_table_entry_t e = { .key = amqp_cstring_bytes(a->name) };

	if (strcmp(a->type, "longstr") == 0) {
		e.value.kind = AMQP_FIELD_KIND_UTF8;
		e.value.value.bytes = amqp_cstring_bytes(a->value);
	} else if (strcmp(a->type, "bool") == 0) {
		e.value.kind = AMQP_FIELD_KIND_BOOLEAN;
		e.value.value.boolean = strcmp(a->value, "true") == 0;
	} else {
		e.value.kind = AMQP_FIELD_KIND_I64;
		e.value.value.i64 = strtoll(a->value, NULL, 10);
	}
	return e;
}

/* 1: all arguments are known; 0: they cannot be told, see *why; or an error. */
static int find_args(struct rabbitmq_feed *feed, struct queue_args *args, struct ob_err *why,
		     struct ob_err *err)
{
	for (;;) {
		amqp_table_entry_t entries[ARGS];
		amqp_queue_declare_t method = {
			.queue = ob_rabbitmq_bytes(ob_str(feed->queue)),
			.durable = !args->transient,
			.auto_delete = args->auto_delete,
			.arguments = { args->count, entries },
		};

		for (int i = 0; i < args->count; i++)
			entries[i] = as_entry(&args->list[i]);
		int r = declare(ob_rabbitmq_link(feed), &method, why, err);
		if (r != 0)
			return r;
		if (!learn(why, args))
			return 0;
	}
}

/* ---- judging --------------------------------------------------------- */

static void judge_limit(const struct rabbitmq_feed *feed, const struct queue_args *args,
			struct ob_findings *out)
{
	const struct ob_check *check = &ob_rabbitmq_feed_checks[DELIVERY_LIMIT];
	const char *type = arg(args, "x-queue-type"), *limit = arg(args, "x-delivery-limit");
	const char *exchange = arg(args, "x-dead-letter-exchange");
	bool quorum = type && strcmp(type, "quorum") == 0;
	long most = limit ? strtol(limit, NULL, 10) : -1;

	if (quorum && !limit && ob_rabbitmq_link(feed)->conn.server_major >= MAJOR_WITH_LIMIT)
		most = DEFAULT_LIMIT;
	if (!quorum || most < 0)
		ob_finding_add(out, check, OB_LEVEL_OK,
			       "queue %.255s hands a message out until it is acknowledged",
			       feed->queue);
	else if (exchange)
		ob_finding_add(out, check, OB_LEVEL_OK,
			       "queue %.255s gives a message up after %ld deliveries, to the "
			       "exchange '%.255s'",
			       feed->queue, most, exchange);
	else
		ob_finding_add(
			out, check, OB_LEVEL_WARNING,
			"queue %.255s drops a message after %ld deliveries, and has no "
			"dead-letter exchange: a consumer that is killed that often loses it",
			feed->queue, most);
}

static void judge_timeout(const struct rabbitmq_feed *feed, const struct queue_args *args,
			  int64_t handler_ms, struct ob_findings *out)
{
	const char *own = arg(args, "x-consumer-timeout");
	int64_t timeout_ms = own ? strtoll(own, NULL, 10) : feed->consumer_timeout_ms;
	bool bad = handler_ms >= timeout_ms;

	ob_finding_add(out, &ob_rabbitmq_feed_checks[CONSUMER_TIMEOUT],
		       bad ? OB_LEVEL_WARNING : OB_LEVEL_OK,
		       "a handler may take %lld ms; the server %s after %lld ms",
		       (long long)handler_ms,
		       bad ? "closes the channel, and hands the message out again,"
			   : "waits for its acknowledgement, and closes the channel only",
		       (long long)timeout_ms);
}

int ob_rabbitmq_feed_probe(struct ob_feed *base, int64_t handler_ms, struct ob_findings *out,
			   struct ob_err *err)
{
	struct rabbitmq_feed *feed = (struct rabbitmq_feed *)base;
	amqp_queue_declare_t passive = { .queue = ob_rabbitmq_bytes(ob_str(feed->queue)),
					 .passive = 1 };
	struct queue_args args = { .count = 0 };
	struct ob_err why = OB_ERR_INIT;
	int r = ob_sink_open(base->link, err);

	if (r == 0)
		r = open_channel(ob_rabbitmq_link(feed), err);
	if (r == 0)
		r = declare(ob_rabbitmq_link(feed), &passive, &why, err);
	if (r == 0 && strcmp(why.native, "404") != 0) {
		*err = why;
		return err->status;
	}
	if (r < 0)
		return r;
	ob_finding_add(out, &ob_rabbitmq_feed_checks[QUEUE], r ? OB_LEVEL_OK : OB_LEVEL_WARNING,
		       r ? "queue %.255s is there" : "queue %.255s is not there", feed->queue);
	if (r == 0)
		return 0;
	r = find_args(feed, &args, &why, err);
	if (r < 0)
		return r;
	if (r > 0)
		judge_limit(feed, &args, out);
	else
		ob_finding_add(
			out, &ob_rabbitmq_feed_checks[DELIVERY_LIMIT], OB_LEVEL_OK,
			"the limit of queue %.255s is not known: this user may not configure "
			"it",
			feed->queue);
	judge_timeout(feed, &args, handler_ms, out);
	return 0;
}
