/* SPDX-License-Identifier: MIT */
/* Kafka for the bare loop: an idempotent producer, and a flush behind each batch. */
#include "bench/bare/parts.h"
#include "bench/fatal.h"

#include <librdkafka/rdkafka.h>
#include <stdlib.h>

enum { FLUSH_MS = 60000 };

struct sink {
	rd_kafka_t *producer;
	size_t confirmed;
};

static void on_report(rd_kafka_t *producer, const rd_kafka_message_t *message, void *arg)
{
	struct sink *s = arg;

	(void)producer;
	if (message->err)
		bench_fatal("Kafka: %s", rd_kafka_err2str(message->err));
	s->confirmed++;
}

static void *kafka_open(const char *address)
{
	struct sink *s = bench_need(calloc(1, sizeof(*s)));
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256];

	if (rd_kafka_conf_set(conf, "bootstrap.servers", address, why, sizeof(why)) ||
	    rd_kafka_conf_set(conf, "enable.idempotence", "true", why, sizeof(why)))
		bench_fatal("Kafka: %s", why);
	rd_kafka_conf_set_dr_msg_cb(conf, on_report);
	rd_kafka_conf_set_opaque(conf, s);
	s->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
	if (!s->producer)
		bench_fatal("Kafka: %s", why);
	return s;
}

/* The rows stay until all are confirmed, so nothing is copied. */
static void produce(struct sink *s, const struct bare_row *row)
{
	struct bare_field fields[BARE_FIELDS];
	size_t count = bare_fields(row, fields);
	rd_kafka_headers_t *headers = rd_kafka_headers_new(count);

	for (size_t i = 0; i < count; i++)
		(void)rd_kafka_header_add(headers, fields[i].name.p, (ssize_t)fields[i].name.n,
					  fields[i].value.p, (ssize_t)fields[i].value.n);
	rd_kafka_resp_err_t code = rd_kafka_producev(
		s->producer, RD_KAFKA_V_TOPIC(row->aggregate_type.p),
		RD_KAFKA_V_KEY((void *)(uintptr_t)row->key.p, row->key.n),
		RD_KAFKA_V_VALUE((void *)(uintptr_t)row->payload.p, row->payload.n),
		RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
	if (code)
		bench_fatal("Kafka: %s", rd_kafka_err2str(code));
}

static void kafka_publish(void *sink, const struct bare_row *rows, size_t count)
{
	struct sink *s = sink;

	s->confirmed = 0;
	for (size_t i = 0; i < count; i++)
		produce(s, &rows[i]);
	if (rd_kafka_flush(s->producer, FLUSH_MS) || s->confirmed < count)
		bench_fatal("Kafka: a batch is not confirmed within %d s", FLUSH_MS / 1000);
}

const struct bare_sink_ops bare_kafka = { "kafka", kafka_open, kafka_publish };
