/* SPDX-License-Identifier: MIT */
/*
 * Lanes to the producer, and its answers to outcomes.
 *
 * A refused message ends the producer, whatever its error. What was behind it comes back unsent and
 * goes out again through the next one, so only its own key has a failure to report.
 *
 * A broker refuses whole batches. When that is about one message of several, nobody knows
 * which: all of them are suspect and go again in smaller batches, until the one is alone.
 */
#include "sink/kafka/kafka.h"

#include <unistd.h>

/* ---- runs ------------------------------------------------------------ */

static struct ob_kafka_run *run_of(const struct kafka_sink *sink, const struct ob_lane *lane)
{
	return &sink->runs[lane - sink->lanes.lanes];
}

static void begin_run(struct kafka_sink *sink, struct ob_lane *lane, uint32_t count)
{
	struct ob_kafka_run *run = run_of(sink, lane);

	*run = (struct ob_kafka_run){ .lane = lane,
				      .waiting = count,
				      .since_us = ob_clock_boot_us(sink->base.clock),
				      .prev = sink->newest };
	if (sink->newest)
		sink->newest->next = run;
	else
		sink->oldest = run;
	sink->newest = run;
	sink->out += count;
}

static void end_run(struct kafka_sink *sink, struct ob_kafka_run *run)
{
	if (run->prev)
		run->prev->next = run->next;
	else
		sink->oldest = run->next;
	if (run->next)
		run->next->prev = run->prev;
	else
		sink->newest = run->prev;
	run->lane = NULL;
}

void ob_kafka_forget(struct kafka_sink *sink)
{
	sink->oldest = sink->newest = NULL;
	sink->out = sink->suspects = sink->batch_max = sink->next_batch_max = 0;
}

/* ---- sending --------------------------------------------------------- */

/* Only what goes to one partition keeps its order: one topic, one record key. */
static bool goes_along(const struct ob_delivery *a, const struct ob_delivery *b)
{
	return a->key.p && ob_str_eq(a->key, b->key) && ob_str_eq(a->destination, b->destination);
}

/* Produce the first messages of a lane; returns how many, and why not more. */
static uint32_t produce_run(struct kafka_sink *sink, const struct ob_lane *lane,
			    rd_kafka_resp_err_t *ret_code)
{
	struct ob_lane_item *item = lane->head;
	uint32_t n = 0;

	*ret_code = RD_KAFKA_RESP_ERR_NO_ERROR;
	do {
		*ret_code = ob_kafka_produce(sink, item);
		if (*ret_code != RD_KAFKA_RESP_ERR_NO_ERROR)
			break;
		n++;
		item = item->next;
	} while (item && n < OB_KAFKA_RUN && goes_along(&lane->head->delivery, &item->delivery));
	return n;
}

static void unsuspect(struct kafka_sink *sink, const struct ob_lane_item *item)
{
	if (item->flags & OB_KAFKA_SUSPECT)
		sink->suspects--;
}

static void fail_lane(struct kafka_sink *sink, struct ob_lane *lane, const struct ob_err *err)
{
	for (const struct ob_lane_item *item = lane->head; item; item = item->next)
		unsuspect(sink, item);
	ob_lane_failed(&sink->lanes, lane, err);
}

/* The library does not take the lane's first message. False: it takes nothing now. */
static bool refused_at_once(struct kafka_sink *sink, struct ob_lane *lane, rd_kafka_resp_err_t code)
{
	struct ob_err err = OB_ERR_INIT;

	if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL || ob_kafka_is_unsent(code)) {
		sink->spent |= code != RD_KAFKA_RESP_ERR__QUEUE_FULL;
		ob_lanes_untake(&sink->lanes, lane);
		return false;
	}
	(void)ob_kafka_error(code, NULL, NULL, &err);
	if (err.kind == OB_ERR_REJECT) {
		unsuspect(sink, lane->head);
		ob_lane_rejected(&sink->lanes, lane, &err);
	} else {
		fail_lane(sink, lane, &err);
	}
	ob_lane_give_back(&sink->lanes, lane);
	return true;
}

