/* SPDX-License-Identifier: MIT */
/*
 * Webhooks: one POST for each message or for a batch of them, up to `window` at a time, over
 * connections that are kept. A message is confirmed by a 2xx status. request.c says
 * what everything else means, head.c what a request carries, batch.c how
 * messages share one.
 *
 * A batch is what send() has accepted since the last poll(): nothing waits for company.
 *
 * multi.c lets libcurl work on all requests.
 */
#include "sink/sink.h"
#include "sink/http/addr.h"
#include "sink/http/multi.h"
#include "sink/http/request.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct http_sink {
	struct ob_sink base;
	char *url, *secret, *authorization, *ca_file, *cert_file, *key_file;
	int64_t connect_timeout_ms, timeout_ms, retry_after_max_ms;
	int64_t batch_bytes;
	uint32_t window, batch;
	bool allow_http, allow_private;
	int gone, tombstone; /* enum gone, enum tombstone */

	bool open;
	struct ob_http_target target;
	struct ob_http_multi multi;
	struct ob_http_request *requests;
	struct ob_http_request *filling; /* among them, or NULL */
	uint32_t active, over;           /* how many are so */
	uint32_t take_at;                /* whose outcomes are fetched next */
	int64_t wait_until_us;           /* the receiver wants to be left alone */
	bool is_gone;                    /* ... because it has said 410 */
};

enum gone { GONE_PAUSE, GONE_REJECT };
enum tombstone { TOMBSTONE_EMPTY, TOMBSTONE_NULL };

static int64_t now_us(const struct http_sink *sink)
{
	return ob_clock_boot_us(sink->base.clock);
}

/* ---- the configuration ----------------------------------------------- */

static pthread_once_t library_once = PTHREAD_ONCE_INIT;
static CURLcode library_code;

static void init_library(void)
{
	library_code = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static const char *text_or_null(const char *text)
{
	return text && text[0] ? text : NULL;
}

static int check_authorization(const char *text, struct ob_err *err)
{
	for (; text && *text; text++) {
		if (*text < ' ' || *text > '~')
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "authorization: it holds something else than printable "
					  "ASCII");
	}
	return 0;
}

static int http_check(struct ob_sink *base, struct ob_err *err)
{
	const struct http_sink *sink = (const struct http_sink *)base;
	struct ob_http_signer signer = { 0 };
	int r = ob_http_url_check(sink->url, sink->allow_http, err);

	if (r == 0)
		r = check_authorization(sink->authorization, err);
	if (r == 0)
		r = ob_http_signer_init(&signer, sink->secret ? sink->secret : "", err);
	ob_http_signer_done(&signer);
	return r;
}

/* The attributes of an event would have to be headers, of which a batch has none of its own. */
static int http_check_binary(struct ob_sink *base, struct ob_err *err)
{
	const struct http_sink *sink = (const struct http_sink *)base;

	if (sink->batch == 1)
		return 0;
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "CloudEvents has no binary mode for a batch; use cloudevents-structured, "
			  "or set batch to 1");
}

static int configure(struct http_sink *sink, struct ob_err *err)
{
	int r = http_check(&sink->base, err);

	if (r == 0)
		r = ob_http_signer_init(&sink->target.signer, sink->secret ? sink->secret : "",
					err);
	if (r < 0)
		return r;
	sink->target.url = sink->url;
	sink->target.authorization = text_or_null(sink->authorization);
	sink->target.ca_file = text_or_null(sink->ca_file);
	sink->target.cert_file = text_or_null(sink->cert_file);
	sink->target.key_file = text_or_null(sink->key_file);
	sink->target.connect_timeout_ms = sink->connect_timeout_ms;
	sink->target.timeout_ms = sink->timeout_ms;
	sink->target.allow_private = sink->allow_private;
	sink->target.batch_max = sink->batch;
	sink->target.gone_is_down = sink->gone == GONE_PAUSE;
	sink->target.null_tombstone = sink->tombstone == TOMBSTONE_NULL;
	return 0;
}

/* ---- requests -------------------------------------------------------- */

static int must_wait(const struct http_sink *sink, struct ob_err *err)
{
	int64_t left_us = sink->wait_until_us - now_us(sink);

	if (left_us <= 0)
		return 0;
	if (sink->is_gone)
		return ob_err_set(
			err, OUTBOX_ESINK, OB_ERR_DOWN,
			"the receiver answers HTTP 410: the endpoint is gone and wants no "
			"more; it is asked again in %lld s (change the url, or remove the "
			"relay; gone: reject gives each message up)",
			(long long)left_us / 1000000 + 1);
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
			  "the receiver asked to be left alone for %lld s more (Retry-After)",
			  (long long)left_us / 1000000 + 1);
}

