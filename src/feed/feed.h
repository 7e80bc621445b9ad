/* SPDX-License-Identifier: MIT */
/*
 * The feed: where a consumer's messages come from; the `source:` of its configuration. One struct
 * ob_feed is one connection and belongs to one thread; it never logs.
 *
 * The life of an entry: poll() hands it out -> the consumer handles or parks it, in its own
 * database
 * -> ack() tells the source that it is done. What is not acknowledged comes again: to the next
 * owner, after a restart, or after give_back(). Nothing is acknowledged by a feed itself, but for
 * entries that the source has lost.
 *
 * Kinds of failure are as everywhere: DOWN when it may pass by itself (away, the stream is not
 * there yet, no rights: a person may grant them meanwhile), FATAL when this process can never
 * succeed, LOST when someone else owns what we read. A feed that was DOWN is opened again by
 * open(). Entries handed out before that are still to be acknowledged where the source knows them
 * by a place of their own (OB_FEED_STABLE_TAGS); elsewhere their tags are void, ack() passes them
 * over, and they come again.
 */
#ifndef OB_FEED_FEED_H
#define OB_FEED_FEED_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/finding.h"
#include "base/message.h"
#include "base/opt.h"
#include "sink/sink.h"

struct ob_feed;
struct ob_store_conf;

/* A place in one part of a source. Places of a part are ordered by (major, minor). */
struct ob_feed_place {
	uint64_t major, minor;
};

/* One message, as it stands in the source. The memory is the batch's. */
struct ob_feed_entry {
	uint64_t tag;              /* the feed's, for ack(); not 0 */
	struct ob_message message; /* without seq and partition */
	struct ob_str content_type;
	struct ob_str part;         /* of the source: a stream, "orders/3" */
	struct ob_str where;        /* part and place for people and as a mark: at most 480 bytes */
	struct ob_feed_place place; /* counts with OB_FEED_PLACES */
	uint32_t deliveries;        /* with this one, as the source counts them; 0: unknown */
	/* Set: it cannot be read as a message, and this says why. message.payload is what stood
	 * there, as far as it can be shown. */
	struct ob_str fault;
};

/* What poll() returns. Reset by poll(); the entries live until the next reset. */
struct ob_feed_batch {
	struct ob_arena arena;
	struct ob_feed_entry *entries;
	size_t count;
	/* News for people, each at most once: what the source has lost, what was made again. */
	uint64_t lost;  /* entries that were given to us, or would have been, and are gone */
	char news[320]; /* one line about it; "" is none */
	bool moved; /* parts were taken from us or given to us: entries of lost parts are void */
};

#define OB_FEED_BATCH_INIT ((struct ob_feed_batch){ .arena = OB_ARENA_INIT((size_t)1 << 30) })
void ob_feed_batch_done(struct ob_feed_batch *batch);

/* How the source stands; -1: it does not tell. */
struct ob_feed_state {
	int64_t lag;          /* messages that were not handed out, or not acknowledged */
	int64_t oldest_us;    /* age of the oldest of them */
	int64_t retention_ms; /* how long the source keeps a message, or the age of its oldest one
			       */
};

/* As ob_sink_check_fn. */
typedef int ob_feed_check_fn(struct ob_feed *feed, struct ob_err *err);
/*
 * Connect and find the source. Called again after any DOWN; when the feed is usable it does
 * nothing. A stream, topic or queue that does not exist is DOWN and says so. feed->member is who we
 * are among the members of a group; feed->sole says that there is no other.
 */
typedef int ob_feed_open_fn(struct ob_feed *feed, struct ob_err *err);
/*
 * Optional (OB_FEED_PLACES). Go on behind these places, whatever the source has recorded: before
 * the first poll(). A part that is not named begins where the configuration says.
 */
typedef int ob_feed_seek_fn(struct ob_feed *feed, const struct ob_str *parts,
			    const struct ob_feed_place *places, size_t count, struct ob_err *err);
/*
 * Up to `max` entries, in the order of each part; entries that were handed out to us or to a member
 * that is gone, and not acknowledged, come first. Waits up to timeout_ms for the first one. No
 * entry is success. max 0: only signs of life, nothing is handed out. Called at least every
 * ops->poll_every_ms.
 */
typedef int ob_feed_poll_fn(struct ob_feed *feed, int timeout_ms, uint32_t max,
			    struct ob_feed_batch *batch, struct ob_err *err);
/* These are done, and must not come again. May be repeated. */
typedef int ob_feed_ack_fn(struct ob_feed *feed, const uint64_t *tags, size_t count,
			   struct ob_err *err);
/* Optional. These are not done: let them come again, now. Errors are of no consequence. */
typedef void ob_feed_give_back_fn(struct ob_feed *feed, const uint64_t *tags, size_t count);
/* Optional. Still at work on these: the source's clock for them begins anew. */
typedef void ob_feed_touch_fn(struct ob_feed *feed, const uint64_t *tags, size_t count);
typedef int ob_feed_state_fn(struct ob_feed *feed, struct ob_feed_state *ret, struct ob_err *err);
/*
 * Optional. What the source's limits mean for a handler that takes up to `handler_ms`: findings of
 * ops->checks. On a feed that was not opened: it connects by itself, reads only, makes no group and
 * takes no message. An error: it cannot connect, or the source does not answer.
 */
