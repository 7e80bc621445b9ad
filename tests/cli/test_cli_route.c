/* SPDX-License-Identifier: MIT */
/* Routes and envelopes end to end: from SQLite to webhooks and files, by the program itself. */
#include "background.h"
#include "http_receiver.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_MS = 30000 };

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define ID    "01900000-0000-7000-8000-000000000001"

static const char order[] = "{\"id\":\"" ID
			    "\",\"aggregate_type\":\"order\",\"aggregate_id\":\"7 \xc3\xbc\","
			    "\"event_type\":\"OrderPlaced\",\"sequence_number\":3,\"occurred_at\":"
			    "\"2026-05-04T03:02:01Z\","
			    "\"headers\":{\"traceparent\":\"" TRACE
			    "\",\"tenant\":\"acme\"},\"payload\":{\"n\": 1.50}}\n";

static struct http_receiver *receiver;

static void push_lines(const char *lines)
{
	expect_in(lines, 0, NULL, "", "--store", "sqlite:x.db", "push", NULL);
}

static void prepare_sink(const char *sink, const char *relay)
{
	char yaml[2048];

	(void)snprintf(yaml, sizeof(yaml),
		       "stores: { main: { url: 'sqlite:x.db' } }\n"
		       "sinks: { out: %s }\nrelays:\n  - name: default\n%s",
		       sink, relay);
	prepare(yaml);
}

/* A configuration with a receiver; `relay` are lines of the relay. */
static void prepare_http(const char *relay)
{
	char sink[128];

	receiver = http_receiver_new();
	(void)snprintf(sink, sizeof(sink),
		       "{ type: http, url: 'http://127.0.0.1:%d/', allow_private: true }",
		       http_receiver_port(receiver));
	prepare_sink(sink, relay);
}

static void prepare_file(const char *relay)
{
	prepare_sink("{ type: file, path: out.ndjson }", relay);
}

static void finish(void)
{
	if (receiver)
		http_receiver_free(receiver);
	receiver = NULL;
	end();
}

/* The only request after the order was sent. */
static struct http_request_seen deliver(void)
{
	push_lines(order);
	expect(0, "default: 1 published, 0 failed, 0 dead\n", "", "work", "--once", NULL);
	ck_assert_uint_eq(http_receiver_count(receiver), 1);
	return http_receiver_get(receiver, 0);
}

static void has(const struct http_request_seen *seen, const char *name, const char *value)
{
	size_t size;
	char *found = http_header(seen, name, &size);

	ck_assert_msg(!found == !value, "%s: %s", name, found ? found : "none");
	if (value)
		ck_assert_str_eq(found, value);
	free(found);
}

static void is_text(const json_t *object, const char *name, const char *value)
{
	const char *found = json_string_value(json_object_get(object, name));

	ck_assert_str_eq(found ? found : "(none)", value);
}

/* The line of that number in out.ndjson; the caller frees it. */
static json_t *line(size_t number)
{
	char *text = read_file(path_of("out.ndjson"));
	const char *at = text;
	json_t *object;

	for (; number > 0; number--)
		at = strchr(at, '\n') + 1;
	object = json_loadb(at, strcspn(at, "\n"), 0, NULL);
	ck_assert_msg(object != NULL, "%s", text);
	free(text);
	return object;
}

/* ---- webhooks -------------------------------------------------------- */

OB_TEST(a_webhook_goes_where_the_route_says)
{
	prepare_http(
		"    route:\n"
		"      destination: 'shop.{aggregate_type}'\n"
		"      key: '{headers.tenant|none}'\n"
		"      headers: { kind: '{event_type}', gone: '{correlation_id}' }\n"
		"      rules:\n"
		"        - { event_type: 'Order*', destination: 'orders.{event_type}' }\n");
	struct http_request_seen seen = deliver();

	has(&seen, "outbox-destination", "orders.OrderPlaced");
	has(&seen, "outbox-key", "acme");
	has(&seen, "outbox-header-kind", "OrderPlaced");
	has(&seen, "outbox-header-tenant", "acme");
	has(&seen, "outbox-header-gone", NULL);
	has(&seen, "outbox-headers", NULL);
	has(&seen, "traceparent", TRACE);
	ck_assert_str_eq(seen.body, "{\"n\": 1.50}");
	finish();
}
OB_TEST_END

