/* SPDX-License-Identifier: MIT */
/* Envelopes: CloudEvents in both modes, read back by a JSON parser of others, and Debezium's. */
#include "relay/route.h"
#include "suite.h"

#include <jansson.h>

static const struct ob_sink_ops http_like = { .name = "h",
					      .caps = OB_SINK_HEADERS,
					      .ce_prefix = "ce-" };
static const struct ob_sink_ops kafka_like = { .name = "k",
					       .caps = OB_SINK_HEADERS,
					       .ce_prefix = "ce_" };
static const struct ob_sink_ops nats_like = { .name = "n",
					      .caps = OB_SINK_HEADERS | OB_SINK_CE_TYPE,
					      .ce_prefix = "ce-" };
static const struct ob_sink_ops plain = { .name = "p" };

#define SOURCE "/outbox/{target}/{aggregate_type}"
#define TRACE  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static struct ob_route route;
static struct ob_arena arena = OB_ARENA_INIT((size_t)512 << 20);

static struct ob_message whole(void)
{
	struct ob_message m = {
		.seq = 42,
		.aggregate_type = OB_STR("order"),
		.aggregate_id = OB_STR("7"),
		.event_type = OB_STR("OrderPlaced"),
		.key = OB_STR("order:7"),
		.target = OB_STR("default"),
		.correlation_id = OB_STR("c1"),
		.causation_id = OB_STR("d1"),
		.sequence_number = 3,
		.occurred_at_us = 1700000000123456,
		.payload = OB_STR(" {\"total\": 1.50}\n"),
		.headers = OB_STR("{\"traceparent\":\"" TRACE
				  "\",\"tracestate\":\"a=b\",\"tenant\":\"acme\"}"),
	};

	ck_assert(ob_uuid_parse(OB_STR("01900000-0000-7000-8000-000000000001"), &m.id));
	return m;
}

static void begin(enum ob_envelope envelope, const struct ob_sink_ops *sink)
{
	struct ob_config_route conf = { .destination = "d",
					.source = SOURCE,
					.envelope = envelope };
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_route_init(&route, &conf, sink, &err) == 0, "%s", err.msg);
}

static void end(void)
{
	ob_route_done(&route);
	ob_arena_done(&arena);
}

static struct ob_delivery apply(const struct ob_message *message)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_delivery delivery;

	ck_assert_msg(ob_route_apply(&route, message, &arena, &delivery, &err) == 0, "%s", err.msg);
	return delivery;
}

static void rejects(const struct ob_message *message, const char *expected)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_delivery delivery;

	ck_assert_int_eq(ob_route_apply(&route, message, &arena, &delivery, &err), OUTBOX_EINVAL);
	ck_assert_int_eq(err.kind, OB_ERR_REJECT);
	ck_assert_str_eq(err.msg, expected);
}

static void has(const struct ob_delivery *d, const char *name, const char *value)
{
	const struct ob_header *h = ob_headers_find(d->headers, d->header_count, ob_str(name));

	ck_assert_msg(!h == !value, "%s", name);
	ck_assert_msg(!h || ob_str_eq(h->value, ob_str(value)), "%s: %.*s", name,
		      h ? (int)h->value.n : 0, h ? h->value.p : "");
}

/* The event of a structured delivery; the caller frees it. */
static json_t *event_of(const struct ob_delivery *d)
{
	json_error_t error;
	json_t *event =
		json_loadb(d->body.p, d->body.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);

	ck_assert_msg(event != NULL, "%s: %.*s", error.text, (int)d->body.n, d->body.p);
	ck_assert(ob_str_eq(d->content_type, OB_STR("application/cloudevents+json")));
	return event;
}

static void is_text(const json_t *event, const char *name, const char *value)
{
	const char *found = json_string_value(json_object_get(event, name));

	if (!value)
		ck_assert_ptr_null(json_object_get(event, name));
	else
		ck_assert_str_eq(found ? found : "(none)", value);
}

