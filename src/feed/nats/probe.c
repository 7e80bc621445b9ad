/* SPDX-License-Identifier: MIT */
/* What the limits of a durable consumer mean; one that is not there is made with good ones. */
#include "feed/nats/nats.h"

#include <inttypes.h>

enum { STREAM, ACKS, ACK_WAIT, ACK_PENDING, MAX_DELIVER };

const struct ob_check ob_nats_feed_checks[] = {
	[STREAM] = { "nats_stream", "The stream of a consumer is there.",
		     "add it; the consumer waits for it" },
	[ACKS] = { "nats_ack_policy", "The durable consumer has explicit acknowledgements.",
		   "remove the durable consumer, or name another: the ack policy cannot change" },
	[ACK_WAIT] = { "nats_ack_wait",
		       "While a handler works, messages are kept in progress before ack_wait ends.",
		       "raise ack_wait of the durable consumer to 30 s or more" },
	[ACK_PENDING] = { "nats_max_ack_pending",
			  "The durable consumer hands out enough messages at a time.",
			  "raise max_ack_pending of the durable consumer" },
	[MAX_DELIVER] = { "nats_max_deliver",
			  "The durable consumer hands a message out until it is acknowledged.",
			  "set max_deliver of the durable consumer to -1: what fails is parked" },
	OB_CHECK_END,
};

/* The consumer says every 5 s that it is at work; one of these may be late. */
enum { TOUCH_MS = 5000, PENDING_FEW = 100 };

static void judge(const jsConsumerConfig *conf, int64_t handler_ms, struct ob_findings *out)
{
	int64_t wait_ms = conf->AckWait / 1000000;
	bool explicit = conf->AckPolicy == js_AckExplicit;
	bool slow = wait_ms < INT64_C(2) * TOUCH_MS && handler_ms >= wait_ms;
	bool few = conf->MaxAckPending > 0 && conf->MaxAckPending < PENDING_FEW;

	ob_finding_add(out, &ob_nats_feed_checks[ACKS], explicit ? OB_LEVEL_OK : OB_LEVEL_ERROR,
		       explicit
			       ? "each message has its acknowledgement"
			       : "messages count as done when they, or later ones, are handed out");
	ob_finding_add(out, &ob_nats_feed_checks[ACK_WAIT], slow ? OB_LEVEL_WARNING : OB_LEVEL_OK,
		       "a handler may take %" PRId64
		       " ms, messages are kept in progress every %d "
		       "ms, ack_wait is %" PRId64 " ms%s",
		       handler_ms, TOUCH_MS, wait_ms, slow ? ": they may be handed out twice" : "");
	ob_finding_add(out, &ob_nats_feed_checks[ACK_PENDING], few ? OB_LEVEL_WARNING : OB_LEVEL_OK,
		       conf->MaxAckPending > 0 ? "up to %" PRId64 " messages are in hand"
					       : "messages in hand have no limit (%" PRId64 ")",
		       conf->MaxAckPending);
	if (conf->MaxDeliver > 0)
		ob_finding_add(out, &ob_nats_feed_checks[MAX_DELIVER], OB_LEVEL_WARNING,
			       "a message is given up after %" PRId64
			       " deliveries, and nobody is "
			       "told: a consumer that is killed that often loses it",
			       conf->MaxDeliver);
	else
		ob_finding_add(out, &ob_nats_feed_checks[MAX_DELIVER], OB_LEVEL_OK,
			       "a message is handed out until it is acknowledged");
}

int ob_nats_feed_probe(struct ob_feed *base, int64_t handler_ms, struct ob_findings *out,
		       struct ob_err *err)
{
	struct nats_feed *feed = (struct nats_feed *)base;
	jsConsumerInfo *info = NULL;
	jsErrCode code = 0;
	int r = ob_nats_feed_connect(feed, err);

	if (r < 0)
		return r;
	natsStatus s = js_GetConsumerInfo(&info, feed->js, feed->stream, ob_nats_durable(feed),
					  NULL, &code);
	bool missing = code == JSStreamNotFoundErr, unmade = code == JSConsumerNotFoundErr;
	if (s != NATS_OK && !missing && !unmade)
		return ob_nats_feed_failed(feed, s, "asking for the consumer", err);
	ob_finding_add(out, &ob_nats_feed_checks[STREAM], missing ? OB_LEVEL_WARNING : OB_LEVEL_OK,
		       "stream %.200s is %s", feed->stream, missing ? "not there" : "there");
	if (s == NATS_OK)
		judge(info->Config, handler_ms, out);
	jsConsumerInfo_Destroy(info);
	return 0;
}
