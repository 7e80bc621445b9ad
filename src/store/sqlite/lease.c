/* SPDX-License-Identifier: MIT */
/* Workers and partition leases of the SQLite store. */
#include "store/sqlite/lease.h"

#include "store/sqlite/schema.h"
#include "store/sqlite/stmt.h"

/* ---- workers --------------------------------------------------------- */

/* What the worker had counted at its last beat. One that was removed has no row; this connection
 * may know it still. */
static int counted_before(struct lite_store *s, const struct ob_worker *worker,
			  uint64_t *ret_published, uint64_t *ret_failed, struct ob_err *err)
{
	bool same = ob_uuid_eq(&s->beaten.worker, &worker->id);
	int r = lite_bind(s, LITE_beat_before, LITE_ARGS(LITE_UUID(":id", &worker->id)), err);

	if (r == 0)
		r = lite_step(s, LITE_beat_before, err);
	if (r < 0)
		return r;
	*ret_published = same ? s->beaten.published : 0;
	*ret_failed = same ? s->beaten.failed : 0;
	if (r > 0) {
		*ret_published = (uint64_t)sqlite3_column_int64(s->stmt[LITE_beat_before], 0);
		*ret_failed = (uint64_t)sqlite3_column_int64(s->stmt[LITE_beat_before], 1);
		lite_reset(s, LITE_beat_before);
	}
	return 0;
}

static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Run beat or count_minute. */
static int write_worker(struct lite_store *s, enum lite_id id, const struct ob_worker *worker,
			uint64_t published, uint64_t failed, int64_t ttl_ms, struct ob_err *err)
{
	int r = lite_run(s, id,
			 LITE_ARGS(LITE_UUID(":id", &worker->id),
				   LITE_STR(":reader", worker->reader),
				   LITE_STR(":hostname", worker->hostname),
				   LITE_INT(":pid", worker->pid), LITE_INT(":ttl", lite_us(ttl_ms)),
				   LITE_INT(":published", published), LITE_INT(":failed", failed)),
			 err);

	return r < 0 ? r : 0;
}

static int beat(struct lite_store *s, const struct ob_worker *worker, int64_t ttl_ms,
		struct ob_err *err)
{
	uint64_t published = 0, failed = 0;
	int r = counted_before(s, worker, &published, &failed, err);

	if (r == 0)
		r = write_worker(s, LITE_beat, worker, worker->published, worker->failed, ttl_ms,
				 err);
	published = grown(worker->published, published);
	failed = grown(worker->failed, failed);
	if (r == 0 && published + failed > 0)
		r = write_worker(s, LITE_count_minute, worker, published, failed, 0, err);
	return r;
}

int lite_beat(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
	      struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_begin(s, "writing the heartbeat", err);

	if (r == 0)
		r = lite_end(s, beat(s, worker, ttl_ms, err), err);
	if (r < 0)
		return r;
	s->beaten.worker = worker->id;
	s->beaten.published = worker->published;
	s->beaten.failed = worker->failed;
	return 0;
}

/* Run these statements about a worker; what the last one changed. */
static int run_steps(struct lite_store *s, const enum lite_id steps[2], const char *reader,
		     const struct ob_uuid *worker, struct ob_err *err)
{
	const struct lite_arg args[] = { LITE_TEXT(":reader", reader),
					 LITE_UUID(":id", worker),
					 { NULL, 0, 0, OB_STR_NULL } };
	int r = lite_run(s, steps[0], args, err);

	return r < 0 ? r : lite_run(s, steps[1], args, err);
}

