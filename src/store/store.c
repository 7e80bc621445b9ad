/* SPDX-License-Identifier: MIT */
/*
 * The one place that calls through a backend's table: which backends there are,
 * how a connection is made, and what needs no backend (empty input, bounds).
 */
#include "store/store.h"

#include "base/cleanup.h"
#include "config.h"
#include "store/audit.h"

#include <assert.h>
#include <pthread.h>

#if HAVE_SQLITE
extern const struct ob_store_ops ob_store_sqlite;
#define SQLITE_OPS &ob_store_sqlite
#else
#define SQLITE_OPS NULL
#endif
#if HAVE_POSTGRES
extern const struct ob_store_ops ob_store_postgres;
#define POSTGRES_OPS &ob_store_postgres
#else
#define POSTGRES_OPS NULL
#endif
#if HAVE_MYSQL
extern const struct ob_store_ops ob_store_mysql;
#define MYSQL_OPS &ob_store_mysql
#else
#define MYSQL_OPS NULL
#endif

const struct ob_store_backend ob_store_backends[] = {
	{
		.name = "sqlite",
		.ops = SQLITE_OPS,
		.package = "libsqlite3-dev",
		.help = "SQLite, a database in a file: sqlite:PATH.",
	},
	{
		.name = "postgres",
		.scheme = "postgresql",
		.ops = POSTGRES_OPS,
		.package = "libpq-dev",
		.help = "PostgreSQL: postgresql://USER:PASSWORD@HOST:PORT/DATABASE.",
	},
	{
		.name = "mysql",
		.scheme = "mariadb",
		.ops = MYSQL_OPS,
		.package = "libmariadb-dev",
		.help = "MySQL 8 or MariaDB, a server: mysql://user:password@host:3306/database, "
			"or "
			"mysql://user@/database?socket=PATH.",
	},
	{ .name = NULL },
};

/* ---- finding and opening --------------------------------------------- */

enum { SCHEME_MAX = 32 };

static int unknown_scheme(const char *scheme, struct ob_err *err)
{
	const size_t count = sizeof(ob_store_backends) / sizeof(ob_store_backends[0]) - 1;
	const char *names[sizeof(ob_store_backends) / sizeof(ob_store_backends[0])];
	struct ob_buf known = OB_BUF_INIT(200);

	for (size_t i = 0; i < count; i++) {
		names[i] = ob_store_backends[i].name;
		ob_buf_addf(&known, "%s%s", i ? ", " : "", names[i]);
	}
	const char *near = ob_suggest(scheme, names, count);
	int r = ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			   "no store of type '%s'%s%s%s (known: %s)", scheme,
			   near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "",
			   ob_buf_str(&known));
	ob_buf_done(&known);
	return r;
}

int ob_store_find(const char *url, const struct ob_store_backend **ret_backend, struct ob_err *err)
{
	assert(url);

	size_t n = strcspn(url, ":");
	char scheme[SCHEME_MAX + 1];

	/* The rest of a URL may hold a password, so no message shows more than the scheme. */
	if (!ob_ident_valid(url, n) || n > SCHEME_MAX)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the store's url must begin with its type and a colon, such as "
				  "sqlite:outbox.db");
	if (url[n] != ':')
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the store's url has no type: write sqlite:PATH for a file");
	(void)snprintf(scheme, sizeof(scheme), "%.*s", (int)n, url);
	for (const struct ob_store_backend *b = ob_store_backends; b->name; b++) {
		if (strcmp(b->name, scheme) != 0 && (!b->scheme || strcmp(b->scheme, scheme) != 0))
			continue;
		if (!b->ops)
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "this build has no %s store: install %s and build again",
					  b->name, b->package ? b->package : "its library");
		*ret_backend = b;
		return 0;
	}
	return unknown_scheme(scheme, err);
}

static pthread_once_t default_layout_once = PTHREAD_ONCE_INIT;
static struct ob_layout default_layout;

static void make_default_layout(void)
{
	ob_layout_default(&default_layout);
}

static const struct ob_layout *layout_or_default(const struct ob_layout *layout)
{
	(void)pthread_once(&default_layout_once, make_default_layout);
	return layout ? layout : &default_layout;
}

/* Free without close: for a store that never got as far as open. */
static void drop(struct ob_store *store)
{
	ob_opt_free(store->ops->opts, store);
	free(store);
}

OB_DEFINE_CLEANUP(struct ob_store *, drop)

