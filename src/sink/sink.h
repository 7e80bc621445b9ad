/* SPDX-License-Identifier: MIT */
/*
 * The sink: where messages go. Asynchronous: send() hands a message over,
 * poll() moves bytes and returns outcomes. One struct ob_sink is one
 * connection and belongs to one thread; it never logs.
 *
 * The life of a delivery: send() accepted it -> exactly one outcome comes out of
 * poll(), or reset() forgets it. Nothing is ever confirmed before the sink's
 * own acknowledgement is in hand: for a file that is the fsync. The process
 * ignores SIGPIPE: a peer that went away is an error, not a signal.
 */
#ifndef OB_SINK_SINK_H
#define OB_SINK_SINK_H

#include "base/clock.h"
#include "base/err.h"
#include "base/finding.h"
#include "base/message.h"
#include "base/opt.h"

struct ob_sink;

/*
 * A message, routed. The struct is read during send() alone; everything it points
 * to is borrowed and must stay unchanged until the outcome is returned or reset()
 * is called. A tag stands for one unconfirmed delivery at a time.
 */
struct ob_delivery {
	uint64_t tag; /* the caller's; comes back with the outcome */
	const struct ob_message *message;
	struct ob_str destination; /* topic, stream, subject ... */
	/* For the destination; p NULL: none. Not what OB_SINK_ORDERED is about: a route may set it.
	 */
	struct ob_str key;
	struct ob_str body; /* p NULL: tombstone */
	struct ob_str
		content_type; /* of the body; p NULL: as stored, JSON unless the layout is binary */
	/*
	 * What the message goes out with, as text, the stored headers included.
	 * None: a sink that can carry JSON takes message->headers as stored.
	 */
	const struct ob_header *headers;
	size_t header_count;
	/* JSON without a line break, to go out beside the body; p NULL: none, or the route sends
	 * none. */
	struct ob_str snapshot;
};

/* An outcome: err.kind OB_ERR_NONE means stored, as far as this sink's acknowledgement goes. */
struct ob_ack {
	uint64_t tag;
	struct ob_err err;
};

/*
 * Optional. Is what the options say possible, each in itself and together? OUTBOX_ECONFIG
 * says what is not. Connects to nothing and looks at no file: a configuration is checked
 * with it, perhaps on another machine. open() gives the same answer.
 */
typedef int ob_sink_check_fn(struct ob_sink *sink, struct ob_err *err);

/*
 * Optional. The same for CloudEvents in binary mode, whose attributes are headers of each message:
 * can they go out with these options? NULL: wherever there is a ce_prefix.
 */
typedef int ob_sink_check_binary_fn(struct ob_sink *sink, struct ob_err *err);

/*
 * Connect or get ready. DOWN when the peer is away (call again later), FATAL
 * when a person must act. Called again after a DOWN (of any call or outcome)
 * and after reset(), before the next send(); when the sink is already usable it
 * does nothing, and it never touches what is unconfirmed.
 */
typedef int ob_sink_open_fn(struct ob_sink *sink, struct ob_err *err);

/*
 * Hand one message over. Never blocks for long (at most a connect timeout).
 *   0  accepted: its outcome will come from poll()
 *   1  not accepted now, the window is full: poll() first (OB_SINK_FULL)
 *  <0  not accepted and no outcome will follow: REJECT (too large, bad
 *      destination) or RETRY about this message, DOWN or FATAL about the sink
 * A failure never takes back what was accepted before. A sink that is not open
 * answers DOWN. FULL is also the answer while failed outcomes wait to be
 * fetched, where the sink could not keep its order otherwise.
 */
typedef int ob_sink_send_fn(struct ob_sink *sink, const struct ob_delivery *delivery,
			    struct ob_err *err);
enum { OB_SINK_FULL = 1 };

/*
 * Move bytes out and in, wait up to timeout_ms for the first outcome (0: do
 * not wait) and write up to `max` (at least 1) outcomes, in any order. Returns how
 * many; 0 does not mean that nothing moved. Called about once a second when nothing
 * is under way, for sinks that must show signs of life. When the connection is lost, every
 * unconfirmed delivery gets a DOWN outcome (its fate is unknown), with hung_up when it was the
 * peer who ended it, and it may have been over one of these. A failure of poll()
 * itself is FATAL and gives no outcomes, now or later: only reset() and free follow.
 */
typedef int ob_sink_poll_fn(struct ob_sink *sink, int timeout_ms, struct ob_ack *acks, size_t max,
			    struct ob_err *err);

/*
 * Forget everything unconfirmed: no outcome will come for it and no further
 * byte of it is sent. Used when a lease is lost or time is up.
 */
typedef void ob_sink_reset_fn(struct ob_sink *sink);

/* Optional. An fd to poll for reading while outcomes are awaited; -1: none. */
typedef int ob_sink_fd_fn(struct ob_sink *sink);

/* Give back what is held; called once, also on a sink that was never opened. Unconfirmed is
 * forgotten. */
typedef void ob_sink_close_fn(struct ob_sink *sink);

/* One line for people: "file /var/log/outbox.ndjson". */
typedef void ob_sink_describe_fn(struct ob_sink *sink, struct ob_buf *out);

/*
 * Optional. What works, and yet weakens a promise, as far as the last open() has found out: a
 * finding of ops->checks for each into `out`.
 */
typedef void ob_sink_advise_fn(struct ob_sink *sink, struct ob_findings *out);

