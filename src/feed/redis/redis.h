/* SPDX-License-Identifier: MIT */
/* What the files of the Redis feed share. The connection is the Redis sink's. */
#ifndef OB_FEED_REDIS_H
#define OB_FEED_REDIS_H

#include "feed/feed.h"
#include "sink/redis/redis.h"

#include <hiredis/hiredis.h>

enum { OB_REDIS_ID_SIZE = 44, OB_REDIS_FEED_REPLY_MAX = 512 << 20 };

/* An entry that was handed out and is not acknowledged. */
struct ob_redis_open_entry {
	uint64_t tag;
	struct ob_feed_place id;
	bool done;
};

enum ob_redis_phase {
	OB_REDIS_PENDING, /* what was ours before */
	OB_REDIS_CLAIM,   /* what members that are gone had */
	OB_REDIS_NEW,
};

struct redis_feed {
	struct ob_feed base;
	char *stream, *group;
	int start; /* of a group that is new */
	int64_t claim_idle_ms, claim_every_ms, reap_idle_ms;

	bool ready;       /* connected, and the group is there */
	bool made_before; /* the group was there once: if it is gone, someone removed it */
	bool by_place;    /* read without the group, from `after` on */
	struct ob_feed_place after;
	enum ob_redis_phase phase;
	struct ob_feed_place cursor; /* of the phase */
	int64_t next_claim_us;
	struct ob_redis_open_entry *open; /* by tag, ascending */
	size_t open_count, open_room;
	uint64_t last_tag;
	int64_t trimmed;              /* entries that were trimmed unread, and told */
	struct ob_feed_place lost_to; /* what was trimmed up to here has been told */
	uint64_t lost;                /* to be told by the next poll */
	char news[320];
};

/* Send words and take the answer, which the caller frees. An error reply is *err, DOWN. */
int ob_redis_feed_ask(struct redis_feed *feed, const char *const *words, size_t count,
		      redisReply **ret, struct ob_err *err);
/* "1700000000000-7" */
bool ob_redis_id_parse(struct ob_str text, struct ob_feed_place *ret);
void ob_redis_id_format(struct ob_feed_place id, char out[OB_REDIS_ID_SIZE]);
bool ob_redis_id_less(struct ob_feed_place a, struct ob_feed_place b);
struct ob_str ob_redis_text(const redisReply *reply);
/* The value of a name in a flat list; NULL: there is none. */
const redisReply *ob_redis_find(const redisReply *list, const char *name);
const char *ob_redis_group(const struct redis_feed *feed);

/* state.c */
ob_feed_state_fn ob_redis_feed_state;
/* Was the stream trimmed beyond what the group has read? */
int ob_redis_feed_check_trim(struct redis_feed *feed, struct ob_err *err);
/* Remove members without pending entries that have been silent for long. */
int ob_redis_feed_reap(struct redis_feed *feed, struct ob_err *err);

/* probe.c */
extern const struct ob_check ob_redis_feed_checks[];
ob_feed_probe_fn ob_redis_feed_probe;

/* read.c */
ob_feed_poll_fn ob_redis_feed_poll;

#endif
