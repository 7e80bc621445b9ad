/* SPDX-License-Identifier: MIT */
/*
 * RabbitMQ: persistent messages to an exchange, with publisher confirms. A message counts
 * when the broker has acknowledged it and it did not come back as unroutable before.
 *
 * Confirms of different queues overtake each other and a refused message does not hold up
 * those behind it, so this sink keeps no order by itself: the caller has one message of
 * a key under way.
 *
 * A lost connection leaves the fate of what is under way unknown: it fails as DOWN and comes
 * again, perhaps as a second copy. An alarm of the broker (connection.blocked) stops the
 * clock of those that wait: they are neither lost nor late.
 */
#include "sink/rabbitmq/rabbitmq.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>

static int64_t now_us(const struct rabbitmq_sink *sink)
{
	return ob_clock_boot_us(sink->base.clock);
}

/* ---- opening --------------------------------------------------------- */

/* Take the url apart and see whether the other options go with it. */
static int read_options(const struct rabbitmq_sink *sink, struct ob_rabbitmq_url *ret_url,
			struct ob_err *err)
{
	if (sink->exchange[0] && sink->exchange_per_message)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the rabbitmq sink takes the exchange from its option or from "
				  "the destination, not from both");
	if (strlen(sink->exchange) > OB_RABBITMQ_SHORT)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the exchange of the rabbitmq sink has more than %d bytes",
				  OB_RABBITMQ_SHORT);
	int r = ob_rabbitmq_url_parse(sink->url_text, ret_url, err);
	if (r == 0 && !ret_url->tls && (sink->tls_ca || sink->tls_cert || sink->tls_key))
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the rabbitmq sink has tls options, but its url asks for no TLS: "
				  "write amqps://");
	return r;
}

static int rabbitmq_check(struct ob_sink *base, struct ob_err *err)
{
	struct ob_rabbitmq_url url = { 0 };
	int r = read_options((struct rabbitmq_sink *)base, &url, err);

	ob_rabbitmq_url_done(&url);
	return r;
}

static int make_tls(struct rabbitmq_sink *sink, struct ob_err *err)
{
	struct ob_net_tls_conf conf = { .ca = sink->tls_ca,
					.cert = sink->tls_cert,
					.key = sink->tls_key,
					.verify = sink->tls_verify };

	return sink->url.tls ? ob_net_tls_new(&conf, &sink->tls, err) : 0;
}

static void unprepare(struct rabbitmq_sink *sink)
{
	ob_rabbitmq_conn_done(&sink->conn);
	ob_rabbitmq_flight_done(&sink->flight);
	ob_rabbitmq_url_done(&sink->url);
	ob_net_tls_free(sink->tls);
	sink->tls = NULL;
}

/* What needs no peer, once. */
static int prepare(struct rabbitmq_sink *sink, struct ob_err *err)
{
	int r = read_options(sink, &sink->url, err);

	if (r == 0)
		r = make_tls(sink, err);
	if (r == 0)
		r = ob_rabbitmq_flight_init(&sink->flight, sink->window, err);
	if (r == 0)
		r = ob_rabbitmq_conn_init(&sink->conn, err);
	if (r < 0) {
		unprepare(sink);
		return r;
	}
	init_amqp_pool(&sink->pool, OB_RABBITMQ_FRAME_MIN);
	sink->ready = true;
	return 0;
}

static int blocked(const struct rabbitmq_sink *sink, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
			  "rabbitmq takes no messages now: %s (connection.blocked)",
			  sink->conn.blocked_why);
}

static int rabbitmq_open(struct ob_sink *base, struct ob_err *err)
{
	struct rabbitmq_sink *sink = (struct rabbitmq_sink *)base;
	int r = sink->ready ? 0 : prepare(sink, err);

	if (r < 0)
		return r;
	sink->reopen = false;
	if (sink->conn.open)
		ob_rabbitmq_read(sink);
	if (sink->conn.open)
		return sink->conn.blocked ? blocked(sink, err) : 0;
	return ob_rabbitmq_log_in(sink, err);
}

