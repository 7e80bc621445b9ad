/* SPDX-License-Identifier: MIT */
/* What a topic and the limits of its group mean for a handler. */
#include "feed/kafka/kafka.h"

enum { TOPIC, MAX_POLL };

const struct ob_check ob_kafka_feed_checks[] = {
	[TOPIC] = { "kafka_topic", "The topic of a consumer is there.",
		    "create it; the consumer waits for it" },
	[MAX_POLL] = { "kafka_max_poll",
		       "max.poll.interval.ms (max_poll) is longer than a handler may take. Polling "
		       "goes on while a handler works; what is kept from it by a database that "
		       "does not answer has that much time.",
		       "raise max_poll of the source, or shorten the handler's timeout" },
	OB_CHECK_END,
};

static void judge_topic(const struct kafka_feed *feed, const rd_kafka_metadata_t *data,
			struct ob_findings *out)
{
	int partitions = data->topic_cnt == 1 ? data->topics[0].partition_cnt : 0;

	if (partitions > 0)
		ob_finding_add(out, &ob_kafka_feed_checks[TOPIC], OB_LEVEL_OK,
			       "topic %.249s has %d partition(s)", feed->topic, partitions);
	else
		ob_finding_add(out, &ob_kafka_feed_checks[TOPIC], OB_LEVEL_WARNING,
			       "topic %.249s is not there", feed->topic);
}

int ob_kafka_feed_probe(struct ob_feed *base, int64_t handler_ms, struct ob_findings *out,
			struct ob_err *err)
{
	struct kafka_feed *feed = (struct kafka_feed *)base;
	const struct rd_kafka_metadata *data = NULL;
	int64_t timeout_ms = ((const struct kafka_sink *)base->link)->connect_timeout_ms;
	bool late = handler_ms >= feed->max_poll_ms;
	/* Not subscribed: no member of the group. */
	int r = ob_kafka_feed_connect(feed, err);

	if (r < 0)
		return r;
	rd_kafka_topic_t *topic = rd_kafka_topic_new(feed->rk, feed->topic, NULL);
	rd_kafka_resp_err_t code =
		topic ? rd_kafka_metadata(feed->rk, 0, topic, &data, (int)timeout_ms)
		      : rd_kafka_last_error();
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
		judge_topic(feed, data, out);
		rd_kafka_metadata_destroy(data);
	}
	if (topic)
		rd_kafka_topic_destroy(topic);
	if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
		(void)ob_kafka_error(code, NULL, NULL, err);
		err->kind = OB_ERR_DOWN;
		return err->status;
	}
	ob_finding_add(out, &ob_kafka_feed_checks[MAX_POLL], late ? OB_LEVEL_WARNING : OB_LEVEL_OK,
		       "a handler may take %lld ms; a process that does not poll for %lld ms loses "
		       "its partitions",
		       (long long)handler_ms, (long long)feed->max_poll_ms);
	return 0;
}
