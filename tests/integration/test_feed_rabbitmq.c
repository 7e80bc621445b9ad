/* SPDX-License-Identifier: MIT */
/* The RabbitMQ source: what queues do to messages, and to those who read them. */
#include "base/cleanup.h"
#include "feed/backends.h"
#include "feed_limits.h"
#include "sink_rabbitmq_fixture.h"

#include <stdlib.h>

enum { WAIT_MS = 200, TRIES = 150, COUNT_MAX = 200 };

static struct row row;
static amqp_connection_state_t client;
static struct ob_feed_batch batch;

static void begin(void)
{
	client = rabbitmq_connect(&server);
	batch = OB_FEED_BATCH_INIT;
}

static void end(void)
{
	ob_feed_batch_done(&batch);
	rabbitmq_disconnect(client);
}

static struct ob_feed *make_as(const char *user, const char *queue, const char *name,
			       const char *value)
{
	const struct ob_opt_value options[] = { { "url", url_of(user) },
						{ "queue", queue },
						{ name, value } };
	const struct ob_feed_conf conf = { .ops = &ob_feed_rabbitmq,
					   .options = options,
					   .option_count = name ? 3 : 2,
					   .group = "billing",
					   .member = "outbox",
					   .sole = true };
	struct ob_feed *feed = NULL;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_feed_new(&conf, &ob_clock_system, &feed, &err) == 0, "%s", err.msg);
	return feed;
}

static struct ob_feed *make(const char *queue)
{
	return make_as("", queue, NULL, NULL);
}

static void must_open_feed(struct ob_feed *feed)
{
	struct ob_err err = OB_ERR_INIT;
	int r = -1;

	/* The broker may take a moment to see that another connection is gone. */
	for (int i = 0; i < TRIES && r < 0; i++) {
		r = ob_feed_open(feed, &err);
		if (r < 0 && !strstr(err.msg, "another consumer"))
			break;
	}
	ck_assert_msg(r == 0, "%s", err.msg);
}

static void expect_down(struct ob_feed *feed, const char *text)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_lt(ob_feed_open(feed, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_msg(strstr(err.msg, text) != NULL, "%s", err.msg);
}

/* Poll until that fails as DOWN, with this text. */
static void poll_until_down(struct ob_feed *feed, const char *text)
{
	struct ob_err err = OB_ERR_INIT;
	int r = 0;

	for (int i = 0; i < TRIES && r == 0; i++)
		r = ob_feed_poll(feed, WAIT_MS, 10, &batch, &err);
	ck_assert_int_lt(r, 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_msg(strstr(err.msg, text) != NULL, "%s", err.msg);
}

static const struct ob_feed_entry *read_one(struct ob_feed *feed)
{
	struct ob_err err = OB_ERR_INIT;

	for (int i = 0; i < TRIES; i++) {
		ck_assert_msg(ob_feed_poll(feed, WAIT_MS, 1, &batch, &err) == 0, "%s", err.msg);
		if (batch.count > 0)
			return &batch.entries[0];
	}
	ck_abort_msg("no message comes");
	return NULL;
}

static void ack(struct ob_feed *feed, uint64_t tag)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_feed_ack(feed, &tag, 1, &err) == 0, "%s", err.msg);
}

static void ack_one(struct ob_feed *feed)
{
	ack(feed, read_one(feed)->tag);
}

/* Numbers from 0 on, all of one key, into a queue. */
static void store(const char *queue, size_t count)
{
	struct ob_sink *sink = make_sink(url_of(""), NULL);

	must_open(sink);
	row_init(&row, count, NULL, queue);
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), count);
	ob_sink_free(sink);
}

static unsigned number_of(const struct ob_feed_entry *e)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%.*s", (int)e->message.payload.n, e->message.payload.p);
	return (unsigned)strtoul(text, NULL, 10);
}

static void publish(const char *queue, const char *id, struct ob_str body)
{
	amqp_basic_properties_t properties = { ._flags = 0 };

	if (id) {
		properties._flags = AMQP_BASIC_MESSAGE_ID_FLAG;
		properties.message_id = amqp_cstring_bytes(id);
	}
	ck_assert_int_eq(amqp_basic_publish(client, 1, amqp_cstring_bytes(""),
					    amqp_cstring_bytes(queue), 0, 0, &properties,
					    (amqp_bytes_t){ body.n, (char *)(uintptr_t)body.p }),
			 AMQP_STATUS_OK);
}

