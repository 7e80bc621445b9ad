/* SPDX-License-Identifier: MIT */
/* The Kafka sink: what is refused, what goes wrong, and the order that holds meanwhile. */
#include "kafka_mock.h"
#include "sink/kafka/kafka.h"
#include "sink_rows.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

static struct kafka_mock mock;
static struct row row;

#define make_sink(...) row_make_sink(&ob_sink_kafka, "brokers", __VA_ARGS__)

/* A cluster that was away a moment ago may need several tries. */
static void open_again(struct ob_sink *sink)
{
	struct ob_err err = OB_ERR_INIT;

	for (int i = 0; ob_sink_open(sink, &err) < 0; i++)
		ck_assert_msg(i < 20, "%s", err.msg);
}

static struct ob_sink *start(const char *name, const char *value)
{
	kafka_mock_start(&mock);
	struct ob_sink *sink = make_sink(mock.brokers, name, value, NULL);
	open_again(sink);
	return sink;
}

static void stop(struct ob_sink *sink)
{
	ob_sink_free(sink);
	kafka_mock_end(&mock);
}

/* The numbers in all topics, joined: "0 1 2". In memory that the next call reuses. */
static const char *log_text(void)
{
	static struct ob_buf text;
	struct ob_arena arena = OB_ARENA_INIT((size_t)1 << 28);
	struct kafka_record *records;
	size_t count = kafka_mock_read(&mock, &arena, &records);

	text.max = 1 << 20;
	ob_buf_clear(&text);
	for (size_t i = 0; i < count; i++) {
		ob_buf_adds(&text, i ? " " : "");
		ob_buf_add(&text, records[i].value);
	}
	ob_arena_done(&arena);
	return ob_buf_str(&text);
}

static void refuse_next(rd_kafka_resp_err_t code, int count)
{
	kafka_mock_tell(&mock, "refuse %d %d", (int)code, count);
}

/* ---- records --------------------------------------------------------- */

OB_TEST(a_record_says_what_the_message_is)
{
	const struct ob_header headers[] = { { OB_STR("traceparent"), OB_STR("00-ab-cd-01"),
					       false },
					     { OB_STR("id"), OB_STR("posing"), false } };
	struct ob_sink *sink = start("timeout", "40s");
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct kafka_record *r;

	row_init(&row, 1, "order:1042", "orders");
	row.parcels[0].message.sequence_number = 7;
	row.parcels[0].message.correlation_id = OB_STR("c");
	row.parcels[0].message.causation_id = OB_STR("d");
	row.parcels[0].delivery.headers = headers;
	row.parcels[0].delivery.header_count = 2;
	row.parcels[0].delivery.content_type = OB_STR("application/json");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 1);
	ck_assert_uint_eq(kafka_mock_read(&mock, &arena, &r), 1);
	ck_assert(ob_str_eq(r->topic, OB_STR("orders")));
	ck_assert(ob_str_eq(r->key, OB_STR("order:1042")));
	ck_assert(ob_str_eq(r->value, OB_STR("0")));
	static const char *const expected[][2] = {
		{ "traceparent", "00-ab-cd-01" },
		{ "id", "01900000-0000-7000-8000-000000000000" }, /* ours alone */
		{ "event_type", "OrderPlaced" },
		{ "aggregate_type", "order" },
		{ "aggregate_id", "1042" },
		{ "revision", "1" },
		{ "sequence_number", "7" },
		{ "correlation_id", "c" },
		{ "causation_id", "d" },
		{ "occurred_at", "2023-11-14T22:13:20.123456Z" },
		{ "content-type", "application/json" },
	};
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		ck_assert_msg(ob_str_eq(kafka_header(r, expected[i][0]), ob_str(expected[i][1])),
			      "%s", expected[i][0]);
	ck_assert_uint_eq(r->header_count, 11); /* the id once */
	ob_arena_done(&arena);
	stop(sink);
}
OB_TEST_END

