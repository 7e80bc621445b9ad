/* SPDX-License-Identifier: MIT */
/* What RabbitMQ stores, sends back, refuses and closes the channel over. */
#include "sink_rabbitmq_fixture.h"

#include "run.h"

#include <stdlib.h>

static struct row row;
static amqp_connection_state_t client;

/* Every test has queues of its own, so that none sees another's messages. */
static void begin(const char *queue)
{
	client = rabbitmq_connect(&server);
	if (queue)
		rabbitmq_queue(client, queue, 0);
}

static void end(struct ob_sink *sink)
{
	ob_sink_free(sink);
	rabbitmq_disconnect(client);
}

static struct ob_sink *open_sink(void)
{
	struct ob_sink *sink = make_sink(url_of(""), NULL);

	must_open(sink);
	return sink;
}

static struct ob_err deliver_one(struct ob_sink *sink, const char *destination)
{
	row_init(&row, 1, NULL, destination);
	row_deliver(sink, &row);
	return row.acks[0].err;
}

static void expect_text(struct ob_err err, enum ob_err_kind kind, const char *text)
{
	ck_assert_msg(err.kind == kind, "%d: %s", err.kind, err.msg);
	ck_assert_msg(strstr(err.msg, text) != NULL, "%s", err.msg);
}

/* ---- content --------------------------------------------------------- */

static void expect_bytes(amqp_bytes_t bytes, const char *text)
{
	ck_assert_msg(bytes.len == strlen(text) && memcmp(bytes.bytes, text, bytes.len) == 0,
		      "'%.*s', not '%s'", (int)bytes.len, (const char *)bytes.bytes, text);
}

static const amqp_field_value_t *header(const amqp_message_t *message, const char *name)
{
	const amqp_table_t *table = &message->properties.headers;

	for (int i = 0; i < table->num_entries; i++) {
		if (table->entries[i].key.len == strlen(name) &&
		    memcmp(table->entries[i].key.bytes, name, strlen(name)) == 0)
			return &table->entries[i].value;
	}
	return NULL;
}

static void expect_header(const amqp_message_t *message, const char *name, const char *value)
{
	const amqp_field_value_t *found = header(message, name);

	ck_assert_msg(found != NULL, "no header %s", name);
	expect_bytes(found->value.bytes, value);
}

static void take(const char *queue, amqp_message_t *message)
{
	char key[256];
	size_t size;

	ck_assert(rabbitmq_get(client, queue, message, key, &size));
	ck_assert_str_eq(key, queue);
}

OB_TEST(every_property_has_its_place)
{
	struct tally tally = { 0 };
	struct parcel parcel;
	amqp_message_t got;

	begin("properties");
	struct ob_sink *sink = open_sink();
	parcel_init(&parcel, 5, OB_STR("order:1042"), OB_STR("{\"n\":1}"));
	parcel.delivery.destination = OB_STR("properties");
	parcel.message.sequence_number = 7;
	parcel.message.correlation_id = OB_STR("c");
	parcel.message.causation_id = OB_STR("d");
	parcel.message.headers = OB_STR("{\"tenant\":\"a\",\"n\":3,\"x\":0.5,\"no\":null}");
	sink_push(sink, &parcel.delivery, &tally);
	sink_drain(sink, &tally, 1);
	take("properties", &got);
	expect_bytes(got.body, "{\"n\":1}");
	expect_bytes(got.properties.message_id, "01900000-0000-7000-8000-000000000005");
	expect_bytes(got.properties.type, "OrderPlaced");
	expect_bytes(got.properties.correlation_id, "c");
	expect_bytes(got.properties.content_type, "application/json");
	ck_assert_uint_eq(got.properties.timestamp, 1700000000);
	ck_assert_uint_eq(got.properties.delivery_mode, AMQP_DELIVERY_PERSISTENT);
	expect_header(&got, "outbox-key", "order:1042");
	expect_header(&got, "outbox-aggregate-type", "order");
	expect_header(&got, "outbox-aggregate-id", "1042");
	expect_header(&got, "outbox-causation-id", "d");
	expect_header(&got, "outbox-occurred-at", "2023-11-14T22:13:20.123456Z");
	ck_assert_int_eq(header(&got, "outbox-revision")->value.i64, 1);
	ck_assert_int_eq(header(&got, "outbox-sequence-number")->value.i64, 7);
	expect_header(&got, "tenant", "a");
	ck_assert_int_eq(header(&got, "n")->value.i64, 3);
	ck_assert(header(&got, "x")->value.f64 > 0.4 && header(&got, "x")->value.f64 < 0.6);
	ck_assert_int_eq(header(&got, "no")->kind, AMQP_FIELD_KIND_VOID);
	ck_assert_int_eq(got.properties.headers.num_entries, 11);
	amqp_destroy_message(&got);
	end(sink);
}
OB_TEST_END