/* A quorum queue with further arguments: name, a number, or an exchange. */
static void declare_quorum(const char *name, int limit, const char *exchange)
{
	amqp_table_entry_t entries[] = {
		{ .key = amqp_cstring_bytes("x-queue-type"),
		  .value = { .kind = AMQP_FIELD_KIND_UTF8,
			     .value.bytes = amqp_cstring_bytes("quorum") } },
		{ .key = amqp_cstring_bytes("x-delivery-limit"),
		  .value = { .kind = AMQP_FIELD_KIND_I32, .value.i32 = limit } },
		{ .key = amqp_cstring_bytes("x-dead-letter-exchange"),
		  .value = { .kind = AMQP_FIELD_KIND_UTF8,
			     .value.bytes = amqp_cstring_bytes(exchange ? exchange : "") } },
	};
	amqp_table_t args = { exchange ? 3 : 2, entries };

	ck_assert_ptr_nonnull(
		amqp_queue_declare(client, 1, amqp_cstring_bytes(name), 0, 1, 0, 0, args));
}

/* ---- messages -------------------------------------------------------- */

OB_TEST(a_message_comes_back_with_headers_of_every_type)
{
	/* RabbitMQ 4 sorts them. */
	static const char headers[] =
		"{\"f\":1.5,\"id\":\"mine\",\"list\":[1,\"x\"],\"map\":{\"a\":\"b\"},"
		"\"n\":5,\"none\":null,\"yes\":true}";

	begin();
	rabbitmq_queue(client, "fields", 0);
	struct ob_sink *sink = make_sink(url_of(""), NULL);
	must_open(sink);
	row_init(&row, 2, NULL, "fields");
	struct ob_message *m = &row.parcels[0].message;
	m->headers = ob_str(headers);
	m->correlation_id = OB_STR("c-1");
	m->causation_id = OB_STR("c-0");
	m->sequence_number = 77;
	m->revision = 3;
	row.parcels[1].message.payload = row.parcels[1].delivery.body = OB_STR_NULL;
	row_deliver(sink, &row);
	ob_sink_free(sink);
	struct ob_feed *feed = make("fields");
	must_open_feed(feed);
	const struct ob_message *got = &read_one(feed)->message;
	ck_assert_msg(ob_str_eq(got->headers, ob_str(headers)), "%.*s", (int)got->headers.n,
		      got->headers.p);
	ck_assert(ob_str_eq(got->correlation_id, OB_STR("c-1")));
	ck_assert(ob_str_eq(got->causation_id, OB_STR("c-0")));
	ck_assert_int_eq(got->sequence_number, 77);
	ck_assert_int_eq(got->revision, 3);
	ck_assert_mem_eq(&got->id, &m->id, sizeof(m->id));
	const struct ob_feed_entry *second = read_one(feed);
	ck_assert(!second->fault.p && !second->message.payload.p);
	ob_feed_free(feed);
	end();
}
OB_TEST_END

OB_TEST(a_message_of_sixteen_megabytes_comes_whole)
{
	const size_t size = 16 << 20;
	OB_AUTOFREE char *body = malloc(size);

	begin();
	ck_assert_ptr_nonnull(body);
	for (size_t i = 0; i < size; i++)
		body[i] = (char)('a' + i % 23);
	rabbitmq_queue(client, "large", 0);
	publish("large", "0195a1b2-0000-7000-8000-000000000001", (struct ob_str){ body, size });
	publish("large", "0195a1b2-0000-7000-8000-000000000002", OB_STR(""));
	struct ob_feed *feed = make("large");
	must_open_feed(feed);
	const struct ob_feed_entry *e = read_one(feed);
	ck_assert(!e->fault.p && ob_str_eq(e->message.payload, (struct ob_str){ body, size }));
	e = read_one(feed);
	ck_assert(!e->fault.p && e->message.payload.p && e->message.payload.n == 0);
	ob_feed_free(feed);
	end();
}
OB_TEST_END

OB_TEST(an_entry_that_is_no_message_has_a_fault_and_is_known_again)
{
	char first[500], second[500];

	begin();
	rabbitmq_quorum_queue(client, "faults", 0);
	publish("faults", NULL, OB_STR("what"));
	publish("faults", "17", OB_STR("ever"));
	struct ob_feed *feed = make("faults");
	must_open_feed(feed);
	const struct ob_feed_entry *e = read_one(feed);
	ck_assert(ob_str_eq(e->fault, OB_STR("it has no id")));
	ck_assert(ob_str_eq(e->message.payload, OB_STR("what")));
	(void)snprintf(first, sizeof(first), "%s", e->where.p);
	e = read_one(feed);
	ck_assert(ob_str_eq(e->fault, OB_STR("a field cannot be read: 'id'")));
	(void)snprintf(second, sizeof(second), "%s", e->where.p);
	ck_assert_str_ne(first, second);
	ob_feed_free(feed);
	feed = make("faults");
	must_open_feed(feed);
	ck_assert_str_eq(read_one(feed)->where.p, first);
	ck_assert_str_eq(read_one(feed)->where.p, second);
	ob_feed_free(feed);
	end();
}
OB_TEST_END

