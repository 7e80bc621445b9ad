/* SPDX-License-Identifier: MIT */
/* The http sink with several messages in one request. */
#include "base/json.h"
#include "run.h"
#include "sink_http_fixture.h"

#include <stdlib.h>

enum { MANY = 300 };

struct fixture {
	struct http_receiver *receiver;
	struct ob_sink *sink;
	struct parcel parcels[MANY];
	uint8_t confirmed[MANY], failed[MANY]; /* outcomes by message */
	size_t outcomes;
	struct ob_err last; /* the last failure */
};

/* A sink with these options more, up to a NULL. */
static void begin(struct fixture *f, const struct ob_opt_value *more)
{
	struct ob_opt_value options[6] = { { "allow_private", "true" }, { "timeout", "60s" } };
	struct ob_err err = OB_ERR_INIT;
	size_t count = 2;
	char url[64];

	*f = (struct fixture){ .receiver = http_receiver_new() };
	for (; more->name; more++)
		options[count++] = *more;
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/", http_receiver_port(f->receiver));
	f->sink = make_url(url, options, count);
	ck_assert_msg(ob_sink_open(f->sink, &err) == 0, "%s", err.msg);
}

#define BEGIN(f, ...) begin(f, (const struct ob_opt_value[]){ __VA_ARGS__, { NULL, NULL } })

static void end(struct fixture *f)
{
	ob_sink_free(f->sink);
	http_receiver_free(f->receiver);
}

static void push(struct fixture *f, size_t n, struct ob_str body)
{
	parcel_init(&f->parcels[n], n, OB_STR_NULL, body);
	send_parcel(f->sink, &f->parcels[n]);
}

static void push_some(struct fixture *f, size_t from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		push(f, from + i, OB_STR("{}"));
}

static void answer(struct fixture *f, int status, const char *holding)
{
	http_receiver_answer(f->receiver,
			     &(struct http_answer){ .status = status, .holding = holding });
}

/* Poll once, for at most `max` outcomes. */
static void poll_once(struct fixture *f, int timeout_ms, size_t max)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack acks[MANY];
	int n = ob_sink_poll(f->sink, timeout_ms, acks, max, &err);

	ck_assert_msg(n >= 0, "%s", err.msg);
	for (int i = 0; i < n; i++) {
		if (acks[i].err.kind == OB_ERR_NONE) {
			f->confirmed[acks[i].tag]++;
		} else {
			f->failed[acks[i].tag]++;
			f->last = acks[i].err;
		}
	}
	f->outcomes += (size_t)n;
}

/* Until there are so many outcomes in all; and no more than these. */
static void drain(struct fixture *f, size_t outcomes)
{
	int64_t deadline = ob_clock_boot_us(&ob_clock_system) + 60000000;

	while (f->outcomes < outcomes && ob_clock_boot_us(&ob_clock_system) < deadline)
		poll_once(f, 1000, MANY);
	poll_once(f, 0, MANY);
	ck_assert_uint_eq(f->outcomes, outcomes);
}

static size_t count_in(const struct http_request_seen *seen, const char *text)
{
	size_t count = 0;

	for (const char *at = seen->body; (at = strstr(at, text)); at++)
		count++;
	return count;
}

/* How many messages request number `at` has; it must be an array. */
static size_t size_of(struct fixture *f, size_t at)
{
	struct http_request_seen seen = http_receiver_get(f->receiver, at);

	ck_assert_msg(ob_json_valid((struct ob_str){ seen.body, seen.body_size }, NULL), "%.500s",
		      seen.body);
	ck_assert(seen.body[0] == '[' && seen.body[seen.body_size - 1] == ']');
	return count_in(&seen, "{\"id\":");
}

/* The sizes of all requests, joined: "3 3 1"; in memory that the next call reuses. */
static const char *sizes(struct fixture *f)
{
	static char text[1000];
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < http_receiver_count(f->receiver); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%zu",
					 i > 0 ? " " : "", size_of(f, i));
	return text;
}

static char *id_of(struct fixture *f, size_t at)
{
	struct http_request_seen seen = http_receiver_get(f->receiver, at);

	return http_header(&seen, "webhook-id", NULL);
}

/* ---- one request ----------------------------------------------------- */

