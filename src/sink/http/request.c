/* SPDX-License-Identifier: MIT */
/* A handle of libcurl for one request at a time, and the meaning of its end. */
#include "sink/http/request.h"

#include "base/utf8.h"
#include "sink/http/addr.h"

#include <stdio.h>
#include <strings.h>
#include <unistd.h>

/* ---- what libcurl asks while it works -------------------------------- */

/* The address is the resolved one: whatever name or spelling led here, this is where it goes. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct ob_http_request *request = arg;

	if (purpose != CURLSOCKTYPE_IPCXN ||
	    (!request->target->allow_private && !ob_http_addr_is_public(&address->addr))) {
		ob_http_addr_format(&address->addr, request->refused, sizeof(request->refused));
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* "HTTP/1.1 404 Not Found" */
static int parse_status(const char *p, size_t n)
{
	const char *space = memchr(p, ' ', n);
	size_t left = space ? n - (size_t)(space - p) : 0;
	int status = 0;

	if (left < 4)
		return 0;
	for (int i = 1; i <= 3; i++) {
		if (space[i] < '0' || space[i] > '9')
			return 0;
		status = status * 10 + (space[i] - '0');
	}
	return status;
}

/* "Retry-After: 120"; a date is left to the library. More than fits is as much as fits. */
static void take_retry_after(struct ob_http_request *request, struct ob_str line)
{
	static const char name[] = "retry-after:";
	const int64_t most = INT64_MAX / 10 - 1;
	int64_t seconds = 0;
	size_t i = sizeof(name) - 1;

	if (line.n <= i || strncasecmp(line.p, name, i) != 0)
		return;
	while (i < line.n && (line.p[i] == ' ' || line.p[i] == '\t'))
		i++;
	for (; i < line.n && line.p[i] >= '0' && line.p[i] <= '9'; i++)
		seconds = seconds < most ? seconds * 10 + (line.p[i] - '0') : most;
	if (i < line.n && line.p[i] != '\r' && line.p[i] != '\n' && line.p[i] != ' ')
		seconds = 0;
	request->retry_after_s = seconds < most ? seconds : most;
}

static size_t take_head(char *p, size_t size, size_t count, void *arg)
{
	struct ob_http_request *request = arg;
	size_t n = size * count;

	request->head_bytes += n;
	take_retry_after(request, (struct ob_str){ p, n });
	if (n >= 5 && memcmp(p, "HTTP/", 5) == 0)
		request->status = parse_status(p, n);
	else if (n > 0 && (p[0] == '\r' || p[0] == '\n'))
		request->head_done |= request->status >= 200;
	return request->head_bytes > OB_HTTP_READ_MAX ? 0 : n;
}

static size_t take_body(char *p, size_t size, size_t count, void *arg)
{
	struct ob_http_request *request = arg;
	size_t n = size * count;
	size_t room = sizeof(request->excerpt) - request->excerpt_size;
	size_t kept = n < room ? n : room;

	memcpy(request->excerpt + request->excerpt_size, p, kept);
	request->excerpt_size += kept;
	request->body_bytes += n;
	return request->body_bytes > OB_HTTP_READ_MAX ? 0 : n;
}

/* ---- the handle ------------------------------------------------------ */

static CURLcode set_text(CURL *easy, CURLoption option, const char *value)
{
	return value ? curl_easy_setopt(easy, option, value) : CURLE_OK;
}

static CURLcode set_transport(struct ob_http_request *r)
{
	const struct ob_http_target *target = r->target;
	CURL *easy = r->easy;
	CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, target->url);

#define SET(option, value) code = code ? code : curl_easy_setopt(easy, option, value)
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NOPROXY, "*");
	SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)target->connect_timeout_ms);
	SET(CURLOPT_TIMEOUT_MS, (long)target->timeout_ms);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_USERAGENT, "outbox/" OUTBOX_VERSION);
	code = code ? code : set_text(easy, CURLOPT_CAINFO, target->ca_file);
	code = code ? code : set_text(easy, CURLOPT_SSLCERT, target->cert_file);
	return code ? code : set_text(easy, CURLOPT_SSLKEY, target->key_file);
}

static CURLcode set_callbacks(struct ob_http_request *r)
{
	CURL *easy = r->easy;
	CURLcode code = curl_easy_setopt(easy, CURLOPT_PRIVATE, r);

	SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
	SET(CURLOPT_OPENSOCKETDATA, r);
	SET(CURLOPT_HEADERFUNCTION, take_head);
	SET(CURLOPT_HEADERDATA, r);
	SET(CURLOPT_WRITEFUNCTION, take_body);
	SET(CURLOPT_WRITEDATA, r);
	SET(CURLOPT_ERRORBUFFER, r->detail);
	SET(CURLOPT_POST, 1L);
#undef SET
	return code;
}