static void fill(struct kafka_sink *sink)
{
	rd_kafka_resp_err_t code;

	/* The last suspect is gone: back to batches of every size. */
	if (sink->batch_max > 0 && sink->suspects == 0)
		sink->spent = true;
	while (sink->rk && !sink->spent) {
		struct ob_lane *lane = ob_lanes_take(&sink->lanes);

		if (!lane)
			return;
		uint32_t count = produce_run(sink, lane, &code);
		if (count > 0)
			begin_run(sink, lane, count);
		else if (!refused_at_once(sink, lane, code))
			return;
	}
}

/* ---- answers --------------------------------------------------------- */

static bool is_answered(const struct ob_lane_item *item)
{
	return item && (item->flags & OB_KAFKA_ANSWERED);
}

/* Outcomes for what is answered, up to what failed or goes again. */
static void finish(struct kafka_sink *sink, struct ob_lane *lane)
{
	while (is_answered(lane->head)) {
		enum ob_err_kind kind = lane->head->kind;
		struct ob_err err = kind == OB_ERR_NONE ? OB_ERR_INIT : *lane->head->err;

		if (kind == OB_ERR_LOST)
			return;
		if (kind != OB_ERR_NONE && kind != OB_ERR_REJECT) {
			fail_lane(sink, lane, &err);
			return;
		}
		unsuspect(sink, lane->head);
		if (kind == OB_ERR_NONE)
			ob_lane_stored(&sink->lanes, lane, 1);
		else
			ob_lane_rejected(&sink->lanes, lane, &err);
	}
}

static void answered(struct kafka_sink *sink, struct ob_lane *lane)
{
	struct ob_kafka_run *run = run_of(sink, lane);

	/* What is stored need not wait for the others of a long run. */
	while (is_answered(lane->head) && lane->head->kind == OB_ERR_NONE) {
		unsuspect(sink, lane->head);
		ob_lane_stored(&sink->lanes, lane, 1);
	}
	if (run->waiting > 0)
		return;
	end_run(sink, run);
	finish(sink, lane);
	for (struct ob_lane_item *item = lane->head; item; item = item->next)
		item->flags &= ~(unsigned)OB_KAFKA_ANSWERED;
	ob_lane_give_back(&sink->lanes, lane);
}

static void suspect(struct kafka_sink *sink, struct ob_lane_item *item, size_t batch)
{
	uint32_t smaller = batch > 8 ? (uint32_t)(batch / 8) : 1;

	if (!(item->flags & OB_KAFKA_SUSPECT))
		sink->suspects++;
	item->flags |= OB_KAFKA_SUSPECT;
	item->kind = OB_ERR_LOST;
	if (sink->next_batch_max == 0 || smaller < sink->next_batch_max)
		sink->next_batch_max = smaller;
	sink->spent = true;
}

/* The producer is over because a broker refused a message, and for no other reason. */
static bool is_gapless_end(const struct kafka_sink *sink)
{
	return rd_kafka_fatal_error(sink->rk, NULL, 0) == RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE;
}

/* It goes again: another was refused, or its request ended with the connection that the guard cut.
 */
static bool is_unsent(const struct kafka_sink *sink, const rd_kafka_message_t *message)
{
	bool own = message->err < RD_KAFKA_RESP_ERR_NO_ERROR &&
		   message->err != RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC &&
		   message->err != RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;

	return ob_kafka_is_unsent(message->err) || (own && is_gapless_end(sink));
}

/* `batch`: messages that have this answer together. */
static void take_answer(struct kafka_sink *sink, const rd_kafka_message_t *message, size_t batch)
{
	struct ob_lane_item *item = message->_private;
	bool one = false;

	item->flags |= OB_KAFKA_ANSWERED;
	item->kind = OB_ERR_NONE;
	sink->out--;
	run_of(sink, item->in)->waiting--;
	if (is_unsent(sink, message)) {
		item->kind = OB_ERR_LOST; /* goes again */
		sink->spent = true;
	} else if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
		(void)ob_kafka_error(message->err, NULL, &one, item->err);
		item->kind = item->err->kind;
		if (one && batch > 1) {
			suspect(sink, item, batch);
		} else if (item->kind == OB_ERR_DOWN) {
			sink->trouble = *item->err;
			sink->doubt = true;
		}
	}
	answered(sink, item->in);
}

/* ---- events ---------------------------------------------------------- */