/* As a route hands them over: one by one, and each knows what it was. */
OB_TEST(headers_of_a_route_keep_their_types_and_copies_go_out)
{
	const struct ob_header headers[] = {
		{ OB_STR("n"), OB_STR("3"), true },
		{ OB_STR("yes"), OB_STR("true"), true },
		{ OB_STR("text"), OB_STR("3"), false },
		{ OB_STR("CC"), OB_STR("[\"typed-copy\"]"), true },
		{ OB_STR("tenant"), OB_STR("acme"), false },
	};
	struct tally tally = { 0 };
	struct parcel parcel;
	amqp_message_t got;

	begin("typed");
	rabbitmq_queue(client, "typed-copy", 0);
	struct ob_sink *sink = open_sink();
	parcel_init(&parcel, 5, OB_STR("k"), OB_STR("{}"));
	parcel.delivery.destination = OB_STR("typed");
	parcel.delivery.headers = headers;
	parcel.delivery.header_count = sizeof(headers) / sizeof(headers[0]);
	sink_push(sink, &parcel.delivery, &tally);
	sink_drain(sink, &tally, 1);
	ck_assert_msg(tally.confirmed == 1, "%s", tally.last.msg);
	ck_assert_uint_eq(rabbitmq_count(client, "typed-copy"), 1);
	take("typed", &got);
	ck_assert_int_eq(header(&got, "n")->kind, AMQP_FIELD_KIND_I64);
	ck_assert_int_eq(header(&got, "n")->value.i64, 3);
	ck_assert_int_eq(header(&got, "yes")->kind, AMQP_FIELD_KIND_BOOLEAN);
	expect_header(&got, "text", "3");
	expect_header(&got, "tenant", "acme");
	amqp_destroy_message(&got);
	end(sink);
}
OB_TEST_END

OB_TEST(a_number_beyond_64_bits_is_text_and_costs_no_other_header)
{
	struct tally tally = { 0 };
	struct parcel parcel;
	amqp_message_t got;

	begin("huge");
	struct ob_sink *sink = open_sink();
	parcel_init(&parcel, 5, OB_STR("k"), OB_STR("{}"));
	parcel.delivery.destination = OB_STR("huge");
	parcel.message.headers =
		OB_STR("{\"big\":123456789012345678901234567890,\"traceparent\":\"00-a\\u0062\","
		       "\"n\":1,\"in\":[1e999],\"n\":2}");
	sink_push(sink, &parcel.delivery, &tally);
	sink_drain(sink, &tally, 1);
	take("huge", &got);
	expect_header(&got, "big", "123456789012345678901234567890");
	expect_header(&got, "in", "[1e999]");
	expect_header(&got, "traceparent", "00-ab");
	ck_assert_int_eq(header(&got, "n")->value.i64, 2);
	ck_assert_ptr_null(header(&got, "outbox-headers"));
	amqp_destroy_message(&got);
	end(sink);
}
OB_TEST_END

static void check_priority(struct ob_sink *sink, int32_t priority, int expected)
{
	struct tally tally = { 0 };
	struct parcel parcel;
	amqp_message_t got;

	parcel_init(&parcel, 5, OB_STR("k"), OB_STR("{}"));
	parcel.delivery.destination = OB_STR("priority");
	parcel.message.priority = priority;
	sink_push(sink, &parcel.delivery, &tally);
	sink_drain(sink, &tally, 1);
	take("priority", &got);
	if (expected < 0)
		ck_assert_uint_eq(got.properties._flags & AMQP_BASIC_PRIORITY_FLAG, 0);
	else
		ck_assert_int_eq(got.properties.priority, expected);
	amqp_destroy_message(&got);
}

OB_TEST(a_priority_goes_out_when_the_option_says_how_many_there_are)
{
	begin("priority");
	struct ob_sink *sink = open_sink();
	check_priority(sink, 7, -1);
	ob_sink_free(sink);
	sink = make_sink(url_of(""), "max_priority", "9", NULL);
	must_open(sink);
	check_priority(sink, 7, 7);
	check_priority(sink, 20, 9);
	check_priority(sink, -3, 0);
	end(sink);
}
OB_TEST_END

