/* SPDX-License-Identifier: MIT */
/* Workers and partition leases of the SQLite store. */
#include "store/sqlite.h"

static int out_of_memory(enum ob_sqlite_id id, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "%s: out of memory",
			  ob_sqlite_doing(id));
}

/* The bindings that most of these statements share. */
static int prepare(struct ob_sqlite *s, enum ob_sqlite_id id, const char *target,
		   const struct ob_uuid *owner, sqlite3_stmt **ret_stmt, struct ob_err *err)
{
	int r = ob_sqlite_prepare(s, id, ret_stmt, err);

	if (r < 0)
		return r;
	ob_sqlite_bind_text(*ret_stmt, ":target", target);
	ob_sqlite_bind_int(*ret_stmt, ":now", ob_sqlite_now(s));
	if (owner)
		ob_sqlite_bind_uuid(*ret_stmt, ":owner", owner);
	return 0;
}

static int beat(struct ob_sqlite *s, const struct ob_worker *worker, int64_t ttl_ms,
		struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = prepare(s, OB_SQLITE_forget_workers, NULL, NULL, &stmt, err);

	if (r == 0)
		r = ob_sqlite_run(s, OB_SQLITE_forget_workers, err);
	if (r >= 0)
		r = prepare(s, OB_SQLITE_beat, NULL, NULL, &stmt, err);
	if (r < 0)
		return r;
	ob_sqlite_bind_uuid(stmt, ":id", &worker->id);
	ob_sqlite_bind_str(stmt, ":target", worker->target);
	ob_sqlite_bind_str(stmt, ":hostname", worker->hostname.p ? worker->hostname : OB_STR(""));
	ob_sqlite_bind_int(stmt, ":pid", worker->pid);
	ob_sqlite_bind_int(stmt, ":ttl", ttl_ms * 1000);
	ob_sqlite_bind_int(stmt, ":published", (int64_t)worker->published);
	ob_sqlite_bind_int(stmt, ":failed", (int64_t)worker->failed);
	return ob_sqlite_run(s, OB_SQLITE_beat, err);
}

int ob_sqlite_beat(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
		   struct ob_err *err)
{
	struct ob_sqlite *s = (struct ob_sqlite *)store;
	int r = ob_sqlite_begin(s, err);

	if (r < 0)
		return r;
	r = ob_sqlite_end(s, beat(s, worker, ttl_ms, err), err);
	return r < 0 ? r : 0;
}

static int leave(struct ob_sqlite *s, const char *target, const struct ob_uuid *worker,
		 struct ob_err *err)
{
	static const enum ob_sqlite_id steps[] = { OB_SQLITE_leave_leases, OB_SQLITE_leave_worker };
	sqlite3_stmt *stmt;
	int r = 0;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && r >= 0; i++) {
		r = prepare(s, steps[i], target, worker, &stmt, err);
		if (r == 0)
			r = ob_sqlite_run(s, steps[i], err);
	}
	return r;
}

int ob_sqlite_leave(struct ob_store *store, const char *target, const struct ob_uuid *worker,
		    struct ob_err *err)
{
	struct ob_sqlite *s = (struct ob_sqlite *)store;
	int r = ob_sqlite_begin(s, err);

	if (r < 0)
		return r;
	r = ob_sqlite_end(s, leave(s, target, worker, err), err);
	return r < 0 ? r : 0;
}

/*
 * Rows of a statement become an array in the arena. Its size is not known
 * before, so it doubles; what it leaves behind dies with the arena.
 */
struct rows {
	struct ob_arena *arena;
	size_t size; /* of one */
	char *data;
	size_t count, capacity;
};

static void *rows_add(struct rows *rows)
{
	if (rows->count == rows->capacity) {
		size_t capacity = rows->capacity ? rows->capacity * 2 : 32;
		char *more = ob_arena_alloc(rows->arena, capacity * rows->size);

		if (!more)
			return NULL;
		if (rows->count)
			memcpy(more, rows->data, rows->count * rows->size);
		rows->data = more;
		rows->capacity = capacity;
	}
	return rows->data + rows->count++ * rows->size;
}

