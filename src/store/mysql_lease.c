/* SPDX-License-Identifier: MIT */
/* The MySQL store: workers and leases. */
#include "store/mysql.h"

/* Arguments of an operation, and what it brings back. */
struct leasing {
	const char *target;
	const struct ob_uuid *owner;
	const struct ob_worker *worker;
	uint32_t want;
	int64_t ttl_us;
	const uint32_t *partitions;
	size_t partition_count;
	struct my_rows rows;
	int64_t count;
};

/* A statement with what most of them share. */
static int prepare(struct my_store *s, enum my_id id, const struct leasing *l, size_t list,
		   struct my_query **ret_query, struct ob_err *err)
{
	int r = my_prepare(s, id, list, ret_query, err);

	if (r < 0)
		return r;
	my_bind_text(*ret_query, "target", l->target);
	my_bind_int(*ret_query, "ttl", l->ttl_us);
	my_bind_int(*ret_query, "count", l->count);
	my_bind_int(*ret_query, "want", l->want);
	if (l->owner)
		my_bind_uuid(*ret_query, "owner", l->owner);
	return 0;
}

static int run(struct my_store *s, enum my_id id, const struct leasing *l, struct ob_err *err)
{
	struct my_query *q;
	int r = prepare(s, id, l, 1, &q, err);

	if (r == 0)
		r = my_run(s, q, err);
	return r < 0 ? r : 0;
}

/* ---- workers --------------------------------------------------------- */

/*
 * One by one and by id: a condition on the heartbeat would wait for every
 * worker that is just writing his.
 */
static int forget_dead(struct my_store *s, const struct ob_worker *worker, struct ob_err *err)
{
	enum { DEAD_MAX = 64 };
	struct ob_uuid dead[DEAD_MAX];
	size_t count = 0;
	struct my_query *q;
	int r = my_prepare(s, MY_dead_workers, 1, &q, err);

	if (r < 0)
		return r;
	my_bind_str(q, "target", worker->target);
	my_bind_uuid(q, "id", &worker->id);
	r = my_open(s, q, err);
	while (r >= 0 && (r = my_step(s, q, err)) > 0) {
		if (count < DEAD_MAX && ob_uuid_scan(my_str(q, 0), &dead[count]))
			count++;
	}
	for (size_t i = 0; i < count && r >= 0; i++) {
		r = my_prepare(s, MY_forget_worker, 1, &q, err);
		if (r < 0)
			break;
		my_bind_uuid(q, "id", &dead[i]);
		r = my_run(s, q, err);
	}
	return r < 0 ? r : 0;
}

static int beat_work(struct my_store *s, void *arg, struct ob_err *err)
{
	const struct leasing *l = arg;
	const struct ob_worker *worker = l->worker;
	struct my_query *q;
	int r = forget_dead(s, worker, err);

	if (r == 0)
		r = my_prepare(s, MY_beat, 1, &q, err);
	if (r < 0)
		return r;
	my_bind_uuid(q, "id", &worker->id);
	my_bind_str(q, "target", worker->target);
	my_bind_str(q, "hostname", worker->hostname);
	my_bind_int(q, "pid", worker->pid);
	my_bind_int(q, "ttl", l->ttl_us);
	my_bind_int(q, "published", (int64_t)worker->published);
	my_bind_int(q, "failed", (int64_t)worker->failed);
	r = my_run(s, q, err);
	return r < 0 ? r : 0;
}

int my_beat(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
	    struct ob_err *err)
{
	struct leasing l = { .worker = worker, .ttl_us = my_us(ttl_ms) };

	return my_transact((struct my_store *)store, beat_work, &l, err);
}

static int leave_work(struct my_store *s, void *arg, struct ob_err *err)
{
	int r = run(s, MY_leave_leases, arg, err);

	return r < 0 ? r : run(s, MY_leave_worker, arg, err);
}

int my_leave(struct ob_store *store, const char *target, const struct ob_uuid *worker,
	     struct ob_err *err)
{
	struct leasing l = { .target = target, .owner = worker };

	return my_transact((struct my_store *)store, leave_work, &l, err);
}

