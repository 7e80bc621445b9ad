/* SPDX-License-Identifier: MIT */
/* The memory store: the database, its connections, and its table of operations. */
#include "doubles/memory_store_impl.h"

#include <assert.h>

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

void *mem_grow(void *array, size_t count, size_t *capacity, size_t size)
{
	if (count < *capacity)
		return array;
	*capacity = *capacity ? *capacity * 2 : 16;
	array = reallocarray(array, *capacity, size);
	if (!array)
		abort();
	return array;
}

char *mem_dup(struct ob_str text)
{
	if (!text.p)
		return NULL;
	char *copy = strndup(text.p, text.n);

	if (!copy)
		abort();
	return copy;
}

void *mem_alloc(struct ob_arena *arena, size_t count, size_t size)
{
	void *memory = ob_arena_alloc(arena, (count + 1) * size); /* never nothing */

	if (!memory)
		abort();
	return memory;
}

struct ob_str mem_copy(struct ob_arena *arena, const char *text)
{
	return (struct ob_str){ ob_arena_strdup(arena, text), strlen(text) };
}

static void pass_time(const struct ob_memdb *db)
{
	if (db->conf.pass_time)
		db->conf.pass_time(db->conf.pass_time_arg);
}

void mem_leave(struct ob_memdb **db)
{
	if (!*db)
		return;
	(void)pthread_mutex_unlock(&(*db)->lock);
	pass_time(*db);
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

	pass_time(db);
	(void)pthread_mutex_lock(&db->lock);
	int r = check_version(db, err);
	if (r < 0) {
		(void)pthread_mutex_unlock(&db->lock);
		return r;
	}
	*ret_db = db;
	return 0;
}

void mem_committed(struct ob_store *store)
{
	struct mem_store *mem = mem_of(store);

	/* It had an id of its own, as every transaction that writes. */
	mem->db->ended_txid = mem->db->next_txid++;
	mem->db->commits++;
	mem->own_commits++;
}

/* ---- the database ---------------------------------------------------- */

static struct ob_uuid new_uuid(void *arg)
{
	(void)arg;
	return ob_uuid_new();
}

struct ob_memdb *ob_memdb_new(const struct ob_memdb_conf *conf)
{
	struct ob_memdb *db = calloc(1, sizeof(*db));

	assert(conf->partition_count <= OB_PARTITIONS_MAX);
	if (!db)
		abort();
	(void)pthread_mutex_init(&db->lock, NULL);
	db->conf = *conf;
	if (!db->conf.clock)
		db->conf.clock = &ob_clock_system;
	if (!db->conf.new_id)
		db->conf.new_id = new_uuid;
	db->partition_count = conf->partition_count;
	db->version = conf->partition_count ? OB_SCHEMA_VERSION : 0;
	db->next_txid = 700;
	db->ended_txid = 699;
	return db;
}

void ob_memdb_free(struct ob_memdb *db)
{
	if (!db)
		return;
	assert(!db->stores);
	for (size_t i = 0; i < db->row_count; i++)
		mem_row_free(db->rows[i]);
	for (size_t i = 0; i < db->reader_count; i++)
		mem_reader_free(db->readers[i], db->partition_count);
	for (size_t i = 0; i < db->worker_count; i++) {
		free(db->workers[i].reader);
		free(db->workers[i].hostname);
		free(db->workers[i].state);
	}
	for (size_t i = 0; i < db->minute_count; i++)
		free(db->minutes[i].reader);
	free((void *)db->rows);
	free((void *)db->readers);
	free(db->workers);
	free(db->minutes);
	mem_audit_prune(db, true);
	free(db->audit);
	(void)pthread_mutex_destroy(&db->lock);
	free(db);
}

void ob_memdb_each(struct ob_memdb *db, bool (*fn)(void *arg, const struct ob_message *row),
		   void *arg)
{
	(void)pthread_mutex_lock(&db->lock);
	for (size_t i = 0; i < db->row_count; i++) {
		if (!db->rows[i]->writer && !fn(arg, &db->rows[i]->m))
			break;
	}
	(void)pthread_mutex_unlock(&db->lock);
}

size_t ob_memdb_journal_count(struct ob_memdb *db)
{
	size_t count = 0;

	(void)pthread_mutex_lock(&db->lock);
	for (size_t i = 0; i < db->reader_count; i++) {
		for (uint32_t p = 0; p < OB_LANES * db->partition_count; p++)
			count += db->readers[i]->journals[p].count;
	}
	(void)pthread_mutex_unlock(&db->lock);
	return count;
}

