/* SPDX-License-Identifier: MIT */
/* The fault decorator: passes every call on, and lets one of them fail. */
#include "doubles/fault_store.h"

#include "base/cleanup.h"

#include <assert.h>

struct fault_store {
	struct ob_store base;
	struct ob_store *inner;
	struct ob_store_ops ops; /* ours, with the inner store's name and capabilities */
	struct ob_store_fault_plan plan;
	struct ob_store_fault_count count;
};

static const char *const op_names[] = {
#define X(name) #name,
	OB_STORE_FAULT_MAP(X)
#undef X
};

static struct fault_store *fault_of(struct ob_store *store)
{
	return (struct fault_store *)store;
}

static struct ob_store *inner_of(struct ob_store *store)
{
	fault_of(store)->inner->writer_flags = store->writer_flags;
	return fault_of(store)->inner;
}

/* Count a call; true when it is the one that fails. */
static bool strikes(struct ob_store *store, enum ob_store_fault_op op)
{
	struct fault_store *fault = fault_of(store);

	if (fault->plan.only && !(fault->plan.only & UINT64_C(1) << op))
		return false;
	if (++fault->count.calls != fault->plan.nth)
		return false;
	fault->count.fired = true;
	fault->count.fired_in = op_names[op];
	return true;
}

static bool before(const struct ob_store *store)
{
	return ((const struct fault_store *)store)->plan.mode == OB_FAULT_BEFORE;
}

static int strike(enum ob_store_fault_op op, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "%s: injected fault", op_names[op]);
}

/*
 * One call: `call` is the wrapped operation, whose results go to locals;
 * `copy` hands them over on success. `strikes_` tells whether the reply will be lost.
 */