static int64_t now_s(const struct http_sink *sink)
{
	return ob_clock_real_us(sink->base.clock) / 1000000;
}

static int start(struct http_sink *sink, struct ob_http_request *request, struct ob_err *err)
{
	if (curl_multi_add_handle(sink->multi.handle, request->easy) != CURLM_OK)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "no memory for a request");
	request->state = OB_HTTP_ACTIVE;
	sink->active++;
	return 0;
}

/* Its outcome is known: that of the piece, or of all that is left when nothing gets through. */
static void set_over(struct http_sink *sink, struct ob_http_request *request)
{
	if (request->outcome.kind == OB_ERR_DOWN)
		ob_http_batch_rest(&request->batch);
	request->state = OB_HTTP_OVER;
	sink->over++;
}

/* Send the piece of its batch; a failure is its outcome. */
static void start_piece(struct http_sink *sink, struct ob_http_request *request)
{
	request->outcome = OB_ERR_INIT;
	int r = must_wait(sink, &request->outcome);
	if (r == 0)
		r = ob_http_request_fill_piece(request, now_s(sink), &request->outcome);
	if (r == 0)
		r = start(sink, request, &request->outcome);
	if (r < 0)
		set_over(sink, request);
}

static void start_filling(struct http_sink *sink)
{
	struct ob_http_request *request = sink->filling;

	sink->filling = NULL;
	if (request)
		start_piece(sink, request);
}

static void stop(struct http_sink *sink, struct ob_http_request *request)
{
	(void)curl_multi_remove_handle(sink->multi.handle, request->easy);
	request->state = OB_HTTP_FREE;
	sink->active--;
}

static void obey(struct http_sink *sink, int64_t wait_s)
{
	int64_t max_s = sink->retry_after_max_ms / 1000;
	int64_t until = now_us(sink) + (wait_s < max_s ? wait_s : max_s) * 1000000;

	if (wait_s > 0 && sink->retry_after_max_ms > 0 && until > sink->wait_until_us)
		sink->wait_until_us = until;
}

/* By Standard Webhooks, 410 wants the endpoint disabled: nothing is sent for a good while. */
static void note_gone(struct http_sink *sink, struct ob_http_request *request)
{
	if (request->outcome.kind == OB_ERR_NONE)
		sink->is_gone = false;
	if (request->status == OB_HTTP_GONE && request->outcome.kind == OB_ERR_DOWN) {
		sink->is_gone = true;
		sink->wait_until_us = now_us(sink) + OB_HTTP_GONE_S * INT64_C(1000000);
		(void)must_wait(sink, &request->outcome);
		(void)snprintf(request->outcome.native, sizeof(request->outcome.native), "%d",
			       OB_HTTP_GONE);
	}
}

static void finish(struct http_sink *sink, struct ob_http_request *request, CURLcode result)
{
	int64_t wait_s;

	ob_http_request_judge(request, result, &request->outcome, &wait_s);
	stop(sink, request);
	obey(sink, wait_s);
	note_gone(sink, request);
	if (request->outcome.kind == OB_ERR_REJECT && ob_http_batch_halve(&request->batch))
		start_piece(sink, request);
	else
		set_over(sink, request);
}

/* Hand out outcomes of one that is over; it goes on with its next piece, or is free. */
static uint32_t take(struct http_sink *sink, struct ob_http_request *request, struct ob_ack *acks,
		     size_t max)
{
	struct ob_http_batch *batch = &request->batch;
	uint32_t n = ob_http_batch_take(batch, &request->outcome, acks, max);

	if (batch->taken < batch->size)
		return n;
	sink->over--;
	request->state = OB_HTTP_FREE;
	if (ob_http_batch_next(batch))
		start_piece(sink, request);
	else
		ob_http_batch_clear(batch);
	return n;
}

static uint32_t take_all(struct http_sink *sink, struct ob_ack *acks, size_t max)
{
	uint32_t n = 0;

	while (n < max && sink->over > 0) {
		struct ob_http_request *request = &sink->requests[sink->take_at];

		if (request->state == OB_HTTP_OVER)
			n += take(sink, request, acks + n, max - n);
		if (request->state != OB_HTTP_OVER)
			sink->take_at = (sink->take_at + 1) % sink->window;
	}
	return n;
}

