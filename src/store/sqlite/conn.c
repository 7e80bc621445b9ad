/* SPDX-License-Identifier: MIT */
/* The SQLite store: opening and closing the file, and its errors. */
#include "store/sqlite/conn.h"

#include "store/sqlite/driver.h"
#include "store/sqlite/stmt.h"
#include "store/sqlite/wake.h"

#include <errno.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum { LIMIT_STEPS = 10000 }; /* of SQLite's machine between two looks at the clock */

/* ---- errors ---------------------------------------------------------- */

static const struct failure {
	int code;
	int status;
	enum ob_err_kind kind;
	const char *advice;
} failures[] = {
	{ SQLITE_BUSY, OUTBOX_EBUSY, OB_ERR_DOWN,
	  "another writer kept it longer than busy_timeout" },
	{ SQLITE_LOCKED, OUTBOX_EBUSY, OB_ERR_DOWN, "it is in use by this process" },
	{ SQLITE_FULL, OUTBOX_ESTORE, OB_ERR_DOWN, "free some disk space" },
	{ SQLITE_IOERR, OUTBOX_ESTORE, OB_ERR_DOWN, "look at the disk and its filesystem" },
	{ SQLITE_NOMEM, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ SQLITE_PROTOCOL, OUTBOX_EBUSY, OB_ERR_DOWN, NULL },
	{ SQLITE_INTERRUPT, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ SQLITE_CORRUPT, OUTBOX_ESTORE, OB_ERR_FATAL,
	  "restore a backup, or save what is left with the .recover command of sqlite3" },
	{ SQLITE_NOTADB, OUTBOX_ESTORE, OB_ERR_FATAL, "give the path of an SQLite database" },
	{ SQLITE_READONLY, OUTBOX_ESTORE, OB_ERR_FATAL,
	  "make the file and its directory writable for this user" },
	{ SQLITE_CANTOPEN, OUTBOX_ESTORE, OB_ERR_FATAL,
	  "this user must be able to read and write the file and its directory" },
	{ SQLITE_PERM, OUTBOX_ESTORE, OB_ERR_FATAL,
	  "this user must be able to read and write the file and its directory" },
	{ SQLITE_AUTH, OUTBOX_ESTORE, OB_ERR_FATAL, NULL },
	/* Our SQL is valid, so what it does not find is the schema's fault. */
	{ SQLITE_ERROR, OUTBOX_ESCHEMA, OB_ERR_FATAL, "run `outbox setup`" },
	{ SQLITE_SCHEMA, OUTBOX_ESCHEMA, OB_ERR_FATAL, "run `outbox setup`" },
};

static const struct failure *failure_of(int code)
{
	static const struct failure other = { 0, OUTBOX_ESTORE, OB_ERR_FATAL, NULL };

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		if (failures[i].code == (code & 0xff))
			return &failures[i];
	}
	return &other;
}

/* The one place that knows what SQLite's codes mean. */
int lite_err(struct lite_store *s, int code, struct ob_err *err)
{
	const struct failure *f = failure_of(code);
	bool moved = code == SQLITE_READONLY_DBMOVED;
	int number = s->db ? sqlite3_system_errno(s->db) : 0;
	const char *text = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(code);
	char reason[96] = "";

	if (number && (f->code == SQLITE_CANTOPEN || f->code == SQLITE_IOERR)) {
		errno = number;
		(void)snprintf(reason, sizeof(reason), " (%m)");
	}
	(void)ob_err_set(err, f->status, moved ? OB_ERR_DOWN : f->kind, "%s: %s: %s%s%s%s",
			 s->doing, lite_path(s->base.url), text, reason, f->advice ? "; " : "",
			 f->advice ? f->advice : "");
	(void)snprintf(err->native, sizeof(err->native), "SQLITE_%d", code);
	if (moved || f->code == SQLITE_IOERR || f->code == SQLITE_CORRUPT ||
	    f->code == SQLITE_CANTOPEN)
		s->broken = true;
	return err->status;
}

int lite_oom(const struct lite_store *s, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "%s: out of memory", s->doing);
}

/* ---- the file -------------------------------------------------------- */

const char *lite_path(const char *url)
{
	const char *path = strncmp(url, "sqlite:", 7) == 0 ? url + 7 : "";

	if (strncmp(path, "//", 2) == 0)
		path = path[2] == '/' ? path + 2 : "";
	return *path ? path : NULL;
}

const char *lite_network_fs(unsigned long magic)
{
	switch (magic) {
	case NFS_SUPER_MAGIC:
		return "NFS";
	case SMB_SUPER_MAGIC:
	case 0xff534d42: /* CIFS */
	case 0xfe534d42: /* SMB2 */
		return "SMB";
	case AFS_SUPER_MAGIC:
	case AFS_FS_MAGIC:
		return "AFS";
	case CODA_SUPER_MAGIC:
		return "Coda";
	case NCP_SUPER_MAGIC:
		return "NCP";
	default:
		return NULL;
	}
}

