/* SPDX-License-Identifier: MIT */
/* See sink_http_fixture.h. */
#include "sink_http_fixture.h"

#include "run.h"

#include <signal.h>
#include <stdlib.h>

struct ob_sink *make_url(const char *url, const struct ob_opt_value *more, size_t count)
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

struct ob_sink *make(const struct http_receiver *receiver, const char *name, const char *value)
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

void send_parcel(struct ob_sink *sink, const struct parcel *parcel)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_sink_send(sink, &parcel->delivery, &err) == 0, "%s", err.msg);
}

struct ob_err outcome(struct ob_sink *sink)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack ack = { 0 };
	int r = 0;

	for (int i = 0; i < 20 && r == 0; i++)
		r = ob_sink_poll(sink, 1000, &ack, 1, &err);
	ck_assert_int_eq(r, 1);
	return ack.err;
}

struct ob_err try_one(struct ob_sink *sink)
{
	struct parcel parcel;

	parcel_init(&parcel, 1, OB_STR("k"), OB_STR("{\"n\":1}"));
	send_parcel(sink, &parcel);
	return outcome(sink);
}

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

void check_signature(const struct http_request_seen *seen, const char *secrets[], size_t n)
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
