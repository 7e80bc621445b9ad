/* SPDX-License-Identifier: MIT */
/* Has a reader caught up? The oldest message that it has not delivered tells. */
#include "events/wait.h"

#include "base/cleanup.h"

#include <poll.h>

enum { LAG_CAP = 10001, FIRST_WAIT_MS = 5, LONGEST_WAIT_MS = 100 };

/* What a reader still has to do by itself. */
static const unsigned open_views =
	1u << OB_VIEW_PENDING | 1u << OB_VIEW_PARKED | 1u << OB_VIEW_FAILED;

int ob_lag_read(struct ob_store *store, const char *reader, struct ob_lag *ret_lag,
		struct ob_err *err)
{
	OB_CLEANUP(ob_arena_done) struct ob_arena arena = OB_ARENA_INIT(16 << 20);
	struct ob_stats *stats = NULL;
	size_t count = 0;
	int64_t now_us = 0;
	int r = ob_store_stats(store, reader, LAG_CAP, &arena, &stats, &count, &now_us, err);

	if (r < 0)
		return r;
	*ret_lag = (struct ob_lag){ 0 };
	if (count == 0)
		return 0;
	ret_lag->messages = stats->count[OB_VIEW_PENDING] + stats->count[OB_VIEW_PARKED] +
			    stats->count[OB_VIEW_FAILED];
	if (stats->oldest_due_us > 0 && ret_lag->messages > 0)
		ret_lag->oldest_us =
			now_us > stats->oldest_due_us ? now_us - stats->oldest_due_us : 0;
	return 0;
}

/* The first row in this order; 0: there is none. */
static int first_seq(struct ob_store *store, const char *reader, unsigned views, bool newest,
		     int64_t *ret_seq, struct ob_err *err)
{
	const struct ob_filter filter = {
		.reader = reader, .views = views, .newest_first = newest, .limit = 1, .brief = true
	};
	struct ob_batch batch;
	int64_t now_us;

	ob_batch_init(&batch);
	int r = ob_store_list(store, &filter, &batch, &now_us, err);
	if (r >= 0)
		*ret_seq = batch.count > 0 ? batch.messages[0].seq : 0;
	ob_batch_done(&batch);
	return r < 0 ? r : 0;
}

int ob_wait_caught_up(struct ob_store *store, const char *reader, int64_t timeout_ms,
		      bool *ret_caught, struct ob_err *err)
{
	int64_t end = 0, oldest = 0, began = ob_clock_boot_us(store->clock);
	int wait_ms = FIRST_WAIT_MS;
	bool known = false;

	*ret_caught = false;
	for (;;) {
		int r = known ? 0 : first_seq(store, reader, 0, true, &end, err);

		known = known || r == 0;
		if (r == 0)
			r = first_seq(store, reader, open_views, false, &oldest, err);
		/* What is below the end and not delivered is what we wait for. */
		*ret_caught = r == 0 && (oldest == 0 || oldest > end);
		int64_t left = timeout_ms - (ob_clock_boot_us(store->clock) - began) / 1000;
		if (*ret_caught || (r < 0 && err->kind != OB_ERR_DOWN))
			return r;
		if (left <= 0)
			return r;
		/* Nobody tells us of another's progress: there is nothing to wait on. */
		(void)poll(NULL, 0, left < wait_ms ? (int)left : wait_ms);
		wait_ms = wait_ms * 2 < LONGEST_WAIT_MS ? wait_ms * 2 : LONGEST_WAIT_MS;
	}
}
