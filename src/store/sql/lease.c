/* SPDX-License-Identifier: MIT */
/* Workers and partition leases. */
#include "base/cleanup.h"
#include "store/sql/ops.h"

enum { IDS_MAX = 1 << 20 };

/* ---- workers --------------------------------------------------------- */

int ob_sql_op_beat(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
		   struct ob_err *err)
{
	const struct ob_sql_driver *driver = store->ops->sql;
	/* A worker whose row was removed has counted before: this connection may know. */
	bool known = ob_uuid_eq(&store->beaten.worker, &worker->id);
	const struct ob_sql_arg args[] = {
		OB_ARG_UUID("id", &worker->id),
		OB_ARG_STR("reader", worker->reader),
		OB_ARG_STR("hostname", worker->hostname),
		OB_ARG_INT("pid", worker->pid),
		OB_ARG_MS("ttl", ttl_ms),
		OB_ARG_INT("published", worker->published),
		OB_ARG_INT("failed", worker->failed),
		OB_ARG_STR("state", worker->state.p ? worker->state : OB_STR("")),
		OB_ARG_INT("was_published", known ? store->beaten.published : 0),
		OB_ARG_INT("was_failed", known ? store->beaten.failed : 0),
		{ .name = NULL },
	};
	OB_CLEANUP(ob_sql_done) struct ob_sql q = { 0 };
	int r = driver->hold_session ? driver->hold_session(store, &worker->id, err) : 0;

	if (r < 0)
		return r;
	ob_sql_begin(&q, store, OB_SQL_BEAT, "writing the heartbeat");
	(void)ob_sql_add(&q, OB_SQL_hold_session, args);
	/* First: what it has counted before stands in the row that beat overwrites. */
	(void)ob_sql_add(&q, OB_SQL_count_minute, args);
	(void)ob_sql_add(&q, OB_SQL_beat, args);
	size_t numbering = OB_SQL_ADD0(&q, numbering);
	r = ob_sql_commit(&q, err);
	if (r < 0)
		return r;
	store->beaten.worker = worker->id;
	store->beaten.published = worker->published;
	store->beaten.failed = worker->failed;
	/* Someone may change it at any time, and order would be gone. */
	if (ob_sql_count(&q, numbering) == 1)
		r = driver->check_numbering(store, ob_sql_value(&q, numbering), err);
	return r;
}

/* The ids of workers that seem to be gone; they are copied. */
static int find_gone(struct ob_store *store, const char *reader, const struct ob_uuid *self,
		     struct ob_arena *arena, struct ob_sql_table *ids, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;
	struct ob_str id;

	ob_sql_begin(&q, store, OB_SQL_PEEK, "removing dead workers");
	size_t gone = OB_SQL_ADD(&q, gone_workers, OB_ARG_TEXT("reader", reader),
				 OB_ARG_UUID("self", self));
	int r = ob_sql_commit(&q, err);
	struct ob_sql_rows rows = ob_sql_rows(&q, gone);
	while (r == 0 && ob_sql_next(&rows)) {
		if (!ob_arena_copy(arena, ob_sql_str(&rows, 0), &id))
			r = ob_sql_oom(&q, err);
		ob_sql_table_str(ids, id);
	}
	return r;
}

/* Mostly nobody is gone: that is found by reading alone. What is removed is named, so that no row
 * of a worker that lives is locked; it is judged again then, for one may have come back. */
int ob_sql_op_reap(struct ob_store *store, const char *reader, const struct ob_uuid *self,
		   uint32_t *ret_gone, struct ob_err *err)
{
	OB_CLEANUP(ob_arena_done) struct ob_arena arena = OB_ARENA_INIT(IDS_MAX);
	OB_CLEANUP(ob_sql_table_done) struct ob_sql_table ids = OB_SQL_TABLE("u");
	OB_CLEANUP(ob_sql_done) struct ob_sql q = { 0 };
	int r = find_gone(store, reader, self, &arena, &ids, err);

	if (r < 0)
		return r;
	if (ids.count == 0) {
		*ret_gone = 0;
		return 0;
	}
	ob_sql_begin(&q, store, OB_SQL_BEAT, "removing dead workers");
	size_t gone = OB_SQL_ADD(&q, forget_workers, OB_ARG_LIST("ids", &ids));
	(void)OB_SQL_ADD(&q, free_gone_leases, OB_ARG_TEXT("reader", reader),
			 OB_ARG_LIST("ids", &ids));
	r = ob_sql_commit(&q, err);
	if (r == 0)
		*ret_gone = (uint32_t)ob_sql_changed(&q, gone);
	return r;
}

