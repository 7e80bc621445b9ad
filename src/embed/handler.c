/* SPDX-License-Identifier: MIT */
/*
 * The sink that calls the application. It takes one message at a time: so every
 * message's lease is looked at right before its handler runs, a stop never waits for
 * more than one handler, and order needs no care.
 */
#include "base/utf8.h"
#include "embed/embed.h"

#include <assert.h>
#include <stdio.h>

enum { REASON_CHARS = 500, TEXTS_BYTES = 1 << 16, TEXTS_MAX = 16 << 20 };

struct handler_sink {
	struct ob_sink base;
	bool waiting; /* a message is here, its handler has not run */
	uint64_t tag;
	const struct ob_message *message;
	struct ob_arena texts; /* of one call */
};

struct outbox_relay_call {
	const outbox_relay *relay;
	const struct ob_clock *clock;
	int64_t deadline_us;    /* 0: none */
	struct ob_store *store; /* in whose transaction it runs; NULL: in none */
	outbox *writer;         /* of that transaction */
	char reason[OB_LAST_ERROR_MAX];
};

static const outbox_relay *relay_of(const struct ob_sink *sink)
{
	/* ops is the first member of the handle it was made for. */
	return (const outbox_relay *)sink->ops;
}

/* ---- what a handler may ask --------------------------------------------- */

void outbox_relay_reason(outbox_relay_call *call, const char *reason)
{
	struct ob_buf safe = OB_BUF_INIT(sizeof(call->reason) * 4);

	ob_utf8_sanitize(&safe, ob_str(reason ? reason : ""), REASON_CHARS);
	(void)snprintf(call->reason, sizeof(call->reason), "%s", ob_buf_str(&safe));
	ob_buf_done(&safe);
}

int64_t outbox_relay_time_left(const outbox_relay_call *call)
{
	int64_t left = call->deadline_us - ob_clock_boot_us(call->clock);

	if (!call->deadline_us)
		return -1;
	return left > 0 ? (left + 999) / 1000 : 0;
}

int outbox_relay_stopping(const outbox_relay_call *call)
{
	return atomic_load(&call->relay->stops) > 0;
}

void *outbox_relay_connection(const outbox_relay_call *call)
{
	return call->store ? ob_store_tx_native(call->store) : NULL;
}

outbox *outbox_relay_writer(const outbox_relay_call *call)
{
	return call->writer;
}

/* ---- calling it ------------------------------------------------------------ */

/* NUL-terminated, NULL where the column is; *failed when out of memory. */
static const char *text(struct ob_arena *texts, struct ob_str s, bool *failed)
{
	struct ob_str copy;

	if (!s.p)
		return NULL;
	if (!ob_arena_copy(texts, s, &copy)) {
		*failed = true;
		return NULL;
	}
	return copy.p;
}

static bool make_message(const struct ob_message *m, struct ob_arena *texts,
			 struct outbox_relay_message *ret)
{
	bool failed = false;
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&m->id, id);
	*ret = (struct outbox_relay_message){
		.id = text(texts, ob_str(id), &failed),
		.aggregate_type = text(texts, m->aggregate_type, &failed),
		.aggregate_id = text(texts, m->aggregate_id, &failed),
		.event_type = text(texts, m->event_type, &failed),
		.payload = m->payload.p,
		.payload_size = m->payload.n,
		.headers = m->headers.p,
		.headers_size = m->headers.n,
		.correlation_id = text(texts, m->correlation_id, &failed),
		.causation_id = text(texts, m->causation_id, &failed),
		.key = text(texts, m->key, &failed),
		.target = text(texts, m->target, &failed),
		.sequence_number = m->sequence_number,
		.occurred_at_us = m->occurred_at_us,
		.created_at_us = m->created_at_us,
		.revision = m->revision,
		.priority = m->priority,
		.attempts = m->attempts,
	};
	return !failed;
}

static enum ob_err_kind kind_of(enum outbox_relay_result result)
{
	switch (result) {
	case OUTBOX_RELAY_OK:
		return OB_ERR_NONE;
	case OUTBOX_RELAY_RETRY:
		return OB_ERR_RETRY;
	case OUTBOX_RELAY_REJECT:
		return OB_ERR_REJECT;
	case OUTBOX_RELAY_DOWN:
		return OB_ERR_DOWN;
	}
	return OB_ERR_RETRY; /* no result of ours: as good as a failure */
}

/* What is stored when the handler gave no reason of its own. */
static void fix_reason(outbox_relay_call *call, enum outbox_relay_result result, bool late)
{
	static const char *const fixed[] = {
		[OUTBOX_RELAY_OK] = "",
		[OUTBOX_RELAY_RETRY] = "the handler failed",
		[OUTBOX_RELAY_REJECT] = "the handler rejected the message",
		[OUTBOX_RELAY_DOWN] = "the handler says that what it needs is away",
	};

	if (call->reason[0])
		return;
	if (late)
		(void)snprintf(call->reason, sizeof(call->reason),
			       "the handler failed after its time of %u ms was over",
			       call->relay->options.handler_timeout_ms);
	else
		(void)snprintf(call->reason, sizeof(call->reason), "%s",
			       kind_of(result) == OB_ERR_RETRY ? fixed[OUTBOX_RELAY_RETRY]
							       : fixed[result]);
}

static enum outbox_relay_result result_of(enum ob_err_kind kind)
{
	if (kind == OB_ERR_REJECT)
		return OUTBOX_RELAY_REJECT;
	return kind == OB_ERR_DOWN ? OUTBOX_RELAY_DOWN : OUTBOX_RELAY_RETRY;
}