OB_TEST(a_destination_that_is_no_topic_is_refused)
{
	static const struct {
		struct ob_str name;
		const char *why;
	} bad[] = {
		{ OB_STR(""), "is empty" },
		{ OB_STR("."), "no name of a topic" },
		{ OB_STR(".."), "no name of a topic" },
		{ OB_STR("a b"), "no name of a topic" },
		{ OB_STR("a/b"), "no name of a topic" },
		{ OB_STR("gr\xc3\xbc\xc3\x9f"), "no name of a topic" },
		{ OB_STR("a\0b"), "no name of a topic" },
		{ OB_STR("__consumer_offsets"), "Kafka's own" },
		{ OB_STR("__x"), "Kafka's own" },
	};
	struct ob_sink *sink = start("timeout", "40s");
	struct ob_err err = OB_ERR_INIT;
	char name[251];

	row_init(&row, 1, "k", "");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		row.parcels[0].delivery.destination = bad[i].name;
		ck_assert_int_lt(ob_sink_send(sink, &row.parcels[0].delivery, &err), 0);
		ck_assert_int_eq(err.kind, OB_ERR_REJECT);
		ck_assert_msg(strstr(err.msg, bad[i].why) != NULL, "%s", err.msg);
	}
	memset(name, 'x', sizeof(name));
	row.parcels[0].delivery.destination = (struct ob_str){ name, 250 };
	ck_assert_int_lt(ob_sink_send(sink, &row.parcels[0].delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_REJECT);
	row.parcels[0].delivery.destination = (struct ob_str){ name, 249 };
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 1);
	stop(sink);
}
OB_TEST_END

OB_TEST(the_largest_message_goes_and_the_next_byte_is_refused)
{
	struct ob_sink *sink = start("max_message_size", "10000");
	struct ob_err err = OB_ERR_INIT;
	static char body[10000];
	size_t n = sizeof(body);

	memset(body, 'x', sizeof(body));
	row_init(&row, 1, "k", "orders");
	do {
		row.parcels[0].delivery.body = (struct ob_str){ body, n };
	} while (ob_sink_send(sink, &row.parcels[0].delivery, &err) < 0 && n-- > 0);
	ck_assert_int_eq(err.kind, OB_ERR_REJECT);
	ck_assert_uint_gt(n, 9000);
	row_wait(sink, &row);
	ck_assert_msg(row.acks[0].err.kind == OB_ERR_NONE, "%s", row.acks[0].err.msg);
	stop(sink);
}
OB_TEST_END

/*
 * The mock keeps a few MB of a partition, but always the first message: each has a topic of its
 * own.
 */
OB_TEST(messages_up_to_16_mb_arrive_byte_for_byte)
{
	static const size_t sizes[] = { 1 << 20, (4 << 20) + 1, 16 << 20 };
	struct ob_sink *sink = start("max_message_size", "20MB");
	char *body = malloc(16 << 20);

	ck_assert_ptr_nonnull(body);
	for (size_t i = 0; i < 16 << 20; i++)
		body[i] = (char)(i * 2654435761U >> 24);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ob_arena arena = OB_ARENA_INIT((size_t)1 << 26);
		struct kafka_record *record;
		char topic[24];

		(void)snprintf(topic, sizeof(topic), "large-%zu", sizes[i]);
		kafka_mock_skip(&mock);
		row_init(&row, 1, "k", topic);
		row.parcels[0].delivery.body = (struct ob_str){ body, sizes[i] };
		row_deliver(sink, &row);
		ck_assert_msg(row.acks[0].err.kind == OB_ERR_NONE, "%s", row.acks[0].err.msg);
		ck_assert_uint_eq(kafka_mock_read(&mock, &arena, &record), 1);
		ck_assert(ob_str_eq(record->value, row.parcels[0].delivery.body));
		ob_arena_done(&arena);
	}
	free(body);
	stop(sink);
}
OB_TEST_END

/* ---- refusals -------------------------------------------------------- */

/* The library has the next request ready when the answer comes, so it takes several rounds. */
OB_TEST(nothing_behind_a_refused_message_is_stored)
{
	struct ob_sink *sink = start("properties", "batch.num.messages=4");

	for (int i = 0; i < 12; i++) {
		kafka_mock_skip(&mock);
		row_init(&row, 200, "k", "orders");
		kafka_mock_tell(&mock, "rtt %d", i % 2);
		refuse_next(RD_KAFKA_RESP_ERR_POLICY_VIOLATION, 1);
		row_deliver(sink, &row);
		ck_assert_str_eq(log_text(), "");
		ck_assert_msg(row_count(&row, OB_ERR_RETRY) == 200, "%s", row.acks[0].err.msg);
	}
	row_init(&row, 20, "k", "orders");
	row_deliver(sink, &row); /* the key is usable again, through another producer */
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 20);
	ck_assert_str_eq(log_text(), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19");
	stop(sink);
}
OB_TEST_END