int ob_sql_op_leave(struct ob_store *store, const char *reader, const struct ob_uuid *worker,
		    struct ob_err *err)
{
	const struct ob_sql_arg args[] = {
		OB_ARG_TEXT("reader", reader),
		OB_ARG_UUID("id", worker),
		{ .name = NULL },
	};
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "leaving");
	(void)ob_sql_add(&q, OB_SQL_leave_leases, args);
	(void)ob_sql_add(&q, OB_SQL_leave_worker, args);
	(void)ob_sql_add(&q, OB_SQL_leave_session, args);
	int r = ob_sql_commit(&q, err);
	if (r == 0 && store->ops->sql->left_session)
		store->ops->sql->left_session(store, worker);
	return r;
}

static const struct ob_sql_column worker_columns[] = {
	OB_SQL_COLUMN(struct ob_worker, id, UUID),
	OB_SQL_COLUMN(struct ob_worker, reader, STR),
	OB_SQL_COLUMN(struct ob_worker, hostname, STR),
	OB_SQL_COLUMN(struct ob_worker, pid, INT),
	OB_SQL_COLUMN(struct ob_worker, started_at_us, TIME),
	OB_SQL_COLUMN(struct ob_worker, heartbeat_until_us, TIME),
	OB_SQL_COLUMN(struct ob_worker, published, INT),
	OB_SQL_COLUMN(struct ob_worker, failed, INT),
	OB_SQL_COLUMN(struct ob_worker, state, STR),
};
static const struct ob_sql_map worker_map = OB_SQL_MAP_OF(struct ob_worker, worker_columns);

int ob_sql_op_workers(struct ob_store *store, const char *reader, struct ob_arena *arena,
		      struct ob_worker **ret_workers, size_t *ret_count, struct ob_err *err)
{
	struct ob_worker *workers = ob_sql_list(store, "listing workers", OB_SQL_workers,
						OB_ARGS(OB_ARG_TEXT("reader", reader)), &worker_map,
						arena, ret_count, err);

	if (!workers)
		return err->status;
	*ret_workers = workers;
	return 0;
}

/* ---- leases ---------------------------------------------------------- */

static const struct ob_sql_column partition_columns[] = {
	OB_SQL_COLUMN(struct ob_partition, reader, STR),
	OB_SQL_COLUMN(struct ob_partition, number, INT),
	OB_SQL_COLUMN(struct ob_partition, owner, UUID),
	OB_SQL_COLUMN(struct ob_partition, epoch, INT),
	OB_SQL_COLUMN(struct ob_partition, until_us, TIME),
	OB_SQL_COLUMN(struct ob_partition, leased, INT),
	OB_SQL_COLUMN(struct ob_partition, pos, INT),
	OB_SQL_COLUMN(struct ob_partition, moved_at_us, TIME),
};
static const struct ob_sql_map partition_map =
	OB_SQL_MAP_OF(struct ob_partition, partition_columns);

int ob_sql_op_partitions(struct ob_store *store, const char *reader, struct ob_arena *arena,
			 struct ob_partition **ret_partitions, size_t *ret_count,
			 struct ob_err *err)
{
	struct ob_partition *partitions = ob_sql_list(
		store, "listing partitions", OB_SQL_partitions,
		OB_ARGS(OB_ARG_TEXT("reader", reader)), &partition_map, arena, ret_count, err);

	if (!partitions)
		return err->status;
	*ret_partitions = partitions;
	return 0;
}

int ob_sql_op_seed(struct ob_store *store, const char *reader, uint32_t *ret_count,
		   struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "making lease rows");
	size_t count = OB_SQL_ADD0(&q, partition_count);
	(void)OB_SQL_ADD(&q, seed, OB_ARG_TEXT("reader", reader));
	(void)OB_SQL_ADD(&q, prune_leases, OB_ARG_TEXT("reader", reader));
	int r = ob_sql_commit(&q, err);
	if (r < 0)
		return r;
	if (ob_sql_count(&q, count) != 1)
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "table '%s' has no 'partition_count': it was not made by `outbox "
				  "setup`",
				  store->layout->table[OB_TABLE_meta]);
	*ret_count = (uint32_t)ob_sql_value(&q, count);
	return 0;
}

