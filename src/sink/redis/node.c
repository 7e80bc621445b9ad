/* SPDX-License-Identifier: MIT */
/* One connection to a Redis server: logging in, commands out, answers in. */
#include "sink/redis/redis.h"

#include <hiredis/hiredis.h>
#include <limits.h>
#include <stdlib.h>

enum { READ_SIZE = 16384, REPLY_MAX = 1 << 20 };

struct ob_redis_node *ob_redis_node_new(const struct redis_sink *sink, const char *host,
					const char *port)
{
	struct ob_redis_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->net = OB_NET_INIT;
	node->out = OB_OUTBUF_INIT((size_t)OB_REDIS_INPUT_MAX * 7);
	node->ring = calloc(sink->window, sizeof(*node->ring));
	(void)snprintf(node->host, sizeof(node->host), "%s", host);
	(void)snprintf(node->port, sizeof(node->port), "%s", port);
	if (node->ring)
		return node;
	free(node);
	return NULL;
}

void ob_redis_node_drop(struct ob_redis_node *node)
{
	ob_net_close(&node->net);
	redisReaderFree(node->reader);
	node->reader = NULL;
	ob_outbuf_drop(&node->out);
	node->head = node->count = 0;
	node->open = node->loaded = node->leaving = false;
}

void ob_redis_node_free(struct ob_redis_node *node)
{
	if (!node)
		return;
	ob_redis_node_drop(node);
	free(node->ring);
	free(node);
}

void ob_redis_node_lose(struct redis_sink *sink, struct ob_redis_node *node,
			const struct ob_err *err)
{
	for (; node->count > 0; node->count--) {
		struct ob_lane *lane = node->ring[node->head].lane;

		ob_lane_failed(&sink->lanes, lane, err);
		ob_lane_give_back(&sink->lanes, lane);
		node->head = (node->head + 1) % sink->window;
	}
	if (node == sink->nodes[0])
		ob_lanes_fail_ready(&sink->lanes, err);
	ob_redis_forget_node(sink, node);
	ob_redis_node_drop(node);
}

/* ---- bytes ----------------------------------------------------------- */

/* 0: all is out or no more goes now. */
static int flush(struct ob_redis_node *node, const struct ob_clock *clock, struct ob_err *err)
{
	bool was_blocked = node->out.blocked;
	int r = ob_outbuf_flush(&node->out, &node->net, err);

	if (r > 0 && was_blocked)
		node->progress_us = ob_clock_boot_us(clock);
	return r < 0 ? r : 0;
}

/* Feed what is there: 1 more came, 0 nothing now, or an error. */
static int feed(const struct redis_sink *sink, struct ob_redis_node *node, struct ob_err *err)
{
	size_t most = sink->reply_max ? sink->reply_max : REPLY_MAX;
	char chunk[READ_SIZE];
	ssize_t n = ob_net_read(&node->net, chunk, sizeof(chunk), err);

	if (n <= 0)
		return n < 0 ? err->status : 0;
	if (redisReaderFeed(node->reader, chunk, (size_t)n) != REDIS_OK || node->reader->len > most)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "%.100s:%s sends an answer that is too long", node->host,
				  node->port);
	return 1;
}

/* The next answer, or NULL when it is not complete. The caller frees it. */
static int next_reply(struct ob_redis_node *node, redisReply **ret, struct ob_err *err)
{
	void *reply = NULL;

	if (redisReaderGetReply(node->reader, &reply) != REDIS_OK)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "%.100s:%s does not speak the protocol of Redis: %.100s",
				  node->host, node->port, node->reader->errstr);
	*ret = reply;
	return 0;
}

/* ---- logging in ------------------------------------------------------ */