int ob_store_new(const struct ob_store_ops *ops, const struct ob_store_conf *conf,
		 struct ob_store **ret_store, struct ob_err *err)
{
	assert(ops && ops->size >= sizeof(struct ob_store) && conf && conf->url && ret_store);

	OB_CLEANUP(dropp) struct ob_store *store = calloc(1, ops->size);
	if (!store)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a %s store",
				  ops->name);
	store->ops = ops;
	store->url = conf->url;
	store->layout = layout_or_default(conf->layout);
	store->clock = conf->clock ? conf->clock : &ob_clock_system;
	store->read_limit_ms = conf->read_limit_ms;
	int r = ob_opt_defaults(ops->opts, store, err);
	if (r < 0)
		return r;
	*ret_store = OB_TAKE(store);
	return 0;
}

static int set_option(struct ob_store *store, const struct ob_opt_value *option, struct ob_err *err)
{
	const struct ob_store_ops *ops = store->ops;

	if (ob_opt_find(ops->opts, option->name))
		return ob_opt_set(ops->opts, store, option->name, option->value, err);

	const char *near = ob_opt_suggest(ops->opts, option->name);
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "a %s store has no option '%.80s'%s%s%s", ops->name, option->name,
			  near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int ob_store_connect(const struct ob_store_conf *conf, struct ob_store **ret_store,
		     struct ob_err *err)
{
	const struct ob_store_backend *backend = NULL;
	struct ob_store *store = NULL;

	assert(conf && conf->url && ret_store);
	int r = ob_store_find(conf->url, &backend, err);
	if (r < 0 || !backend)
		return r;
	r = ob_store_new(backend->ops, conf, &store, err);
	if (r < 0 || !store)
		return r;
	for (size_t i = 0; i < conf->option_count && r >= 0; i++)
		r = set_option(store, &conf->options[i], err);
	if (r < 0) {
		drop(store);
		return r;
	}
	r = store->ops->open(store, err);
	if (r < 0) {
		ob_store_free(store);
		return r;
	}
	*ret_store = store;
	return 0;
}

void ob_store_free(struct ob_store *store)
{
	if (!store)
		return;
	store->ops->close(store);
	drop(store);
}

void ob_partition_label(uint32_t partition, char out[8])
{
	(void)snprintf(out, 8, "p%02u", partition % 1000000);
}

/* ---- schema ---------------------------------------------------------- */

static int check_partition_count(uint32_t count, struct ob_err *err)
{
	if (count >= 1 && count <= OB_PARTITIONS_MAX)
		return 0;
	return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
			  "partition_count: %u is not a number from 1 to %d", count,
			  OB_PARTITIONS_MAX);
}

/* What is wished, with its defaults. */
static int read_setup(const struct ob_setup *setup, struct ob_setup *ret, struct ob_err *err)
{
	int r = check_partition_count(setup->partition_count, err);

	*ret = *setup;
	if (!ret->partition_rows)
		ret->partition_rows = OB_PARTITION_ROWS;
	if (r == 0 && (ret->partition_rows < 1 || ret->partition_rows > OB_PARTITION_ROWS_MAX))
		r = ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
			       "partition_rows: %lld is not a number from 1 to %lld",
			       (long long)ret->partition_rows, (long long)OB_PARTITION_ROWS_MAX);
	return r;
}

int ob_store_setup(struct ob_store *store, const struct ob_setup *setup,
		   struct ob_setup_done *ret_done, struct ob_err *err)
{
	struct ob_setup wish;

	assert(store && setup && ret_done && err);
	int r = read_setup(setup, &wish, err);
	return r < 0 ? r : store->ops->setup(store, &wish, ret_done, err);
}

int ob_store_setup_sql(const struct ob_store_ops *ops, const struct ob_layout *layout,
		       const struct ob_setup *setup, struct ob_buf *out, struct ob_err *err)
{
	assert(ops && setup && out && err);
	if (!ops->setup_sql)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "a %s store needs no SQL",
				  ops->name);
	struct ob_setup wish;
	int r = read_setup(setup, &wish, err);

	return r < 0 ? r : ops->setup_sql(layout_or_default(layout), &wish, out, err);
}

int ob_store_grants_sql(const struct ob_store_ops *ops, const struct ob_layout *layout,
			const struct ob_setup *setup, struct ob_buf *out, struct ob_err *err)
{
	assert(ops && setup && out && err);
	if (!ops->grants_sql)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "a %s store has no users",
				  ops->name);
	return ops->grants_sql(layout_or_default(layout), setup, out, err);
}