/* SQLite has no lock that ends with a connection: only time tells that a worker is gone. */
int lite_reap(struct ob_store *store, const char *reader, const struct ob_uuid *self,
	      uint32_t *ret_gone, struct ob_err *err)
{
	static const enum lite_id steps[] = { LITE_reap_leases, LITE_reap_workers };
	struct lite_store *s = (struct lite_store *)store;
	int64_t any = 0;
	int r = lite_ready(s, "removing dead workers", false, err);

	/* Mostly there is none, and nobody is kept from writing. */
	if (r == 0)
		r = lite_value(s, LITE_any_gone,
			       LITE_ARGS(LITE_TEXT(":reader", reader), LITE_UUID(":id", self)),
			       &any, err);
	if (r >= 0 && any)
		r = lite_begin(s, "removing dead workers", err);
	if (r >= 0 && any)
		r = lite_end(s, run_steps(s, steps, reader, self, err), err);
	if (r < 0)
		return r;
	*ret_gone = any ? (uint32_t)r : 0;
	return 0;
}

int lite_leave(struct ob_store *store, const char *reader, const struct ob_uuid *worker,
	       struct ob_err *err)
{
	static const enum lite_id steps[] = { LITE_leave_leases, LITE_leave_worker };
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_begin(s, "leaving", err);

	if (r == 0)
		r = lite_end(s, run_steps(s, steps, reader, worker, err), err);
	return r < 0 ? r : 0;
}

/* ---- rows of workers, partitions and leases -------------------------- */

static bool read_worker(sqlite3_stmt *stmt, struct lite_rows *rows)
{
	struct ob_worker *w = lite_rows_add(rows);

	if (!w)
		return false;
	(void)ob_uuid_scan(lite_str(stmt, 0), &w->id);
	w->pid = sqlite3_column_int(stmt, 3);
	w->started_at_us = sqlite3_column_int64(stmt, 4);
	w->heartbeat_until_us = sqlite3_column_int64(stmt, 5);
	w->published = (uint64_t)sqlite3_column_int64(stmt, 6);
	w->failed = (uint64_t)sqlite3_column_int64(stmt, 7);
	return ob_arena_copy(rows->arena, lite_str(stmt, 1), &w->reader) &&
	       ob_arena_copy(rows->arena, lite_str(stmt, 2), &w->hostname);
}

