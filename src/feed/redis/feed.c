/* SPDX-License-Identifier: MIT */
/*
 * A Redis stream and a consumer group. What was handed out and not acknowledged stays pending in
 * Redis; it is read again first. A group gives no order among its members, so an ordered consumer
 * is the sole member: its lease in the consumer's database sees to that.
 */
#include "feed/backends.h"
#include "feed/redis/redis.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <stdlib.h>

enum { START_BEGINNING, START_END, ACKS_AT_ONCE = 256 };

/* ---- ids and answers ------------------------------------------------- */

bool ob_redis_id_parse(struct ob_str text, struct ob_feed_place *ret)
{
	char copy[OB_REDIS_ID_SIZE], *end;

	if (text.n == 0 || text.n >= sizeof(copy) || text.p[0] < '0' || text.p[0] > '9')
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	ret->major = strtoull(copy, &end, 10);
	ret->minor = 0;
	if (*end == '\0')
		return true;
	if (*end != '-' || end[1] < '0' || end[1] > '9')
		return false;
	ret->minor = strtoull(end + 1, &end, 10);
	return *end == '\0';
}

void ob_redis_id_format(struct ob_feed_place id, char out[OB_REDIS_ID_SIZE])
{
	(void)snprintf(out, OB_REDIS_ID_SIZE, "%" PRIu64 "-%" PRIu64, id.major, id.minor);
}

bool ob_redis_id_less(struct ob_feed_place a, struct ob_feed_place b)
{
	return a.major != b.major ? a.major < b.major : a.minor < b.minor;
}

struct ob_str ob_redis_text(const redisReply *reply)
{
	bool text =
		reply && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS);

	return text ? (struct ob_str){ reply->str, (size_t)reply->len } : OB_STR_NULL;
}

const redisReply *ob_redis_find(const redisReply *list, const char *name)
{
	for (size_t i = 0; list && list->type == REDIS_REPLY_ARRAY && i + 1 < list->elements;
	     i += 2) {
		if (ob_str_eq(ob_redis_text(list->element[i]), ob_str(name)))
			return list->element[i + 1];
	}
	return NULL;
}

const char *ob_redis_group(const struct redis_feed *feed)
{
	return feed->group ? feed->group : feed->base.group;
}

static bool begins(struct ob_str text, const char *with)
{
	size_t n = strlen(with);

	return text.n >= n && memcmp(text.p, with, n) == 0;
}

int ob_redis_feed_ask(struct redis_feed *feed, const char *const *words, size_t count,
		      redisReply **ret, struct ob_err *err)
{
	struct redis_sink *link = (struct redis_sink *)feed->base.link;
	redisReply *reply = NULL;
	bool leave = false;

	int r = ob_redis_node_ask(link, link->nodes[0], words, count, &reply, err);
	if (r < 0) {
		feed->ready = false;
		return r;
	}
	if (reply->type != REDIS_REPLY_ERROR) {
		*ret = reply;
		return 0;
	}
	struct ob_str text = { reply->str, (size_t)reply->len };
	(void)ob_redis_error(text, &leave, err);
	if (begins(text, "MOVED"))
		(void)ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				 "stream '%.100s' is on another server of the cluster: let the url "
				 "lead to it (%.*s)",
				 feed->stream, (int)(text.n > 100 ? 100 : text.n), text.p);
	(void)snprintf(err->native, sizeof(err->native), "%.*s",
		       (int)(strcspn(reply->str, " ") > 15 ? 15 : strcspn(reply->str, " ")),
		       reply->str);
	freeReplyObject(reply);
	/* Whatever a source refuses, a person may put right while we wait. */
	err->kind = OB_ERR_DOWN;
	if (leave)
		ob_redis_node_drop(link->nodes[0]);
	feed->ready = feed->ready && !leave;
	return err->status;
}

/* ---- opening --------------------------------------------------------- */

static int no_stream(const struct redis_feed *feed, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
			  "stream '%.150s' does not exist: its first message makes it",
			  feed->stream);
}

/* A group that someone removed is made anew from the beginning: never silently past anything. */
static int make_group(struct redis_feed *feed, struct ob_err *err)
{
	const char *from = feed->start == START_END && !feed->made_before ? "$" : "0";
	const char *words[] = { "XGROUP", "CREATE", feed->stream, ob_redis_group(feed), from };
	redisReply *reply = NULL;
	int r = ob_redis_feed_ask(feed, words, 5, &reply, err);

	if (r == 0 && feed->made_before)
		(void)snprintf(feed->news, sizeof(feed->news),
			       "group '%.80s' of stream '%.80s' was gone: made again, from the "
			       "beginning",
			       ob_redis_group(feed), feed->stream);
	if (r == 0)
		freeReplyObject(reply);
	if (r < 0 && strcmp(err->native, "BUSYGROUP") == 0)
		r = 0;
	if (r < 0 && strstr(err->msg, "requires the key to exist"))
		return no_stream(feed, err);
	return r;
}