/* ---- order ----------------------------------------------------------- */

/* A quorum queue counts what it has applied, and may tell the end of a channel before that. */
static void expect_empty(const char *queue)
{
	int64_t end_us = ob_clock_boot_us(&ob_clock_system) + (int64_t)10 * 1000000;
	uint32_t count;

	while ((count = rabbitmq_count(client, queue)) > 0)
		ck_assert_msg(ob_clock_boot_us(&ob_clock_system) < end_us, "%u are left", count);
}

static void give_back_some(const char *queue)
{
	struct ob_err err = OB_ERR_INIT;
	uint64_t tags[20];
	unsigned next = 5;

	store(queue, 60);
	struct ob_feed *feed = make(queue);
	must_open_feed(feed);
	for (size_t i = 0; i < 20; i++)
		tags[i] = read_one(feed)->tag;
	ck_assert_int_eq(ob_feed_ack(feed, tags, 5, &err), 0);
	/* In any order, and with more of them on their way to us. */
	for (size_t i = 0; i < 15; i++)
		ob_feed_give_back(feed, &tags[5 + i * 7 % 15], 1);
	must_open_feed(feed);
	ck_assert_int_eq(ob_feed_ack(feed, tags, 20, &err), 0); /* void */
	while (next < 60) {
		const struct ob_feed_entry *e = read_one(feed);

		ck_assert_uint_eq(number_of(e), next);
		ack(feed, e->tag);
		next++;
	}
	ob_feed_free(feed);
	expect_empty(queue);
}

OB_TEST(what_is_given_back_comes_again_in_its_place)
{
	begin();
	rabbitmq_queue(client, "back-classic", 0);
	give_back_some("back-classic");
	rabbitmq_quorum_queue(client, "back-quorum", 0);
	give_back_some("back-quorum");
	end();
}
OB_TEST_END