int ob_store_check(struct ob_store *store, struct ob_err *err)
{
	assert(store && err);
	return store->ops->check(store, err);
}

int ob_store_diagnose(struct ob_store *store, struct ob_findings *out, struct ob_err *err)
{
	assert(store && out && err);
	return store->ops->diagnose ? store->ops->diagnose(store, out, err) : 0;
}

int ob_store_oldest(struct ob_store *store, int64_t *ret_age_us, struct ob_err *err)
{
	assert(store && ret_age_us && err);
	if (store->ops->oldest)
		return store->ops->oldest(store, ret_age_us, err);
	*ret_age_us = -1;
	return 0;
}

/* ---- writing --------------------------------------------------------- */

int ob_store_tx_begin(struct ob_store *store, struct ob_err *err)
{
	assert(store && err);
	return store->ops->tx_begin(store, err);
}

int ob_store_tx_push(struct ob_store *store, const struct outbox_message *messages, size_t count,
		     struct outbox_id *ret_ids, size_t *ret_index, struct ob_err *err)
{
	assert(store && (messages || count == 0) && ret_index && err);
	*ret_index = 0;
	if (count == 0)
		return 0;
	return store->ops->tx_push(store, messages, count, ret_ids, ret_index, err);
}

int ob_store_tx_writer(struct ob_store *store, outbox **ret_writer, struct ob_err *err)
{
	if (!store->ops->tx_writer)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "this store has no events");
	return store->ops->tx_writer(store, ret_writer, err);
}

int ob_store_tx_exec(struct ob_store *store, const struct ob_message_sql *sql,
		     const struct ob_message *message, uint64_t *ret_changed, struct ob_err *err)
{
	assert(store && sql && message && ret_changed && err);
	if (!store->ops->tx_exec)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "this store runs no SQL");
	return store->ops->tx_exec(store, sql, message, ret_changed, err);
}

int ob_store_tx_settle(struct ob_store *store, struct ob_settle *settle, struct ob_err *err)
{
	assert(store && settle && err);
	if (!store->ops->tx_settle)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "this store records no progress in a transaction of others");
	return settle->part_count ? store->ops->tx_settle(store, settle, err) : 0;
}

void *ob_store_tx_native(struct ob_store *store)
{
	return store->ops->tx_native ? store->ops->tx_native(store) : NULL;
}

int ob_store_tx_end(struct ob_store *store, bool commit, struct ob_err *err)
{
	assert(store && err);
	return store->ops->tx_end(store, commit, err);
}

/* ---- readers --------------------------------------------------------- */

int ob_store_reader_make(struct ob_store *store, const struct ob_reader *reader,
			 const struct ob_place *place, bool *ret_made, struct ob_err *err)
{
	assert(store && reader && reader->name.n > 0 && reader->target.p && place && ret_made &&
	       err);
	return store->ops->reader_make(store, reader, place, ret_made, err);
}

int ob_store_readers(struct ob_store *store, struct ob_arena *arena, struct ob_reader **ret_readers,
		     size_t *ret_count, struct ob_err *err)
{
	assert(store && arena && ret_readers && ret_count && err);
	return store->ops->readers(store, arena, ret_readers, ret_count, err);
}

int ob_store_reader_seek(struct ob_store *store, const char *reader, const struct ob_place *place,
			 struct ob_err *err)
{
	assert(store && reader && place && err);
	return store->ops->reader_seek(store, reader, place, err);
}

int ob_store_reader_remove(struct ob_store *store, const char *reader, struct ob_err *err)
{
	assert(store && reader && err);
	return store->ops->reader_remove(store, reader, err);
}

/* ---- reading and recording ------------------------------------------- */

int ob_store_take_over(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		       struct ob_owned *owned, size_t count, struct ob_err *err)
{
	assert(store && reader && owner && (owned || count == 0) && err);
	if (count == 0)
		return 0;
	return store->ops->take_over(store, reader, owner, owned, count, err);
}

int ob_store_read(struct ob_store *store, struct ob_read *read, struct ob_batch *batch,
		  struct ob_read_done *ret_done, struct ob_err *err)
{
	assert(store && read && read->reader && read->target && batch && ret_done && err);
	assert(read->parts || read->part_count == 0);
	assert(read->exclude || read->exclude_count == 0);
	ob_batch_reset(batch);
	*ret_done = (struct ob_read_done){ 0 };
	if (read->part_count == 0 || (read->limit == 0 && read->exception_limit == 0))
		return 0;
	int r = store->ops->read(store, read, batch, ret_done, err);
	return r < 0 || !store->after_read
		       ? r
		       : store->after_read(store, batch, store->after_read_arg, err);
}