OB_TEST(trace_context_is_passed_on_without_any_route)
{
	prepare_http("");
	struct http_request_seen seen = deliver();

	has(&seen, "traceparent", TRACE);
	has(&seen, "outbox-header-tenant", "acme");
	has(&seen, "content-type", "application/json");
	finish();
}
OB_TEST_END

OB_TEST(a_binary_event_over_http)
{
	prepare_http("    route: { envelope: cloudevents-binary, source: '/shop a' }\n");
	struct http_request_seen seen = deliver();

	has(&seen, "ce-specversion", "1.0");
	has(&seen, "ce-id", ID);
	has(&seen, "ce-type", "OrderPlaced");
	/* A URI has its own encoding, and the header another around it. */
	has(&seen, "ce-source", "/shop%20a");
	has(&seen, "ce-subject", "7 \xc3\xbc");
	ck_assert_ptr_nonnull(strstr(seen.head, "ce-subject: 7%20%C3%BC\r\n"));
	has(&seen, "ce-time", "2026-05-04T03:02:01.000000Z");
	has(&seen, "ce-sequence", "0000000000000000003");
	has(&seen, "ce-traceparent", TRACE);
	has(&seen, "traceparent", TRACE);
	has(&seen, "ce-datacontenttype", NULL);
	has(&seen, "content-type", "application/json");
	ck_assert_str_eq(seen.body, "{\"n\": 1.50}");
	finish();
}
OB_TEST_END

OB_TEST(a_structured_event_over_http)
{
	prepare_http("    route: { envelope: cloudevents-structured }\n");
	struct http_request_seen seen = deliver();
	json_t *event = json_loads(seen.body, JSON_REJECT_DUPLICATES, NULL);

	ck_assert_msg(event != NULL, "%s", seen.body);
	has(&seen, "content-type", "application/cloudevents+json");
	has(&seen, "ce-id", NULL);
	has(&seen, "traceparent", TRACE);
	is_text(event, "id", ID);
	is_text(event, "source", "/outbox/default/order");
	is_text(event, "subject", "7 \xc3\xbc");
	is_text(event, "datacontenttype", "application/json");
	ck_assert_ptr_nonnull(strstr(seen.body, "\"data\":{\"n\": 1.50}"));
	json_decref(event);
	finish();
}
OB_TEST_END

OB_TEST(debezium_over_http)
{
	prepare_http("    route: { envelope: debezium }\n");
	struct http_request_seen seen = deliver();

	has(&seen, "outbox-destination", "outbox.event.order");
	has(&seen, "outbox-key", "7 \xc3\xbc");
	has(&seen, "outbox-header-id", ID);
	has(&seen, "traceparent", TRACE);
	ck_assert_str_eq(seen.body, "{\"n\": 1.50}");
	finish();
}
OB_TEST_END

OB_TEST(a_rule_on_failures_gives_a_message_up)
{
	prepare_http("    failures: [ { code: '404', then: reject } ]\n");
	http_receiver_answer(receiver, &(struct http_answer){ .status = 404 });
	push_lines(order);
	struct ob_run run = outbox(NULL, "work", "--once", NULL);
	ck_assert_msg(strstr(run.out, "0 published, 0 failed, 1 dead"), "%s%s", run.out, run.err);
	ob_run_done(&run);
	finish();
}
OB_TEST_END

/* ---- files ----------------------------------------------------------- */

OB_TEST(lanes_and_envelopes_in_a_file)
{
	json_t *object;

	prepare_file(
		"    route:\n"
		"      backfill: { below: 0, suffix: .slow }\n"
		"      rules:\n"
		"        - { event_type: Wrapped, envelope: cloudevents-structured }\n");
	push_lines(
		"{\"aggregate_type\":\"a\",\"event_type\":\"Plain\",\"priority\":-1,\"payload\":1}"
		"\n"
		"{\"aggregate_type\":\"a\",\"event_type\":\"Wrapped\",\"payload\":{\"n\":2},"
		"\"headers\":{\"deep\":{\"x\":[1]}}}\n");
	expect(0, "default: 2 published, 0 failed, 0 dead\n", "", "work", "--once", NULL);
	ck_assert_uint_eq(line_count("out.ndjson"), 2);
	for (size_t i = 0; i < 2; i++) {
		object = line(i);
		if (json_is_integer(json_object_get(object, "payload"))) {
			is_text(object, "destination", "a.slow");
			ck_assert_ptr_null(json_object_get(object, "content_type"));
		} else {
			json_t *event = json_object_get(object, "payload");

			is_text(object, "destination", "a");
			is_text(object, "content_type", "application/cloudevents+json");
			is_text(event, "type", "Wrapped");
			ck_assert_ptr_nonnull(json_object_get(json_object_get(event, "data"), "n"));
			/* as stored: the sink has no headers of its own */
			ck_assert(json_is_object(
				json_object_get(json_object_get(object, "headers"), "deep")));
		}
		json_decref(object);
	}
	finish();
}
OB_TEST_END

