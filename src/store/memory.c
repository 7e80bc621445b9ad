/* SPDX-License-Identifier: MIT */
/* The memory store: the database, its connections, and its table of operations. */
#include "store/memory.h"

#include "store/memory_impl.h"

#include <assert.h>

enum { SCRATCH_KEEP = 4 << 20 };

/* ---- shared by its files --------------------------------------------- */

int64_t mem_now(const struct ob_memdb *db)
{
	return ob_clock_real_us(db->conf.clock);
}

int64_t mem_after(int64_t now_us, int64_t ms)
{
	int64_t us, at;

	if (__builtin_mul_overflow(ms, 1000, &us) || __builtin_add_overflow(now_us, us, &at))
		return INT64_MAX;
	return at;
}

int mem_oom(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "memory store: out of memory");
}

bool mem_reserve(void **array, size_t *capacity, size_t count, size_t size)
{
	if (count < *capacity)
		return true;
	size_t more = *capacity ? *capacity * 2 : 16;
	void *grown = reallocarray(*array, more, size);
	if (!grown)
		return false;
	*array = grown;
	*capacity = more;
	return true;
}

void mem_leave(struct ob_memdb **db)
{
	if (*db)
		(void)pthread_mutex_unlock(&(*db)->lock);
}

static int check_version(const struct ob_memdb *db, struct ob_err *err)
{
	if (db->version == OB_SCHEMA_VERSION)
		return 0;
	if (db->version == 0)
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "the outbox tables are missing: run outbox setup");
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "the outbox tables have version %u, this program knows version %d",
			  db->version, OB_SCHEMA_VERSION);
}

int mem_enter(struct ob_store *store, struct ob_memdb **ret_db, struct ob_err *err)
{
	struct ob_memdb *db = mem_of(store)->db;

	ob_arena_reset(&mem_of(store)->scratch, SCRATCH_KEEP);
	(void)pthread_mutex_lock(&db->lock);
	int r = check_version(db, err);
	if (r < 0) {
		(void)pthread_mutex_unlock(&db->lock);
		return r;
	}
	*ret_db = db;
	return 0;
}

void *mem_scratch(struct ob_store *store, size_t count, size_t size)
{
	size_t bytes;

	/* One more than asked: an arena does not hand out nothing. */
	if (__builtin_mul_overflow(count + 1, size, &bytes))
		return NULL;
	return ob_arena_alloc(&mem_of(store)->scratch, bytes);
}

void mem_committed(struct mem_store *store)
{
	store->db->commits++;
	store->own_commits++;
}

/* ---- the database ---------------------------------------------------- */

static struct ob_uuid new_uuid(void *arg)
{
	(void)arg;
	return ob_uuid_new();
}

struct ob_memdb *ob_memdb_new(const struct ob_memdb_conf *conf)
{
	assert(conf && conf->partition_count <= OB_PARTITIONS_MAX);

	struct ob_memdb *db = calloc(1, sizeof(*db));
	if (!db)
		return NULL;
	(void)pthread_mutex_init(&db->lock, NULL);
	db->conf = *conf;
	if (!db->conf.clock)
		db->conf.clock = &ob_clock_system;
	if (!db->conf.new_id)
		db->conf.new_id = new_uuid;
	db->partition_count = conf->partition_count;
	db->version = conf->partition_count ? OB_SCHEMA_VERSION : 0;
	TAILQ_INIT(&db->all);
	TAILQ_INIT(&db->live);
	return db;
}

void ob_memdb_free(struct ob_memdb *db)
{
	struct mem_row *row;

	if (!db)
		return;
	while ((row = TAILQ_FIRST(&db->all))) {
		TAILQ_REMOVE(&db->all, row, all_link);
		mem_row_free(row);
	}
	for (size_t i = 0; i < MEM_INDEX_COUNT; i++)
		free(db->index[i].buckets);
	for (size_t i = 0; i < db->lease_count; i++)
		free(db->leases[i].target);
	for (size_t i = 0; i < db->worker_count; i++) {
		free(db->workers[i].target);
		free(db->workers[i].hostname);
	}
	for (size_t i = 0; i < db->minute_count; i++)
		free(db->minutes[i].target);
	free(db->leases);
	free(db->workers);
	free(db->minutes);
	(void)pthread_mutex_destroy(&db->lock);
	free(db);
}

