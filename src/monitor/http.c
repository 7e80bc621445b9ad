/* SPDX-License-Identifier: MIT */
/*
 * Requests come in and answers go out, by libmicrohttpd with a thread for each connection: a query
 * that takes long delays nobody else, and an event stream may simply wait.
 */
#include "monitor/request.h"
#include "monitor/routes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	IDLE_S = 30,          /* nothing moves */
	HEADER_US = 10000000, /* until the request has come; also between two requests of a
				 connection */
	REQUEST_US = 60000000,
	MEMORY = 32 << 10, /* of a connection: headers must fit */
	STACK = 1 << 20,
	BACKLOG = 128,
};

static int64_t boot_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

/* ---- answers --------------------------------------------------------- */

static const char policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
	"connect-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; "
	"require-trusted-types-for 'script'";

static const struct {
	const char *name, *value;
} safe_headers[] = {
	{ "Content-Security-Policy", policy },
	{ "X-Content-Type-Options", "nosniff" },
	{ "X-Frame-Options", "DENY" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
};

static void add_headers(struct ob_request *req, struct MHD_Response *response)
{
	char line[160];

	for (size_t i = 0; i < sizeof(safe_headers) / sizeof(safe_headers[0]); i++)
		(void)MHD_add_response_header(response, safe_headers[i].name,
					      safe_headers[i].value);
	(void)MHD_add_response_header(response, "Content-Type", req->type);
	(void)MHD_add_response_header(response, "Cache-Control",
				      req->etag[0] ? "no-cache" : "no-store");
	if (req->etag[0])
		(void)MHD_add_response_header(response, "ETag", req->etag);
	if (req->encoding)
		(void)MHD_add_response_header(response, "Content-Encoding", req->encoding);
	if (req->etag[0])
		(void)MHD_add_response_header(response, "Vary", "Accept-Encoding");
	if (req->cookie[0])
		(void)MHD_add_response_header(response, "Set-Cookie", req->cookie);
	if (req->status == 401)
		(void)MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	if (req->status == 429)
		(void)MHD_add_response_header(response, "Retry-After", "1");
	if (req->attachment) {
		(void)snprintf(line, sizeof(line), "attachment; filename=\"%.80s\"",
			       req->attachment);
		(void)MHD_add_response_header(response, "Content-Disposition", line);
	}
}

static enum MHD_Result send_answer(struct ob_request *req)
{
	struct MHD_Response *response = req->ready;

	if (!response && (req->out.b.failed || !req->type))
		ob_request_fail(req, 503, "memory", "the answer is too large");
	if (!response) {
		size_t n = req->out.b.len;
		char *data = ob_buf_take(&req->out.b);

		response = MHD_create_response_from_buffer(n, data ? data : NULL,
							   data ? MHD_RESPMEM_MUST_FREE
								: MHD_RESPMEM_PERSISTENT);
		if (!response)
			free(data);
	}
	req->ready = NULL;
	if (!response)
		return MHD_NO;
	add_headers(req, response);
	(void)pthread_mutex_lock(&req->monitor->lock);
	req->monitor->codes[req->status < OB_STATUS_CODES ? req->status : 0]++;
	(void)pthread_mutex_unlock(&req->monitor->lock);
	enum MHD_Result sent = MHD_queue_response(req->connection, req->status, response);
	MHD_destroy_response(response);
	return sent;
}

/* ---- requests -------------------------------------------------------- */

/* Whether or not a proxy has removed the prefix. */
static const char *below_base(const struct ob_monitor *m, const char *url)
{
	size_t n = strlen(m->conf->base_path);

	if (n && strncmp(url, m->conf->base_path, n) == 0 && (url[n] == '/' || !url[n]))
		return url[n] ? url + n : "/";
	return url;
}

static void answer(struct ob_request *req, const char *method, bool other)
{
	static const struct ob_route nowhere = { .path = "" };
	const struct ob_route *route = req->route;

	if (!route)
		req->route = &nowhere;
	if (!ob_guard(req, route ? method : "GET"))
		return;
	if (route)
		route->answer(req);
	else if (other)
		ob_request_fail(req, 405, "method", "%s is not possible here", method);
	else
		ob_request_fail(req, 404, "not_found", "there is nothing at %.80s", req->path);
}

static struct ob_request *request_new(struct ob_monitor *m, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct ob_request *req = calloc(1, sizeof(*req));

	if (!req)
		return NULL;
	req->monitor = m;
	req->connection = connection;
	req->body = OB_BUF_INIT(OB_BODY_MAX);
	req->out = OB_JOUT_INIT;
	req->status = 200;
	req->link = info ? info->socket_context : NULL;
	if (req->link) {
		(void)pthread_mutex_lock(&m->lock);
		req->link->busy = true;
		req->link->since_us = boot_us();
		(void)pthread_mutex_unlock(&m->lock);
	}
	return req;
}

static bool says_too_large(const struct ob_request *req)
{
	const char *length = ob_request_header(req, "Content-Length");

	return length && strtoull(length, NULL, 10) > OB_BODY_MAX;
}

/* NOLINTNEXTLINE(readability-function-size): the library's own parameters */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **request)
{
	struct ob_request *req = *request;
	bool other = false;

	(void)version;
	if (!req) {
		req = request_new(arg, connection);
		*request = req;
		if (!req)
			return MHD_NO;
		req->too_large = says_too_large(req);
		/* What would not be read need not be sent. */
		if (!req->too_large)
			return MHD_YES;
	} else if (*size) {
		req->too_large = req->too_large || req->body.len + *size > OB_BODY_MAX;
		if (!req->too_large)
			ob_buf_add(&req->body, (struct ob_str){ data, *size });
		*size = 0;
		return MHD_YES;
	}
	req->path = below_base(req->monitor, url);
	req->route = ob_route_find(method, req->path, req->word, &other);
	answer(req, method, other);
	return send_answer(req);
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **request,
			 enum MHD_RequestTerminationCode code)
{
	struct ob_request *req = *request;
	struct ob_monitor *m = arg;