OB_TEST(other_keys_go_on_when_one_is_refused)
{
	struct ob_sink *sink = start("properties", "batch.num.messages=10");

	kafka_mock_tell(&mock, "topic orders 1");
	row_init(&row, 500, "k", "orders");
	for (size_t i = 250; i < 500; i++)
		row.parcels[i].delivery.key = row.parcels[i].message.key = OB_STR("other");
	refuse_next(RD_KAFKA_RESP_ERR_POLICY_VIOLATION, 1);
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_RETRY), 250);
	ck_assert_msg(row_count(&row, OB_ERR_NONE) == 250, "%s", row.acks[499].err.msg);
	ck_assert_uint_eq(strncmp(log_text(), "250 251 252 ", 12), 0);
	stop(sink);
}
OB_TEST_END

OB_TEST(one_message_that_is_too_large_for_the_topic_is_found_among_many)
{
	struct ob_sink *sink = start("properties", "batch.num.messages=64\nlinger.ms=1000");

	kafka_mock_tell(&mock, "topic orders 1");
	row_init(&row, 320, "k", "orders");
	/* the first batch of 64, then one of 8, and then the one alone */
	refuse_next(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 3);
	row_deliver(sink, &row);
	ck_assert_msg(row_count(&row, OB_ERR_REJECT) == 1, "%u rejected, %u retried, %u down: %s",
		      (unsigned)row_count(&row, OB_ERR_REJECT),
		      (unsigned)row_count(&row, OB_ERR_RETRY),
		      (unsigned)row_count(&row, OB_ERR_DOWN), row.acks[0].err.msg);
	ck_assert_int_eq(row.acks[0].err.kind, OB_ERR_REJECT);
	ck_assert_ptr_nonnull(strstr(row.acks[0].err.msg, "max.message.bytes"));
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 319);
	ck_assert_uint_eq(strncmp(log_text(), "1 2 3 4 5 6 7 8 9 10 ", 21), 0);
	stop(sink);
}
OB_TEST_END

/* ---- a refusal at the worst moment ----------------------------------- */

enum { RUSHED = 70 }; /* a message behind the first batch of 64 */

static atomic_bool rushing, refused, thrown_out;

/*
 * Inside the call that hands a message over, when it is not in the queue yet. On a busy machine the
 * refusal may have come before, or nothing may be left to throw out: then it is just a refusal.
 */
