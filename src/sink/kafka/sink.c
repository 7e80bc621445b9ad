/* SPDX-License-Identifier: MIT */
/*
 * Kafka: records to the topic that the destination names, through an idempotent producer. A
 * message counts when the leader and all replicas in sync have it (acks=all).
 *
 * Order: a producer has one request under way with each broker and ends at the first message that
 * is refused, so nothing behind it is stored. Of one key there is one run of messages under
 * way, to one partition; others of the key wait for its end.
 *
 * Without an acknowledgement in time, or after an error that leaves the fate of messages
 * open, the producer is given up and everything unconfirmed fails as DOWN: it comes again
 * in order, through a new producer, perhaps as a second copy.
 */
#include "sink/kafka/kafka.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>

enum { ENDING_LOOK_US = 50000 };

static int kafka_check(struct ob_sink *base, struct ob_err *err)
{
	return ob_kafka_prepare((struct kafka_sink *)base, err);
}

static int kafka_open(struct ob_sink *base, struct ob_err *err)
{
	struct kafka_sink *sink = (struct kafka_sink *)base;
	int r = ob_kafka_prepare(sink, err);

	if (r == 0)
		r = ob_lanes_init(&sink->lanes, sink->window, err);
	if (r == 0 && !sink->runs) {
		sink->runs = calloc((size_t)sink->lanes.mask + 1, sizeof(*sink->runs));
		if (!sink->runs)
			r = ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "allocating for kafka");
	}
	return r < 0 ? r : ob_kafka_connect(sink, err);
}

static int kafka_send(struct ob_sink *base, const struct ob_delivery *delivery, struct ob_err *err)
{
	struct kafka_sink *sink = (struct kafka_sink *)base;

	if (!sink->ready)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "kafka is not connected");
	int r = ob_kafka_check(sink, delivery, err);
	return r < 0 ? r : ob_lanes_add(&sink->lanes, delivery);
}

/* ---- polling --------------------------------------------------------- */

static bool is_over(const struct kafka_sink *sink)
{
	return sink->lanes.done_count > 0 || ob_lanes_waiting(&sink->lanes) == 0;
}

/* Until the producer has something to say, a message is overdue, or time is up. */
static void wait_for_any(const struct kafka_sink *sink, int64_t until_us)
{
	struct pollfd fd = { .fd = sink->wake_fd, .events = POLLIN };
	int64_t deadline = ob_kafka_deadline(sink), now = ob_clock_boot_us(sink->base.clock);

	until_us = deadline < until_us ? deadline : until_us;
	/* Nobody tells when such a producer has put back a message. */
	if (ob_kafka_is_ending(sink) && until_us > now + ENDING_LOOK_US)
		until_us = now + ENDING_LOOK_US;
	int64_t ms = (until_us - now + 999) / 1000;
	(void)poll(&fd, 1, ms <= 0 ? 0 : ms > INT_MAX ? INT_MAX : (int)ms);
}

static int kafka_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
		      struct ob_err *err)
{
	struct kafka_sink *sink = (struct kafka_sink *)base;
	int64_t end = ob_clock_boot_us(base->clock) + timeout_ms * INT64_C(1000);

	(void)err; /* whatever happens has a message to tell it */
	ob_kafka_turn(sink);
	while (!is_over(sink) && ob_clock_boot_us(base->clock) < end) {
		wait_for_any(sink, end);
		ob_kafka_turn(sink);
	}
	return ob_lanes_outcomes(&sink->lanes, acks, max);
}

static void kafka_reset(struct ob_sink *base)
{
	struct kafka_sink *sink = (struct kafka_sink *)base;

	/* What the producer has cannot be taken back from it. */
	if (sink->out > 0 || sink->spent || sink->batch_max > 0)
		ob_kafka_stop(sink);
	ob_kafka_forget(sink);
	ob_lanes_clear(&sink->lanes);
}

static int kafka_fd(struct ob_sink *base)
{
	const struct kafka_sink *sink = (struct kafka_sink *)base;

	return sink->rk ? sink->wake_fd : -1;
}

static void kafka_close(struct ob_sink *base)
{
	struct kafka_sink *sink = (struct kafka_sink *)base;

	ob_kafka_stop(sink);
	if (sink->conf)
		rd_kafka_conf_destroy(sink->conf);
	ob_lanes_done(&sink->lanes);
	free(sink->runs);
}

static void kafka_describe(struct ob_sink *base, struct ob_buf *out)
{
	const struct kafka_sink *sink = (const struct kafka_sink *)base;

	ob_buf_addf(out, "kafka %.*s", (int)strcspn(sink->brokers, "\r\n"), sink->brokers);
}

/* ---- options --------------------------------------------------------- */

static const struct ob_opt kafka_opts[] = {
	{
		.name = "brokers",
		.type = OB_OPT_STR,
		.offset = offsetof(struct kafka_sink, brokers),
		.flags = OB_OPT_REQUIRED,
		.help = "Brokers to begin with: host:port, separated by commas.",
	},
	{
		.name = "properties",
		.type = OB_OPT_STR,
		.offset = offsetof(struct kafka_sink, properties),
		.flags = OB_OPT_SECRET,
		.help = "Properties of librdkafka, name=value, one on a line: TLS, SASL, "
			"compression.",
	},
	{
		.name = "timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct kafka_sink, timeout_ms),
		.dflt = "30s",
		.min = 10,
		.max = 600000,
		.help = "Time for the acknowledgement of a message.",
	},
	{
		.name = "connect_timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct kafka_sink, connect_timeout_ms),
		.dflt = "5s",
		.min = 10,
		.max = 60000,
		.help = "Time for the first answer of a broker.",
	},
	{
		.name = "max_message_size",
		.type = OB_OPT_SIZE,
		.offset = offsetof(struct kafka_sink, max_message_size),
		.dflt = "1000000",
		.min = 1000,
		.max = 100 << 20,
		.help = "Largest message with its headers; brokers and topics have limits of their "
			"own.",
	},
	{
		.name = "window",
		.type = OB_OPT_U32,
		.offset = offsetof(struct kafka_sink, window),
		.dflt = "4096",
		.min = 1,
		.max = 16384,
		.help = "Maximum messages sent and not yet confirmed.",
	},
	OB_OPT_END,
};

const struct ob_sink_ops ob_sink_kafka = {
	.name = "kafka",
	.caps = OB_SINK_ORDERED | OB_SINK_HEADERS,
	.size = sizeof(struct kafka_sink),
	.opts = kafka_opts,
	.ce_prefix = "ce_",
	.checks = ob_kafka_checks,
	.probe = ob_kafka_probe,
	.check = kafka_check,
	.open = kafka_open,
	.send = kafka_send,
	.poll = kafka_poll,
	.reset = kafka_reset,
	.fd = kafka_fd,
	.close = kafka_close,
	.describe = kafka_describe,
};