/* ---- time ------------------------------------------------------------ */

/* The time that the broker had a message, without that in which it said to wait. */
static int64_t due_us(const struct rabbitmq_sink *sink, const struct ob_rabbitmq_slot *slot)
{
	int64_t from = slot->sent_us;

	if (sink->conn.blocked)
		return INT64_MAX;
	if (from < sink->conn.unblocked_us)
		from = sink->conn.unblocked_us;
	return from + sink->timeout_ms * 1000;
}

/*
 * A confirm that does not come: when later ones came, one queue is stuck and the failure is
 * this message's; else it is the broker's.
 */
static void check_confirms(struct rabbitmq_sink *sink)
{
	struct ob_rabbitmq_flight *flight = &sink->flight;
	struct ob_rabbitmq_slot *slot;
	int64_t now = now_us(sink);

	while ((slot = ob_rabbitmq_flight_oldest(flight)) && due_us(sink, slot) <= now) {
		bool stuck = flight->confirmed > flight->first;
		struct ob_err err = OB_ERR_INIT;

		(void)ob_err_set(&err, OUTBOX_ESINK, stuck ? OB_ERR_RETRY : OB_ERR_DOWN,
				 "rabbitmq has not confirmed a message within %lld ms%s",
				 (long long)sink->timeout_ms,
				 stuck ? ", though it confirmed later ones: its queue is stuck"
				       : "");
		if (stuck)
			ob_rabbitmq_flight_finish(flight, slot, &err);
		else
			ob_rabbitmq_lose(sink, &err);
	}
}

static void check_heartbeat(struct rabbitmq_sink *sink)
{
	struct ob_err err = OB_ERR_INIT;

	if (!sink->conn.open || ob_rabbitmq_conn_gone_us(&sink->conn) > now_us(sink))
		return;
	(void)ob_err_set(&err, OUTBOX_ESINK, OB_ERR_DOWN,
			 "rabbitmq has been silent for two heartbeats of %lld ms",
			 (long long)(sink->conn.heartbeat_us / 1000));
	ob_rabbitmq_lose(sink, &err);
}

static void flush(struct rabbitmq_sink *sink)
{
	struct ob_err err = OB_ERR_INIT;

	if (!sink->conn.open || ob_rabbitmq_conn_flush(&sink->conn, sink->base.clock, &err) == 0)
		return;
	/* A broker says why it closes: what it still sent counts. */
	ob_rabbitmq_read(sink);
	if (sink->conn.open)
		ob_rabbitmq_lose(sink, &err);
}

static void turn(struct rabbitmq_sink *sink)
{
	ob_rabbitmq_read(sink);
	check_heartbeat(sink);
	check_confirms(sink);
	flush(sink);
}

/* ---- sending --------------------------------------------------------- */

/*
 * A connection that ended while nothing was under way costs no outage: see it before a
 * message meets it, and make another.
 */
static int freshen(struct rabbitmq_sink *sink, struct ob_err *err)
{
	if (sink->flight.waiting == 0 && sink->conn.open)
		turn(sink);
	if (sink->conn.open)
		return 0;
	if (!sink->reopen)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "rabbitmq is not connected");
	sink->reopen = false;
	return ob_rabbitmq_log_in(sink, err);
}

static int rabbitmq_send(struct ob_sink *base, const struct ob_delivery *delivery,
			 struct ob_err *err)
{
	struct rabbitmq_sink *sink = (struct rabbitmq_sink *)base;
	int r = freshen(sink, err);

	if (r < 0)
		return r;
	if (sink->conn.blocked)
		return blocked(sink, err);
	if (ob_rabbitmq_flight_is_full(&sink->flight) ||
	    ob_outbuf_left(&sink->conn.out) >= OB_RABBITMQ_OUT_BYTES)
		return OB_SINK_FULL;
	r = ob_rabbitmq_publish(sink, delivery, err);
	if (r == 0 && ob_outbuf_left(&sink->conn.out) >= OB_RABBITMQ_FLUSH_BYTES)
		flush(sink);
	return r;
}

