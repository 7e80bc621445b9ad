/* SPDX-License-Identifier: MIT */
/* Each store is asked in turn; one that does not answer delays the others by a timeout at most. */
#include "monitor/watch.h"

#include "monitor/pool.h"
#include "monitor/rates.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	SECOND_US = 1000000,
	COUNTS_US = 5 * SECOND_US,
	RETRY_US = 5 * SECOND_US,
	REST_MAX_US = 60 * SECOND_US,
	/* Of the time that a round took: 0.8 % for counts, 0.2 % for leases. */
	COUNTS_REST = 125,
	LEASES_REST = 500,
};

struct source {
	struct ob_pool *pool;
	struct ob_store *store;             /* the thread's */
	struct ob_rates rates;              /* the thread's */
	int64_t counts_at_us, leases_at_us; /* boot clock: the next rounds */
	struct ob_watch_store shown;
};

struct ob_watch {
	pthread_mutex_t lock; /* guards each source's shown, round and stop */
	pthread_cond_t wake;
	bool stop, started;
	uint64_t round;
	pthread_t thread;
	void (*changed)(void *arg);
	void *arg;
	struct source *sources;
	size_t count;
};

static int64_t boot_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

/* ---- one sight ------------------------------------------------------- */

static void unref_consumers(struct ob_sight_consumers *consumers)
{
	if (!consumers || __atomic_sub_fetch(&consumers->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	ob_consumers_done(&consumers->list);
	free(consumers);
}

void ob_sight_unref(struct ob_sight *sight)
{
	if (!sight || __atomic_sub_fetch(&sight->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	ob_snapshot_done(&sight->snapshot);
	unref_consumers(sight->consumers);
	free(sight);
}

static int take_dead(struct ob_store *store, const char *name, struct ob_sight_reader *more,
		     struct ob_err *err)
{
	const struct ob_filter filter = {
		.reader = name, .views = 1U << OB_VIEW_DEAD, .limit = 1, .brief = true
	};
	struct ob_batch batch;
	int64_t now_us;

	ob_batch_init(&batch);
	int r = ob_store_list(store, &filter, &batch, &now_us, err);
	if (r == 0 && batch.count)
		more->oldest_dead_us = batch.messages[0].since_us;
	ob_batch_done(&batch);
	return r;
}

static int take_hour(struct ob_store *store, const char *name, struct ob_arena *arena,
		     struct ob_sight_reader *more, struct ob_err *err)
{
	struct ob_minute *minutes;
	size_t count;
	int r = ob_store_throughput(store, name, 60, arena, &minutes, &count, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		more->published_hour += minutes[i].published;
		more->failed_hour += minutes[i].failed;
	}
	return r;
}

static int take_reader(struct ob_store *store, struct ob_sight *sight, size_t index,
		       struct ob_err *err)
{
	const struct ob_snapshot_row *row = &sight->snapshot.rows[index];
	struct ob_sight_reader *more = &sight->readers[index];
	struct ob_str name;

	more->rate = -1;
	if (!ob_arena_copy(&sight->snapshot.arena, row->reader.name, &name))
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	int r = take_hour(store, name.p, &sight->snapshot.arena, more, err);
	if (r == 0 && row->stats && row->stats->count[OB_VIEW_DEAD])
		r = take_dead(store, name.p, more, err);
	return r;
}

/* Only whoever consumes needs rights on their tables: all else is shown without them. */
static int take_consumers(struct ob_store *store, struct ob_sight *sight, struct ob_err *err)
{
	struct ob_sight_consumers *consumers = calloc(1, sizeof(*consumers));

	if (!consumers)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	consumers->refs = 1;
	int r = ob_consumers_take(&consumers->list, store, NULL, err);
	if (r == 0) {
		sight->consumers = consumers;
		return 0;
	}
	unref_consumers(consumers);
	return err->kind == OB_ERR_DOWN ? r : 0;
}

static int take_sight(struct ob_store *store, struct ob_sight *sight, struct ob_err *err)
{
	struct ob_arena *arena = &sight->snapshot.arena;
	int64_t before = ob_clock_real_us(&ob_clock_system);
	int r = ob_snapshot_take(&sight->snapshot, store, NULL, err);

	if (r < 0)
		return r;
	/* The clock was read first of all; half of the first answer's time is what is not known. */
	sight->skew_us = sight->snapshot.now_us - before;
	if (sight->skew_us > 0) {
		int64_t took = ob_clock_real_us(&ob_clock_system) - before;

		sight->skew_us = sight->skew_us > took ? sight->skew_us - took : 0;
	}
	sight->readers =
		ob_arena_alloc(arena, (sight->snapshot.count + 1) * sizeof(*sight->readers));
	if (!sight->readers)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	for (size_t i = 0; r == 0 && i < sight->snapshot.count; i++)
		r = take_reader(store, sight, i, err);
	if (r == 0)
		r = ob_store_partitions(store, NULL, arena, &sight->partitions,
					&sight->partition_count, err);
	if (r == 0)
		r = ob_store_oldest(store, &sight->oldest_transaction_us, err);
	if (r == 0)
		r = take_consumers(store, sight, err);
	sight->counted_us = sight->leased_us = ob_clock_real_us(&ob_clock_system);
	return r;
}

int ob_watch_once(struct ob_store *store, struct ob_sight **ret_sight, struct ob_err *err)
{
	struct ob_sight *sight = calloc(1, sizeof(*sight));

	if (!sight)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	sight->refs = 1;
	sight->oldest_transaction_us = -1;
	int r = take_sight(store, sight, err);
	if (r < 0) {
		ob_sight_unref(sight);
		return r;
	}
	*ret_sight = sight;
	return 0;
}

/* ---- rounds ---------------------------------------------------------- */

static void show(struct ob_watch *w, struct source *s, struct ob_sight *sight)
{
	(void)pthread_mutex_lock(&w->lock);
	struct ob_sight *old = s->shown.sight;
	s->shown.sight = sight;
	s->shown.ok = true;
	s->shown.error[0] = '\0';
	(void)pthread_mutex_unlock(&w->lock);
	ob_sight_unref(old);
}

static void show_error(struct ob_watch *w, struct source *s, const struct ob_err *err)
{
	(void)pthread_mutex_lock(&w->lock);
	s->shown.ok = false;
	(void)snprintf(s->shown.error, sizeof(s->shown.error), "%s", err->msg);
	(void)pthread_mutex_unlock(&w->lock);
	ob_store_free(s->store);
	s->store = NULL;
	s->counts_at_us = s->leases_at_us = boot_us() + RETRY_US;
}

static int64_t next_round(int64_t start_us, int64_t period_us, int64_t factor)
{
	int64_t rest = (boot_us() - start_us) * factor;

	if (rest > REST_MAX_US)
		rest = REST_MAX_US;
	return start_us + (rest > period_us ? rest : period_us);
}

static int take_counts(struct ob_watch *w, struct source *s, struct ob_err *err)
{
	int64_t start = boot_us();
	struct ob_sight *sight;
	int r = s->store ? 0 : ob_pool_open_reader(s->pool, &s->store, err);

	if (r == 0)
		r = ob_watch_once(s->store, &sight, err);
	if (r < 0)
		return r;
	ob_rates_note(&s->rates, sight->snapshot.workers, sight->snapshot.worker_count, boot_us());
	for (size_t i = 0; i < sight->snapshot.count; i++)
		sight->readers[i].rate =
			ob_rates_read(&s->rates, sight->snapshot.rows[i].reader.name);
	show(w, s, sight);
	s->counts_at_us = next_round(start, COUNTS_US, COUNTS_REST);
	s->leases_at_us = start + SECOND_US;
	return 0;
}

/* A copy with the counts as they were, and workers and leases of now. */
static struct ob_sight *copy_counts(const struct ob_sight *old)
{
	struct ob_sight *sight = calloc(1, sizeof(*sight));
	struct ob_snapshot *to;

	if (!sight)
		return NULL;
	*sight = *old;
	sight->refs = 1;
	if (sight->consumers)
		(void)__atomic_add_fetch(&sight->consumers->refs, 1, __ATOMIC_ACQ_REL);
	to = &sight->snapshot;
	to->arena = OB_ARENA_INIT(64 << 20);
	to->store = OB_BUF_INIT(8192);
	ob_buf_add(&to->store, ob_buf_view(&old->snapshot.store));
	to->rows = ob_arena_alloc(&to->arena, (to->count + 1) * sizeof(*to->rows));
	sight->readers = ob_arena_alloc(&to->arena, (to->count + 1) * sizeof(*sight->readers));
	struct ob_stats *stats = ob_arena_alloc(&to->arena, (to->count + 1) * sizeof(*stats));
	bool ok = to->rows && sight->readers && stats;
	for (size_t i = 0; ok && i < to->count; i++) {
		to->rows[i] = old->snapshot.rows[i];
		sight->readers[i] = old->readers[i];
		if (to->rows[i].stats) {
			stats[i] = *to->rows[i].stats;
			to->rows[i].stats = &stats[i];
		}
		ok = ob_arena_copy(&to->arena, to->rows[i].reader.name, &to->rows[i].reader.name) &&
		     ob_arena_copy(&to->arena, to->rows[i].reader.target,
				   &to->rows[i].reader.target) &&
		     ob_arena_copy(&to->arena, to->rows[i].reader.filter,
				   &to->rows[i].reader.filter);
	}
	if (ok)
		return sight;
	ob_sight_unref(sight);
	return NULL;
}

static void count_leases(struct ob_sight *sight)
{
	struct ob_snapshot *s = &sight->snapshot;

	for (size_t i = 0; i < s->count; i++) {
		struct ob_snapshot_row *row = &s->rows[i];

		row->leased = row->partitions = 0;
		row->reader.workers = 0;
		for (size_t p = 0; p < sight->partition_count; p++) {
			bool mine = ob_str_eq(sight->partitions[p].reader, row->reader.name);

			row->partitions += mine;
			row->leased += mine && sight->partitions[p].leased;
		}
		for (size_t w = 0; w < s->worker_count; w++)
			row->reader.workers += ob_str_eq(s->workers[w].reader, row->reader.name);
	}
}

static int take_leases(struct ob_watch *w, struct source *s, struct ob_err *err)
{
	int64_t start = boot_us();
	struct ob_sight *sight = copy_counts(s->shown.sight);

	if (!sight)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	struct ob_snapshot *snap = &sight->snapshot;
	int r = ob_store_workers(s->store, NULL, &snap->arena, &snap->workers, &snap->worker_count,
				 err);
	if (r == 0)
		r = ob_store_partitions(s->store, NULL, &snap->arena, &sight->partitions,
					&sight->partition_count, err);
	if (r < 0) {
		ob_sight_unref(sight);
		return r;
	}
	int64_t now = ob_clock_real_us(&ob_clock_system);
	snap->now_us += now - sight->leased_us;
	sight->leased_us = now;
	count_leases(sight);
	ob_rates_note(&s->rates, snap->workers, snap->worker_count, boot_us());
	for (size_t i = 0; i < snap->count; i++)
		sight->readers[i].rate = ob_rates_read(&s->rates, snap->rows[i].reader.name);
	show(w, s, sight);
	s->leases_at_us = next_round(start, SECOND_US, LEASES_REST);
	return 0;
}

static void sample_source(struct ob_watch *w, struct source *s)
{
	struct ob_err err = OB_ERR_INIT;
	int64_t now = boot_us();
	int r = 0;

	if (now >= s->counts_at_us)
		r = take_counts(w, s, &err);
	else if (now >= s->leases_at_us && s->store && s->shown.sight)
		r = take_leases(w, s, &err);
	if (r < 0)
		show_error(w, s, &err);
}

/* Locked. */
static void wait_a_second(struct ob_watch *w)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 1;
	while (!w->stop && pthread_cond_timedwait(&w->wake, &w->lock, &until) == 0)
		;
}

static void *watch_main(void *arg)
{
	struct ob_watch *w = arg;

	(void)pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		(void)pthread_mutex_unlock(&w->lock);
		for (size_t i = 0; i < w->count; i++)
			sample_source(w, &w->sources[i]);
		(void)pthread_mutex_lock(&w->lock);
		w->round++;
		(void)pthread_mutex_unlock(&w->lock);
		w->changed(w->arg);
		(void)pthread_mutex_lock(&w->lock);
		wait_a_second(w);
	}
	(void)pthread_mutex_unlock(&w->lock);
	for (size_t i = 0; i < w->count; i++)
		ob_store_free(w->sources[i].store);
	return NULL;
}

/* ---- from outside ---------------------------------------------------- */

static void init_wake(struct ob_watch *w)
{
	pthread_condattr_t attr;

	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&w->wake, &attr);
	(void)pthread_condattr_destroy(&attr);
}

int ob_watch_new(struct ob_pool *pools, size_t count, void (*changed)(void *arg), void *arg,
		 struct ob_watch **ret_watch, struct ob_err *err)
{
	struct ob_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	init_wake(w);
	w->changed = changed;
	w->arg = arg;
	w->sources = calloc(count ? count : 1, sizeof(*w->sources));
	w->count = w->sources ? count : 0;
	for (size_t i = 0; i < w->count; i++) {
		w->sources[i].pool = &pools[i];
		w->sources[i].shown.entry = pools[i].entry;
		(void)snprintf(w->sources[i].shown.error, OB_WATCH_ERROR, "not asked yet");
	}
	w->started = w->sources && pthread_create(&w->thread, NULL, watch_main, w) == 0;
	if (!w->started) {
		ob_watch_free(w);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "starting the sampler");
	}
	*ret_watch = w;
	return 0;
}