static int await_reply(const struct redis_sink *sink, struct ob_redis_node *node,
		       int64_t deadline_us, redisReply **ret, struct ob_err *err)
{
	const struct ob_clock *clock = sink->base.clock;

	for (;;) {
		int r = flush(node, clock, err);

		if (r == 0)
			r = next_reply(node, ret, err);
		if (r < 0 || *ret)
			return r;
		r = feed(sink, node, err);
		if (r < 0)
			return r;
		if (r == 0 && !ob_net_wait(&node->net, ob_net_events(&node->net, node->out.blocked),
					   clock, deadline_us))
			return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
					  "logging in at %.100s:%s: no answer within %lld ms",
					  node->host, node->port,
					  (long long)sink->connect_timeout_ms);
	}
}

struct ob_str ob_redis_info(struct ob_str info, const char *name)
{
	size_t n = strlen(name);

	for (const char *line = info.p, *end; line; line = end ? end + 1 : NULL) {
		size_t left = info.n - (size_t)(line - info.p);

		end = memchr(line, '\n', left);
		if (left > n && memcmp(line, name, n) == 0 && line[n] == ':') {
			size_t size = end ? (size_t)(end - line) - n - 1 : left - n - 1;

			while (size > 0 && line[n + size] == '\r')
				size--;
			return (struct ob_str){ line + n + 1, size };
		}
	}
	return OB_STR_NULL;
}

/* A server that throws away keys when it is full may throw away a stream with all in it. */
static void note_policy(struct redis_sink *sink, const redisReply *reply)
{
	struct ob_str info = { reply->str,
			       reply->type == REDIS_REPLY_STRING ? (size_t)reply->len : 0 };
	struct ob_str policy = info.n ? ob_redis_info(info, "maxmemory_policy") : OB_STR_NULL;

	sink->policy[0] = '\0';
	if (policy.p && policy.n > 8 && memcmp(policy.p, "allkeys-", 8) == 0)
		(void)snprintf(sink->policy, sizeof(sink->policy), "%.*s", (int)policy.n, policy.p);
}

static int add_login(const struct redis_sink *sink, struct ob_buf *out)
{
	const char *user = sink->username ? sink->username : sink->url.user;
	const char *password = sink->password ? sink->password : sink->url.password;
	char db[12];
	int count = 2;

	if (user) {
		const char *words[] = { "AUTH", user, password ? password : "" };
		ob_redis_add_words(out, words, 3);
		count++;
	} else if (password) {
		const char *words[] = { "AUTH", password };
		ob_redis_add_words(out, words, 2);
		count++;
	}
	if (sink->url.db > 0) {
		(void)snprintf(db, sizeof(db), "%u", sink->url.db);
		const char *words[] = { "SELECT", db };
		ob_redis_add_words(out, words, 2);
		count++;
	}
	ob_redis_add_words(out, (const char *const[]){ "PING" }, 1);
	ob_redis_add_words(out, (const char *const[]){ "INFO", "memory" }, 2);
	return count;
}

static int check_login(const struct ob_redis_node *node, const redisReply *reply,
		       struct ob_err *err)
{
	bool leave;

	if (reply->type != REDIS_REPLY_ERROR)
		return 0;
	(void)ob_redis_error((struct ob_str){ reply->str, (size_t)reply->len }, &leave, err);
	err->kind = OB_ERR_DOWN;
	return ob_err_context(err, "logging in at %.100s:%s", node->host, node->port);
}

/* All but the last (INFO, which some servers forbid) must be answered well. */
static int log_in(struct redis_sink *sink, struct ob_redis_node *node, int64_t deadline_us,
		  struct ob_err *err)
{
	int count = add_login(sink, &node->out.bytes);
	int r = 0;

	if (node->out.bytes.failed)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a command");
	for (int i = 0; i < count && r == 0; i++) {
		redisReply *reply = NULL;

		r = await_reply(sink, node, deadline_us, &reply, err);
		if (!reply)
			continue;
		if (i < count - 1)
			r = check_login(node, reply, err);
		else
			note_policy(sink, reply);
		freeReplyObject(reply);
	}
	return r;
}