/* What another implementation reads in it. */
static void check_content(const struct http_request_seen *seen)
{
	static const char script[] =
		"import sys,json,base64\n"
		"for m in json.load(sys.stdin):\n"
		"  b=m.get('payload_base64')\n"
		"  print(int(m['id'][-12:],16),m['destination'],m.get('key'),m['event_type'],\n"
		"    m.get('payload'),base64.b64decode(b) if b else b,m.get('tombstone'),\n"
		"    m.get('headers'),sep='|')\n";
	const char *const argv[] = { "/usr/bin/env", "python3", "-c", script, NULL };
	struct ob_run run = { .argv = argv, .in = seen->body, .in_size = seen->body_size };

	ob_run(&run);
	ck_assert_msg(run.code == 0, "%s", run.err);
	ck_assert_str_eq(run.out,
			 "0|orders|k 0|OrderPlaced|{'n': [1, ']', '},{']}|None|None|None\n"
			 "1|orders|None|OrderPlaced|None|b'\\x00\\xff['|None|None\n"
			 "2|orders|None|OrderPlaced|None|None|True|None\n"
			 "3|orders|None|OrderPlaced|{}|None|None|{'tenant': 'a'}\n");
	ob_run_done(&run);
}

OB_TEST(messages_that_wait_go_in_one_request)
{
	const struct ob_header header = { OB_STR("tenant"), OB_STR("a"), false };
	const char *secrets[] = { SECRET_1, SECRET_2 };
	struct fixture f;

	BEGIN(&f, { "batch", "10" }, { "secret", SECRET_1 " " SECRET_2 });
	parcel_init(&f.parcels[0], 0, OB_STR("k 0"), OB_STR("{\"n\":\n[1,\"]\",\"},{\"]}"));
	send_parcel(f.sink, &f.parcels[0]);
	parcel_init(&f.parcels[1], 1, OB_STR_NULL, OB_STR("\0\xff["));
	f.parcels[1].delivery.content_type = OB_STR("application/octet-stream");
	send_parcel(f.sink, &f.parcels[1]);
	push(&f, 2, OB_STR_NULL);
	parcel_init(&f.parcels[3], 3, OB_STR_NULL, OB_STR("{}"));
	f.parcels[3].delivery.headers = &header;
	f.parcels[3].delivery.header_count = 1;
	send_parcel(f.sink, &f.parcels[3]);
	ck_assert_uint_eq(http_receiver_count(f.receiver), 0);
	drain(&f, 4);
	for (size_t i = 0; i < 4; i++)
		ck_assert_uint_eq(f.confirmed[i], 1);
	ck_assert_uint_eq(http_receiver_count(f.receiver), 1);
	struct http_request_seen seen = http_receiver_get(f.receiver, 0);
	check_content(&seen);
	check_signature(&seen, secrets, 2);
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\ncontent-type: application/json\r\n"));
	ck_assert_ptr_null(strstr(seen.head, "outbox-"));
	end(&f);
}
OB_TEST_END

/* The batch mode of CloudEvents: an array of events, not of our own objects. */
OB_TEST(structured_events_go_as_a_batch_of_events)
{
	static const char *const events[] = { "{\"specversion\":\"1.0\",\"id\":\"0\"}",
					      "{\"specversion\":\"1.0\",\"id\":\"1\"}" };
	struct fixture f;

	BEGIN(&f, { "batch", "10" });
	for (size_t i = 0; i < 2; i++) {
		parcel_init(&f.parcels[i], i, OB_STR_NULL, ob_str(events[i]));
		f.parcels[i].delivery.content_type = OB_STR("application/cloudevents+json");
		send_parcel(f.sink, &f.parcels[i]);
	}
	push(&f, 2, OB_STR("{}")); /* no event: a request of its own */
	drain(&f, 3);
	ck_assert_uint_eq(http_receiver_count(f.receiver), 2);
	for (size_t i = 0; i < 2; i++) {
		struct http_request_seen seen = http_receiver_get(f.receiver, i);
		bool is_batch = strstr(seen.head, "application/cloudevents-batch+json") != NULL;

		if (is_batch)
			ck_assert_str_eq(seen.body,
					 "[{\"specversion\":\"1.0\",\"id\":\"0\"},"
					 "{\"specversion\":\"1.0\",\"id\":\"1\"}]");
		else
			ck_assert_ptr_nonnull(strstr(seen.head, "application/json"));
	}
	end(&f);
}
OB_TEST_END

