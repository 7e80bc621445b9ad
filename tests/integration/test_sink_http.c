/* SPDX-License-Identifier: MIT */
/* The http sink and a receiver that answers everything a receiver may answer. */
#include "http_receiver.h"
#include "run.h"
#include "sink/http_addr.h"
#include "sink_harness.h"
#include "suite.h"

#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#define SECRET_1 "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
#define SECRET_2 "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXphYmNkZWY="

static struct ob_sink *make_url(const char *url, const struct ob_opt_value *more, size_t count)
{
	struct ob_opt_value options[8] = { { "url", url } };
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;

	(void)signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < count; i++)
		options[i + 1] = more[i];
	int r = ob_sink_new(&ob_sink_http, options, count + 1, &ob_clock_system, &sink, &err);
	ck_assert_msg(r == 0, "%s", err.msg);
	return sink;
}

/* To the receiver, with one more option; opened. */
static struct ob_sink *make(const struct http_receiver *receiver, const char *name,
			    const char *value)
{
	const struct ob_opt_value options[] = { { "allow_private", "true" }, { name, value } };
	struct ob_err err = OB_ERR_INIT;
	char url[64];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/hook?token=x",
		       http_receiver_port(receiver));
	struct ob_sink *sink = make_url(url, options, name ? 2 : 1);
	ck_assert_msg(ob_sink_open(sink, &err) == 0, "%s", err.msg);
	return sink;
}

static void send_parcel(struct ob_sink *sink, const struct parcel *parcel)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_sink_send(sink, &parcel->delivery, &err) == 0, "%s", err.msg);
}

static struct ob_err outcome(struct ob_sink *sink)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack ack = { 0 };
	int r = 0;

	for (int i = 0; i < 20 && r == 0; i++)
		r = ob_sink_poll(sink, 1000, &ack, 1, &err);
	ck_assert_int_eq(r, 1);
	return ack.err;
}

/* Send one; its outcome. */
static struct ob_err try_one(struct ob_sink *sink)
{
	struct parcel parcel;

	parcel_init(&parcel, 1, OB_STR("k"), OB_STR("{\"n\":1}"));
	send_parcel(sink, &parcel);
	return outcome(sink);
}

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
	struct ob_sink *sink = make(receiver, NULL, NULL);
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

/* ---- signatures ------------------------------------------------------ */

/* What another implementation makes of it. */
static char *sign_elsewhere(const char *secret, const char *content, size_t size)
{
	static const char script[] =
		"import sys,hmac,hashlib,base64\n"
		"key=base64.b64decode(sys.argv[1][6:])\n"
		"mac=hmac.new(key,sys.stdin.buffer.read(),hashlib.sha256).digest()\n"
		"print('v1,'+base64.b64encode(mac).decode(),end='')\n";
	const char *const argv[] = { "/usr/bin/env", "python3", "-c", script, secret, NULL };
	struct ob_run run = { .argv = argv, .in = content, .in_size = size };

	ob_run(&run);
	ck_assert_int_eq(run.code, 0);
	char *signature = strdup(run.out);
	ob_run_done(&run);
	return signature;
}

static void check_signature(const struct http_request_seen *seen, const char *secrets[], size_t n)
{
	char *id = http_header(seen, "webhook-id", NULL);
	char *timestamp = http_header(seen, "webhook-timestamp", NULL);
	char *signature = http_header(seen, "webhook-signature", NULL);
	struct ob_buf content = OB_BUF_INIT(100000), expected = OB_BUF_INIT(1000);

	ck_assert(id && timestamp && signature);
	ob_buf_addf(&content, "%s.%s.", id, timestamp);
	ob_buf_add(&content, (struct ob_str){ seen->body, seen->body_size });
	for (size_t i = 0; i < n; i++) {
		char *one = sign_elsewhere(secrets[i], content.data, content.len);

		ob_buf_addf(&expected, "%s%s", i > 0 ? " " : "", one);
		free(one);
	}
	ck_assert_str_eq(signature, ob_buf_str(&expected));
	int64_t age = ob_clock_real_us(&ob_clock_system) / 1000000 - strtoll(timestamp, NULL, 10);
	ck_assert(age >= 0 && age < 30);
	free(id);
	free(timestamp);
	free(signature);
	ob_buf_done(&content);
	ob_buf_done(&expected);
}