OB_TEST(a_message_that_cannot_be_routed_is_dead_with_the_reason)
{
	prepare_file("    route: { destination: 'x.{correlation_id}' }\n");
	push_lines("{\"aggregate_type\":\"a\",\"event_type\":\"E\",\"payload\":1}\n");
	struct ob_run run = outbox(NULL, "work", "--once", NULL);
	ck_assert_msg(strstr(run.out, "0 published, 0 failed, 1 dead"), "%s%s", run.out, run.err);
	ob_run_done(&run);
	expect_in_output(
		"the message has no correlation_id, which the route's destination needs; "
		"write {correlation_id|...} for a default",
		"--store", "sqlite:x.db", "list", "dead", "--json", NULL);
	finish();
}
OB_TEST_END

OB_TEST(a_reload_takes_a_new_route_over)
{
	static const char head[] =
		"stores: { main: { url: 'sqlite:x.db' } }\n"
		"sinks: { out: { type: file, path: out.ndjson } }\n"
		"relays: [ { route: { headers: { v: '";
	struct background worker;
	char yaml[512];
	json_t *object;

	(void)snprintf(yaml, sizeof(yaml), "%s1' } } } ]\n", head);
	prepare(yaml);
	start(&worker, "work", NULL);
	push_lines("{\"aggregate_type\":\"a\",\"event_type\":\"E\",\"payload\":1}\n");
	wait_lines("out.ndjson", 1, LONG_MS);
	(void)snprintf(yaml, sizeof(yaml), "%s2' } } } ]\n", head);
	put_file("outbox.yaml", yaml);
	ck_assert_int_eq(kill(worker.pid, SIGHUP), 0);
	/* From then on only the new one delivers. */
	wait_text(worker.err, "msg=\"relay stopped\"", LONG_MS);
	push_lines("{\"aggregate_type\":\"a\",\"event_type\":\"E\",\"payload\":2}\n");
	wait_lines("out.ndjson", 2, LONG_MS);
	stop(&worker, 0);
	object = line(0);
	is_text(json_object_get(object, "headers"), "v", "1");
	json_decref(object);
	object = line(1);
	is_text(json_object_get(object, "headers"), "v", "2");
	json_decref(object);
	finish();
}
OB_TEST_END

OB_TEST(the_check_finds_what_is_wrong_with_a_route)
{
	prepare_file(
		"    route:\n"
		"      destination: 'a.{evnt_type}'\n"
		"      envelope: cloudevents-binary\n"
		"    failures: [ { then: reject } ]\n");
	expect(1, NULL,
	       "outbox.yaml:6:20: relays[0].route.destination: no field '{evnt_type}'; did you "
	       "mean '{event_type}'?\n"
	       "outbox.yaml:7:17: relays[0].route.envelope: CloudEvents has no binary mode for a "
	       "sink of type 'file'; use cloudevents-structured\n"
	       "outbox.yaml:8:17: relays[0].failures[0] matches every error: name a 'code' or a "
	       "part of the 'error'\n",
	       "config", "check", NULL);
	finish();
}
OB_TEST_END

OB_TEST(the_check_refuses_binary_events_in_batches)
{
	prepare_sink("{ type: http, url: 'https://example.com/', batch: 10 }",
		     "    route: { envelope: cloudevents-binary }\n");
	expect(1, "",
	       "outbox.yaml:5:24: relays[0].route.envelope: CloudEvents has no binary mode for a "
	       "batch; use cloudevents-structured, or set batch to 1\n",
	       "config", "check", NULL);
	finish();
}
OB_TEST_END

OB_SUITE("cli route", a_webhook_goes_where_the_route_says,
	 trace_context_is_passed_on_without_any_route, a_binary_event_over_http,
	 a_structured_event_over_http, debezium_over_http, a_rule_on_failures_gives_a_message_up,
	 lanes_and_envelopes_in_a_file, a_message_that_cannot_be_routed_is_dead_with_the_reason,
	 a_reload_takes_a_new_route_over, the_check_finds_what_is_wrong_with_a_route,
	 the_check_refuses_binary_events_in_batches)
