/* SPDX-License-Identifier: MIT */
/* What the topics of a Kafka cluster keep, and whether the destinations can take messages. */
#include "base/cleanup.h"
#include "sink/kafka/kafka.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DESTINATION, LEADER, COPIES, LIMITS };

const struct ob_check ob_kafka_checks[] = {
	[DESTINATION] = { "kafka_destination", "A constant destination is a topic that is there.",
			  "make the topic, or correct the destination in the route" },
	[LEADER] = { "kafka_leader", "Every partition of a topic has a leader.",
		     "start the brokers that hold it: messages to it wait until then" },
	[COPIES] = { "kafka_copies",
		     "A topic keeps several copies, and a write is acknowledged by at least two: "
		     "replication factor, min.insync.replicas.",
		     "use a replication factor of 3 and min.insync.replicas 2" },
	[LIMITS] = { "kafka_limits",
		     "A topic takes messages as large as the sink sends: max.message.bytes.",
		     "raise max.message.bytes of the topic, or lower max_message_size of the "
		     "sink" },
	OB_CHECK_END,
};

/* ---- judging --------------------------------------------------------- */

static void judge_copies(const struct ob_kafka_topic_health *t, struct ob_findings *out)
{
	const struct ob_check *check = &ob_kafka_checks[COPIES];

	if (t->copies == 1)
		ob_finding_add(out, check, OB_LEVEL_WARNING,
			       "topic %s has one copy: what was acknowledged is gone with its "
			       "broker's disk",
			       t->name);
	else if (t->min_insync == 1)
		ob_finding_add(out, check, OB_LEVEL_WARNING,
			       "topic %s has %d copies, but min.insync.replicas is 1: while the "
			       "others are away one copy is acknowledged",
			       t->name, t->copies);
	else if (t->in_sync < t->copies)
		ob_finding_add(out, check, OB_LEVEL_WARNING,
			       "topic %s has %d copies, of which %d are up to date", t->name,
			       t->copies, t->in_sync);
	else
		ob_finding_add(out, check, OB_LEVEL_OK, "topic %s has %d copies, all up to date",
			       t->name, t->copies);
}

void ob_kafka_judge(const struct ob_kafka_topic_health *t, int64_t max_message_size,
		    struct ob_findings *out)
{
	if (t->partitions == 0) {
		ob_finding_add(
			out, &ob_kafka_checks[DESTINATION], OB_LEVEL_WARNING,
			"topic %s is not there: messages to it wait, unless the brokers make "
			"topics by themselves",
			t->name);
		return;
	}
	ob_finding_add(out, &ob_kafka_checks[DESTINATION], OB_LEVEL_OK,
		       "topic %s has %d partition(s)", t->name, t->partitions);
	if (t->leaderless > 0)
		ob_finding_add(out, &ob_kafka_checks[LEADER], OB_LEVEL_ERROR,
			       "%d of %d partitions of topic %s have no leader", t->leaderless,
			       t->partitions, t->name);
	judge_copies(t, out);
	if (t->max_bytes > 0 && t->max_bytes < max_message_size)
		ob_finding_add(out, &ob_kafka_checks[LIMITS], OB_LEVEL_WARNING,
			       "topic %s takes messages of at most %" PRId64
			       " bytes, the sink sends up to %" PRId64 ": larger ones will be dead",
			       t->name, t->max_bytes, max_message_size);
}

/* ---- asking ---------------------------------------------------------- */

static void read_topic(const struct rd_kafka_metadata_topic *from, struct ob_kafka_topic_health *t)
{
	t->partitions = from->partition_cnt;
	t->copies = t->in_sync = from->partition_cnt > 0 ? INT32_MAX : 0;
	for (int i = 0; i < from->partition_cnt; i++) {
		const struct rd_kafka_metadata_partition *p = &from->partitions[i];

		t->leaderless += p->leader < 0;
		if (p->replica_cnt < t->copies)
			t->copies = p->replica_cnt;
		if (p->isr_cnt < t->in_sync)
			t->in_sync = p->isr_cnt;
	}
}

