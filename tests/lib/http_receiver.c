/* SPDX-License-Identifier: MIT */
/* The receiver: plain sockets, so that it can misbehave. */
#include "http_receiver.h"

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 4096, HEAD_MAX = 256 << 10 };

struct connection {
	struct http_receiver *receiver;
	pthread_t thread;
	int fd; /* closed by whoever joins the thread */
	bool over;
};

struct http_receiver {
	pthread_mutex_t lock; /* guards what is below, but port and listener thread */
	struct http_answer answer;
	struct http_request_seen *seen;
	size_t seen_count, seen_capacity;
	struct connection *connections[CONNECTIONS_MAX];
	size_t connection_count, accepted;
	bool stopping;
	int port, fd;
	pthread_t thread;
};

/* ---- one connection -------------------------------------------------- */

struct input {
	char *data;
	size_t used, size;
};

/* More bytes; false at the end. */
static bool read_more(int fd, struct input *in)
{
	if (in->used + 65536 > in->size) {
		in->size = in->size * 2 + 131072;
		in->data = realloc(in->data, in->size);
	}
	ssize_t n = recv(fd, in->data + in->used, in->size - in->used - 1, 0);
	if (n <= 0)
		return false;
	in->used += (size_t)n;
	in->data[in->used] = '\0';
	return true;
}

static bool send_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t w = send(fd, p, n, MSG_NOSIGNAL);

		if (w <= 0)
			return false;
		p += w;
		n -= (size_t)w;
	}
	return true;
}

static bool send_text(int fd, const char *text)
{
	return send_all(fd, text, strlen(text));
}

static size_t content_length(const char *head)
{
	const char *at = strcasestr(head, "\r\ncontent-length:");

	return at ? strtoul(at + 17, NULL, 10) : 0;
}

static struct http_answer take_next_answer(struct http_receiver *receiver)
{
	(void)pthread_mutex_lock(&receiver->lock);
	struct http_answer answer = receiver->answer;
	if (receiver->answer.times > 0 && --receiver->answer.times == 0)
		receiver->answer = (struct http_answer){ 0 };
	(void)pthread_mutex_unlock(&receiver->lock);
	return answer;
}

static void record(struct http_receiver *receiver, const char *head, size_t head_size,
		   const char *body, size_t body_size)
{
	struct http_request_seen seen = { .head = strndup(head, head_size),
					  .body = malloc(body_size + 1),
					  .body_size = body_size };

	memcpy(seen.body, body, body_size);
	seen.body[body_size] = '\0';
	(void)pthread_mutex_lock(&receiver->lock);
	if (receiver->seen_count == receiver->seen_capacity) {
		receiver->seen_capacity = receiver->seen_capacity * 2 + 64;
		receiver->seen = reallocarray(receiver->seen, receiver->seen_capacity,
					      sizeof(*receiver->seen));
	}
	receiver->seen[receiver->seen_count++] = seen;
	(void)pthread_mutex_unlock(&receiver->lock);
}

static bool send_head(int fd, const struct http_answer *answer, const char *framing)
{
	char text[2000];

	(void)snprintf(text, sizeof(text), "HTTP/1.1 %d Whatever\r\n%s%s\r\n",
		       answer->status ? answer->status : 200,
		       answer->headers ? answer->headers : "", framing);
	return send_text(fd, text);
}

/* For ever means: until the peer goes away, or the receiver is stopped. */
static bool send_for_ever(int fd, const char *text, int every_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLRDHUP };

	while (send_text(fd, text)) {
		if (every_ms > 0 && poll(&pfd, 1, every_ms) > 0)
			break;
	}
	return false;
}

static void wait_for_end(int fd)
{
	char byte;

	while (recv(fd, &byte, 1, 0) > 0)
		;
}

static bool send_plain(int fd, const struct http_answer *answer)
{
	const char *body = answer->body ? answer->body : "";
	char length[64];

	(void)snprintf(length, sizeof(length), "Content-Length: %zu\r\n", strlen(body));
	return send_head(fd, answer, length) && send_text(fd, body);
}

