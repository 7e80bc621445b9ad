/* SPDX-License-Identifier: MIT */
/* Workers and partition leases of the PostgreSQL store. */
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"
#include "store/postgres/stmt.h"

/* ---- workers --------------------------------------------------------- */

static bool is_nil(const struct ob_uuid *id)
{
	static const struct ob_uuid nil;

	return memcmp(id, &nil, sizeof(nil)) == 0;
}

static bool same_id(const struct ob_uuid *a, const struct ob_uuid *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Of its advisory lock: ids are random, so half of one is enough. */
static int64_t session_key(const struct ob_uuid *worker)
{
	return ob_pg_get((const char *)worker->b, 8) ^ ob_pg_get((const char *)worker->b + 8, 8);
}

/*
 * The lock lives as long as the connection, so that others know at once when it is gone. It is not
 * asked for twice: the server counts. A pooler's connections are not ours.
 */
static int hold_session(struct pg_store *s, const struct ob_uuid *worker, struct ob_err *err)
{
	struct pg_params p = { 0 };
	int r = pg_ready(s, err);

	if (r < 0 || s->pooled || same_id(&s->session, worker))
		return r;
	pg_int(&p, session_key(worker));
	r = pg_run_one(s, PG_session_lock, &p, err);
	if (r == 0 && pg_get_int(s->results[0], 0, 0))
		s->session = *worker;
	return r;
}

static void beat_params(const struct pg_store *s, const struct ob_worker *worker, int64_t ttl_ms,
			struct pg_params *p)
{
	bool known = same_id(&s->beaten, &worker->id);

	pg_uuid(p, &worker->id);
	pg_str(p, worker->reader);
	pg_str(p, worker->hostname);
	pg_int(p, worker->pid);
	pg_int(p, pg_us(ttl_ms));
	pg_int(p, (int64_t)worker->published);
	pg_int(p, (int64_t)worker->failed);
	pg_int(p, known ? (int64_t)s->beaten_published : 0);
	pg_int(p, known ? (int64_t)s->beaten_failed : 0);
	if (same_id(&s->session, &worker->id))
		pg_int(p, session_key(&worker->id));
	else
		pg_str(p, OB_STR_NULL);
}

int pg_beat(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
	    struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 };
	int r = hold_session(s, &worker->id, err);

	if (r == 0)
		r = pg_begin_batch(s, true, err);
	if (r < 0)
		return r;
	beat_params(s, worker, ttl_ms, &p);
	r = pg_add(s, PG_beat, &p, err);
	if (r == 0)
		r = pg_add(s, PG_cache, NULL, err);
	r = pg_finish(s, r, err);
	if (r < 0)
		return r;
	s->beaten = worker->id;
	s->beaten_published = worker->published;
	s->beaten_failed = worker->failed;
	/* Someone may set it at any time, and order would be gone. */
	if (PQntuples(s->results[1]) == 1)
		r = pg_check_cache(s, pg_get_int(s->results[1], 0, 0), err);
	pg_clear(s);
	return r;
}

int pg_reap(struct ob_store *store, const char *reader, const struct ob_uuid *self,
	    uint32_t *ret_gone, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 };
	int r = pg_begin_batch(s, true, err);

	if (r < 0)
		return r;
	pg_text(&p, reader);
	pg_uuid(&p, self);
	r = pg_finish(s, pg_add(s, PG_reap, &p, err), err);
	if (r == 0)
		*ret_gone = (uint32_t)pg_get_int(s->results[0], 0, 0);
	pg_clear(s);
	return r;
}

int pg_leave(struct ob_store *store, const char *reader, const struct ob_uuid *worker,
	     struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 }, unlock = { 0 };
	int r = pg_begin(s, err);

	if (r < 0)
		return r;
	pg_text(&p, reader);
	pg_uuid(&p, worker);
	r = pg_add(s, PG_leave_leases, &p, err);
	if (r == 0)
		r = pg_add(s, PG_leave_worker, &p, err);
	if (r == 0 && !is_nil(worker) && same_id(&s->session, worker)) {
		pg_int(&unlock, session_key(worker));
		r = pg_add(s, PG_session_unlock, &unlock, err);
	}
	r = pg_finish(s, r, err);
	if (r == 0 && same_id(&s->session, worker))
		s->session = (struct ob_uuid){ 0 };
	return r;
}

static bool read_worker(const PGresult *r, int row, struct ob_arena *arena, void *to)
{
	struct ob_worker *w = to;

	(void)pg_get_uuid(r, row, 0, &w->id);
	w->pid = (int32_t)pg_get_int(r, row, 3);
	w->started_at_us = pg_get_time(r, row, 4);
	w->heartbeat_until_us = pg_get_time(r, row, 5);
	w->published = (uint64_t)pg_get_int(r, row, 6);
	w->failed = (uint64_t)pg_get_int(r, row, 7);
	return ob_arena_copy(arena, pg_get_str(r, row, 1), &w->reader) &&
	       ob_arena_copy(arena, pg_get_str(r, row, 2), &w->hostname);
}

int pg_workers(struct ob_store *store, const char *reader, struct ob_arena *arena,
	       struct ob_worker **ret_workers, size_t *ret_count, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 };

	pg_text(&p, reader);
	int r = pg_run_one(s, PG_workers, &p, err);
	if (r < 0)
		return r;
	*ret_workers = pg_collect(s, 0, read_worker, sizeof(**ret_workers), arena, ret_count);
	return *ret_workers ? 0 : pg_oom("reading rows", err);
}

