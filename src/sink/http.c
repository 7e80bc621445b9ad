/* SPDX-License-Identifier: MIT */
/*
 * Webhooks: one POST for each message, up to `window` at a time, over connections that are
 * kept. A message is confirmed by a 2xx status. http_request.c says what everything
 * else means, http_head.c what a request carries.
 *
 * libcurl's multi interface tells us which sockets to watch; they are in one epoll, which is
 * also the descriptor that the relay waits for. Its timers run when poll() is called.
 */
#include "sink/http_addr.h"
#include "sink/http_request.h"
#include "sink/sink.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 64 };

struct http_sink {
	struct ob_sink base;
	char *url, *secret, *authorization, *ca_file, *cert_file, *key_file;
	int64_t connect_timeout_ms, timeout_ms, retry_after_max_ms;
	uint32_t window;
	bool allow_http, allow_private;

	bool open;
	struct ob_http_target target;
	CURLM *multi;
	int epoll;        /* counts when multi is there */
	int64_t timer_us; /* when libcurl wants to be called; -1: never */
	struct ob_http_request *requests;
	struct ob_ack *outcomes;
	uint32_t active, outcome_count;
	int64_t wait_until_us; /* the receiver wants to be left alone */
};

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

static int bad_url(struct ob_err *err, const char *what)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "url: %s", what);
}

static bool is_loopback_host(const char *host)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found = NULL;
	char bare[64];
	size_t n = strlen(host);

	if (strcasecmp(host, "localhost") == 0)
		return true;
	if (host[0] == '[' && n > 2 && n < sizeof(bare)) {
		(void)snprintf(bare, sizeof(bare), "%.*s", (int)n - 2, host + 1);
		host = bare;
	}
	if (getaddrinfo(host, NULL, &hints, &found) != 0)
		return false;
	bool loopback = ob_http_addr_is_loopback(found->ai_addr);
	freeaddrinfo(found);
	return loopback;
}

static int check_parts(const struct http_sink *sink, CURLU *parts, struct ob_err *err)
{
	char *scheme = NULL, *host = NULL, *user = NULL;
	int r = 0;

	if (curl_url_set(parts, CURLUPART_URL, sink->url, 0) != CURLUE_OK ||
	    curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK)
		r = bad_url(err, "it is no url, such as https://example.com/hook");
	else if (curl_url_get(parts, CURLUPART_USER, &user, 0) == CURLUE_OK)
		r = bad_url(err, "a user or password does not belong into it; use authorization");
	else if (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0)
		r = bad_url(err, "it must begin with https://");
	else if (strcmp(scheme, "http") == 0 && !sink->allow_http && !is_loopback_host(host))
		r = bad_url(err,
			    "http:// sends everything readable for others; use https://, or "
			    "set allow_http");
	curl_free(scheme);
	curl_free(host);
	curl_free(user);
	return r;
}

static int check_url(const struct http_sink *sink, struct ob_err *err)
{
	CURLU *parts = curl_url();

	if (!parts)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a url");
	int r = check_parts(sink, parts, err);
	curl_url_cleanup(parts);
	return r;
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
	int r = check_url(sink, err);

	if (r == 0)
		r = check_authorization(sink->authorization, err);
	if (r == 0)
		r = ob_http_signer_init(&signer, sink->secret ? sink->secret : "", err);
	ob_http_signer_done(&signer);
	return r;
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
	return 0;
}

