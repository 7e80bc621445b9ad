/* SPDX-License-Identifier: MIT */
/* Routes: destinations, keys, headers, rules and lanes, and the rules on failures. */
#include "relay/failures.h"
#include "relay/route.h"
#include "suite.h"

static const struct ob_sink_ops plain = { .name = "plain" };
static const struct ob_sink_ops headed = { .name = "headed",
					   .caps = OB_SINK_HEADERS,
					   .ce_prefix = "ce-" };

static struct ob_route route;
static struct ob_arena arena = OB_ARENA_INIT(1 << 20);

static const struct ob_message order = {
	.aggregate_type = OB_STR("order"),
	.aggregate_id = OB_STR("7"),
	.event_type = OB_STR("OrderPlaced"),
	.target = OB_STR("default"),
	.key = OB_STR("order:7"),
	.payload = OB_STR("{}"),
	.headers = OB_STR("{\"tenant\":\"acme\",\"n\":[1]}"),
};

static void begin(const struct ob_config_route *conf, const struct ob_sink_ops *sink)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_route_init(&route, conf, sink, &err) == 0, "%s", err.msg);
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
	ck_assert_ptr_eq(delivery.message, message);
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

static void goes_to(const struct ob_message *message, const char *destination)
{
	struct ob_str found = apply(message).destination;

	ck_assert_msg(ob_str_eq(found, ob_str(destination)), "%.*s", (int)found.n, found.p);
}

static void has_header(const struct ob_delivery *delivery, size_t i, const char *name,
		       const char *value)
{
	ck_assert_uint_lt(i, delivery->header_count);
	ck_assert(ob_str_eq(delivery->headers[i].name, ob_str(name)));
	ck_assert_msg(ob_str_eq(delivery->headers[i].value, ob_str(value)), "%.*s",
		      (int)delivery->headers[i].value.n, delivery->headers[i].value.p);
}

OB_TEST(the_usual_route_copies_nothing)
{
	begin(&(struct ob_config_route){ .destination = "{aggregate_type}" }, &plain);
	struct ob_delivery d = apply(&order);
	ck_assert_ptr_eq(d.destination.p, order.aggregate_type.p);
	ck_assert_ptr_eq(d.key.p, order.key.p);
	ck_assert_ptr_eq(d.body.p, order.payload.p);
	ck_assert_ptr_null(d.content_type.p);
	ck_assert_uint_eq(d.header_count, 0);
	ck_assert_uint_eq(arena.used, 0);
	ck_assert(ob_route_keeps_key(&route));
	end();
}
OB_TEST_END

OB_TEST(a_destination_without_its_field_is_refused)
{
	struct ob_message m = order;

	begin(&(struct ob_config_route){ .destination = "x.{aggregate_id}" }, &plain);
	goes_to(&m, "x.7");
	m.aggregate_id = OB_STR_NULL;
	rejects(&m,
		"the message has no aggregate_id, which the route's destination needs; write "
		"{aggregate_id|...} for a default");
	end();
}
OB_TEST_END

OB_TEST(a_key_is_what_the_template_says_or_none)
{
	struct ob_message m = order;

	begin(&(struct ob_config_route){ .destination = "d", .key = "{aggregate_id}" }, &plain);
	ck_assert(ob_str_eq(apply(&m).key, OB_STR("7")));
	m.aggregate_id = OB_STR_NULL;
	ck_assert_ptr_null(apply(&m).key.p);
	ck_assert(!ob_route_keeps_key(&route));
	end();
}
OB_TEST_END