/* ---- polling --------------------------------------------------------- */

static bool is_over(const struct rabbitmq_sink *sink)
{
	return sink->flight.count > 0 || sink->flight.waiting == 0;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Until something moves, something is due, or time is up. Something is under way. */
static void wait_for_broker(struct rabbitmq_sink *sink, int64_t until_us)
{
	const struct ob_rabbitmq_conn *conn = &sink->conn;
	const struct ob_rabbitmq_slot *oldest = ob_rabbitmq_flight_oldest(&sink->flight);
	struct pollfd fd = { .fd = conn->net.fd,
			     .events = ob_net_events(&conn->net, ob_outbuf_left(&conn->out) > 0) };

	if (oldest)
		until_us = earlier(until_us, due_us(sink, oldest));
	until_us = earlier(until_us, ob_rabbitmq_conn_gone_us(conn));
	if (!conn->out.blocked)
		until_us = earlier(until_us, ob_rabbitmq_conn_beat_us(conn));
	int64_t ms = (until_us - now_us(sink) + 999) / 1000;
	(void)poll(&fd, 1, ms <= 0 ? 0 : ms > INT_MAX ? INT_MAX : (int)ms);
}

static int rabbitmq_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
			 struct ob_err *err)
{
	struct rabbitmq_sink *sink = (struct rabbitmq_sink *)base;
	int64_t end = ob_clock_boot_us(base->clock) + timeout_ms * INT64_C(1000);

	(void)err; /* whatever happens has a message to tell it */
	if (!sink->ready)
		return 0;
	turn(sink);
	while (!is_over(sink) && now_us(sink) < end) {
		wait_for_broker(sink, end);
		turn(sink);
	}
	return ob_rabbitmq_flight_outcomes(&sink->flight, acks, max);
}

static void rabbitmq_reset(struct ob_sink *base)
{
	struct rabbitmq_sink *sink = (struct rabbitmq_sink *)base;

	/* What is half sent cannot be taken back, and confirms would come to the wrong ones. */
	if (sink->flight.waiting > 0)
		ob_rabbitmq_conn_close(&sink->conn, false);
	ob_rabbitmq_flight_clear(&sink->flight);
}

static int rabbitmq_fd(struct ob_sink *base)
{
	const struct rabbitmq_sink *sink = (struct rabbitmq_sink *)base;

	/* One that must also be polled for writing does not fit into the answer. */
	return sink->conn.open && !sink->conn.out.blocked ? sink->conn.net.fd : -1;
}

static void rabbitmq_close(struct ob_sink *base)
{
	struct rabbitmq_sink *sink = (struct rabbitmq_sink *)base;

	if (!sink->ready)
		return;
	ob_rabbitmq_conn_close(&sink->conn, true);
	empty_amqp_pool(&sink->pool);
	unprepare(sink);
}

static void rabbitmq_describe(struct ob_sink *base, struct ob_buf *out)
{
	const struct rabbitmq_sink *sink = (struct rabbitmq_sink *)base;
	struct ob_rabbitmq_url url = { 0 };
	struct ob_err err = OB_ERR_INIT;

	if (ob_rabbitmq_url_parse(sink->url_text, &url, &err) < 0) {
		ob_buf_adds(out, "rabbitmq (bad url)");
		return;
	}
	ob_buf_adds(out, "rabbitmq ");
	for (uint32_t i = 0; i < url.host_count; i++)
		ob_buf_addf(out, "%s%s:%s", i > 0 ? "," : "", url.hosts[i].name, url.hosts[i].port);
	ob_buf_addf(out, " vhost %s%s%s%s", url.vhost, sink->exchange[0] ? " exchange " : "",
		    sink->exchange, url.tls ? " TLS" : "");
	ob_rabbitmq_url_done(&url);
}

/* ---- options --------------------------------------------------------- */

