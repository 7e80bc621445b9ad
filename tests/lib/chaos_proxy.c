/* SPDX-License-Identifier: MIT */
/*
 * One thread and one poll() for all connections. A direction holds one block: it is read only
 * when the block before has gone out, so that a slow reader slows the writer down as a
 * network would. What may be the beginning of the bytes to match or to exchange is held back
 * until more comes.
 */
#include "chaos_proxy.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LINKS_MAX = 64, BLOCK = 65536, MATCH_MAX = 256 };

/* The bytes of one direction: sent <= ready <= size. */
struct flow {
	char block[BLOCK];
	size_t size, ready, sent;
	size_t before;   /* bytes that passed ahead of this block, since the plan was set */
	int64_t due_ms;  /* when the block may go on */
	bool ends;       /* the writer has closed */
	bool passed_end; /* and the reader knows */
};

struct link {
	int fd[CHAOS_WAYS]; /* where a direction leads to: server, client */
	struct flow *flow[CHAOS_WAYS];
	bool mute;
};

struct chaos_proxy {
	pthread_t thread;
	pthread_mutex_t lock; /* all that follows; the thread gives it up only in poll() */
	int listener, wake, port, server_port;
	bool ends, breaks;
	struct chaos_plan plan;
	char match[CHAOS_WAYS][MATCH_MAX];
	char swap_from[MATCH_MAX], swap_to[MATCH_MAX];
	size_t swap_size; /* 0: nothing is exchanged */
	size_t connections, cuts;
	struct link links[LINKS_MAX];
	size_t link_count;
};

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

/* ---- connections ----------------------------------------------------- */

