/* SPDX-License-Identifier: MIT */
/* The NATS source: taking over from one that stands still, and the limits of a durable consumer. */
#include "feed/backends.h"
#include "feed_limits.h"
#include "nats_server.h"
#include "sink_rows.h"

#include <stdlib.h>

enum { COUNT = 40, HELD = 15, WAIT_MS = 200, TRIES = 300 };

static struct nats_server server;
static struct row row;

static void begin(void)
{
	nats_server_start(&server);
	nats_stream_add(&server, "S", "orders.>", NULL);
}

static void end(void)
{
	nats_server_end(&server);
}

static struct ob_feed *make(const char *stream)
{
	char url[64];
	const struct ob_opt_value options[] = { { "url", url }, { "stream", stream } };
	const struct ob_feed_conf conf = { .ops = &ob_feed_nats,
					   .options = options,
					   .option_count = 2,
					   .group = "billing",
					   .member = "outbox",
					   .sole = true };
	struct ob_feed *feed = NULL;
	struct ob_err err = OB_ERR_INIT;

	(void)snprintf(url, sizeof(url), "nats://127.0.0.1:%d", server.port);
	ck_assert_msg(ob_feed_new(&conf, &ob_clock_system, &feed, &err) == 0, "%s", err.msg);
	return feed;
}

static void store(size_t count)
{
	char url[64];

	(void)snprintf(url, sizeof(url), "nats://127.0.0.1:%d", server.port);
	struct ob_sink *sink = row_make_sink(&ob_sink_nats, "url", url, NULL);
	must_open(sink);
	row_init(&row, count, NULL, "orders.x");
	/* One after the other: the order in the stream is that of the numbers. */
	for (size_t i = 0; i < count; i++)
		row.parcels[i].message.key = row.parcels[i].delivery.key = OB_STR("k");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), count);
	ob_sink_free(sink);
}

/* So many, in the order in which they come; their tags, and their places in the stream. */
static void read_some(struct ob_feed *feed, size_t count, uint64_t *tags, uint64_t *seqs)
{
	struct ob_feed_batch batch = OB_FEED_BATCH_INIT;
	struct ob_err err = OB_ERR_INIT;
	size_t n = 0;

	ck_assert_msg(ob_feed_open(feed, &err) == 0, "%s", err.msg);
	for (int i = 0; i < TRIES && n < count; i++) {
		uint32_t most = count - n < 4 ? (uint32_t)(count - n) : 4;

		ck_assert_msg(ob_feed_poll(feed, WAIT_MS, most, &batch, &err) == 0, "%s", err.msg);
		for (size_t k = 0; k < batch.count; k++, n++) {
			tags[n] = batch.entries[k].tag;
			seqs[n] = batch.entries[k].place.major;
		}
	}
	ck_assert_uint_eq(n, count);
	ob_feed_batch_done(&batch);
}

OB_TEST(whoever_takes_over_does_not_get_ahead_of_one_that_stands_still)
{
	static uint64_t tags[COUNT], seqs[COUNT];
	struct ob_err err = OB_ERR_INIT;

	begin();
	store(COUNT);
	struct ob_feed *still = make("S"), *next = make("S");
	read_some(still, HELD, tags, seqs);
	ck_assert_int_eq(ob_feed_ack(still, tags, 5, &err), 0);
	/* It has ten, in the middle of ack_wait; they come first. */
	read_some(next, COUNT - 5, tags, seqs);
	for (size_t i = 0; i < COUNT - 5; i++)
		ck_assert_uint_eq(seqs[i], i + 6);
	ck_assert_int_eq(ob_feed_ack(next, tags, COUNT - 5, &err), 0);
	ob_feed_free(still);
	ob_feed_free(next);
	end();
}
OB_TEST_END

OB_TEST(a_stream_that_is_not_there_is_down_and_found)
{
	struct ob_findings found;
	struct ob_err err = OB_ERR_INIT;

	begin();
	struct ob_feed *feed = make("NOWHERE");
	ck_assert_int_lt(ob_feed_open(feed, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_msg(strstr(err.msg, "does not exist: add it") != NULL, "%s", err.msg);
	ob_feed_free(feed);
	probe(make("NOWHERE"), 1000, &found);
	expect_finding(&found, "nats_stream", OB_LEVEL_WARNING, "stream NOWHERE is not there");
	ob_findings_done(&found);
	end();
}
OB_TEST_END

static void add_consumer(jsAckPolicy acks, int64_t wait_ms, int64_t pending, int64_t deliver)
{
	jsConsumerInfo *info = NULL;
	jsConsumerConfig conf;
	jsErrCode code = 0;

	(void)jsConsumerConfig_Init(&conf);
	conf.Durable = "billing";
	conf.AckPolicy = acks;
	conf.AckWait = wait_ms * 1000000;
	conf.MaxAckPending = pending;
	conf.MaxDeliver = deliver;
	(void)js_DeleteConsumer(server.js, "S", "billing", NULL, &code);
	natsStatus s = js_AddConsumer(&info, server.js, "S", &conf, NULL, &code);
	ck_assert_msg(s == NATS_OK, "%s", nats_GetLastError(NULL));
	jsConsumerInfo_Destroy(info);
}

OB_TEST(limits_of_a_durable_consumer_are_found)
{
	struct ob_findings found;

	begin();
	/* None: it is made when it is needed, and not by the question. */
	for (int i = 0; i < 2; i++) {
		probe(make("S"), 60000, &found);
		ck_assert_uint_eq(found.count, 1);
		expect_finding(&found, "nats_stream", OB_LEVEL_OK, "stream S is there");
		ob_findings_done(&found);
	}
	add_consumer(js_AckExplicit, 60000, 10000, -1);
	probe(make("S"), 60000, &found);
	ck_assert_int_eq(ob_findings_worst(&found), OB_LEVEL_OK);
	ck_assert_uint_eq(found.count, 5);
	ob_findings_done(&found);
	add_consumer(js_AckExplicit, 2000, 10, 5);
	probe(make("S"), 60000, &found);
	expect_finding(&found, "nats_ack_wait", OB_LEVEL_WARNING, "may be handed out twice");
	expect_finding(&found, "nats_max_ack_pending", OB_LEVEL_WARNING, "up to 10 messages");
	expect_finding(&found, "nats_max_deliver", OB_LEVEL_WARNING, "given up after 5 deliveries");
	ob_findings_done(&found);
	add_consumer(js_AckAll, 60000, 10000, -1);
	probe(make("S"), 60000, &found);
	expect_finding(&found, "nats_ack_policy", OB_LEVEL_ERROR, "count as done");
	ob_findings_done(&found);
	end();
}
OB_TEST_END

int main(int argc, char **argv)
{
	const TTest *const tests[] = {
		whoever_takes_over_does_not_get_ahead_of_one_that_stands_still,
		a_stream_that_is_not_there_is_down_and_found, limits_of_a_durable_consumer_are_found
	};
	const char *missing = nats_server_missing();

	if (!missing)
		return ob_suite_run("feed_nats", tests, sizeof(tests) / sizeof(tests[0]),
				    argc > 1 ? argv[1] : NULL);
	(void)printf("1..0 # SKIP %s\n", missing);
	return EXIT_SUCCESS;
}
