/* SPDX-License-Identifier: MIT */
/*
 * Making and ending producers. The order of a key rests on four settings together: idempotence,
 * one request at a time for each broker, no timeout inside the library, and gapless: when a broker
 * refuses a batch, the producer is over. guard.c sees to it that this holds at once.
 */
#include "sink/kafka/kafka.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How long a broker may take to come back while all are known to be away. */
enum { GRACE_US = 1000000, LOOK_MS = 20 };
/* Limits of the library's properties. */
enum { SETUP_MIN_MS = 1000, API_MAX_MS = 300000, ANSWER_MAX_MS = 300000 };

static const struct setting {
	const char *name, *value;
} defaults[] = {
	/* what properties may change */
	{ "client.id", "outbox" },
	{ "partitioner", "murmur2_random" }, /* as the Java client does it */
	{ "linger.ms", "1" },
	{ "socket.keepalive.enable", "true" },
	{ "socket.nagle.disable", "true" },
	{ "reconnect.backoff.max.ms", "500" },
	{ "topic.metadata.propagation.max.ms", "10000" }, /* then a topic does not exist */
}, fixed[] = {
	/* and what they may not */
	{ "enable.idempotence", "true" },
	{ "enable.gapless.guarantee", "true" },
	{ "max.in.flight.requests.per.connection", "1" },
	{ "acks", "all" },
	{ "message.timeout.ms", "0" },
};

/* ---- configuration --------------------------------------------------- */

/* The library's log goes nowhere: what matters comes as events. */
static void silent(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk, (void)level, (void)facility, (void)text;
}

static int set(rd_kafka_conf_t *conf, const char *name, const char *value, struct ob_err *err)
{
	char why[256];

	if (rd_kafka_conf_set(conf, name, value, why, sizeof(why)) == RD_KAFKA_CONF_OK)
		return 0;
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "kafka: %s", why);
}

static int set_all(rd_kafka_conf_t *conf, const struct setting *settings, size_t count,
		   struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++)
		r = set(conf, settings[i].name, settings[i].value, err);
	return r;
}

static int set_number(rd_kafka_conf_t *conf, const char *name, int64_t value, struct ob_err *err)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	return set(conf, name, text, err);
}

/* A connection that is silent is given up in our time: the library's own is a minute. */
static int set_patience(const struct kafka_sink *sink, rd_kafka_conf_t *conf, struct ob_err *err)
{
	int64_t setup =
		sink->connect_timeout_ms > SETUP_MIN_MS ? sink->connect_timeout_ms : SETUP_MIN_MS;
	int64_t answer = sink->timeout_ms > setup ? sink->timeout_ms : setup;
	int r = set_number(conf, "socket.connection.setup.timeout.ms", setup, err);

	if (r == 0)
		r = set_number(conf, "api.version.request.timeout.ms",
			       setup < API_MAX_MS ? setup : API_MAX_MS, err);
	if (r == 0)
		r = set_number(conf, "socket.timeout.ms",
			       answer < ANSWER_MAX_MS ? answer : ANSWER_MAX_MS, err);
	return r;
}

static int configure(const struct kafka_sink *sink, rd_kafka_conf_t *conf, struct ob_err *err)
{
	int r = set_all(conf, defaults, sizeof(defaults) / sizeof(defaults[0]), err);

	if (r == 0)
		r = set_patience(sink, conf, err);
	if (r == 0)
		r = ob_kafka_properties(sink->properties, conf, err);
	if (r == 0)
		r = set_all(conf, fixed, sizeof(fixed) / sizeof(fixed[0]), err);
	if (r == 0)
		r = set(conf, "bootstrap.servers", sink->brokers, err);
	if (r == 0)
		r = set_number(conf, "message.max.bytes", sink->max_message_size, err);
	if (r == 0)
		r = set_number(conf, "queue.buffering.max.messages", sink->window, err);
	rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
	rd_kafka_conf_set_log_cb(conf, silent);
	return r;
}