static rd_kafka_resp_err_t on_send(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque)
{
	const struct ob_lane_item *item = message->_private;

	(void)rk, (void)opaque;
	if (!atomic_load(&rushing) || item->delivery.tag < RUSHED || atomic_load(&refused))
		return RD_KAFKA_RESP_ERR_NO_ERROR;
	while (!atomic_load(&refused))
		(void)poll(NULL, 0, 1);
	for (int ms = 0; ms < 2000 && !atomic_load(&thrown_out); ms++)
		(void)poll(NULL, 0, 1);
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_answer(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque)
{
	(void)rk, (void)opaque;
	if (message->err > RD_KAFKA_RESP_ERR_NO_ERROR)
		atomic_store(&refused, true);
	if (message->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE)
		atomic_store(&thrown_out, true);
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* The sink adds its guard to each producer: ours go along. */
rd_kafka_resp_err_t
__real_rd_kafka_interceptor_add_on_acknowledgement(rd_kafka_t *rk, const char *name,
						   rd_kafka_interceptor_f_on_acknowledgement_t *f,
						   void *opaque);
rd_kafka_resp_err_t
__wrap_rd_kafka_interceptor_add_on_acknowledgement(rd_kafka_t *rk, const char *name,
						   rd_kafka_interceptor_f_on_acknowledgement_t *f,
						   void *opaque);
rd_kafka_resp_err_t
__wrap_rd_kafka_interceptor_add_on_acknowledgement(rd_kafka_t *rk, const char *name,
						   rd_kafka_interceptor_f_on_acknowledgement_t *f,
						   void *opaque)
{
	(void)rd_kafka_interceptor_add_on_send(rk, "test", on_send, NULL);
	(void)__real_rd_kafka_interceptor_add_on_acknowledgement(rk, "test", on_answer, NULL);
	return __real_rd_kafka_interceptor_add_on_acknowledgement(rk, name, f, opaque);
}

/* The producer throws out its queue while a message is on its way there. */
OB_TEST(what_is_handed_over_while_a_refusal_comes_goes_again)
{
	struct ob_sink *sink = start("properties", "batch.num.messages=64\nlinger.ms=1000");

	kafka_mock_tell(&mock, "topic orders 1");
	row_init(&row, 64, "k", "orders"); /* so that the topic is known */
	row_deliver(sink, &row);
	kafka_mock_skip(&mock);
	row_init(&row, 200, "k", "orders");
	for (size_t i = 64; i < 200; i++)
		row.parcels[i].delivery.key = row.parcels[i].message.key = OB_STR("other");
	kafka_mock_tell(&mock, "rtt 50"); /* the refusal comes when all of these are handed over */
	refuse_next(RD_KAFKA_RESP_ERR_POLICY_VIOLATION, 1);
	atomic_store(&rushing, true);
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_RETRY), 64);
	ck_assert_msg(row_count(&row, OB_ERR_NONE) == 136, "%s", row.acks[199].err.msg);
	ck_assert_uint_eq(strncmp(log_text(), "64 65 66 67 ", 12), 0);
	stop(sink);
}
OB_TEST_END

OB_TEST(a_desynchronised_producer_is_an_outage_and_is_replaced)
{
	struct ob_sink *sink = start("properties", "batch.num.messages=10");

	row_init(&row, 100, "k", "orders");
	refuse_next(RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, 1);
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_DOWN), 100);
	struct ob_err err = OB_ERR_INIT;
	ck_assert_int_lt(ob_sink_send(sink, &row.parcels[0].delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	open_again(sink);
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 100);
	ck_assert_uint_eq(strncmp(log_text(), "0 1 2 3 4 5 6 7 8 9 10 ", 23), 0);
	stop(sink);
}
OB_TEST_END

/* ---- outages --------------------------------------------------------- */

OB_TEST(what_passes_by_itself_costs_nothing)
{
	static const rd_kafka_resp_err_t codes[] = { RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
						     RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
						     RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
						     RD_KAFKA_RESP_ERR__TRANSPORT };
	struct ob_sink *sink = start("properties", "batch.num.messages=10");

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		kafka_mock_skip(&mock);
		row_init(&row, 30, "k", "orders");
		refuse_next(codes[i], 2);
		row_deliver(sink, &row);
		ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 30);
		ck_assert_uint_eq(strncmp(log_text(), "0 1 2 3 4 5 6 7 8 9 10 ", 23), 0);
	}
	stop(sink);
}
OB_TEST_END

/* Again and again: a second is short for a busy machine. */
static void row_deliver_all(struct ob_sink *sink)
{
	do {
		open_again(sink);
		row_deliver(sink, &row);
	} while (row_count(&row, OB_ERR_NONE) < row.count);
}

OB_TEST(a_lost_acknowledgement_is_an_outage_in_time)
{
	struct ob_sink *sink = start("timeout", "1s");

	row_init(&row, 5, "k", "orders");
	row_deliver_all(sink);
	kafka_mock_skip(&mock);
	kafka_mock_pause(&mock);
	int64_t before = ob_clock_boot_us(&ob_clock_system);
	row_deliver(sink, &row);
	ck_assert_int_lt(ob_clock_boot_us(&ob_clock_system) - before, 20000000);
	ck_assert_uint_eq(row_count(&row, OB_ERR_DOWN), 5);
	ck_assert_msg(strstr(row.acks[0].err.msg, "not acknowledged") != NULL, "%s",
		      row.acks[0].err.msg);
	kafka_mock_continue(&mock);
	row_deliver_all(sink);
	ck_assert_uint_eq(strncmp(log_text(), "0 1 2 3 4", 9), 0);
	stop(sink);
}
OB_TEST_END

