/* SPDX-License-Identifier: MIT */
/* The connections of stall_store.h. */
#include "stall_store.h"

#include "base/rng.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>

static struct ob_memdb *database;
static struct ob_store_ops ops; /* those of the memory store, with a stop before each */
static const struct ob_store_ops *memory;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool held[STALL_OPS], refusing;
static uint32_t to_hold[STALL_OPS]; /* calls that are still to be held up */
static enum ob_err_kind failing[STALL_OPS];
static uint32_t waiting[STALL_OPS], calls[STALL_OPS];
static uint32_t opened, open_now, jitter_us;
static struct ob_rng rng;

/* The call may go on; or it fails. */
static int pass(enum stall_op op, struct ob_err *err)
{
	enum ob_err_kind kind;
	int pause_ms = 0;

	(void)pthread_mutex_lock(&lock);
	calls[op]++;
	waiting[op]++;
	(void)pthread_cond_broadcast(&changed);
	if (to_hold[op] > 0) {
		to_hold[op]--;
		while (held[op])
			(void)pthread_cond_wait(&changed, &lock);
	}
	waiting[op]--;
	kind = failing[op];
	if (jitter_us > 0)
		pause_ms = (int)(ob_rng_below(&rng, jitter_us) / 1000);
	(void)pthread_mutex_unlock(&lock);
	if (pause_ms > 0)
		(void)poll(NULL, 0, pause_ms);
	return kind == OB_ERR_NONE ? 0
				   : ob_err_set(err, OUTBOX_ESTORE, kind, "as the test wants it");
}

static int stall_take_over(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
			   struct ob_owned *owned, size_t count, struct ob_err *err)
{
	int r = pass(STALL_take_over, err);

	return r < 0 ? r : memory->take_over(store, reader, owner, owned, count, err);
}

static int stall_read(struct ob_store *store, struct ob_read *read, struct ob_batch *batch,
		      struct ob_read_done *ret_done, struct ob_err *err)
{
	int r = pass(STALL_read, err);

	return r < 0 ? r : memory->read(store, read, batch, ret_done, err);
}

static int stall_settle(struct ob_store *store, struct ob_settle *settle, struct ob_err *err)
{
	int r = pass(STALL_settle, err);

	return r < 0 ? r : memory->settle(store, settle, err);
}

static int stall_beat(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
		      struct ob_err *err)
{
	int r = pass(STALL_beat, err);

	return r < 0 ? r : memory->beat(store, worker, ttl_ms, err);
}

static int stall_reap(struct ob_store *store, const char *reader, const struct ob_uuid *self,
		      uint32_t *ret_gone, struct ob_err *err)
{
	int r = pass(STALL_reap, err);

	return r < 0 ? r : memory->reap(store, reader, self, ret_gone, err);
}

static int stall_leave(struct ob_store *store, const char *reader, const struct ob_uuid *worker,
		       struct ob_err *err)
{
	int r = pass(STALL_leave, err);

	return r < 0 ? r : memory->leave(store, reader, worker, err);
}

static int stall_workers(struct ob_store *store, const char *reader, struct ob_arena *arena,
			 struct ob_worker **ret_workers, size_t *ret_count, struct ob_err *err)
{
	int r = pass(STALL_workers, err);

	return r < 0 ? r : memory->workers(store, reader, arena, ret_workers, ret_count, err);
}

static int stall_seed(struct ob_store *store, const char *reader, uint32_t *ret_count,
		      struct ob_err *err)
{
	int r = pass(STALL_seed, err);

	return r < 0 ? r : memory->seed(store, reader, ret_count, err);
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own nine parameters */
static int stall_take(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		      uint32_t want, int64_t ttl_ms, struct ob_arena *arena,
		      struct ob_lease **ret_leases, size_t *ret_count, struct ob_err *err)
{
	int r = pass(STALL_take, err);