static int refuse_network(const char *path, const char *where, struct ob_err *err)
{
	struct statfs fs;
	const char *name = NULL;

	if (statfs(where, &fs) == 0)
		name = lite_network_fs((unsigned long)fs.f_type & 0xffffffff);
	if (!name)
		return 0;
	return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
			  "%s: SQLite does not work on a network filesystem (%s); use a local "
			  "disk, or a database server",
			  path, name);
}

/* The directory that holds `path`, cut to fit; "." when there is none. */
static void directory_of(const char *path, char *out, size_t size)
{
	const char *slash = strrchr(path, '/');
	int n = slash ? (int)(slash - path) : 0;

	if (!slash)
		(void)snprintf(out, size, ".");
	else
		(void)snprintf(out, size, "%.*s", n ? n : 1, path);
}

static int missing_file(struct lite_store *s, const char *path, bool create, struct ob_err *err)
{
	char dir[4096];
	struct stat st;

	directory_of(path, dir, sizeof(dir));
	if (stat(dir, &st) < 0)
		return ob_err_errno(err, OUTBOX_ESTORE, OB_ERR_FATAL,
				    "%s: cannot use the directory '%s'; make it first", path, dir);
	if (!S_ISDIR(st.st_mode))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL, "%s: '%s' is not a directory",
				  path, dir);
	if (!create && s->seen)
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN,
				  "%s: the database file is gone; put it back", path);
	if (!create)
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "%s: no such database; run `outbox setup`", path);
	return refuse_network(path, dir, err);
}

/* What SQLite would say badly or not at all. */
static int look_at_file(struct lite_store *s, const char *path, bool create, struct ob_err *err)
{
	struct stat st;

	if (stat(path, &st) < 0 && errno == ENOENT)
		return missing_file(s, path, create, err);
	if (stat(path, &st) < 0)
		return ob_err_errno(err, OUTBOX_ESTORE, OB_ERR_FATAL, "%s: cannot open it", path);
	if (S_ISDIR(st.st_mode))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
				  "%s: is a directory; give the path of a file in it", path);
	if (!S_ISREG(st.st_mode))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL, "%s: is not a regular file",
				  path);
	return refuse_network(path, path, err);
}

/* ---- the connection -------------------------------------------------- */

int lite_set_synchronous(struct lite_store *s, struct ob_err *err)
{
	bool full = s->synchronous == LITE_SYNC_FULL;
	int r = lite_run(s, full ? LITE_synchronous_full : LITE_synchronous_normal, OB_NO_ARGS,
			 err);

	return r < 0 ? r : 0;
}

static int configure(struct lite_store *s, struct ob_err *err)
{
	static const struct {
		int option, value;
	} settings[] = {
		{ SQLITE_DBCONFIG_DQS_DML, 0 }, /* "typo" is an error, not a text */
		{ SQLITE_DBCONFIG_DQS_DDL, 0 },
		{ SQLITE_DBCONFIG_DEFENSIVE, 1 },
		{ SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
	};

	(void)sqlite3_extended_result_codes(s->db, 1);
	(void)sqlite3_busy_handler(s->db, ob_lock_wait_again, &s->busy);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		int code = sqlite3_db_config(s->db, settings[i].option, settings[i].value,
					     (int *)NULL);
		if (code != SQLITE_OK)
			return lite_err(s, code, err);
	}
	int r = lite_run(s, LITE_cache, OB_NO_ARGS, err);
	return r < 0 ? r : lite_set_synchronous(s, err);
}

static int note_start(unsigned what, void *arg, void *statement, void *text)
{
	struct lite_store *s = arg;

	(void)what;
	(void)statement;
	(void)text;
	s->statement_us = ob_clock_boot_us(&ob_clock_system);
	return 0;
}

/* Not 0: the statement is given up. */
static int is_over(void *arg)
{
	const struct lite_store *s = arg;

	return ob_clock_boot_us(&ob_clock_system) - s->statement_us > s->base.read_limit_ms * 1000;
}

/* A connection that only looks. */
static int limit_reading(struct lite_store *s, struct ob_err *err)
{
	if (!s->base.read_limit_ms)
		return 0;
	(void)sqlite3_trace_v2(s->db, SQLITE_TRACE_STMT, note_start, s);
	sqlite3_progress_handler(s->db, LIMIT_STEPS, is_over, s);
	int r = lite_run(s, LITE_only_read, OB_NO_ARGS, err);
	return r < 0 ? r : 0;
}

/* Two processes that switch at once do not wait for each other by themselves. */
static int switch_to_wal(struct lite_store *s, struct ob_err *err)
{
	int r, count = 0;

	do {
		r = lite_bind(s, LITE_wal, OB_NO_ARGS, err);
		if (r == 0)
			r = lite_step(s, LITE_wal, err);
	} while (r == OUTBOX_EBUSY && ob_lock_wait_again(&s->busy, count++));
	if (r < 0)
		return r;
	bool wal = r > 0 && ob_str_eq(lite_str(s->stmt[LITE_wal], 0), OB_STR("wal"));
	lite_reset(s, LITE_wal);
	if (!wal)
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
				  "%s: this filesystem does not allow WAL mode; use a local disk",
				  lite_path(s->base.url));
	return 0;
}