OB_TEST(a_topic_that_is_not_there_is_about_its_messages)
{
	struct ob_sink *sink = start("properties", "topic.metadata.propagation.max.ms=500");

	kafka_mock_tell(&mock, "fail lacking %d", (int)RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	row_init(&row, 20, "k", "lacking");
	for (size_t i = 10; i < 20; i++) {
		row.parcels[i].delivery.key = row.parcels[i].message.key = OB_STR("other");
		row.parcels[i].delivery.destination = OB_STR("orders");
	}
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_RETRY), 10);
	ck_assert_ptr_nonnull(strstr(row.acks[0].err.msg, "create the topic"));
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 10);
	/* and is found once it is */
	kafka_mock_tell(&mock, "fail lacking 0");
	do {
		row_init(&row, 10, "k", "lacking");
		row_deliver(sink, &row);
	} while (row_count(&row, OB_ERR_RETRY) == 10);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 10);
	stop(sink);
}
OB_TEST_END

OB_TEST(a_key_waits_when_it_goes_to_another_topic)
{
	struct ob_sink *sink = start("properties", "topic.metadata.propagation.max.ms=500");

	kafka_mock_tell(&mock, "fail lacking %d", (int)RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	row_init(&row, 20, "k", "lacking");
	for (size_t i = 1; i < 20; i++)
		row.parcels[i].delivery.destination = OB_STR("orders");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_RETRY), 20);
	ck_assert_str_eq(log_text(), "");
	stop(sink);
}
OB_TEST_END

