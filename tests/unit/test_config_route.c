/* SPDX-License-Identifier: MIT */
/* The route of a relay: templates, headers, rules, lanes and envelopes; rules on failures. */
#include "config_text.h"
#include "suite.h"

OB_TEST(a_destination_names_fields_that_exist)
{
	config_bad(RELAY("route: { destination: 'a.{evnt_type}' }"),
		   "c.yaml:5:27: relays[0].route.destination: no field '{evnt_type}'; did you mean "
		   "'{event_type}'?\n");
	config_bad(RELAY("route: { destination: 'a.{payload}' }"),
		   "c.yaml:5:27: relays[0].route.destination: no field '{payload}'\n");
	config_bad(RELAY("route: { destination: 'a.{event_type' }"),
		   "c.yaml:5:27: relays[0].route.destination: a '{' without its '}'; doubled it "
		   "stands "
		   "for itself\n");
	config_bad(RELAY("route: { destination: 'a}' }"),
		   "c.yaml:5:27: relays[0].route.destination: a '}' without its '{'; doubled it "
		   "stands "
		   "for itself\n");
	config_bad(RELAY("route: { destination: '{target}}' }"),
		   "c.yaml:5:27: relays[0].route.destination: a '}' without its '{'; doubled it "
		   "stands "
		   "for itself\n");
	config_bad(RELAY("route: { destination: '' }"),
		   "c.yaml:5:27: relays[0].route.destination: must not be empty\n");
}
OB_TEST_END

OB_TEST(a_route_has_its_defaults)
{
	CONFIG c = config_good(BOTH "relays: [ {} ]\n");
	CONFIG empty = config_good(BOTH "relays: [ { route: , failures: } ]\n");
	const struct ob_config_route *r = &c->relays[0].route;

	ck_assert_str_eq(r->destination, "{aggregate_type}");
	ck_assert_ptr_null(r->key);
	ck_assert_ptr_null(r->content_type);
	ck_assert_str_eq(r->source, "/outbox/{target}/{aggregate_type}");
	ck_assert_int_eq(r->envelope, OB_ENVELOPE_NONE);
	ck_assert_uint_eq(r->header_count, 0);
	ck_assert_uint_eq(r->rule_count, 0);
	ck_assert_ptr_null(r->backfill.suffix);
	ck_assert_uint_eq(c->relays[0].failure_count, 0);
	ck_assert_str_eq(empty->relays[0].route.destination, "{aggregate_type}");
}
OB_TEST_END

OB_TEST(every_key_of_a_route_is_read)
{
	CONFIG c =
		config_good(RELAY("route:\n"
				  "      destination: '{{x}}.{event_type}'\n"
				  "      key: '{headers.tenant|none}'\n"
				  "      content_type: application/avro\n"
				  "      source: /shop\n"
				  "      envelope: cloudevents-structured\n"
				  "      headers: { Tenant: '{headers.tenant}', x.y: z }\n"
				  "      backfill: { below: -10, suffix: .slow }"));
	const struct ob_config_route *r = &c->relays[0].route;

	ck_assert_str_eq(r->destination, "{{x}}.{event_type}");
	ck_assert_str_eq(r->key, "{headers.tenant|none}");
	ck_assert_str_eq(r->content_type, "application/avro");
	ck_assert_str_eq(r->source, "/shop");
	ck_assert_int_eq(r->envelope, OB_ENVELOPE_CE_STRUCTURED);
	ck_assert_uint_eq(r->header_count, 2);
	ck_assert_str_eq(r->headers[0].name, "Tenant");
	ck_assert_str_eq(r->headers[1].value, "z");
	ck_assert_int_eq(r->backfill.below, -10);
	ck_assert_str_eq(r->backfill.suffix, ".slow");
}
OB_TEST_END

OB_TEST(a_rule_has_from_the_route_what_it_does_not_name)
{
	CONFIG c = config_good(
		RELAY("route:\n"
		      "      key: '{seq}'\n"
		      "      headers: { a: '1', b: '2' }\n"
		      "      rules:\n"
		      "        - { event_type: 'Order*', destination: x }\n"
		      "        - { aggregate_type: inv, key: '', headers: { B: '3' } }\n"
		      "        - { event_type: d, envelope: debezium }"));
	const struct ob_config_route *r = &c->relays[0].route;

	ck_assert_uint_eq(r->rule_count, 3);
	ck_assert_str_eq(r->rules[0].event_type, "Order*");
	ck_assert_ptr_null(r->rules[0].aggregate_type);
	ck_assert_str_eq(r->rules[0].route.destination, "x");
	ck_assert_str_eq(r->rules[0].route.key, "{seq}");
	ck_assert_uint_eq(r->rules[0].route.header_count, 2);
	ck_assert_str_eq(r->rules[1].aggregate_type, "inv");
	ck_assert_str_eq(r->rules[1].route.destination, "{aggregate_type}");
	ck_assert_ptr_null(r->rules[1].route.key);
	ck_assert_uint_eq(r->rules[1].route.header_count, 2);
	ck_assert_str_eq(r->rules[1].route.headers[0].value, "1");
	ck_assert_str_eq(r->rules[1].route.headers[1].value, "3");
	ck_assert_str_eq(r->headers[1].value, "2");
	ck_assert_str_eq(r->rules[2].route.destination, "outbox.event.{aggregate_type}");
	ck_assert_str_eq(r->rules[2].route.key, "{aggregate_id}");
}
OB_TEST_END

