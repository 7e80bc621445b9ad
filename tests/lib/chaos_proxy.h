/* SPDX-License-Identifier: MIT */
/*
 * A TCP proxy that misbehaves on demand, in front of a real server on 127.0.0.1:
 * late, in slices, cut off at a byte, at a word, or gone. It runs in a thread of its own.
 * Failures of the proxy itself end the test.
 */
#ifndef OB_TESTS_CHAOS_PROXY_H
#define OB_TESTS_CHAOS_PROXY_H

#include <stddef.h>

struct chaos_proxy;

enum chaos_way { CHAOS_TO_SERVER, CHAOS_TO_CLIENT, CHAOS_WAYS };

enum chaos_end {
	CHAOS_CLOSE, /* both connections are closed in good order */
	CHAOS_RESET, /* the client sees a reset; the server sees a close */
	CHAOS_MUTE,  /* both stay open and nothing moves any more, as behind a dead firewall */
};

/* When a connection is cut, in one direction. All zero: never. */
struct chaos_cut {
	size_t after;      /* > 0: when so many bytes of a connection have passed */
	const char *match; /* when these bytes come; they do not pass */
	size_t match_size; /* 0: up to the NUL */
};

/* How connections are treated from now on, the open ones too. All zero: a plain proxy. */
struct chaos_plan {
	int delay_ms; /* what is read waits so long before it goes on, each way */
	size_t slice; /* > 0: at most so many bytes in one packet */
	struct chaos_cut cut[CHAOS_WAYS];
	enum chaos_end end;
	size_t times; /* > 0: so many cuts, then a plain proxy again */
};

/* Listens on a free port and passes on to `server_port` when it returns. */
struct chaos_proxy *chaos_proxy_new(int server_port);
void chaos_proxy_free(struct chaos_proxy *proxy);

int chaos_proxy_port(const struct chaos_proxy *proxy);
/* `plan` is copied, the bytes to match too. The count of passed bytes begins anew. */
void chaos_proxy_plan(struct chaos_proxy *proxy, const struct chaos_plan *plan);
/*
 * From now on, in what comes from the server, `from` is exchanged for `to`, of the same size: for
 * protocols that name the server's own address. Both are copied.
 */
void chaos_proxy_swap(struct chaos_proxy *proxy, const char *from, const char *to, size_t size);
/* Reset all that is open, now. */
void chaos_proxy_break(struct chaos_proxy *proxy);
/* How many connections came, and how many were cut by the plan, so far. */
size_t chaos_proxy_connections(struct chaos_proxy *proxy);
size_t chaos_proxy_cuts(struct chaos_proxy *proxy);

#endif
