/* SPDX-License-Identifier: MIT */
/* NATS JetStream for the bare loop: asynchronous publishing, waited for behind each batch. */
#include "bench/bare/parts.h"
#include "bench/fatal.h"

#include <nats/nats.h>
#include <stdlib.h>

enum { WAIT_MS = 60000 };

struct sink {
	natsConnection *connection;
	jsCtx *js;
};

static void check(natsStatus status)
{
	if (status != NATS_OK)
		bench_fatal("NATS: %s", natsStatus_GetText(status));
}

static void on_error(jsCtx *js, jsPubAckErr *error, void *arg)
{
	(void)js;
	(void)arg;
	bench_fatal("NATS: %s", error->ErrText ? error->ErrText : natsStatus_GetText(error->Err));
}

static void *nats_open(const char *address)
{
	struct sink *s = bench_need(calloc(1, sizeof(*s)));
	jsOptions options;

	check(natsConnection_ConnectTo(&s->connection, address));
	check(jsOptions_Init(&options));
	options.PublishAsync.ErrHandler = on_error;
	check(natsConnection_JetStream(&s->js, s->connection, &options));
	return s;
}

static void publish_one(struct sink *s, const struct bare_row *row)
{
	struct bare_field fields[BARE_FIELDS];
	size_t count = bare_fields(row, fields);
	natsMsg *message = NULL;

	check(natsMsg_Create(&message, row->aggregate_type.p, NULL, row->payload.p,
			     (int)row->payload.n));
	check(natsMsgHeader_Set(message, "Nats-Msg-Id", row->id.p));
	for (size_t i = 1; i < count; i++)
		check(natsMsgHeader_Set(message, fields[i].name.p, fields[i].value.p));
	check(js_PublishMsgAsync(s->js, &message, NULL));
}

static void nats_publish(void *sink, const struct bare_row *rows, size_t count)
{
	struct sink *s = sink;
	jsPubOptions options;

	for (size_t i = 0; i < count; i++)
		publish_one(s, &rows[i]);
	check(jsPubOptions_Init(&options));
	options.MaxWait = WAIT_MS;
	check(js_PublishAsyncComplete(s->js, &options));
}

const struct bare_sink_ops bare_nats = { "nats", nats_open, nats_publish };
