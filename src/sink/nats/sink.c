/* SPDX-License-Identifier: MIT */
/*
 * NATS JetStream: a message is published with a reply subject of its own and counts when the
 * stream has acknowledged it there. Core NATS, which forgets, is never enough: a subject
 * that no stream listens on is answered at once with "no responders".
 *
 * Acknowledgements come in any order or not at all, so the table of those that are awaited and
 * their deadlines are ours. A lost connection or a missing acknowledgement leaves the fate
 * of a message unknown: it fails as DOWN and comes again with the same Nats-Msg-Id, by which
 * the stream knows a second copy for as long as its duplicate window.
 */
#include "sink/nats/nats.h"

#include <limits.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ---- opening --------------------------------------------------------- */

/* Take the url apart and see whether the other options go with it. */
static int read_options(const struct nats_sink *sink, struct ob_nats_url *ret_url,
			struct ob_err *err)
{
	int ways = (sink->creds != NULL) + (sink->nkey != NULL) + (sink->token != NULL) +
		   (sink->username != NULL);

	if (ways > 1)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the nats sink can log in by username, token, creds or nkey, not "
				  "by several");
	if (!sink->nkey != !sink->nkey_seed)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the nats sink needs nkey and nkey_seed together");
	if (strlen(sink->inbox_prefix) > OB_NATS_INBOX_SIZE - OB_UUID_TEXT - 2 ||
	    ob_nats_subject_check(ob_str(sink->inbox_prefix), err) < 0)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the nats sink's inbox_prefix '%.100s' cannot begin a subject of "
				  "at most 90 bytes",
				  sink->inbox_prefix);
	return ob_nats_url_parse(sink->url_text, ret_url, err);
}

static int nats_check(struct ob_sink *base, struct ob_err *err)
{
	struct ob_nats_url url = { 0 };
	int r = read_options((struct nats_sink *)base, &url, err);

	ob_nats_url_done(&url);
	return r;
}

static int watch_mail(struct nats_sink *sink)
{
	struct epoll_event event = { .events = EPOLLIN };

	sink->epoll = epoll_create1(EPOLL_CLOEXEC);
	return sink->epoll < 0 ? -1 : epoll_ctl(sink->epoll, EPOLL_CTL_ADD, sink->mail->fd, &event);
}

static void unprepare(struct nats_sink *sink)
{
	if (sink->epoll >= 0)
		(void)close(sink->epoll);
	ob_nats_mail_free(sink->mail);
	sink->mail = NULL;
	ob_nats_waits_done(&sink->waits);
	ob_nats_url_done(&sink->url);
}

/* What needs no peer, once. */
static int prepare(struct nats_sink *sink, struct ob_err *err)
{
	int r = read_options(sink, &sink->url, err);

	if (r < 0)
		return r;
	sink->fd = sink->epoll = -1;
	/* Who names certificates wants them used: no plain text then, whatever the url says. */
	sink->tls = sink->url.tls || sink->tls_ca || sink->tls_cert || sink->tls_key;
	sink->text = OB_BUF_INIT(OB_NATS_HEAD_MAX);
	r = ob_nats_waits_init(&sink->waits, sink->window, err);
	if (r == 0) {
		sink->mail = ob_nats_mail_new(2 * sink->window);
		if (!sink->mail || watch_mail(sink) < 0)
			r = ob_err_errno(err, OUTBOX_ESINK, OB_ERR_DOWN, "preparing for nats");
	}
	if (r < 0)
		unprepare(sink);
	sink->ready = r == 0;
	return r;
}

static int nats_open(struct ob_sink *base, struct ob_err *err)
{
	struct nats_sink *sink = (struct nats_sink *)base;
	int r = sink->ready ? 0 : prepare(sink, err);

	if (r == 0)
		r = ob_nats_conn_open(sink, err);
	sink->was_open |= r == 0;
	return r;
}

/* ---- sending --------------------------------------------------------- */

