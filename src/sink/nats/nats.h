/* SPDX-License-Identifier: MIT */
/*
 * What the files of the NATS sink share.
 *
 * libnats is driven as by an event loop: it reads and writes when we tell it to, in our thread
 * and on a socket that we know, and it never reconnects, so after a connection is given up not
 * one byte of it is sent. Two threads of the library remain: one hands messages over to
 * mail.c, one reports errors there.
 */
#ifndef OB_SINK_NATS_H
#define OB_SINK_NATS_H

#include "sink/sink.h"
#include "sink/url.h"

#include <nats/nats.h>
#include <pthread.h>
#include <time.h>

enum {
	OB_NATS_SERVERS = 16,
	OB_NATS_SUBJECT_MAX = 1024,    /* servers take 4096 bytes for subject, reply and sizes */
	OB_NATS_HEAD_MAX = 65535,      /* streams take no more */
	OB_NATS_OUT_BYTES = 256 << 10, /* made and not yet sent, before one message more */
	OB_NATS_READ_SIZE = 64 << 10,
	OB_NATS_INBOX_SIZE = 128,
	OB_NATS_DENIED = 8, /* errors that wait to be looked at */
	OB_NATS_DENIED_SIZE = 300,
};

/* What the url says. */
struct ob_nats_url {
	struct ob_url_host servers[OB_NATS_SERVERS];
	uint32_t count;
	char *user, *password, *token; /* owned; NULL: none */
	bool tls;
};

/* A message that waits for its acknowledgement, or for its outcome to be fetched. */
struct ob_nats_wait {
	uint64_t serial; /* stands in the reply subject: a late answer to another finds nobody */
	uint64_t tag;
	int64_t sent_us;
	struct ob_str subject; /* borrowed until the outcome */
	struct ob_nats_wait *next, *prev;
	bool waiting;
	struct ob_err err;
};

/* All zero until ob_nats_waits_init(). */
struct ob_nats_waits {
	struct ob_nats_wait *all, *free;
	struct ob_nats_wait *first, *last;    /* those that wait, oldest first */
	struct ob_nats_wait *done, *done_end; /* those whose outcome is known */
	uint32_t window, count;               /* how many wait */
	uint64_t next_serial;
};

/* What the library's threads have for us; of one connection at a time. */
struct ob_nats_mail {
	pthread_mutex_t mu; /* guards everything but fd */
	pthread_cond_t over;
	natsMsg **ring;
	uint32_t head, count, size;
	char denied[OB_NATS_DENIED][OB_NATS_DENIED_SIZE]; /* errors that left the connection */
	uint32_t denied_count;
	bool sub_over, conn_over; /* no more will come from these */
	int fd;                   /* an eventfd, readable when there is something */
};

/* What becomes of a message to whose subject no stream listens. */
enum ob_nats_no_stream { OB_NATS_NO_STREAM_WAIT, OB_NATS_NO_STREAM_FAIL };

struct nats_sink {
	struct ob_sink base;
	/* options */
	char *url_text, *username, *password, *token, *creds, *nkey, *nkey_seed;
	char *tls_ca, *tls_cert, *tls_key, *inbox_prefix;
	bool tls_verify;
	int64_t connect_timeout_ms, timeout_ms;
	uint32_t window;
	int no_stream; /* enum ob_nats_no_stream */

	struct ob_nats_url url;
	bool ready; /* url and memory are there */
	bool tls;   /* wanted */
	bool was_open;
	struct ob_nats_waits waits;
	struct ob_nats_mail *mail;
	struct ob_buf text; /* a value of a header in the making */

	/* the connection */
	natsConnection *nc;
	natsSubscription *sub;
	uint32_t server; /* which one of the url */
	int fd;          /* its socket, the library's; -1: none */
	int epoll;       /* on the socket and on the mail */
	bool writing;    /* the library has bytes for the socket */
	bool blocked;    /* which takes no more now */
	int64_t max_payload;
	char inbox[OB_NATS_INBOX_SIZE];
	int64_t read_us, write_us; /* when bytes last came, and last went after they had to wait */
};

/* ---- url.c ------------------------------------------------------------ */

/* nats://a:4222,b:4222 or tls://...; ECONFIG says what is wrong and never shows a secret. */
int ob_nats_url_parse(const char *text, struct ob_nats_url *ret_url, struct ob_err *err);
void ob_nats_url_done(struct ob_nats_url *url);

/* ---- mail.c ----------------------------------------------------------- */

/* NULL when memory or fds are short. */
struct ob_nats_mail *ob_nats_mail_new(uint32_t size);
/* Only when no connection can have it any more: see ob_nats_mail_wait(). */
void ob_nats_mail_free(struct ob_nats_mail *mail);
/* For a new connection: empty, and its threads not over. */
void ob_nats_mail_begin(struct ob_nats_mail *mail);
/* Wait until the threads of a closed connection are done with it, and throw away what they left. */
void ob_nats_mail_wait(struct ob_nats_mail *mail);
/* Take up to `max` messages; the caller destroys them. Clears the fd when all are taken. */
uint32_t ob_nats_mail_take(struct ob_nats_mail *mail, natsMsg **msgs, uint32_t max);
/* Take the oldest error; false: there is none. */
bool ob_nats_mail_take_denied(struct ob_nats_mail *mail, char out[OB_NATS_DENIED_SIZE]);
/* For the library: `closure` is the mail. */
void ob_nats_mail_on_msg(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *closure);
void ob_nats_mail_on_error(natsConnection *nc, natsSubscription *sub, natsStatus status,
			   void *closure);
