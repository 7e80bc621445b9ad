/* SPDX-License-Identifier: MIT */
/*
 * A connection to a peer: TCP or a unix socket, with TLS on top when asked for.
 * Connecting waits (with a deadline); reading and writing never do. What fails
 * here is the peer or the way to it and therefore DOWN; only files of our own
 * (a CA, a certificate) that cannot be used are FATAL.
 */
#ifndef OB_SINK_NET_H
#define OB_SINK_NET_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

#include <poll.h>
#include <sys/types.h>

struct ssl_st;     /* OpenSSL's SSL */
struct ssl_ctx_st; /* and its SSL_CTX */

/* Every path may be NULL. */
struct ob_net_tls_conf {
	const char *ca; /* PEM; NULL: those that the system trusts */
	const char *cert, *key;
	bool verify; /* chain, and name or address, of the peer */
};

/* The TLS side of any number of connections. FATAL when a file cannot be used. The caller frees. */
int ob_net_tls_new(const struct ob_net_tls_conf *conf, struct ssl_ctx_st **ret_tls,
		   struct ob_err *err);
void ob_net_tls_free(struct ssl_ctx_st *tls); /* NULL is allowed */

/* Where to; borrowed. */
struct ob_net_addr {
	const char *path; /* a unix socket; NULL: host and port */
	const char *host, *port;
	struct ssl_ctx_st *tls; /* NULL: plain */
};

/* Initialise with OB_NET_INIT. */
struct ob_net {
	int fd;             /* -1: not connected */
	struct ssl_st *ssl; /* NULL: plain */
	short wants;        /* POLLIN or POLLOUT that TLS needs before it can go on */
};

#define OB_NET_INIT ((struct ob_net){ .fd = -1 })

/*
 * Connect, with the TLS handshake, until `deadline_us` of `clock`. Every address
 * of the host is tried. The resolver has limits of its own for the time it takes.
 * A peer that is silent although we sent something is given up by the kernel
 * after `silence_ms`.
 */
int ob_net_connect(struct ob_net *net, const struct ob_net_addr *addr, int silence_ms,
		   const struct ob_clock *clock, int64_t deadline_us, struct ob_err *err);
/* TLS on a connected socket; part of ob_net_connect(). */
int ob_net_tls_start(struct ob_net *net, const struct ob_net_addr *addr,
		     const struct ob_clock *clock, int64_t deadline_us, struct ob_err *err);
/* How many bytes went or came; 0: none now, wait for ob_net_events(). The end is an error. */
ssize_t ob_net_write(struct ob_net *net, struct ob_str bytes, struct ob_err *err);
ssize_t ob_net_read(struct ob_net *net, char *buf, size_t size, struct ob_err *err);
/* What to poll for: to read, and to write when there is more to write. */
short ob_net_events(const struct ob_net *net, bool writing);
/* Wait for `events` until the deadline; false: it has passed. */
bool ob_net_wait(const struct ob_net *net, short events, const struct ob_clock *clock,
		 int64_t deadline_us);
/* Does a connection on which nothing is expected still stand? */
bool ob_net_is_quiet(const struct ob_net *net);
void ob_net_close(struct ob_net *net);

/* The parts of read and write that are TLS, and what both say of the end: errno, or a farewell. */
int ob_net_failed(const char *doing, struct ob_err *err);
int ob_net_closed(struct ob_err *err);
ssize_t ob_net_tls_write(struct ob_net *net, struct ob_str bytes, struct ob_err *err);
ssize_t ob_net_tls_read(struct ob_net *net, char *buf, size_t size, struct ob_err *err);
void ob_net_tls_end(struct ob_net *net);

#endif