/* Only the engine knows what follows from a failure: an outage may excuse it. */
void ob_embed_failed(void *arg, const struct ob_worker_failure *failure)
{
	const outbox_relay *relay = arg;
	struct ob_arena texts = OB_ARENA_INIT(TEXTS_MAX);
	struct outbox_relay_message message;

	if (relay->options.on_failure && make_message(failure->message, &texts, &message))
		relay->options.on_failure(relay->options.arg, &message,
					  &(struct outbox_relay_failure){
						  .result = result_of(failure->kind),
						  .reason = failure->error,
						  .attempt = message.attempts + 1,
						  .is_last = failure->dead,
						  .timed_out = failure->timed_out,
					  });
	ob_arena_done(&texts);
}

/* Call the handler and turn what it says into an outcome. */
static void handle(struct handler_sink *sink, struct ob_store *store, outbox *writer,
		   struct ob_err *ret)
{
	const outbox_relay *relay = relay_of(&sink->base);
	const struct outbox_relay_options *o = &relay->options;
	outbox_relay_call call = {
		.relay = relay, .clock = sink->base.clock, .store = store, .writer = writer
	};
	struct outbox_relay_message message;

	ob_arena_reset(&sink->texts, TEXTS_BYTES);
	if (!make_message(sink->message, &sink->texts, &message)) {
		(void)ob_err_set(ret, OUTBOX_ENOMEM, OB_ERR_RETRY, "out of memory");
		return;
	}
	if (o->handler_timeout_ms)
		call.deadline_us =
			ob_clock_boot_us(call.clock) + (int64_t)o->handler_timeout_ms * 1000;
	enum outbox_relay_result result = o->handler(o->arg, &message, &call);
	if (result == OUTBOX_RELAY_OK)
		return;
	fix_reason(&call, result, outbox_relay_time_left(&call) == 0);
	if (o->classify)
		result = o->classify(o->arg, &message, result, call.reason);
	enum ob_err_kind kind = kind_of(result);
	if (kind == OB_ERR_NONE)
		return;
	/* Told to stop, the handler gave up: that is no failure, the message is as it was. */
	if (kind != OB_ERR_REJECT && outbox_relay_stopping(&call)) {
		/* A consumer keeps its lease to give it back; an outage charges nothing either. */
		(void)ob_err_set(ret, OUTBOX_ESINK, relay->consumes ? OB_ERR_DOWN : OB_ERR_LOST,
				 "the relay is stopping");
		return;
	}
	(void)ob_err_set(ret, OUTBOX_ESINK, kind, "%s", call.reason);
	ret->timed_out = outbox_relay_time_left(&call) == 0;
}

/* ---- the sink ------------------------------------------------------------------ */

static int handler_open(struct ob_sink *base, struct ob_err *err)
{
	struct handler_sink *sink = (struct handler_sink *)base;

	(void)err;
	sink->texts.max = TEXTS_MAX;
	return 0;
}

static int handler_send(struct ob_sink *base, const struct ob_delivery *delivery,
			struct ob_err *err)
{
	struct handler_sink *sink = (struct handler_sink *)base;

	const outbox_relay *relay = relay_of(base);

	(void)err;
	/* A stop may come from the handler that has just returned: no further one is started. */
	if (sink->waiting || (relay->consumes && atomic_load(&relay->stops)))
		return OB_SINK_FULL;
	sink->waiting = true;
	sink->tag = delivery->tag;
	sink->message = delivery->message;
	return 0;
}

static int handler_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
			struct ob_err *err)
{
	struct handler_sink *sink = (struct handler_sink *)base;

	(void)timeout_ms;
	(void)max;
	(void)err;
	if (!sink->waiting)
		return 0;
	acks[0] = (struct ob_ack){ .tag = sink->tag };
	handle(sink, NULL, NULL, &acks[0].err);
	sink->waiting = false;
	return 1;
}

/* In the worker's transaction: progress is recorded in it too. */
static int handler_in_store(struct ob_sink *base, struct ob_store *store,
			    const struct ob_message *message, struct ob_err *err)
{
	struct handler_sink *sink = (struct handler_sink *)base;
	struct ob_err said = OB_ERR_INIT;
	outbox *writer = NULL;
	int r = ob_store_tx_writer(store, &writer, err);

	if (r < 0)
		return r;
	sink->texts.max = TEXTS_MAX;
	sink->message = message;
	handle(sink, store, writer, &said);
	if (said.kind == OB_ERR_NONE)
		return 0;
	*err = said;
	return said.status;
}

ob_sink_in_store_fn *const ob_handler_in_store = handler_in_store;

static void handler_reset(struct ob_sink *base)
{
	((struct handler_sink *)base)->waiting = false;
}

static void handler_close(struct ob_sink *base)
{
	ob_arena_done(&((struct handler_sink *)base)->texts);
}

static void handler_describe(struct ob_sink *base, struct ob_buf *out)
{
	(void)base;
	ob_buf_adds(out, "handler of this program");
}

static const struct ob_opt handler_opts[] = { OB_OPT_END };

const struct ob_sink_ops ob_handler_sink = {
	.name = "handler",
	.caps = OB_SINK_ORDERED,
	.size = sizeof(struct handler_sink),
	.opts = handler_opts,
	.open = handler_open,
	.send = handler_send,
	.poll = handler_poll,
	.reset = handler_reset,
	.close = handler_close,
	.describe = handler_describe,
};