static void disconnect(struct lite_store *s, bool replaced)
{
	outbox_close(s->writer);
	s->writer = NULL;
	(void)sqlite3_finalize(s->exec.stmt);
	s->exec.stmt = NULL;
	lite_finalize(s);
	/* The last one out removes the -wal file by name: it must not be the new database's. */
	if (s->db && replaced)
		(void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
	(void)sqlite3_close(s->db);
	s->db = NULL;
	s->in_tx = s->broken = false;
	s->data_version = -1;
	s->retained.from = s->retained.thinned_us = 0;
}

/* Is the file under our name still the one that is open? */
static bool replaced(const struct lite_store *s)
{
	struct stat st;

	if (stat(sqlite3_db_filename(s->db, "main"), &st) < 0)
		return errno == ENOENT || errno == ENOTDIR;
	return st.st_dev != s->dev || st.st_ino != s->ino;
}

static int open_file(struct lite_store *s, const char *path, bool create, struct ob_err *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
	char name[4096];
	struct stat st;

	/* Some builds of SQLite read file:... as a URI; to us it is a name. */
	bool uri = strncmp(path, "file:", 5) == 0;
	if (snprintf(name, sizeof(name), "%s%s", uri ? "./" : "", path) >= (int)sizeof(name))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL, "%.80s...: path too long",
				  path);
	int code = sqlite3_open_v2(name, &s->db, create ? flags | SQLITE_OPEN_CREATE : flags, NULL);
	if (code != SQLITE_OK)
		return lite_err(s, code, err);
	if (sqlite3_db_readonly(s->db, "main") == 1)
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
				  "%s: is read-only; make the file and its directory writable for "
				  "this user",
				  path);
	int r = configure(s, err);
	if (r == 0)
		r = switch_to_wal(s, err);
	if (r == 0)
		r = limit_reading(s, err);
	if (r < 0)
		return r;
	if (stat(name, &st) < 0)
		return ob_err_errno(err, OUTBOX_ESTORE, OB_ERR_DOWN, "%s", path);
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	/* News counts from the first connection; after a reconnect there may be any. */
	return s->seen ? 0 : lite_data_version(s, &s->data_version, err);
}

int lite_ready(struct lite_store *s, const char *doing, bool create, struct ob_err *err)
{
	const char *path = lite_path(s->base.url);

	s->doing = doing;
	s->now = ob_clock_real_us(s->base.clock);

	if (s->db && !s->in_tx) {
		bool gone = replaced(s);
		if (gone || s->broken)
			disconnect(s, gone);
	}
	if (s->db)
		return 0;
	int r = look_at_file(s, path, create, err);
	if (r == 0)
		r = open_file(s, path, create, err);
	if (r < 0) {
		disconnect(s, false);
		return r;
	}
	s->seen = true;
	lite_watch(s);
	return 0;
}

/*
 * SQLite counts its memory under a lock of the whole process, which costs a
 * sixth of a settle. Without effect when someone else used SQLite before.
 */
static void no_memory_statistics(void)
{
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

int lite_open(struct ob_store *store, struct ob_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct lite_store *s = (struct lite_store *)store;
	const char *path = lite_path(store->url);
	struct stat st;

	(void)pthread_once(&once, no_memory_statistics);
	s->watch_fd = s->watch_wal = s->watch_dir = s->look_fd = s->wake_fd = -1;
	s->data_version = -1;
	if (!path)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "'%s' names no file: write sqlite:PATH or sqlite:///PATH",
				  store->url);
	if (strncmp(path, ":memory:", 8) == 0)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "'%s': a database in memory cannot be shared; give a file",
				  store->url);
	if (store->layout->schema[0])
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "table '%s.%s': SQLite has no schemas; write '%s'",
				  store->layout->schema, store->layout->table[OB_TABLE_outbox],
				  store->layout->table[OB_TABLE_outbox]);
	if (store->layout->source.schema[0])
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "table '%s.%s': SQLite has no schemas; write '%s'",
				  store->layout->source.schema, store->layout->source.table,
				  store->layout->source.table);
	/* A database that does not exist yet is made by setup, and missed by everything else. */
	if (stat(path, &st) < 0 && errno == ENOENT)
		return missing_file(s, path, true, err);
	return lite_ready(s, "opening", false, err);
}

void lite_close(struct ob_store *store)
{
	struct lite_store *s = (struct lite_store *)store;

	disconnect(s, s->db && replaced(s));
	lite_run_free(s->run);
	if (s->watching)
		lite_unwatch(s);
}

void lite_describe(struct ob_store *store, struct ob_buf *out)
{
	const char *path = lite_path(store->url);

	ob_buf_addf(out, "SQLite %s, %s", sqlite3_libversion(), path ? path : store->url);
}
