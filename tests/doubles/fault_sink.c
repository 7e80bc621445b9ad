/* SPDX-License-Identifier: MIT */
/* The decorator that fails on demand. It remembers the tags that are unconfirmed. */
#include "doubles/fault_sink.h"

#include <stdlib.h>

struct fault_sink {
	struct ob_sink base;
	struct ob_sink_ops ops; /* ours, with the inner sink's capabilities */
	struct ob_sink *inner;
	struct ob_sink_fault *fault;
	uint64_t *tags; /* unconfirmed, in the order of sending */
	size_t count, capacity;
	bool lost; /* all of them come out as DOWN */
};

/* Does this call fail? */
static bool hit(struct fault_sink *sink)
{
	struct ob_sink_fault *fault = sink->fault;
	bool now = ++fault->calls == fault->at;

	fault->fired |= now;
	return now;
}

static int injected(const struct fault_sink *sink, enum ob_err_kind kind, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESINK, kind == OB_ERR_NONE ? OB_ERR_DOWN : kind,
			  "injected fault at call %u", sink->fault->at);
}

static void lose_all(struct fault_sink *sink)
{
	ob_sink_reset(sink->inner);
	sink->lost = sink->count > 0;
}

static int fault_open(struct ob_sink *base, struct ob_err *err)
{
	struct fault_sink *sink = (struct fault_sink *)base;
	bool fails = hit(sink);
	bool fatal = sink->fault->kind == OB_ERR_FATAL;

	if (fails && !sink->fault->after)
		return injected(sink, fatal ? OB_ERR_FATAL : OB_ERR_DOWN, err);
	int r = ob_sink_open(sink->inner, err);
	return fails && r == 0 ? injected(sink, OB_ERR_DOWN, err) : r;
}

static int remember(struct fault_sink *sink, uint64_t tag, struct ob_err *err)
{
	if (sink->count == sink->capacity) {
		size_t capacity = sink->capacity ? sink->capacity * 2 : 64;
		uint64_t *tags = reallocarray(sink->tags, capacity, sizeof(*tags));

		if (!tags)
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "remembering a tag");
		sink->tags = tags;
		sink->capacity = capacity;
	}
	sink->tags[sink->count++] = tag;
	return 0;
}

static int fault_send(struct ob_sink *base, const struct ob_delivery *delivery, struct ob_err *err)
{
	struct fault_sink *sink = (struct fault_sink *)base;
	bool fails = hit(sink);

	if (fails && !sink->fault->after)
		return injected(sink, sink->fault->kind, err);
	if (sink->lost)
		return OB_SINK_FULL;
	int r = ob_sink_send(sink->inner, delivery, err);
	if (fails) {
		lose_all(sink);
		return injected(sink, OB_ERR_DOWN, err);
	}
	return r == 0 ? remember(sink, delivery->tag, err) : r;
}

static void forget(struct fault_sink *sink, uint64_t tag)
{
	size_t i = 0;

	while (i < sink->count && sink->tags[i] != tag)
		i++;
	if (i == sink->count)
		return;
	sink->count--;
	memmove(sink->tags + i, sink->tags + i + 1, (sink->count - i) * sizeof(*sink->tags));
}

static int give_lost(struct fault_sink *sink, struct ob_ack *acks, size_t max)
{
	size_t n = sink->count < max ? sink->count : max;

	for (size_t i = 0; i < n; i++) {
		acks[i].tag = sink->tags[i];
		acks[i].err = OB_ERR_INIT;
		(void)injected(sink, OB_ERR_DOWN, &acks[i].err);
	}
	sink->count -= n;
	memmove(sink->tags, sink->tags + n, sink->count * sizeof(*sink->tags));
	sink->lost = sink->count > 0;
	return (int)n;
}

static int fault_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
		      struct ob_err *err)
{
	struct fault_sink *sink = (struct fault_sink *)base;
	bool fails = hit(sink);

	if (fails && !sink->fault->after && sink->fault->kind == OB_ERR_FATAL)
		return injected(sink, OB_ERR_FATAL, err);
	if (fails && sink->fault->after && !sink->lost)
		(void)ob_sink_poll(sink->inner, timeout_ms, acks, max, err);
	if (fails)
		lose_all(sink);
	if (sink->lost)
		return give_lost(sink, acks, max);
	if (fails)
		return 0;
	int r = ob_sink_poll(sink->inner, timeout_ms, acks, max, err);
	for (int i = 0; i < r; i++)
		forget(sink, acks[i].tag);
	return r;
}

static void fault_reset(struct ob_sink *base)
{
	struct fault_sink *sink = (struct fault_sink *)base;

	ob_sink_reset(sink->inner);
	sink->count = 0;
	sink->lost = false;
}

static int fault_fd(struct ob_sink *base)
{
	return ob_sink_fd(((struct fault_sink *)base)->inner);
}

static void fault_close(struct ob_sink *base)
{
	struct fault_sink *sink = (struct fault_sink *)base;

	ob_sink_free(sink->inner);
	free(sink->tags);
}

static void fault_describe(struct ob_sink *base, struct ob_buf *out)
{
	ob_buf_adds(out, "fault of ");
	ob_sink_describe(((struct fault_sink *)base)->inner, out);
}

static const struct ob_sink_ops fault_ops = {
	.name = "fault",
	.size = sizeof(struct fault_sink),
	.open = fault_open,
	.send = fault_send,
	.poll = fault_poll,
	.reset = fault_reset,
	.fd = fault_fd,
	.close = fault_close,
	.describe = fault_describe,
};

int ob_sink_fault_take(struct ob_sink *inner, struct ob_sink_fault *fault,
		       struct ob_sink **ret_sink, struct ob_err *err)
{
	struct ob_sink *base = NULL;
	int r = ob_sink_new(&fault_ops, NULL, 0, inner->clock, &base, err);

	if (r < 0) {
		ob_sink_free(inner);
		return r;
	}
	struct fault_sink *sink = (struct fault_sink *)base;
	sink->ops = fault_ops;
	sink->ops.caps = inner->ops->caps;
	sink->base.ops = &sink->ops;
	sink->inner = inner;
	sink->fault = fault;
	*ret_sink = base;
	return 0;
}