/* False: the connection ends here. */
static bool respond(int fd, const struct http_answer *answer)
{
	static const char kilobyte[] =
		"................................................................"
		"................................................................";

	switch (answer->manner) {
	case HTTP_PLAIN:
	case HTTP_EARLY:
		return send_plain(fd, answer);
	case HTTP_CUT:
		return false;
	case HTTP_CUT_HEAD:
		(void)send_text(fd, "HTTP/1.1 200 OK\r\n");
		return false;
	case HTTP_CUT_BODY:
		(void)send_head(fd, answer, "Content-Length: 1000\r\n");
		(void)send_text(fd, "half");
		return false;
	case HTTP_MUTE:
		wait_for_end(fd);
		return false;
	case HTTP_SLOW_BODY:
		(void)send_head(fd, answer, "Content-Length: 1000000\r\n");
		return send_for_ever(fd, ".", 10);
	case HTTP_ENDLESS:
		(void)send_head(fd, answer, "");
		return send_for_ever(fd, kilobyte, 0);
	case HTTP_LONG_HEAD:
		(void)send_text(fd, "HTTP/1.1 200 OK\r\n");
		return send_for_ever(fd, "X-More: and more and more\r\n", 0);
	case HTTP_INTERIM:
		for (int i = 0; i < 100; i++)
			(void)send_text(fd, "HTTP/1.1 100 Continue\r\n\r\n");
		return send_plain(fd, answer);
	case HTTP_BAD_CHUNK:
		(void)send_head(fd, answer, "Transfer-Encoding: chunked\r\n");
		(void)send_text(fd, "zz\r\nhello\r\n");
		return false;
	case HTTP_NO_HEAD:
		(void)send_text(fd, "hello\n");
		return false;
	}
	return false;
}

/* One request; false when the connection is over. */
static bool serve(struct http_receiver *receiver, int fd, struct input *in)
{
	const char *end;

	while (!(end = in->data ? strstr(in->data, "\r\n\r\n") : NULL)) {
		if (in->used > HEAD_MAX || !read_more(fd, in))
			return false;
	}
	size_t head = (size_t)(end - in->data) + 4;
	size_t body = content_length(in->data);
	struct http_answer answer = take_next_answer(receiver);
	if (answer.manner == HTTP_EARLY) {
		record(receiver, in->data, head, "", 0);
		(void)respond(fd, &answer);
		return false;
	}
	while (in->used < head + body) {
		if (!read_more(fd, in))
			return false;
	}
	record(receiver, in->data, head, in->data + head, body);
	if (answer.holding &&
	    !memmem(in->data + head, body, answer.holding, strlen(answer.holding)))
		answer = (struct http_answer){ 0 };
	in->used -= head + body;
	memmove(in->data, in->data + head + body, in->used + 1);
	return respond(fd, &answer);
}

static void *run_connection(void *arg)
{
	struct connection *connection = arg;
	struct input in = { 0 };

	while (serve(connection->receiver, connection->fd, &in))
		;
	free(in.data);
	(void)shutdown(connection->fd, SHUT_RDWR);
	(void)pthread_mutex_lock(&connection->receiver->lock);
	connection->over = true;
	(void)pthread_mutex_unlock(&connection->receiver->lock);
	return NULL;
}

/* ---- listening ------------------------------------------------------- */

static void join(struct connection *connection)
{
	(void)pthread_join(connection->thread, NULL);
	(void)close(connection->fd);
	free(connection);
}

/* Under the lock: forget the connections that are over. */
static void sweep(struct http_receiver *receiver)
{
	size_t kept = 0;

	for (size_t i = 0; i < receiver->connection_count; i++) {
		struct connection *connection = receiver->connections[i];

		if (!connection->over)
			receiver->connections[kept++] = connection;
		else
			join(connection);
	}
	receiver->connection_count = kept;
}

static void accept_one(struct http_receiver *receiver, int fd)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	connection->receiver = receiver;
	connection->fd = fd;
	(void)pthread_mutex_lock(&receiver->lock);
	sweep(receiver);
	receiver->accepted++;
	if (receiver->stopping || receiver->connection_count == CONNECTIONS_MAX ||
	    pthread_create(&connection->thread, NULL, run_connection, connection) != 0) {
		(void)close(fd);
		free(connection);
	} else {
		receiver->connections[receiver->connection_count++] = connection;
	}
	(void)pthread_mutex_unlock(&receiver->lock);
}