OB_TEST(headers_of_the_route_join_the_stored_ones)
{
	static const struct ob_config_header headers[] = {
		{ "kind", "{event_type}" },
		{ "Tenant", "{headers.tenant}-{headers.nobody|x}" },
		{ "absent", "{correlation_id}" },
		{ "copy", "{headers.tenant}" },
	};
	struct ob_message m = order;

	begin(&(struct ob_config_route){ .destination = "d",
					 .headers = headers,
					 .header_count = 4 },
	      &plain);
	struct ob_delivery d = apply(&m);
	ck_assert_uint_eq(d.header_count, 4);
	has_header(&d, 0, "Tenant", "acme-x");
	has_header(&d, 1, "n", "[1]");
	has_header(&d, 2, "kind", "OrderPlaced");
	has_header(&d, 3, "copy", "acme");
	m.headers = OB_STR("[]");
	rejects(&m, "the headers of the message are no JSON object: expected an object at byte 0");
	m.headers = OB_STR_NULL;
	d = apply(&m);
	ck_assert_uint_eq(d.header_count, 1);
	has_header(&d, 0, "kind", "OrderPlaced");
	ck_assert_uint_eq(apply(&order).header_count, 4);
	end();
}
OB_TEST_END

OB_TEST(a_sink_with_headers_gets_the_stored_ones_one_by_one)
{
	struct ob_message m = order;

	begin(&(struct ob_config_route){ .destination = "d" }, &headed);
	struct ob_delivery d = apply(&m);
	ck_assert_uint_eq(d.header_count, 2);
	has_header(&d, 0, "tenant", "acme");
	has_header(&d, 1, "n", "[1]");
	m.headers = OB_STR("no object"); /* as stored: there is nothing to split */
	ck_assert_uint_eq(apply(&m).header_count, 0);
	m.headers = OB_STR_NULL;
	ck_assert_uint_eq(apply(&m).header_count, 0);
	end();
}
OB_TEST_END

OB_TEST(three_hundred_headers_keep_the_trace_and_know_their_types)
{
	struct ob_config_header extra = { "stage", "test" };
	struct ob_config_route conf = { .destination = "orders",
					.headers = &extra,
					.header_count = 1 };
	struct ob_buf json = OB_BUF_INIT(1 << 16);
	struct ob_message m = order;

	ob_buf_adds(&json, "{");
	for (int i = 0; i < 300; i++)
		ob_buf_addf(&json, "\"h%d\":%d,", i, i);
	ob_buf_adds(&json, "\"traceparent\":\"00-1\"}");
	m.headers = ob_buf_view(&json);
	begin(&conf, &headed);
	struct ob_delivery d = apply(&m);
	ck_assert_uint_eq(d.header_count, 302);
	has_header(&d, 300, "traceparent", "00-1");
	has_header(&d, 301, "stage", "test");
	ck_assert(d.headers[7].json);
	ck_assert(!d.headers[300].json && !d.headers[301].json);
	end();
	ob_buf_done(&json);
}
OB_TEST_END

OB_TEST(the_content_type_is_what_the_template_says_or_as_stored)
{
	struct ob_message m = order;

	begin(&(struct ob_config_route){ .destination = "d", .content_type = "{headers.tenant}/x" },
	      &plain);
	ck_assert(ob_str_eq(apply(&m).content_type, OB_STR("acme/x")));
	m.headers = OB_STR_NULL;
	ck_assert_ptr_null(apply(&m).content_type.p);
	end();
}
OB_TEST_END

OB_TEST(the_first_rule_that_matches_wins)
{
	struct ob_config_rule rules[] = {
		{ "Order*", "invoice", { .destination = "never" } },
		{ "OrderPlaced", NULL, { .destination = "placed", .key = "{aggregate_id}" } },
		{ "Order*", NULL, { .destination = "orders" } },
		{ NULL, "inv*", { .destination = "invoices.{event_type}" } },
	};
	struct ob_message m = order;

	begin(&(struct ob_config_route){ .destination = "rest", .rules = rules, .rule_count = 4 },
	      &plain);
	goes_to(&m, "placed");
	ck_assert(ob_str_eq(apply(&m).key, OB_STR("7")));
	m.event_type = OB_STR("OrderPaid");
	goes_to(&m, "orders");
	ck_assert(ob_str_eq(apply(&m).key, OB_STR("order:7")));
	m.event_type = OB_STR("Sent");
	goes_to(&m, "rest");
	m.aggregate_type = OB_STR("invoice");
	goes_to(&m, "invoices.Sent");
	m.event_type = OB_STR("OrderPlaced");
	goes_to(&m, "never");
	ck_assert(!ob_route_keeps_key(&route));
	end();
}
OB_TEST_END