void ob_memdb_set_version(struct ob_memdb *db, uint32_t version)
{
	(void)pthread_mutex_lock(&db->lock);
	db->version = version;
	(void)pthread_mutex_unlock(&db->lock);
}

void ob_memdb_cut(struct ob_store *store)
{
	struct ob_memdb *db = mem_of(store)->db;

	(void)pthread_mutex_lock(&db->lock);
	mem_of(store)->session = ++db->last_session;
	(void)pthread_mutex_unlock(&db->lock);
}

void ob_memdb_move_cluster(struct ob_memdb *db)
{
	(void)pthread_mutex_lock(&db->lock);
	db->foreign = true;
	db->next_txid = 700;
	db->ended_txid = 699;
	(void)pthread_mutex_unlock(&db->lock);
}

/* ---- a connection ---------------------------------------------------- */

static int mem_open(struct ob_store *store, struct ob_err *err)
{
	(void)store;
	(void)err;
	return 0;
}

/* Its transaction is rolled back, its session locks are free. */
static void mem_close(struct ob_store *store)
{
	struct mem_store *mem = mem_of(store), **link = &mem->db->stores;
	struct ob_err err = OB_ERR_INIT;

	(void)mem_tx_end(store, false, &err);
	(void)pthread_mutex_lock(&mem->db->lock);
	while (*link != mem)
		link = &(*link)->next;
	*link = mem->next;
	(void)pthread_mutex_unlock(&mem->db->lock);
}

static int mem_setup(struct ob_store *store, const struct ob_setup *setup,
		     struct ob_setup_done *ret_done, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = mem_of(store)->db;
	struct ob_setup_done done = { .from_version = db->version,
				      .to_version = OB_SCHEMA_VERSION };

	(void)pthread_mutex_lock(&db->lock);
	if (setup->partitioned)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "memory store: there are no partitioned tables");
	if (db->version > 0) {
		int r = check_version(db, err);
		if (r < 0)
			return r;
	} else {
		db->version = OB_SCHEMA_VERSION;
		db->partition_count = setup->partition_count;
		mem_committed(store);
	}
	*ret_done = done;
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

#define MEM_OPS(capabilities) \
	{ \
		.name = "memory", .caps = (capabilities), .size = sizeof(struct mem_store), \
		.open = mem_open, .close = mem_close, .setup = mem_setup, .check = mem_check, \
		.tx_begin = mem_tx_begin, .tx_push = mem_tx_push, .tx_end = mem_tx_end, \
		.reader_make = mem_reader_make, .readers = mem_readers, \
		.reader_seek = mem_reader_seek, .reader_remove = mem_reader_remove, \
		.take_over = mem_take_over, .read = mem_read, .settle = mem_settle, \
		.beat = mem_beat, .reap = mem_reap, .leave = mem_leave_worker, \
		.workers = mem_workers, .seed = mem_seed, .take = mem_take, .renew = mem_renew, \
		.release = mem_release, .partitions = mem_partitions, \
		.free_leases = mem_free_leases, .resize = mem_resize, .adopt = mem_adopt, \
		.stats = mem_stats, .throughput = mem_throughput, .list = mem_list, \
		.operate = mem_operate, .audit = mem_audit, .audits = mem_audits, \
		.retain = mem_retain, .wake_check = mem_wake_check, .describe = mem_describe, \
	}

static const struct ob_store_ops concurrent_ops = MEM_OPS(OB_STORE_CONCURRENT_WRITERS);
static const struct ob_store_ops plain_ops = MEM_OPS(0);

int ob_store_memory_open(struct ob_memdb *db, struct ob_store **ret_store, struct ob_err *err)
{
	const struct ob_store_conf conf = { .url = "memory:", .clock = db->conf.clock };
	struct ob_store *store = NULL;

	int r = ob_store_new(db->conf.kind == OB_MEMDB_PLAIN ? &plain_ops : &concurrent_ops, &conf,
			     &store, err);
	if (r < 0 || !store)
		return r;

	struct mem_store *mem = mem_of(store);
	mem->db = db;
	(void)pthread_mutex_lock(&db->lock);
	mem->session = ++db->last_session;
	mem->seen_commits = db->commits;
	mem->next = db->stores;
	db->stores = mem;
	(void)pthread_mutex_unlock(&db->lock);
	*ret_store = store;
	return 0;
}