#define TEXT(option, field, flag, text) \
	{ \
		.name = option, .type = OB_OPT_STR, .flags = (flag), \
		.offset = offsetof(struct rabbitmq_sink, field), .help = text, \
	}
#define TIME(option, field, value, least, most, text) \
	{ \
		.name = option, .type = OB_OPT_DURATION_MS, .dflt = value, .min = (least), \
		.max = (most), .offset = offsetof(struct rabbitmq_sink, field), .help = text, \
	}

static const char *const unroutable_choices[] = { "retry", "reject", NULL };

static const struct ob_opt rabbitmq_opts[] = {
	TEXT("url", url_text, OB_OPT_REQUIRED | OB_OPT_SECRET,
	     "amqp://user:password@host:port,host:port/vhost, amqps:// for TLS."),
	TEXT("username", username, 0, "The user to log in as, instead of the one in the url."),
	TEXT("password", password, OB_OPT_SECRET,
	     "The password to log in with, instead of the one in the url."),
	{
		.name = "exchange",
		.type = OB_OPT_STR,
		.offset = offsetof(struct rabbitmq_sink, exchange),
		.dflt = "",
		.help = "Where to publish, the destination being the routing key; empty: the "
			"default exchange, where it is the name of a queue.",
	},
	{
		.name = "exchange_per_message",
		.type = OB_OPT_BOOL,
		.offset = offsetof(struct rabbitmq_sink, exchange_per_message),
		.dflt = "false",
		.help = "The destination is exchange/routing.key.",
	},
	{
		.name = "unroutable",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct rabbitmq_sink, unroutable),
		.dflt = "retry",
		.choices = unroutable_choices,
		.help = "What a message becomes that no queue is bound for.",
	},
	{
		.name = "max_priority",
		.type = OB_OPT_U32,
		.offset = offsetof(struct rabbitmq_sink, max_priority),
		.dflt = "0",
		.max = 255,
		.help = "Send the message's priority, from 0 to this, for queues with "
			"x-max-priority; 0: none.",
	},
	TIME("connect_timeout", connect_timeout_ms, "5s", 10, 60000,
	     "Time to connect and log in, for all hosts together."),
	TIME("timeout", timeout_ms, "30s", 10, 600000,
	     "How long a confirm may take; alarms of the broker do not count."),
	TIME("heartbeat", heartbeat_ms, "30s", 0, 3600000,
	     "Heartbeats, in whole seconds; 0: none. The broker may want them more often."),
	TEXT("tls_ca", tls_ca, 0, "A file of PEM certificates to trust, instead of the system's."),
	TEXT("tls_cert", tls_cert, 0, "Our own certificate, in PEM, for brokers that ask for one."),
	TEXT("tls_key", tls_key, 0, "The key of tls_cert, when it is not in the same file."),
	{
		.name = "tls_verify",
		.type = OB_OPT_BOOL,
		.offset = offsetof(struct rabbitmq_sink, tls_verify),
		.dflt = "true",
		.help = "Check the broker's certificate and its name; off only for tests.",
	},
	{
		.name = "window",
		.type = OB_OPT_U32,
		.offset = offsetof(struct rabbitmq_sink, window),
		.dflt = "1024",
		.min = 1,
		.max = 16384,
		.help = "Maximum messages sent and not yet confirmed.",
	},
	OB_OPT_END,
};

const struct ob_sink_ops ob_sink_rabbitmq = {
	.name = "rabbitmq",
	.size = sizeof(struct rabbitmq_sink),
	.opts = rabbitmq_opts,
	.ce_prefix = "cloudEvents_",
	.checks = ob_rabbitmq_checks,
	.probe = ob_rabbitmq_probe,
	.check = rabbitmq_check,
	.open = rabbitmq_open,
	.send = rabbitmq_send,
	.poll = rabbitmq_poll,
	.reset = rabbitmq_reset,
	.fd = rabbitmq_fd,
	.close = rabbitmq_close,
	.describe = rabbitmq_describe,
};