/* ---- leases ---------------------------------------------------------- */

static bool read_partition(const PGresult *r, int row, struct ob_arena *arena, void *to)
{
	struct ob_partition *part = to;

	part->number = (uint32_t)pg_get_int(r, row, 1);
	(void)pg_get_uuid(r, row, 2, &part->owner);
	part->epoch = (uint64_t)pg_get_int(r, row, 3);
	part->until_us = pg_get_time(r, row, 4);
	part->leased = pg_get_int(r, row, 5) != 0;
	part->pos = pg_get_int(r, row, 6);
	part->moved_at_us = pg_get_time(r, row, 7);
	return ob_arena_copy(arena, pg_get_str(r, row, 0), &part->reader);
}

int pg_partitions(struct ob_store *store, const char *reader, struct ob_arena *arena,
		  struct ob_partition **ret_partitions, size_t *ret_count, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 };

	pg_text(&p, reader);
	int r = pg_run_one(s, PG_partitions, &p, err);
	if (r < 0)
		return r;
	*ret_partitions =
		pg_collect(s, 0, read_partition, sizeof(**ret_partitions), arena, ret_count);
	return *ret_partitions ? 0 : pg_oom("reading rows", err);
}

int pg_seed(struct ob_store *store, const char *reader, uint32_t *ret_count, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 };
	int r = pg_begin(s, err);

	if (r < 0)
		return r;
	pg_text(&p, reader);
	r = pg_add(s, PG_seed, &p, err);
	if (r == 0)
		r = pg_add(s, PG_prune, &p, err);
	if (r == 0)
		r = pg_add(s, PG_partition_count, NULL, err);
	r = pg_finish(s, r, err);
	if (r < 0)
		return r;
	if (PQntuples(s->results[2]) != 1)
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "table '%s' has no 'partition_count': it was not made by `outbox "
				  "setup`",
				  s->base.layout->table[OB_TABLE_meta]);
	*ret_count = (uint32_t)pg_get_int(s->results[2], 0, 0);
	pg_clear(s);
	return 0;
}

static bool read_lease(const PGresult *r, int row, struct ob_arena *arena, void *to)
{
	struct ob_lease *lease = to;

	(void)arena;
	lease->partition = (uint32_t)pg_get_int(r, row, 0);
	lease->epoch = (uint64_t)pg_get_int(r, row, 1);
	return true;
}

static int by_partition(const void *a, const void *b)
{
	const struct ob_lease *x = a, *y = b;

	return x->partition < y->partition ? -1 : x->partition > y->partition;
}

/* take and renew: a statement that returns the leases. */
static int change_leases(struct pg_store *s, enum pg_id id, struct pg_params *p,
			 struct ob_arena *arena, struct ob_lease **ret_leases, size_t *ret_count,
			 struct ob_err *err)
{
	int r = pg_run_one(s, id, p, err);

	if (r < 0)
		return r;
	*ret_leases = pg_collect(s, 0, read_lease, sizeof(**ret_leases), arena, ret_count);
	if (!*ret_leases)
		return pg_oom("reading leases", err);
	if (*ret_count > 0)
		qsort(*ret_leases, *ret_count, sizeof(**ret_leases), by_partition);
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own nine parameters */
int pg_take(struct ob_store *store, const char *reader, const struct ob_uuid *owner, uint32_t want,
	    int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases, size_t *ret_count,
	    struct ob_err *err)
{
	struct pg_params p = { 0 };

	pg_text(&p, reader);
	pg_uuid(&p, owner);
	pg_int(&p, want);
	pg_int(&p, pg_us(ttl_ms));
	return change_leases((struct pg_store *)store, PG_take, &p, arena, ret_leases, ret_count,
			     err);
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int pg_renew(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
	     int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
	     size_t *ret_count, struct ob_err *err)
{
	struct pg_params p = { 0 };

	pg_text(&p, reader);
	pg_uuid(&p, owner);
	pg_int(&p, pg_us(ttl_ms));
	return change_leases((struct pg_store *)store, PG_renew, &p, arena, ret_leases, ret_count,
			     err);
}

/* release and free_leases: some partitions of a reader. */
static int give_up(struct pg_store *s, enum pg_id id, struct pg_params *p,
		   const uint32_t *partitions, size_t count, struct ob_err *err)
{
	struct ob_pgarray *list = pg_ints(p);

	for (size_t i = 0; i < count; i++)
		ob_pgarray_int(list, partitions[i]);
	return pg_run_one(s, id, p, err);
}

int pg_release(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
	       const uint32_t *partitions, size_t count, struct ob_err *err)
{
	struct pg_params p = { 0 };

	pg_text(&p, reader);
	pg_uuid(&p, owner);
	return give_up((struct pg_store *)store, PG_release, &p, partitions, count, err);
}

int pg_free_leases(struct ob_store *store, const char *reader, const uint32_t *partitions,
		   size_t count, struct ob_err *err)
{
	struct pg_params p = { 0 };

	pg_text(&p, reader);
	return give_up((struct pg_store *)store, PG_free_leases, &p, partitions, count, err);
}
