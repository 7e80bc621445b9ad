/* SPDX-License-Identifier: MIT */
/* Taking over from a process that is gone, or stands still, without getting ahead of it. */
#include "feed/nats/nats.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>

enum { STEP_MS = 250, FETCH = 256, HINTS_MAX = 20000 };

/*
 * A negative acknowledgement in the name of whoever has them, by the documented subject. A server
 * that does not take it hands them out after ack_wait: nothing but time depends on it.
 */
static void ask_for_others(struct nats_feed *feed, const jsConsumerInfo *info)
{
	uint64_t from = info->AckFloor.Stream + 1, to = info->Delivered.Stream;

	for (uint64_t seq = from; seq <= to && seq - from < HINTS_MAX; seq++) {
		char subject[600];

		(void)snprintf(subject, sizeof(subject),
			       "$JS.ACK.%.250s.%.250s.1.%" PRIu64 ".%" PRIu64 ".0.0", feed->stream,
			       ob_nats_durable(feed), seq, info->Delivered.Consumer);
		(void)natsConnection_PublishString(feed->nc, subject, "-NAK");
	}
}

void ob_nats_gate_close(struct nats_feed *feed, const jsConsumerInfo *info)
{
	struct ob_nats_gate *gate = &feed->gate;

	ob_nats_gate_clear(gate);
	gate->closed = info->NumAckPending > 0;
	gate->last_seq = info->Delivered.Stream;
	if (gate->closed)
		ask_for_others(feed, info);
}

/* A second copy of one that took too long replaces the first. The message is the gate's. */
static bool keep(struct ob_nats_gate *gate, natsMsg *msg)
{
	jsMsgMetaData *meta = NULL;
	uint64_t seq = natsMsg_GetMetaData(&meta, msg) == NATS_OK ? meta->Sequence.Stream : 0;

	jsMsgMetaData_Destroy(meta);
	for (size_t i = 0; i < gate->count; i++) {
		if (gate->list[i].seq == seq) {
			natsMsg_Destroy(gate->list[i].msg);
			gate->list[i].msg = msg;
			return true;
		}
	}
	if (gate->count == gate->room) {
		size_t room = gate->room ? gate->room * 2 : FETCH;
		struct ob_nats_early *more = realloc(gate->list, room * sizeof(*more));

		if (!more) {
			natsMsg_Destroy(msg);
			return false;
		}
		gate->list = more;
		gate->room = room;
	}
	gate->list[gate->count++] = (struct ob_nats_early){ seq, msg };
	gate->past |= seq > gate->last_seq;
	return true;
}

/* Those that come again come first. Once they do not, what comes is of no use yet: ask seldom, and
 * for one. */
static bool is_early(struct nats_feed *feed, int timeout_ms)
{
	struct ob_nats_gate *gate = &feed->gate;
	int64_t now = ob_clock_boot_us(feed->base.clock);

	if (gate->past && now < gate->next_us) {
		(void)poll(NULL, 0, timeout_ms < STEP_MS ? timeout_ms : STEP_MS);
		return true;
	}
	gate->next_us = now + (int64_t)STEP_MS * 1000;
	return false;
}

static natsStatus collect(struct nats_feed *feed, int timeout_ms)
{
	struct ob_nats_gate *gate = &feed->gate;
	natsMsgList list = { 0 };
	jsErrCode code = 0;
	natsStatus s = natsSubscription_Fetch(&list, feed->sub, gate->past ? 1 : FETCH,
					      timeout_ms < STEP_MS ? timeout_ms : STEP_MS, &code);

	if (s != NATS_OK)
		return s == NATS_TIMEOUT ? NATS_OK : s;
	for (int i = 0; i < list.Count; i++) {
		if (!keep(gate, list.Msgs[i]))
			s = NATS_NO_MEMORY;
		list.Msgs[i] = NULL;
	}
	natsMsgList_Destroy(&list);
	return s;
}

static int by_seq(const void *a, const void *b)
{
	uint64_t x = ((const struct ob_nats_early *)a)->seq;
	uint64_t y = ((const struct ob_nats_early *)b)->seq;

	return x < y ? -1 : x > y;
}

natsStatus ob_nats_gate_step(struct nats_feed *feed, int timeout_ms)
{
	struct ob_nats_gate *gate = &feed->gate;
	jsConsumerInfo *info = NULL;
	jsErrCode code = 0;

	if (!gate->closed || is_early(feed, timeout_ms))
		return NATS_OK;
	natsStatus s = collect(feed, timeout_ms);
	for (size_t i = 0; i < gate->count; i++)
		(void)natsMsg_InProgress(gate->list[i].msg, NULL);
	if (s == NATS_OK)
		s = js_GetConsumerInfo(&info, feed->js, feed->stream, ob_nats_durable(feed), NULL,
				       &code);
	if (s == NATS_OK && info->NumAckPending <= (int64_t)gate->count) {
		gate->closed = false;
		if (gate->count)
			qsort(gate->list, gate->count, sizeof(*gate->list), by_seq);
	}
	jsConsumerInfo_Destroy(info);
	return s;
}

bool ob_nats_gate_take(struct nats_feed *feed, uint32_t max, natsMsgList *ret)
{
	struct ob_nats_gate *gate = &feed->gate;
	size_t left = gate->count - gate->at, n = left < max ? left : max;

	if (n == 0)
		return false;
	ret->Msgs = calloc(n, sizeof(natsMsg *));
	if (!ret->Msgs)
		return false;
	for (size_t i = 0; i < n; i++) {
		ret->Msgs[i] = gate->list[gate->at + i].msg;
		gate->list[gate->at + i].msg = NULL;
	}
	ret->Count = (int)n;
	gate->at += n;
	return true;
}

void ob_nats_gate_give_back(struct ob_nats_gate *gate)
{
	for (size_t i = gate->at; i < gate->count; i++)
		(void)natsMsg_Nak(gate->list[i].msg, NULL);
	ob_nats_gate_clear(gate);
}

void ob_nats_gate_clear(struct ob_nats_gate *gate)
{
	for (size_t i = gate->at; i < gate->count; i++)
		natsMsg_Destroy(gate->list[i].msg);
	gate->at = gate->count = 0;
	gate->closed = gate->past = false;
}