OB_TEST(requests_are_signed_with_every_secret)
{
	const char *secrets[] = { SECRET_1, SECRET_2 };
	const struct ob_str bodies[] = { OB_STR("{\"n\":1}"), OB_STR("a\0b\xff"), OB_STR("") };
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, "secret", " " SECRET_1 "  " SECRET_2);
	struct parcel parcel;

	for (size_t i = 0; i < 3; i++) {
		parcel_init(&parcel, i, OB_STR_NULL, bodies[i]);
		send_parcel(sink, &parcel);
		ck_assert_int_eq(outcome(sink).kind, OB_ERR_NONE);
		struct http_request_seen seen = http_receiver_get(receiver, i);
		check_signature(&seen, secrets, 2);
	}
	ob_sink_free(sink);
	sink = make(receiver, NULL, NULL);
	ck_assert_int_eq(try_one(sink).kind, OB_ERR_NONE);
	struct http_request_seen seen = http_receiver_get(receiver, 3);
	ck_assert_ptr_null(http_header(&seen, "webhook-signature", NULL));
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

OB_TEST(bad_settings_are_fatal_at_open)
{
	static const struct {
		const char *url, *name, *value, *msg;
	} cases[] = {
		{ "nonsense://", NULL, NULL,
		  "url: it is no url, such as https://example.com/hook" },
		{ "ftp://example.com/", NULL, NULL, "url: it must begin with https://" },
		{ "https://u:p@example.com/", NULL, NULL,
		  "url: a user or password does not belong into it; use authorization" },
		{ "http://example.com/", NULL, NULL,
		  "url: http:// sends everything readable for others; use https://, or set "
		  "allow_http" },
		{ "http://10.0.0.1/", NULL, NULL,
		  "url: http:// sends everything readable for others; use https://, or set "
		  "allow_http" },
		{ "https://example.com/", "secret", "whsec_c2hvcnQ=",
		  "secret: number 1 is not whsec_ and 24 to 64 bytes in Base64 (make one: echo "
		  "whsec_$(openssl rand -base64 32))" },
		{ "https://example.com/", "secret",
		  SECRET_1 " whsec_!!EyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
		  "secret: number 2 is not whsec_ and 24 to 64 bytes in Base64 (make one: echo "
		  "whsec_$(openssl rand -base64 32))" },
		{ "https://example.com/", "authorization", "Bearer x\r\nEvil: 1",
		  "authorization: it holds something else than printable ASCII" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct ob_opt_value option = { cases[i].name, cases[i].value };
		struct ob_sink *sink = make_url(cases[i].url, &option, cases[i].name ? 1 : 0);
		struct ob_err err = OB_ERR_INIT;

		ck_assert_int_lt(ob_sink_open(sink, &err), 0);
		ck_assert_int_eq(err.kind, OB_ERR_FATAL);
		ck_assert_str_eq(err.msg, cases[i].msg);
		ob_sink_free(sink);
	}
}
OB_TEST_END

OB_TEST(tokens_are_not_described)
{
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, "authorization", "Bearer hush");
	struct ob_buf text = OB_BUF_INIT(1000);

	ob_sink_describe(sink, &text);
	ck_assert_ptr_null(strstr(ob_buf_str(&text), "token"));
	ck_assert_ptr_null(strstr(ob_buf_str(&text), "hush"));
	ck_assert_int_eq(try_one(sink).kind, OB_ERR_NONE);
	struct http_request_seen seen = http_receiver_get(receiver, 0);
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\nauthorization: Bearer hush\r\n"));
	ck_assert(strncmp(seen.head, "POST /hook?token=x HTTP/1.1\r\n", 29) == 0);
	ob_buf_done(&text);
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
		strstr(err.msg, "redirects are not followed, set the url to http://"));
	ck_assert_ptr_nonnull(strstr(err.msg, "/new"));
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

