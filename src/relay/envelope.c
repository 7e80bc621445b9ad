/* SPDX-License-Identifier: MIT */
/* Envelopes around messages. */
#include "relay/envelope.h"

#include "base/base64.h"
#include "base/headers.h"
#include "base/json.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	TRACE_MAX = 8192,       /* bytes of traceparent and tracestate: longer ones are none */
	SCRATCH_KEEP = 1 << 20, /* memory kept between messages */
};
/* Base64 makes four bytes of three; names and keys are short beside the payload. */
#define SCRATCH_MAX ((size_t)OB_ENVELOPE_BODY_MAX * 2 + (64 << 20))

static const char *const attributes[] = {
#define X(name, text) [OB_CE_##name] = (text),
	OB_CE_MAP(X)
#undef X
};

static int no_memory(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for an envelope");
}

/* ---- the sink's side ------------------------------------------------- */

int ob_envelope_init(struct ob_envelope_conf *conf, const struct ob_sink_ops *sink,
		     struct ob_arena *arena, struct ob_err *err)
{
	char name[128];

	*conf = (struct ob_envelope_conf){ .sink = sink, .scratch = OB_BUF_INIT(SCRATCH_MAX) };
	for (int i = 0; i < OB_CE_COUNT && sink->ce_prefix; i++) {
		/* Elsewhere it is the transport's own content type. */
		if (i == OB_CE_DATACONTENTTYPE && !(sink->caps & OB_SINK_CE_TYPE))
			continue;
		(void)snprintf(name, sizeof(name), "%s%s", sink->ce_prefix, attributes[i]);
		if (!ob_arena_copy(arena, ob_str(name), &conf->names[i]))
			return no_memory(err);
	}
	return 0;
}

void ob_envelope_done(struct ob_envelope_conf *conf)
{
	ob_buf_done(&conf->scratch);
}

int ob_envelope_check(const struct ob_envelope_conf *conf, enum ob_envelope kind,
		      struct ob_err *err)
{
	if (kind != OB_ENVELOPE_CE_BINARY || conf->sink->ce_prefix)
		return 0;
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "route: CloudEvents has no binary mode for a sink of type '%s'; use "
			  "cloudevents-structured",
			  conf->sink->name);
}

bool ob_envelope_sets_headers(enum ob_envelope kind)
{
	return kind == OB_ENVELOPE_CE_BINARY || kind == OB_ENVELOPE_DEBEZIUM;
}

bool ob_envelope_has_source(enum ob_envelope kind)
{
	return kind == OB_ENVELOPE_CE_BINARY || kind == OB_ENVELOPE_CE_STRUCTURED;
}

static int set_header(const struct ob_envelope_input *input, struct ob_str name,
		      struct ob_str value, struct ob_err *err)
{
	if (ob_headers_set(input->headers, input->header_count, input->header_max,
			   (struct ob_header){ .name = name, .value = value }))
		return 0;
	return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_REJECT,
			  "the message has more than %zu headers", input->header_max);
}

/* ---- values of attributes -------------------------------------------- */

static bool id_text(const struct ob_message *message, struct ob_arena *arena, struct ob_str *ret)
{
	char text[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&message->id, text);
	return ob_arena_copy(arena, ob_str(text), ret);
}

static bool time_text(const struct ob_message *message, struct ob_arena *arena, struct ob_str *ret)
{
	char text[OB_TIME_SIZE];

	return !ob_time_format(message->occurred_at_us, text) ||
	       ob_arena_copy(arena, ob_str(text), ret);
}

/* By the extension's rule a sequence sorts as text: so many digits as the largest has. */
static bool sequence_text(const struct ob_message *message, struct ob_arena *arena,
			  struct ob_str *ret)
{
	char text[24];