/* ---- libcurl's sockets and timers ------------------------------------ */

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct http_sink *sink = arg;
	struct epoll_event event = { .data.fd = fd };

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		(void)epoll_ctl(sink->epoll, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	event.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
	if (epoll_ctl(sink->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) < 0 &&
	    errno == (known ? ENOENT : EEXIST))
		(void)epoll_ctl(sink->epoll, known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
	(void)curl_multi_assign(sink->multi, fd, sink);
	return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct http_sink *sink = arg;

	(void)multi;
	sink->timer_us = timeout_ms < 0 ? -1 : now_us(sink) + timeout_ms * INT64_C(1000);
	return 0;
}

static int make_multi(struct http_sink *sink, struct ob_err *err)
{
	if (sink->multi)
		return 0;
	sink->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (sink->epoll < 0)
		return ob_err_errno(err, OUTBOX_ESINK, OB_ERR_DOWN, "watching connections");
	sink->multi = curl_multi_init();
	if (!sink->multi) {
		(void)close(sink->epoll);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for connections");
	}
	sink->timer_us = -1;
	(void)curl_multi_setopt(sink->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	(void)curl_multi_setopt(sink->multi, CURLMOPT_SOCKETDATA, sink);
	(void)curl_multi_setopt(sink->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	(void)curl_multi_setopt(sink->multi, CURLMOPT_TIMERDATA, sink);
	(void)curl_multi_setopt(sink->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	(void)curl_multi_setopt(sink->multi, CURLMOPT_MAXCONNECTS, (long)sink->window);
	return 0;
}

/* ---- outcomes -------------------------------------------------------- */

static void set_free(struct http_sink *sink, struct ob_http_request *request)
{
	(void)curl_multi_remove_handle(sink->multi, request->easy);
	request->active = false;
	sink->active--;
}

static void finish(struct http_sink *sink, struct ob_http_request *request, CURLcode result)
{
	struct ob_ack *ack = &sink->outcomes[sink->outcome_count++];
	int64_t wait_s;

	ack->tag = request->tag;
	ob_http_request_judge(request, result, &ack->err, &wait_s);
	set_free(sink, request);
	if (wait_s <= 0 || sink->retry_after_max_ms == 0)
		return;
	int64_t max_s = sink->retry_after_max_ms / 1000;
	int64_t until = now_us(sink) + (wait_s < max_s ? wait_s : max_s) * 1000000;
	if (until > sink->wait_until_us)
		sink->wait_until_us = until;
}

static void collect(struct http_sink *sink)
{
	const CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(sink->multi, &left))) {
		CURLcode result = message->data.result; /* gone with the handle's removal */
		char *private = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
		finish(sink, (struct ob_http_request *)(void *)private, result);
	}
}

/* Wait up to wait_ms for something to happen, and let libcurl act on it. */
static void drive(struct http_sink *sink, int64_t wait_ms)
{
	struct epoll_event events[EVENTS];
	int running = 0;
	int n = epoll_wait(sink->epoll, events, EVENTS, (int)wait_ms);

	for (int i = 0; i < n; i++) {
		int mask = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
			   (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			   (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);

		(void)curl_multi_socket_action(sink->multi, events[i].data.fd, mask, &running);
	}
	if (sink->timer_us >= 0 && now_us(sink) >= sink->timer_us) {
		sink->timer_us = -1;
		(void)curl_multi_socket_action(sink->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	collect(sink);
}

/* ---- the operations -------------------------------------------------- */

static int must_wait(const struct http_sink *sink, struct ob_err *err)
{
	int64_t left_us = sink->wait_until_us - now_us(sink);

	if (left_us <= 0)
		return 0;
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
			  "the receiver asked to be left alone for %lld s more (Retry-After)",
			  (long long)left_us / 1000000 + 1);
}

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
	if (!sink->outcomes)
		sink->outcomes = calloc(sink->window, sizeof(*sink->outcomes));
	if (!sink->requests || !sink->outcomes)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a window");
	r = make_multi(sink, err);
	if (r == 0)
		r = ob_http_request_init(&sink->requests[0], &sink->target, err);
	sink->open = r == 0;
	return r;
}

static struct ob_http_request *find_free(const struct http_sink *sink)
{
	uint32_t i = 0;

	while (sink->requests[i].active)
		i++;
	assert(i < sink->window);
	return &sink->requests[i];
}

static int http_send(struct ob_sink *base, const struct ob_delivery *delivery, struct ob_err *err)
{
	struct http_sink *sink = (struct http_sink *)base;

	if (!sink->open)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "the http sink is not open");
	int r = must_wait(sink, err);
	if (r < 0)
		return r;
	if (sink->active + sink->outcome_count == sink->window)
		return OB_SINK_FULL;
	struct ob_http_request *request = find_free(sink);
	r = ob_http_request_init(request, &sink->target, err);
	if (r == 0)
		r = ob_http_request_fill(request, delivery,
					 ob_clock_real_us(sink->base.clock) / 1000000, err);
	if (r < 0)
		return r;
	if (curl_multi_add_handle(sink->multi, request->easy) != CURLM_OK)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "no memory for a request");
	request->active = true;
	sink->active++;
	return 0;
}

static int64_t wait_ms(const struct http_sink *sink, int64_t end_us)
{
	int64_t until = sink->timer_us >= 0 && sink->timer_us < end_us ? sink->timer_us : end_us;
	int64_t left_ms = (until - now_us(sink) + 999) / 1000;

	if (left_ms <= 0)
		return 0;
	return left_ms < 1000 ? left_ms : 1000;
}

static int http_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
		     struct ob_err *err)
{
	struct http_sink *sink = (struct http_sink *)base;
	int64_t end_us = now_us(sink) + timeout_ms * INT64_C(1000);
	uint32_t n;