void ob_watch_free(struct ob_watch *w)
{
	if (!w)
		return;
	if (w->started) {
		(void)pthread_mutex_lock(&w->lock);
		w->stop = true;
		(void)pthread_cond_signal(&w->wake);
		(void)pthread_mutex_unlock(&w->lock);
		(void)pthread_join(w->thread, NULL);
	}
	for (size_t i = 0; i < w->count; i++) {
		ob_sight_unref(w->sources[i].shown.sight);
		ob_rates_done(&w->sources[i].rates);
	}
	(void)pthread_cond_destroy(&w->wake);
	(void)pthread_mutex_destroy(&w->lock);
	free(w->sources);
	free(w);
}

size_t ob_watch_count(const struct ob_watch *w)
{
	return w->count;
}

void ob_watch_read(struct ob_watch *w, size_t index, struct ob_watch_store *ret)
{
	(void)pthread_mutex_lock(&w->lock);
	*ret = w->sources[index].shown;
	if (ret->sight)
		(void)__atomic_add_fetch(&ret->sight->refs, 1, __ATOMIC_RELAXED);
	(void)pthread_mutex_unlock(&w->lock);
}

uint64_t ob_watch_round(struct ob_watch *w)
{
	(void)pthread_mutex_lock(&w->lock);
	uint64_t round = w->round;
	(void)pthread_mutex_unlock(&w->lock);
	return round;
}