static bool read_worker(const struct my_query *q, struct my_rows *rows)
{
	struct ob_worker *w = my_rows_add(rows);

	if (!w)
		return false;
	(void)ob_uuid_scan(my_str(q, 0), &w->id);
	w->pid = (int32_t)my_int(q, 3);
	w->started_at_us = my_int(q, 4);
	w->heartbeat_until_us = my_int(q, 5);
	w->published = (uint64_t)my_int(q, 6);
	w->failed = (uint64_t)my_int(q, 7);
	return ob_arena_copy(rows->arena, my_str(q, 1), &w->target) &&
	       ob_arena_copy(rows->arena, my_str(q, 2), &w->hostname);
}

static bool read_partition(const struct my_query *q, struct my_rows *rows)
{
	struct ob_partition *p = my_rows_add(rows);

	if (!p)
		return false;
	p->number = (uint32_t)my_int(q, 1);
	(void)ob_uuid_scan(my_str(q, 2), &p->owner);
	p->epoch = (uint64_t)my_int(q, 3);
	p->until_us = my_int(q, 4);
	p->leased = my_int(q, 5);
	return ob_arena_copy(rows->arena, my_str(q, 0), &p->target);
}

static bool read_lease(const struct my_query *q, struct my_rows *rows)
{
	struct ob_lease *lease = my_rows_add(rows);

	if (!lease)
		return false;
	lease->partition = (uint32_t)my_int(q, 0);
	lease->epoch = (uint64_t)my_int(q, 1);
	return true;
}

typedef bool read_fn(const struct my_query *q, struct my_rows *rows);

static int read_rows(struct my_store *s, enum my_id id, struct leasing *l, read_fn *read,
		     struct ob_err *err)
{
	struct my_query *q;
	int r = prepare(s, id, l, 1, &q, err);

	if (r == 0)
		r = my_open(s, q, err);
	while (r >= 0 && (r = my_step(s, q, err)) > 0) {
		if (!read(q, &l->rows))
			r = my_oom("reading rows", err);
	}
	return r;
}

int my_workers(struct ob_store *store, const char *target, struct ob_arena *arena,
	       struct ob_worker **ret_workers, size_t *ret_count, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct leasing l = { .target = target,
			     .rows = { .arena = arena, .size = sizeof(struct ob_worker) } };
	int r = my_ready(s, false, err);

	if (r == 0)
		r = read_rows(s, MY_workers, &l, read_worker, err);
	if (r < 0)
		return r;
	*ret_workers = (void *)l.rows.data;
	*ret_count = l.rows.count;
	return 0;
}

int my_partitions(struct ob_store *store, const char *target, struct ob_arena *arena,
		  struct ob_partition **ret_partitions, size_t *ret_count, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct leasing l = { .target = target,
			     .rows = { .arena = arena, .size = sizeof(struct ob_partition) } };
	int r = my_ready(s, false, err);

	if (r == 0)
		r = read_rows(s, MY_partitions, &l, read_partition, err);
	if (r < 0)
		return r;
	*ret_partitions = (void *)l.rows.data;
	*ret_count = l.rows.count;
	return 0;
}

/* ---- leases ---------------------------------------------------------- */

/* Only what is missing is inserted: an insert of what is there locks it. */
static int seed_missing(struct my_store *s, const struct leasing *l, struct ob_err *err)
{
	bool there[OB_PARTITIONS_MAX] = { false };
	struct my_query *q;
	int r = prepare(s, MY_lease_rows, l, 1, &q, err);

	if (r == 0)
		r = my_open(s, q, err);
	while (r >= 0 && (r = my_step(s, q, err)) > 0) {
		if (my_int(q, 0) < OB_PARTITIONS_MAX)
			there[my_int(q, 0)] = true;
	}
	for (int64_t i = 0; i < l->count && i < OB_PARTITIONS_MAX && r >= 0; i++) {
		if (there[i])
			continue;
		r = prepare(s, MY_seed, l, 1, &q, err);
		if (r < 0)
			break;
		my_bind_int(q, "partition", i);
		r = my_run(s, q, err);
	}
	return r < 0 ? r : 0;
}

static int seed_work(struct my_store *s, void *arg, struct ob_err *err)
{
	struct leasing *l = arg;
	int r = my_meta(s, MY_meta_get, "partition_count", &l->count, err);

	if (r == 0)
		r = seed_missing(s, l, err);
	return r < 0 ? r : run(s, MY_prune, l, err);
}

int my_seed(struct ob_store *store, const char *target, uint32_t *ret_count, struct ob_err *err)
{
	struct leasing l = { .target = target };
	int r = my_transact((struct my_store *)store, seed_work, &l, err);

	if (r < 0)
		return r;
	*ret_count = (uint32_t)l.count;
	return 0;
}