OB_TEST(a_binary_event_has_its_attributes_in_headers)
{
	struct ob_message m = whole();

	begin(OB_ENVELOPE_CE_BINARY, &http_like);
	struct ob_delivery d = apply(&m);
	has(&d, "ce-specversion", "1.0");
	has(&d, "ce-id", "01900000-0000-7000-8000-000000000001");
	has(&d, "ce-source", "/outbox/default/order");
	has(&d, "ce-type", "OrderPlaced");
	has(&d, "ce-subject", "7");
	has(&d, "ce-time", "2023-11-14T22:13:20.123456Z");
	has(&d, "ce-partitionkey", "order:7");
	has(&d, "ce-sequence", "0000000000000000003");
	has(&d, "ce-correlationid", "c1");
	has(&d, "ce-causationid", "d1");
	has(&d, "ce-traceparent", TRACE);
	has(&d, "ce-tracestate", "a=b");
	has(&d, "ce-datacontenttype", NULL);
	has(&d, "traceparent", TRACE);
	has(&d, "tracestate", "a=b");
	has(&d, "tenant", "acme");
	ck_assert(ob_str_eq(d.content_type, OB_STR("application/json")));
	ck_assert_ptr_eq(d.body.p, m.payload.p);
	ck_assert_uint_eq(d.body.n, m.payload.n);
	end();
}
OB_TEST_END

OB_TEST(each_binding_has_its_names)
{
	struct ob_message m = whole();

	begin(OB_ENVELOPE_CE_BINARY, &kafka_like);
	struct ob_delivery d = apply(&m);
	has(&d, "ce_id", "01900000-0000-7000-8000-000000000001");
	has(&d, "ce-id", NULL);
	end();
	begin(OB_ENVELOPE_CE_BINARY, &nats_like);
	d = apply(&m);
	has(&d, "ce-datacontenttype", "application/json");
	end();
}
OB_TEST_END

OB_TEST(the_envelope_beats_a_stored_header_of_its_name)
{
	struct ob_message m = whole();

	m.headers = OB_STR("{\"CE-Type\":\"Forged\",\"ce-other\":\"kept\"}");
	begin(OB_ENVELOPE_CE_BINARY, &http_like);
	struct ob_delivery d = apply(&m);
	has(&d, "ce-type", "OrderPlaced");
	has(&d, "ce-other", "kept");
	end();
}
OB_TEST_END

OB_TEST(a_structured_event_holds_everything)
{
	struct ob_message m = whole();

	begin(OB_ENVELOPE_CE_STRUCTURED, &plain);
	struct ob_delivery d = apply(&m);
	json_t *event = event_of(&d);
	is_text(event, "specversion", "1.0");
	is_text(event, "id", "01900000-0000-7000-8000-000000000001");
	is_text(event, "source", "/outbox/default/order");
	is_text(event, "type", "OrderPlaced");
	is_text(event, "subject", "7");
	is_text(event, "time", "2023-11-14T22:13:20.123456Z");
	is_text(event, "datacontenttype", "application/json");
	is_text(event, "partitionkey", "order:7");
	is_text(event, "sequence", "0000000000000000003");
	is_text(event, "traceparent", TRACE);
	ck_assert_double_eq_tol(
		json_real_value(json_object_get(json_object_get(event, "data"), "total")), 1.5,
		1e-9);
	ck_assert_ptr_nonnull(memmem(d.body.p, d.body.n, m.payload.p, m.payload.n));
	ck_assert_uint_eq(d.header_count, 0); /* the sink takes the stored ones as they are */
	json_decref(event);
	end();
	begin(OB_ENVELOPE_CE_STRUCTURED, &http_like);
	d = apply(&m);
	has(&d, "traceparent", TRACE);
	has(&d, "ce-id", NULL);
	end();
}
OB_TEST_END

OB_TEST(what_a_message_lacks_an_event_lacks)
{
	struct ob_message m = { .aggregate_type = OB_STR("order"),
				.event_type = OB_STR("E"),
				.target = OB_STR("t"),
				.aggregate_id = OB_STR("") };

	begin(OB_ENVELOPE_CE_STRUCTURED, &plain);
	struct ob_delivery d = apply(&m);
	json_t *event = event_of(&d);
	ck_assert_uint_eq(json_object_size(event), 4); /* the required ones */
	is_text(event, "source", "/outbox/t/order");
	json_decref(event);
	end();
	begin(OB_ENVELOPE_CE_BINARY, &http_like);
	d = apply(&m);
	ck_assert_uint_eq(d.header_count, 4);
	ck_assert_ptr_null(d.body.p);
	ck_assert_ptr_null(d.content_type.p);
	end();
}
OB_TEST_END