static void set_modes(int fd)
{
	int one = 1;

	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void reset_on_close(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static void accept_one(struct chaos_proxy *p)
{
	struct sockaddr_in to = loopback(p->server_port);
	int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
	int server;

	if (client < 0)
		return;
	p->connections++;
	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(server, (struct sockaddr *)&to, sizeof(to)) < 0 || p->link_count == LINKS_MAX) {
		/* nobody is there: the client sees what it would see without us */
		reset_on_close(client);
		(void)close(client);
		(void)close(server);
		return;
	}
	set_modes(client);
	set_modes(server);
	p->links[p->link_count++] = (struct link){
		.fd = { [CHAOS_TO_SERVER] = server, [CHAOS_TO_CLIENT] = client },
		.flow = { calloc(1, sizeof(struct flow)), calloc(1, sizeof(struct flow)) },
	};
}

static void close_link(struct chaos_proxy *p, size_t at, bool reset)
{
	struct link *link = &p->links[at];

	if (reset)
		reset_on_close(link->fd[CHAOS_TO_CLIENT]);
	for (int way = 0; way < CHAOS_WAYS; way++) {
		(void)close(link->fd[way]);
		free(link->flow[way]);
	}
	*link = p->links[--p->link_count];
}

/* Returns whether the link is gone. */
static bool cut(struct chaos_proxy *p, size_t at)
{
	enum chaos_end end = p->plan.end;

	p->cuts++;
	if (p->plan.times > 0 && --p->plan.times == 0)
		p->plan = (struct chaos_plan){ 0 };
	if (end == CHAOS_MUTE) {
		p->links[at].mute = true;
		return false;
	}
	close_link(p, at, end == CHAOS_RESET);
	return true;
}

/* ---- moving bytes ---------------------------------------------------- */

/* How many bytes at the end of the block may be the beginning of these. */
static size_t beginning(const struct flow *flow, const char *bytes, size_t size)
{
	size_t keep = size - 1 < flow->size ? size - 1 : flow->size;

	while (keep > 0 && memcmp(flow->block + flow->size - keep, bytes, keep) != 0)
		keep--;
	return keep;
}

/*
 * How much of the block may pass, of which `keep` bytes at the end must wait; *ret_cut: and then
 * the connection is cut.
 */
static size_t judge(const struct chaos_cut *limit, const struct flow *flow, size_t keep,
		    bool *ret_cut)
{
	const char *found = NULL;
	size_t pass;

	*ret_cut = false;
	if (limit->match) {
		size_t more = beginning(flow, limit->match, limit->match_size);

		found = memmem(flow->block, flow->size, limit->match, limit->match_size);
		keep = more > keep ? more : keep;
	}
	pass = found ? (size_t)(found - flow->block) : flow->size - keep;
	*ret_cut = found != NULL;
	if (limit->after > 0 && flow->before + pass >= limit->after) {
		pass = limit->after > flow->before ? limit->after - flow->before : 0;
		*ret_cut = true;
	}
	return pass;
}

/* What has gone out leaves the block. */
static void compact(struct flow *flow)
{
	memmove(flow->block, flow->block + flow->sent, flow->size - flow->sent);
	flow->before += flow->sent;
	flow->size -= flow->sent;
	flow->ready -= flow->sent;
	flow->sent = 0;
}

static void fill(const struct chaos_proxy *p, struct link *link, int way)
{
	struct flow *flow = link->flow[way];
	ssize_t n;

	compact(flow);
	if (flow->size == BLOCK)
		return;
	n = read(link->fd[!way], flow->block + flow->size, BLOCK - flow->size);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		flow->ends = true;
	if (n <= 0)
		return;
	if (flow->size == 0)
		flow->due_ms = now_ms() + p->plan.delay_ms;
	flow->size += (size_t)n;
}

/* Exchange what is to be exchanged; returns how many bytes at the end may belong to it. */
static size_t swap(const struct chaos_proxy *p, struct flow *flow, int way)
{
	if (way != CHAOS_TO_CLIENT || p->swap_size == 0)
		return 0;
	for (char *at = flow->block;
	     (at = memmem(at, flow->size - (size_t)(at - flow->block), p->swap_from, p->swap_size));
	     at += p->swap_size)
		memcpy(at, p->swap_to, p->swap_size);
	return beginning(flow, p->swap_from, p->swap_size);
}

/* Write what may go. Returns false when the reader is gone. */
static bool drain(const struct chaos_proxy *p, struct link *link, int way)
{
	struct flow *flow = link->flow[way];
	size_t size = flow->ready - flow->sent;

	if (p->plan.slice > 0 && size > p->plan.slice)
		size = p->plan.slice;
	ssize_t n = size ? send(link->fd[way], flow->block + flow->sent, size, MSG_NOSIGNAL) : 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	flow->sent += (size_t)n;
	return true;
}

/* Returns whether the link is gone. */
static bool move_one_way(struct chaos_proxy *p, size_t at, int way)
{
	struct link *link = &p->links[at];
	struct flow *flow = link->flow[way];
	bool cuts;

	if (link->mute)
		return false;
	if (flow->ready == flow->sent && !flow->ends)
		fill(p, link, way);
	if (flow->due_ms > now_ms())
		return false;
	/* what was held back cannot become the match when no more will come */
	size_t pass = judge(&p->plan.cut[way], flow, swap(p, flow, way), &cuts);
	flow->ready = flow->ends && !cuts ? flow->size : flow->sent > pass ? flow->sent : pass;
	if (!drain(p, link, way)) {
		close_link(p, at, true);
		return true;
	}
	if (cuts && flow->sent == flow->ready)
		return cut(p, at);
	if (flow->ends && flow->sent == flow->size && !flow->passed_end) {
		flow->passed_end = true;
		(void)shutdown(link->fd[way], SHUT_WR);
		if (link->flow[!way]->passed_end) {
			close_link(p, at, false);
			return true;
		}
	}
	return false;
}

/* ---- the thread ------------------------------------------------------ */

/* What to wait for on a link; returns how long at most, or -1. */
static int interest(const struct link *link, struct pollfd fds[CHAOS_WAYS])
{
	int64_t now = now_ms(), wait = -1;

	for (int way = 0; way < CHAOS_WAYS; way++)
		fds[way] = (struct pollfd){ .fd = link->mute ? -1 : link->fd[way] };
	for (int way = 0; way < CHAOS_WAYS && !link->mute; way++) {
		const struct flow *flow = link->flow[way];

		if (flow->sent == flow->ready && flow->size > flow->ready && flow->due_ms > now)
			wait = wait < 0 || flow->due_ms - now < wait ? flow->due_ms - now : wait;
		else if (flow->sent < flow->ready)
			fds[way].events |= POLLOUT;
		else if (!flow->ends)
			fds[!way].events |= POLLIN;
	}
	/* without anything to ask, an error would wake us again and again */
	for (int way = 0; way < CHAOS_WAYS; way++)
		fds[way].fd = fds[way].events ? fds[way].fd : -1;
	return (int)wait;
}

static void turn(struct chaos_proxy *p)
{
	struct pollfd fds[2 + CHAOS_WAYS * LINKS_MAX] = { { p->listener, POLLIN, 0 },
							  { p->wake, POLLIN, 0 } };
	int timeout = -1;
	uint64_t rings;

	for (size_t i = 0; i < p->link_count; i++) {
		int wait = interest(&p->links[i], &fds[2 + CHAOS_WAYS * i]);

		if (wait >= 0 && (timeout < 0 || wait < timeout))
			timeout = wait;
	}
	nfds_t count = 2 + CHAOS_WAYS * p->link_count;

	(void)pthread_mutex_unlock(&p->lock);
	(void)poll(fds, count, timeout);
	(void)pthread_mutex_lock(&p->lock);
	if (fds[1].revents)
		(void)!read(p->wake, &rings, sizeof(rings));
	/* from the last, since a link that goes is replaced by the last one */
	for (size_t i = p->link_count; i-- > 0;) {
		if (p->breaks)
			close_link(p, i, true);
		else if (!move_one_way(p, i, CHAOS_TO_SERVER))
			(void)move_one_way(p, i, CHAOS_TO_CLIENT);
	}
	p->breaks = false;
	if (fds[0].revents)
		accept_one(p);
}

static void *serve(void *arg)
{
	struct chaos_proxy *p = arg;

	(void)pthread_mutex_lock(&p->lock);
	while (!p->ends)
		turn(p);
	while (p->link_count > 0)
		close_link(p, p->link_count - 1, true);
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Make the thread look at what was changed under the lock. */
static void ring(struct chaos_proxy *p)
{
	uint64_t one = 1;

	ck_assert_int_eq(write(p->wake, &one, sizeof(one)), sizeof(one));
}

struct chaos_proxy *chaos_proxy_new(int server_port)
{
	struct chaos_proxy *p = calloc(1, sizeof(*p));
	struct sockaddr_in any = loopback(0);
	socklen_t size = sizeof(any);

	ck_assert_ptr_nonnull(p);
	p->server_port = server_port;
	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ck_assert_int_eq(bind(p->listener, (struct sockaddr *)&any, sizeof(any)), 0);
	ck_assert_int_eq(listen(p->listener, LINKS_MAX), 0);
	ck_assert_int_eq(getsockname(p->listener, (struct sockaddr *)&any, &size), 0);
	p->port = ntohs(any.sin_port);
	ck_assert_int_eq(pthread_mutex_init(&p->lock, NULL), 0);
	ck_assert_int_eq(pthread_create(&p->thread, NULL, serve, p), 0);
	return p;
}

void chaos_proxy_free(struct chaos_proxy *p)
{
	(void)pthread_mutex_lock(&p->lock);
	p->ends = true;
	(void)pthread_mutex_unlock(&p->lock);
	ring(p);
	(void)pthread_join(p->thread, NULL);
	(void)pthread_mutex_destroy(&p->lock);
	(void)close(p->listener);
	(void)close(p->wake);
	free(p);
}

int chaos_proxy_port(const struct chaos_proxy *p)
{
	return p->port;
}

void chaos_proxy_plan(struct chaos_proxy *p, const struct chaos_plan *plan)
{
	(void)pthread_mutex_lock(&p->lock);
	p->plan = *plan;
	for (int way = 0; way < CHAOS_WAYS; way++) {
		struct chaos_cut *limit = &p->plan.cut[way];

		if (!limit->match)
			continue;
		if (limit->match_size == 0)
			limit->match_size = strlen(limit->match);
		ck_assert_uint_ge(limit->match_size, 1);
		ck_assert_uint_le(limit->match_size, MATCH_MAX);
		limit->match = memcpy(p->match[way], limit->match, limit->match_size);
	}
	for (size_t i = 0; i < p->link_count; i++) {
		for (int way = 0; way < CHAOS_WAYS; way++) {
			compact(p->links[i].flow[way]);
			p->links[i].flow[way]->before = 0;
		}
	}
	(void)pthread_mutex_unlock(&p->lock);
	ring(p);
}

void chaos_proxy_swap(struct chaos_proxy *p, const char *from, const char *to, size_t size)
{
	ck_assert_uint_le(size, MATCH_MAX);
	(void)pthread_mutex_lock(&p->lock);
	memcpy(p->swap_from, from, size);
	memcpy(p->swap_to, to, size);
	p->swap_size = size;
	(void)pthread_mutex_unlock(&p->lock);
}

void chaos_proxy_break(struct chaos_proxy *p)
{
	(void)pthread_mutex_lock(&p->lock);
	p->breaks = true;
	(void)pthread_mutex_unlock(&p->lock);
	ring(p);
}

static size_t look(struct chaos_proxy *p, const size_t *number)
{
	(void)pthread_mutex_lock(&p->lock);
	size_t n = *number;
	(void)pthread_mutex_unlock(&p->lock);
	return n;
}

size_t chaos_proxy_connections(struct chaos_proxy *p)
{
	return look(p, &p->connections);
}

size_t chaos_proxy_cuts(struct chaos_proxy *p)
{
	return look(p, &p->cuts);
}
