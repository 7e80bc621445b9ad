/* SPDX-License-Identifier: MIT */
/* Writing the lines that line.h describes. */
#include "sink/line.h"

#include "base/base64.h"
#include "base/json.h"

/* The field's name comes with its comma, quotes and colon. */
static void add_text(struct ob_buf *out, struct ob_str name, struct ob_str value)
{
	if (!value.p)
		return;
	ob_buf_add(out, name);
	ob_json_add_string(out, value);
}

static void add_number(struct ob_buf *out, struct ob_str name, int64_t value)
{
	char digits[24];
	size_t at = sizeof(digits);
	uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;

	if (value == 0)
		return;
	for (; left; left /= 10)
		digits[--at] = (char)('0' + left % 10);
	if (value < 0)
		digits[--at] = '-';
	ob_buf_add(out, name);
	ob_buf_add(out, (struct ob_str){ digits + at, sizeof(digits) - at });
}

static void add_time(struct ob_buf *out, struct ob_str name, int64_t us)
{
	char text[OB_LINE_TIME_SIZE];

	if (!ob_line_time(us, text))
		return;
	ob_buf_add(out, name);
	ob_buf_addc(out, '"');
	ob_buf_add(out, (struct ob_str){ text, sizeof(text) - 1 });
	ob_buf_addc(out, '"');
}

/* Valid JSON as it is, on one line: inside strings a raw line break is not valid. */
static void add_json(struct ob_buf *out, struct ob_str json)
{
	static const char breaks[] = { '\n', '\r' };
	size_t from = out->len;

	ob_buf_add(out, json);
	if (out->failed)
		return;
	for (size_t i = 0; i < sizeof(breaks); i++) {
		char *end = out->data + out->len;
		char *at = memchr(out->data + from, breaks[i], json.n);

		for (; at; at = memchr(at, breaks[i], (size_t)(end - at)))
			*at = ' ';
	}
}

static void add_payload(struct ob_buf *out, const struct ob_delivery *delivery)
{
	struct ob_str body = delivery->body;

	add_text(out, OB_STR(",\"content_type\":"), delivery->content_type);
	if (!body.p) {
		ob_buf_add(out, OB_STR(",\"payload\":null,\"tombstone\":true"));
	} else if (ob_json_is_type(delivery->content_type) && ob_json_valid(body, NULL)) {
		ob_buf_add(out, OB_STR(",\"payload\":"));
		add_json(out, body);
	} else {
		ob_buf_add(out, OB_STR(",\"payload_base64\":\""));
		ob_base64_encode(out, body);
		ob_buf_addc(out, '"');
	}
}

void ob_line_add_headers(struct ob_buf *out, const struct ob_delivery *delivery)
{
	struct ob_str stored = delivery->message->headers;

	if (delivery->header_count > 0) {
		for (size_t i = 0; i < delivery->header_count; i++) {
			ob_buf_addc(out, i == 0 ? '{' : ',');
			ob_json_add_string(out, delivery->headers[i].name);
			ob_buf_addc(out, ':');
			ob_json_add_string(out, delivery->headers[i].value);
		}
		ob_buf_addc(out, '}');
	} else if (stored.p && ob_json_valid_object(stored, NULL)) {
		add_json(out, stored);
	} else if (stored.p) {
		ob_json_add_string(out, stored);
	}
}

static void add_line(struct ob_buf *out, const struct ob_delivery *delivery)
{
	const struct ob_message *m = delivery->message;
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&m->id, id);
	ob_buf_add(out, OB_STR("{\"id\":\""));
	ob_buf_add(out, (struct ob_str){ id, OB_UUID_TEXT });
	ob_buf_addc(out, '"');
	add_text(out, OB_STR(",\"destination\":"), delivery->destination);
	add_text(out, OB_STR(",\"key\":"), delivery->key);
	add_text(out, OB_STR(",\"aggregate_type\":"), m->aggregate_type);
	add_text(out, OB_STR(",\"aggregate_id\":"), m->aggregate_id);
	add_text(out, OB_STR(",\"event_type\":"), m->event_type);
	add_number(out, OB_STR(",\"revision\":"), m->revision);
	add_number(out, OB_STR(",\"sequence_number\":"), m->sequence_number);
	add_text(out, OB_STR(",\"correlation_id\":"), m->correlation_id);
	add_text(out, OB_STR(",\"causation_id\":"), m->causation_id);
	add_time(out, OB_STR(",\"occurred_at\":"), m->occurred_at_us);
	add_number(out, OB_STR(",\"priority\":"), m->priority);
	if (delivery->header_count > 0 || m->headers.p) {
		ob_buf_add(out, OB_STR(",\"headers\":"));
		ob_line_add_headers(out, delivery);
	}
	if (delivery->snapshot.p) {
		ob_buf_add(out, OB_STR(",\"snapshot\":"));
		ob_buf_add(out, delivery->snapshot);
	}
	add_payload(out, delivery);
	ob_buf_add(out, OB_STR("}\n"));
}

static size_t input_size(const struct ob_delivery *delivery)
{
	const struct ob_message *m = delivery->message;
	size_t size = delivery->body.n + delivery->destination.n + delivery->key.n + m->headers.n +
		      delivery->snapshot.n;

	size += m->aggregate_type.n + m->aggregate_id.n + m->event_type.n;
	size += m->correlation_id.n + m->causation_id.n + delivery->content_type.n;
	for (size_t i = 0; i < delivery->header_count; i++)
		size += delivery->headers[i].name.n + delivery->headers[i].value.n;
	return size;
}

int ob_line_add(struct ob_buf *out, const struct ob_delivery *delivery, struct ob_err *err)
{
	size_t from = out->len, size = input_size(delivery);

	if (size > OB_LINE_INPUT_MAX)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
				  "a message of %zu bytes is too large for a line (at most %d MB)",
				  size, OB_LINE_INPUT_MAX >> 20);
	add_line(out, delivery);
	if (!out->failed)
		return 0;
	out->failed = false;
	out->len = from;
	if (out->data)
		out->data[from] = '\0';
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a line of %zu bytes",
			  size);
}