/* Servers ping, and close connections that do not answer: see to it before a message goes. */
static int freshen(struct nats_sink *sink, struct ob_err *err)
{
	if (sink->waits.count == 0 && !ob_nats_conn_is_quiet(sink))
		ob_nats_conn_read(sink);
	return ob_nats_conn_open(sink, err);
}

static int nats_send(struct ob_sink *base, const struct ob_delivery *delivery, struct ob_err *err)
{
	struct nats_sink *sink = (struct nats_sink *)base;
	int r;

	if (!ob_nats_conn_is_open(sink))
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "nats is not connected");
	r = ob_nats_subject_check(delivery->destination, err);
	if (r < 0)
		return r;
	struct ob_nats_wait *wait = ob_nats_waits_next(&sink->waits);
	if (!wait)
		return OB_SINK_FULL;
	r = freshen(sink, err);
	if (r < 0)
		return r;
	if (natsConnection_Buffered(sink->nc) >= OB_NATS_OUT_BYTES) {
		ob_nats_conn_write(sink);
		if (!ob_nats_conn_is_open(sink))
			return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "nats is not connected");
		if (natsConnection_Buffered(sink->nc) >= OB_NATS_OUT_BYTES)
			return OB_SINK_FULL;
	}
	r = ob_nats_publish(sink, delivery, wait, err);
	if (r == 0)
		ob_nats_waits_add(&sink->waits, wait, delivery, ob_clock_boot_us(base->clock));
	return r;
}

/* ---- polling --------------------------------------------------------- */

static void turn(struct nats_sink *sink)
{
	if (ob_nats_conn_is_open(sink))
		ob_nats_conn_write(sink);
	if (ob_nats_conn_is_open(sink))
		ob_nats_conn_read(sink);
}

static bool is_over(const struct nats_sink *sink)
{
	return sink->waits.done || sink->waits.count == 0;
}

/* Until something moves, an acknowledgement is overdue, or time is up. */
static void wait_for_any(const struct nats_sink *sink, int64_t until_us)
{
	struct epoll_event events[2];
	int64_t deadline = ob_nats_conn_deadline(sink);

	until_us = deadline < until_us ? deadline : until_us;
	int64_t ms = (until_us - ob_clock_boot_us(sink->base.clock) + 999) / 1000;
	(void)epoll_wait(sink->epoll, events, 2, ms <= 0 ? 0 : ms > INT_MAX ? INT_MAX : (int)ms);
}

static int nats_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
		     struct ob_err *err)
{
	struct nats_sink *sink = (struct nats_sink *)base;
	int64_t end = ob_clock_boot_us(base->clock) + timeout_ms * INT64_C(1000);

	(void)err; /* whatever happens has a message to tell it */
	turn(sink);
	while (!is_over(sink) && ob_clock_boot_us(base->clock) < end) {
		wait_for_any(sink, end);
		turn(sink);
	}
	return ob_nats_waits_outcomes(&sink->waits, acks, max);
}

static void nats_reset(struct ob_sink *base)
{
	struct nats_sink *sink = (struct nats_sink *)base;

	/* What is half sent cannot be taken back. */
	if (sink->waits.count > 0 || sink->writing)
		ob_nats_conn_drop(sink);
	ob_nats_waits_clear(&sink->waits);
}

static int nats_fd(struct ob_sink *base)
{
	const struct nats_sink *sink = (struct nats_sink *)base;

	return ob_nats_conn_is_open(sink) ? sink->epoll : -1;
}

static void nats_close(struct ob_sink *base)
{
	struct nats_sink *sink = (struct nats_sink *)base;

	if (!sink->ready)
		return;
	ob_nats_conn_drop(sink);
	unprepare(sink);
	ob_buf_done(&sink->text);
}

static void nats_describe(struct ob_sink *base, struct ob_buf *out)
{
	const struct nats_sink *sink = (struct nats_sink *)base;
	struct ob_nats_url url = { 0 };
	struct ob_err err = OB_ERR_INIT;

	if (ob_nats_url_parse(sink->url_text, &url, &err) < 0) {
		ob_buf_adds(out, "nats (bad url)");
		return;
	}
	ob_buf_adds(out, "nats ");
	for (uint32_t i = 0; i < url.count; i++)
		ob_buf_addf(out, "%s%s:%s", i ? "," : "", url.servers[i].name, url.servers[i].port);
	if (url.tls || sink->tls)
		ob_buf_adds(out, " TLS");
	ob_nats_url_done(&url);
}

