/* SPDX-License-Identifier: MIT */
/* How a stream and its group stand, what was trimmed away, and which members can go. */
#include "feed/redis/redis.h"

static int64_t number_of(const redisReply *reply, int64_t unknown)
{
	return reply && reply->type == REDIS_REPLY_INTEGER ? reply->integer : unknown;
}

/* The group's part of XINFO GROUPS; NULL: it is not there. */
static const redisReply *find_group(const struct redis_feed *feed, const redisReply *groups)
{
	for (size_t i = 0; groups->type == REDIS_REPLY_ARRAY && i < groups->elements; i++) {
		const redisReply *name = ob_redis_find(groups->element[i], "name");

		if (ob_str_eq(ob_redis_text(name), ob_str(ob_redis_group(feed))))
			return groups->element[i];
	}
	return NULL;
}

struct look {
	redisReply *stream, *groups;
	const redisReply *group; /* NULL: there is none */
};

static void look_done(struct look *look)
{
	if (look->stream)
		freeReplyObject(look->stream);
	if (look->groups)
		freeReplyObject(look->groups);
}

static int look_at(struct redis_feed *feed, struct look *look, struct ob_err *err)
{
	const char *stream[] = { "XINFO", "STREAM", feed->stream };
	const char *groups[] = { "XINFO", "GROUPS", feed->stream };
	int r = ob_redis_feed_ask(feed, stream, 3, &look->stream, err);

	if (r == 0)
		r = ob_redis_feed_ask(feed, groups, 3, &look->groups, err);
	if (r == 0)
		look->group = find_group(feed, look->groups);
	return r;
}

/* The id of the first entry that is left. */
static bool first_entry(const redisReply *stream, struct ob_feed_place *ret)
{
	const redisReply *first = ob_redis_find(stream, "first-entry");

	return first && first->type == REDIS_REPLY_ARRAY && first->elements > 0 &&
	       ob_redis_id_parse(ob_redis_text(first->element[0]), ret);
}

/*
 * Entries that were removed without having been read: the highest id that was removed lies above
 * what the group was given. Redis tells that from version 7 on.
 */
static void note_trim(struct redis_feed *feed, const struct look *look)
{
	struct ob_feed_place removed, read = feed->after;
	const redisReply *last = ob_redis_find(look->group, "last-delivered-id");
	int64_t added = number_of(ob_redis_find(look->stream, "entries-added"), -1);
	int64_t seen = number_of(ob_redis_find(look->group, "entries-read"), -1);
	int64_t length = number_of(ob_redis_find(look->stream, "length"), 0);
	/* Trimmed from its old end: more than the group has read. */
	int64_t lost = added >= 0 && seen >= 0 ? added - length - seen : -1;
	char text[OB_REDIS_ID_SIZE];

	if (lost > feed->trimmed && !feed->by_place) {
		feed->lost += (uint64_t)(lost - feed->trimmed);
		(void)snprintf(feed->news, sizeof(feed->news),
			       "stream '%.80s' was trimmed before group '%.80s' had read it: %lld "
			       "entries are lost",
			       feed->stream, ob_redis_group(feed),
			       (long long)(lost - feed->trimmed));
	}
	feed->trimmed = lost > 0 ? lost : 0;
	if (lost > 0)
		return;
	if (!ob_redis_id_parse(ob_redis_text(ob_redis_find(look->stream, "max-deleted-entry-id")),
			       &removed))
		return;
	if (!feed->by_place && !ob_redis_id_parse(ob_redis_text(last), &read))
		return;
	/* One that begins at the beginning has missed nothing that it was promised. */
	if (read.major == 0 || !ob_redis_id_less(read, removed) ||
	    !ob_redis_id_less(feed->lost_to, removed))
		return;
	feed->lost_to = removed;
	feed->lost++;
	ob_redis_id_format(removed, text);
	(void)snprintf(feed->news, sizeof(feed->news),
		       "stream '%.80s' was trimmed before group '%.80s' had read it: entries up to "
		       "%s are lost",
		       feed->stream, ob_redis_group(feed), text);
}