static void read_config(const rd_kafka_ConfigResource_t *resource, struct ob_kafka_topic_health *t)
{
	size_t count = 0;
	const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &count);

	for (size_t i = 0; i < count; i++) {
		const char *name = rd_kafka_ConfigEntry_name(entries[i]);
		const char *value = rd_kafka_ConfigEntry_value(entries[i]);

		if (value && strcmp(name, "min.insync.replicas") == 0)
			t->min_insync = (int)strtol(value, NULL, 10);
		if (value && strcmp(name, "max.message.bytes") == 0)
			t->max_bytes = strtoll(value, NULL, 10);
	}
}

/* Many users may not ask for it, and not every broker knows the question: then it is unknown. */
static void ask_config(const struct kafka_sink *sink, struct ob_kafka_topic_health *t)
{
	rd_kafka_ConfigResource_t *resource =
		rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, t->name);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(sink->rk);
	rd_kafka_AdminOptions_t *options =
		rd_kafka_AdminOptions_new(sink->rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
	int timeout_ms = (int)sink->connect_timeout_ms;
	char text[256];

	if (resource && queue && options &&
	    rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, text, sizeof(text)) ==
		    RD_KAFKA_RESP_ERR_NO_ERROR) {
		rd_kafka_DescribeConfigs(sink->rk, &resource, 1, options, queue);
		rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms);
		const rd_kafka_DescribeConfigs_result_t *result =
			event ? rd_kafka_event_DescribeConfigs_result(event) : NULL;
		size_t count = 0;
		const rd_kafka_ConfigResource_t **found =
			result ? rd_kafka_DescribeConfigs_result_resources(result, &count) : NULL;

		if (found && count == 1 &&
		    rd_kafka_ConfigResource_error(found[0]) == RD_KAFKA_RESP_ERR_NO_ERROR)
			read_config(found[0], t);
		if (event)
			rd_kafka_event_destroy(event);
	}
	if (options)
		rd_kafka_AdminOptions_destroy(options);
	if (queue)
		rd_kafka_queue_destroy(queue);
	if (resource)
		rd_kafka_ConfigResource_destroy(resource);
}

static void probe_topic(const struct kafka_sink *sink, const struct rd_kafka_metadata *all,
			struct ob_str name, struct ob_findings *out)
{
	struct ob_kafka_topic_health t = { .min_insync = 0 };

	if (name.n == 0 || name.n > OB_KAFKA_TOPIC_MAX || memchr(name.p, '\0', name.n))
		return;
	(void)snprintf(t.name, sizeof(t.name), "%.*s", (int)name.n, name.p);
	for (int i = 0; i < all->topic_cnt; i++) {
		if (strcmp(all->topics[i].topic, t.name) == 0 && !all->topics[i].err)
			read_topic(&all->topics[i], &t);
	}
	if (t.partitions > 0)
		ask_config(sink, &t);
	ob_kafka_judge(&t, sink->max_message_size, out);
}

/* All topics are asked for: to ask for one by its name may make it. */
int ob_kafka_probe(struct ob_sink *base, const struct ob_str *destinations, size_t count,
		   struct ob_findings *out, struct ob_err *err)
{
	struct kafka_sink *sink = (struct kafka_sink *)base;
	const struct rd_kafka_metadata *all = NULL;
	rd_kafka_resp_err_t code =
		rd_kafka_metadata(sink->rk, 1, NULL, &all, (int)sink->connect_timeout_ms);
	bool ignored;

	if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
		return ob_kafka_error(code, NULL, &ignored, err);
	for (size_t i = 0; i < count; i++)
		probe_topic(sink, all, destinations[i], out);
	rd_kafka_metadata_destroy(all);
	return 0;
}
