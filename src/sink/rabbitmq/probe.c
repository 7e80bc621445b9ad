/* SPDX-License-Identifier: MIT */
/* Whether the exchanges and queues of the destinations are there. AMQP does not tell more: whether
 * a queue survives a restart, only the management interface of the broker says. */
#include "sink/rabbitmq/rabbitmq.h"

#include <inttypes.h>

enum { DESTINATION };

const struct ob_check ob_rabbitmq_checks[] = {
	[DESTINATION] = { "rabbitmq_destination",
			  "The exchange of a constant destination is there, or, for the default "
			  "exchange, the queue.",
			  "declare it, or correct the destination in the route" },
	OB_CHECK_END,
};

static bool is_missing(const struct ob_err *err)
{
	return strcmp(err->native, "404") == 0;
}

/* The broker has closed the channel over the question; it is open again for the next one. */
static int open_again(struct rabbitmq_sink *sink, bool closed, struct ob_err *err)
{
	amqp_channel_close_ok_t bye = { 0 };
	amqp_channel_open_t channel = { 0 };

	if (closed && !ob_rabbitmq_add_method(&sink->conn, OB_RABBITMQ_PROBE_CHANNEL,
					      AMQP_CHANNEL_CLOSE_OK_METHOD, &bye))
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a frame");
	return ob_rabbitmq_ask(sink, OB_RABBITMQ_PROBE_CHANNEL, AMQP_CHANNEL_OPEN_METHOD, &channel,
			       AMQP_CHANNEL_OPEN_OK_METHOD, err);
}

static int ask_exchange(struct rabbitmq_sink *sink, struct ob_str name, struct ob_err *err)
{
	amqp_exchange_declare_t declare = { .exchange = ob_rabbitmq_bytes(name),
					    .type = ob_rabbitmq_bytes(OB_STR("")),
					    .passive = 1 };

	return ob_rabbitmq_ask(sink, OB_RABBITMQ_PROBE_CHANNEL, AMQP_EXCHANGE_DECLARE_METHOD,
			       &declare, AMQP_EXCHANGE_DECLARE_OK_METHOD, err);
}

static int ask_queue(struct rabbitmq_sink *sink, struct ob_str name, struct ob_err *err)
{
	amqp_queue_declare_t declare = { .queue = ob_rabbitmq_bytes(name), .passive = 1 };

	return ob_rabbitmq_ask(sink, OB_RABBITMQ_PROBE_CHANNEL, AMQP_QUEUE_DECLARE_METHOD, &declare,
			       AMQP_QUEUE_DECLARE_OK_METHOD, err);
}

static int probe_one(struct rabbitmq_sink *sink, struct ob_str destination, struct ob_findings *out,
		     struct ob_err *err)
{
	struct ob_str exchange, key;
	struct ob_err why = OB_ERR_INIT;

	if (ob_rabbitmq_split(sink, destination, &exchange, &key, &why) < 0)
		return 0; /* a relay says so of each message */
	bool queue = exchange.n == 0;
	struct ob_str name = queue ? key : exchange;
	int r = queue ? ask_queue(sink, name, &why) : ask_exchange(sink, name, &why);

	if (r == 0) {
		ob_finding_add(out, &ob_rabbitmq_checks[DESTINATION], OB_LEVEL_OK,
			       "%s %.*s is there", queue ? "queue" : "exchange", (int)name.n,
			       name.p);
		return 0;
	}
	if (!is_missing(&why)) {
		*err = why;
		return r;
	}
	ob_finding_add(out, &ob_rabbitmq_checks[DESTINATION], OB_LEVEL_WARNING,
		       "%s %.*s is not there: messages to it %s", queue ? "queue" : "exchange",
		       (int)name.n, name.p,
		       sink->unroutable == OB_RABBITMQ_UNROUTABLE_REJECT ? "will be dead" : "fail");
	return open_again(sink, true, err);
}

static int close_channel(struct rabbitmq_sink *sink, struct ob_err *err)
{
	amqp_channel_close_t bye = { .reply_code = AMQP_REPLY_SUCCESS,
				     .reply_text = ob_rabbitmq_bytes(OB_STR("")) };

	return ob_rabbitmq_ask(sink, OB_RABBITMQ_PROBE_CHANNEL, AMQP_CHANNEL_CLOSE_METHOD, &bye,
			       AMQP_CHANNEL_CLOSE_OK_METHOD, err);
}

int ob_rabbitmq_probe(struct ob_sink *base, const struct ob_str *destinations, size_t count,
		      struct ob_findings *out, struct ob_err *err)
{
	struct rabbitmq_sink *sink = (struct rabbitmq_sink *)base;

	/* A broker that gives each connection one channel has none for questions. */
	if (sink->conn.channel_max < OB_RABBITMQ_PROBE_CHANNEL)
		return 0;
	int r = open_again(sink, false, err);

	for (size_t i = 0; i < count && r == 0; i++)
		r = probe_one(sink, destinations[i], out, err);
	/* Messages by key to one exchange: it is known, whatever the keys are. */
	if (r == 0 && count == 0 && sink->exchange && *sink->exchange &&
	    !sink->exchange_per_message)
		r = probe_one(sink, OB_STR("any"), out, err);
	return r < 0 ? r : close_channel(sink, err);
}