/* Let libcurl work until something happens, but no longer than that. */
static void drive(struct http_sink *sink, int64_t end_us)
{
	struct ob_http_request *request;
	CURLcode result;

	ob_http_multi_work(&sink->multi, end_us);
	while ((request = ob_http_multi_next(&sink->multi, &result)))
		finish(sink, request, result);
}

/* ---- the operations -------------------------------------------------- */

static int http_open(struct ob_sink *base, struct ob_err *err)
{
	struct http_sink *sink = (struct http_sink *)base;
	int r;

	if (sink->open)
		return must_wait(sink, err);
	(void)pthread_once(&library_once, init_library);
	if (library_code != CURLE_OK)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_FATAL, "starting libcurl: %s",
				  curl_easy_strerror(library_code));
	r = configure(sink, err);
	if (r < 0)
		return r;
	if (!sink->requests)
		sink->requests = calloc(sink->window, sizeof(*sink->requests));
	if (!sink->requests)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a window");
	r = ob_http_multi_init(&sink->multi, sink->base.clock, sink->window, err);
	if (r == 0)
		r = ob_http_request_init(&sink->requests[0], &sink->target, err);
	sink->open = r == 0;
	return r;
}

/* One that can be filled: 0, OB_SINK_FULL when none is free, or what failed. */
static int find_free(struct http_sink *sink, struct ob_http_request **ret_request,
		     struct ob_err *err)
{
	uint32_t i = 0;

	while (i < sink->window && sink->requests[i].state != OB_HTTP_FREE)
		i++;
	if (i == sink->window)
		return OB_SINK_FULL;
	*ret_request = &sink->requests[i];
	return ob_http_request_init(*ret_request, &sink->target, err);
}

static int send_alone(struct http_sink *sink, const struct ob_delivery *delivery,
		      struct ob_err *err)
{
	struct ob_http_request *request;
	int r = find_free(sink, &request, err);

	if (r != 0)
		return r;
	r = ob_http_request_fill(request, delivery, now_s(sink), err);
	return r == 0 ? start(sink, request, err) : r;
}

static int send_in_batch(struct http_sink *sink, const struct ob_delivery *delivery,
			 struct ob_err *err)
{
	size_t bytes_max = (size_t)sink->batch_bytes;
	struct ob_http_request *request = sink->filling;
	int r = OB_SINK_FULL;

	if (request)
		r = ob_http_batch_add(&request->batch, delivery, bytes_max, err);
	if (r != OB_SINK_FULL)
		return r;
	start_filling(sink);
	r = find_free(sink, &request, err);
	if (r != 0)
		return r;
	r = ob_http_batch_add(&request->batch, delivery, bytes_max, err);
	if (r == 0) {
		request->state = OB_HTTP_FILLING;
		sink->filling = request;
	}
	return r;
}

static int http_send(struct ob_sink *base, const struct ob_delivery *delivery, struct ob_err *err)
{
	struct http_sink *sink = (struct http_sink *)base;

	if (!sink->open)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "the http sink is not open");
	int r = must_wait(sink, err);
	if (r < 0)
		return r;
	return sink->batch > 1 ? send_in_batch(sink, delivery, err)
			       : send_alone(sink, delivery, err);
}

static int http_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
		     struct ob_err *err)
{
	struct http_sink *sink = (struct http_sink *)base;
	int64_t end_us = now_us(sink) + timeout_ms * INT64_C(1000);

	(void)err; /* nothing that happens here is permanent */
	if (!sink->open)
		return 0;
	start_filling(sink);
	drive(sink, now_us(sink));
	while (sink->over == 0 && sink->active > 0 && now_us(sink) < end_us)
		drive(sink, end_us);
	return (int)take_all(sink, acks, max);
}

static void http_reset(struct ob_sink *base)
{
	struct http_sink *sink = (struct http_sink *)base;

	for (uint32_t i = 0; sink->requests && i < sink->window; i++) {
		if (sink->requests[i].state == OB_HTTP_ACTIVE)
			stop(sink, &sink->requests[i]); /* closes a connection in use */
		sink->requests[i].state = OB_HTTP_FREE;
		ob_http_batch_clear(&sink->requests[i].batch);
	}
	sink->filling = NULL;
	sink->over = 0;
}

static int http_fd(struct ob_sink *base)
{
	const struct http_sink *sink = (const struct http_sink *)base;

	return sink->open ? sink->multi.epoll : -1;
}

static void http_close(struct ob_sink *base)
{
	struct http_sink *sink = (struct http_sink *)base;

	http_reset(base);
	for (uint32_t i = 0; sink->requests && i < sink->window; i++)
		ob_http_request_done(&sink->requests[i]);
	ob_http_multi_done(&sink->multi);
	free(sink->requests);
	ob_http_signer_done(&sink->target.signer);
}