int ob_store_settle(struct ob_store *store, struct ob_settle *settle, struct ob_err *err)
{
	assert(store && settle && settle->reader && err);
	assert(settle->parts || settle->part_count == 0);
	assert(settle->changes || settle->change_count == 0);
	assert(settle->promotes || settle->promote_count == 0);
	if (settle->part_count == 0)
		return 0;
	return store->ops->settle(store, settle, err);
}

/* ---- workers and leases ---------------------------------------------- */

int ob_store_beat(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
		  struct ob_err *err)
{
	assert(store && worker && worker->reader.p && worker->hostname.p && ttl_ms > 0 && err);
	assert(worker->state.n <= OB_WORKER_STATE_MAX);
	return store->ops->beat(store, worker, ttl_ms, err);
}

int ob_store_reap(struct ob_store *store, const char *reader, const struct ob_uuid *self,
		  uint32_t *ret_gone, struct ob_err *err)
{
	assert(store && reader && self && ret_gone && err);
	return store->ops->reap(store, reader, self, ret_gone, err);
}

int ob_store_leave(struct ob_store *store, const char *reader, const struct ob_uuid *worker,
		   struct ob_err *err)
{
	assert(store && reader && worker && err);
	return store->ops->leave(store, reader, worker, err);
}

int ob_store_workers(struct ob_store *store, const char *reader, struct ob_arena *arena,
		     struct ob_worker **ret_workers, size_t *ret_count, struct ob_err *err)
{
	assert(store && arena && ret_workers && ret_count && err);
	return store->ops->workers(store, reader, arena, ret_workers, ret_count, err);
}

