/* SPDX-License-Identifier: MIT */
/* Workers and partition leases of the SQLite store. */
#include "store/sqlite.h"

/* The bindings that most of these statements share. */
static int prepare(struct lite_store *s, enum lite_id id, const char *target,
		   const struct ob_uuid *owner, sqlite3_stmt **ret_stmt, struct ob_err *err)
{
	int r = lite_prepare(s, id, ret_stmt, err);

	if (r < 0)
		return r;
	lite_bind_text(*ret_stmt, ":target", target);
	lite_bind_int(*ret_stmt, ":now", lite_now(s));
	if (owner)
		lite_bind_uuid(*ret_stmt, ":owner", owner);
	return 0;
}

static int beat(struct lite_store *s, const struct ob_worker *worker, int64_t ttl_ms,
		struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = prepare(s, LITE_forget_workers, NULL, NULL, &stmt, err);

	if (r == 0) {
		lite_bind_str(stmt, ":target", worker->target);
		lite_bind_uuid(stmt, ":id", &worker->id);
		r = lite_run(s, LITE_forget_workers, err);
	}
	if (r >= 0)
		r = prepare(s, LITE_beat, NULL, NULL, &stmt, err);
	if (r < 0)
		return r;
	lite_bind_uuid(stmt, ":id", &worker->id);
	lite_bind_str(stmt, ":target", worker->target);
	lite_bind_str(stmt, ":hostname", worker->hostname);
	lite_bind_int(stmt, ":pid", worker->pid);
	lite_bind_int(stmt, ":ttl", lite_us(ttl_ms));
	lite_bind_int(stmt, ":published", (int64_t)worker->published);
	lite_bind_int(stmt, ":failed", (int64_t)worker->failed);
	return lite_run(s, LITE_beat, err);
}

int lite_beat(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
	      struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_begin(s, err);

	if (r < 0)
		return r;
	r = lite_end(s, beat(s, worker, ttl_ms, err), err);
	return r < 0 ? r : 0;
}

static int leave(struct lite_store *s, const char *target, const struct ob_uuid *worker,
		 struct ob_err *err)
{
	static const enum lite_id steps[] = { LITE_leave_leases, LITE_leave_worker };
	sqlite3_stmt *stmt;
	int r = 0;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && r >= 0; i++) {
		r = prepare(s, steps[i], target, worker, &stmt, err);
		if (r == 0)
			r = lite_run(s, steps[i], err);
	}
	return r;
}

int lite_leave(struct ob_store *store, const char *target, const struct ob_uuid *worker,
	       struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_begin(s, err);

	if (r < 0)
		return r;
	r = lite_end(s, leave(s, target, worker, err), err);
	return r < 0 ? r : 0;
}

static bool read_uuid(sqlite3_stmt *stmt, int column, struct ob_uuid *ret)
{
	return ob_uuid_scan(lite_str(stmt, column), ret);
}

static bool read_worker(sqlite3_stmt *stmt, struct lite_rows *rows)
{
	struct ob_worker *w = lite_rows_add(rows);

	if (!w)
		return false;
	(void)read_uuid(stmt, 0, &w->id);
	w->pid = sqlite3_column_int(stmt, 3);
	w->started_at_us = sqlite3_column_int64(stmt, 4);
	w->heartbeat_until_us = sqlite3_column_int64(stmt, 5);
	w->published = (uint64_t)sqlite3_column_int64(stmt, 6);
	w->failed = (uint64_t)sqlite3_column_int64(stmt, 7);
	return ob_arena_copy(rows->arena, lite_str(stmt, 1), &w->target) &&
	       ob_arena_copy(rows->arena, lite_str(stmt, 2), &w->hostname);
}

static bool read_partition(sqlite3_stmt *stmt, struct lite_rows *rows, int64_t now)
{
	struct ob_partition *p = lite_rows_add(rows);

	if (!p)
		return false;
	p->number = (uint32_t)sqlite3_column_int64(stmt, 1);
	bool owned = read_uuid(stmt, 2, &p->owner);
	p->epoch = (uint64_t)sqlite3_column_int64(stmt, 3);
	p->until_us = sqlite3_column_int64(stmt, 4);
	p->leased = owned && p->until_us > now;
	return ob_arena_copy(rows->arena, lite_str(stmt, 0), &p->target);
}

static bool read_lease(sqlite3_stmt *stmt, struct lite_rows *rows)
{
	struct ob_lease *lease = lite_rows_add(rows);

	if (!lease)
		return false;
	lease->partition = (uint32_t)sqlite3_column_int64(stmt, 0);
	lease->epoch = (uint64_t)sqlite3_column_int64(stmt, 1);
	return true;
}

static bool read_row(enum lite_id id, sqlite3_stmt *stmt, struct lite_rows *rows, int64_t now)
{
	if (id == LITE_workers)
		return read_worker(stmt, rows);
	if (id == LITE_partitions)
		return read_partition(stmt, rows, now);
	return read_lease(stmt, rows);
}