OB_TEST(what_a_property_cannot_hold_is_a_header)
{
	char long_text[301];
	struct tally tally = { 0 };
	struct parcel parcel;
	amqp_message_t got;

	begin("long");
	struct ob_sink *sink = open_sink();
	memset(long_text, 'x', 300);
	long_text[300] = '\0';
	parcel_init(&parcel, 5, OB_STR_NULL, OB_STR_NULL);
	parcel.delivery.destination = OB_STR("long");
	parcel.message.event_type = ob_str(long_text);
	parcel.message.correlation_id = ob_str(long_text);
	parcel.message.headers = OB_STR("[1]"); /* no object: as it is */
	sink_push(sink, &parcel.delivery, &tally);
	sink_drain(sink, &tally, 1);
	take("long", &got);
	expect_header(&got, "outbox-event-type", long_text);
	expect_header(&got, "outbox-correlation-id", long_text);
	expect_header(&got, "outbox-headers", "[1]");
	ck_assert(header(&got, "outbox-tombstone")->value.boolean);
	ck_assert_uint_eq(got.properties._flags &
				  (AMQP_BASIC_TYPE_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG |
				   AMQP_BASIC_CONTENT_TYPE_FLAG),
			  0);
	amqp_destroy_message(&got);
	end(sink);
}
OB_TEST_END

OB_TEST(another_client_reads_what_was_sent)
{
	char url[64];
	const char *argv[] = { "/usr/bin/amqp-get", "--url", url, "--queue=foreign", NULL };
	struct ob_run run = { .argv = argv };

	begin("foreign");
	struct ob_sink *sink = open_sink();
	if (access(argv[0], X_OK) < 0) {
		(void)printf("# SKIP amqp-get is not installed\n");
		end(sink);
		return;
	}
	(void)snprintf(url, sizeof(url), "amqp://127.0.0.1:%d", server.port);
	ck_assert_int_eq(deliver_one(sink, "foreign").kind, OB_ERR_NONE);
	ob_run(&run);
	ck_assert_msg(run.code == 0, "%s", run.err);
	ck_assert_str_eq(run.out, "0");
	ob_run_done(&run);
	end(sink);
}
OB_TEST_END

static void expect_rejected(struct ob_sink *sink, const struct parcel *parcel, const char *text)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_lt(ob_sink_send(sink, &parcel->delivery, &err), 0);
	expect_text(err, OB_ERR_REJECT, text);
}

OB_TEST(what_no_broker_would_take_is_rejected_at_once)
{
	static char large[200000];
	struct parcel parcel;
	struct ob_header header = { OB_STR("CC"), OB_STR("a"), false };

	begin("small");
	struct ob_sink *sink = open_sink();
	memset(large, 'x', sizeof(large));
	parcel_init(&parcel, 1, OB_STR_NULL, OB_STR("{}"));
	parcel.delivery.destination = OB_STR("");
	expect_rejected(sink, &parcel, "the destination is empty");
	parcel.delivery.destination = (struct ob_str){ large, 256 };
	expect_rejected(sink, &parcel, "the routing key has 256 bytes");
	parcel.delivery.destination = OB_STR("small");
	parcel.delivery.headers = &header;
	parcel.delivery.header_count = 1;
	expect_rejected(sink, &parcel, "the header CC must be a list of routing keys");
	header = (struct ob_header){ { large, 256 }, OB_STR("a"), false };
	expect_rejected(sink, &parcel, "has a name of 256 bytes");
	header = (struct ob_header){ OB_STR("h"), { large, sizeof(large) }, false };
	expect_rejected(sink, &parcel, "do not fit into a frame of 131072 bytes");
	parcel.delivery.header_count = 0;
	memset(large, '[', 33);
	memset(large + 33, ']', 33);
	char deep[80];
	(void)snprintf(deep, sizeof(deep), "{\"d\":%.66s}", large);
	parcel.message.headers = ob_str(deep);
	expect_rejected(sink, &parcel, "nested deeper than 32");
	parcel.message.headers = OB_STR_NULL;
	parcel.delivery.body = (struct ob_str){ "", (size_t)81 << 20 };
	expect_rejected(sink, &parcel, "too large for rabbitmq (at most 80 MB)");
	/* nothing of these has gone out */
	ck_assert_int_eq(deliver_one(sink, "small").kind, OB_ERR_NONE);
	ck_assert_uint_eq(rabbitmq_count(client, "small"), 1);
	end(sink);
}
OB_TEST_END

/* ---- messages that come back ----------------------------------------- */

