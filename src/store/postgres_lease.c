/* SPDX-License-Identifier: MIT */
/* Workers and partition leases of the PostgreSQL store. */
#include "store/postgres.h"

int pg_beat(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
	    struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params forget = { 0 }, beat = { 0 };
	int r = pg_begin(s, err);

	if (r < 0)
		return r;
	pg_str(&forget, worker->target);
	pg_uuid(&forget, &worker->id);
	pg_uuid(&beat, &worker->id);
	pg_str(&beat, worker->target);
	pg_str(&beat, worker->hostname);
	pg_int(&beat, worker->pid);
	pg_int(&beat, pg_us(ttl_ms));
	pg_int(&beat, (int64_t)worker->published);
	pg_int(&beat, (int64_t)worker->failed);
	r = pg_add(s, PG_forget_workers, &forget, err);
	if (r == 0)
		r = pg_add(s, PG_beat, &beat, err);
	return pg_finish(s, r, err);
}

int pg_leave(struct ob_store *store, const char *target, const struct ob_uuid *worker,
	     struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 };
	int r = pg_begin(s, err);

	if (r < 0)
		return r;
	pg_text(&p, target);
	pg_uuid(&p, worker);
	r = pg_add(s, PG_leave_leases, &p, err);
	if (r == 0)
		r = pg_add(s, PG_leave_worker, &p, err);
	return pg_finish(s, r, err);
}

/* Zeroed memory for the rows of a result; NULL only when out of memory. */
static void *make_rows(struct ob_arena *arena, const PGresult *result, size_t size)
{
	return ob_arena_alloc(arena, ((size_t)PQntuples(result) + 1) * size);
}

int pg_workers(struct ob_store *store, const char *target, struct ob_arena *arena,
	       struct ob_worker **ret_workers, size_t *ret_count, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 };

	pg_text(&p, target);
	int r = pg_run_one(s, PG_workers, &p, err);
	if (r < 0)
		return r;
	const PGresult *found = s->results[0];
	int count = PQntuples(found);
	struct ob_worker *workers = make_rows(arena, found, sizeof(*workers));
	bool ok = workers != NULL;
	for (int i = 0; i < count && ok; i++) {
		struct ob_worker *w = &workers[i];

		(void)pg_get_uuid(found, i, 0, &w->id);
		w->pid = (int32_t)pg_get_int(found, i, 3);
		w->started_at_us = pg_get_time(found, i, 4);
		w->heartbeat_until_us = pg_get_time(found, i, 5);
		w->published = (uint64_t)pg_get_int(found, i, 6);
		w->failed = (uint64_t)pg_get_int(found, i, 7);
		ok = ob_arena_copy(arena, pg_get_str(found, i, 1), &w->target) &&
		     ob_arena_copy(arena, pg_get_str(found, i, 2), &w->hostname);
	}
	pg_clear(s);
	if (!ok)
		return pg_oom("listing workers", err);
	*ret_workers = workers;
	*ret_count = (size_t)count;
	return 0;
}

int pg_partitions(struct ob_store *store, const char *target, struct ob_arena *arena,
		  struct ob_partition **ret_partitions, size_t *ret_count, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 };

	pg_text(&p, target);
	int r = pg_run_one(s, PG_partitions, &p, err);
	if (r < 0)
		return r;
	const PGresult *found = s->results[0];
	int count = PQntuples(found);
	struct ob_partition *partitions = make_rows(arena, found, sizeof(*partitions));
	bool ok = partitions != NULL;
	for (int i = 0; i < count && ok; i++) {
		struct ob_partition *part = &partitions[i];

		part->number = (uint32_t)pg_get_int(found, i, 1);
		(void)pg_get_uuid(found, i, 2, &part->owner);
		part->epoch = (uint64_t)pg_get_int(found, i, 3);
		part->until_us = pg_get_time(found, i, 4);
		part->leased = pg_get_int(found, i, 5) != 0;
		ok = ob_arena_copy(arena, pg_get_str(found, i, 0), &part->target);
	}
	pg_clear(s);
	if (!ok)
		return pg_oom("listing partitions", err);
	*ret_partitions = partitions;
	*ret_count = (size_t)count;
	return 0;
}

int pg_seed(struct ob_store *store, const char *target, uint32_t *ret_count, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 };
	int r = pg_begin(s, err);

	if (r < 0)
		return r;
	pg_text(&p, target);
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

static int by_partition(const void *a, const void *b)
{
	const struct ob_lease *x = a, *y = b;

	return x->partition < y->partition ? -1 : x->partition > y->partition;
}

/* take and renew: a statement that returns the leases. */
static int change_leases(struct pg_store *s, enum pg_id id, const struct pg_params *p,
			 struct ob_arena *arena, struct ob_lease **ret_leases, size_t *ret_count,
			 struct ob_err *err)
{
	int r = pg_run_one(s, id, p, err);

	if (r < 0)
		return r;
	const PGresult *found = s->results[0];
	int count = PQntuples(found);
	struct ob_lease *leases = make_rows(arena, found, sizeof(*leases));
	for (int i = 0; i < count && leases; i++) {
		leases[i].partition = (uint32_t)pg_get_int(found, i, 0);
		leases[i].epoch = (uint64_t)pg_get_int(found, i, 1);
	}
	pg_clear(s);
	if (!leases)
		return pg_oom("reading leases", err);
	if (count > 0)
		qsort(leases, (size_t)count, sizeof(*leases), by_partition);
	*ret_leases = leases;
	*ret_count = (size_t)count;
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own nine parameters */
int pg_take(struct ob_store *store, const char *target, const struct ob_uuid *owner, uint32_t want,
	    int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases, size_t *ret_count,
	    struct ob_err *err)
{
	struct pg_params p = { 0 };

	pg_text(&p, target);
	pg_uuid(&p, owner);
	pg_int(&p, want);
	pg_int(&p, pg_us(ttl_ms));
	return change_leases((struct pg_store *)store, PG_take, &p, arena, ret_leases, ret_count,
			     err);
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int pg_renew(struct ob_store *store, const char *target, const struct ob_uuid *owner,
	     int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
	     size_t *ret_count, struct ob_err *err)
{
	struct pg_params p = { 0 };

	pg_text(&p, target);
	pg_uuid(&p, owner);
	pg_int(&p, pg_us(ttl_ms));
	return change_leases((struct pg_store *)store, PG_renew, &p, arena, ret_leases, ret_count,
			     err);
}

int pg_release(struct ob_store *store, const char *target, const struct ob_uuid *owner,
	       const uint32_t *partitions, size_t count, struct ob_err *err)
{
	struct ob_pgarray list = { 0 };
	struct pg_params p = { 0 };

	ob_pgarray_begin(&list, OB_PG_INT8);
	for (size_t i = 0; i < count; i++)
		ob_pgarray_int(&list, partitions[i]);
	pg_text(&p, target);
	pg_uuid(&p, owner);
	pg_array(&p, &list);
	int r = pg_run_one((struct pg_store *)store, PG_release, &p, err);
	ob_pgarray_done(&list);
	return r;
}