OB_TEST(brokers_that_are_not_there_are_an_outage)
{
	struct ob_sink *sink = make_sink("127.0.0.1:1", "connect_timeout", "3s", NULL);
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_lt(ob_sink_open(sink, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_msg(strstr(err.msg, "Connection refused") != NULL, "%s", err.msg);
	ck_assert_int_lt(ob_sink_open(sink, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ob_sink_free(sink);
}
OB_TEST_END

OB_TEST(a_login_that_fails_is_an_outage_and_costs_no_message)
{
	kafka_mock_start(&mock); /* which knows no SASL */
	struct ob_sink *sink = make_sink(mock.brokers, "properties",
					 "security.protocol=SASL_PLAINTEXT\n"
					 "sasl.mechanism=PLAIN\n"
					 "sasl.username=app\nsasl.password=secret\n",
					 "connect_timeout", "3s", NULL);
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_lt(ob_sink_open(sink, &err), 0);
	ck_assert_msg(err.kind == OB_ERR_DOWN, "%s", err.msg);
	ck_assert_msg(strstr(err.msg, "SASL") || strstr(err.msg, "sasl"), "%s", err.msg);
	ck_assert_ptr_null(strstr(err.msg, "secret"));
	stop(sink);
}
OB_TEST_END

/* ---- properties ------------------------------------------------------ */

static void check_properties(const char *text, const char *fault)
{
	const struct ob_opt_value options[] = { { "brokers", "127.0.0.1:1" },
						{ "properties", text } };
	struct ob_err err = OB_ERR_INIT;
	int r = ob_sink_check(&ob_sink_kafka, options, 2, &err);

	if (!fault) {
		ck_assert_msg(r == 0, "%s", err.msg);
		return;
	}
	ck_assert_int_eq(r, OUTBOX_ECONFIG);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_msg(strstr(err.msg, fault) != NULL, "%s", err.msg);
	ck_assert_ptr_null(strstr(err.msg, "secret"));
}

OB_TEST(properties_pass_but_for_those_that_break_promises)
{
	check_properties("", NULL);
	check_properties("\n# a comment\n  linger.ms = 5 \r\ncompression.type=zstd\n", NULL);
	check_properties("partitioner=consistent_random", NULL);
	check_properties("linger.ms=1\nacks=1", "line 2: acks: a message would count");
	check_properties("enable.idempotence=false", "the order of a key rests on it");
	check_properties("max.in.flight=5", "the order of a key rests on it");
	check_properties("partitioner=random", "different partitions");
	check_properties("message.timeout.ms=1000", "the option timeout");
	check_properties("bootstrap.servers=a:1", "the option brokers");
	check_properties("linger.ms", "write name=value");
	check_properties("no.such.property=secret", "no such property");
	check_properties("linger.ms=secret", "does not take this value");
}
OB_TEST_END

OB_TEST(errors_have_their_kinds)
{
	static const struct {
		rd_kafka_resp_err_t code;
		enum ob_err_kind kind;
	} kinds[] = {
		{ RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, OB_ERR_REJECT },
		{ RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, OB_ERR_REJECT },
		{ RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, OB_ERR_RETRY },
		{ RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, OB_ERR_RETRY },
		{ RD_KAFKA_RESP_ERR__AUTHENTICATION, OB_ERR_DOWN },
		{ RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, OB_ERR_DOWN },
		{ RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, OB_ERR_DOWN },
		{ RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, OB_ERR_DOWN },
		{ RD_KAFKA_RESP_ERR__TRANSPORT, OB_ERR_DOWN },
		{ RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, OB_ERR_DOWN },
		{ (rd_kafka_resp_err_t)999, OB_ERR_RETRY }, /* of a broker from the future */
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct ob_err err = OB_ERR_INIT;

		(void)ob_kafka_error(kinds[i].code, NULL, NULL, &err);
		ck_assert_msg(err.kind == kinds[i].kind, "%d: %s", (int)kinds[i].code, err.msg);
	}
}
OB_TEST_END

static const char *probe_text(struct ob_sink *sink, const char *topic, enum ob_level *ret_worst)
{
	static char text[2000];
	const struct ob_str name = ob_str(topic);
	struct ob_findings found;
	struct ob_err err = OB_ERR_INIT;
	size_t n = 0;

	ob_findings_init(&found);
	int r = ob_sink_probe(sink, &name, 1, &found, &err);
	ck_assert_msg(r == 0, "%s", err.msg);
	text[0] = '\0';
	for (size_t i = 0; i < found.count; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s: %.*s\n",
				      found.list[i].check->code, (int)found.list[i].text.n,
				      found.list[i].text.p);
	*ret_worst = ob_findings_worst(&found);
	ob_findings_done(&found);
	return text;
}

OB_TEST(a_probe_tells_of_topics_and_makes_none)
{
	struct ob_sink *sink = start("window", "10");
	enum ob_level worst;

	kafka_mock_tell(&mock, "topic orders 3");
	const char *text = probe_text(sink, "orders", &worst);
	ck_assert_msg(strstr(text, "kafka_destination: topic orders has 3 partition(s)"), "%s",
		      text);
	ck_assert_msg(strstr(text, "kafka_copies: topic orders has 2 copies, all up to date"), "%s",
		      text);
	ck_assert_int_eq(worst, OB_LEVEL_OK);
	for (int i = 0; i < 2; i++) {
		text = probe_text(sink, "nobody", &worst);
		ck_assert_msg(strstr(text, "kafka_destination: topic nobody is not there"), "%s",
			      text);
	}
	stop(sink);
}
OB_TEST_END

OB_SUITE("sink kafka", a_record_says_what_the_message_is, a_destination_that_is_no_topic_is_refused,
	 the_largest_message_goes_and_the_next_byte_is_refused,
	 messages_up_to_16_mb_arrive_byte_for_byte, nothing_behind_a_refused_message_is_stored,
	 other_keys_go_on_when_one_is_refused,
	 one_message_that_is_too_large_for_the_topic_is_found_among_many,
	 what_is_handed_over_while_a_refusal_comes_goes_again,
	 a_desynchronised_producer_is_an_outage_and_is_replaced,
	 what_passes_by_itself_costs_nothing, a_lost_acknowledgement_is_an_outage_in_time,
	 a_topic_that_is_not_there_is_about_its_messages, a_key_waits_when_it_goes_to_another_topic,
	 brokers_that_are_not_there_are_an_outage,
	 a_login_that_fails_is_an_outage_and_costs_no_message,
	 properties_pass_but_for_those_that_break_promises, errors_have_their_kinds,
	 a_probe_tells_of_topics_and_makes_none)