OB_TEST(debezium_has_names_of_its_own)
{
	CONFIG c = config_good(RELAY("route: { envelope: debezium }"));
	CONFIG own =
		config_good(RELAY("route: { envelope: debezium, destination: x, key: '{seq}' }"));

	ck_assert_str_eq(c->relays[0].route.destination, "outbox.event.{aggregate_type}");
	ck_assert_str_eq(c->relays[0].route.key, "{aggregate_id}");
	ck_assert_str_eq(own->relays[0].route.destination, "x");
	ck_assert_str_eq(own->relays[0].route.key, "{seq}");
}
OB_TEST_END

OB_TEST(every_template_is_checked)
{
	config_bad(RELAY("route: { key: '{sec}' }"),
		   "c.yaml:5:19: relays[0].route.key: no field '{sec}'; did you mean '{seq}'?\n");
	config_bad(RELAY("route: { source: '' , content_type: '{' }"),
		   "c.yaml:5:22: relays[0].route.source: must not be empty\n"
		   "c.yaml:5:41: relays[0].route.content_type: a '{' without its '}'; doubled it "
		   "stands for itself\n");
	config_bad(RELAY("route: { headers: { t: '{headers.}' } }"),
		   "c.yaml:5:28: relays[0].route.headers.t: '{headers.}' names no header: write "
		   "'{headers.tenant}'\n");
	config_bad(RELAY("route: { rules: [ { event_type: a, key: '{idd}' } ] }"),
		   "c.yaml:5:45: relays[0].route.rules[0].key: no field '{idd}'; did you mean "
		   "'{id}'?\n");
	config_bad(RELAY("route: { destination: {event_type} }"),
		   "c.yaml:5:27: relays[0].route.destination expects a text, not a mapping; put it "
		   "in quotes\n");
}
OB_TEST_END

OB_TEST(headers_are_checked)
{
	config_bad(RELAY("route: { headers: { a b: x, 'c:': x } }"),
		   "c.yaml:5:25: 'a b' is not a name in relays[0].route.headers: use letters, "
		   "digits, '_', '-' and '.', at most 128 characters\n"
		   "c.yaml:5:33: 'c:' is not a name in relays[0].route.headers: use letters, "
		   "digits, '_', '-' and '.', at most 128 characters\n");
	config_bad(RELAY("route: { headers: { a: x, a: y } }"),
		   "c.yaml:5:31: duplicate key 'a' in relays[0].route.headers; the first is in "
		   "line 5\n");
	config_bad(RELAY("route: { headers: [ a ] }"),
		   "c.yaml:5:23: relays[0].route.headers expects a mapping, not a list\n");
	config_bad(RELAY("route: { headers: { a: } }"),
		   "c.yaml:5:28: relays[0].route.headers.a expects a text, but nothing is there\n");
}
OB_TEST_END

OB_TEST(there_are_at_most_sixty_four_headers)
{
	struct ob_buf text = OB_BUF_INIT(10000);
	struct ob_err err = OB_ERR_INIT;

	ob_buf_adds(&text,
		    BOTH "relays:\n- route:\n    rules: [ { event_type: x } ]\n    headers:\n");
	for (int i = 0; i < OB_CONFIG_HEADERS_MAX; i++)
		ob_buf_addf(&text, "      h%d: x\n", i);
	CONFIG c = config_load(ob_buf_view(&text));
	ck_assert_uint_eq(c->relays[0].route.rules[0].route.header_count, OB_CONFIG_HEADERS_MAX);
	ob_buf_adds(&text, "      more: x\n");
	OB_AUTOFREE char *found = config_faults(ob_buf_view(&text), &err);
	ck_assert_str_eq(found, "c.yaml:7:7: relays[0].route.headers: at most 64 headers\n");
	ob_buf_done(&text);
}
OB_TEST_END

OB_TEST(rules_are_checked)
{
	config_bad(RELAY("route: { rules: [ { destination: x } ] }"),
		   "c.yaml:5:23: relays[0].route.rules[0] needs 'event_type' or "
		   "'aggregate_type'\n");
	config_bad(RELAY("route: { rules: [ ~, x, { event_type: a, evelope: none, rules: [] } ] }"),
		   "c.yaml:5:23: relays[0].route.rules[0] is empty\n"
		   "c.yaml:5:26: relays[0].route.rules[1] expects a mapping, not a text\n"
		   "c.yaml:5:46: unknown key 'evelope' in relays[0].route.rules[2]; did you mean "
		   "'envelope'?\n"
		   "c.yaml:5:61: unknown key 'rules' in relays[0].route.rules[2]\n");
	config_bad(RELAY("route: { rules: { event_type: a } }"),
		   "c.yaml:5:21: relays[0].route.rules expects a list, not a mapping; begin each "
		   "rule with '- '\n");
}
OB_TEST_END

