/* SPDX-License-Identifier: MIT */
/* The http sink and a receiver that answers everything a receiver may answer. */
#include "sink_http_fixture.h"

#include <poll.h>
#include <stdlib.h>

OB_TEST(every_status_has_its_meaning)
{
	static const struct {
		int from, to;
		enum ob_err_kind kind;
	} table[] = {
		{ 200, 299, OB_ERR_NONE },   { 300, 399, OB_ERR_DOWN },
		{ 400, 400, OB_ERR_REJECT }, { 401, 405, OB_ERR_DOWN },
		{ 406, 406, OB_ERR_REJECT }, { 407, 407, OB_ERR_DOWN },
		{ 408, 409, OB_ERR_RETRY },  { 410, 422, OB_ERR_REJECT },
		{ 423, 423, OB_ERR_RETRY },  { 424, 424, OB_ERR_REJECT },
		{ 425, 425, OB_ERR_RETRY },  { 426, 428, OB_ERR_REJECT },
		{ 429, 429, OB_ERR_DOWN },   { 430, 499, OB_ERR_REJECT },
		{ 500, 502, OB_ERR_RETRY },  { 503, 503, OB_ERR_DOWN },
		{ 504, 599, OB_ERR_RETRY },  { 600, 600, OB_ERR_RETRY },
	};
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, "gone", "reject");
	char native[16];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		for (int status = table[i].from; status <= table[i].to; status++) {
			http_receiver_answer(receiver, &(struct http_answer){ .status = status });
			struct ob_err err = try_one(sink);

			ck_assert_msg(err.kind == table[i].kind, "%d: %s", status, err.msg);
			(void)snprintf(native, sizeof(native), "%d", status);
			ck_assert_str_eq(err.native, err.kind == OB_ERR_NONE ? "" : native);
		}
	}
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

OB_TEST(the_answer_is_in_the_error_as_one_safe_line)
{
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, NULL, NULL);

	http_receiver_answer(
		receiver, &(struct http_answer){ .status = 422, .body = "no such\r\n\033[2Juser" });
	struct ob_err err = try_one(sink);
	ck_assert_str_eq(err.msg, "the receiver answers HTTP 422: no such   [2Juser");
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

OB_TEST(connections_are_kept)
{
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, "window", "4");
	struct tally tally = { 0 };
	struct parcel parcel;

	for (uint64_t n = 1; n <= 400; n++) {
		parcel_init(&parcel, n, OB_STR_NULL, OB_STR("{}"));
		sink_push(sink, &parcel.delivery, &tally);
	}
	sink_drain(sink, &tally, 400);
	ck_assert_uint_eq(tally.confirmed, 400);
	ck_assert_uint_le(http_receiver_connections(receiver), 4);
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

/* ---- the receiver asks for patience ---------------------------------- */

