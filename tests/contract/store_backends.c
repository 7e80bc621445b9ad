/* SPDX-License-Identifier: MIT */
/* How the contract suite makes a fresh database of each kind. */
#include "config.h"
#include "doubles/memory_store.h"
#include "store_harness.h"

#if HAVE_SQLITE
#include <sqlite3.h>
#endif

/* ---- memory ---------------------------------------------------------- */

static struct ob_memdb *memdb;

static void make_kind(enum ob_memdb_kind kind)
{
	memdb = ob_memdb_new(&(struct ob_memdb_conf){ .kind = kind, .clock = &fx.clock.clock });
}

static void memory_make(void)
{
	make_kind(OB_MEMDB_SNAPSHOT);
}

static void memory_make_gaps(void)
{
	make_kind(OB_MEMDB_GAPS);
}

static void memory_make_plain(void)
{
	make_kind(OB_MEMDB_PLAIN);
}

static struct ob_store *memory_open(void)
{
	struct ob_store *store = NULL;

	store_ok(ob_store_memory_open(memdb, &store, &fx.err));
	return store;
}

static void memory_set_version(uint32_t version)
{
	ob_memdb_set_version(memdb, version);
}

static void memory_drop(void)
{
	ob_memdb_free(memdb);
	memdb = NULL;
}

static size_t memory_journal_count(void)
{
	return ob_memdb_journal_count(memdb);
}

#define MEMORY_BACKEND(label, maker) \
	{ \
		.name = (label), .make = (maker), .open = memory_open, \
		.set_version = memory_set_version, .drop = memory_drop, \
		.journal_count = memory_journal_count, \
	}

const struct store_backend store_backend_memory = MEMORY_BACKEND("memory", memory_make);
const struct store_backend store_backend_memory_gaps =
	MEMORY_BACKEND("memory-gaps", memory_make_gaps);
const struct store_backend store_backend_memory_plain =
	MEMORY_BACKEND("memory-plain", memory_make_plain);

/* ---- SQLite ---------------------------------------------------------- */

#if HAVE_SQLITE

static unsigned sqlite_made;
static char sqlite_url[256];

/* A file of its own for every database; the directory is removed at the end. */
static void sqlite_make(void)
{
	int n = snprintf(sqlite_url, sizeof(sqlite_url), "sqlite:%s/%d-%u.db", fx.dir,
			 (int)getpid(), ++sqlite_made);

	ck_assert_int_lt(n, (int)sizeof(sqlite_url));
}

static struct ob_store *sqlite_open(void)
{
	/* Nobody pulls the plug here, and the cases make thousands of commits. */
	const struct ob_opt_value options[] = { { "synchronous", "normal" } };
	const struct ob_store_conf conf = {
		.url = sqlite_url,
		.options = options,
		.option_count = 1,
		.clock = &fx.clock.clock,
		.read_limit_ms = fx.read_limit_ms,
	};
	struct ob_store *store = NULL;

	store_ok(ob_store_connect(&conf, &store, &fx.err));
	return store;
}

static void sqlite_set_version(uint32_t version)
{
	char sql[128];
	sqlite3 *db = NULL;

	(void)snprintf(sql, sizeof(sql),
		       "UPDATE outbox_meta SET value = %u WHERE name = 'schema_version'", version);
	ck_assert_int_eq(sqlite3_open(sqlite_url + strlen("sqlite:"), &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static size_t sqlite_journal_count(void)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;

	ck_assert_int_eq(sqlite3_open(sqlite_url + strlen("sqlite:"), &db), SQLITE_OK);
	ck_assert_int_eq(
		sqlite3_prepare_v2(db, "SELECT count(*) FROM outbox_batches", -1, &stmt, NULL),
		SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	size_t count = (size_t)sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	return count;
}

static const struct store_skip sqlite_skips[] = {
	{ "a_worker_whose_connection_is_gone_is_reaped_at_once", "a file knows no sessions" },
	{ NULL, NULL },
};

static void sqlite_drop(void)
{
	(void)unlink(sqlite_url + strlen("sqlite:"));
}

const struct store_backend store_backend_sqlite = {
	.name = "sqlite",
	.make = sqlite_make,
	.open = sqlite_open,
	.set_version = sqlite_set_version,
	.drop = sqlite_drop,
	.journal_count = sqlite_journal_count,
	.skips = sqlite_skips,
};

#endif