/* Run a statement on the partitions that were read. */
static int run_on_rows(struct my_store *s, enum my_id id, const struct leasing *l,
		       struct ob_err *err)
{
	const struct ob_lease *leases = (const void *)l->rows.data;
	int64_t list[MY_LIST_MAX];
	int changed = 0, r = 0;

	for (size_t done = 0; done < l->rows.count && r >= 0; done += MY_LIST_MAX) {
		size_t count =
			l->rows.count - done < MY_LIST_MAX ? l->rows.count - done : MY_LIST_MAX;
		struct my_query *q;

		for (size_t i = 0; i < count; i++)
			list[i] = leases[done + i].partition;
		r = prepare(s, id, l, count, &q, err);
		if (r < 0)
			break;
		my_bind_list(q, "partitions", list, count);
		r = my_run(s, q, err);
		changed += r > 0 ? r : 0;
	}
	return r < 0 ? r : changed;
}

static int take_work(struct my_store *s, void *arg, struct ob_err *err)
{
	struct leasing *l = arg;

	l->rows.count = 0;
	int r = my_meta(s, MY_meta_get, "partition_count", &l->count, err);
	if (r == 0)
		r = read_rows(s, MY_take_look, l, read_lease, err);
	if (r == 0)
		r = run_on_rows(s, MY_take, l, err);
	return r < 0 ? r : 0;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own nine parameters */
int my_take(struct ob_store *store, const char *target, const struct ob_uuid *owner, uint32_t want,
	    int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases, size_t *ret_count,
	    struct ob_err *err)
{
	struct leasing l = {
		.target = target,
		.owner = owner,
		.want = want,
		.ttl_us = my_us(ttl_ms),
		.rows = { .arena = arena, .size = sizeof(struct ob_lease) },
	};
	int r = my_transact((struct my_store *)store, take_work, &l, err);

	if (r < 0)
		return r;
	*ret_leases = (void *)l.rows.data;
	*ret_count = l.rows.count;
	return 0;
}

/*
 * Look without locks, extend by number, look again: the scan of an UPDATE by
 * owner would wait for whoever is just settling on a lease of his.
 */
static int renew_work(struct my_store *s, void *arg, struct ob_err *err)
{
	struct leasing *l = arg;

	l->rows.count = 0;
	int r = read_rows(s, MY_renew_look, l, read_lease, err);
	if (r == 0)
		r = run_on_rows(s, MY_renew, l, err);
	if (r < 0 || (size_t)r == l->rows.count)
		return r < 0 ? r : 0;
	l->rows.count = 0;
	return read_rows(s, MY_renew_look, l, read_lease, err);
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int my_renew(struct ob_store *store, const char *target, const struct ob_uuid *owner,
	     int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
	     size_t *ret_count, struct ob_err *err)
{
	struct leasing l = {
		.target = target,
		.owner = owner,
		.ttl_us = my_us(ttl_ms),
		.rows = { .arena = arena, .size = sizeof(struct ob_lease) },
	};
	int r = my_transact((struct my_store *)store, renew_work, &l, err);

	if (r < 0)
		return r;
	*ret_leases = (void *)l.rows.data;
	*ret_count = l.rows.count;
	return 0;
}

static int release_work(struct my_store *s, void *arg, struct ob_err *err)
{
	const struct leasing *l = arg;
	int64_t list[MY_LIST_MAX];
	int r = 0;

	for (size_t done = 0; done < l->partition_count && r >= 0; done += MY_LIST_MAX) {
		size_t count = l->partition_count - done;
		struct my_query *q;

		if (count > MY_LIST_MAX)
			count = MY_LIST_MAX;
		for (size_t i = 0; i < count; i++)
			list[i] = l->partitions[done + i];
		r = prepare(s, MY_release, l, count, &q, err);
		if (r < 0)
			break;
		my_bind_list(q, "partitions", list, count);
		r = my_run(s, q, err);
	}
	return r < 0 ? r : 0;
}

int my_release(struct ob_store *store, const char *target, const struct ob_uuid *owner,
	       const uint32_t *partitions, size_t count, struct ob_err *err)
{
	struct leasing l = {
		.target = target,
		.owner = owner,
		.partitions = partitions,
		.partition_count = count,
	};

	return my_transact((struct my_store *)store, release_work, &l, err);
}