static bool read_uuid(sqlite3_stmt *stmt, int column, struct ob_uuid *ret)
{
	return ob_uuid_scan(ob_sqlite_str(stmt, column), ret);
}

static bool read_worker(sqlite3_stmt *stmt, struct rows *rows)
{
	struct ob_worker *w = rows_add(rows);

	if (!w)
		return false;
	(void)read_uuid(stmt, 0, &w->id);
	w->pid = sqlite3_column_int(stmt, 3);
	w->started_at_us = sqlite3_column_int64(stmt, 4);
	w->heartbeat_until_us = sqlite3_column_int64(stmt, 5);
	w->published = (uint64_t)sqlite3_column_int64(stmt, 6);
	w->failed = (uint64_t)sqlite3_column_int64(stmt, 7);
	return ob_arena_copy(rows->arena, ob_sqlite_str(stmt, 1), &w->target) &&
	       ob_arena_copy(rows->arena, ob_sqlite_str(stmt, 2), &w->hostname);
}

static bool read_partition(sqlite3_stmt *stmt, struct rows *rows, int64_t now)
{
	struct ob_partition *p = rows_add(rows);

	if (!p)
		return false;
	p->number = (uint32_t)sqlite3_column_int64(stmt, 1);
	bool owned = read_uuid(stmt, 2, &p->owner);
	p->epoch = (uint64_t)sqlite3_column_int64(stmt, 3);
	p->until_us = sqlite3_column_int64(stmt, 4);
	p->leased = owned && p->until_us > now;
	return ob_arena_copy(rows->arena, ob_sqlite_str(stmt, 0), &p->target);
}

static bool read_lease(sqlite3_stmt *stmt, struct rows *rows)
{
	struct ob_lease *lease = rows_add(rows);

	if (!lease)
		return false;
	lease->partition = (uint32_t)sqlite3_column_int64(stmt, 0);
	lease->epoch = (uint64_t)sqlite3_column_int64(stmt, 1);
	return true;
}

static bool read_row(enum ob_sqlite_id id, sqlite3_stmt *stmt, struct rows *rows, int64_t now)
{
	if (id == OB_SQLITE_workers)
		return read_worker(stmt, rows);
	if (id == OB_SQLITE_partitions)
		return read_partition(stmt, rows, now);
	return read_lease(stmt, rows);
}

/* Step a prepared statement to its end. */
static int read_rows(struct ob_sqlite *s, enum ob_sqlite_id id, struct rows *rows,
		     struct ob_err *err)
{
	int64_t now = ob_sqlite_now(s);
	int r;

	while ((r = ob_sqlite_step(s, id, err)) > 0) {
		if (!read_row(id, s->stmt[id], rows, now)) {
			ob_sqlite_reset(s, id);
			return out_of_memory(id, err);
		}
	}
	return r;
}

int ob_sqlite_workers(struct ob_store *store, const char *target, struct ob_arena *arena,
		      struct ob_worker **ret_workers, size_t *ret_count, struct ob_err *err)
{
	struct ob_sqlite *s = (struct ob_sqlite *)store;
	struct rows rows = { .arena = arena, .size = sizeof(struct ob_worker) };
	sqlite3_stmt *stmt;
	int r = ob_sqlite_ready(s, false, err);

	if (r == 0)
		r = prepare(s, OB_SQLITE_workers, target, NULL, &stmt, err);
	if (r == 0)
		r = read_rows(s, OB_SQLITE_workers, &rows, err);
	if (r < 0)
		return r;
	*ret_workers = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

int ob_sqlite_partitions(struct ob_store *store, const char *target, struct ob_arena *arena,
			 struct ob_partition **ret_partitions, size_t *ret_count,
			 struct ob_err *err)
{
	struct ob_sqlite *s = (struct ob_sqlite *)store;
	struct rows rows = { .arena = arena, .size = sizeof(struct ob_partition) };
	sqlite3_stmt *stmt;
	int r = ob_sqlite_ready(s, false, err);

