/* SPDX-License-Identifier: MIT */
/*
 * Redis Streams: XADD to the stream that the destination names. A message counts
 * when the server has answered with its id in the stream.
 *
 * Order: of one key there is never more than one command under way. A single
 * message is a plain XADD, several to one stream are one script that stops at its
 * first error, so nothing behind a failure is stored. Different keys are
 * pipelined.
 *
 * A lost connection or a missing answer leaves the fate of what is under way
 * unknown: it fails as DOWN and comes again, perhaps as a second copy.
 */
#include "sink/redis/redis.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>

/* ---- opening --------------------------------------------------------- */

static int make_tls(struct redis_sink *sink, struct ob_err *err)
{
	struct ob_net_tls_conf conf = { .ca = sink->tls_ca,
					.cert = sink->tls_cert,
					.key = sink->tls_key,
					.verify = sink->tls_verify };

	return sink->url.tls ? ob_net_tls_new(&conf, &sink->tls, err) : 0;
}

/* Take the url apart and see whether the other options go with it. */
static int read_options(const struct redis_sink *sink, struct ob_redis_url *ret_url,
			struct ob_err *err)
{
	if (sink->max_len > 0 && sink->max_age_ms > 0)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the redis sink can trim by max_len or by max_age, not by both");
	int r = ob_redis_url_parse(sink->url_text, ret_url, err);
	if (r == 0 && !ret_url->tls && (sink->tls_ca || sink->tls_cert || sink->tls_key))
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the redis sink has tls options, but its url asks for no TLS: "
				  "write rediss://");
	return r;
}

static int redis_check(struct ob_sink *base, struct ob_err *err)
{
	struct ob_redis_url url = { 0 };
	int r = read_options((struct redis_sink *)base, &url, err);

	ob_redis_url_done(&url);
	return r;
}

/* What needs no peer, once. */
static int prepare(struct redis_sink *sink, struct ob_err *err)
{
	int r;

	if (sink->ready)
		return 0;
	r = read_options(sink, &sink->url, err);
	if (r == 0)
		r = make_tls(sink, err);
	if (r == 0)
		r = ob_lanes_init(&sink->lanes, sink->window, err);
	if (r == 0) {
		bool by_path = sink->url.path[0];

		sink->nodes[0] =
			ob_redis_node_new(sink, by_path ? sink->url.path : sink->url.host.name,
					  by_path ? "unix" : sink->url.host.port);
		if (!sink->nodes[0])
			r = ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "allocating for redis");
	}
	if (r < 0) {
		ob_redis_url_done(&sink->url);
		ob_net_tls_free(sink->tls);
		sink->tls = NULL;
		return r;
	}
	sink->scratch = OB_BUF_INIT((size_t)OB_REDIS_INPUT_MAX * 7);
	sink->node_count = 1;
	sink->ready = true;
	return 0;
}

static int redis_open(struct ob_sink *base, struct ob_err *err)
{
	struct redis_sink *sink = (struct redis_sink *)base;
	int r = prepare(sink, err);

	return r < 0 ? r : ob_redis_node_open(sink, sink->nodes[0], err);
}

/* ---- sending --------------------------------------------------------- */

/* Servers close connections that were idle for long: see it before a message meets it. */
static int freshen(struct redis_sink *sink, struct ob_redis_node *node, struct ob_err *err)
{
	if (ob_lanes_waiting(&sink->lanes) == 0 && !ob_net_is_quiet(&node->net))
		ob_redis_node_read(sink, node);
	return node->open ? 0 : ob_redis_node_open(sink, node, err);
}

static int redis_send(struct ob_sink *base, const struct ob_delivery *delivery, struct ob_err *err)
{
	struct redis_sink *sink = (struct redis_sink *)base;
	struct ob_redis_node *node = sink->nodes[0];
	size_t size = ob_redis_input_size(delivery);

	if (!node || !node->open)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "redis is not connected");
	if (size > OB_REDIS_INPUT_MAX)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
				  "a message of %zu bytes is too large for redis (at most %d MB)",
				  size, OB_REDIS_INPUT_MAX >> 20);
	if (delivery->destination.n == 0)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
				  "the destination is empty: redis needs the name of a stream");
	int r = freshen(sink, node, err);
	if (r < 0)
		return r;
	if (node->leaving)
		return OB_SINK_FULL;
	return ob_lanes_add(&sink->lanes, delivery);
}