OB_TEST(a_proxy_of_the_environment_is_not_used)
{
	struct http_receiver *receiver = http_receiver_new();

	(void)setenv("http_proxy", "http://127.0.0.1:1/", 1);
	(void)setenv("all_proxy", "http://127.0.0.1:1/", 1);
	struct ob_sink *sink = make(receiver, NULL, NULL);
	ck_assert_int_eq(try_one(sink).kind, OB_ERR_NONE);
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

/* ---- headers --------------------------------------------------------- */

OB_TEST(nothing_in_a_message_can_add_a_header)
{
	static const struct ob_str evil = OB_STR("a\r\nX-Evil: 1\r\n\r\nPOST / HTTP/1.1\r\n\0b");
	const struct ob_header headers[] = {
		{ evil, evil },
		{ OB_STR("ce-\r\nX-Evil"), evil },
		{ OB_STR("traceparent"), evil },
		{ OB_STR("Host"), OB_STR("elsewhere") },
		{ OB_STR("Transfer-Encoding"), OB_STR("chunked") },
		{ OB_STR("Content-Length"), OB_STR("0") },
		{ OB_STR("authorization"), OB_STR("Bearer x") },
		{ OB_STR("tracestate"), OB_STR("a=1, b=%2") },
		{ OB_STR("ce-type"), OB_STR("a b%\"\xc3\xa9") },
		{ OB_STR(""), OB_STR("") },
	};
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, NULL, NULL);
	struct parcel parcel;

	parcel_init(&parcel, 1, evil, OB_STR("{}"));
	parcel.delivery.destination = parcel.delivery.content_type = evil;
	parcel.message.aggregate_type = parcel.message.event_type = evil;
	parcel.message.correlation_id = parcel.message.causation_id = evil;
	parcel.delivery.headers = headers;
	parcel.delivery.header_count = sizeof(headers) / sizeof(headers[0]);
	send_parcel(sink, &parcel);
	ck_assert_int_eq(outcome(sink).kind, OB_ERR_NONE);
	struct http_request_seen seen = http_receiver_get(receiver, 0);
	static const char *const absent[] = { "x-evil",        "traceparent",  "transfer-encoding",
					      "authorization", "content-type", "expect" };
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		ck_assert_ptr_null(http_header(&seen, absent[i], NULL));
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\nHost: 127.0.0.1"));
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\nContent-Length: 2\r\n"));
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\noutbox-header-Host: elsewhere\r\n"));
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\ntracestate: a=1, b=%2\r\n"));
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\nce-type: a%20b%25%22%C3%A9\r\n"));
	ck_assert_uint_eq(http_receiver_count(receiver), 1);
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

OB_TEST(headers_that_are_too_large_are_rejected)
{
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, NULL, NULL);
	char *key = calloc(1, 40000);
	struct ob_err err = OB_ERR_INIT;
	struct parcel parcel;

	memset(key, 'k', 40000);
	parcel_init(&parcel, 1, (struct ob_str){ key, 40000 }, OB_STR("{}"));
	ck_assert_int_lt(ob_sink_send(sink, &parcel.delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_REJECT);
	parcel.delivery.key.n = 20000;
	send_parcel(sink, &parcel);
	ck_assert_int_eq(outcome(sink).kind, OB_ERR_NONE);
	parcel.message.correlation_id = parcel.delivery.key;
	ck_assert_int_lt(ob_sink_send(sink, &parcel.delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_REJECT);
	ob_sink_free(sink);
	free(key);
	http_receiver_free(receiver);
}
OB_TEST_END

/* ---- addresses ------------------------------------------------------- */

static bool is_public(const char *text)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found = NULL;

	ck_assert_msg(getaddrinfo(text, NULL, &hints, &found) == 0, "%s", text);
	bool public = ob_http_addr_is_public(found->ai_addr);
	freeaddrinfo(found);
	return public;
}

OB_TEST(special_addresses_are_told_from_public_ones)
{
	static const char *const refused[] = {
		"0.0.0.0",
		"0.1.2.3",
		"10.0.0.1",
		"10.255.255.255",
		"100.64.0.1",
		"100.100.100.200",
		"100.127.255.255",
		"127.0.0.1",
		"127.255.255.255",
		"127.1",
		"0x7f.1",
		"0177.0.0.1",
		"2130706433",
		"0",
		"168.63.129.16",
		"169.254.169.254",
		"0xa9fea9fe",
		"172.16.0.1",
		"172.31.255.255",
		"192.0.0.192",
		"192.0.2.1",
		"192.88.99.1",
		"192.168.0.1",
		"198.18.0.1",
		"198.19.255.255",
		"198.51.100.1",
		"203.0.113.1",
		"224.0.0.1",
		"239.255.255.255",
		"240.0.0.1",
		"255.255.255.255",
		"::",
		"::1",
		"::127.0.0.1",
		"::8.8.8.8",
		"::ffff:127.0.0.1",
		"::ffff:7f00:1",
		"0:0:0:0:0:ffff:a9fe:a9fe",
		"::ffff:10.0.0.1",
		"64:ff9b::7f00:1",
		"64:ff9b::10.0.0.1",
		"64:ff9b:1::1",
		"100::1",
		"2001::1",
		"2001:1ff::1",
		"2001:db8::1",
		"2002:7f00:1::1",
		"2002:c0a8:1::1",
		"2002:a9fe:a9fe::1",
		"3fff::1",
		"3fff:fff::1",
		"4000::1",
		"fc00::1",
		"fd00:ec2::254",
		"fdff::1",
		"fe80::1",
		"fe80::1%lo",
		"febf::1",
		"fec0::1",
		"ff02::1",
		"ff0e::1",
	};
	static const char *const allowed[] = {
		"1.1.1.1",         "8.8.8.8",          "9.255.255.255",   "11.0.0.1",
		"100.63.255.255",  "100.128.0.0",      "126.255.255.255", "128.0.0.1",
		"168.63.129.17",   "169.253.255.255",  "169.255.0.0",     "172.15.255.255",
		"172.32.0.0",      "192.0.1.0",        "192.167.255.255", "192.169.0.0",
		"198.17.255.255",  "198.20.0.0",       "223.255.255.255", "134744072",
		"::ffff:8.8.8.8",  "64:ff9b::8.8.8.8", "2001:200::1",     "2001:4860:4860::8888",
		"2002:808:808::1", "2606:4700::1111",  "2a00::1",         "3ffe::1",
		"3fff:1000::1",
	};
	struct sockaddr local = { .sa_family = AF_UNIX };

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		ck_assert_msg(!is_public(refused[i]), "%s", refused[i]);
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		ck_assert_msg(is_public(allowed[i]), "%s", allowed[i]);
	ck_assert(!ob_http_addr_is_public(&local));
}
OB_TEST_END

OB_TEST(no_spelling_leads_to_this_machine)
{
	static const char *const hosts[] = {
		"127.0.0.1",
		"127.1",
		"127.0.1",
		"0x7f.1",
		"0x7f000001",
		"0177.0.0.1",
		"017700000001",
		"2130706433",
		"0",
		"0.0.0.0",
		"localhost",
		"LOCALHOST",
		"localhost.",
		"127.0.0.1.",
		"[::1]",
		"[::]",
		"[::ffff:127.0.0.1]",
		"[::ffff:7f00:1]",
		"[0:0:0:0:0:ffff:127.0.0.1]",
		"[::127.0.0.1]",
		"[64:ff9b::7f00:1]",
		"[2002:7f00:1::]",
		"169.254.169.254",
		"[fd00:ec2::254]",
		"10.0.0.1",
		"%31%32%37.0.0.1",
	};
	const struct ob_opt_value options[] = { { "allow_http", "true" },
						{ "connect_timeout", "2s" } };
	struct http_receiver *receiver = http_receiver_new();
	struct ob_err err = OB_ERR_INIT;
	char url[200];

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		(void)snprintf(url, sizeof(url), "http://%s:%d/", hosts[i],
			       http_receiver_port(receiver));
		struct ob_sink *sink = make_url(url, options, 2);
		ck_assert_msg(ob_sink_open(sink, &err) == 0, "%s: %s", url, err.msg);
		err = try_one(sink);
		ck_assert_int_eq(err.kind, OB_ERR_DOWN);
		/* some resolvers do not know a name with a dot behind it: just as well */
		ck_assert_msg(strstr(err.msg, "which is not a public address; set allow_private") ||
				      strstr(err.msg, "resolve"),
			      "%s: %s", url, err.msg);
		ob_sink_free(sink);
	}
	ck_assert_uint_eq(http_receiver_connections(receiver), 0);
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

/* ---- TLS ------------------------------------------------------------- */

/* An HTTPS receiver elsewhere: python, with a certificate of its own for localhost. */
static const char tls_server[] =
	"import http.server,os,ssl,sys\n"
	"class H(http.server.BaseHTTPRequestHandler):\n"
	"  protocol_version='HTTP/1.1'\n"
	"  def log_message(self,*a): pass\n"
	"  def do_POST(self):\n"
	"    self.rfile.read(int(self.headers['content-length']))\n"
	"    self.send_response(204); self.end_headers()\n"
	"s=http.server.ThreadingHTTPServer(('127.0.0.1',0),H)\n"
	"c=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain(sys.argv[1],sys.argv[2])\n"
	"s.socket=c.wrap_socket(s.socket,server_side=True)\n"
	"print(s.server_address[1],os.getpid(),flush=True)\n"
	"s.serve_forever()\n";

static void make_certificate(const char *cert, const char *key)
{
	const char *const argv[] = { "/usr/bin/env",
				     "openssl",
				     "req",
				     "-x509",
				     "-newkey",
				     "rsa:2048",
				     "-nodes",
				     "-days",
				     "1",
				     "-subj",
				     "/CN=x",
				     "-addext",
				     "subjectAltName=DNS:localhost",
				     "-keyout",
				     key,
				     "-out",
				     cert,
				     NULL };
	struct ob_run run = { .argv = argv };

	ob_run(&run);
	ck_assert_msg(run.code == 0, "%s", run.err);
	ob_run_done(&run);
}

static struct ob_err try_tls(const char *host, int port, const char *ca_file)
{
	const struct ob_opt_value options[] = { { "allow_private", "true" },
						{ "ca_file", ca_file } };
	struct ob_err err = OB_ERR_INIT;
	char url[64];

	(void)snprintf(url, sizeof(url), "https://%s:%d/", host, port);
	struct ob_sink *sink = make_url(url, options, ca_file ? 2 : 1);
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	err = try_one(sink);
	ob_sink_free(sink);
	return err;
}

OB_TEST(a_certificate_that_is_not_trusted_or_not_for_the_host_is_down)
{
	char dir[64], cert[96], key[96], command[400], line[32] = "";

	ob_temp_dir(dir);
	(void)snprintf(cert, sizeof(cert), "%s/cert.pem", dir);
	(void)snprintf(key, sizeof(key), "%s/key.pem", dir);
	make_certificate(cert, key);
	(void)setenv("TLS_SERVER", tls_server, 1);
	(void)snprintf(command, sizeof(command), "exec python3 -c \"$TLS_SERVER\" %s %s", cert,
		       key);
	FILE *server = popen(command, "r");
	ck_assert_ptr_nonnull(server);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), server));
	char *rest = NULL;
	int port = (int)strtol(line, &rest, 10);
	pid_t pid = (pid_t)strtol(rest, NULL, 10);
	ck_assert_int_gt(port, 0);
	struct ob_err err = try_tls("localhost", port, NULL);
	ck_assert_msg(err.kind == OB_ERR_DOWN && strstr(err.msg, "certificate"), "%s", err.msg);
	err = try_tls("localhost", port, cert);
	ck_assert_msg(err.kind == OB_ERR_NONE, "%s", err.msg);
	err = try_tls("127.0.0.1", port, cert);
	ck_assert_msg(err.kind == OB_ERR_DOWN && strstr(err.msg, "certificate"), "%s", err.msg);
	err = try_tls("localhost", port, key);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert(pid > 1 && kill(pid, SIGTERM) == 0);
	(void)pclose(server);
	ob_temp_dir_remove(dir);
}
OB_TEST_END

OB_SUITE("http sink", every_status_has_its_meaning, the_answer_is_in_the_error_as_one_safe_line,
	 connections_are_kept, requests_are_signed_with_every_secret,
	 bad_settings_are_fatal_at_open, tokens_are_not_described,
	 retry_after_is_obeyed_up_to_the_maximum,
	 retry_after_can_be_ignored_and_means_nothing_elsewhere, a_redirect_is_not_followed,
	 whatever_a_receiver_does_there_is_an_outcome,
	 an_answer_before_a_large_body_is_read_counts_by_its_status, nobody_there_is_down,
	 a_proxy_of_the_environment_is_not_used, nothing_in_a_message_can_add_a_header,
	 headers_that_are_too_large_are_rejected, special_addresses_are_told_from_public_ones,
	 no_spelling_leads_to_this_machine, nothing_is_lost_when_the_receiver_is_killed_three_times,
	 a_certificate_that_is_not_trusted_or_not_for_the_host_is_down)