static void check_base64(const struct ob_message *m, const char *type, const char *base64)
{
	struct ob_delivery d = apply(m);
	json_t *event = event_of(&d);

	is_text(event, "datacontenttype", type);
	is_text(event, "data_base64", base64);
	ck_assert_ptr_null(json_object_get(event, "data"));
	json_decref(event);
}

OB_TEST(a_payload_that_is_not_json_is_base64)
{
	struct ob_config_route conf = { .destination = "d",
					.source = "s",
					.content_type = "{headers.type|application/json}",
					.envelope = OB_ENVELOPE_CE_STRUCTURED };
	struct ob_err err = OB_ERR_INIT;
	struct ob_message m = whole();

	begin(OB_ENVELOPE_CE_STRUCTURED, &plain);
	m.payload = OB_STR("\0\1\2\xff");
	check_base64(&m, "application/octet-stream", "AAEC/w==");
	m.payload = OB_STR("{\"broken\":");
	check_base64(&m, "application/octet-stream", "eyJicm9rZW4iOg==");
	m.payload = OB_STR("1},\"id\":\"forged\"");
	check_base64(&m, "application/octet-stream", "MX0sImlkIjoiZm9yZ2VkIg==");
	m.payload = OB_STR("");
	check_base64(&m, "application/octet-stream", "");
	end();
	ck_assert_int_eq(ob_route_init(&route, &conf, &plain, &err), 0);
	m.headers = OB_STR("{\"type\":\"text/plain\"}");
	m.payload = OB_STR("\"text\"");
	check_base64(&m, "text/plain", "InRleHQi");
	m.headers = OB_STR_NULL;
	m.payload = OB_STR("not json");
	check_base64(&m, "application/json", "bm90IGpzb24=");
	end();
}
OB_TEST_END