OB_TEST(a_batch_of_one_is_no_array)
{
	struct fixture f;

	BEGIN(&f, { "batch", "1" });
	push(&f, 0, OB_STR("{\"n\":1}"));
	push(&f, 1, OB_STR("{\"n\":1}"));
	drain(&f, 2);
	ck_assert_uint_eq(http_receiver_count(f.receiver), 2);
	for (size_t i = 0; i < 2; i++) {
		struct http_request_seen seen = http_receiver_get(f.receiver, i);

		ck_assert_str_eq(seen.body, "{\"n\":1}");
		ck_assert_ptr_nonnull(strstr(seen.head, "\r\noutbox-destination: orders\r\n"));
	}
	end(&f);
}
OB_TEST_END

OB_TEST(the_same_messages_have_the_same_webhook_id_and_no_others_have_it)
{
	static const size_t sets[][3] = { { 0, 1, 2 }, { 0, 1, 2 }, { 0, 1, 3 }, { 0, 2, 1 } };
	struct fixture f;
	char *ids[4];

	BEGIN(&f, { "batch", "10" });
	for (size_t i = 0; i < 4; i++) {
		for (size_t j = 0; j < 3; j++)
			push(&f, sets[i][j], OB_STR("{}"));
		drain(&f, 3 * (i + 1));
		ids[i] = id_of(&f, i);
		ck_assert_uint_eq(strlen(ids[i]), strlen("batch-") + 32);
		ck_assert(strncmp(ids[i], "batch-", 6) == 0);
	}
	ck_assert_str_eq(ids[0], ids[1]);
	ck_assert_str_ne(ids[0], ids[2]);
	ck_assert_str_ne(ids[0], ids[3]);
	push(&f, 7, OB_STR("{}"));
	drain(&f, 13);
	char *alone = id_of(&f, 4), expected[OB_UUID_TEXT_SIZE];
	ob_uuid_format(&f.parcels[7].message.id, expected);
	ck_assert_str_eq(alone, expected);
	ck_assert_uint_eq(size_of(&f, 4), 1);
	for (size_t i = 0; i < 4; i++)
		free(ids[i]);
	free(alone);
	end(&f);
}
OB_TEST_END

/* ---- limits ---------------------------------------------------------- */

OB_TEST(a_batch_holds_no_more_than_it_may)
{
	struct fixture f;
	char text[600];

	BEGIN(&f, { "batch", "3" }, { "window", "1" });
	struct ob_err err = OB_ERR_INIT;
	push_some(&f, 0, 3);
	parcel_init(&f.parcels[3], 3, OB_STR_NULL, OB_STR("{}"));
	ck_assert_int_eq(ob_sink_send(f.sink, &f.parcels[3].delivery, &err), OB_SINK_FULL);
	drain(&f, 3);
	push_some(&f, 3, 1);
	drain(&f, 4);
	ck_assert_str_eq(sizes(&f), "3 1");
	end(&f);

	BEGIN(&f, { "batch", "100" }, { "batch_bytes", "1KB" }, { "window", "1" });
	memset(text, '1', sizeof(text));
	for (size_t i = 0; i < 3; i++) {
		parcel_init(&f.parcels[i], i, OB_STR_NULL, (struct ob_str){ text, 200 });
		if (i < 2)
			send_parcel(f.sink, &f.parcels[i]);
	}
	ck_assert_int_eq(ob_sink_send(f.sink, &f.parcels[2].delivery, &err), OB_SINK_FULL);
	drain(&f, 2);
	struct http_request_seen seen = http_receiver_get(f.receiver, 0);
	ck_assert_uint_le(seen.body_size, 1024);
	push(&f, 3, (struct ob_str){ text, sizeof(text) });
	push(&f, 4, OB_STR("1"));
	drain(&f, 4);
	ck_assert_str_eq(sizes(&f), "2 2");
	end(&f);
}
OB_TEST_END

OB_TEST(a_message_larger_than_a_batch_goes_alone)
{
	struct fixture f;
	char text[3000];

	BEGIN(&f, { "batch", "100" }, { "batch_bytes", "1KB" }, { "window", "3" });
	memset(text, '1', sizeof(text));
	push(&f, 0, OB_STR("1"));
	push(&f, 1, (struct ob_str){ text, sizeof(text) });
	push(&f, 2, OB_STR("1"));
	drain(&f, 3);
	ck_assert_str_eq(sizes(&f), "1 1 1");
	end(&f);
}
OB_TEST_END