OB_TEST(a_lane_needs_its_suffix)
{
	CONFIG off = config_good(RELAY("route: { backfill: { below: 5, suffix: '' } }"));

	ck_assert_ptr_null(off->relays[0].route.backfill.suffix);
	config_bad(RELAY("route: { backfill: { below: 5 } }"),
		   "c.yaml:5:24: relays[0].route.backfill needs 'suffix', such as \".backfill\"\n");
	config_bad(RELAY("route: { backfill: { below: -32769, suffix: x } }"),
		   "c.yaml:5:33: relays[0].route.backfill.below: '-32769' is not a number from "
		   "-32768 to 32767\n");
	config_bad(RELAY("route: { backfill: { below: '--5', suffix: x } }"),
		   "c.yaml:5:33: relays[0].route.backfill.below: '--5' is not a number from "
		   "-32768 to 32767\n");
}
OB_TEST_END

OB_TEST(a_binary_envelope_needs_a_binding)
{
	CONFIG c = config_good(STORE
			       "sinks: { out: { type: http } }\n"
			       "relays: [ { route: { envelope: cloudevents-binary } } ]\n");

	ck_assert_int_eq(c->relays[0].route.envelope, OB_ENVELOPE_CE_BINARY);
	config_bad(RELAY("route: { envelope: cloudevents-binary }"),
		   "c.yaml:5:24: relays[0].route.envelope: CloudEvents has no binary mode for a "
		   "sink of type 'stdout'; use cloudevents-structured\n");
	config_bad(RELAY("route: { rules: [ { event_type: a }, { event_type: b, envelope: "
			 "cloudevents-binary } ] }"),
		   "c.yaml:5:69: relays[0].route.rules[1].envelope: CloudEvents has no binary "
		   "mode for a sink of type 'stdout'; use cloudevents-structured\n");
	config_bad(RELAY("route: { envelope: cloudevents }"),
		   "c.yaml:5:24: relays[0].route.envelope: 'cloudevents' is not one of none, "
		   "cloudevents-binary, cloudevents-structured, debezium\n");
}
OB_TEST_END

OB_TEST(failures_are_read)
{
	CONFIG c =
		config_good(RELAY("failures:\n"
				  "      - { code: '404', then: reject }\n"
				  "      - { error: '*quota*', then: down }\n"
				  "      - { code: '5*', error: '*', then: retry }"));
	const struct ob_config_relay *r = &c->relays[0];

	ck_assert_uint_eq(r->failure_count, 3);
	ck_assert_str_eq(r->failures[0].code, "404");
	ck_assert_ptr_null(r->failures[0].error);
	ck_assert_int_eq(r->failures[0].then, OB_ERR_REJECT);
	ck_assert_str_eq(r->failures[1].error, "*quota*");
	ck_assert_int_eq(r->failures[1].then, OB_ERR_DOWN);
	ck_assert_int_eq(r->failures[2].then, OB_ERR_RETRY);
}
OB_TEST_END

OB_TEST(failures_are_checked)
{
	config_bad(RELAY("failures: [ { then: reject }, { error: '**', code: '*', then: down } ]"),
		   "c.yaml:5:17: relays[0].failures[0] matches every error: name a 'code' or a "
		   "part of the 'error'\n"
		   "c.yaml:5:35: relays[0].failures[1] matches every error: name a 'code' or a "
		   "part of the 'error'\n");
	config_bad(RELAY("failures: [ { code: '4' }, { cod: '4', then: dead } ]"),
		   "c.yaml:5:17: relays[0].failures[0] needs 'then'\n"
		   "c.yaml:5:32: relays[0].failures[1] matches every error: name a 'code' or a "
		   "part of the 'error'\n"
		   "c.yaml:5:34: unknown key 'cod' in relays[0].failures[1]; did you mean "
		   "'code'?\n"
		   "c.yaml:5:50: relays[0].failures[1].then: 'dead' is not one of retry, reject, "
		   "down\n");
	config_bad(RELAY("failures: { code: x }"),
		   "c.yaml:5:15: relays[0].failures expects a list, not a mapping; begin each rule "
		   "with '- '\n");
}
OB_TEST_END

OB_SUITE("config route", a_destination_names_fields_that_exist, a_route_has_its_defaults,
	 every_key_of_a_route_is_read, a_rule_has_from_the_route_what_it_does_not_name,
	 debezium_has_names_of_its_own, every_template_is_checked, headers_are_checked,
	 there_are_at_most_sixty_four_headers, rules_are_checked, a_lane_needs_its_suffix,
	 a_binary_envelope_needs_a_binding, failures_are_read, failures_are_checked)
