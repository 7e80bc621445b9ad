/* SPDX-License-Identifier: MIT */
/* What a stream and the limits of its group mean for a handler. */
#include "feed/redis/redis.h"

enum { STREAM, CLAIM_IDLE };

const struct ob_check ob_redis_feed_checks[] = {
	[STREAM] = { "redis_stream", "The stream of a consumer is there.",
		     "its first message makes it; until then the consumer waits" },
	[CLAIM_IDLE] = { "redis_claim_idle",
			 "Entries are taken over from other members of the group only after the "
			 "longest time that a handler may take.",
			 "raise claim_idle of the source, or shorten the handler's timeout" },
	OB_CHECK_END,
};

static void judge_claims(const struct redis_feed *feed, int64_t handler_ms, struct ob_findings *out)
{
	const struct ob_check *check = &ob_redis_feed_checks[CLAIM_IDLE];

	if (feed->base.sole)
		ob_finding_add(out, check, OB_LEVEL_OK,
			       "one process at a time reads: nothing is taken from one that works");
	else
		ob_finding_add(out, check,
			       handler_ms >= feed->claim_idle_ms ? OB_LEVEL_WARNING : OB_LEVEL_OK,
			       "a handler may take %lld ms, and entries are taken over after %lld "
			       "ms%s",
			       (long long)handler_ms, (long long)feed->claim_idle_ms,
			       handler_ms >= feed->claim_idle_ms
				       ? ": two processes would handle the same message"
				       : "");
}

int ob_redis_feed_probe(struct ob_feed *base, int64_t handler_ms, struct ob_findings *out,
			struct ob_err *err)
{
	struct redis_feed *feed = (struct redis_feed *)base;
	const char *words[] = { "TYPE", feed->stream };
	redisReply *reply = NULL;
	int r = ob_sink_open(base->link, err);

	if (r == 0)
		r = ob_redis_feed_ask(feed, words, 2, &reply, err);
	if (r < 0)
		return r;
	struct ob_str type = ob_redis_text(reply);
	if (ob_str_eq(type, OB_STR("stream")))
		ob_finding_add(out, &ob_redis_feed_checks[STREAM], OB_LEVEL_OK,
			       "stream %.200s is there", feed->stream);
	else if (ob_str_eq(type, OB_STR("none")))
		ob_finding_add(out, &ob_redis_feed_checks[STREAM], OB_LEVEL_WARNING,
			       "stream %.200s is not there", feed->stream);
	else
		ob_finding_add(out, &ob_redis_feed_checks[STREAM], OB_LEVEL_ERROR,
			       "key %.200s is a %.*s, no stream", feed->stream,
			       (int)(type.n > 20 ? 20 : type.n), type.p);
	freeReplyObject(reply);
	judge_claims(feed, handler_ms, out);
	return 0;
}