OB_TEST(names_of_any_kind_make_a_sound_document)
{
	struct ob_message m = whole();

	m.event_type = OB_STR("quote\" back\\ gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
	m.aggregate_type = OB_STR("a b%c%41\"\xc3\xbc");
	m.aggregate_id = OB_STR("\"},{");
	begin(OB_ENVELOPE_CE_STRUCTURED, &plain);
	struct ob_delivery d = apply(&m);
	json_t *event = event_of(&d);
	is_text(event, "type", m.event_type.p);
	is_text(event, "subject", "\"},{");
	is_text(event, "source", "/outbox/default/a%20b%25c%41%22%C3%BC");
	json_decref(event);
	end();
}
OB_TEST_END

OB_TEST(what_an_attribute_must_not_have_is_refused)
{
	static const struct ob_str bad[] = { OB_STR("a\nb"), OB_STR("a\0b"), OB_STR("a\x7f"),
					     OB_STR("\xc2\x85"), OB_STR("\xff") };
	struct ob_message m;

	begin(OB_ENVELOPE_CE_BINARY, &http_like);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m = whole();
		m.event_type = bad[i];
		rejects(&m,
			"CloudEvents: the value of 'type' has a control character or is not "
			"UTF-8");
		m = whole();
		m.aggregate_id = bad[i];
		rejects(&m,
			"CloudEvents: the value of 'subject' has a control character or is "
			"not UTF-8");
	}
	m = whole();
	m.event_type = OB_STR("");
	rejects(&m, "CloudEvents: 'type' must not be empty");
	m = whole(); /* a trace that is none is no attribute, and harms no message */
	m.headers = OB_STR("{\"traceparent\":\"a\\nb\",\"tracestate\":\"\"}");
	struct ob_delivery d = apply(&m);
	has(&d, "ce-traceparent", NULL);
	has(&d, "ce-tracestate", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_large_payload_fits_and_a_larger_one_is_refused)
{
	struct ob_message m = whole();
	size_t max = OB_ENVELOPE_BODY_MAX;
	char *bytes = calloc(max + 1, 1);

	ck_assert_ptr_nonnull(bytes);
	begin(OB_ENVELOPE_CE_STRUCTURED, &plain);
	m.payload = (struct ob_str){ bytes, max };
	ck_assert_uint_gt(apply(&m).body.n, max / 3 * 4);
	m.payload.n++;
	rejects(&m,
		"a payload of 83886081 bytes is too large for a structured event (at most 80 "
		"MB)");
	end();
	free(bytes);
}
OB_TEST_END

OB_TEST(debezium_has_an_id_header_and_the_payload_as_it_is)
{
	struct ob_message m = whole();

	begin(OB_ENVELOPE_DEBEZIUM, &plain);
	struct ob_delivery d = apply(&m);
	has(&d, "id", "01900000-0000-7000-8000-000000000001");
	has(&d, "traceparent", TRACE);
	ck_assert_uint_eq(d.header_count, 4);
	ck_assert_ptr_eq(d.body.p, m.payload.p);
	ck_assert_ptr_null(d.content_type.p);
	end();
}
OB_TEST_END

OB_TEST(more_headers_than_fit_are_refused)
{
	struct ob_buf json = OB_BUF_INIT(1 << 16);
	struct ob_message m = whole();

	for (int i = 0; i < OB_ROUTE_HEADERS; i++)
		ob_buf_addf(&json, "%c\"h%d\":1", i ? ',' : '{', i);
	ob_buf_addc(&json, '}');
	m.headers = ob_buf_view(&json);
	begin(OB_ENVELOPE_DEBEZIUM, &plain);
	rejects(&m, "the message has more than 4096 headers");
	end();
	begin(OB_ENVELOPE_NONE, &http_like);
	ck_assert_uint_eq(apply(&m).header_count, OB_ROUTE_HEADERS);
	end();
	ob_buf_done(&json);
}
OB_TEST_END

OB_TEST(a_snapshot_goes_out_only_where_the_route_says_so)
{
	struct ob_config_route conf = { .destination = "d", .source = SOURCE };
	struct ob_err err = OB_ERR_INIT;
	struct ob_message m = whole();

	m.snapshot = OB_STR("{\n\t\"total\": 7\r\n}");
	for (int on = 0; on < 2; on++) {
		conf.snapshot = on;
		ck_assert_int_eq(ob_route_init(&route, &conf, &plain, &err), 0);
		struct ob_delivery d = apply(&m);
		ck_assert(ob_str_eq(d.snapshot, on ? OB_STR("{  \"total\": 7  }") : OB_STR_NULL));
		end();
	}
	conf.envelope = OB_ENVELOPE_CE_BINARY;
	ck_assert_int_eq(ob_route_init(&route, &conf, &http_like, &err), 0);
	struct ob_delivery binary = apply(&m);
	has(&binary, "ce-snapshot", "{  \"total\": 7  }");
	ck_assert_ptr_null(binary.snapshot.p);
	end();
	conf.envelope = OB_ENVELOPE_CE_STRUCTURED;
	ck_assert_int_eq(ob_route_init(&route, &conf, &plain, &err), 0);
	struct ob_delivery structured = apply(&m);
	json_t *event = event_of(&structured);
	is_text(event, "snapshot", "{  \"total\": 7  }");
	json_decref(event);
	end();
}
OB_TEST_END

OB_TEST(a_payload_that_was_changed_behind_its_key_is_refused)
{
	struct ob_message m = whole();
	struct ob_err err = OB_ERR_INIT;
	struct ob_delivery d;

	m.garbled = true;
	begin(OB_ENVELOPE_NONE, &plain);
	ck_assert_int_eq(ob_route_apply(&route, &m, &arena, &d, &err), OUTBOX_EKEY);
	ck_assert_int_eq(err.kind, OB_ERR_REJECT);
	end();
}
OB_TEST_END

OB_SUITE("envelope", a_binary_event_has_its_attributes_in_headers, each_binding_has_its_names,
	 the_envelope_beats_a_stored_header_of_its_name, a_structured_event_holds_everything,
	 what_a_message_lacks_an_event_lacks, a_payload_that_is_not_json_is_base64,
	 names_of_any_kind_make_a_sound_document, what_an_attribute_must_not_have_is_refused,
	 a_large_payload_fits_and_a_larger_one_is_refused,
	 debezium_has_an_id_header_and_the_payload_as_it_is, more_headers_than_fit_are_refused,
	 a_snapshot_goes_out_only_where_the_route_says_so,
	 a_payload_that_was_changed_behind_its_key_is_refused)