int ob_store_seed(struct ob_store *store, const char *reader, uint32_t *ret_count,
		  struct ob_err *err)
{
	assert(store && reader && ret_count && err);
	return store->ops->seed(store, reader, ret_count, err);
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own nine parameters */
int ob_store_take(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		  uint32_t want, int64_t ttl_ms, struct ob_arena *arena,
		  struct ob_lease **ret_leases, size_t *ret_count, struct ob_err *err)
{
	assert(store && reader && owner && ttl_ms > 0 && arena && ret_leases && ret_count && err);
	if (want == 0) {
		*ret_leases = NULL;
		*ret_count = 0;
		return 0;
	}
	return store->ops->take(store, reader, owner, want, ttl_ms, arena, ret_leases, ret_count,
				err);
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int ob_store_renew(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		   int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
		   size_t *ret_count, struct ob_err *err)
{
	assert(store && reader && owner && ttl_ms > 0 && arena && ret_leases && ret_count && err);
	return store->ops->renew(store, reader, owner, ttl_ms, arena, ret_leases, ret_count, err);
}

int ob_store_release(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		     const uint32_t *partitions, size_t count, struct ob_err *err)
{
	assert(store && reader && owner && (partitions || count == 0) && err);
	if (count == 0)
		return 0;
	return store->ops->release(store, reader, owner, partitions, count, err);
}

int ob_store_partitions(struct ob_store *store, const char *reader, struct ob_arena *arena,
			struct ob_partition **ret_partitions, size_t *ret_count, struct ob_err *err)
{
	assert(store && arena && ret_partitions && ret_count && err);
	return store->ops->partitions(store, reader, arena, ret_partitions, ret_count, err);
}

int ob_store_free_leases(struct ob_store *store, const char *reader, const uint32_t *partitions,
			 size_t count, struct ob_err *err)
{
	assert(store && reader && (partitions || count == 0) && err);
	return store->ops->free_leases(store, reader, partitions, count, err);
}

int ob_store_adopt(struct ob_store *store, uint64_t *ret_rows, struct ob_err *err)
{
	assert(store && ret_rows && err);
	if (!store->ops->adopt)
		return ob_err_set(
			err, OUTBOX_EINVAL, OB_ERR_FATAL,
			"a %s store needs no adopting: its progress holds in any copy of it",
			store->ops->name);
	return store->ops->adopt(store, ret_rows, err);
}

int ob_store_resize(struct ob_store *store, uint32_t partition_count, struct ob_err *err)
{
	assert(store && err);
	int r = check_partition_count(partition_count, err);
	return r < 0 ? r : store->ops->resize(store, partition_count, err);
}

/* ---- listing --------------------------------------------------------- */

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int ob_store_stats(struct ob_store *store, const char *reader, uint64_t cap, struct ob_arena *arena,
		   struct ob_stats **ret_stats, size_t *ret_count, int64_t *ret_now_us,
		   struct ob_err *err)
{
	assert(store && arena && ret_stats && ret_count && ret_now_us && err);
	return store->ops->stats(store, reader, cap, arena, ret_stats, ret_count, ret_now_us, err);
}

int ob_store_throughput(struct ob_store *store, const char *reader, uint32_t minutes,
			struct ob_arena *arena, struct ob_minute **ret_minutes, size_t *ret_count,
			struct ob_err *err)
{
	assert(store && arena && ret_minutes && ret_count && err);
	if (minutes == 0) {
		*ret_minutes = NULL;
		*ret_count = 0;
		return 0;
	}
	return store->ops->throughput(store, reader, minutes, arena, ret_minutes, ret_count, err);
}

int ob_store_list(struct ob_store *store, const struct ob_filter *filter, struct ob_batch *batch,
		  int64_t *ret_now_us, struct ob_err *err)
{
	assert(store && filter && batch && ret_now_us && err);
	ob_batch_reset(batch);
	return store->ops->list(store, filter, batch, ret_now_us, err);
}

/* ---- verbs and retention --------------------------------------------- */

int ob_store_operate(struct ob_store *store, const struct ob_operate *operate,
		     uint64_t *ret_changed, uint64_t *ret_refused, struct ob_err *err)
{
	assert(store && operate && operate->filter.reader && ret_changed && ret_refused && err);
	if (!operate->audit)
		return store->ops->operate(store, operate, ret_changed, ret_refused, err);

	OB_CLEANUP(ob_arena_done) struct ob_arena arena = OB_ARENA_INIT(OB_AUDIT_BYTES);
	struct ob_operate audited = *operate;
	struct ob_audit_row entry;
	int r = ob_audit_row_clean(operate->audit, &arena, &entry, err);

	audited.audit = &entry;
	return r < 0 ? r : store->ops->operate(store, &audited, ret_changed, ret_refused, err);
}

int ob_store_audit(struct ob_store *store, const struct ob_audit_row *entry, struct ob_err *err)
{
	OB_CLEANUP(ob_arena_done) struct ob_arena arena = OB_ARENA_INIT(OB_AUDIT_BYTES);
	struct ob_audit_row clean;

	assert(store && entry && err);
	int r = ob_audit_row_clean(entry, &arena, &clean, err);
	return r < 0 ? r : store->ops->audit(store, &clean, err);
}

int ob_store_audits(struct ob_store *store, const struct ob_audit_ask *ask, struct ob_arena *arena,
		    struct ob_audit_row **ret_entries, size_t *ret_count, struct ob_err *err)
{
	assert(store && ask && arena && ret_entries && ret_count && err);
	return store->ops->audits(store, ask, arena, ret_entries, ret_count, err);
}

int ob_store_retain(struct ob_store *store, const struct ob_retain *retain, struct ob_arena *arena,
		    struct ob_retained *ret_done, struct ob_err *err)
{
	assert(store && retain && arena && ret_done && err);
	assert(retain->published_ms >= OB_NEVER_MS && retain->dead_ms >= OB_NEVER_MS);
	*ret_done = (struct ob_retained){ .held_by = ob_str("") };
	return store->ops->retain(store, retain, arena, ret_done, err);
}

/* ---- waking ---------------------------------------------------------- */

int ob_store_parts(struct ob_store *store, struct ob_arena *arena, struct ob_table_parts *ret_parts,
		   struct ob_err *err)
{
	assert(store && arena && ret_parts && err);
	if (store->ops->parts)
		return store->ops->parts(store, arena, ret_parts, err);
	*ret_parts = (struct ob_table_parts){ 0 };
	return 0;
}

int ob_store_wake_fd(struct ob_store *store)
{
	assert(store);
	return store->ops->wake_fd ? store->ops->wake_fd(store) : -1;
}

int ob_store_wake_check(struct ob_store *store, bool *ret_news, struct ob_err *err)
{
	assert(store && ret_news && err);
	return store->ops->wake_check(store, ret_news, err);
}

void ob_store_describe(struct ob_store *store, struct ob_buf *out)
{
	assert(store && out);
	store->ops->describe(store, out);
}
