/* SPDX-License-Identifier: MIT */
/* The connection to one of the servers. */
#include "sink/nats/nats.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { TLS_HEAD = 5, TLS_RECORD_MAX = (1 << 14) + 2048, TAKE = 256, CLOSE_TRIES = 100 };

/* Later versions leave the closing of the socket to the event loop, by this function. */
extern void natsConnection_ProcessCloseEvent(natsSock *socket) __attribute__((weak));

static const struct ob_url_host *server_of(const struct nats_sink *sink)
{
	return &sink->url.servers[sink->server];
}

/* ---- what the library asks of an event loop -------------------------- */

static void set_int(int fd, int level, int name, int value)
{
	(void)setsockopt(fd, level, name, &value, sizeof(value)); /* a help, not a need */
}

static natsStatus watch(struct nats_sink *sink, int how)
{
	struct epoll_event event = { .events = EPOLLIN | (sink->writing ? (uint32_t)EPOLLOUT : 0) };

	return epoll_ctl(sink->epoll, how, sink->fd, &event) == 0 ? NATS_OK : NATS_SYS_ERROR;
}

static natsStatus on_attach(void **ret_loop, void *loop, natsConnection *nc, natsSock fd)
{
	struct nats_sink *sink = loop;

	(void)nc;
	*ret_loop = sink;
	sink->fd = fd;
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	/* A peer that is silent although we sent something is given up by the kernel. */
	set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)sink->timeout_ms);
	return watch(sink, EPOLL_CTL_ADD);
}

static natsStatus on_read(void *loop, bool add)
{
	struct nats_sink *sink = loop;

	if (add || sink->fd < 0)
		return NATS_OK;
	(void)epoll_ctl(sink->epoll, EPOLL_CTL_DEL, sink->fd, NULL);
	if (natsConnection_ProcessCloseEvent)
		natsConnection_ProcessCloseEvent(&sink->fd);
	sink->fd = -1;
	return NATS_OK;
}

static natsStatus on_write(void *loop, bool add)
{
	struct nats_sink *sink = loop;

	if (sink->writing == add)
		return NATS_OK;
	sink->writing = add;
	return sink->fd < 0 ? NATS_OK : watch(sink, EPOLL_CTL_MOD);
}

static natsStatus on_detach(void *loop)
{
	struct nats_sink *sink = loop;

	sink->fd = -1;
	return NATS_OK;
}

/* ---- the end --------------------------------------------------------- */

/*
 * The library flushes what it has before it closes. So the socket is disconnected first, which
 * also throws away what the kernel has not sent, and the library is left to find that out.
 */
static void break_off(struct nats_sink *sink)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };

	if (sink->fd < 0)
		return;
	if (connect(sink->fd, &nowhere, sizeof(nowhere)) < 0)
		(void)shutdown(sink->fd, SHUT_RDWR);
	for (int i = 0; i < CLOSE_TRIES && !natsConnection_IsClosed(sink->nc); i++)
		natsConnection_ProcessReadEvent(sink->nc);
}

void ob_nats_conn_drop(struct nats_sink *sink)
{
	if (!sink->nc)
		return;
	break_off(sink);
	natsSubscription_Destroy(sink->sub);
	natsConnection_Destroy(sink->nc);
	sink->sub = NULL;
	sink->nc = NULL;
	sink->fd = -1;
	sink->writing = sink->blocked = false;
	ob_nats_mail_wait(sink->mail);
}

/* Everything that waits fails with `err`. */
static void lose(struct nats_sink *sink, const struct ob_err *err)
{
	ob_nats_conn_drop(sink);
	ob_nats_waits_fail(&sink->waits, err);
	sink->server = (sink->server + 1) % sink->url.count;
}

/* ---- the beginning --------------------------------------------------- */

static natsStatus subscribe(struct nats_sink *sink)
{
	struct ob_uuid random = ob_uuid_new();
	char id[OB_UUID_TEXT_SIZE], subject[OB_NATS_INBOX_SIZE + 2];
	natsStatus s;

	ob_uuid_format(&random, id);
	(void)snprintf(sink->inbox, sizeof(sink->inbox), "%s.%s", sink->inbox_prefix, id);
	(void)snprintf(subject, sizeof(subject), "%s.*", sink->inbox);
	s = natsConnection_Subscribe(&sink->sub, sink->nc, subject, ob_nats_mail_on_msg,
				     sink->mail);
	if (s != NATS_OK)
		return s;
	(void)pthread_mutex_lock(&sink->mail->mu);
	sink->mail->sub_over = false;
	(void)pthread_mutex_unlock(&sink->mail->mu);
	/* Nothing comes before we read, so it cannot be over yet. */
	return natsSubscription_SetOnCompleteCB(sink->sub, ob_nats_mail_on_sub_over, sink->mail);
}

