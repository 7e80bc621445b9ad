/* SPDX-License-Identifier: MIT */
/* How far a replay is, in one line: a pure function of what there is to show. */
#ifndef OB_CLI_REPLAY_BAR_H
#define OB_CLI_REPLAY_BAR_H

#include "base/buf.h"

struct ob_replay_bar {
	const char *name;
	int64_t from, position, end; /* numbers of the log: before the first, reached, the last */
	uint64_t published, failed, dead;
	double rate;     /* messages per second */
	int64_t left_us; /* < 0: not known */
	uint64_t waits;  /* failed messages that wait for their next attempt */
	bool down;       /* the sink is away */
};

/* 0 to 100; 100 only at the end. */
unsigned ob_replay_percent(const struct ob_replay_bar *bar);
/* Time until the end at `numbers` of the log a second; < 0: not known. */
int64_t ob_replay_left_us(const struct ob_replay_bar *bar, double numbers);
/* Append it in at most `width` columns. `ascii`: for a terminal that does not speak UTF-8. */
void ob_replay_bar_draw(const struct ob_replay_bar *bar, size_t width, bool ascii,
			struct ob_buf *out);

#endif