OB_TEST(options_out_of_range_are_refused)
{
	static const struct ob_opt_value bad[] = {
		{ "batch", "0" },
		{ "batch", "1001" },
		{ "batch_bytes", "1023" },
		{ "batch_bytes", "17MB" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct ob_opt_value options[] = { { "url", "https://example.com/" }, bad[i] };
		struct ob_err err = OB_ERR_INIT;

		ck_assert_int_lt(ob_sink_check(&ob_sink_http, options, 2, &err), 0);
		ck_assert_ptr_nonnull(strstr(err.msg, bad[i].name));
	}
}
OB_TEST_END

/* A batch that fails does not tell who is to blame. */
OB_TEST(a_message_that_has_failed_before_goes_alone)
{
	struct fixture f;

	BEGIN(&f, { "batch", "10" });
	push_some(&f, 0, 2);
	parcel_init(&f.parcels[2], 2, OB_STR_NULL, OB_STR("{}"));
	f.parcels[2].message.attempts = 1;
	send_parcel(f.sink, &f.parcels[2]);
	push_some(&f, 3, 3);
	drain(&f, 6);
	size_t alone = 0;
	for (size_t i = 0; i < http_receiver_count(f.receiver); i++) {
		struct http_request_seen seen = http_receiver_get(f.receiver, i);

		if (strstr(seen.body, "000002\","))
			alone = size_of(&f, i);
	}
	ck_assert_uint_eq(alone, 1);
	ck_assert_uint_eq(http_receiver_count(f.receiver), 3);
	end(&f);
}
OB_TEST_END

/* ---- failures -------------------------------------------------------- */

OB_TEST(a_failure_is_that_of_every_message)
{
	static const struct {
		enum http_manner manner;
		int status;
		enum ob_err_kind kind;
	} cases[] = {
		{ HTTP_PLAIN, 500, OB_ERR_RETRY }, { HTTP_PLAIN, 409, OB_ERR_RETRY },
		{ HTTP_PLAIN, 404, OB_ERR_DOWN },  { HTTP_PLAIN, 503, OB_ERR_DOWN },
		{ HTTP_CUT, 0, OB_ERR_DOWN },
	};
	struct fixture f;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		BEGIN(&f, { "batch", "10" });
		http_receiver_answer(f.receiver,
				     &(struct http_answer){ .manner = cases[i].manner,
							    .status = cases[i].status });
		push_some(&f, 0, 5);
		drain(&f, 5);
		for (size_t j = 0; j < 5; j++)
			ck_assert_uint_eq(f.failed[j], 1);
		ck_assert_int_eq(f.last.kind, cases[i].kind);
		ck_assert_str_eq(sizes(&f), "5");
		end(&f);
	}
}
OB_TEST_END

OB_TEST(only_what_is_refused_is_rejected)
{
	static const int statuses[] = { 400, 413, 422 };
	struct fixture f;

	for (size_t s = 0; s < 3; s++) {
		BEGIN(&f, { "batch", "100" });
		answer(&f, statuses[s], "bad");
		for (size_t i = 0; i < 100; i++)
			push(&f, i, i == 17 || i == 99 ? OB_STR("{\"a\":\"bad\"}") : OB_STR("{}"));
		drain(&f, 100);
		for (size_t i = 0; i < 100; i++) {
			bool bad = i == 17 || i == 99;

			ck_assert_uint_eq(f.confirmed[i], !bad);
			ck_assert_uint_eq(f.failed[i], bad);
		}
		ck_assert_int_eq(f.last.kind, OB_ERR_REJECT);
		ck_assert_uint_lt(http_receiver_count(f.receiver), 50);
		for (size_t i = 0; i < http_receiver_count(f.receiver); i++)
			ck_assert_uint_le(size_of(&f, i), i == 0 ? 100 : 50);
		end(&f);
	}
}
OB_TEST_END

OB_TEST(a_batch_that_is_too_large_for_the_receiver_goes_in_halves)
{
	struct fixture f;

	BEGIN(&f, { "batch", "100" });
	http_receiver_answer(f.receiver, &(struct http_answer){ .status = 413, .times = 1 });
	push_some(&f, 0, 7);
	drain(&f, 7);
	for (size_t i = 0; i < 7; i++)
		ck_assert_uint_eq(f.confirmed[i], 1);
	ck_assert_str_eq(sizes(&f), "7 3 4");
	end(&f);
}
OB_TEST_END

