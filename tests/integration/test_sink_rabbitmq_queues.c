/* SPDX-License-Identifier: MIT */
/* What kinds and states of queues make of messages: quorum queues, full ones, stuck ones. */
#include "sink_rabbitmq_fixture.h"

#include <stdlib.h>

static struct row row;
static amqp_connection_state_t client;

static struct ob_sink *begin(const char *timeout)
{
	client = rabbitmq_connect(&server);
	struct ob_sink *sink = make_sink(url_of(""), "timeout", timeout, NULL);
	must_open(sink);
	return sink;
}

static void end(struct ob_sink *sink)
{
	ob_sink_free(sink);
	rabbitmq_disconnect(client);
}

/* Messages without a key, as are sent at once. */
static void send_row(struct ob_sink *sink, size_t count, const char *queue)
{
	row_init(&row, count, NULL, queue);
	row_deliver(sink, &row);
}

static void expect_all(enum ob_err_kind kind)
{
	ck_assert_msg(row_count(&row, kind) == row.count, "%s", row.acks[0].err.msg);
}

/* Take all out of a queue: how often each number was there. Returns how many came. */
static size_t take_all(const char *queue, unsigned seen[ROW_MAX])
{
	amqp_message_t got;
	char key[256], text[16];
	size_t size, count = 0;

	for (; rabbitmq_get(client, queue, &got, key, &size); count++) {
		(void)snprintf(text, sizeof(text), "%.*s", (int)got.body.len,
			       (const char *)got.body.bytes);
		seen[strtoul(text, NULL, 10)]++;
		amqp_destroy_message(&got);
	}
	return count;
}

OB_TEST(a_quorum_queue_has_what_it_confirmed)
{
	unsigned seen[ROW_MAX] = { 0 };
	struct ob_sink *sink = begin("30s");

	rabbitmq_quorum_queue(client, "quorum", 0);
	send_row(sink, 300, "quorum");
	expect_all(OB_ERR_NONE);
	ck_assert_uint_eq(take_all("quorum", seen), 300);
	for (size_t i = 0; i < 300; i++)
		ck_assert_uint_eq(seen[i], 1);
	end(sink);
}
OB_TEST_END

/* Send until it refuses, then make room: what was refused is not there, what was confirmed is. */
static void fill_up(struct ob_sink *sink, const char *queue)
{
	unsigned seen[ROW_MAX] = { 0 };
	size_t stored, refused = 0;

	send_row(sink, 300, queue);
	stored = take_all(queue, seen);
	ck_assert_uint_ge(stored, 20);
	ck_assert_uint_lt(stored, 300);
	for (size_t i = 0; i < 300; i++) {
		const struct ob_err *err = &row.acks[i].err;

		ck_assert_msg(err->kind == OB_ERR_NONE || err->kind == OB_ERR_RETRY, "%s",
			      err->msg);
		ck_assert_uint_eq(seen[i], err->kind == OB_ERR_NONE ? 1 : 0);
		if (err->kind == OB_ERR_RETRY)
			ck_assert_msg(strstr(err->msg, "basic.nack") != NULL, "%s", err->msg);
		refused += err->kind == OB_ERR_RETRY;
	}
	ck_assert_uint_eq(stored + refused, 300);
	send_row(sink, 10, queue); /* there is room again, on the same connection */
	expect_all(OB_ERR_NONE);
}

OB_TEST(a_full_queue_has_what_it_confirmed_and_no_more)
{
	struct ob_sink *sink = begin("30s");

	rabbitmq_queue(client, "full-classic", 20);
	fill_up(sink, "full-classic");
	rabbitmq_quorum_queue(client, "full-quorum", 20);
	fill_up(sink, "full-quorum");
	end(sink);
}
OB_TEST_END

/* One queue stands still while another goes on. */
static void get_stuck(const char *queue)
{
	unsigned seen[ROW_MAX] = { 0 };
	struct ob_sink *sink = begin("5s");

	/* The first message of a channel to a quorum queue waits for it, and all others behind it.
	 */
	send_row(sink, 1, queue);
	expect_all(OB_ERR_NONE);
	rabbitmq_suspend_queue(&server, queue);
	row_init(&row, 40, NULL, "goes-on");
	for (size_t i = 0; i < 20; i++)
		row.parcels[i].delivery.destination = ob_str(queue);
	row_deliver(sink, &row);
	for (size_t i = 0; i < row.count; i++) {
		const struct ob_err *err = &row.acks[i].err;

		ck_assert_msg(err->kind == (i < 20 ? OB_ERR_RETRY : OB_ERR_NONE), "%s, %zu: %s",
			      queue, i, err->msg);
		if (i < 20)
			ck_assert_msg(strstr(err->msg, "its queue is stuck") != NULL, "%s",
				      err->msg);
	}
	/* nothing else to compare with: the broker may be gone, and no message is to blame */
	send_row(sink, 5, queue);
	expect_all(OB_ERR_DOWN);
	rabbitmq_resume_queue(&server, queue);
	must_open(sink);
	send_row(sink, 20, queue);
	expect_all(OB_ERR_NONE);
	ck_assert_uint_ge(take_all(queue, seen), 20);
	for (size_t i = 0; i < 20; i++)
		ck_assert_uint_ge(seen[i], 1);
	end(sink);
}

OB_TEST(a_stuck_queue_is_about_its_messages_alone)
{
	client = rabbitmq_connect(&server);
	rabbitmq_queue(client, "goes-on", 0);
	rabbitmq_queue(client, "stuck-classic", 0);
	rabbitmq_quorum_queue(client, "stuck-quorum", 0);
	rabbitmq_disconnect(client);
	get_stuck("stuck-classic");
	get_stuck("stuck-quorum");
}
OB_TEST_END

static void probe(struct ob_sink *sink, const char *name, enum ob_level level, const char *text)
{
	const struct ob_str destination = ob_str(name);
	struct ob_findings found;
	struct ob_err err = OB_ERR_INIT;

	ob_findings_init(&found);
	int r = ob_sink_probe(sink, &destination, 1, &found, &err);
	ck_assert_msg(r == 0, "%s", err.msg);
	ck_assert_uint_eq(found.count, 1);
	ck_assert_str_eq(found.list[0].check->code, "rabbitmq_destination");
	ck_assert_int_eq(found.list[0].level, level);
	ck_assert_str_eq(found.list[0].text.p, text);
	ob_findings_done(&found);
}

OB_TEST(a_probe_tells_whether_the_destination_is_there)
{
	struct ob_sink *sink = begin("30s");

	rabbitmq_queue(client, "probed", 0);
	for (int i = 0; i < 2; i++) {
		probe(sink, "nobody", OB_LEVEL_WARNING,
		      "queue nobody is not there: messages to it fail");
		probe(sink, "probed", OB_LEVEL_OK, "queue probed is there");
	}
	/* The channel of messages is as it was. */
	send_row(sink, 3, "probed");
	expect_all(OB_ERR_NONE);
	ob_sink_free(sink);
	sink = make_sink(url_of(""), "exchange", "shop", NULL);
	must_open(sink);
	probe(sink, "any", OB_LEVEL_WARNING, "exchange shop is not there: messages to it fail");
	rabbitmq_exchange(client, "shop", "topic");
	probe(sink, "any", OB_LEVEL_OK, "exchange shop is there");
	end(sink);
}
OB_TEST_END

RABBITMQ_SUITE("rabbitmq queues", a_quorum_queue_has_what_it_confirmed,
	       a_full_queue_has_what_it_confirmed_and_no_more,
	       a_stuck_queue_is_about_its_messages_alone,
	       a_probe_tells_whether_the_destination_is_there)