	if (message->sequence_number <= 0)
		return true;
	(void)snprintf(text, sizeof(text), "%019" PRId64, message->sequence_number);
	return ob_arena_copy(arena, ob_str(text), ret);
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* May the byte at `i` stand in a URI reference as it is? */
static bool is_uri_byte(struct ob_str s, size_t i)
{
	static const char marks[] = "-._~:/?#[]@!$&'()*+,;=";
	char c = s.p[i];

	if (c == '%')
		return i + 2 < s.n && is_hex(s.p[i + 1]) && is_hex(s.p[i + 2]);
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
	       (c && memchr(marks, c, sizeof(marks) - 1));
}

/* A source is a URI reference: what cannot stand in one is percent-encoded. */
static bool uri_text(struct ob_str from, struct ob_arena *arena, struct ob_str *ret)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t n = from.n;

	for (size_t i = 0; i < from.n; i++)
		n += is_uri_byte(from, i) ? 0 : 2;
	*ret = from;
	if (n == from.n)
		return true;
	char *out = ob_arena_alloc(arena, n + 1);
	if (!out)
		return false;
	*ret = (struct ob_str){ out, n };
	for (size_t i = 0; i < from.n; i++) {
		unsigned char c = (unsigned char)from.p[i];

		if (is_uri_byte(from, i)) {
			*out++ = from.p[i];
			continue;
		}
		*out++ = '%';
		*out++ = hex[c >> 4];
		*out++ = hex[c & 15];
	}
	return true;
}

/* A header of tracing, when it can be one. */
static struct ob_str trace_text(const struct ob_envelope_input *input, struct ob_str name)
{
	const struct ob_header *header =
		ob_headers_find(input->headers, *input->header_count, name);

	if (!header || header->value.n == 0 || header->value.n > TRACE_MAX)
		return OB_STR_NULL;
	for (size_t i = 0; i < header->value.n; i++) {
		if (header->value.p[i] < ' ' || header->value.p[i] > '~')
			return OB_STR_NULL;
	}
	return header->value;
}

/* Characters that no attribute may have: controls, and what is not UTF-8. */
static bool is_clean(struct ob_str s)
{
	for (size_t i = 0, step; i < s.n; i += step) {
		step = ob_utf8_step(s.p + i, s.n - i);
		if (step == 0 || (step < 3 && ob_utf8_is_control(s.p + i, step)))
			return false;
	}
	return true;
}

/* Empty is as good as none; the required ones must be there. */
static int check_attributes(struct ob_str values[OB_CE_COUNT], struct ob_err *err)
{
	for (int i = 0; i < OB_CE_COUNT; i++) {
		if (values[i].n == 0)
			values[i] = OB_STR_NULL;
		if (!is_clean(values[i]))
			return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_REJECT,
					  "CloudEvents: the value of '%s' has a control character "
					  "or is not UTF-8",
					  attributes[i]);
		if (!values[i].p && (i == OB_CE_SOURCE || i == OB_CE_TYPE))
			return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_REJECT,
					  "CloudEvents: '%s' must not be empty", attributes[i]);
	}
	return 0;
}

static int fill_attributes(const struct ob_envelope_input *input,
			   const struct ob_delivery *delivery, struct ob_arena *arena,
			   struct ob_str values[OB_CE_COUNT], struct ob_err *err)
{
	const struct ob_message *m = delivery->message;

	values[OB_CE_SPECVERSION] = OB_STR("1.0");
	values[OB_CE_TYPE] = m->event_type;
	values[OB_CE_SUBJECT] = m->aggregate_id;
	values[OB_CE_DATACONTENTTYPE] = delivery->content_type;
	values[OB_CE_PARTITIONKEY] = delivery->key;
	values[OB_CE_CORRELATIONID] = m->correlation_id;
	values[OB_CE_CAUSATIONID] = m->causation_id;
	values[OB_CE_SNAPSHOT] = delivery->snapshot; /* an attribute is text: JSON in a string */
	values[OB_CE_TRACEPARENT] = trace_text(input, OB_STR("traceparent"));
	values[OB_CE_TRACESTATE] = trace_text(input, OB_STR("tracestate"));
	if (!id_text(m, arena, &values[OB_CE_ID]) || !time_text(m, arena, &values[OB_CE_TIME]) ||
	    !sequence_text(m, arena, &values[OB_CE_SEQUENCE]) ||
	    !uri_text(input->source, arena, &values[OB_CE_SOURCE]))
		return no_memory(err);
	return check_attributes(values, err);
}

