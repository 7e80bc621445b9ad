/* SPDX-License-Identifier: MIT */
/*
 * The deliveries that a sink of lines has accepted, oldest first: some have their
 * outcome (stored, then failed), the others wait and their lines are in `lines`.
 * A failure fails all that wait, and while failed outcomes are left nothing is
 * accepted: that is how these sinks keep OB_SINK_ORDERED.
 */
#ifndef OB_SINK_WINDOW_H
#define OB_SINK_WINDOW_H

#include "sink/sink.h"

enum {
	OB_WINDOW_SLOTS = 4096,    /* deliveries; a power of two */
	OB_WINDOW_BYTES = 4 << 20, /* of lines, before one more makes it full */
	OB_WINDOW_KEEP = 16 << 20, /* memory kept when it is empty */
};

struct ob_window_slot {
	uint64_t tag;
	size_t end; /* of its line in `lines` */
};

/* All zero is an empty one. */
struct ob_window {
	struct ob_buf lines;
	size_t written; /* bytes of `lines` that are confirmed */
	struct ob_window_slot *slots;
	uint32_t head, count;    /* of the ring */
	uint32_t stored, failed; /* the oldest `stored`, and `failed` behind them */
	bool mid_line;           /* the last confirmed byte does not end a line */
	struct ob_err err;       /* why, for the failed */
};

/* Take one in: 0, OB_SINK_FULL, or an error of ob_line_add(). */
int ob_window_add(struct ob_window *w, const struct ob_delivery *delivery, struct ob_err *err);
/* The bytes that wait; absent when none. Borrowed until the next call. */
struct ob_str ob_window_rest(const struct ob_window *w);
/* How many of these bytes, in whole lines, fit into `room`; 0: not even the first line. */
size_t ob_window_fit(const struct ob_window *w, size_t room);
/* `n` bytes more are safe: every line that ends within them is stored. */
void ob_window_confirm(struct ob_window *w, size_t n);
/* All that wait have failed. */
void ob_window_fail(struct ob_window *w, const struct ob_err *err);
/* Hand out outcomes; returns how many. */
int ob_window_take(struct ob_window *w, struct ob_ack *acks, size_t max);
/* Forget everything, keep the memory. */
void ob_window_clear(struct ob_window *w);
void ob_window_done(struct ob_window *w);

static inline uint32_t ob_window_waiting(const struct ob_window *w)
{
	return w->count - w->stored - w->failed;
}

static inline bool ob_window_has_outcomes(const struct ob_window *w)
{
	return w->stored + w->failed > 0;
}

#endif
