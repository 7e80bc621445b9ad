/* SPDX-License-Identifier: MIT */
/* What the files of the Kafka sink share. */
#ifndef OB_SINK_KAFKA_H
#define OB_SINK_KAFKA_H

#include "sink/lanes.h"

#include <librdkafka/rdkafka.h>

enum {
	OB_KAFKA_TOPIC_MAX = 249, /* bytes of a topic's name, by Kafka's rules */
	OB_KAFKA_RUN = 1024,      /* most messages of one key under way */
};

/* Flags of a lane's item. */
enum {
	OB_KAFKA_ANSWERED = 1 << 0,
	OB_KAFKA_SUSPECT = 1 << 1, /* was in a batch that the broker refused because of one of it */
};

/* The first messages of a lane, handed to the producer; one for each lane, by its index. */
struct ob_kafka_run {
	struct ob_lane *lane; /* NULL: not under way */
	uint32_t waiting;     /* answers that are missing */
	int64_t since_us;
	struct ob_kafka_run *prev, *next; /* of those under way, oldest first */
};

struct kafka_sink {
	struct ob_sink base;
	/* options */
	char *brokers, *properties;
	int64_t connect_timeout_ms, timeout_ms, max_message_size;
	uint32_t window;

	struct ob_lanes lanes;
	struct ob_kafka_run *runs, *oldest, *newest;
	uint32_t out; /* messages that the producer has */

	rd_kafka_conf_t *conf;   /* what every producer is made from; NULL: not prepared */
	rd_kafka_t *rk;          /* NULL: none */
	rd_kafka_queue_t *queue; /* its events */
	rd_kafka_topic_t *topic; /* the last one written to; NULL: none */
	int wake_fd;             /* readable when the queue may hold some */
	bool ready;              /* a broker has answered */
	bool spent;              /* has refused a message: no more goes through this producer */
	bool doubt;         /* nobody knows what became of its messages, because of `trouble` */
	bool all_down;      /* it has seen all brokers away */
	uint32_t suspects;  /* messages in the window that are suspect */
	uint32_t batch_max; /* of this producer; 0: as configured */
	uint32_t next_batch_max; /* of the next one */
	struct ob_err trouble;   /* the last thing that the producer said of the brokers */
};

/* ---- properties.c ----------------------------------------------------- */

/*
 * Lines of name=value into `conf`; empty lines and those with # are passed over. OUTBOX_ECONFIG
 * names the line, and never a value.
 */
int ob_kafka_properties(const char *text, rd_kafka_conf_t *conf, struct ob_err *err);

/* ---- record.c --------------------------------------------------------- */

/* May it be sent at all: a usable topic, not too large? A REJECT says why not. */
int ob_kafka_check(const struct kafka_sink *sink, const struct ob_delivery *delivery,
		   struct ob_err *err);
/* Hand it to the producer, the item as what its answer comes back with. */
rd_kafka_resp_err_t ob_kafka_produce(struct kafka_sink *sink, struct ob_lane_item *item);

/* ---- error.c ---------------------------------------------------------- */

/*
 * The one place that knows what librdkafka's codes mean; returns err->status. `text` may be NULL.
 * *ret_one: it is about one message, and all that were in its batch have it.
 */
int ob_kafka_error(rd_kafka_resp_err_t code, const char *text, bool *ret_one, struct ob_err *err);
/* It was not sent because something else went wrong. */
bool ob_kafka_is_unsent(rd_kafka_resp_err_t code);

/* ---- guard.c ---------------------------------------------------------- */

/* Of a producer made from `conf`, nothing is sent behind a refusal. False: no memory. */
bool ob_kafka_guard(rd_kafka_conf_t *conf);

/* ---- producer.c ------------------------------------------------------- */

/* The configuration from the options, checked as far as that goes without a broker. */
int ob_kafka_prepare(struct kafka_sink *sink, struct ob_err *err);
/* A producer, when there is none. */
int ob_kafka_start(struct kafka_sink *sink, struct ob_err *err);
/* The same, and wait until a broker has answered. */
int ob_kafka_connect(struct kafka_sink *sink, struct ob_err *err);
/* End the producer with everything it has; it touches no message afterwards. */
void ob_kafka_stop(struct kafka_sink *sink);

/* ---- probe.c ---------------------------------------------------------- */

/* A topic as the cluster has it; 0: not known. */
struct ob_kafka_topic_health {
	char name[OB_KAFKA_TOPIC_MAX + 1];
	int partitions;      /* 0: there is no such topic */
	int leaderless;      /* of them */
	int copies, in_sync; /* of the partition that has the fewest */
	int min_insync;
	int64_t max_bytes;
};

extern const struct ob_check ob_kafka_checks[];
void ob_kafka_judge(const struct ob_kafka_topic_health *topic, int64_t max_message_size,
		    struct ob_findings *out);
ob_sink_probe_fn ob_kafka_probe;

/* ---- answer.c --------------------------------------------------------- */

/* Take in what the producer has to say. */
void ob_kafka_listen(struct kafka_sink *sink);
/* The same, with all that follows from it; and put on its way what is ready. */
void ob_kafka_turn(struct kafka_sink *sink);
/* When the oldest message counts as lost; INT64_MAX: none is under way. */
int64_t ob_kafka_deadline(const struct kafka_sink *sink);
/* The producer is over, and not all of its messages have come back. */
bool ob_kafka_is_ending(const struct kafka_sink *sink);
/* Nothing is under way. */
void ob_kafka_forget(struct kafka_sink *sink);

#endif