/* Ready lanes become commands, as long as their server takes bytes. */
static void fill(struct redis_sink *sink)
{
	for (struct ob_lane *lane; (lane = ob_lanes_take(&sink->lanes));) {
		struct ob_err err = OB_ERR_INIT;
		struct ob_redis_node *node = ob_redis_route(sink, lane, &err);

		if (node && (node->leaving || ob_outbuf_left(&node->out) >= OB_REDIS_OUT_BYTES)) {
			ob_lanes_untake(&sink->lanes, lane);
			return;
		}
		if (!node || ob_redis_node_command(sink, node, lane, &err) < 0) {
			err.kind = OB_ERR_DOWN;
			err.hung_up = false; /* perhaps, but not on these */
			ob_lane_failed(&sink->lanes, lane, &err);
			ob_lane_give_back(&sink->lanes, lane);
			/* The others too: each could cost us a connect timeout. */
			ob_lanes_fail_ready(&sink->lanes, &err);
		}
	}
}

/* ---- polling --------------------------------------------------------- */

static void turn(struct redis_sink *sink)
{
	for (uint32_t i = 0; i < sink->node_count; i++) {
		if (sink->nodes[i]->open)
			ob_redis_node_read(sink, sink->nodes[i]);
	}
	fill(sink);
	for (uint32_t i = 0; i < sink->node_count; i++) {
		if (sink->nodes[i]->open)
			ob_redis_node_write(sink, sink->nodes[i]);
	}
}

static bool is_over(const struct redis_sink *sink)
{
	return sink->lanes.done_count > 0 || ob_lanes_waiting(&sink->lanes) == 0;
}

/* Until something moves, a server has been silent for too long, or time is up. */
static void wait_for_any(const struct redis_sink *sink, int64_t until_us)
{
	struct pollfd fds[OB_REDIS_NODES];
	nfds_t count = 0;

	for (uint32_t i = 0; i < sink->node_count; i++) {
		const struct ob_redis_node *node = sink->nodes[i];
		int64_t deadline = ob_redis_node_deadline(sink, node);

		if (!node->open)
			continue;
		until_us = deadline < until_us ? deadline : until_us;
		fds[count].fd = node->net.fd;
		fds[count].revents = 0;
		fds[count++].events = ob_net_events(&node->net, ob_outbuf_left(&node->out) > 0);
	}
	int64_t ms = (until_us - ob_clock_boot_us(sink->base.clock) + 999) / 1000;
	(void)poll(fds, count, ms <= 0 ? 0 : ms > INT_MAX ? INT_MAX : (int)ms);
}

static int redis_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
		      struct ob_err *err)
{
	struct redis_sink *sink = (struct redis_sink *)base;
	int64_t end = ob_clock_boot_us(base->clock) + timeout_ms * INT64_C(1000);

	(void)err; /* whatever happens has a message to tell it */
	if (!sink->ready)
		return 0;
	turn(sink);
	while (!is_over(sink) && ob_clock_boot_us(base->clock) < end) {
		wait_for_any(sink, end);
		turn(sink);
	}
	return ob_lanes_outcomes(&sink->lanes, acks, max);
}

static void redis_reset(struct ob_sink *base)
{
	struct redis_sink *sink = (struct redis_sink *)base;

	/* What is half sent cannot be taken back, and answers would come to the wrong ones. */
	for (uint32_t i = 0; i < sink->node_count; i++) {
		if (sink->nodes[i]->count > 0)
			ob_redis_node_drop(sink->nodes[i]);
	}
	ob_lanes_clear(&sink->lanes);
}

static int redis_fd(struct ob_sink *base)
{
	const struct redis_sink *sink = (struct redis_sink *)base;
	const struct ob_redis_node *node = sink->nodes[0];

	/* Several, or one that must also be polled for writing, do not fit into one answer. */
	return sink->node_count == 1 && node->open && !node->out.blocked ? node->net.fd : -1;
}

