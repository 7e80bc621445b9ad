/* SPDX-License-Identifier: MIT */
/*
 * A message as a record: key and body as they are, everything else in headers. The caller's
 * headers come first and ours after them; one of the caller's that has a name of ours is left out,
 * as some consumers take the first of two, others the last.
 */
#include "sink/fields.h"
#include "sink/kafka/kafka.h"

/* What a record and its batch add, at most; and each header. */
enum { RECORD_OVERHEAD = 128, HEADER_OVERHEAD = 10 };

/* ---- may it go? ------------------------------------------------------ */

static bool is_topic_char(char c)
{
	char letter = (char)(c | 0x20);

	return (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
	       c == '-';
}

/* NULL: it may. */
static const char *topic_fault(struct ob_str name)
{
	if (name.n == 0)
		return "the destination is empty: kafka needs the name of a topic";
	if (name.n > OB_KAFKA_TOPIC_MAX)
		return "the destination is longer than the 249 bytes of a topic's name";
	if (ob_str_eq(name, OB_STR(".")) || ob_str_eq(name, OB_STR("..")))
		return "the destination is no name of a topic: . and .. are none";
	if (name.n >= 2 && memcmp(name.p, "__", 2) == 0)
		return "the destination begins with __: such topics are Kafka's own";
	for (size_t i = 0; i < name.n; i++) {
		if (!is_topic_char(name.p[i]))
			return "the destination is no name of a topic: letters, digits, '.', '_' "
			       "and '-' only";
	}
	return NULL;
}

static size_t header_size(struct ob_str name, struct ob_str value)
{
	return name.n + value.n + HEADER_OVERHEAD;
}

static size_t record_size(const struct ob_delivery *d)
{
	struct ob_fields fields;
	size_t size = RECORD_OVERHEAD + d->key.n + d->body.n + d->content_type.n;

	ob_fields_init(&fields, d->message);
	ob_fields_put(&fields, OB_STR("snapshot"), d->snapshot);
	for (uint32_t i = 0; i < fields.count; i++)
		size += header_size(fields.name[i], fields.value[i]);
	for (size_t i = 0; i < d->header_count; i++)
		size += header_size(d->headers[i].name, d->headers[i].value);
	return d->header_count > 0 ? size : size + d->message->headers.n;
}

int ob_kafka_check(const struct kafka_sink *sink, const struct ob_delivery *delivery,
		   struct ob_err *err)
{
	const char *fault = topic_fault(delivery->destination);

	if (fault)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT, "%s", fault);
	size_t size = record_size(delivery);
	if (size > (size_t)sink->max_message_size)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
				  "a message of %zu bytes with its headers is larger than "
				  "max_message_size of the kafka sink (%lld)",
				  size, (long long)sink->max_message_size);
	return 0;
}

/* ---- producing ------------------------------------------------------- */

static bool add(rd_kafka_headers_t *headers, struct ob_str name, struct ob_str value)
{
	return rd_kafka_header_add(headers, name.p, (ssize_t)name.n, value.p, (ssize_t)value.n) ==
	       RD_KAFKA_RESP_ERR_NO_ERROR;
}

static bool is_ours(const struct ob_fields *fields, struct ob_str name)
{
	for (uint32_t i = 0; i < fields->count; i++) {
		if (ob_str_eq(fields->name[i], name))
			return true;
	}
	return false;
}

/* NULL: no memory. */
static rd_kafka_headers_t *make_headers(const struct ob_delivery *d)
{
	rd_kafka_headers_t *headers = rd_kafka_headers_new(OB_FIELDS_MAX + d->header_count + 1);
	struct ob_fields fields;
	bool ok = headers != NULL;

	ob_fields_init(&fields, d->message);
	ob_fields_put(&fields, OB_STR("snapshot"), d->snapshot);
	ob_fields_put(&fields, OB_STR("content-type"), d->content_type);
	for (size_t i = 0; ok && i < d->header_count; i++) {
		if (!is_ours(&fields, d->headers[i].name))
			ok = add(headers, d->headers[i].name, d->headers[i].value);
	}
	if (ok && d->header_count == 0 && d->message->headers.p)
		ok = add(headers, OB_STR("headers"), d->message->headers);
	for (uint32_t i = 0; ok && i < fields.count; i++)
		ok = add(headers, fields.name[i], fields.value[i]);
	if (!ok && headers)
		rd_kafka_headers_destroy(headers);
	return ok ? headers : NULL;
}

/*
 * The handle of a topic, the last one being kept. By name alone the library asks for a new topic's
 * partitions up to a second late.
 */
static rd_kafka_topic_t *topic_of(struct kafka_sink *sink, struct ob_str name)
{
	char text[OB_KAFKA_TOPIC_MAX + 1];

	if (sink->topic && ob_str_eq(name, ob_str(rd_kafka_topic_name(sink->topic))))
		return sink->topic;
	memcpy(text, name.p, name.n);
	text[name.n] = '\0';
	if (sink->topic)
		rd_kafka_topic_destroy(sink->topic);
	sink->topic = rd_kafka_topic_new(sink->rk, text, NULL);
	return sink->topic;
}

/* The library's parameters have no const, but it only reads them. */
static void *plain(const void *p)
{
	void *q;

	memcpy(&q, &p, sizeof(q));
	return q;
}

rd_kafka_resp_err_t ob_kafka_produce(struct kafka_sink *sink, struct ob_lane_item *item)
{
	const struct ob_delivery *d = &item->delivery;
	rd_kafka_topic_t *topic = topic_of(sink, d->destination);
	rd_kafka_headers_t *headers = topic ? make_headers(d) : NULL;

	if (!headers)
		return RD_KAFKA_RESP_ERR__QUEUE_FULL; /* memory is short: later */
	/* No flag: the body stays ours and is not copied. */
	rd_kafka_resp_err_t code = rd_kafka_producev(
		sink->rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_KEY(plain(d->key.p), d->key.n),
		RD_KAFKA_V_VALUE(plain(d->body.p), d->body.n), RD_KAFKA_V_HEADERS(headers),
		RD_KAFKA_V_OPAQUE(item), RD_KAFKA_V_END);

	if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
		rd_kafka_headers_destroy(headers);
	return code;
}