OB_TEST(a_message_without_a_queue_fails_and_never_counts_as_stored)
{
	begin(NULL);
	struct ob_sink *sink = open_sink();
	struct ob_err err = deliver_one(sink, "nobody-made-it");
	expect_text(err, OB_ERR_RETRY, "routing key 'nobody-made-it': the message came back");
	ck_assert_str_eq(err.native, "312");
	/* the same when the queue goes while the sink is in use, and comes again */
	rabbitmq_queue(client, "comes-and-goes", 0);
	ck_assert_int_eq(deliver_one(sink, "comes-and-goes").kind, OB_ERR_NONE);
	rabbitmq_delete_queue(client, "comes-and-goes");
	expect_text(deliver_one(sink, "comes-and-goes"), OB_ERR_RETRY, "312");
	rabbitmq_queue(client, "comes-and-goes", 0);
	ck_assert_int_eq(deliver_one(sink, "comes-and-goes").kind, OB_ERR_NONE);
	ob_sink_free(sink);
	sink = make_sink(url_of(""), "unroutable", "reject", NULL);
	must_open(sink);
	expect_text(deliver_one(sink, "nobody-made-it"), OB_ERR_REJECT, "312");
	end(sink);
}
OB_TEST_END

OB_TEST(only_the_ones_without_a_queue_fail)
{
	begin("routed");
	struct ob_sink *sink = open_sink();
	row_init(&row, 300, NULL, "routed");
	for (size_t i = 0; i < row.count; i += 3)
		row.parcels[i].delivery.destination = OB_STR("not-routed");
	row_deliver(sink, &row);
	for (size_t i = 0; i < row.count; i++)
		ck_assert_int_eq(row.acks[i].err.kind, i % 3 ? OB_ERR_NONE : OB_ERR_RETRY);
	ck_assert_uint_eq(rabbitmq_count(client, "routed"), 200);
	end(sink);
}
OB_TEST_END

/* What comes back is as large as what went: both ways must move at once. */
OB_TEST(many_large_messages_may_come_back)
{
	size_t size = 256 << 10;
	char *large = malloc(size);

	begin(NULL);
	struct ob_sink *sink = open_sink();
	memset(large, 'x', size);
	for (int i = 0; i < 2; i++) {
		struct tally tally = { 0 };

		row_init(&row, 200, NULL, "nobody-made-it");
		for (size_t k = 0; k < row.count; k++) {
			row.parcels[k].delivery.body = (struct ob_str){ large, size };
			sink_push(sink, &row.parcels[k].delivery, &tally);
		}
		sink_drain(sink, &tally, row.count);
		ck_assert_uint_eq(tally.failed, row.count);
		ck_assert_str_eq(tally.last.native, "312");
	}
	free(large);
	end(sink);
}
OB_TEST_END

OB_TEST(a_full_queue_refuses_its_messages_alone)
{
	begin("has-room");
	rabbitmq_queue(client, "full", 2);
	struct ob_sink *sink = open_sink();
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(deliver_one(sink, "full").kind, OB_ERR_NONE);
	/* the broker's own count of a queue is not exact */
	struct ob_err err = OB_ERR_INIT;
	for (int i = 0; i < 100 && err.kind == OB_ERR_NONE; i++)
		err = deliver_one(sink, "full");
	expect_text(err, OB_ERR_RETRY, "basic.nack");
	ck_assert_int_eq(deliver_one(sink, "has-room").kind, OB_ERR_NONE);
	end(sink);
}
OB_TEST_END

/* ---- the broker closes the channel ----------------------------------- */

OB_TEST(an_exchange_of_all_that_is_not_there_is_an_outage)
{
	begin(NULL);
	struct ob_sink *sink = make_sink(url_of(""), "exchange", "later", NULL);
	must_open(sink);
	row_init(&row, 20, NULL, "k");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_DOWN), 20);
	expect_text(row.acks[0].err, OB_ERR_DOWN, "no exchange 'later'");
	rabbitmq_exchange(client, "later", "direct");
	rabbitmq_queue(client, "later-queue", 0);
	rabbitmq_bind(client, "later-queue", "later", "k");
	must_open(sink);
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 20);
	end(sink);
}
OB_TEST_END