	return r < 0 ? r
		     : memory->take(store, reader, owner, want, ttl_ms, arena, ret_leases,
				    ret_count, err);
}

static int stall_renew(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		       int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
		       size_t *ret_count, struct ob_err *err)
{
	int r = pass(STALL_renew, err);

	return r < 0 ? r
		     : memory->renew(store, reader, owner, ttl_ms, arena, ret_leases, ret_count,
				     err);
}

static int stall_release(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
			 const uint32_t *partitions, size_t count, struct ob_err *err)
{
	int r = pass(STALL_release, err);

	return r < 0 ? r : memory->release(store, reader, owner, partitions, count, err);
}

static int stall_partitions(struct ob_store *store, const char *reader, struct ob_arena *arena,
			    struct ob_partition **ret_partitions, size_t *ret_count,
			    struct ob_err *err)
{
	int r = pass(STALL_partitions, err);

	return r < 0 ? r : memory->partitions(store, reader, arena, ret_partitions, ret_count, err);
}

static int stall_retain(struct ob_store *store, const struct ob_retain *retain,
			struct ob_arena *arena, struct ob_retained *ret_done, struct ob_err *err)
{
	int r = pass(STALL_retain, err);

	return r < 0 ? r : memory->retain(store, retain, arena, ret_done, err);
}

static void stall_close(struct ob_store *store)
{
	(void)pthread_mutex_lock(&lock);
	open_now--;
	(void)pthread_mutex_unlock(&lock);
	memory->close(store);
}

void stall_init(struct ob_memdb *db)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_store *store;

	database = db;
	ob_rng_init(&rng, 1);
	if (ob_store_memory_open(db, &store, &err) < 0)
		ck_abort_msg("%s", err.msg);
	memory = store->ops;
	ops = *memory;
#define X(name) ops.name = stall_##name;
	STALL_MAP(X)
#undef X
	ops.close = stall_close;
	ob_store_free(store);
}

int stall_open(void *arg, struct ob_store **ret_store, struct ob_err *err)
{
	bool refuse;
	int r;

	(void)arg;
	(void)pthread_mutex_lock(&lock);
	opened++;
	refuse = refusing;
	open_now += !refuse;
	(void)pthread_mutex_unlock(&lock);
	if (refuse)
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL, "no room for you");
	r = ob_store_memory_open(database, ret_store, err);
	if (r >= 0)
		(*ret_store)->ops = &ops;
	return r;
}

/* ---- the test's side ------------------------------------------------- */

void stall_hold(enum stall_op op)
{
	stall_hold_some(op, UINT32_MAX);
}

void stall_hold_some(enum stall_op op, uint32_t count)
{
	(void)pthread_mutex_lock(&lock);
	held[op] = true;
	to_hold[op] = count;
	(void)pthread_mutex_unlock(&lock);
}

void stall_let_go(enum stall_op op)
{
	(void)pthread_mutex_lock(&lock);
	held[op] = false;
	to_hold[op] = 0;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&lock);
}

void stall_fail(enum stall_op op, enum ob_err_kind kind)
{
	(void)pthread_mutex_lock(&lock);
	failing[op] = kind;
	(void)pthread_mutex_unlock(&lock);
}

void stall_refuse(bool refuse)
{
	(void)pthread_mutex_lock(&lock);
	refusing = refuse;
	(void)pthread_mutex_unlock(&lock);
}

void stall_jitter_us(uint32_t max_us)
{
	(void)pthread_mutex_lock(&lock);
	jitter_us = max_us;
	(void)pthread_mutex_unlock(&lock);
}

void stall_await_waiting(enum stall_op op, uint32_t count)
{
	(void)pthread_mutex_lock(&lock);
	while (waiting[op] < count)
		(void)pthread_cond_wait(&changed, &lock);
	(void)pthread_mutex_unlock(&lock);
}

void stall_await_calls(enum stall_op op, uint32_t count)
{
	(void)pthread_mutex_lock(&lock);
	while (calls[op] < count)
		(void)pthread_cond_wait(&changed, &lock);
	(void)pthread_mutex_unlock(&lock);
}

static uint32_t read_locked(const uint32_t *number)
{
	uint32_t value;

	(void)pthread_mutex_lock(&lock);
	value = *number;
	(void)pthread_mutex_unlock(&lock);
	return value;
}

uint32_t stall_calls(enum stall_op op)
{
	return read_locked(&calls[op]);
}

uint32_t stall_open_count(void)
{
	return read_locked(&open_now);
}

uint32_t stall_opens(void)
{
	return read_locked(&opened);
}