int ob_redis_feed_check_trim(struct redis_feed *feed, struct ob_err *err)
{
	__attribute__((cleanup(look_done))) struct look look = { 0 };
	int r = look_at(feed, &look, err);

	if (r == 0)
		note_trim(feed, &look);
	return r;
}

/* ---- state ----------------------------------------------------------- */

/* The id of the first entry of a list of entries, or of pending ones. */
static bool first_id(struct redis_feed *feed, const char *const *words, size_t count,
		     struct ob_feed_place *ret)
{
	struct ob_err ignored = OB_ERR_INIT;
	redisReply *reply = NULL;
	bool found = false;

	if (ob_redis_feed_ask(feed, words, count, &reply, &ignored) < 0)
		return false;
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
	    reply->element[0]->type == REDIS_REPLY_ARRAY && reply->element[0]->elements > 0)
		found = ob_redis_id_parse(ob_redis_text(reply->element[0]->element[0]), ret);
	freeReplyObject(reply);
	return found;
}

/* The oldest that is not acknowledged: pending, or not read yet. */
static int64_t oldest_us(struct redis_feed *feed, const struct look *look)
{
	struct ob_feed_place last = feed->after, id, oldest = { UINT64_MAX, 0 };
	char after[OB_REDIS_ID_SIZE + 1] = "(";
	const char *pending[] = { "XPENDING", feed->stream, ob_redis_group(feed), "-", "+", "1" };
	const char *range[] = { "XRANGE", feed->stream, after, "+", "COUNT", "1" };

	(void)ob_redis_id_parse(ob_redis_text(ob_redis_find(look->group, "last-delivered-id")),
				&last);
	ob_redis_id_format(last, after + 1);
	if (!feed->by_place && first_id(feed, pending, 6, &id))
		oldest = id;
	if (first_id(feed, range, 6, &id) && ob_redis_id_less(id, oldest))
		oldest = id;
	if (oldest.major == UINT64_MAX)
		return 0;
	int64_t age = ob_clock_real_us(feed->base.clock) - (int64_t)oldest.major * 1000;
	return age > 0 ? age : 0;
}

int ob_redis_feed_state(struct ob_feed *base, struct ob_feed_state *ret, struct ob_err *err)
{
	__attribute__((cleanup(look_done))) struct look look = { 0 };
	struct redis_feed *feed = (struct redis_feed *)base;
	struct ob_feed_place first;

	if (!feed->ready)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "redis is not connected");
	int r = look_at(feed, &look, err);
	if (r < 0)
		return r;
	note_trim(feed, &look);
	int64_t unread = number_of(ob_redis_find(look.group, "lag"), -1);
	int64_t pending = number_of(ob_redis_find(look.group, "pending"), 0);
	ret->lag = unread < 0 ? -1 : unread + pending;
	ret->oldest_us = oldest_us(feed, &look);
	if (first_entry(look.stream, &first))
		ret->retention_ms = ob_clock_real_us(base->clock) / 1000 - (int64_t)first.major;
	return 0;
}

/* ---- members --------------------------------------------------------- */

/* Removing a member makes its pending entries unreachable: one that has any stays. */
int ob_redis_feed_reap(struct redis_feed *feed, struct ob_err *err)
{
	const char *list[] = { "XINFO", "CONSUMERS", feed->stream, ob_redis_group(feed) };
	redisReply *reply = NULL;
	int r = ob_redis_feed_ask(feed, list, 4, &reply, err);

	for (size_t i = 0; r == 0 && reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
		const redisReply *member = reply->element[i];
		struct ob_str name = ob_redis_text(ob_redis_find(member, "name"));
		redisReply *gone = NULL;

		if (!name.p || ob_str_eq(name, ob_str(feed->base.member)) ||
		    number_of(ob_redis_find(member, "pending"), 1) != 0 ||
		    number_of(ob_redis_find(member, "idle"), 0) < feed->reap_idle_ms)
			continue;
		const char *words[] = { "XGROUP", "DELCONSUMER", feed->stream, ob_redis_group(feed),
					name.p };
		r = ob_redis_feed_ask(feed, words, 5, &gone, err);
		if (gone)
			freeReplyObject(gone);
	}
	if (reply)
		freeReplyObject(reply);
	return r;
}