typedef int ob_feed_probe_fn(struct ob_feed *feed, int64_t handler_ms, struct ob_findings *out,
			     struct ob_err *err);
typedef void ob_feed_close_fn(struct ob_feed *feed);
/* One line for people: "redis 127.0.0.1:6379 db 0 stream orders group billing"; no secret. */
typedef void ob_feed_describe_fn(struct ob_feed *feed, struct ob_buf *out);

enum {
	OB_FEED_PLACES = 1 << 0,      /* entries have places, and seek() is there */
	OB_FEED_STABLE_TAGS = 1 << 1, /* tags outlive the connection */
};

struct ob_feed_ops {
	const char *name; /* "redis": the `type` of a source */
	unsigned caps;
	size_t size; /* of the backend's struct, whose first member is struct ob_feed */
	const struct ob_opt *opts;
	/* The sink whose connection it uses, and which options of it apply; may be NULL. */
	const struct ob_sink_ops *link;
	const char *const *link_opts; /* names, ending with NULL */
	const struct ob_check *checks;
	int64_t poll_every_ms;   /* 0: no matter */
	ob_feed_check_fn *check; /* optional */
	ob_feed_open_fn *open;
	ob_feed_seek_fn *seek;
	ob_feed_poll_fn *poll;
	ob_feed_ack_fn *ack;
	ob_feed_give_back_fn *give_back;
	ob_feed_touch_fn *touch;
	ob_feed_state_fn *state;
	ob_feed_probe_fn *probe;
	ob_feed_close_fn *close;
	ob_feed_describe_fn *describe;
};

/* First member of every backend's own struct. */
struct ob_feed {
	const struct ob_feed_ops *ops;
	const struct ob_clock *clock;
	struct ob_sink *link;              /* NULL: it needs none */
	const struct ob_store_conf *store; /* of a log of ours; NULL: the source is none */
	char group[256]; /* the consumer's name: what the source keeps progress under */
	char member[64]; /* who we are in the group */
	bool sole;       /* no other member: what is pending is ours */
};

struct ob_feed_backend {
	const char *name;
	const struct ob_feed_ops *ops; /* NULL: not in this build */
	const char *package;
	const char *help;
};

/* All that users may name; the last has no name. */
extern const struct ob_feed_backend ob_feed_backends[];
int ob_feed_find(const char *type, const struct ob_feed_backend **ret_backend, struct ob_err *err);
/* The option of that name, of the feed or of its link; NULL: there is none. */
const struct ob_opt *ob_feed_opt(const struct ob_feed_ops *ops, const char *name);

/* Make one with its options set, not opened. On success the caller owns *ret_feed. */
struct ob_feed_conf {
	const struct ob_feed_ops *ops;
	const struct ob_opt_value *options;
	size_t option_count;
	const struct ob_store_conf *store; /* of a log of ours */
	const char *group, *member;
	bool sole;
};
int ob_feed_new(const struct ob_feed_conf *conf, const struct ob_clock *clock,
		struct ob_feed **ret_feed, struct ob_err *err);
/* Would that succeed, and does the backend's check() pass? */
int ob_feed_check(const struct ob_feed_conf *conf, struct ob_err *err);
void ob_feed_free(struct ob_feed *feed); /* NULL is allowed */

/* The operations. */
ob_feed_open_fn ob_feed_open;
ob_feed_seek_fn ob_feed_seek;
ob_feed_poll_fn ob_feed_poll;
ob_feed_ack_fn ob_feed_ack;
ob_feed_give_back_fn ob_feed_give_back;
ob_feed_touch_fn ob_feed_touch;
ob_feed_state_fn ob_feed_state;
ob_feed_probe_fn ob_feed_probe;
ob_feed_describe_fn ob_feed_describe;

/* ---- for backends ---------------------------------------------------- */

/*
 * Set what a field or header of a sink's record says: id, event_type, aggregate_type, ... Unknown
 * names go to the headers. Texts are borrowed. ob_feed_entry_finish() then sees whether it is a
 * message: an id that is missing or no UUID is entry->fault.
 */
struct ob_feed_draft {
	struct ob_feed_entry *entry;
	struct ob_buf headers; /* JSON, without its closing brace */
	bool has_id, tombstone;
	struct ob_str bad; /* a field that cannot be read */
};
void ob_feed_entry_begin(struct ob_feed_draft *draft, struct ob_feed_entry *entry);
void ob_feed_entry_field(struct ob_feed_draft *draft, struct ob_str name, struct ob_str value);
/* A header of the user's, whatever its name; the value is JSON, and copied. The field `headers`, a
 * JSON object, replaces all. */
void ob_feed_entry_header(struct ob_feed_draft *draft, struct ob_str name, struct ob_str json);
/* The field that a header of ours stands for: "outbox-event-type" is event_type. False: no memory.
 */
enum { OB_FEED_OWN_PREFIX = 7 }; /* bytes of "outbox-" */
bool ob_feed_entry_own_name(struct ob_str header, struct ob_arena *arena, struct ob_str *ret);
bool ob_feed_entry_finish(struct ob_feed_draft *draft, struct ob_arena *arena);

/* A message of the line protocol (sink/line.h), as it stands in the parked table; copies. False:
 * it is none. */
bool ob_feed_entry_of_line(struct ob_str line, struct ob_arena *arena, struct ob_feed_entry *entry);

#endif