int ob_http_request_init(struct ob_http_request *request, const struct ob_http_target *target,
			 struct ob_err *err)
{
	if (request->easy)
		return 0;
	request->target = target;
	request->easy = curl_easy_init();
	if (!request->easy || !ob_http_batch_init(&request->batch, target->batch_max)) {
		ob_http_request_done(request);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a request");
	}
	CURLcode code = set_transport(request);
	code = code ? code : set_callbacks(request);
	if (code == CURLE_OK)
		return 0;
	ob_http_request_done(request);
	return ob_err_set(err, OUTBOX_ESINK,
			  code == CURLE_OUT_OF_MEMORY ? OB_ERR_DOWN : OB_ERR_FATAL,
			  "setting up a request: %s", curl_easy_strerror(code));
}

void ob_http_request_done(struct ob_http_request *request)
{
	curl_easy_cleanup(request->easy);
	curl_slist_free_all(request->headers);
	ob_http_batch_done(&request->batch);
	*request = (struct ob_http_request){ 0 };
}

/* Owns the headers from here on. */
static int fill(struct ob_http_request *request, struct curl_slist *headers, struct ob_str body,
		struct ob_err *err)
{
	CURLcode code = curl_easy_setopt(request->easy, CURLOPT_HTTPHEADER, headers);

	code = code ? code
		    : curl_easy_setopt(request->easy, CURLOPT_POSTFIELDSIZE_LARGE,
				       (curl_off_t)body.n);
	code = code ? code : curl_easy_setopt(request->easy, CURLOPT_POSTFIELDS, body.p);
	curl_slist_free_all(request->headers);
	request->headers = headers;
	request->status = 0;
	request->retry_after_s = 0;
	request->head_done = false;
	request->head_bytes = request->body_bytes = request->excerpt_size = 0;
	request->refused[0] = request->detail[0] = '\0';
	if (code == CURLE_OK)
		return 0;
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "setting up a request: %s",
			  curl_easy_strerror(code));
}

int ob_http_request_fill(struct ob_http_request *request, const struct ob_delivery *delivery,
			 int64_t now_s, struct ob_err *err)
{
	struct curl_slist *headers = NULL;
	struct ob_str body = delivery->body.n > 0 ? delivery->body : OB_STR("");

	if (!delivery->body.p && request->target->null_tombstone)
		body = OB_STR("null");
	int r = ob_http_head_make(request->target, delivery, body, now_s, &headers, err);
	if (r < 0)
		return r;
	ob_http_batch_set(&request->batch, delivery);
	return fill(request, headers, body, err);
}

int ob_http_request_fill_piece(struct ob_http_request *request, int64_t now_s, struct ob_err *err)
{
	struct curl_slist *headers = NULL;
	int r = ob_http_head_make_piece(request->target, &request->batch, now_s, &headers, err);

	return r < 0 ? r : fill(request, headers, ob_http_batch_body(&request->batch), err);
}

/* ---- its end --------------------------------------------------------- */

/* Every status is about the message, or about the whole endpoint; see docs/sinks/http.md. */
static enum ob_err_kind kind_of_status(int status)
{
	switch (status) {
	case 401: /* wrong credentials, a wrong url, an account that is closed: */
	case 402: /* the next message would fare no better, so none is to blame */
	case 403:
	case 404:
	case 405:
	case 407:
	case 429: /* too fast */
	case 503: /* away */
		return OB_ERR_DOWN;
	case 408:
	case 409:
	case 423:
	case 425:
		return OB_ERR_RETRY;
	default:
		break;
	}
	if (status >= 200 && status < 300)
		return OB_ERR_NONE;
	if (status >= 300 && status < 400)
		return OB_ERR_DOWN; /* the endpoint has moved; we do not follow */
	return status >= 400 && status < 500 ? OB_ERR_REJECT : OB_ERR_RETRY;
}

/* How much of `secret` stands at `i`: all of it, or what the end of the text has left of it. */
static size_t match_secret(struct ob_str text, size_t i, struct ob_str secret)
{
	size_t n = 0;

	while (n < secret.n && i + n < text.n && text.p[i + n] == secret.p[n])
		n++;
	return n == secret.n || (i + n == text.n && n > 2) ? n : 0;
}