	(void)connection;
	(void)code;
	if (!req)
		return;
	if (req->link) {
		(void)pthread_mutex_lock(&m->lock);
		req->link->busy = req->link->stream = false;
		req->link->since_us = boot_us();
		(void)pthread_mutex_unlock(&m->lock);
	}
	ob_buf_done(&req->body);
	ob_jout_done(&req->out);
	free(req);
	*request = NULL;
}

/* ---- connections ----------------------------------------------------- */

static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info;
	struct ob_monitor *m = arg;
	struct ob_peer *link = *context;

	(void)pthread_mutex_lock(&m->lock);
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		link = info ? calloc(1, sizeof(*link)) : NULL;
		*context = link;
		if (link) {
			*link = (struct ob_peer){ .next = m->links,
						  .fd = info->connect_fd,
						  .since_us = boot_us() };
			if (m->links)
				m->links->before = link;
			m->links = link;
		}
	} else if (link) {
		if (link->before)
			link->before->next = link->next;
		else
			m->links = link->next;
		if (link->next)
			link->next->before = link->before;
		free(link);
		*context = NULL;
	}
	(void)pthread_mutex_unlock(&m->lock);
}

void ob_http_cut(struct ob_monitor *m)
{
	int64_t now = boot_us();

	(void)pthread_mutex_lock(&m->lock);
	for (struct ob_peer *link = m->links; link; link = link->next) {
		int64_t limit = link->stream ? INT64_MAX : link->busy ? REQUEST_US : HEADER_US;

		/* Its thread sees the end of the connection and closes it. */
		if (now - link->since_us > limit)
			(void)shutdown(link->fd, SHUT_RDWR);
	}
	(void)pthread_mutex_unlock(&m->lock);
}

/* ---- listening ------------------------------------------------------- */