/* The call that may take long, with an end; *ret_silent: it was ended. */
static natsStatus connect_in_time(struct nats_sink *sink, natsOptions *options,
				  struct ob_nats_watch *watch, bool *ret_silent)
{
	natsStatus s =
		natsOptions_SetEventLoop(options, sink, on_attach, on_read, on_write, on_detach);

	/*
	 * The library calls these from threads of its own, also after the connection was
	 * destroyed: only a connection that ob_nats_conn_drop() waits for may have the mail.
	 */
	if (s == NATS_OK)
		s = natsOptions_SetErrorHandler(options, ob_nats_mail_on_error, sink->mail);
	if (s == NATS_OK)
		s = natsOptions_SetClosedCB(options, ob_nats_mail_on_closed, sink->mail);
	ob_nats_mail_begin(sink->mail);
	if (s == NATS_OK)
		s = natsConnection_Connect(&sink->nc, options);
	*ret_silent = ob_nats_watch_end(watch) && s != NATS_OK;
	if (s != NATS_OK)
		sink->nc = NULL; /* and nothing of it is left */
	return s;
}

static int connect_one(struct nats_sink *sink, int64_t timeout_ms, struct ob_err *err)
{
	natsOptions *options = NULL;
	struct ob_nats_watch watch;
	bool silent;
	int r = ob_nats_options_make(sink, timeout_ms, &options, err);

	if (r == 0)
		r = ob_nats_watch_begin(&watch, timeout_ms, err);
	if (r < 0) {
		natsOptions_Destroy(options);
		return r;
	}
	natsStatus s = connect_in_time(sink, options, &watch, &silent);
	natsOptions_Destroy(options);
	if (silent)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "%.100s:%s has not answered in the TLS handshake for %lld ms",
				  server_of(sink)->name, server_of(sink)->port,
				  (long long)timeout_ms);
	if (s == NATS_OK)
		s = natsConnection_HasHeaderSupport(sink->nc);
	if (s == NATS_OK)
		s = subscribe(sink);
	if (s == NATS_OK) {
		sink->max_payload = natsConnection_GetMaxPayload(sink->nc);
		sink->read_us = ob_clock_boot_us(sink->base.clock);
		return 0;
	}
	(void)ob_nats_status(s, nats_GetLastError(NULL), err);
	ob_nats_conn_drop(sink);
	return ob_err_context(err, "connecting to %.100s:%s", server_of(sink)->name,
			      server_of(sink)->port);
}

int ob_nats_conn_open(struct nats_sink *sink, struct ob_err *err)
{
	const struct ob_clock *clock = sink->base.clock;
	int64_t end = ob_clock_boot_us(clock) + sink->connect_timeout_ms * 1000;
	int r = 0;

	if (ob_nats_conn_is_open(sink))
		return 0;
	for (uint32_t left = sink->url.count; left > 0; left--) {
		/* One that does not answer must leave time for the others. */
		int64_t ms = (end - ob_clock_boot_us(clock)) / 1000 / left;

		r = connect_one(sink, ms > 1 ? ms : 1, err);
		if (r == 0 || err->kind == OB_ERR_FATAL)
			return r;
		sink->server = (sink->server + 1) % sink->url.count;
	}
	return r;
}

/* ---- answers --------------------------------------------------------- */

static void take_answer(struct nats_sink *sink, natsMsg *msg)
{
	struct ob_str subject = ob_str(natsMsg_GetSubject(msg));
	size_t n = strlen(sink->inbox) + 1;
	struct ob_nats_wait *wait = NULL;
	struct ob_err outcome;

	if (subject.n > n && memcmp(subject.p, sink->inbox, n - 1) == 0)
		wait = ob_nats_waits_find(&sink->waits,
					  (struct ob_str){ subject.p + n, subject.n - n });
	if (!wait)
		return; /* it came too late */
	ob_nats_ack(sink, wait->subject, msg, &outcome);
	ob_nats_wait_over(&sink->waits, wait, outcome.kind == OB_ERR_NONE ? NULL : &outcome);
}

/* Of those that we may not publish nothing more is heard than that. */
static void deny(struct nats_sink *sink, struct ob_str text, struct ob_str quoted)
{
	struct ob_err err = OB_ERR_INIT;

	(void)ob_nats_denied_error(text, &err);
	for (struct ob_nats_wait *wait = sink->waits.first, *next; wait; wait = next) {
		next = wait->next;
		if (ob_nats_is_denied(quoted, wait->subject))
			ob_nats_wait_over(&sink->waits, wait, &err);
	}
}

