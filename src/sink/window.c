/* SPDX-License-Identifier: MIT */
/* The ring of accepted deliveries and the buffer of their lines. */
#include "sink/window.h"

#include "sink/line.h"

#include <assert.h>
#include <stdlib.h>

/* The i-th of those that wait. */
static struct ob_window_slot *waiting_slot(const struct ob_window *w, uint32_t i)
{
	return &w->slots[(w->head + w->stored + w->failed + i) & (OB_WINDOW_SLOTS - 1)];
}

/* Give up the space of confirmed bytes once they are the larger part: a window that never runs
 * empty would grow for ever. */
static void compact(struct ob_window *w)
{
	if (w->written < OB_WINDOW_BYTES || w->written < w->lines.len / 2)
		return;
	memmove(w->lines.data, w->lines.data + w->written, w->lines.len - w->written);
	for (uint32_t i = 0; i < ob_window_waiting(w); i++)
		waiting_slot(w, i)->end -= w->written;
	w->lines.len -= w->written;
	w->lines.data[w->lines.len] = '\0';
	w->written = 0;
}

static void clear_lines(struct ob_window *w)
{
	if (w->lines.cap > OB_WINDOW_KEEP)
		ob_buf_done(&w->lines);
	ob_buf_clear(&w->lines);
	w->written = 0;
}

int ob_window_add(struct ob_window *w, const struct ob_delivery *delivery, struct ob_err *err)
{
	if (w->failed > 0 || w->count == OB_WINDOW_SLOTS ||
	    w->lines.len - w->written >= OB_WINDOW_BYTES)
		return OB_SINK_FULL;
	if (!w->slots) {
		w->slots = calloc(OB_WINDOW_SLOTS, sizeof(*w->slots));
		if (!w->slots)
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "allocating a window");
		w->lines = OB_BUF_INIT(OB_LINE_BUF_MAX);
	}
	compact(w);
	int r = ob_line_add(&w->lines, delivery, err);
	if (r < 0)
		return r;
	*waiting_slot(w, ob_window_waiting(w)) =
		(struct ob_window_slot){ delivery->tag, w->lines.len };
	w->count++;
	return 0;
}

struct ob_str ob_window_rest(const struct ob_window *w)
{
	if (w->lines.len == w->written)
		return OB_STR_NULL;
	return (struct ob_str){ w->lines.data + w->written, w->lines.len - w->written };
}

size_t ob_window_fit(const struct ob_window *w, size_t room)
{
	size_t fit = 0;

	if (w->lines.len - w->written <= room)
		return w->lines.len - w->written;
	for (uint32_t i = 0; i < ob_window_waiting(w); i++) {
		size_t n = waiting_slot(w, i)->end - w->written;

		if (n > room)
			break;
		fit = n;
	}
	return fit;
}

void ob_window_confirm(struct ob_window *w, size_t n)
{
	assert(n > 0 && n <= w->lines.len - w->written);
	w->written += n;
	w->mid_line = w->lines.data[w->written - 1] != '\n';
	while (ob_window_waiting(w) > 0 && waiting_slot(w, 0)->end <= w->written)
		w->stored++;
	if (w->written == w->lines.len)
		clear_lines(w);
}

void ob_window_fail(struct ob_window *w, const struct ob_err *err)
{
	w->failed += ob_window_waiting(w);
	w->err = *err;
	w->mid_line = false;
	clear_lines(w);
}

int ob_window_take(struct ob_window *w, struct ob_ack *acks, size_t max)
{
	size_t n = 0;

	for (; n < max && ob_window_has_outcomes(w); n++) {
		acks[n].tag = w->slots[w->head].tag;
		acks[n].err = w->stored > 0 ? OB_ERR_INIT : w->err;
		if (w->stored > 0)
			w->stored--;
		else
			w->failed--;
		w->head = (w->head + 1) & (OB_WINDOW_SLOTS - 1);
		w->count--;
	}
	return (int)n;
}

void ob_window_clear(struct ob_window *w)
{
	w->head = w->count = w->stored = w->failed = 0;
	w->mid_line = false;
	clear_lines(w);
}

void ob_window_done(struct ob_window *w)
{
	ob_buf_done(&w->lines);
	free(w->slots);
	*w = (struct ob_window){ 0 };
}