/* Without path and query, which may hold a token. */
static void http_describe(struct ob_sink *base, struct ob_buf *out)
{
	const struct http_sink *sink = (const struct http_sink *)base;
	size_t n = ob_http_url_origin(sink->url);

	ob_buf_addf(out, "http %.*s%s", (int)n, sink->url, strlen(sink->url) > n + 1 ? "/..." : "");
}

#define TEXT(option, field, flag, text) \
	{ \
		.name = option, .type = OB_OPT_STR, .flags = (flag), \
		.offset = offsetof(struct http_sink, field), .help = text, \
	}

static const char *const gone_choices[] = { "pause", "reject", NULL };
static const char *const tombstone_choices[] = { "empty", "json_null", NULL };

static const struct ob_opt http_opts[] = {
	TEXT("url", url, OB_OPT_REQUIRED, "Where to POST the messages; https."),
	TEXT("secret", secret, OB_OPT_SECRET,
	     "Signs each request (Standard Webhooks): whsec_ and Base64, or whsk_ and a private "
	     "Ed25519 key; several, separated by spaces, for a change of secrets."),
	TEXT("authorization", authorization, OB_OPT_SECRET,
	     "The value of an Authorization header, such as Bearer and a token."),
	{
		.name = "timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct http_sink, timeout_ms),
		.dflt = "15s",
		.min = 10,
		.max = 600000,
		.help = "Time for one request, from the connection to the end of the answer.",
	},
	{
		.name = "connect_timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct http_sink, connect_timeout_ms),
		.dflt = "5s",
		.min = 10,
		.max = 600000,
		.help = "Time for a connection, with the name's lookup and TLS.",
	},
	{
		.name = "window",
		.type = OB_OPT_U32,
		.offset = offsetof(struct http_sink, window),
		.dflt = "16",
		.min = 1,
		.max = 256,
		.help = "Requests at a time, each on a connection of its own.",
	},
	{
		.name = "batch",
		.type = OB_OPT_U32,
		.offset = offsetof(struct http_sink, batch),
		.dflt = "1",
		.min = 1,
		.max = 1000,
		.help = "Messages of one request; more than 1: the body is a JSON array of those "
			"that wait.",
	},
	{
		.name = "batch_bytes",
		.type = OB_OPT_SIZE,
		.offset = offsetof(struct http_sink, batch_bytes),
		.dflt = "1MB",
		.min = 1024,
		.max = 16 << 20,
		.help = "Body of a batch; a message that is larger goes alone.",
	},
	{
		.name = "retry_after_max",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct http_sink, retry_after_max_ms),
		.dflt = "5m",
		.max = 86400000,
		.help = "The longest wait that a Retry-After of the receiver can ask for; 0: do "
			"not "
			"obey it.",
	},
	{
		.name = "gone",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct http_sink, gone),
		.dflt = "pause",
		.choices = gone_choices,
		.help = "What HTTP 410 means: the endpoint wants no more and nothing is sent, or "
			"the message is given up.",
	},
	{
		.name = "tombstone",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct http_sink, tombstone),
		.dflt = "empty",
		.choices = tombstone_choices,
		.help = "The body of a message without a payload: empty, or the JSON null.",
	},
	{
		.name = "allow_http",
		.type = OB_OPT_BOOL,
		.offset = offsetof(struct http_sink, allow_http),
		.dflt = "false",
		.help = "Allow http:// to other machines: everyone on the way can read and change "
			"it.",
	},
	{
		.name = "allow_private",
		.type = OB_OPT_BOOL,
		.offset = offsetof(struct http_sink, allow_private),
		.dflt = "false",
		.help = "Allow addresses of this machine and of private networks.",
	},
	TEXT("ca_file", ca_file, 0, "Certificates (PEM) to trust instead of the system's."),
	TEXT("cert_file", cert_file, 0,
	     "Our own certificate (PEM), for receivers that ask for one."),
	TEXT("key_file", key_file, 0, "The key (PEM) of cert_file."),
	OB_OPT_END,
};

const struct ob_sink_ops ob_sink_http = {
	.name = "http",
	.caps = OB_SINK_HEADERS,
	.size = sizeof(struct http_sink),
	.opts = http_opts,
	.ce_prefix = "ce-",
	.check = http_check,
	.check_binary = http_check_binary,
	.open = http_open,
	.send = http_send,
	.poll = http_poll,
	.reset = http_reset,
	.fd = http_fd,
	.close = http_close,
	.describe = http_describe,
};