/* Step a prepared statement to its end. */
static int read_rows(struct lite_store *s, enum lite_id id, struct lite_rows *rows,
		     struct ob_err *err)
{
	int64_t now = lite_now(s);
	int r;

	while ((r = lite_step(s, id, err)) > 0) {
		if (!read_row(id, s->stmt[id], rows, now)) {
			lite_reset(s, id);
			return lite_oom(lite_doing(id), err);
		}
	}
	return r;
}

int lite_workers(struct ob_store *store, const char *target, struct ob_arena *arena,
		 struct ob_worker **ret_workers, size_t *ret_count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct lite_rows rows = { .arena = arena, .size = sizeof(struct ob_worker) };
	sqlite3_stmt *stmt;
	int r = lite_ready(s, false, err);

	if (r == 0)
		r = prepare(s, LITE_workers, target, NULL, &stmt, err);
	if (r == 0)
		r = read_rows(s, LITE_workers, &rows, err);
	if (r < 0)
		return r;
	*ret_workers = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

int lite_partitions(struct ob_store *store, const char *target, struct ob_arena *arena,
		    struct ob_partition **ret_partitions, size_t *ret_count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct lite_rows rows = { .arena = arena, .size = sizeof(struct ob_partition) };
	sqlite3_stmt *stmt;
	int r = lite_ready(s, false, err);

	if (r == 0)
		r = prepare(s, LITE_partitions, target, NULL, &stmt, err);
	if (r == 0)
		r = read_rows(s, LITE_partitions, &rows, err);
	if (r < 0)
		return r;
	*ret_partitions = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

static int seed(struct lite_store *s, const char *target, struct ob_err *err)
{
	static const enum lite_id steps[] = { LITE_seed, LITE_prune };
	sqlite3_stmt *stmt;
	int64_t count;
	int r = lite_meta(s, "partition_count", &count, err);

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && r >= 0; i++) {
		r = prepare(s, steps[i], target, NULL, &stmt, err);
		if (r < 0)
			break;
		lite_bind_int(stmt, ":count", count);
		r = lite_run(s, steps[i], err);
	}
	return r < 0 ? r : (int)count;
}

int lite_seed(struct ob_store *store, const char *target, uint32_t *ret_count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_begin(s, err);

	if (r < 0)
		return r;
	r = lite_end(s, seed(s, target, err), err);
	if (r < 0)
		return r;
	*ret_count = (uint32_t)r;
	return 0;
}

static int by_partition(const void *a, const void *b)
{
	const struct ob_lease *x = a, *y = b;

	return x->partition < y->partition ? -1 : x->partition > y->partition;
}

/* take and renew: a statement that returns the leases. */
static int change_leases(struct lite_store *s, enum lite_id id, struct lite_rows *rows,
			 struct ob_err *err)
{
	int r = read_rows(s, id, rows, err);

	if (r == 0 && rows->count)
		qsort(rows->data, rows->count, rows->size, by_partition);
	return r;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own nine parameters */
int lite_take(struct ob_store *store, const char *target, const struct ob_uuid *owner,
	      uint32_t want, int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
	      size_t *ret_count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct lite_rows rows = { .arena = arena, .size = sizeof(struct ob_lease) };
	sqlite3_stmt *stmt;
	int r = lite_begin(s, err);

	if (r < 0)
		return r;
	r = prepare(s, LITE_take, target, owner, &stmt, err);
	if (r == 0) {
		lite_bind_int(stmt, ":want", want);
		lite_bind_int(stmt, ":ttl", lite_us(ttl_ms));
		r = change_leases(s, LITE_take, &rows, err);
	}
	r = lite_end(s, r, err);
	if (r < 0)
		return r;
	*ret_leases = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int lite_renew(struct ob_store *store, const char *target, const struct ob_uuid *owner,
	       int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
	       size_t *ret_count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct lite_rows rows = { .arena = arena, .size = sizeof(struct ob_lease) };
	sqlite3_stmt *stmt;
	int r = lite_begin(s, err);

	if (r < 0)
		return r;
	r = prepare(s, LITE_renew, target, owner, &stmt, err);
	if (r == 0) {
		lite_bind_int(stmt, ":ttl", lite_us(ttl_ms));
		r = change_leases(s, LITE_renew, &rows, err);
	}
	r = lite_end(s, r, err);
	if (r < 0)
		return r;
	*ret_leases = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

static int release(struct lite_store *s, const char *target, const struct ob_uuid *owner,
		   const uint32_t *partitions, size_t count, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = prepare(s, LITE_release, target, owner, &stmt, err);

	for (size_t i = 0; i < count && r >= 0; i++) {
		lite_bind_int(stmt, ":partition", partitions[i]);
		r = lite_run(s, LITE_release, err);
	}
	return r;
}

int lite_release(struct ob_store *store, const char *target, const struct ob_uuid *owner,
		 const uint32_t *partitions, size_t count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_begin(s, err);

	if (r < 0)
		return r;
	r = lite_end(s, release(s, target, owner, partitions, count, err), err);
	return r < 0 ? r : 0;
}