#define PASS(op, call, copy) \
	do { \
		bool strikes_ = strikes(store, OB_STORE_FAULT_##op); \
		if (strikes_ && before(store)) \
			return strike(OB_STORE_FAULT_##op, err); \
		int r_ = call; \
		if (r_ < 0) \
			return r_; \
		if (strikes_) \
			return strike(OB_STORE_FAULT_##op, err); \
		copy; \
		return r_; \
	} while (0)

static int fault_open(struct ob_store *store, struct ob_err *err)
{
	(void)store;
	(void)err;
	return 0;
}

static void fault_close(struct ob_store *store)
{
	ob_store_free(fault_of(store)->inner);
}

static int fault_setup(struct ob_store *store, const struct ob_setup *setup,
		       struct ob_setup_done *ret_done, struct ob_err *err)
{
	struct ob_setup_done done;

	PASS(setup, ob_store_setup(inner_of(store), setup, &done, err), *ret_done = done);
}

static int fault_check(struct ob_store *store, struct ob_err *err)
{
	PASS(check, ob_store_check(inner_of(store), err), (void)0);
}

static void add_findings(struct ob_findings *to, const struct ob_findings *from)
{
	for (size_t i = 0; i < from->count; i++)
		ob_finding_add(to, from->list[i].check, from->list[i].level, "%.*s",
			       (int)from->list[i].text.n, from->list[i].text.p);
}

static int fault_diagnose(struct ob_store *store, struct ob_findings *out, struct ob_err *err)
{
	OB_CLEANUP(ob_findings_done) struct ob_findings found;

	ob_findings_init(&found);
	PASS(diagnose, ob_store_diagnose(inner_of(store), &found, err), add_findings(out, &found));
}

static int fault_oldest(struct ob_store *store, int64_t *ret_age_us, struct ob_err *err)
{
	int64_t age_us = -1;

	PASS(oldest, ob_store_oldest(inner_of(store), &age_us, err), *ret_age_us = age_us);
}

static int fault_tx_begin(struct ob_store *store, struct ob_err *err)
{
	PASS(tx_begin, ob_store_tx_begin(inner_of(store), err), (void)0);
}

static int fault_tx_push(struct ob_store *store, const struct outbox_message *messages,
			 size_t count, struct outbox_id *ret_ids, size_t *ret_index,
			 struct ob_err *err)
{
	PASS(tx_push,
	     ob_store_tx_push(inner_of(store), messages, count, strikes_ ? NULL : ret_ids,
			      ret_index, err),
	     (void)0);
}

static int fault_tx_end(struct ob_store *store, bool commit, struct ob_err *err)
{
	if (!commit)
		return ob_store_tx_end(inner_of(store), false, err);
	PASS(tx_end, ob_store_tx_end(inner_of(store), true, err), (void)0);
}

static int fault_tx_writer(struct ob_store *store, outbox **ret_writer, struct ob_err *err)
{
	outbox *writer = NULL;

	PASS(tx_writer, ob_store_tx_writer(inner_of(store), &writer, err), *ret_writer = writer);
}

static int fault_tx_exec(struct ob_store *store, const struct ob_message_sql *sql,
			 const struct ob_message *message, uint64_t *ret_changed,
			 struct ob_err *err)
{
	uint64_t changed = 0;

	PASS(tx_exec, ob_store_tx_exec(inner_of(store), sql, message, &changed, err),
	     *ret_changed = changed);
}

static int fault_reader_make(struct ob_store *store, const struct ob_reader *reader,
			     const struct ob_place *place, bool *ret_made, struct ob_err *err)
{
	bool made = false;

	PASS(reader_make, ob_store_reader_make(inner_of(store), reader, place, &made, err),
	     *ret_made = made);
}

static int fault_readers(struct ob_store *store, struct ob_arena *arena,
			 struct ob_reader **ret_readers, size_t *ret_count, struct ob_err *err)
{
	struct ob_reader *readers = NULL;
	size_t count = 0;

	PASS(readers, ob_store_readers(inner_of(store), arena, &readers, &count, err),
	     (*ret_readers = readers, *ret_count = count));
}

static int fault_reader_seek(struct ob_store *store, const char *reader,
			     const struct ob_place *place, struct ob_err *err)
{
	PASS(reader_seek, ob_store_reader_seek(inner_of(store), reader, place, err), (void)0);
}

static int fault_reader_remove(struct ob_store *store, const char *reader, struct ob_err *err)
{
	PASS(reader_remove, ob_store_reader_remove(inner_of(store), reader, err), (void)0);
}

/* These two write into the caller's arrays: a lost reply is one that was not written. */
static int fault_take_over(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
			   struct ob_owned *owned, size_t count, struct ob_err *err)
{
	bool now = strikes(store, OB_STORE_FAULT_take_over);

	if (!now)
		return ob_store_take_over(inner_of(store), reader, owner, owned, count, err);
	OB_AUTOFREE struct ob_owned *copy = calloc(count, sizeof(*copy));
	if (!copy)
		abort();
	memcpy(copy, owned, count * sizeof(*copy));
	int r = before(store)
			? 0
			: ob_store_take_over(inner_of(store), reader, owner, copy, count, err);
	if (r < 0)
		return r;
	for (size_t i = 0; !before(store) && i < count; i++) {
		if (!copy[i].lost)
			ob_progress_done(&copy[i].progress);
	}
	return strike(OB_STORE_FAULT_take_over, err);
}

static int settle_by(struct ob_store *store, enum ob_store_fault_op op, ob_store_settle_fn *settles,
		     struct ob_settle *settle, struct ob_err *err)
{
	if (!strikes(store, op))
		return settles(inner_of(store), settle, err);
	OB_AUTOFREE struct ob_settle_part *copy = calloc(settle->part_count, sizeof(*copy));
	if (!copy)
		abort();
	memcpy(copy, settle->parts, settle->part_count * sizeof(*copy));
	struct ob_settle lost = *settle;
	lost.parts = copy;
	int r = before(store) ? 0 : settles(inner_of(store), &lost, err);
	return r < 0 ? r : strike(op, err);
}

static int fault_settle(struct ob_store *store, struct ob_settle *settle, struct ob_err *err)
{
	return settle_by(store, OB_STORE_FAULT_settle, ob_store_settle, settle, err);
}

static int fault_tx_settle(struct ob_store *store, struct ob_settle *settle, struct ob_err *err)
{
	return settle_by(store, OB_STORE_FAULT_tx_settle, ob_store_tx_settle, settle, err);
}

/* Cannot fail. */
static void *fault_tx_native(struct ob_store *store)
{
	return ob_store_tx_native(inner_of(store));
}

/* A failed read leaves no messages behind, as a real one would not. */
static int fault_read(struct ob_store *store, struct ob_read *read, struct ob_batch *batch,
		      struct ob_read_done *ret_done, struct ob_err *err)
{
	bool now = strikes(store, OB_STORE_FAULT_read);
	int r = now && before(store) ? 0
				     : ob_store_read(inner_of(store), read, batch, ret_done, err);

	if (r < 0 || !now)
		return r;
	for (size_t i = 0; !before(store) && i < read->part_count; i++)
		ob_progress_done(&read->parts[i].after);
	ob_batch_reset(batch);
	return strike(OB_STORE_FAULT_read, err);
}

static int fault_beat(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
		      struct ob_err *err)
{
	PASS(beat, ob_store_beat(inner_of(store), worker, ttl_ms, err), (void)0);
}

static int fault_reap(struct ob_store *store, const char *reader, const struct ob_uuid *self,
		      uint32_t *ret_gone, struct ob_err *err)
{
	uint32_t gone = 0;

	PASS(reap, ob_store_reap(inner_of(store), reader, self, &gone, err), *ret_gone = gone);
}

static int fault_leave(struct ob_store *store, const char *reader, const struct ob_uuid *worker,
		       struct ob_err *err)
{
	PASS(leave, ob_store_leave(inner_of(store), reader, worker, err), (void)0);
}

static int fault_workers(struct ob_store *store, const char *reader, struct ob_arena *arena,
			 struct ob_worker **ret_workers, size_t *ret_count, struct ob_err *err)
{
	struct ob_worker *workers = NULL;
	size_t count = 0;

	PASS(workers, ob_store_workers(inner_of(store), reader, arena, &workers, &count, err),
	     (*ret_workers = workers, *ret_count = count));
}

static int fault_seed(struct ob_store *store, const char *reader, uint32_t *ret_count,
		      struct ob_err *err)
{
	uint32_t count = 0;

	PASS(seed, ob_store_seed(inner_of(store), reader, &count, err), *ret_count = count);
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own nine parameters */
static int fault_take(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		      uint32_t want, int64_t ttl_ms, struct ob_arena *arena,
		      struct ob_lease **ret_leases, size_t *ret_count, struct ob_err *err)
{
	struct ob_lease *leases = NULL;
	size_t count = 0;

	PASS(take,
	     ob_store_take(inner_of(store), reader, owner, want, ttl_ms, arena, &leases, &count,
			   err),
	     (*ret_leases = leases, *ret_count = count));
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
static int fault_renew(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		       int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
		       size_t *ret_count, struct ob_err *err)
{
	struct ob_lease *leases = NULL;
	size_t count = 0;

	PASS(renew,
	     ob_store_renew(inner_of(store), reader, owner, ttl_ms, arena, &leases, &count, err),
	     (*ret_leases = leases, *ret_count = count));
}

static int fault_release(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
			 const uint32_t *partitions, size_t count, struct ob_err *err)
{
	PASS(release, ob_store_release(inner_of(store), reader, owner, partitions, count, err),
	     (void)0);
}

static int fault_partitions(struct ob_store *store, const char *reader, struct ob_arena *arena,
			    struct ob_partition **ret_partitions, size_t *ret_count,
			    struct ob_err *err)
{
	struct ob_partition *partitions = NULL;
	size_t count = 0;

	PASS(partitions,
	     ob_store_partitions(inner_of(store), reader, arena, &partitions, &count, err),
	     (*ret_partitions = partitions, *ret_count = count));
}

static int fault_free_leases(struct ob_store *store, const char *reader, const uint32_t *partitions,
			     size_t count, struct ob_err *err)
{
	PASS(free_leases, ob_store_free_leases(inner_of(store), reader, partitions, count, err),
	     (void)0);
}

static int fault_adopt(struct ob_store *store, uint64_t *ret_rows, struct ob_err *err)
{
	uint64_t rows = 0;

	PASS(adopt, ob_store_adopt(inner_of(store), &rows, err), *ret_rows = rows);
}

static int fault_resize(struct ob_store *store, uint32_t partition_count, struct ob_err *err)
{
	PASS(resize, ob_store_resize(inner_of(store), partition_count, err), (void)0);
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
static int fault_stats(struct ob_store *store, const char *reader, uint64_t cap,
		       struct ob_arena *arena, struct ob_stats **ret_stats, size_t *ret_count,
		       int64_t *ret_now_us, struct ob_err *err)
{
	struct ob_stats *stats = NULL;
	size_t count = 0;
	int64_t now = 0;

	PASS(stats, ob_store_stats(inner_of(store), reader, cap, arena, &stats, &count, &now, err),
	     (*ret_stats = stats, *ret_count = count, *ret_now_us = now));
}

static int fault_throughput(struct ob_store *store, const char *reader, uint32_t minutes,
			    struct ob_arena *arena, struct ob_minute **ret_minutes,
			    size_t *ret_count, struct ob_err *err)
{
	struct ob_minute *list = NULL;
	size_t count = 0;

	PASS(throughput,
	     ob_store_throughput(inner_of(store), reader, minutes, arena, &list, &count, err),
	     (*ret_minutes = list, *ret_count = count));
}

static int fault_list(struct ob_store *store, const struct ob_filter *filter,
		      struct ob_batch *batch, int64_t *ret_now_us, struct ob_err *err)
{
	bool now = strikes(store, OB_STORE_FAULT_list);
	int64_t now_us = 0;
	int r = now && before(store) ? 0
				     : ob_store_list(inner_of(store), filter, batch, &now_us, err);

	if (r < 0)
		return r;
	if (now) {
		ob_batch_reset(batch);
		return strike(OB_STORE_FAULT_list, err);
	}
	*ret_now_us = now_us;
	return r;
}

static int fault_operate(struct ob_store *store, const struct ob_operate *operate,
			 uint64_t *ret_changed, uint64_t *ret_refused, struct ob_err *err)
{
	uint64_t changed = 0, refused = 0;

	PASS(operate, ob_store_operate(inner_of(store), operate, &changed, &refused, err),
	     (*ret_changed = changed, *ret_refused = refused));
}

static int fault_audit(struct ob_store *store, const struct ob_audit_row *entry, struct ob_err *err)
{
	PASS(audit, ob_store_audit(inner_of(store), entry, err), (void)0);
}

static int fault_audits(struct ob_store *store, const struct ob_audit_ask *ask,
			struct ob_arena *arena, struct ob_audit_row **ret_entries,
			size_t *ret_count, struct ob_err *err)
{
	struct ob_audit_row *entries = NULL;
	size_t count = 0;

	PASS(audits, ob_store_audits(inner_of(store), ask, arena, &entries, &count, err),
	     (*ret_entries = entries, *ret_count = count));
}

static int fault_retain(struct ob_store *store, const struct ob_retain *retain,
			struct ob_arena *arena, struct ob_retained *ret_done, struct ob_err *err)
{
	struct ob_retained done;

	PASS(retain, ob_store_retain(inner_of(store), retain, arena, &done, err), *ret_done = done);
}

static int fault_parts(struct ob_store *store, struct ob_arena *arena,
		       struct ob_table_parts *ret_parts, struct ob_err *err)
{
	struct ob_table_parts parts;

	PASS(parts, ob_store_parts(inner_of(store), arena, &parts, err), *ret_parts = parts);
}

static int fault_wake_fd(struct ob_store *store)
{
	return ob_store_wake_fd(inner_of(store));
}

static int fault_wake_check(struct ob_store *store, bool *ret_news, struct ob_err *err)
{
	bool news = false;

	PASS(wake_check, ob_store_wake_check(inner_of(store), &news, err), *ret_news = news);
}

static void fault_describe(struct ob_store *store, struct ob_buf *out)
{
	ob_store_describe(inner_of(store), out);
}

static const struct ob_store_ops fault_ops = {
	.name = "fault",
	.size = sizeof(struct fault_store),
	.open = fault_open,
	.close = fault_close,
#define X(name) .name = fault_##name,
	OB_STORE_FAULT_MAP(X)
#undef X
		.tx_native = fault_tx_native,
	.wake_fd = fault_wake_fd,
	.describe = fault_describe,
};

int ob_store_fault_new(struct ob_store *inner, const struct ob_store_fault_plan *plan,
		       struct ob_store **ret_store, struct ob_err *err)
{
	const struct ob_store_conf conf = {
		.url = inner->url,
		.layout = inner->layout,
		.clock = inner->clock,
	};
	struct ob_store *store = NULL;

	int r = ob_store_new(&fault_ops, &conf, &store, err);
	if (r < 0 || !store)
		return r;

	struct fault_store *fault = fault_of(store);
	fault->inner = inner;
	fault->plan = *plan;
	fault->ops = fault_ops;
	fault->ops.name = inner->ops->name;
	fault->ops.caps = inner->ops->caps;
	/* These need no connection. */
	fault->ops.setup_sql = inner->ops->setup_sql;
	fault->ops.grants_sql = inner->ops->grants_sql;
	store->ops = &fault->ops;
	store->writer_flags = inner->writer_flags;
	*ret_store = store;
	return 0;
}

void ob_store_fault_arm(struct ob_store *store, const struct ob_store_fault_plan *plan)
{
	assert(store->ops->open == fault_open);
	fault_of(store)->plan = *plan;
	fault_of(store)->count = (struct ob_store_fault_count){ 0 };
}

struct ob_store_fault_count ob_store_fault_counted(const struct ob_store *store)
{
	assert(store->ops->open == fault_open);
	return ((const struct fault_store *)store)->count;
}