int ob_redis_node_open(struct redis_sink *sink, struct ob_redis_node *node, struct ob_err *err)
{
	const struct ob_clock *clock = sink->base.clock;
	int64_t deadline = ob_clock_boot_us(clock) + sink->connect_timeout_ms * 1000;
	bool by_path = node == sink->nodes[0] && sink->url.path[0];
	struct ob_net_addr addr = { .path = by_path ? sink->url.path : NULL,
				    .host = node->host,
				    .port = node->port,
				    .tls = sink->tls };

	if (node->open)
		return 0;
	int r = ob_net_connect(&node->net, &addr, (int)sink->timeout_ms, clock, deadline, err);
	if (r < 0)
		return r;
	node->reader = redisReaderCreate();
	r = node->reader ? log_in(sink, node, deadline, err)
			 : ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a reader");
	if (r < 0) {
		ob_redis_node_drop(node);
		return r;
	}
	node->open = true;
	return 0;
}

int ob_redis_node_ask(struct redis_sink *sink, struct ob_redis_node *node, const char *const *words,
		      size_t count, struct redisReply **ret_reply, struct ob_err *err)
{
	int64_t deadline = ob_clock_boot_us(sink->base.clock) + sink->timeout_ms * 1000;

	ob_redis_add_words(&node->out.bytes, words, count);
	if (node->out.bytes.failed)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a command");
	*ret_reply = NULL;
	int r = await_reply(sink, node, deadline, ret_reply, err);
	if (r < 0)
		ob_redis_node_drop(node);
	return r;
}

/* ---- commands -------------------------------------------------------- */

int ob_redis_node_command(struct redis_sink *sink, struct ob_redis_node *node, struct ob_lane *lane,
			  struct ob_err *err)
{
	struct ob_redis_command command;

	ob_outbuf_compact(&node->out, OB_REDIS_OUT_BYTES);
	int r = ob_redis_add_run(sink, node, lane, &node->out.bytes, &command, err);
	if (r < 0)
		return r;
	if (node->count == 0)
		node->progress_us = ob_clock_boot_us(sink->base.clock);
	node->ring[(node->head + node->count) % sink->window] = command;
	node->count++;
	return 0;
}

int64_t ob_redis_node_deadline(const struct redis_sink *sink, const struct ob_redis_node *node)
{
	return node->count > 0 ? node->progress_us + sink->timeout_ms * 1000 : INT64_MAX;
}

/* 1: more may come, 0: not now, or an error. */
static int read_some(struct redis_sink *sink, struct ob_redis_node *node, struct ob_err *err)
{
	int more = feed(sink, node, err);

	while (more > 0) {
		redisReply *reply = NULL;
		int r = next_reply(node, &reply, err);

		if (r == 0 && !reply)
			break;
		if (r == 0)
			r = ob_redis_reply(sink, node, reply, err);
		freeReplyObject(reply);
		if (r < 0)
			return r;
		node->progress_us = ob_clock_boot_us(sink->base.clock);
	}
	return more;
}

void ob_redis_node_read(struct redis_sink *sink, struct ob_redis_node *node)
{
	struct ob_err err = OB_ERR_INIT;
	int r;

	do
		r = read_some(sink, node, &err);
	while (r > 0);
	if (r == 0 && ob_redis_node_deadline(sink, node) <= ob_clock_boot_us(sink->base.clock))
		r = ob_err_set(&err, OUTBOX_ESINK, OB_ERR_DOWN,
			       "%.100s:%s has not answered for %lld ms", node->host, node->port,
			       (long long)sink->timeout_ms);
	if (r < 0)
		ob_redis_node_lose(sink, node, &err);
	else if (node->leaving && node->count == 0)
		ob_redis_node_lose(sink, node, &node->why);
}

void ob_redis_node_write(struct redis_sink *sink, struct ob_redis_node *node)
{
	struct ob_err err = OB_ERR_INIT;

	if (flush(node, sink->base.clock, &err) == 0)
		return;
	/* A server says why it closes: what it still sent counts. */
	ob_redis_node_read(sink, node);
	if (node->open)
		ob_redis_node_lose(sink, node, &err);
}