	(void)err; /* nothing that happens here is permanent */
	if (!sink->open)
		return 0;
	drive(sink, 0);
	while (sink->outcome_count == 0 && sink->active > 0 && now_us(sink) < end_us)
		drive(sink, wait_ms(sink, end_us));
	n = sink->outcome_count < max ? sink->outcome_count : (uint32_t)max;
	for (uint32_t i = 0; i < n; i++)
		acks[i] = sink->outcomes[i];
	sink->outcome_count -= n;
	if (n > 0)
		memmove(sink->outcomes, sink->outcomes + n,
			sink->outcome_count * sizeof(*sink->outcomes));
	return (int)n;
}

static void http_reset(struct ob_sink *base)
{
	struct http_sink *sink = (struct http_sink *)base;

	for (uint32_t i = 0; sink->active > 0 && i < sink->window; i++) {
		if (sink->requests[i].active)
			set_free(sink, &sink->requests[i]); /* closes a connection in use */
	}
	sink->outcome_count = 0;
}

static int http_fd(struct ob_sink *base)
{
	const struct http_sink *sink = (const struct http_sink *)base;

	return sink->open ? sink->epoll : -1;
}

static void http_close(struct ob_sink *base)
{
	struct http_sink *sink = (struct http_sink *)base;

	http_reset(base);
	for (uint32_t i = 0; sink->requests && i < sink->window; i++)
		ob_http_request_done(&sink->requests[i]);
	if (sink->multi) {
		(void)curl_multi_cleanup(sink->multi); /* still tells about sockets */
		(void)close(sink->epoll);
	}
	free(sink->requests);
	free(sink->outcomes);
	ob_http_signer_done(&sink->target.signer);
}

/* Without the query, which may hold a token. */
static void http_describe(struct ob_sink *base, struct ob_buf *out)
{
	const struct http_sink *sink = (const struct http_sink *)base;

	ob_buf_addf(out, "http %.*s", (int)strcspn(sink->url, "?#\n"), sink->url);
}

#define TEXT(option, field, flag, text) \
	{ \
		.name = option, .type = OB_OPT_STR, .flags = (flag), \
		.offset = offsetof(struct http_sink, field), .help = text, \
	}

static const struct ob_opt http_opts[] = {
	TEXT("url", url, OB_OPT_REQUIRED, "Where to POST each message; https."),
	TEXT("secret", secret, OB_OPT_SECRET,
	     "Signs each request (Standard Webhooks): whsec_ and Base64; several, parted by "
	     "spaces, "
	     "for a change of secrets."),
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
	.open = http_open,
	.send = http_send,
	.poll = http_poll,
	.reset = http_reset,
	.fd = http_fd,
	.close = http_close,
	.describe = http_describe,
};