static void take_trouble(struct kafka_sink *sink, rd_kafka_event_t *event)
{
	rd_kafka_resp_err_t code = rd_kafka_event_error(event);
	struct ob_err err = OB_ERR_INIT;

	(void)ob_kafka_error(code, rd_kafka_event_error_string(event), NULL, &err);
	err.kind = OB_ERR_DOWN;
	if (is_gapless_end(sink)) {
		sink->spent = true; /* the refused message tells why */
		return;
	}
	if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
		sink->all_down = true;
		if (sink->trouble.kind != OB_ERR_NONE)
			return; /* which says more */
	}
	sink->trouble = err;
	if (rd_kafka_event_error_is_fatal(event) || code == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
	    code == RD_KAFKA_RESP_ERR__SSL)
		sink->doubt = true;
}

static void take_event(struct kafka_sink *sink, rd_kafka_event_t *event)
{
	const rd_kafka_message_t *message;
	size_t batch;

	switch (rd_kafka_event_type(event)) {
	case RD_KAFKA_EVENT_DR:
		batch = rd_kafka_event_message_count(event);
		while ((message = rd_kafka_event_message_next(event)))
			take_answer(sink, message, batch);
		break;
	case RD_KAFKA_EVENT_ERROR:
		take_trouble(sink, event);
		break;
	default:
		break;
	}
}

void ob_kafka_listen(struct kafka_sink *sink)
{
	uint64_t count;

	/* First the fd, then the queue: what comes in between makes it readable again. */
	(void)!read(sink->wake_fd, &count, sizeof(count));
	for (rd_kafka_event_t *event; (event = rd_kafka_queue_poll(sink->queue, 0));) {
		take_event(sink, event);
		rd_kafka_event_destroy(event);
	}
}

/* ---- what follows ---------------------------------------------------- */

static void doubt(struct kafka_sink *sink, const struct ob_err *err)
{
	struct ob_err why = *err;

	why.kind = OB_ERR_DOWN;
	ob_kafka_stop(sink);
	for (struct ob_kafka_run *run = sink->oldest; run; run = run->next) {
		ob_lane_failed(&sink->lanes, run->lane, &why);
		ob_lane_give_back(&sink->lanes, run->lane);
	}
	ob_lanes_fail_ready(&sink->lanes, &why);
	ob_kafka_forget(sink);
}

int64_t ob_kafka_deadline(const struct kafka_sink *sink)
{
	return sink->oldest ? sink->oldest->since_us + sink->timeout_ms * 1000 : INT64_MAX;
}

static void check_deadline(struct kafka_sink *sink)
{
	struct ob_err err = OB_ERR_INIT;

	if (ob_clock_boot_us(sink->base.clock) < ob_kafka_deadline(sink))
		return;
	(void)ob_err_set(&err, OUTBOX_ESINK, OB_ERR_DOWN,
			 "kafka has not acknowledged a message within %lld ms%s%.300s",
			 (long long)sink->timeout_ms,
			 sink->trouble.kind != OB_ERR_NONE ? "; before: " : "", sink->trouble.msg);
	doubt(sink, &err);
}

/* A producer that has refused a message makes room once all its messages are answered. */
static void renew(struct kafka_sink *sink)
{
	struct ob_err err = OB_ERR_INIT;

	ob_kafka_stop(sink);
	if (sink->suspects == 0 || sink->next_batch_max > 0)
		sink->batch_max = sink->suspects > 0 ? sink->next_batch_max : 0;
	sink->next_batch_max = 0;
	if (ob_kafka_start(sink, &err) < 0)
		doubt(sink, &err);
	else
		sink->ready = true; /* one was there a moment ago; else the deadline will tell */
}

bool ob_kafka_is_ending(const struct kafka_sink *sink)
{
	return sink->rk && sink->spent && sink->out > 0 && is_gapless_end(sink);
}

/*
 * A producer that is over throws out once what it has not sent. What we handed over at that very
 * moment, or what another broker's connection gave back since, would lie there for ever.
 */
static void empty(struct kafka_sink *sink)
{
	if (!ob_kafka_is_ending(sink))
		return;
	(void)rd_kafka_purge(sink->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

void ob_kafka_turn(struct kafka_sink *sink)
{
	if (!sink->rk)
		return;
	ob_kafka_listen(sink);
	if (sink->doubt)
		doubt(sink, &sink->trouble);
	else
		check_deadline(sink);
	fill(sink);
	empty(sink);
	if (sink->rk && sink->spent && sink->out == 0) {
		renew(sink);
		fill(sink);
	}
}
