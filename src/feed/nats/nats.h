/* SPDX-License-Identifier: MIT */
/* What the files of the NATS feed share. */
#ifndef OB_FEED_NATS_H
#define OB_FEED_NATS_H

#include "feed/feed.h"
#include "sink/nats/nats.h"

struct ob_nats_held {
	uint64_t tag;
	natsMsg *msg;
};

/*
 * Messages that another process was given, and that have no acknowledgement, come again when it is
 * known to be gone; later ones of the same keys would come before. So whoever takes over collects
 * all that comes, and hands it out when nothing is with anyone else.
 */
struct ob_nats_gate {
	bool closed;
	bool past;         /* one that nobody had yet has come: those of others are not there yet */
	int64_t next_us;   /* when new ones may be asked for, to see whether others come */
	uint64_t last_seq; /* the newest that was handed out, by us or before us */
	struct ob_nats_early {
		uint64_t seq; /* of the stream */
		natsMsg *msg; /* NULL: handed out */
	} * list;
	size_t at, count, room;
};

struct nats_feed {
	struct ob_feed base;
	char *stream, *subject, *durable;
	int start;
	int64_t ack_wait_ms;

	natsConnection *nc;
	jsCtx *js;
	natsSubscription *sub;
	struct ob_nats_held *held; /* by tag, ascending */
	size_t count, room;
	uint64_t last_tag;
	struct ob_nats_gate gate;
};

const char *ob_nats_durable(const struct nats_feed *feed);

/* ---- gate.c ----------------------------------------------------------- */

/* Close it when someone has messages, and ask the server to let them come again now. */
void ob_nats_gate_close(struct nats_feed *feed, const jsConsumerInfo *info);
/* Collect, for up to timeout_ms, and see whether it can be opened; does nothing when it is open. */
natsStatus ob_nats_gate_step(struct nats_feed *feed, int timeout_ms);
/* Up to `max` of what was collected; false: nothing is left. */
bool ob_nats_gate_take(struct nats_feed *feed, uint32_t max, natsMsgList *ret);
/* Let what was collected come again; and: forget it. */
void ob_nats_gate_give_back(struct ob_nats_gate *gate);
void ob_nats_gate_clear(struct ob_nats_gate *gate);

#endif