void ob_nats_mail_on_sub_over(void *closure);
void ob_nats_mail_on_closed(natsConnection *nc, void *closure);

/* ---- options.c -------------------------------------------------------- */

/* The library's options for the server that is next, without an event loop and callbacks. */
int ob_nats_options_make(struct nats_sink *sink, int64_t timeout_ms, natsOptions **ret_options,
			 struct ob_err *err);

/* ---- watch.c ---------------------------------------------------------- */

/* Over one call that connects, in the thread that makes it. */
struct ob_nats_watch {
	pthread_mutex_t mu; /* guards what follows up to `fired` */
	pthread_cond_t changed;
	void *session; /* OpenSSL's, in whose handshake it may hang; NULL: none */
	struct timespec until;
	bool over, fired;
	pthread_t thread;
};
/* From now on, a TLS handshake of this thread ends when the time is up. */
int ob_nats_watch_begin(struct ob_nats_watch *watch, int64_t timeout_ms, struct ob_err *err);
/* The call has returned. Was it ended? */
bool ob_nats_watch_end(struct ob_nats_watch *watch);

/* ---- publish.c -------------------------------------------------------- */

/* REJECT when no stream could have that subject, or none may be written by it. */
int ob_nats_subject_check(struct ob_str subject, struct ob_err *err);
/* Hand the message to the library: REJECT when it is too large, DOWN when memory is short. */
int ob_nats_publish(struct nats_sink *sink, const struct ob_delivery *delivery,
		    const struct ob_nats_wait *wait, struct ob_err *err);

/* ---- waits.c ---------------------------------------------------------- */

int ob_nats_waits_init(struct ob_nats_waits *waits, uint32_t window, struct ob_err *err);
void ob_nats_waits_done(struct ob_nats_waits *waits);
/* A free one, or NULL when the window is full; it counts from ob_nats_waits_add() on. */
struct ob_nats_wait *ob_nats_waits_next(struct ob_nats_waits *waits);
void ob_nats_waits_add(struct ob_nats_waits *waits, struct ob_nats_wait *wait,
		       const struct ob_delivery *delivery, int64_t now_us);
/* The last part of its reply subject, and back; NULL: nobody waits for that. */
enum { OB_NATS_TOKEN_SIZE = 17 };
void ob_nats_wait_token(const struct ob_nats_waits *waits, const struct ob_nats_wait *wait,
			char out[OB_NATS_TOKEN_SIZE]);
struct ob_nats_wait *ob_nats_waits_find(struct ob_nats_waits *waits, struct ob_str token);
/* It has its outcome; NULL: it is stored. */
void ob_nats_wait_over(struct ob_nats_waits *waits, struct ob_nats_wait *wait,
		       const struct ob_err *err);
/* All that wait have failed. */
void ob_nats_waits_fail(struct ob_nats_waits *waits, const struct ob_err *err);
/* Hand out outcomes; returns how many. */
int ob_nats_waits_outcomes(struct ob_nats_waits *waits, struct ob_ack *acks, size_t max);
/* Forget everything, keep the memory. */
void ob_nats_waits_clear(struct ob_nats_waits *waits);

/* ---- error.c ---------------------------------------------------------- */

/* The one place that knows what the library's codes mean; returns err->status. */
int ob_nats_status(natsStatus status, const char *detail, struct ob_err *err);
/* What the answer to a message means: NONE when it is stored. */
void ob_nats_ack(const struct nats_sink *sink, struct ob_str subject, natsMsg *msg,
		 struct ob_err *ret_outcome);
/*
 * "Permissions Violation for Publish to "x"" is about the messages to x alone: the subject
 * as it stands there (absent: another error), whether it is that one, and the outcome.
 */
struct ob_str ob_nats_denied(struct ob_str text);
bool ob_nats_is_denied(struct ob_str quoted, struct ob_str subject);
int ob_nats_denied_error(struct ob_str text, struct ob_err *err);

/* ---- probe.c ---------------------------------------------------------- */

/* The stream of a destination. */
struct ob_nats_stream_health {
	const char *subject, *stream; /* NULL: none listens */
	bool fails;                   /* and messages fail then, as configured */
	bool in_memory, bounded, drops_old;
	int64_t replicas;
};

extern const struct ob_check ob_nats_checks[];
void ob_nats_judge(const struct ob_nats_stream_health *health, struct ob_findings *out);
ob_sink_probe_fn ob_nats_probe;

/* ---- conn.c ----------------------------------------------------------- */

/* Connect to one of the servers and log in; does nothing when that is done. */
int ob_nats_conn_open(struct nats_sink *sink, struct ob_err *err);
/* Read all there is; answers become outcomes, and so does their absence after `timeout`. */
void ob_nats_conn_read(struct nats_sink *sink);
void ob_nats_conn_write(struct nats_sink *sink);
/* Is nothing there to read? */
bool ob_nats_conn_is_quiet(const struct nats_sink *sink);
/* When the oldest message has waited for too long; INT64_MAX: none waits. */
int64_t ob_nats_conn_deadline(const struct nats_sink *sink);
/* Close, and no byte more is sent. */
void ob_nats_conn_drop(struct nats_sink *sink);

static inline bool ob_nats_conn_is_open(const struct nats_sink *sink)
{
	return sink->nc != NULL;
}

#endif