static int take_denied(struct nats_sink *sink, struct ob_err *err)
{
	char text[OB_NATS_DENIED_SIZE];

	while (ob_nats_mail_take_denied(sink->mail, text)) {
		struct ob_str quoted = ob_nats_denied(ob_str(text));

		if (!quoted.p) /* our inbox: no acknowledgement could ever come */
			return ob_nats_status(NATS_NOT_PERMITTED, text, err);
		deny(sink, ob_str(text), quoted);
	}
	return 0;
}

static void take_mail(struct nats_sink *sink)
{
	natsMsg *msgs[TAKE];
	uint32_t count;

	while ((count = ob_nats_mail_take(sink->mail, msgs, TAKE)) > 0) {
		for (uint32_t i = 0; i < count; i++) {
			take_answer(sink, msgs[i]);
			natsMsg_Destroy(msgs[i]);
		}
	}
}

/* ---- bytes ----------------------------------------------------------- */

/* In the middle of a record the library waits in a loop for its end: it gets whole ones only. */
static bool has_record(int fd)
{
	unsigned char head[TLS_HEAD];
	int there = 0;
	ssize_t n = recv(fd, head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
		return true; /* the end: let it see that */
	if (n < TLS_HEAD || ioctl(fd, FIONREAD, &there) < 0)
		return false;
	int size = TLS_HEAD + (head[3] << 8 | head[4]);
	return there >= size || size > TLS_RECORD_MAX;
}

static bool has_bytes(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

bool ob_nats_conn_is_quiet(const struct nats_sink *sink)
{
	return sink->fd >= 0 && !(sink->tls ? has_record(sink->fd) : has_bytes(sink->fd));
}

static int closed(const struct nats_sink *sink, struct ob_err *err)
{
	const char *text = NULL;
	natsStatus s = natsConnection_GetLastError(sink->nc, &text);

	(void)ob_nats_status(s, text, err);
	err->hung_up = true;
	return ob_err_context(err, "%.100s:%s", server_of(sink)->name, server_of(sink)->port);
}

static int read_all(struct nats_sink *sink, struct ob_err *err)
{
	while (!ob_nats_conn_is_quiet(sink)) {
		errno = 0;
		natsConnection_ProcessReadEvent(sink->nc);
		if (natsConnection_IsClosed(sink->nc))
			return closed(sink, err);
		sink->read_us = ob_clock_boot_us(sink->base.clock);
	}
	return 0;
}

void ob_nats_conn_write(struct nats_sink *sink)
{
	int left = sink->writing ? natsConnection_Buffered(sink->nc) : 0;
	struct ob_err err = OB_ERR_INIT;
	bool was_blocked = sink->blocked;

	sink->blocked = false;
	while (sink->writing && !sink->blocked) {
		int before = left;

		natsConnection_ProcessWriteEvent(sink->nc);
		if (natsConnection_IsClosed(sink->nc)) {
			(void)closed(sink, &err);
			lose(sink, &err);
			return;
		}
		left = natsConnection_Buffered(sink->nc);
		sink->blocked = sink->writing && left >= before;
		if (was_blocked && left < before)
			sink->write_us = ob_clock_boot_us(sink->base.clock);
	}
}

/* ---- silence --------------------------------------------------------- */

int64_t ob_nats_conn_deadline(const struct nats_sink *sink)
{
	const struct ob_nats_wait *oldest = sink->waits.first;

	if (!oldest)
		return INT64_MAX;
	int64_t since = oldest->sent_us;
	/* While bytes go out slowly, the server may not have seen it yet. */
	if (sink->blocked && sink->write_us > since)
		since = sink->write_us;
	return since + sink->timeout_ms * 1000;
}

/*
 * An acknowledgement can get lost while the connection works (a stream that loses its leader
 * takes it along): then that message alone is in doubt.
 */
static int check_silence(struct nats_sink *sink, struct ob_err *err)
{
	int64_t now = ob_clock_boot_us(sink->base.clock);

	while (ob_nats_conn_deadline(sink) <= now) {
		struct ob_nats_wait *oldest = sink->waits.first;
		bool silent = sink->read_us < oldest->sent_us || sink->blocked;

		(void)ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "%.100s:%s has not %s %lld ms",
				 server_of(sink)->name, server_of(sink)->port,
				 silent ? "answered for" : "acknowledged the message within",
				 (long long)sink->timeout_ms);
		if (silent)
			return err->status;
		ob_nats_wait_over(&sink->waits, oldest, err);
	}
	return 0;
}

void ob_nats_conn_read(struct nats_sink *sink)
{
	struct ob_err err = OB_ERR_INIT;
	int r = read_all(sink, &err);

	take_mail(sink);
	if (r == 0)
		r = take_denied(sink, &err);
	if (r == 0)
		r = check_silence(sink, &err);
	if (r < 0)
		lose(sink, &err);
}