static const struct ob_sql_column lease_columns[] = {
	OB_SQL_COLUMN(struct ob_lease, partition, INT),
	OB_SQL_COLUMN(struct ob_lease, epoch, INT),
};
static const struct ob_sql_map lease_map = OB_SQL_MAP_OF(struct ob_lease, lease_columns);

static int by_partition(const void *a, const void *b)
{
	const struct ob_lease *x = a, *y = b;

	return x->partition < y->partition ? -1 : x->partition > y->partition;
}

/* take and renew: three statements, of which the second or the third returns the leases. */
static int change_leases(struct ob_sql *q, const enum ob_sql_id steps[3],
			 const struct ob_sql_arg *args, struct ob_arena *arena,
			 struct ob_lease **ret_leases, size_t *ret_count, struct ob_err *err)
{
	(void)ob_sql_add(q, steps[0], args);
	size_t changed = ob_sql_add(q, steps[1], args);
	size_t then = ob_sql_add(q, steps[2], args);
	int r = ob_sql_commit(q, err);
	if (r < 0)
		return r;
	struct ob_lease *leases = ob_sql_collect(q, ob_sql_count(q, changed) ? changed : then,
						 &lease_map, arena, ret_count, err);
	if (!leases)
		return err->status;
	if (*ret_count > 0)
		qsort(leases, *ret_count, sizeof(*leases), by_partition);
	*ret_leases = leases;
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own nine parameters */
int ob_sql_op_take(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		   uint32_t want, int64_t ttl_ms, struct ob_arena *arena,
		   struct ob_lease **ret_leases, size_t *ret_count, struct ob_err *err)
{
	static const enum ob_sql_id steps[] = { OB_SQL_take_look, OB_SQL_take, OB_SQL_taken };
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "taking leases");
	return change_leases(&q, steps,
			     OB_ARGS(OB_ARG_TEXT("reader", reader), OB_ARG_UUID("id", owner),
				     OB_ARG_INT("want", want), OB_ARG_MS("ttl", ttl_ms)),
			     arena, ret_leases, ret_count, err);
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int ob_sql_op_renew(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		    int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
		    size_t *ret_count, struct ob_err *err)
{
	static const enum ob_sql_id steps[] = { OB_SQL_note_held, OB_SQL_renew,
						OB_SQL_held_leases };
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "renewing leases");
	return change_leases(&q, steps,
			     OB_ARGS(OB_ARG_TEXT("reader", reader), OB_ARG_UUID("id", owner),
				     OB_ARG_MS("ttl", ttl_ms)),
			     arena, ret_leases, ret_count, err);
}

static void add_numbers(struct ob_sql_table *list, const uint32_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ob_sql_table_int(list, numbers[i]);
}

int ob_sql_op_release(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		      const uint32_t *partitions, size_t count, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_table_done) struct ob_sql_table numbers = OB_SQL_TABLE("i");
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	add_numbers(&numbers, partitions, count);
	ob_sql_begin(&q, store, OB_SQL_WRITE, "releasing leases");
	(void)OB_SQL_ADD(&q, release, OB_ARG_TEXT("reader", reader), OB_ARG_UUID("id", owner),
			 OB_ARG_LIST("numbers", &numbers));
	return ob_sql_commit(&q, err);
}

int ob_sql_op_free_leases(struct ob_store *store, const char *reader, const uint32_t *partitions,
			  size_t count, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_table_done) struct ob_sql_table numbers = OB_SQL_TABLE("i");
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	add_numbers(&numbers, partitions, count);
	const struct ob_sql_arg args[] = {
		OB_ARG_TEXT("reader", reader),
		OB_ARG_INT("all", count == 0),
		OB_ARG_LIST("numbers", &numbers),
		{ .name = NULL },
	};
	ob_sql_begin(&q, store, OB_SQL_WRITE, "freeing leases");
	(void)ob_sql_add(&q, OB_SQL_forget_holders, args);
	(void)ob_sql_add(&q, OB_SQL_free_leases, args);
	return ob_sql_commit(&q, err);
}