OB_TEST(retry_after_is_obeyed_up_to_the_maximum)
{
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, "retry_after_max", "1s");
	struct ob_err err = OB_ERR_INIT;
	struct parcel parcel;

	http_receiver_answer(receiver, &(struct http_answer){ .status = 429,
							      .headers = "Retry-After: 100\r\n",
							      .times = 1 });
	int64_t start = ob_clock_boot_us(&ob_clock_system);
	ck_assert_int_eq(try_one(sink).kind, OB_ERR_DOWN);
	parcel_init(&parcel, 2, OB_STR_NULL, OB_STR("{}"));
	ck_assert_int_lt(ob_sink_send(sink, &parcel.delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_str_eq(err.msg, "the receiver asked to be left alone for 1 s more (Retry-After)");
	while (ob_sink_open(sink, &err) < 0) {
		ck_assert_int_eq(err.kind, OB_ERR_DOWN);
		(void)poll(NULL, 0, 20);
	}
	ck_assert_int_ge(ob_clock_boot_us(&ob_clock_system) - start, 1000000);
	ck_assert_int_eq(try_one(sink).kind, OB_ERR_NONE);
	ck_assert_uint_eq(http_receiver_count(receiver), 2);
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

OB_TEST(a_retry_after_beyond_all_numbers_is_cut_to_the_maximum)
{
	static const char *const headers[] = {
		"Retry-After: 9223372036854775808\r\n",
		"retry-after:\t99999999999999999999999999999999\r\n",
		"Retry-After: 9223372036854775807\r\n",
	};
	struct http_receiver *receiver = http_receiver_new();

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		struct ob_sink *sink = make(receiver, "retry_after_max", "60s");
		struct ob_err err = OB_ERR_INIT;

		http_receiver_answer(receiver,
				     &(struct http_answer){ .status = 503, .headers = headers[i] });
		ck_assert_int_eq(try_one(sink).kind, OB_ERR_DOWN);
		ck_assert_int_lt(ob_sink_open(sink, &err), 0);
		ck_assert_ptr_nonnull(strstr(err.msg, "left alone for "));
		ob_sink_free(sink);
	}
	http_receiver_free(receiver);
}
OB_TEST_END

OB_TEST(an_endpoint_that_is_gone_pauses_the_sink)
{
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, NULL, NULL);
	struct ob_err err = OB_ERR_INIT;
	struct parcel parcel;

	http_receiver_answer(receiver, &(struct http_answer){ .status = 410 });
	err = try_one(sink);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_str_eq(err.native, "410");
	ck_assert_ptr_nonnull(strstr(err.msg, "the endpoint is gone"));
	ck_assert_int_lt(ob_sink_open(sink, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_ptr_nonnull(strstr(err.msg, "the endpoint is gone"));
	parcel_init(&parcel, 2, OB_STR_NULL, OB_STR("{}"));
	ck_assert_int_lt(ob_sink_send(sink, &parcel.delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_uint_eq(http_receiver_count(receiver), 1);
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

/* svix's verify() refuses an empty body. */
OB_TEST(a_tombstone_is_null_where_the_option_says_so)
{
	const char *secrets[] = { SECRET_1 };
	const struct ob_opt_value options[] = { { "allow_private", "true" },
						{ "secret", SECRET_1 },
						{ "tombstone", "json_null" } };
	struct http_receiver *receiver = http_receiver_new();
	struct ob_err err = OB_ERR_INIT;
	struct parcel parcel;
	char url[64];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/", http_receiver_port(receiver));
	struct ob_sink *sink = make_url(url, options, 3);
	ck_assert_msg(ob_sink_open(sink, &err) == 0, "%s", err.msg);
	parcel_init(&parcel, 2, OB_STR_NULL, OB_STR_NULL);
	send_parcel(sink, &parcel);
	ck_assert_int_eq(outcome(sink).kind, OB_ERR_NONE);
	struct http_request_seen seen = http_receiver_get(receiver, 0);
	ck_assert_str_eq(seen.body, "null");
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\ncontent-type: application/json\r\n"));
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\noutbox-tombstone: 1\r\n"));
	check_signature(&seen, secrets, 1);
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

OB_TEST(retry_after_can_be_ignored_and_means_nothing_elsewhere)
{
	static const char header[] = "Retry-After: 100\r\n";
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, "retry_after_max", "0");
	struct ob_err err = OB_ERR_INIT;

	http_receiver_answer(receiver, &(struct http_answer){ .status = 503, .headers = header });
	ck_assert_int_eq(try_one(sink).kind, OB_ERR_DOWN);
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	ob_sink_free(sink);
	sink = make(receiver, NULL, NULL);
	http_receiver_answer(receiver, &(struct http_answer){ .status = 500, .headers = header });
	ck_assert_int_eq(try_one(sink).kind, OB_ERR_RETRY);
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

OB_TEST(a_redirect_is_not_followed)
{
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, NULL, NULL);

	http_receiver_answer(
		receiver, &(struct http_answer){ .status = 307, .headers = "Location: /new\r\n" });
	struct ob_err err = try_one(sink);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_ptr_nonnull(
		strstr(err.msg, "redirects are not followed, the new address is at http://"));
	ck_assert_ptr_null(strstr(err.msg, "/new"));
	ck_assert_uint_eq(http_receiver_count(receiver), 1);
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

/* ---- receivers that misbehave ---------------------------------------- */

OB_TEST(whatever_a_receiver_does_there_is_an_outcome)
{
	static const struct {
		enum http_manner manner;
		int status;
		enum ob_err_kind kind;
	} cases[] = {
		{ HTTP_CUT, 0, OB_ERR_DOWN },           { HTTP_CUT_HEAD, 0, OB_ERR_DOWN },
		{ HTTP_CUT_BODY, 200, OB_ERR_NONE },    { HTTP_CUT_BODY, 500, OB_ERR_RETRY },
		{ HTTP_MUTE, 0, OB_ERR_RETRY },         { HTTP_SLOW_BODY, 200, OB_ERR_NONE },
		{ HTTP_SLOW_BODY, 400, OB_ERR_REJECT }, { HTTP_ENDLESS, 200, OB_ERR_NONE },
		{ HTTP_ENDLESS, 503, OB_ERR_DOWN },     { HTTP_LONG_HEAD, 0, OB_ERR_RETRY },
		{ HTTP_INTERIM, 200, OB_ERR_NONE },     { HTTP_BAD_CHUNK, 200, OB_ERR_NONE },
		{ HTTP_BAD_CHUNK, 404, OB_ERR_DOWN },   { HTTP_NO_HEAD, 0, OB_ERR_DOWN },
		{ HTTP_EARLY, 200, OB_ERR_NONE },
	};
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, "timeout", "400ms");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		http_receiver_answer(receiver, &(struct http_answer){ .manner = cases[i].manner,
								      .status = cases[i].status });
		struct ob_err err = try_one(sink);

		ck_assert_msg(err.kind == cases[i].kind, "case %zu: kind %d: %s", i, err.kind,
			      err.msg);
		http_receiver_answer(receiver, &(struct http_answer){ 0 });
		ck_assert_int_eq(try_one(sink).kind, OB_ERR_NONE);
	}
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

OB_TEST(an_answer_before_a_large_body_is_read_counts_by_its_status)
{
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, NULL, NULL);
	struct parcel parcel;
	char *body = calloc(1, 8 << 20);

	parcel_init(&parcel, 1, OB_STR_NULL, (struct ob_str){ body, 8 << 20 });
	http_receiver_answer(receiver,
			     &(struct http_answer){ .manner = HTTP_EARLY, .status = 413 });
	send_parcel(sink, &parcel);
	struct ob_err err = outcome(sink);
	/* closing with unread bytes resets the connection: the answer may be lost with it */
	ck_assert(err.kind == OB_ERR_REJECT || err.kind == OB_ERR_DOWN);
	ob_sink_free(sink);
	free(body);
	http_receiver_free(receiver);
}
OB_TEST_END

OB_TEST(nobody_there_is_down)
{
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, NULL, NULL);

	http_receiver_stop(receiver);
	ck_assert_int_eq(try_one(sink).kind, OB_ERR_DOWN);
	http_receiver_start(receiver);
	ck_assert_int_eq(try_one(sink).kind, OB_ERR_NONE);
	ob_sink_free(sink);
	sink = make_url("https://no-such-host.invalid/", NULL, 0);
	struct ob_err err = OB_ERR_INIT;
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	ck_assert_int_eq(try_one(sink).kind, OB_ERR_DOWN);
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

/* ---- the receiver is killed ------------------------------------------ */

enum { FLOW = 2000 };

struct flow {
	struct parcel parcels[FLOW];
	uint8_t done[FLOW];
	size_t confirmed, down, next;
};

static void flow_round(struct flow *flow, struct ob_sink *sink, size_t *queue, size_t *queued)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack acks[16];

	while (*queued > 0 &&
	       ob_sink_send(sink, &flow->parcels[queue[*queued - 1]].delivery, &err) == 0)
		(*queued)--;
	int n = ob_sink_poll(sink, 50, acks, 16, &err);
	for (int i = 0; i < n; i++) {
		if (acks[i].err.kind == OB_ERR_NONE) {
			ck_assert_uint_eq(flow->done[acks[i].tag]++, 0);
			flow->confirmed++;
			continue;
		}
		ck_assert_msg(acks[i].err.kind == OB_ERR_DOWN, "%s", acks[i].err.msg);
		flow->down++;
		queue[(*queued)++] = acks[i].tag;
		ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	}
}

OB_TEST(nothing_is_lost_when_the_receiver_is_killed_three_times)
{
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, NULL, NULL);
	struct flow *flow = calloc(1, sizeof(*flow));
	size_t *queue = calloc(FLOW, sizeof(*queue)), queued = FLOW, kills = 0;
	uint8_t *arrived = calloc(FLOW, 1);

	for (size_t i = 0; i < FLOW; i++) {
		parcel_init(&flow->parcels[i], i, OB_STR_NULL, OB_STR("{}"));
		queue[i] = i;
	}
	while (flow->confirmed < FLOW) {
		flow_round(flow, sink, queue, &queued);
		if (kills < 3 && flow->confirmed > (kills + 1) * FLOW / 4) {
			kills++;
			http_receiver_stop(receiver);
			size_t down = flow->down;
			while (flow->down == down)
				flow_round(flow, sink, queue, &queued);
			http_receiver_start(receiver);
		}
	}
	ck_assert_uint_eq(kills, 3);
	for (size_t i = 0; i < http_receiver_count(receiver); i++) {
		struct http_request_seen seen = http_receiver_get(receiver, i);
		char *id = http_header(&seen, "webhook-id", NULL);

		arrived[strtoul(id + 24, NULL, 16)] = 1;
		free(id);
	}
	for (size_t i = 0; i < FLOW; i++)
		ck_assert(arrived[i]);
	ob_sink_free(sink);
	free(arrived);
	free(queue);
	free(flow);
	http_receiver_free(receiver);
}
OB_TEST_END

OB_SUITE("http sink", every_status_has_its_meaning, the_answer_is_in_the_error_as_one_safe_line,
	 connections_are_kept, retry_after_is_obeyed_up_to_the_maximum,
	 a_retry_after_beyond_all_numbers_is_cut_to_the_maximum,
	 an_endpoint_that_is_gone_pauses_the_sink, a_tombstone_is_null_where_the_option_says_so,
	 retry_after_can_be_ignored_and_means_nothing_elsewhere, a_redirect_is_not_followed,
	 whatever_a_receiver_does_there_is_an_outcome,
	 an_answer_before_a_large_body_is_read_counts_by_its_status, nobody_there_is_down,
	 nothing_is_lost_when_the_receiver_is_killed_three_times)