OB_TEST(when_all_are_refused_all_are_rejected)
{
	struct fixture f;

	BEGIN(&f, { "batch", "8" });
	answer(&f, 400, NULL);
	push_some(&f, 0, 8);
	drain(&f, 8);
	for (size_t i = 0; i < 8; i++)
		ck_assert_uint_eq(f.failed[i], 1);
	ck_assert_int_eq(f.last.kind, OB_ERR_REJECT);
	end(&f);
}
OB_TEST_END

OB_TEST(an_outage_between_the_halves_gives_back_the_rest)
{
	struct fixture f;

	BEGIN(&f, { "batch", "8" });
	http_receiver_answer(f.receiver, &(struct http_answer){ .status = 400, .times = 2 });
	push_some(&f, 0, 8);
	while (f.outcomes == 0)
		poll_once(&f, 1000, MANY);
	ck_assert_uint_eq(f.outcomes, 2); /* the next piece goes out with the next poll() */
	answer(&f, 503, NULL);
	drain(&f, 8);
	ck_assert_int_eq(f.last.kind, OB_ERR_DOWN);
	for (size_t i = 0; i < 8; i++)
		ck_assert_uint_eq(f.failed[i], i >= 2);
	ck_assert_str_eq(sizes(&f), "8 4 2 4");
	end(&f);
}
OB_TEST_END

OB_TEST(what_is_forgotten_is_not_sent)
{
	struct fixture f;

	BEGIN(&f, { "batch", "8" });
	push_some(&f, 0, 3);
	ob_sink_reset(f.sink);
	drain(&f, 0);
	http_receiver_answer(f.receiver, &(struct http_answer){ .status = 400, .times = 1 });
	push_some(&f, 3, 8);
	while (f.outcomes == 0)
		poll_once(&f, 1000, 1);
	ob_sink_reset(f.sink); /* in the middle of a half's outcomes */
	drain(&f, 1);
	push_some(&f, 20, 2);
	drain(&f, 3);
	ck_assert_str_eq(sizes(&f), "8 4 2");
	end(&f);
}
OB_TEST_END

/* Whatever is accepted, refused and fetched when: one outcome each, and the right one. */
OB_TEST(every_message_has_its_own_outcome)
{
	struct fixture f;
	unsigned seed = 7;
	size_t sent = 0;

	BEGIN(&f, { "batch", "16" }, { "window", "3" });
	answer(&f, 422, "bad");
	while (f.outcomes < MANY) {
		struct ob_err err = OB_ERR_INIT;

		for (int n = rand_r(&seed) % 40; n > 0 && sent < MANY; n--, sent++) {
			parcel_init(&f.parcels[sent], sent, OB_STR_NULL,
				    sent % 13 == 5 ? OB_STR("\"bad\"") : OB_STR("1"));
			f.parcels[sent].message.attempts = sent % 29 == 3;
			int r = ob_sink_send(f.sink, &f.parcels[sent].delivery, &err);
			ck_assert_msg(r >= 0, "%s", err.msg);
			if (r == OB_SINK_FULL)
				break;
		}
		poll_once(&f, rand_r(&seed) % 20, 1 + (size_t)rand_r(&seed) % 9);
	}
	drain(&f, MANY);
	for (size_t i = 0; i < MANY; i++) {
		ck_assert_uint_eq(f.failed[i], i % 13 == 5);
		ck_assert_uint_eq(f.confirmed[i], i % 13 != 5);
	}
	ck_assert_uint_le(http_receiver_connections(f.receiver), 3);
	end(&f);
}
OB_TEST_END

OB_SUITE("http sink: batches", messages_that_wait_go_in_one_request,
	 structured_events_go_as_a_batch_of_events, a_batch_of_one_is_no_array,
	 the_same_messages_have_the_same_webhook_id_and_no_others_have_it,
	 a_batch_holds_no_more_than_it_may, a_message_larger_than_a_batch_goes_alone,
	 options_out_of_range_are_refused, a_message_that_has_failed_before_goes_alone,
	 a_failure_is_that_of_every_message, only_what_is_refused_is_rejected,
	 a_batch_that_is_too_large_for_the_receiver_goes_in_halves,
	 when_all_are_refused_all_are_rejected, an_outage_between_the_halves_gives_back_the_rest,
	 what_is_forgotten_is_not_sent, every_message_has_its_own_outcome)
