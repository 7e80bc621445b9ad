/* SPDX-License-Identifier: MIT */
/* What the files of the Kafka feed share. */
#ifndef OB_FEED_KAFKA_H
#define OB_FEED_KAFKA_H

#include "feed/feed.h"
#include "sink/kafka/kafka.h"

/* An entry that was handed out. */
struct ob_kafka_handed {
	int64_t offset;
	bool done;
};

struct ob_kafka_part {
	int32_t number;
	bool ours;
	int64_t commit;                 /* what the group has; -1: unknown */
	int64_t from;                   /* with positions: go on here; -1: where the group is */
	struct ob_kafka_handed *handed; /* ascending */
	size_t first, count, room;
};

struct kafka_feed {
	struct ob_feed base;
	char *topic, *group;
	int start;
	int64_t max_poll_ms, session_ms;

	rd_kafka_t *rk;
	struct ob_kafka_part *parts;
	size_t part_count;
	bool subscribed, paused, by_place, moved;
	struct ob_err trouble; /* the last thing that the library said of the brokers */
};

/* Make feed->rk, which connects in the background; it is no member of the group before it has
 * subscribed. */
int ob_kafka_feed_connect(struct kafka_feed *feed, struct ob_err *err);

/* ---- probe.c ---------------------------------------------------------- */

extern const struct ob_check ob_kafka_feed_checks[];
ob_feed_probe_fn ob_kafka_feed_probe;

#endif