OB_TEST(what_is_below_the_threshold_has_a_lane_of_its_own)
{
	struct ob_config_rule rule = { "Bulk", NULL, { .destination = "bulk" } };
	struct ob_message m = order;

	begin(&(struct ob_config_route){ .destination = "{aggregate_type}",
					 .backfill = { -2, ".backfill" },
					 .rules = &rule,
					 .rule_count = 1 },
	      &plain);
	goes_to(&m, "order");
	m.priority = -2;
	goes_to(&m, "order");
	m.priority = -3;
	goes_to(&m, "order.backfill");
	m.event_type = OB_STR("Bulk");
	goes_to(&m, "bulk.backfill");
	m.priority = 5;
	goes_to(&m, "bulk");
	end();
}
OB_TEST_END

OB_TEST(a_bad_route_is_refused)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_route_init(&route, &(struct ob_config_route){ .destination = "{x}" },
				       &plain, &err),
			 OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, "route: destination \"{x}\": no field '{x}'");
	ck_assert_int_eq(
		ob_route_init(&route,
			      &(struct ob_config_route){ .destination = "d",
							 .envelope = OB_ENVELOPE_CE_BINARY },
			      &plain, &err),
		OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg,
			 "route: CloudEvents has no binary mode for a sink of type "
			 "'plain'; use cloudevents-structured");
}
OB_TEST_END

OB_TEST(a_rule_decides_what_a_failure_means)
{
	struct ob_config_failure rules[] = {
		{ "404", NULL, OB_ERR_REJECT },
		{ NULL, "*quota*", OB_ERR_DOWN },
		{ "5*", "*busy*", OB_ERR_RETRY },
	};
	struct ob_config_relay relay = { .failures = rules, .failure_count = 3 };
	const struct ob_config_relay *arg = &relay;
	static const struct {
		const char *code, *text;
		enum ob_err_kind kind, then;
	} cases[] = {
		{ "404", "not found", OB_ERR_DOWN, OB_ERR_REJECT },
		{ "4040", "not found", OB_ERR_DOWN, OB_ERR_DOWN },
		{ "404", "over quota", OB_ERR_DOWN, OB_ERR_REJECT },
		{ "", "over quota now", OB_ERR_REJECT, OB_ERR_DOWN },
		{ "503", "busy", OB_ERR_REJECT, OB_ERR_RETRY },
		{ "503", "gone", OB_ERR_REJECT, OB_ERR_REJECT },
		{ "404", "bad url", OB_ERR_FATAL, OB_ERR_FATAL },
		{ "404", "not ours", OB_ERR_LOST, OB_ERR_LOST },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ob_err err = OB_ERR_INIT;

		(void)ob_err_set(&err, OUTBOX_ESINK, cases[i].kind, "%s", cases[i].text);
		(void)snprintf(err.native, sizeof(err.native), "%s", cases[i].code);
		ck_assert_int_eq(ob_failures_classify(&arg, &order, &err), cases[i].then);
	}
}
OB_TEST_END

OB_SUITE("route", the_usual_route_copies_nothing, a_destination_without_its_field_is_refused,
	 a_key_is_what_the_template_says_or_none, headers_of_the_route_join_the_stored_ones,
	 a_sink_with_headers_gets_the_stored_ones_one_by_one,
	 three_hundred_headers_keep_the_trace_and_know_their_types,
	 the_content_type_is_what_the_template_says_or_as_stored, the_first_rule_that_matches_wins,
	 what_is_below_the_threshold_has_a_lane_of_its_own, a_bad_route_is_refused,
	 a_rule_decides_what_a_failure_means)