static void redis_close(struct ob_sink *base)
{
	struct redis_sink *sink = (struct redis_sink *)base;

	for (uint32_t i = 0; i < sink->node_count; i++)
		ob_redis_node_free(sink->nodes[i]);
	ob_lanes_done(&sink->lanes);
	ob_net_tls_free(sink->tls);
	ob_redis_url_done(&sink->url);
	ob_buf_done(&sink->scratch);
	free(sink->slots);
}

static void redis_describe(struct ob_sink *base, struct ob_buf *out)
{
	const struct redis_sink *sink = (struct redis_sink *)base;
	struct ob_redis_url url = { 0 };
	struct ob_err err = OB_ERR_INIT;

	if (ob_redis_url_parse(sink->url_text, &url, &err) < 0) {
		ob_buf_adds(out, "redis (bad url)");
		return;
	}
	if (url.path[0])
		ob_buf_addf(out, "redis %s db %u", url.path, url.db);
	else
		ob_buf_addf(out, "redis %s:%s db %u%s", url.host.name, url.host.port, url.db,
			    url.tls ? " TLS" : "");
	ob_redis_url_done(&url);
}

/* ---- options --------------------------------------------------------- */

static const struct ob_opt redis_opts[] = {
	{
		.name = "url",
		.type = OB_OPT_STR,
		.offset = offsetof(struct redis_sink, url_text),
		.flags = OB_OPT_REQUIRED | OB_OPT_SECRET,
		.help = "redis://user:password@host:port/db, rediss:// for TLS, unix:///path?db=0.",
	},
	{
		.name = "username",
		.type = OB_OPT_STR,
		.offset = offsetof(struct redis_sink, username),
		.help = "The user to log in as, instead of the one in the url.",
	},
	{
		.name = "password",
		.type = OB_OPT_STR,
		.offset = offsetof(struct redis_sink, password),
		.flags = OB_OPT_SECRET,
		.help = "The password to log in with, instead of the one in the url.",
	},
	{
		.name = "connect_timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct redis_sink, connect_timeout_ms),
		.dflt = "5s",
		.min = 10,
		.max = 60000,
		.help = "Time to connect and log in.",
	},
	{
		.name = "timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct redis_sink, timeout_ms),
		.dflt = "10s",
		.min = 10,
		.max = 600000,
		.help = "How long the server may be silent while answers are due.",
	},
	{
		.name = "tls_ca",
		.type = OB_OPT_STR,
		.offset = offsetof(struct redis_sink, tls_ca),
		.help = "A file of PEM certificates to trust, instead of the system's.",
	},
	{
		.name = "tls_cert",
		.type = OB_OPT_STR,
		.offset = offsetof(struct redis_sink, tls_cert),
		.help = "Our own certificate, in PEM, for servers that ask for one.",
	},
	{
		.name = "tls_key",
		.type = OB_OPT_STR,
		.offset = offsetof(struct redis_sink, tls_key),
		.help = "The key of tls_cert, when it is not in the same file.",
	},
	{
		.name = "tls_verify",
		.type = OB_OPT_BOOL,
		.offset = offsetof(struct redis_sink, tls_verify),
		.dflt = "true",
		.help = "Check the server's certificate and its name; off only for tests.",
	},
	{
		.name = "window",
		.type = OB_OPT_U32,
		.offset = offsetof(struct redis_sink, window),
		.dflt = "1024",
		.min = 1,
		.max = 16384,
		.help = "Maximum messages sent and not yet confirmed.",
	},
	{
		.name = "max_len",
		.type = OB_OPT_U32,
		.offset = offsetof(struct redis_sink, max_len),
		.dflt = "0",
		.help = "Trim a stream to about so many entries, read or not; 0: never.",
	},
	{
		.name = "max_age",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct redis_sink, max_age_ms),
		.dflt = "0",
		.help = "Trim entries of about that age, read or not; 0: never.",
	},
	OB_OPT_END,
};

const struct ob_sink_ops ob_sink_redis = {
	.name = "redis",
	.caps = OB_SINK_ORDERED,
	.size = sizeof(struct redis_sink),
	.opts = redis_opts,
	.check = redis_check,
	.open = redis_open,
	.send = redis_send,
	.poll = redis_poll,
	.reset = redis_reset,
	.fd = redis_fd,
	.close = redis_close,
	.describe = redis_describe,
	.checks = ob_redis_checks,
	.advise = ob_redis_advise,
	.probe = ob_redis_probe,
};
