/* SPDX-License-Identifier: MIT */
/*
 * The accepted deliveries of a sink whose peer takes commands. All of one message->key
 * wait in one lane, in the order of their sends; one without a key has a lane
 * for itself. A lane is idle, ready (something waits, in a list) or taken: a
 * command made of its first deliveries is under way, and there is never a second.
 *
 * A failure fails all of its lane, and while such outcomes are left the lane takes
 * nothing in: that is how OB_SINK_ORDERED is kept.
 */
#ifndef OB_SINK_LANES_H
#define OB_SINK_LANES_H

#include "sink/sink.h"

struct ob_lane;

struct ob_lane_item {
	struct ob_delivery delivery; /* a copy; what it points to is borrowed until the outcome */
	struct ob_lane_item *next;
	struct ob_lane *in;    /* the lane it waits in */
	struct ob_lane *lane;  /* whose failed outcome this is, or NULL */
	unsigned flags;        /* the user's; 0 in a new item */
	enum ob_err_kind kind; /* the user's until the outcome */
	struct ob_err *err;    /* the same, unless the kind is NONE: most never have one */
};

struct ob_lane {
	struct ob_str key; /* borrowed from one of its items; p NULL: of one item */
	uint32_t bucket;
	struct ob_lane *chain, *next;
	struct ob_lane_item *head, *tail;
	uint32_t failed;    /* outcomes that are not fetched */
	uint32_t redirects; /* the user's; 0 in a new lane */
	void *detour;       /* the user's; NULL in a new lane */
};

/* All zero until ob_lanes_init(). */
struct ob_lanes {
	struct ob_lane_item *items, *free_items, *done, **done_end;
	struct ob_err *errs; /* of the items */
	struct ob_lane *lanes, *free_lanes, *ready, **ready_end;
	struct ob_lane **buckets;
	uint32_t window, mask;
	uint32_t out; /* accepted, and the outcome not fetched */
	uint32_t done_count;
};

/* Room for `window` deliveries; does nothing when it was called before. */
int ob_lanes_init(struct ob_lanes *lanes, uint32_t window, struct ob_err *err);
/* Take one in: 0 or OB_SINK_FULL. */
int ob_lanes_add(struct ob_lanes *lanes, const struct ob_delivery *delivery);
/* The first ready lane, or NULL; take it from the list. */
struct ob_lane *ob_lanes_take(struct ob_lanes *lanes);
/* Undo a take. */
void ob_lanes_untake(struct ob_lanes *lanes, struct ob_lane *lane);

/* Outcomes for a taken lane: its first `count` are stored, its first one is rejected, all fail. */
void ob_lane_stored(struct ob_lanes *lanes, struct ob_lane *lane, uint32_t count);
void ob_lane_rejected(struct ob_lanes *lanes, struct ob_lane *lane, const struct ob_err *err);
void ob_lane_failed(struct ob_lanes *lanes, struct ob_lane *lane, const struct ob_err *err);
/* The command is over: what is left in the lane waits for the next. The pointer ends here. */
void ob_lane_give_back(struct ob_lanes *lanes, struct ob_lane *lane);

/* All that wait in ready lanes fail. */
void ob_lanes_fail_ready(struct ob_lanes *lanes, const struct ob_err *err);
/* Hand out outcomes; returns how many. */
int ob_lanes_outcomes(struct ob_lanes *lanes, struct ob_ack *acks, size_t max);
/* Forget everything, keep the memory. */
void ob_lanes_clear(struct ob_lanes *lanes);
void ob_lanes_done(struct ob_lanes *lanes);

/* How many wait for their outcome. */
static inline uint32_t ob_lanes_waiting(const struct ob_lanes *lanes)
{
	return lanes->out - lanes->done_count;
}

#endif