static void *run_listener(void *arg)
{
	struct http_receiver *receiver = arg;
	int fd;

	while ((fd = accept4(receiver->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		accept_one(receiver, fd);
	return NULL;
}

void http_receiver_start(struct http_receiver *receiver)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)receiver->port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(addr);
	int on = 1;

	receiver->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(receiver->fd, 0);
	(void)setsockopt(receiver->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	ck_assert_int_eq(bind(receiver->fd, (struct sockaddr *)&addr, size), 0);
	ck_assert_int_eq(listen(receiver->fd, 256), 0);
	ck_assert_int_eq(getsockname(receiver->fd, (struct sockaddr *)&addr, &size), 0);
	receiver->port = ntohs(addr.sin_port);
	receiver->stopping = false;
	ck_assert_int_eq(pthread_create(&receiver->thread, NULL, run_listener, receiver), 0);
}

struct http_receiver *http_receiver_new(void)
{
	struct http_receiver *receiver = calloc(1, sizeof(*receiver));

	ck_assert_ptr_nonnull(receiver);
	(void)pthread_mutex_init(&receiver->lock, NULL);
	http_receiver_start(receiver);
	return receiver;
}

void http_receiver_stop(struct http_receiver *receiver)
{
	if (receiver->fd < 0)
		return;
	(void)pthread_mutex_lock(&receiver->lock);
	receiver->stopping = true;
	for (size_t i = 0; i < receiver->connection_count; i++)
		(void)shutdown(receiver->connections[i]->fd, SHUT_RDWR);
	(void)pthread_mutex_unlock(&receiver->lock);
	(void)shutdown(receiver->fd, SHUT_RDWR); /* wakes accept() */
	(void)pthread_join(receiver->thread, NULL);
	(void)close(receiver->fd);
	receiver->fd = -1;
	for (size_t i = 0; i < receiver->connection_count; i++)
		join(receiver->connections[i]);
	receiver->connection_count = 0;
}

void http_receiver_free(struct http_receiver *receiver)
{
	http_receiver_stop(receiver);
	for (size_t i = 0; i < receiver->seen_count; i++) {
		free(receiver->seen[i].head);
		free(receiver->seen[i].body);
	}
	free(receiver->seen);
	(void)pthread_mutex_destroy(&receiver->lock);
	free(receiver);
}

int http_receiver_port(const struct http_receiver *receiver)
{
	return receiver->port;
}

void http_receiver_answer(struct http_receiver *receiver, const struct http_answer *answer)
{
	(void)pthread_mutex_lock(&receiver->lock);
	receiver->answer = *answer;
	(void)pthread_mutex_unlock(&receiver->lock);
}

/* ---- looking --------------------------------------------------------- */

size_t http_receiver_count(struct http_receiver *receiver)
{
	(void)pthread_mutex_lock(&receiver->lock);
	size_t count = receiver->seen_count;
	(void)pthread_mutex_unlock(&receiver->lock);
	return count;
}

size_t http_receiver_connections(struct http_receiver *receiver)
{
	(void)pthread_mutex_lock(&receiver->lock);
	size_t count = receiver->accepted;
	(void)pthread_mutex_unlock(&receiver->lock);
	return count;
}

struct http_request_seen http_receiver_get(struct http_receiver *receiver, size_t at)
{
	(void)pthread_mutex_lock(&receiver->lock);
	ck_assert_uint_lt(at, receiver->seen_count);
	struct http_request_seen seen = receiver->seen[at];
	(void)pthread_mutex_unlock(&receiver->lock);
	return seen;
}

static unsigned hex_digit(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

char *http_header(const struct http_request_seen *seen, const char *name, size_t *ret_size)
{
	size_t name_size = strlen(name), n = 0;
	const char *line = strstr(seen->head, "\r\n");

	while (line && (strncasecmp(line + 2, name, name_size) != 0 || line[2 + name_size] != ':'))
		line = strstr(line + 2, "\r\n");
	if (!line)
		return NULL;
	const char *at = line + 2 + name_size + 1;
	at += strspn(at, " ");
	const char *end = strstr(at, "\r\n");
	char *value = malloc((size_t)(end - at) + 1);
	while (at < end) {
		if (*at == '%' && end - at >= 3) {
			value[n++] = (char)(hex_digit(at[1]) << 4 | hex_digit(at[2]));
			at += 3;
		} else {
			value[n++] = *at++;
		}
	}
	value[n] = '\0';
	if (ret_size)
		*ret_size = n;
	return value;
}