/* ---- the modes ------------------------------------------------------- */

static int make_binary(const struct ob_envelope_conf *conf, const struct ob_envelope_input *input,
		       const struct ob_str values[OB_CE_COUNT], struct ob_err *err)
{
	for (int i = 0; i < OB_CE_COUNT; i++) {
		int r = values[i].p && conf->names[i].p
				? set_header(input, conf->names[i], values[i], err)
				: 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static void write_event(struct ob_buf *out, const struct ob_str values[OB_CE_COUNT],
			struct ob_str body, bool json)
{
	for (int i = 0; i < OB_CE_COUNT; i++) {
		if (!values[i].p)
			continue;
		ob_buf_addc(out, out->len ? ',' : '{');
		ob_json_add_string(out, ob_str(attributes[i]));
		ob_buf_addc(out, ':');
		ob_json_add_string(out, values[i]);
	}
	if (body.p && json) {
		ob_buf_adds(out, ",\"data\":");
		ob_buf_add(out, body);
	} else if (body.p) {
		ob_buf_adds(out, ",\"data_base64\":\"");
		ob_base64_encode(out, body);
		ob_buf_addc(out, '"');
	}
	ob_buf_addc(out, '}');
}

static int make_structured(struct ob_envelope_conf *conf, const struct ob_str values[OB_CE_COUNT],
			   bool json, struct ob_arena *arena, struct ob_delivery *delivery,
			   struct ob_err *err)
{
	struct ob_buf *out = &conf->scratch;
	bool ok;

	if (delivery->body.n > OB_ENVELOPE_BODY_MAX)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_REJECT,
				  "a payload of %zu bytes is too large for a structured event (at "
				  "most %d MB)",
				  delivery->body.n, OB_ENVELOPE_BODY_MAX >> 20);
	ob_buf_clear(out);
	write_event(out, values, delivery->body, json);
	ok = !out->failed && ob_arena_copy(arena, ob_buf_view(out), &delivery->body);
	if (out->cap > SCRATCH_KEEP)
		ob_buf_done(out);
	if (!ok)
		return no_memory(err);
	delivery->content_type = OB_STR("application/cloudevents+json");
	return 0;
}

static int make_event(struct ob_envelope_conf *conf, const struct ob_envelope_input *input,
		      struct ob_arena *arena, struct ob_delivery *delivery, struct ob_err *err)
{
	struct ob_str values[OB_CE_COUNT] = { 0 };
	bool json = delivery->body.p && ob_json_is_type(delivery->content_type) &&
		    ob_json_valid(delivery->body, NULL);

	if (!delivery->body.p)
		delivery->content_type = OB_STR_NULL;
	else if (!delivery->content_type.p)
		delivery->content_type =
			json ? OB_STR("application/json") : OB_STR("application/octet-stream");
	int r = fill_attributes(input, delivery, arena, values, err);
	if (r < 0)
		return r;
	delivery->snapshot = OB_STR_NULL; /* it is in the envelope */
	return input->kind == OB_ENVELOPE_CE_BINARY
		       ? make_binary(conf, input, values, err)
		       : make_structured(conf, values, json, arena, delivery, err);
}

int ob_envelope_apply(struct ob_envelope_conf *conf, const struct ob_envelope_input *input,
		      struct ob_arena *arena, struct ob_delivery *delivery, struct ob_err *err)
{
	struct ob_str id;

	if (input->kind != OB_ENVELOPE_DEBEZIUM)
		return make_event(conf, input, arena, delivery, err);
	if (!id_text(delivery->message, arena, &id))
		return no_memory(err);
	return set_header(input, OB_STR("id"), id, err);
}
