/* SPDX-License-Identifier: MIT */
/* Pushing, draining and waiting, through the store's contract: any database and any sink. */
#include "cli/bench/bench.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>

enum {
	SECOND_US = 1000000,
	LOOK_US = 100,
	DRAIN_LOOK_US = 20000,
	PATIENCE_US = 60 * SECOND_US,
	STOP_MS = 15000,
	EACH_MAX = 1000,
};

static int64_t now_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

/* Wait a little, and take in a signal; both may end the run. */
static int rest(struct ob_bench *b, long us, struct ob_err *err)
{
	struct pollfd fd = { .fd = b->signals->fd, .events = POLLIN };

	(void)ppoll(&fd, 1, &(struct timespec){ .tv_nsec = us * 1000 }, NULL);
	ob_signals_read(b->signals);
	if (b->signals->stop != OB_STOP_NO)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "stopped");
	return 0;
}

int ob_bench_waiting(struct ob_bench *b, uint64_t cap, uint64_t *ret_waiting, struct ob_err *err)
{
	struct ob_stats *stats;
	uint64_t waiting = 0;
	size_t count;
	int64_t now;
	int r = ob_store_stats(b->store, b->reader, cap, &b->arena, &stats, &count, &now, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		for (int view = 0; view < OB_VIEW_DISCARDED; view++)
			waiting += stats[i].count[view];
	}
	ob_arena_reset(&b->arena, SIZE_MAX);
	if (r == 0)
		*ret_waiting = waiting;
	return r;
}

/* How far the reader is, as any number that grows. */
static int read_position(struct ob_bench *b, int64_t *ret_position, struct ob_err *err)
{
	struct ob_reader *readers;
	size_t count;
	int r = ob_store_readers(b->store, &b->arena, &readers, &count, err);

	*ret_position = 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (ob_str_eq(readers[i].name, ob_str(b->reader)))
			*ret_position = readers[i].high_pos;
	}
	ob_arena_reset(&b->arena, SIZE_MAX);
	return r;
}

/* ---- the relay ------------------------------------------------------- */

static int start_relay(struct ob_bench *b, struct ob_err *err)
{
	const char *const argv[] = { "outbox",  "--config", b->config,  "work",
				     "--relay", b->reader,  "--silent", NULL };
	const struct ob_child_conf conf = {
		.program = "/proc/self/exe", .argv = argv, .dir = b->dir, .log = b->log
	};

	return ob_child_start(&b->relay, &conf, err);
}

static int stop_relay(struct ob_bench *b, struct ob_err *err)
{
	if (b->relay.state == OB_CHILD_NONE)
		return 0;
	ob_child_signal(&b->relay, SIGTERM);
	bool ended = ob_child_wait_end(&b->relay, STOP_MS);
	ob_child_done(&b->relay);
	b->relay.state = OB_CHILD_NONE;
	return ended ? 0
		     : ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "the relay does not stop within %d s", STOP_MS / 1000);
}

static int look_at_relay(struct ob_bench *b, int64_t moved_us, struct ob_err *err)
{
	if (ob_child_look(&b->relay) == OB_CHILD_ENDED)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "the relay ended with %s %d",
				  b->relay.code < 0 ? "signal" : "code",
				  b->relay.code < 0 ? -b->relay.code : b->relay.code);
	if (now_us() - moved_us > PATIENCE_US)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "nothing was delivered for %d s: see 'outbox status'",
				  PATIENCE_US / SECOND_US);
	return 0;
}

/* Until nothing waits. Counting one message is enough to know. */
static int wait_delivered(struct ob_bench *b, long look_us, struct ob_err *err)
{
	int64_t moved_us = now_us(), before = -1, position;
	uint64_t waiting;

	for (;;) {
		int r = ob_bench_waiting(b, 1, &waiting, err);
		if (r < 0 || waiting == 0)
			return r;
		r = read_position(b, &position, err);
		if (position != before)
			moved_us = now_us();
		before = position;
		if (r == 0)
			r = look_at_relay(b, moved_us, err);
		if (r == 0)
			r = rest(b, look_us, err);
		if (r < 0)
			return r;
	}
}

/* Until the reader has left `position`. */
static int wait_moved(struct ob_bench *b, int64_t position, struct ob_err *err)
{
	int64_t begun_us = now_us(), now = position;
	int r = 0;

	while (r == 0 && now == position) {
		r = read_position(b, &now, err);
		if (r == 0)
			r = look_at_relay(b, begun_us, err);
		if (r == 0)
			r = rest(b, LOOK_US, err);
	}
	return r;
}