/* Receivers like to repeat what they were asked: the path of the url, which may hold a token. */
static void add_without(struct ob_buf *out, struct ob_str text, struct ob_str path,
			struct ob_str authorization)
{
	for (size_t i = 0, n; i < text.n; i += n) {
		n = path.n > 1 ? match_secret(text, i, path) : 0;
		if (n == 0 && authorization.n > 0)
			n = match_secret(text, i, authorization);
		if (n > 0)
			ob_buf_adds(out, "...");
		else
			ob_buf_addc(out, text.p[i]);
		n += n == 0;
	}
}

static void add_excerpt(const struct ob_http_request *request, struct ob_buf *out)
{
	struct ob_buf safe = OB_BUF_INIT((size_t)4 * OB_HTTP_EXCERPT);
	const char *url = request->target->url, *path = url + ob_http_url_origin(url);

	add_without(&safe, (struct ob_str){ request->excerpt, request->excerpt_size }, ob_str(path),
		    ob_str(request->target->authorization));
	ob_utf8_sanitize(out, ob_buf_view(&safe), 100);
	ob_buf_done(&safe);
}

static void judge_status(const struct ob_http_request *request, struct ob_err *err,
			 int64_t *ret_wait_s)
{
	enum ob_err_kind kind = kind_of_status(request->status);
	struct ob_buf text = OB_BUF_INIT(2000);
	char *location = NULL;
	curl_off_t wait_s = 0;

	if (kind == OB_ERR_NONE)
		return;
	if (request->status == OB_HTTP_GONE && request->target->gone_is_down)
		kind = OB_ERR_DOWN;
	add_excerpt(request, &text);
	(void)curl_easy_getinfo(request->easy, CURLINFO_REDIRECT_URL, &location);
	if (location) {
		ob_buf_clear(&text);
		ob_buf_adds(&text, "redirects are not followed, the new address is at ");
		ob_utf8_sanitize(&text, (struct ob_str){ location, ob_http_url_origin(location) },
				 200);
	}
	(void)ob_err_set(err, OUTBOX_ESINK, kind, "the receiver answers HTTP %d%s%.300s",
			 request->status, text.len > 0 ? ": " : "", ob_buf_str(&text));
	(void)snprintf(err->native, sizeof(err->native), "%d", request->status);
	ob_buf_done(&text);
	if (request->status == 429 || request->status == 503) {
		(void)curl_easy_getinfo(request->easy, CURLINFO_RETRY_AFTER, &wait_s);
		*ret_wait_s = request->retry_after_s > 0 ? request->retry_after_s : wait_s;
	}
}

/* Was the request on its way? Before that, no receiver has said anything about it. */
static bool was_sent(const struct ob_http_request *request)
{
	curl_off_t us = 0;

	(void)curl_easy_getinfo(request->easy, CURLINFO_PRETRANSFER_TIME_T, &us);
	return us > 0;
}

static void judge_failure(const struct ob_http_request *request, CURLcode result,
			  struct ob_err *err)
{
	enum ob_err_kind kind = OB_ERR_DOWN;

	if (request->refused[0] && !was_sent(request)) {
		(void)ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				 "the url leads to %s, which is not a public address; set "
				 "allow_private if that is intended",
				 request->refused);
		return;
	}
	/* Connected, and no answer to this message: it may be the message. */
	if ((result == CURLE_OPERATION_TIMEDOUT && was_sent(request)) ||
	    request->head_bytes > OB_HTTP_READ_MAX)
		kind = OB_ERR_RETRY;
	if (request->head_bytes > OB_HTTP_READ_MAX)
		(void)ob_err_set(err, OUTBOX_ESINK, kind,
				 "the head of the receiver's answer is larger than %d KB",
				 OB_HTTP_READ_MAX >> 10);
	else
		(void)ob_err_set(err, OUTBOX_ESINK, kind, "sending to the receiver: %s",
				 request->detail[0] ? request->detail : curl_easy_strerror(result));
	err->hung_up = kind == OB_ERR_DOWN && was_sent(request);
	(void)snprintf(err->native, sizeof(err->native), "CURLE_%d", (int)result);
}

void ob_http_request_judge(const struct ob_http_request *request, CURLcode result,
			   struct ob_err *ret_outcome, int64_t *ret_wait_s)
{
	*ret_outcome = OB_ERR_INIT;
	*ret_wait_s = 0;
	/* A whole head is an answer, whatever became of the body behind it (cut, endless, slow). */
	if (request->head_done)
		judge_status(request, ret_outcome, ret_wait_s);
	else
		judge_failure(request, result == CURLE_OK ? CURLE_WEIRD_SERVER_REPLY : result,
			      ret_outcome);
}