static int look_for_stream(struct redis_feed *feed, struct ob_err *err)
{
	const char *words[] = { "TYPE", feed->stream };
	redisReply *reply = NULL;
	int r = ob_redis_feed_ask(feed, words, 2, &reply, err);

	if (r < 0)
		return r;
	struct ob_str type = ob_redis_text(reply);
	if (ob_str_eq(type, OB_STR("none")))
		r = no_stream(feed, err);
	else if (!ob_str_eq(type, OB_STR("stream")))
		r = ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "key '%.150s' is a %.*s, no stream",
			       feed->stream, (int)(type.n > 20 ? 20 : type.n), type.p);
	freeReplyObject(reply);
	return r;
}

static int redis_feed_open(struct ob_feed *base, struct ob_err *err)
{
	struct redis_feed *feed = (struct redis_feed *)base;

	((struct redis_sink *)base->link)->reply_max = OB_REDIS_FEED_REPLY_MAX;
	int r = ob_sink_open(base->link, err);
	if (r < 0 || feed->ready)
		return r;
	r = look_for_stream(feed, err);
	if (r == 0 && !feed->by_place)
		r = make_group(feed, err);
	if (r == 0)
		r = ob_redis_feed_check_trim(feed, err);
	if (r < 0)
		return r;
	feed->ready = feed->made_before = true;
	/* Whatever was under way when the connection was lost may stand there as ours. */
	feed->phase = feed->by_place ? OB_REDIS_NEW : OB_REDIS_PENDING;
	feed->cursor = (struct ob_feed_place){ 0, 0 };
	return 0;
}

static int redis_feed_seek(struct ob_feed *base, const struct ob_str *parts,
			   const struct ob_feed_place *places, size_t count, struct ob_err *err)
{
	struct redis_feed *feed = (struct redis_feed *)base;
	const char *words[] = { "XINFO", "STREAM", feed->stream };
	redisReply *reply = NULL;

	feed->by_place = true;
	feed->phase = OB_REDIS_NEW;
	for (size_t i = 0; i < count; i++) {
		if (ob_str_eq(parts[i], ob_str(feed->stream))) {
			feed->after = places[i];
			return 0;
		}
	}
	if (feed->start != START_END)
		return 0;
	int r = ob_redis_feed_ask(feed, words, 3, &reply, err);
	if (r < 0)
		return r;
	(void)ob_redis_id_parse(ob_redis_text(ob_redis_find(reply, "last-generated-id")),
				&feed->after);
	freeReplyObject(reply);
	return 0;
}

/* ---- acknowledging --------------------------------------------------- */

static struct ob_redis_open_entry *find_open(struct redis_feed *feed, uint64_t tag)
{
	size_t low = 0, high = feed->open_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (feed->open[mid].tag < tag)
			low = mid + 1;
		else
			high = mid;
	}
	return low < feed->open_count && feed->open[low].tag == tag ? &feed->open[low] : NULL;
}

static void forget_done(struct redis_feed *feed)
{
	size_t kept = 0;

	for (size_t i = 0; i < feed->open_count; i++) {
		if (!feed->open[i].done)
			feed->open[kept++] = feed->open[i];
	}
	feed->open_count = kept;
}

static int ack_some(struct redis_feed *feed, const uint64_t *tags, size_t count, struct ob_err *err)
{
	const char *words[ACKS_AT_ONCE + 3] = { "XACK", feed->stream, ob_redis_group(feed) };
	char ids[ACKS_AT_ONCE][OB_REDIS_ID_SIZE];
	redisReply *reply = NULL;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		struct ob_redis_open_entry *entry = find_open(feed, tags[i]);

		if (!entry)
			continue;
		ob_redis_id_format(entry->id, ids[n]);
		words[3 + n] = ids[n];
		n++;
	}
	int r = n && !feed->by_place ? ob_redis_feed_ask(feed, words, 3 + n, &reply, err) : 0;
	if (reply)
		freeReplyObject(reply);
	/* A group that is gone has nothing pending: the next read makes it again. */
	if (r < 0 && strcmp(err->native, "NOGROUP") != 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		struct ob_redis_open_entry *entry = find_open(feed, tags[i]);

		if (entry)
			entry->done = true;
	}
	return 0;
}