static int cannot(const char *what, const char *address, int fd, struct ob_err *err)
{
	int r = ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "the monitor cannot %s at %s: %m",
			   what, address);

	if (fd >= 0)
		(void)close(fd);
	return r;
}

static int listen_unix(struct ob_monitor *m, struct ob_err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", m->at.path);
	(void)snprintf(m->address, sizeof(m->address), "unix:%s", m->at.path);
	/* One that was left behind; nobody listens there, or bind would take it from them. */
	if (lstat(m->at.path, &st) == 0 && S_ISSOCK(st.st_mode)) {
		int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (connect(probe, (const struct sockaddr *)&to, sizeof(to)) < 0 &&
		    errno == ECONNREFUSED)
			(void)unlink(m->at.path);
		(void)close(probe);
	}
	mode_t mask = umask(0177);
	int bound = fd < 0 ? -1 : bind(fd, (const struct sockaddr *)&to, sizeof(to));
	(void)umask(mask);
	if (bound < 0 || listen(fd, BACKLOG) < 0)
		return cannot("listen", m->address, fd, err);
	m->fd = fd;
	return 0;
}

static int listen_tcp(struct ob_monitor *m, struct ob_err *err)
{
	struct sockaddr_in six_is_not = { .sin_family = AF_INET, .sin_port = htons(m->at.port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(m->at.port) };
	const struct sockaddr *to =
		m->at.v6 ? (const struct sockaddr *)&six : (const struct sockaddr *)&six_is_not;
	socklen_t size = m->at.v6 ? sizeof(six) : sizeof(six_is_not);
	struct sockaddr_storage got;
	socklen_t got_size = sizeof(got);
	const int yes = 1;
	char host[OB_LISTEN_HOST + 2];

	(void)inet_pton(m->at.v6 ? AF_INET6 : AF_INET, m->at.host,
			m->at.v6 ? (void *)&six.sin6_addr : (void *)&six_is_not.sin_addr);
	(void)snprintf(host, sizeof(host), m->at.v6 ? "[%s]" : "%s", m->at.host);
	(void)snprintf(m->address, sizeof(m->address), "%s:%u", host, (unsigned)m->at.port);
	int fd = socket(m->at.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (fd < 0 || bind(fd, to, size) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&got, &got_size) < 0)
		return cannot("listen", m->address, fd, err);
	m->at.port = ntohs(m->at.v6 ? ((struct sockaddr_in6 *)(void *)&got)->sin6_port
				    : ((struct sockaddr_in *)(void *)&got)->sin_port);
	(void)snprintf(m->address, sizeof(m->address), "http://%s:%u%s/", host,
		       (unsigned)m->at.port, m->conf->base_path);
	m->fd = fd;
	return 0;
}

int ob_http_start(struct ob_monitor *m, struct ob_err *err)
{
	const unsigned flags =
		MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL;
	int r = m->at.path[0] ? listen_unix(m, err) : listen_tcp(m, err);

	if (r < 0)
		return r;
	m->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, on_request, m, MHD_OPTION_LISTEN_SOCKET, m->fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)m->conf->connections,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)MEMORY, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, m, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, m, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	if (!m->daemon)
		return cannot("start", m->address, -1, err);
	return 0;
}

/* Streams end first: the daemon waits for all of its threads. */
void ob_http_stop(struct ob_monitor *m)
{
	(void)pthread_mutex_lock(&m->lock);
	m->stop = true;
	(void)pthread_cond_broadcast(&m->wake);
	for (struct ob_peer *link = m->links; link; link = link->next) {
		if (!link->busy || link->stream)
			(void)shutdown(link->fd, SHUT_RD);
	}
	(void)pthread_mutex_unlock(&m->lock);
	if (m->daemon)
		MHD_stop_daemon(m->daemon);
	else if (m->fd >= 0)
		(void)close(m->fd);
	if (m->at.path[0] && m->fd >= 0)
		(void)unlink(m->at.path);
	m->daemon = NULL;
	m->fd = -1;
}