/* ---- writing --------------------------------------------------------- */

/* One transaction; keys are numbers from `first` on. */
static int push_some(struct ob_bench *b, uint64_t first, size_t count, int64_t *ret_commit_us,
		     struct ob_err *err)
{
	struct outbox_message messages[EACH_MAX];
	char keys[EACH_MAX][24];
	size_t index;

	for (size_t i = 0; i < count; i++) {
		(void)snprintf(keys[i], sizeof(keys[i]), "%" PRIu64, first + i);
		messages[i] = (struct outbox_message){ .aggregate_type = "outbox_bench",
						       .aggregate_id = keys[i],
						       .event_type = "Measured",
						       .payload = b->payload.data,
						       .payload_size = b->payload.len,
						       .target = b->target };
	}
	int r = ob_store_tx_begin(b->store, err);
	if (r == 0)
		r = ob_store_tx_push(b->store, messages, count, NULL, &index, err);
	*ret_commit_us = now_us();
	if (r == 0)
		r = ob_store_tx_end(b->store, true, err);
	if (r < 0) {
		struct ob_err ignored = OB_ERR_INIT;

		(void)ob_store_tx_end(b->store, false, &ignored);
	}
	return r;
}

int ob_bench_push(struct ob_bench *b, uint64_t count, size_t each, double *ret_rate,
		  struct ob_err *err)
{
	int64_t start_us = now_us(), commit_us;

	for (uint64_t done = 0; done < count; done += each) {
		size_t n = count - done < each ? (size_t)(count - done) : each;
		int r = push_some(b, done, n, &commit_us, err);

		if (r == 0)
			r = rest(b, 0, err);
		if (r < 0)
			return r;
	}
	*ret_rate = (double)count * SECOND_US / (double)(now_us() - start_us);
	return 0;
}

/* ---- measuring ------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int ob_bench_latency(struct ob_bench *b, struct ob_bench_figures *figures, struct ob_err *err)
{
	/* The first waits for the relay to start, and is written over by the second. */
	enum { MIDDLE = OB_BENCH_SAMPLES / 2, NEARLY_ALL = OB_BENCH_SAMPLES * 99 / 100 };
	int64_t delays_us[OB_BENCH_SAMPLES];
	int r = start_relay(b, err);

	for (size_t i = 0; r == 0 && i <= OB_BENCH_SAMPLES; i++) {
		int64_t commit_us;

		r = push_some(b, i, 1, &commit_us, err);
		if (r == 0)
			r = wait_delivered(b, LOOK_US, err);
		delays_us[i ? i - 1 : 0] = now_us() - commit_us;
	}
	if (r < 0)
		return r;
	qsort(delays_us, OB_BENCH_SAMPLES, sizeof(delays_us[0]), compare);
	figures->p50_ms = (double)delays_us[MIDDLE] / 1e3;
	figures->p99_ms = (double)delays_us[NEARLY_ALL] / 1e3;
	figures->max_ms = (double)delays_us[OB_BENCH_SAMPLES - 1] / 1e3;
	return stop_relay(b, err);
}

int ob_bench_drain(struct ob_bench *b, struct ob_bench_figures *figures, struct ob_err *err)
{
	int64_t begun_us = now_us(), position = 0;
	uint64_t all = 0, left = 0;
	int r = ob_bench_waiting(b, 0, &all, err);

	if (r == 0)
		r = read_position(b, &position, err);
	if (r == 0)
		r = start_relay(b, err);
	if (r == 0)
		r = wait_moved(b, position, err);
	int64_t start_us = now_us();
	if (r == 0)
		r = ob_bench_waiting(b, 0, &left, err);
	if (r == 0)
		r = wait_delivered(b, DRAIN_LOOK_US, err);
	if (r < 0)
		return r;
	/* So few that they were out at the first look: the relay's start counts, too. */
	if (left == 0) {
		left = all;
		start_us = begun_us;
	}
	figures->drain_rate = (double)left * SECOND_US / (double)(now_us() - start_us);
	return stop_relay(b, err);
}

int ob_bench_clean(struct ob_bench *b, struct ob_err *err)
{
	int r = stop_relay(b, err);

	return r < 0 ? r : ob_store_reader_remove(b->store, b->reader, err);
}