/* ---- options --------------------------------------------------------- */

static const char *const no_stream_choices[] = {
	[OB_NATS_NO_STREAM_WAIT] = "wait",
	[OB_NATS_NO_STREAM_FAIL] = "fail",
	NULL,
};

static const struct ob_opt nats_opts[] = {
	{
		.name = "url",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_sink, url_text),
		.flags = OB_OPT_REQUIRED | OB_OPT_SECRET,
		.help = "nats://user:password@host:port, tls:// for TLS; several with commas.",
	},
	{
		.name = "username",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_sink, username),
		.help = "The user to log in as, instead of the one in the url.",
	},
	{
		.name = "password",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_sink, password),
		.flags = OB_OPT_SECRET,
		.help = "The password to log in with, instead of the one in the url.",
	},
	{
		.name = "token",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_sink, token),
		.flags = OB_OPT_SECRET,
		.help = "The token to log in with, instead of the one in the url.",
	},
	{
		.name = "creds",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_sink, creds),
		.help = "A file of credentials (JWT and seed) to log in with.",
	},
	{
		.name = "nkey",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_sink, nkey),
		.help = "The user's public key (U...) to log in with; needs nkey_seed.",
	},
	{
		.name = "nkey_seed",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_sink, nkey_seed),
		.help = "A file with the seed of nkey (SU...).",
	},
	{
		.name = "connect_timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct nats_sink, connect_timeout_ms),
		.dflt = "5s",
		.min = 10,
		.max = 60000,
		.help = "Time to connect and log in, for all servers together.",
	},
	{
		.name = "timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct nats_sink, timeout_ms),
		.dflt = "10s",
		.min = 10,
		.max = 600000,
		.help = "How long an acknowledgement may take.",
	},
	{
		.name = "tls_ca",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_sink, tls_ca),
		.help = "A file of PEM certificates to trust, instead of the system's.",
	},
	{
		.name = "tls_cert",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_sink, tls_cert),
		.help = "Our own certificate, in PEM, for servers that ask for one.",
	},
	{
		.name = "tls_key",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_sink, tls_key),
		.help = "The key of tls_cert, when it is not in the same file.",
	},
	{
		.name = "tls_verify",
		.type = OB_OPT_BOOL,
		.offset = offsetof(struct nats_sink, tls_verify),
		.dflt = "true",
		.help = "Check the server's certificate and its name; off only for tests.",
	},
	{
		.name = "window",
		.type = OB_OPT_U32,
		.offset = offsetof(struct nats_sink, window),
		.dflt = "1024",
		.min = 1,
		.max = 16384,
		.help = "Maximum messages sent and not yet acknowledged.",
	},
	{
		.name = "no_stream",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct nats_sink, no_stream),
		.dflt = "wait",
		.choices = no_stream_choices,
		.help = "When no stream listens on a subject: wait for it, or fail the message.",
	},
	{
		.name = "inbox_prefix",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_sink, inbox_prefix),
		.dflt = "_INBOX",
		.help = "Under which acknowledgements come back, for users with their own.",
	},
	OB_OPT_END,
};

const struct ob_sink_ops ob_sink_nats = {
	.name = "nats",
	.caps = OB_SINK_HEADERS | OB_SINK_CE_TYPE,
	.size = sizeof(struct nats_sink),
	.opts = nats_opts,
	.ce_prefix = "ce-",
	.checks = ob_nats_checks,
	.probe = ob_nats_probe,
	.check = nats_check,
	.open = nats_open,
	.send = nats_send,
	.poll = nats_poll,
	.reset = nats_reset,
	.fd = nats_fd,
	.close = nats_close,
	.describe = nats_describe,
};