static bool read_partition(sqlite3_stmt *stmt, struct lite_rows *rows)
{
	struct ob_partition *p = lite_rows_add(rows);

	if (!p)
		return false;
	p->number = (uint32_t)sqlite3_column_int64(stmt, 1);
	(void)ob_uuid_scan(lite_str(stmt, 2), &p->owner);
	p->epoch = (uint64_t)sqlite3_column_int64(stmt, 3);
	p->until_us = sqlite3_column_int64(stmt, 4);
	p->leased = sqlite3_column_int(stmt, 5);
	p->pos = sqlite3_column_int64(stmt, 6);
	p->moved_at_us = sqlite3_column_int64(stmt, 7);
	return ob_arena_copy(rows->arena, lite_str(stmt, 0), &p->reader);
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

/* All rows of a statement. */
static int read_rows(struct lite_store *s, enum lite_id id, const struct lite_arg *args,
		     bool (*read)(sqlite3_stmt *stmt, struct lite_rows *rows),
		     struct lite_rows *rows, struct ob_err *err)
{
	int r = lite_bind(s, id, args, err);

	while (r >= 0 && (r = lite_step(s, id, err)) > 0) {
		if (!read(s->stmt[id], rows))
			r = lite_oom(s, err);
	}
	lite_reset(s, id);
	return r;
}

int lite_workers(struct ob_store *store, const char *reader, struct ob_arena *arena,
		 struct ob_worker **ret_workers, size_t *ret_count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct lite_rows rows = { .arena = arena, .size = sizeof(struct ob_worker) };
	int r = lite_ready(s, "listing workers", false, err);

	if (r == 0)
		r = read_rows(s, LITE_workers, LITE_ARGS(LITE_TEXT(":reader", reader)), read_worker,
			      &rows, err);
	if (r < 0)
		return r;
	*ret_workers = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

int lite_partitions(struct ob_store *store, const char *reader, struct ob_arena *arena,
		    struct ob_partition **ret_partitions, size_t *ret_count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct lite_rows rows = { .arena = arena, .size = sizeof(struct ob_partition) };
	int r = lite_ready(s, "listing partitions", false, err);

	if (r == 0)
		r = read_rows(s, LITE_partitions, LITE_ARGS(LITE_TEXT(":reader", reader)),
			      read_partition, &rows, err);
	if (r < 0)
		return r;
	*ret_partitions = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

/* ---- leases ---------------------------------------------------------- */

int lite_seed_leases(struct lite_store *s, const char *reader, struct ob_err *err)
{
	int64_t count = 0;
	int r = lite_meta(s, "partition_count", &count, err);
	const struct lite_arg args[] = { LITE_TEXT(":reader", reader),
					 LITE_INT(":count", count),
					 { NULL, 0, 0, OB_STR_NULL } };

	if (r == 0)
		r = lite_run(s, LITE_seed, args, err);
	if (r >= 0)
		r = lite_run(s, LITE_prune_leases, args, err);
	return r < 0 ? r : (int)count;
}

int lite_seed(struct ob_store *store, const char *reader, uint32_t *ret_count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_begin(s, "making lease rows", err);

	if (r == 0)
		r = lite_end(s, lite_seed_leases(s, reader, err), err);
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
static int change_leases(struct lite_store *s, enum lite_id id, const struct lite_arg *args,
			 struct lite_rows *rows, struct ob_err *err)
{
	int r = lite_begin(s, id == LITE_take ? "taking leases" : "renewing leases", err);

	if (r == 0)
		r = lite_end(s, read_rows(s, id, args, read_lease, rows, err), err);
	if (r == 0 && rows->count)
		qsort(rows->data, rows->count, rows->size, by_partition);
	return r;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own nine parameters */
int lite_take(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
	      uint32_t want, int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
	      size_t *ret_count, struct ob_err *err)
{
	struct lite_rows rows = { .arena = arena, .size = sizeof(struct ob_lease) };
	int r = change_leases((struct lite_store *)store, LITE_take,
			      LITE_ARGS(LITE_TEXT(":reader", reader), LITE_UUID(":id", owner),
					LITE_INT(":want", want), LITE_INT(":ttl", lite_us(ttl_ms))),
			      &rows, err);

	if (r < 0)
		return r;
	*ret_leases = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int lite_renew(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
	       int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
	       size_t *ret_count, struct ob_err *err)
{
	struct lite_rows rows = { .arena = arena, .size = sizeof(struct ob_lease) };
	int r = change_leases((struct lite_store *)store, LITE_renew,
			      LITE_ARGS(LITE_TEXT(":reader", reader), LITE_UUID(":id", owner),
					LITE_INT(":ttl", lite_us(ttl_ms))),
			      &rows, err);

	if (r < 0)
		return r;
	*ret_leases = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

int lite_release(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		 const uint32_t *partitions, size_t count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_begin(s, "releasing leases", err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count && r >= 0; i++)
		r = lite_run(s, LITE_release,
			     LITE_ARGS(LITE_TEXT(":reader", reader), LITE_UUID(":id", owner),
				       LITE_INT(":partition", partitions[i])),
			     err);
	r = lite_end(s, r, err);
	return r < 0 ? r : 0;
}

static int free_some(struct lite_store *s, const struct lite_arg *args, struct ob_err *err)
{
	int r = lite_run(s, LITE_forget_holders, args, err);

	return r < 0 ? r : lite_run(s, LITE_free_leases, args, err);
}

int lite_free_leases(struct ob_store *store, const char *reader, const uint32_t *partitions,
		     size_t count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_begin(s, "freeing leases", err);

	if (r < 0)
		return r;
	if (count == 0)
		r = free_some(s, LITE_ARGS(LITE_TEXT(":reader", reader)), err);
	for (size_t i = 0; i < count && r >= 0; i++)
		r = free_some(s,
			      LITE_ARGS(LITE_TEXT(":reader", reader),
					LITE_INT(":partition", partitions[i])),
			      err);
	r = lite_end(s, r, err);
	return r < 0 ? r : 0;
}