	if (r == 0)
		r = prepare(s, OB_SQLITE_partitions, target, NULL, &stmt, err);
	if (r == 0)
		r = read_rows(s, OB_SQLITE_partitions, &rows, err);
	if (r < 0)
		return r;
	*ret_partitions = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

static int seed(struct ob_sqlite *s, const char *target, struct ob_err *err)
{
	static const enum ob_sqlite_id steps[] = { OB_SQLITE_seed, OB_SQLITE_prune };
	sqlite3_stmt *stmt;
	int64_t count;
	int r = ob_sqlite_meta(s, "partition_count", &count, err);

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && r >= 0; i++) {
		r = prepare(s, steps[i], target, NULL, &stmt, err);
		if (r < 0)
			break;
		ob_sqlite_bind_int(stmt, ":count", count);
		r = ob_sqlite_run(s, steps[i], err);
	}
	return r < 0 ? r : (int)count;
}

int ob_sqlite_seed(struct ob_store *store, const char *target, uint32_t *ret_count,
		   struct ob_err *err)
{
	struct ob_sqlite *s = (struct ob_sqlite *)store;
	int r = ob_sqlite_begin(s, err);

	if (r < 0)
		return r;
	r = ob_sqlite_end(s, seed(s, target, err), err);
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
static int change_leases(struct ob_sqlite *s, enum ob_sqlite_id id, struct rows *rows,
			 struct ob_err *err)
{
	int r = read_rows(s, id, rows, err);

	if (r == 0 && rows->count)
		qsort(rows->data, rows->count, rows->size, by_partition);
	return r;
}

int ob_sqlite_take(struct ob_store *store, const char *target, const struct ob_uuid *owner,
		   uint32_t want, int64_t ttl_ms, struct ob_arena *arena,
		   struct ob_lease **ret_leases, size_t *ret_count, struct ob_err *err)
{
	struct ob_sqlite *s = (struct ob_sqlite *)store;
	struct rows rows = { .arena = arena, .size = sizeof(struct ob_lease) };
	sqlite3_stmt *stmt;
	int r = ob_sqlite_begin(s, err);

	if (r < 0)
		return r;
	r = prepare(s, OB_SQLITE_take, target, owner, &stmt, err);
	if (r == 0) {
		ob_sqlite_bind_int(stmt, ":want", want);
		ob_sqlite_bind_int(stmt, ":ttl", ttl_ms * 1000);
		r = change_leases(s, OB_SQLITE_take, &rows, err);
	}
	r = ob_sqlite_end(s, r, err);
	if (r < 0)
		return r;
	*ret_leases = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

int ob_sqlite_renew(struct ob_store *store, const char *target, const struct ob_uuid *owner,
		    int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
		    size_t *ret_count, struct ob_err *err)
{
	struct ob_sqlite *s = (struct ob_sqlite *)store;
	struct rows rows = { .arena = arena, .size = sizeof(struct ob_lease) };
	sqlite3_stmt *stmt;
	int r = ob_sqlite_begin(s, err);

	if (r < 0)
		return r;
	r = prepare(s, OB_SQLITE_renew, target, owner, &stmt, err);
	if (r == 0) {
		ob_sqlite_bind_int(stmt, ":ttl", ttl_ms * 1000);
		r = change_leases(s, OB_SQLITE_renew, &rows, err);
	}
	r = ob_sqlite_end(s, r, err);
	if (r < 0)
		return r;
	*ret_leases = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

static int release(struct ob_sqlite *s, const char *target, const struct ob_uuid *owner,
		   const uint32_t *partitions, size_t count, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = prepare(s, OB_SQLITE_release, target, owner, &stmt, err);

	for (size_t i = 0; i < count && r >= 0; i++) {
		ob_sqlite_bind_int(stmt, ":partition", partitions[i]);
		r = ob_sqlite_run(s, OB_SQLITE_release, err);
	}
	return r;
}

int ob_sqlite_release(struct ob_store *store, const char *target, const struct ob_uuid *owner,
		      const uint32_t *partitions, size_t count, struct ob_err *err)
{
	struct ob_sqlite *s = (struct ob_sqlite *)store;

	if (count == 0)
		return 0;
	int r = ob_sqlite_begin(s, err);
	if (r < 0)
		return r;
	r = ob_sqlite_end(s, release(s, target, owner, partitions, count, err), err);
	return r < 0 ? r : 0;
}