static int redis_feed_ack(struct ob_feed *base, const uint64_t *tags, size_t count,
			  struct ob_err *err)
{
	struct redis_feed *feed = (struct redis_feed *)base;
	int r = 0;

	if (!feed->ready && !feed->by_place)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "redis is not connected");
	for (size_t from = 0; from < count && r == 0; from += ACKS_AT_ONCE)
		r = ack_some(feed, tags + from,
			     count - from < ACKS_AT_ONCE ? count - from : ACKS_AT_ONCE, err);
	forget_done(feed);
	return r;
}

/* Nobody else is told: they stay pending, and are read again from the beginning. */
static void redis_feed_give_back(struct ob_feed *base, const uint64_t *tags, size_t count)
{
	struct redis_feed *feed = (struct redis_feed *)base;

	for (size_t i = 0; i < count; i++) {
		struct ob_redis_open_entry *entry = find_open(feed, tags[i]);

		if (!entry)
			continue;
		entry->done = true;
		/* Go on before the first of them. */
		if (feed->by_place && !ob_redis_id_less(feed->after, entry->id)) {
			feed->after = entry->id;
			if (feed->after.minor > 0)
				feed->after.minor--;
			else if (feed->after.major > 0)
				feed->after =
					(struct ob_feed_place){ feed->after.major - 1, UINT64_MAX };
		}
	}
	forget_done(feed);
	if (!feed->by_place) {
		feed->phase = OB_REDIS_PENDING;
		feed->cursor = (struct ob_feed_place){ 0, 0 };
	}
}

/* ---- the table ------------------------------------------------------- */

static int redis_feed_check(struct ob_feed *base, struct ob_err *err)
{
	const struct redis_feed *feed = (struct redis_feed *)base;

	if (!feed->stream[0] || strlen(feed->stream) > 200)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the stream of the redis source needs a name of 1 to 200 bytes");
	return 0;
}

static void redis_feed_close(struct ob_feed *base)
{
	free(((struct redis_feed *)base)->open);
}

static void redis_feed_describe(struct ob_feed *base, struct ob_buf *out)
{
	const struct redis_feed *feed = (struct redis_feed *)base;

	ob_sink_describe(base->link, out);
	ob_buf_addf(out, " stream %s group %s", feed->stream, ob_redis_group(feed));
}

static const char *const start_names[] = { "beginning", "end", NULL };

static const struct ob_opt redis_feed_opts[] = {
	{
		.name = "stream",
		.type = OB_OPT_STR,
		.offset = offsetof(struct redis_feed, stream),
		.flags = OB_OPT_REQUIRED,
		.help = "The stream to read.",
	},
	{
		.name = "group",
		.type = OB_OPT_STR,
		.offset = offsetof(struct redis_feed, group),
		.help = "The consumer group; left out: the consumer's name.",
	},
	{
		.name = "start",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct redis_feed, start),
		.dflt = "beginning",
		.choices = start_names,
		.help = "Where a group that is new begins.",
	},
	{
		.name = "claim_idle",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct redis_feed, claim_idle_ms),
		.dflt = "60s",
		.min = 1,
		.max = 86400000,
		.help = "Pending entries of another member are taken over when they are that old; "
			"longer than the slowest handler.",
	},
	{
		.name = "claim_every",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct redis_feed, claim_every_ms),
		.dflt = "30s",
		.min = 10,
		.max = 86400000,
		.help = "How often such entries are looked for.",
	},
	{
		.name = "reap_idle",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct redis_feed, reap_idle_ms),
		.dflt = "1h",
		.min = 1,
		.max = INT64_C(86400000) * 30,
		.help = "Members without pending entries are removed from the group after that "
			"long "
			"without a sign of life; one with pending entries never.",
	},
	OB_OPT_END,
};

static const char *const link_opts[] = { "url",        "username", "password", "connect_timeout",
					 "timeout",    "tls_ca",   "tls_cert", "tls_key",
					 "tls_verify", NULL };

const struct ob_feed_ops ob_feed_redis = {
	.name = "redis",
	.caps = OB_FEED_PLACES | OB_FEED_STABLE_TAGS,
	.size = sizeof(struct redis_feed),
	.opts = redis_feed_opts,
	.link = &ob_sink_redis,
	.link_opts = link_opts,
	.checks = ob_redis_feed_checks,
	.probe = ob_redis_feed_probe,
	.check = redis_feed_check,
	.open = redis_feed_open,
	.seek = redis_feed_seek,
	.poll = ob_redis_feed_poll,
	.ack = redis_feed_ack,
	.give_back = redis_feed_give_back,
	.state = ob_redis_feed_state,
	.close = redis_feed_close,
	.describe = redis_feed_describe,
};