int ob_kafka_prepare(struct kafka_sink *sink, struct ob_err *err)
{
	if (sink->conf)
		return 0;

	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	int r = configure(sink, conf, err);

	if (r < 0) {
		rd_kafka_conf_destroy(conf);
		return r;
	}
	sink->conf = conf;
	return 0;
}

/* ---- a producer ------------------------------------------------------ */

static int make(struct kafka_sink *sink, struct ob_err *err)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_dup(sink->conf);
	char why[300] = "";
	int r = 0;

	/* A copy of a configuration has no guard. */
	if (!ob_kafka_guard(conf))
		r = ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "allocating for kafka");
	if (r == 0 && sink->batch_max > 0)
		r = set_number(conf, "batch.num.messages", sink->batch_max, err);
	if (r == 0) {
		sink->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
		if (sink->rk)
			return 0;
		bool scarce = rd_kafka_last_error() == RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
		r = ob_err_set(err, scarce ? OUTBOX_ENOMEM : OUTBOX_ECONFIG,
			       scarce ? OB_ERR_DOWN : OB_ERR_FATAL, "kafka: %s", why);
	}
	rd_kafka_conf_destroy(conf);
	return r;
}

int ob_kafka_start(struct kafka_sink *sink, struct ob_err *err)
{
	static const uint64_t one = 1;
	int r;

	if (sink->rk)
		return 0;
	sink->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (sink->wake_fd < 0)
		return ob_err_errno(err, OUTBOX_ESINK, OB_ERR_DOWN, "making an event fd for kafka");
	r = make(sink, err);
	if (r < 0) {
		(void)close(sink->wake_fd);
		return r;
	}
	sink->spent = sink->doubt = sink->all_down = false;
	sink->trouble = OB_ERR_INIT;
	sink->queue = rd_kafka_queue_get_main(sink->rk);
	rd_kafka_queue_io_event_enable(sink->queue, sink->wake_fd, &one, sizeof(one));
	return 0;
}

void ob_kafka_stop(struct kafka_sink *sink)
{
	if (!sink->rk)
		return;
	rd_kafka_queue_io_event_enable(sink->queue, -1, NULL, 0);
	(void)rd_kafka_purge(sink->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
					       RD_KAFKA_PURGE_F_NON_BLOCKING);
	rd_kafka_queue_destroy(sink->queue);
	if (sink->topic)
		rd_kafka_topic_destroy(sink->topic);
	sink->topic = NULL;
	/* Waits for its threads: afterwards nobody reads a body any more. */
	rd_kafka_destroy(sink->rk);
	(void)close(sink->wake_fd);
	sink->rk = NULL;
	sink->ready = false;
}

/* ---- connecting ------------------------------------------------------ */

static bool has_answered(rd_kafka_t *rk)
{
	char *id = rd_kafka_clusterid(rk, LOOK_MS);

	if (id)
		rd_kafka_mem_free(rk, id);
	return id != NULL;
}

static int no_answer(struct kafka_sink *sink, struct ob_err *err)
{
	if (sink->trouble.kind != OB_ERR_NONE) {
		*err = sink->trouble;
		err->kind = OB_ERR_DOWN;
		return err->status;
	}
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
			  "no broker of %.200s answers within %lld ms", sink->brokers,
			  (long long)sink->connect_timeout_ms);
}

/*
 * A producer that gets no answer is kept: it goes on trying, and to end one that waits
 * for a name server can take long.
 */
int ob_kafka_connect(struct kafka_sink *sink, struct ob_err *err)
{
	int r = ob_kafka_start(sink, err);
	int64_t end = ob_clock_boot_us(sink->base.clock) + sink->connect_timeout_ms * 1000;
	bool was_down = false;

	while (r == 0 && !sink->ready) {
		sink->ready = has_answered(sink->rk);
		ob_kafka_listen(sink);
		int64_t now = ob_clock_boot_us(sink->base.clock);

		if (sink->all_down && !was_down && end > now + GRACE_US)
			end = now + GRACE_US;
		was_down = sink->all_down;
		if (sink->doubt) {
			r = no_answer(sink, err);
			ob_kafka_stop(sink);
		} else if (!sink->ready && now >= end) {
			r = no_answer(sink, err);
		}
	}
	return r;
}
