/* SPDX-License-Identifier: MIT */
/* A sink as a handler: the exec sink's line protocol, http, a function of the application. */
#include "consume/handler.h"

#include <stdlib.h>

enum { ACKS = 64 };

struct sink_handler {
	struct ob_handler base;
	struct ob_sink *sink;
	struct ob_ack acks[ACKS];
};

static struct ob_sink *sink_of(struct ob_handler *handler)
{
	return ((struct sink_handler *)handler)->sink;
}

static int sink_handler_open(struct ob_handler *handler, struct ob_err *err)
{
	return ob_sink_open(sink_of(handler), err);
}

static int sink_handler_send(struct ob_handler *handler, const struct ob_work *work,
			     struct ob_err *err)
{
	struct ob_delivery delivery = work->delivery;

	delivery.tag = work->tag;
	return ob_sink_send(sink_of(handler), &delivery, err);
}

static int sink_handler_poll(struct ob_handler *handler, int timeout_ms, struct ob_outcome *out,
			     size_t max, struct ob_err *err)
{
	struct sink_handler *h = (struct sink_handler *)handler;
	int n = ob_sink_poll(h->sink, timeout_ms, h->acks, max < ACKS ? max : ACKS, err);

	for (int i = 0; i < n; i++)
		out[i] = (struct ob_outcome){ .tag = h->acks[i].tag, .err = h->acks[i].err };
	return n;
}

static void sink_handler_reset(struct ob_handler *handler)
{
	ob_sink_reset(sink_of(handler));
}

static void sink_handler_free(struct ob_handler *handler)
{
	ob_sink_free(sink_of(handler));
	free(handler);
}

static void sink_handler_describe(struct ob_handler *handler, struct ob_buf *out)
{
	ob_sink_describe(sink_of(handler), out);
}

static const struct ob_handler_ops sink_handler_ops = {
	.open = sink_handler_open,
	.send = sink_handler_send,
	.poll = sink_handler_poll,
	.reset = sink_handler_reset,
	.free = sink_handler_free,
	.describe = sink_handler_describe,
};

int ob_handler_of_sink_take(struct ob_sink *sink, struct ob_handler **ret_handler,
			    struct ob_err *err)
{
	struct sink_handler *handler = calloc(1, sizeof(*handler));

	if (!handler) {
		ob_sink_free(sink);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a handler");
	}
	handler->base.ops = &sink_handler_ops;
	handler->sink = sink;
	*ret_handler = &handler->base;
	return 0;
}