OB_TEST(an_exchange_of_one_message_that_is_not_there_is_that_messages_failure)
{
	struct ob_err err = OB_ERR_INIT;

	begin("mine");
	struct ob_sink *sink = make_sink(url_of(""), "exchange_per_message", "true", NULL);
	must_open(sink);
	row_init(&row, 9, NULL, "/mine");
	row.parcels[4].delivery.destination = OB_STR("nope/mine");
	row_deliver(sink, &row);
	expect_text(row.acks[4].err, OB_ERR_RETRY, "no exchange 'nope'");
	for (size_t i = 0; i < row.count; i++)
		ck_assert_int_ne(i == 4 ? OB_ERR_NONE : row.acks[i].err.kind, OB_ERR_RETRY);
	must_open(sink);
	/* alone it disturbs no one: the next send makes a new connection */
	expect_text(deliver_one(sink, "nope/mine"), OB_ERR_RETRY, "no exchange 'nope'");
	ck_assert_int_eq(deliver_one(sink, "/mine").kind, OB_ERR_NONE);
	row_init(&row, 1, NULL, "mine");
	ck_assert_int_lt(ob_sink_send(sink, &row.parcels[0].delivery, &err), 0);
	expect_text(err, OB_ERR_REJECT, "names no exchange");
	end(sink);
}
OB_TEST_END

OB_TEST(rights_that_are_lacking_are_never_a_messages_end)
{
	begin("rights");
	rabbitmq_exchange(client, "open.here", "fanout");
	rabbitmq_bind(client, "rights", "open.here", "");
	rabbitmq_bind(client, "rights", "amq.topic", "#");
	struct ob_sink *sink = make_sink(url_of("limited:secret@"), "exchange", "amq.fanout", NULL);
	must_open(sink);
	expect_text(deliver_one(sink, "k"), OB_ERR_DOWN, "403");
	ob_sink_free(sink);
	/* a topic that it may not write is the message's */
	sink = make_sink(url_of("limited:secret@"), "exchange", "amq.topic", NULL);
	must_open(sink);
	ck_assert_int_eq(deliver_one(sink, "open.key").kind, OB_ERR_NONE);
	expect_text(deliver_one(sink, "closed.key"), OB_ERR_RETRY, "topic 'closed.key'");
	ck_assert_int_eq(deliver_one(sink, "open.key").kind, OB_ERR_NONE);
	ob_sink_free(sink);
	sink = make_sink(url_of("limited:secret@"), "exchange_per_message", "true", NULL);
	must_open(sink);
	ck_assert_int_eq(deliver_one(sink, "open.here/k").kind, OB_ERR_NONE);
	expect_text(deliver_one(sink, "amq.fanout/k"), OB_ERR_RETRY, "exchange 'amq.fanout'");
	end(sink);
}
OB_TEST_END

OB_TEST(a_message_beyond_the_brokers_limit_is_rejected_and_the_rest_goes_on)
{
	size_t size = RABBITMQ_MESSAGE_MAX + 1;
	char *large = malloc(size);

	begin("limit");
	struct ob_sink *sink = open_sink();
	memset(large, 'x', size);
	row_init(&row, 3, NULL, "limit");
	row.parcels[2].delivery.body = (struct ob_str){ large, size };
	row_deliver(sink, &row);
	expect_text(row.acks[2].err, OB_ERR_REJECT, "larger than configured max size");
	ck_assert_int_ne(row.acks[0].err.kind, OB_ERR_REJECT);
	ck_assert_int_ne(row.acks[1].err.kind, OB_ERR_REJECT);
	must_open(sink);
	/* once is enough to know */
	expect_rejected(sink, &row.parcels[2], "max_message_size of 20971520");
	row_init(&row, 2, NULL, "limit");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 2);
	free(large);
	end(sink);
}
OB_TEST_END

RABBITMQ_SUITE("rabbitmq sink", every_property_has_its_place,
	       headers_of_a_route_keep_their_types_and_copies_go_out,
	       a_number_beyond_64_bits_is_text_and_costs_no_other_header,
	       a_priority_goes_out_when_the_option_says_how_many_there_are,
	       what_a_property_cannot_hold_is_a_header, another_client_reads_what_was_sent,
	       what_no_broker_would_take_is_rejected_at_once,
	       a_message_without_a_queue_fails_and_never_counts_as_stored,
	       only_the_ones_without_a_queue_fail, many_large_messages_may_come_back,
	       a_full_queue_refuses_its_messages_alone,
	       an_exchange_of_all_that_is_not_there_is_an_outage,
	       an_exchange_of_one_message_that_is_not_there_is_that_messages_failure,
	       rights_that_are_lacking_are_never_a_messages_end,
	       a_message_beyond_the_brokers_limit_is_rejected_and_the_rest_goes_on)
