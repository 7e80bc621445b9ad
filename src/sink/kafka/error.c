/* SPDX-License-Identifier: MIT */
/* What librdkafka's errors mean for us. */
#include "base/utf8.h"
#include "sink/kafka/kafka.h"

struct rule {
	rd_kafka_resp_err_t code;
	enum ob_err_kind kind;
	bool one; /* about one message, told to all of its batch */
	const char *hint;
};

/* What is about the cluster or about our rights there is DOWN: never dead. */
static const struct rule rules[] = {
	{ RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, OB_ERR_REJECT, true,
	  "larger than max.message.bytes of the topic" },
	{ RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, OB_ERR_REJECT, true, NULL },
	{ RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, OB_ERR_REJECT, true,
	  "larger than segment.bytes of the topic" },
	{ RD_KAFKA_RESP_ERR_INVALID_RECORD, OB_ERR_REJECT, true,
	  "the topic does not take such records; a compacted one needs a key" },
	{ RD_KAFKA_RESP_ERR_INVALID_MSG, OB_ERR_RETRY, true, NULL },
	{ RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, OB_ERR_REJECT, false,
	  "check the destination of the route" },
	/* About one topic, not about all. */
	{ RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, OB_ERR_RETRY, false, "create the topic" },
	{ RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, OB_ERR_RETRY, false, "create the topic" },
	{ RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, OB_ERR_RETRY, false, "create the topic" },
	{ RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, OB_ERR_RETRY, false,
	  "allow this user to write the topic" },
	{ RD_KAFKA_RESP_ERR_POLICY_VIOLATION, OB_ERR_RETRY, false, NULL },
	{ RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, OB_ERR_DOWN, false,
	  "compare the clocks of this machine and of the broker" },
	{ RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, OB_ERR_DOWN, false,
	  "allow this user IdempotentWrite on the cluster" },
	{ RD_KAFKA_RESP_ERR__AUTHENTICATION, OB_ERR_DOWN, false,
	  "check the sasl.* and security.protocol properties" },
	{ RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, OB_ERR_DOWN, false,
	  "check sasl.username and sasl.password" },
	{ RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM, OB_ERR_DOWN, false,
	  "check sasl.mechanism" },
	{ RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE, OB_ERR_DOWN, false, "check security.protocol" },
	{ RD_KAFKA_RESP_ERR__SSL, OB_ERR_DOWN, false, "check the ssl.* properties" },
	{ RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, OB_ERR_DOWN, false, "needs Kafka 0.11 or later" },
	{ RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, OB_ERR_DOWN, false,
	  "needs Kafka 0.11 or later, with its message format" },
	{ RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE, OB_ERR_DOWN, false, "needs Kafka 0.11 or later" },
	/* Doubt about the order of what was stored: all comes again through a new producer. */
	{ RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, OB_ERR_DOWN, false, NULL },
	{ RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER, OB_ERR_DOWN, false, NULL },
	{ RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, OB_ERR_DOWN, false, NULL },
	{ RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, OB_ERR_DOWN, false, NULL },
	{ RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING, OB_ERR_DOWN, false, NULL },
	{ RD_KAFKA_RESP_ERR_PRODUCER_FENCED, OB_ERR_DOWN, false, NULL },
	/* Retried inside the library; for completeness. */
	{ RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, OB_ERR_DOWN, false, NULL },
	{ RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, OB_ERR_DOWN, false, NULL },
	{ RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, OB_ERR_DOWN, false, NULL },
	{ RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, OB_ERR_DOWN, false, NULL },
	{ RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, OB_ERR_DOWN, false, NULL },
	{ RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, OB_ERR_DOWN, false, NULL },
	{ RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, OB_ERR_DOWN, false, NULL },
	{ RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, OB_ERR_DOWN, false, NULL },
};

bool ob_kafka_is_unsent(rd_kafka_resp_err_t code)
{
	return code == RD_KAFKA_RESP_ERR__PURGE_QUEUE || code == RD_KAFKA_RESP_ERR__FATAL ||
	       code == RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE;
}

int ob_kafka_error(rd_kafka_resp_err_t code, const char *text, bool *ret_one, struct ob_err *err)
{
	struct ob_buf line = OB_BUF_INIT(1200);
	/* What the library finds out by itself is about the way there; a broker's word we do not
	 * know may be about the message. */
	struct rule rule = { code, code < 0 ? OB_ERR_DOWN : OB_ERR_RETRY, false, NULL };

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (rules[i].code == code)
			rule = rules[i];
	}
	ob_utf8_sanitize(&line, ob_str(text ? text : rd_kafka_err2str(code)), 300);
	(void)ob_err_set(err, OUTBOX_ESINK, rule.kind, "kafka: %s%s%s%s", ob_buf_str(&line),
			 rule.hint ? " (" : "", rule.hint ? rule.hint : "", rule.hint ? ")" : "");
	(void)snprintf(err->native, sizeof(err->native), "%d", (int)code);
	ob_buf_done(&line);
	if (ret_one)
		*ret_one = rule.one;
	return err->status;
}