/*
 * Optional. Ask the peer of a sink that is open, and idle, what it keeps and what its limits are,
 * and whether each of `destinations` is there: findings of ops->checks into `out`, also for what is
 * in order, and what advise() says. Sends no message and creates nothing. What the peer does not
 * tell is left out; DOWN when it is away.
 */
typedef int ob_sink_probe_fn(struct ob_sink *sink, const struct ob_str *destinations, size_t count,
			     struct ob_findings *out, struct ob_err *err);

/*
 * Optional, both. A handler in the log's own database: instead of send and poll the worker runs it
 * in the transaction in which it records its progress, so that its effect is exactly once. Either
 * the text of a statement with values of the message (see store.h), or a function, which gets the
 * store with that transaction open and must not end it. It returns 0, or < 0: RETRY or REJECT about
 * this message, DOWN, FATAL. It may be run again for the same message, if another one of the
 * transaction fails; what it wrote there is undone before.
 */
struct ob_store;
typedef const char *ob_sink_statement_fn(const struct ob_sink *sink);
typedef int ob_sink_in_store_fn(struct ob_sink *sink, struct ob_store *store,
				const struct ob_message *message, struct ob_err *err);

enum {
	/*
	 * After a failure other than REJECT, nothing that was sent later for the
	 * same message->key has been stored, so many messages of one key may be in flight.
	 * Those behind it get an outcome of the same kind, which says nothing about
	 * them: the caller, who sees the key fail first, charges them no attempt. The
	 * outcomes of one key come in the order of its sends. A key is usable again
	 * once all of its outcomes have been fetched.
	 * Without it the caller keeps one unconfirmed message per key.
	 */
	OB_SINK_ORDERED = 1 << 0,
	/* What is sent is gone when the process ends (memory, stdout): not for real use. */
	OB_SINK_VOLATILE = 1 << 1,
	/* Has headers of its own: the stored ones come one by one, unless they are no JSON object.
	 */
	OB_SINK_HEADERS = 1 << 2,
	/* Its binding of CloudEvents has datacontenttype among the headers, too (NATS). */
	OB_SINK_CE_TYPE = 1 << 3,
};

struct ob_sink_ops {
	const char *name; /* "file": the `type` of a sinks: entry */
	unsigned caps;
	size_t size; /* of the backend's struct, whose first member is struct ob_sink */
	const struct ob_opt *opts;     /* what a `sinks:` entry may hold besides type */
	const struct ob_check *checks; /* what advise() and probe() check; NULL: nothing */
	/*
	 * Optional. What stands before the name of a CloudEvents attribute in a header, by the
	 * binding of this transport: "ce-". NULL: there is no binding, only structured events go.
	 */
	const char *ce_prefix;
	ob_sink_statement_fn *statement;
	ob_sink_in_store_fn *in_store;
	ob_sink_check_fn *check;
	ob_sink_check_binary_fn *check_binary;
	ob_sink_open_fn *open;
	ob_sink_send_fn *send;
	ob_sink_poll_fn *poll;
	ob_sink_reset_fn *reset;
	ob_sink_fd_fn *fd;
	ob_sink_close_fn *close;
	ob_sink_describe_fn *describe;
	ob_sink_advise_fn *advise;
	ob_sink_probe_fn *probe;
};

/* First member of every backend's own struct. */
struct ob_sink {
	const struct ob_sink_ops *ops;
	const struct ob_clock *clock;
};

struct ob_sink_backend {
	const char *name;
	const struct ob_sink_ops *ops; /* NULL: not in this build */
	const char *package;           /* the Debian package that brings its library, or NULL */
	const char *help;
};

/* All that users may name; the last has no name. */
extern const struct ob_sink_backend ob_sink_backends[];

/*
 * The backend of a type. An unknown type is OUTBOX_ECONFIG with the closest name
 * and all the known ones; one that is not in this build names the package to install.
 */
int ob_sink_find(const char *type, const struct ob_sink_backend **ret_backend, struct ob_err *err);
/*
 * Make one with its options set, not opened. An unknown, bad or missing option
 * is OUTBOX_ECONFIG. On success the caller owns *ret_sink.
 */
int ob_sink_new(const struct ob_sink_ops *ops, const struct ob_opt_value *options,
		size_t option_count, const struct ob_clock *clock, struct ob_sink **ret_sink,
		struct ob_err *err);
/* Would that succeed, and does the backend's check() pass? */
int ob_sink_check(const struct ob_sink_ops *ops, const struct ob_opt_value *options,
		  size_t option_count, struct ob_err *err);
/* Would CloudEvents in binary mode go out? */
int ob_sink_check_binary(const struct ob_sink_ops *ops, const struct ob_opt_value *options,
			 size_t option_count, struct ob_err *err);
/* Close and free; NULL is allowed. */
void ob_sink_free(struct ob_sink *sink);

/* The backends, one file each; see their options there. */
extern const struct ob_sink_ops ob_sink_stdout, ob_sink_file, ob_sink_exec, ob_sink_http,
	ob_sink_redis, ob_sink_kafka, ob_sink_rabbitmq, ob_sink_nats, ob_sink_sql;

/* The operations; see the function types above. */
ob_sink_open_fn ob_sink_open;
ob_sink_send_fn ob_sink_send;
ob_sink_poll_fn ob_sink_poll;
ob_sink_reset_fn ob_sink_reset;
ob_sink_fd_fn ob_sink_fd;
ob_sink_describe_fn ob_sink_describe;
ob_sink_advise_fn ob_sink_advise;
ob_sink_probe_fn ob_sink_probe;

#endif
