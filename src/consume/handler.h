/* SPDX-License-Identifier: MIT */
/*
 * The handler: what a consumer does with a message. Asynchronous, as a sink is: send() hands a
 * message over, poll() returns outcomes. exec, http and callbacks are sinks (handler_sink.c); a
 * statement in SQL runs in threads with connections of their own (handler_sql.c).
 */
#ifndef OB_CONSUME_HANDLER_H
#define OB_CONSUME_HANDLER_H

#include "sink/sink.h"
#include "store/inbox.h"

struct ob_handler;

/* One message for the handler. Everything is borrowed until its outcome is fetched, or reset(). */
struct ob_work {
	uint64_t tag;
	struct ob_delivery delivery;
	int64_t parked_n; /* its row in the parked table; 0: it comes from the source */
	struct ob_str queue;
	struct ob_position position; /* with dedup: position; part.p NULL: none */
};

struct ob_outcome {
	uint64_t tag;
	struct ob_err err; /* kind NONE: it is done */
	bool duplicate;    /* done, because it had been done before */
	bool back;         /* not tried: something before it failed; send it again */
};

enum {
	/* Takes many of one key in order: after a failure what follows comes `back`. */
	OB_HANDLER_ORDERED = 1 << 0,
	/* What it does, the inbox row, the position and the end of a parked row are one
	   transaction. */
	OB_HANDLER_SETTLES = 1 << 1,
};

struct ob_handler_ops {
	unsigned caps;
	/* As a sink's: DOWN, FATAL; called before the first send and after each DOWN. */
	int (*open)(struct ob_handler *handler, struct ob_err *err);
	/* 0: its outcome will come; OB_SINK_FULL; or a failure about it or about the handler. */
	int (*send)(struct ob_handler *handler, const struct ob_work *work, struct ob_err *err);
	/* Wait up to timeout_ms for the first outcome; how many, or FATAL. */
	int (*poll)(struct ob_handler *handler, int timeout_ms, struct ob_outcome *out, size_t max,
		    struct ob_err *err);
	/* Forget everything that has no outcome. What runs is waited for. */
	void (*reset)(struct ob_handler *handler);
	void (*free)(struct ob_handler *handler);
	void (*describe)(struct ob_handler *handler, struct ob_buf *out);
};

/* First member of every handler's own struct. */
struct ob_handler {
	const struct ob_handler_ops *ops;
};

/* Takes the sink over, also when it fails. */
int ob_handler_of_sink_take(struct ob_sink *sink, struct ob_handler **ret_handler,
			    struct ob_err *err);

enum ob_dedup { OB_DEDUP_IDS, OB_DEDUP_POSITION, OB_DEDUP_NONE };

/* A statement in SQL, or a function of this program, in the transaction of the inbox. Borrowed: all
 * of it. */
struct ob_handler_sql_conf {
	const struct ob_store_conf *store;
	const char *statement;
	const struct ob_sink_ops *in_store; /* instead of the statement: a sink for each lane */
	const char *source;                 /* what positions are kept under */
	enum ob_dedup dedup;
	uint32_t lanes;                        /* threads; with POSITION there is one */
	uint32_t batch;                        /* messages of one transaction */
	const struct ob_consumer_lease *lease; /* its epoch is checked in every transaction */
};
int ob_handler_sql_new(const struct ob_handler_sql_conf *conf, struct ob_handler **ret_handler,
		       struct ob_err *err);

#endif