void ob_memdb_each(struct ob_memdb *db, bool (*fn)(void *arg, const struct ob_message *row),
		   void *arg)
{
	(void)pthread_mutex_lock(&db->lock);
	for (struct mem_row *row = TAILQ_FIRST(&db->all); row; row = TAILQ_NEXT(row, all_link)) {
		if (!fn(arg, &row->m))
			break;
	}
	(void)pthread_mutex_unlock(&db->lock);
}

void ob_memdb_set_version(struct ob_memdb *db, uint32_t version)
{
	(void)pthread_mutex_lock(&db->lock);
	db->version = version;
	(void)pthread_mutex_unlock(&db->lock);
}

/* ---- a connection ---------------------------------------------------- */

static int mem_open(struct ob_store *store, struct ob_err *err)
{
	(void)store;
	(void)err;
	return 0;
}

static void mem_close(struct ob_store *store)
{
	struct ob_err err = OB_ERR_INIT;

	(void)mem_tx_end(store, false, &err);
	ob_arena_done(&mem_of(store)->scratch);
}

static int mem_setup(struct ob_store *store, const struct ob_setup *setup,
		     struct ob_setup_done *ret_done, struct ob_err *err)
{
	struct ob_memdb *db = mem_of(store)->db;
	OB_CLEANUP(mem_leave) struct ob_memdb *locked = db;

	(void)pthread_mutex_lock(&db->lock);
	*ret_done = (struct ob_setup_done){ db->version, OB_SCHEMA_VERSION };
	if (db->version > 0)
		return check_version(locked, err);
	db->version = OB_SCHEMA_VERSION;
	db->partition_count = setup->partition_count;
	mem_committed(mem_of(store));
	return 0;
}

static int mem_check(struct ob_store *store, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;

	return mem_enter(store, &db, err);
}

static int mem_wake_check(struct ob_store *store, bool *ret_news, struct ob_err *err)
{
	struct mem_store *mem = mem_of(store);
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	uint64_t others = db->commits - mem->own_commits;
	*ret_news = others != mem->seen_commits;
	mem->seen_commits = others;
	return 0;
}

static void mem_describe(struct ob_store *store, struct ob_buf *out)
{
	(void)store;
	ob_buf_adds(out, "memory, gone with the process");
}

static const struct ob_store_ops ops = {
	.name = "memory",
	.caps = OB_STORE_CONCURRENT_WRITERS,
	.size = sizeof(struct mem_store),
	.open = mem_open,
	.close = mem_close,
	.setup = mem_setup,
	.check = mem_check,
	.tx_begin = mem_tx_begin,
	.tx_push = mem_tx_push,
	.tx_end = mem_tx_end,
	.fetch = mem_fetch,
	.settle = mem_settle,
	.claim = mem_claim,
	.beat = mem_beat,
	.leave = mem_leave_worker,
	.workers = mem_workers,
	.seed = mem_seed,
	.take = mem_take,
	.renew = mem_renew,
	.release = mem_release_leases,
	.partitions = mem_partitions,
	.resize = mem_resize,
	.stats = mem_stats,
	.throughput = mem_throughput,
	.list = mem_list,
	.operate = mem_operate,
	.cleanup = mem_cleanup,
	.wake_check = mem_wake_check,
	.describe = mem_describe,
};

/* Every path of the marks is taken often. */
static const struct ob_mark_pace pace = { .young_us = 5000, .bottom_us = 1000000 };

int ob_store_memory_open(struct ob_memdb *db, struct ob_store **ret_store, struct ob_err *err)
{
	const struct ob_store_conf conf = { .url = "memory:", .clock = db->conf.clock };
	struct ob_store *store = NULL;

	int r = ob_store_new(&ops, &conf, &store, err);
	if (r < 0 || !store)
		return r;

	struct mem_store *mem = mem_of(store);
	mem->db = db;
	TAILQ_INIT(&mem->pushed);
	ob_marks_init(&mem->marks, &pace);
	mem->scratch = OB_ARENA_INIT(SIZE_MAX / 2);
	(void)pthread_mutex_lock(&db->lock);
	mem->seen_commits = db->commits;
	(void)pthread_mutex_unlock(&db->lock);
	*ret_store = store;
	return 0;
}