static void consume_alone(const char *queue)
{
	struct ob_err err = OB_ERR_INIT;

	store(queue, 10);
	struct ob_feed *first = make(queue), *second = make(queue);
	must_open_feed(first);
	ck_assert_uint_eq(number_of(read_one(first)), 0);
	ck_assert_int_lt(ob_feed_open(second, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_msg(strstr(err.msg, "another consumer has the queue") != NULL, "%s", err.msg);
	ob_feed_free(first);
	must_open_feed(second);
	ck_assert_uint_eq(number_of(read_one(second)), 0);
	ob_feed_free(second);
}

OB_TEST(an_ordered_consumer_waits_until_the_queue_is_free)
{
	begin();
	rabbitmq_queue(client, "alone-classic", 0);
	consume_alone("alone-classic");
	rabbitmq_quorum_queue(client, "alone-quorum", 0);
	consume_alone("alone-quorum");
	end();
}
OB_TEST_END

/* ---- trouble --------------------------------------------------------- */

OB_TEST(a_queue_that_is_not_there_is_waited_for)
{
	begin();
	struct ob_feed *feed = make("later");
	expect_down(feed, "no queue 'later'");
	expect_down(feed, "declare the queue");
	rabbitmq_queue(client, "later", 0);
	store("later", 1);
	must_open_feed(feed);
	ack_one(feed);
	/* Deleted meanwhile, and made again. */
	rabbitmq_delete_queue(client, "later");
	poll_until_down(feed, "queue 'later' was deleted");
	expect_down(feed, "no queue 'later'");
	rabbitmq_queue(client, "later", 0);
	store("later", 1);
	must_open_feed(feed);
	ack_one(feed);
	ob_feed_free(feed);
	end();
}
OB_TEST_END

OB_TEST(without_the_right_to_read_it_says_so)
{
	begin();
	rabbitmq_queue(client, "secret", 0);
	struct ob_feed *feed = make_as("limited:secret@", "secret", NULL, NULL);
	expect_down(feed, "allow this user to read it");
	ob_feed_free(feed);
	end();
}
OB_TEST_END

OB_TEST(a_message_held_longer_than_the_consumer_timeout_is_told_and_comes_again)
{
	static const char set[] =
		"application:set_env(rabbit, consumer_timeout, 300), "
		"application:set_env(rabbit, channel_tick_interval, 200).";
	static const char unset[] =
		"application:set_env(rabbit, consumer_timeout, 1800000), "
		"application:set_env(rabbit, channel_tick_interval, 60000).";

	begin();
	rabbitmq_queue(client, "slow", 0);
	store("slow", 1);
	rabbitmq_ctl(&server, (const char *const[]){ "eval", set, NULL });
	struct ob_feed *feed = make("slow");
	must_open_feed(feed);
	(void)read_one(feed);
	poll_until_down(feed, "consumer_timeout allows: raise it, or lower prefetch");
	rabbitmq_ctl(&server, (const char *const[]){ "eval", unset, NULL });
	must_open_feed(feed);
	ack_one(feed);
	ob_feed_free(feed);
	ck_assert_uint_eq(rabbitmq_count(client, "slow"), 0);
	end();
}
OB_TEST_END

OB_TEST(a_quorum_queue_tells_how_often_it_handed_a_message_out)
{
	begin();
	rabbitmq_quorum_queue(client, "often", 0);
	store("often", 1);
	for (uint32_t i = 1; i < 5; i++) {
		struct ob_feed *feed = make("often");

		must_open_feed(feed);
		ck_assert_uint_eq(read_one(feed)->deliveries, i);
		ob_feed_free(feed);
	}
	end();
}
OB_TEST_END

OB_TEST(a_lost_connection_makes_tags_void_and_everything_comes_again)
{
	uint64_t tags[10];
	struct ob_err err = OB_ERR_INIT;

	begin();
	rabbitmq_queue(client, "lost", 0);
	store("lost", 10);
	struct ob_feed *feed = make("lost");
	must_open_feed(feed);
	for (size_t i = 0; i < 10; i++)
		tags[i] = read_one(feed)->tag;
	rabbitmq_disconnect(client);
	rabbitmq_ctl(&server, (const char *const[]){ "close_all_connections", "a test", NULL });
	poll_until_down(feed, "");
	ck_assert_int_lt(ob_feed_ack(feed, tags, 10, &err), 0);
	must_open_feed(feed);
	ck_assert_int_eq(ob_feed_ack(feed, tags, 10, &err), 0);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_uint_eq(number_of(read_one(feed)), i);
	ob_feed_free(feed);
	client = NULL;
	end();
}
OB_TEST_END

/* ---- limits ---------------------------------------------------------- */

OB_TEST(a_delivery_limit_without_a_dead_letter_exchange_is_found)
{
	static const char code[] = "rabbitmq_delivery_limit";
	struct ob_findings found;

	begin();
	declare_quorum("drops", 5, NULL);
	probe(make("drops"), 1000, &found);
	expect_finding(&found, code, OB_LEVEL_WARNING, "drops a message after 5 deliveries");
	ob_findings_done(&found);
	declare_quorum("keeps", 5, "amq.fanout");
	probe(make("keeps"), 1000, &found);
	expect_finding(&found, code, OB_LEVEL_OK, "to the exchange 'amq.fanout'");
	ob_findings_done(&found);
	rabbitmq_queue(client, "endless", 100);
	probe(make("endless"), 1000, &found);
	expect_finding(&found, code, OB_LEVEL_OK, "until it is acknowledged");
	ob_findings_done(&found);
	probe(make_as("limited:secret@", "drops", NULL, NULL), 1000, &found);
	expect_finding(&found, code, OB_LEVEL_OK, "this user may not configure it");
	ob_findings_done(&found);
	end();
}
OB_TEST_END

OB_TEST(a_handler_slower_than_the_consumer_timeout_is_found)
{
	static const char code[] = "rabbitmq_consumer_timeout";
	struct ob_findings found;

	begin();
	rabbitmq_queue(client, "timed", 0);
	probe(make("timed"), 60000, &found);
	expect_finding(&found, code, OB_LEVEL_OK, "closes the channel only after 1800000 ms");
	ob_findings_done(&found);
	probe(make_as("", "timed", "consumer_timeout", "1m"), 60000, &found);
	expect_finding(&found, code, OB_LEVEL_WARNING, "hands the message out again");
	ob_findings_done(&found);
	end();
}
OB_TEST_END

OB_TEST(a_queue_that_is_missing_is_found_and_not_made)
{
	struct ob_findings found;

	begin();
	for (int i = 0; i < 2; i++) {
		probe(make("nowhere"), 1000, &found);
		expect_finding(&found, "rabbitmq_queue", OB_LEVEL_WARNING, "is not there");
		ob_findings_done(&found);
	}
	end();
}
OB_TEST_END

RABBITMQ_SUITE("feed_rabbitmq", a_message_comes_back_with_headers_of_every_type,
	       a_message_of_sixteen_megabytes_comes_whole,
	       an_entry_that_is_no_message_has_a_fault_and_is_known_again,
	       what_is_given_back_comes_again_in_its_place,
	       an_ordered_consumer_waits_until_the_queue_is_free,
	       a_queue_that_is_not_there_is_waited_for, without_the_right_to_read_it_says_so,
	       a_message_held_longer_than_the_consumer_timeout_is_told_and_comes_again,
	       a_quorum_queue_tells_how_often_it_handed_a_message_out,
	       a_lost_connection_makes_tags_void_and_everything_comes_again,
	       a_delivery_limit_without_a_dead_letter_exchange_is_found,
	       a_handler_slower_than_the_consumer_timeout_is_found,
	       a_queue_that_is_missing_is_found_and_not_made)
