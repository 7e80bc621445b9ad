/* SPDX-License-Identifier: MIT */
/* Pushing into SQLite: one multi-row INSERT on the caller's own connection. */
#include "lib/sqlite_push.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sqltmpl.h"
#include "lib/duplicate.h"
#include "lib/events/drivers.h"
#include "lib/fail.h"
#include "lib/inbox/drivers.h"
#include "lib/options.h"
#include "outbox/sqlite.h"
#include "sql_sqlite.h"

enum {
	/* Rows of one statement at most; more gains nothing, since its text is parsed first. */
	CHUNK_MAX = 500,
	/* Text of one row, with a share of the head in it. */
	ROW_TEXT_MAX = 160,
	SQL_MAX = 1 << 20,
};

static const struct ob_insert_sql insert_sql = { sql_sqlite_push_head, sql_sqlite_push_row, '"' };

int ob_sqlite_bind_id(const struct ob_sqlite_driver *driver, sqlite3_stmt *stmt, int at,
		      const struct ob_uuid *id)
{
	char text[OB_UUID_TEXT_SIZE];

	if (!driver->layout.string_id)
		return sqlite3_bind_blob(stmt, at, id->b, sizeof(id->b), SQLITE_STATIC);
	ob_uuid_format(id, text);
	return sqlite3_bind_text(stmt, at, text, OB_UUID_TEXT, SQLITE_TRANSIENT);
}

/* How many rows fit into one statement of this connection. */
static size_t chunk_rows(const struct ob_sqlite_driver *driver, unsigned shape)
{
	size_t per_row = 0;

	for (int f = 0; f < OB_INSERT_FIELDS; f++)
		per_row += ob_insert_uses(&driver->layout, shape, ob_insert_fields[f]);
	size_t variables = (size_t)sqlite3_limit(driver->db, SQLITE_LIMIT_VARIABLE_NUMBER, -1);
	size_t text = (size_t)sqlite3_limit(driver->db, SQLITE_LIMIT_SQL_LENGTH, -1);
	size_t rows = CHUNK_MAX;
	if (rows > variables / per_row)
		rows = variables / per_row;
	if (rows > text / ROW_TEXT_MAX)
		rows = text / ROW_TEXT_MAX;
	return rows > 0 ? rows : 1; /* no room at all: SQLite itself says so */
}

static int prepare_insert(struct ob_sqlite_driver *driver, size_t rows, unsigned shape,
			  sqlite3_stmt **ret_stmt, struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);
	int r = ob_insert_build(&insert_sql, &driver->layout, shape, rows, &sql, err);

	if (r < 0)
		return r;
	if (sqlite3_prepare_v3(driver->db, ob_buf_str(&sql), (int)sql.len + 1,
			       SQLITE_PREPARE_PERSISTENT, ret_stmt, NULL) != SQLITE_OK)
		return ob_sqlite_fail(driver, NULL, "preparing the insert", err);
	return 0;
}

/* The cached insert of that many rows, or a new one. */
static int get_insert(struct ob_sqlite_driver *driver, size_t rows, unsigned shape,
		      sqlite3_stmt **ret_stmt, struct outbox_error *err)
{
	sqlite3_stmt **slot = rows == 1 ? &driver->one[shape] : &driver->many;
	bool fits = rows == 1 || (driver->many_rows == rows && driver->many_shape == shape);

	if (!*slot || !fits) {
		(void)sqlite3_finalize(*slot);
		*slot = NULL;
		int r = prepare_insert(driver, rows, shape, slot, err);
		if (r < 0)
			return r;
		if (rows > 1) {
			driver->many_rows = rows;
			driver->many_shape = shape;
		}
	}
	*ret_stmt = *slot;
	return 0;
}

static int bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
	return sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC); /* NULL binds NULL */
}

static int bind_document(sqlite3_stmt *stmt, int at, struct ob_str s)
{
	return sqlite3_bind_text64(stmt, at, s.p, s.n, SQLITE_STATIC, SQLITE_UTF8);
}

static int bind_optional_int(sqlite3_stmt *stmt, int at, int64_t value)
{
	return value ? sqlite3_bind_int64(stmt, at, value) : sqlite3_bind_null(stmt, at);
}

static int bind_payload(const struct ob_sqlite_driver *driver, sqlite3_stmt *stmt, int at,
			struct ob_str s)
{
	if (driver->layout.binary_payload)
		return sqlite3_bind_blob64(stmt, at, s.p, s.n, SQLITE_STATIC);
	return bind_document(stmt, at, s);
}

/* The clock of an SQLite database is the clock of its host. */
static int64_t due_at_us(uint64_t delay_ms, int64_t now_us)
{
	return delay_ms ? now_us + (int64_t)delay_ms * 1000 : 0;
}

static int bind_field(const struct ob_sqlite_driver *driver, sqlite3_stmt *stmt, int at,
		      const struct ob_push_row *row, enum ob_column field, int64_t now_us)
{
	const struct outbox_message *m = row->message;

	switch ((int)field) {
	case OB_COL_id:
		return ob_sqlite_bind_id(driver, stmt, at, &row->id);
	case OB_COL_aggregate_type:
		return bind_text(stmt, at, m->aggregate_type);
	case OB_COL_aggregate_id:
		return bind_text(stmt, at, m->aggregate_id);
	case OB_COL_event_type:
		return bind_text(stmt, at, m->event_type);
	case OB_COL_payload:
		return bind_payload(driver, stmt, at, row->payload);
	case OB_COL_target:
		return bind_text(stmt, at, ob_push_target(row));
	case OB_COL_priority:
		return sqlite3_bind_int(stmt, at, m->priority);
	case OB_COL_revision:
		return sqlite3_bind_int(stmt, at, m->revision ? m->revision : 1);
	case OB_COL_sequence_number:
		return bind_optional_int(stmt, at, m->sequence_number);
	case OB_COL_headers:
		return bind_document(stmt, at, row->headers);
	case OB_COL_snapshot:
		return bind_document(stmt, at, row->snapshot);
	case OB_COL_correlation_id:
		return bind_text(stmt, at, m->correlation_id);
	case OB_COL_causation_id:
		return bind_text(stmt, at, m->causation_id);
	case OB_COL_partition_key:
		return bind_text(stmt, at, m->partition_key);
	case OB_COL_occurred_at:
		return bind_optional_int(stmt, at, m->occurred_at_us);
	case OB_COL_available_at:
		return sqlite3_bind_int64(stmt, at, due_at_us(m->delay_ms, now_us));
	default:
		return SQLITE_MISUSE; /* a field without a row above */
	}
}

static int bind_rows(const struct ob_sqlite_driver *driver, sqlite3_stmt *stmt, unsigned shape,
		     const struct ob_sqlite_chunk *chunk)
{
	int64_t now_us = shape & OB_INSERT_DELAYED ? ob_clock_real_us(&ob_clock_system) : 0;
	int at = 1, rc = SQLITE_OK;

	for (size_t i = 0; i < chunk->count && rc == SQLITE_OK; i++) {
		for (int f = 0; f < OB_INSERT_FIELDS && rc == SQLITE_OK; f++) {
			if (ob_insert_uses(&driver->layout, shape, ob_insert_fields[f]))
				rc = bind_field(driver, stmt, at++, &chunk->rows[i],
						ob_insert_fields[f], now_us);
		}
	}
	return rc;
}

/* A trigger can make SQLite leave rows out and call it success; no message may get lost that way.
 */
static int check_stored(struct ob_sqlite_driver *driver, const struct ob_sqlite_chunk *chunk,
			struct outbox_error *err)
{
	int stored = sqlite3_changes(driver->db);

	if ((size_t)stored == chunk->count)
		return 0;
	return ob_fail(err, OUTBOX_ESTORE, OUTBOX_NO_INDEX,
		       "%d of %zu messages were stored, a trigger on '%s' ignored the rest", stored,
		       chunk->count, driver->layout.table[OB_TABLE_outbox]);
}

/* ... and a trigger can make a statement fail without undoing it, with RAISE(FAIL). */
static void note_leftovers(const struct ob_sqlite_driver *driver,
			   const struct ob_sqlite_chunk *chunk, int changes_before,
			   struct outbox_error *err)
{
	struct outbox_error first = *err;

	if (chunk->in_savepoint || sqlite3_get_autocommit(driver->db) ||
	    sqlite3_total_changes(driver->db) == changes_before)
		return;
	(void)ob_fail(err, first.status, first.index,
		      "%.180s; part of it is left behind: roll the transaction back",
		      first.message);
	memcpy(err->native, first.native, sizeof(err->native));
}

static int insert_chunk(struct ob_sqlite_driver *driver, const struct ob_sqlite_chunk *chunk,
			unsigned shape, struct outbox_error *err)
{
	sqlite3_stmt *stmt;
	int r = get_insert(driver, chunk->count, shape, &stmt, err);

	if (r < 0)
		return r;
	int changes_before = sqlite3_total_changes(driver->db);
	int rc = bind_rows(driver, stmt, shape, chunk);
	/* A row comes back where the deprecated pragma count_changes is on. */
	while (rc == SQLITE_OK || rc == SQLITE_ROW)
		rc = sqlite3_step(stmt);
	if (rc != SQLITE_DONE)
		r = ob_sqlite_fail(driver, chunk, "storing the messages", err);
	else
		r = check_stored(driver, chunk, err);
	if (r != 0)
		note_leftovers(driver, chunk, changes_before, err);
	(void)sqlite3_reset(stmt);
	(void)sqlite3_clear_bindings(stmt); /* they point into the caller's memory */
	return r;
}

static int run(struct ob_sqlite_driver *driver, const char *sql, struct outbox_error *err)
{
	int rc = sqlite3_exec(driver->db, sql, NULL, NULL, NULL);

	if (rc == SQLITE_OK)
		return 0;
	/* Savepoints need no lock: busy is the caller's own statement, not another writer. */
	if ((rc & 0xff) == SQLITE_BUSY)
		return ob_fail(
			err, OUTBOX_ESTORE, OUTBOX_NO_INDEX,
			"a writing statement still runs on this connection: reset it, or push "
			"fewer messages in one call");
	return ob_sqlite_fail(driver, NULL, sql, err);
}

/* Take back what the call did so far. */
static void undo(struct ob_sqlite_driver *driver, struct outbox_error *err)
{
	struct outbox_error first = *err, second;

	if (sqlite3_get_autocommit(driver->db))
		return; /* SQLite has rolled everything back, the error says so */
	if (run(driver, "ROLLBACK TO outbox_push", &second) == 0)
		(void)run(driver, "RELEASE outbox_push", &second);
	else
		(void)ob_fail(err, first.status, first.index,
			      "%.150s; undoing it failed too: roll the transaction back",
			      first.message);
	memcpy(err->native, first.native, sizeof(err->native));
}

/* More rows than one statement can hold: several, in a savepoint. */
static int insert_chunks(struct ob_sqlite_driver *driver, const struct ob_sqlite_chunk *all,
			 size_t rows, unsigned shape, struct outbox_error *err)
{
	int r = run(driver, "SAVEPOINT outbox_push", err);

	if (r < 0)
		return r;
	for (size_t done = 0; done < all->count && r == 0; done += rows) {
		size_t left = all->count - done;
		struct ob_sqlite_chunk chunk = {
			.rows = all->rows + done,
			.count = left < rows ? left : rows,
			.first = done,
			.in_savepoint = true,
		};

		r = insert_chunk(driver, &chunk, shape, err);
	}
	if (r == 0)
		r = run(driver, "RELEASE outbox_push", err);
	if (r != 0)
		undo(driver, err);
	return r;
}

static bool sqlite_in_transaction(void *self)
{
	struct ob_sqlite_driver *driver = self;

	return !sqlite3_get_autocommit(driver->db);
}

int ob_sqlite_insert(void *self, const struct ob_push_row *rows, size_t count,
		     struct outbox_error *err)
{
	struct ob_sqlite_driver *driver = self;
	struct ob_sqlite_chunk all = { .rows = rows, .count = count };
	unsigned shape = ob_insert_shape(rows, count);
	size_t fit = chunk_rows(driver, shape);

	if (count <= fit)
		return insert_chunk(driver, &all, shape, err);
	return insert_chunks(driver, &all, fit, shape, err);
}

static void sqlite_close(void *self)
{
	struct ob_sqlite_driver *driver = self;

	for (int i = 0; i < OB_INSERT_SHAPES; i++)
		(void)sqlite3_finalize(driver->one[i]);
	(void)sqlite3_finalize(driver->many);
	free(driver);
}

OB_DEFINE_CLEANUP(struct ob_sqlite_driver *, sqlite_close)

static const struct ob_driver_ops sqlite_ops = {
	.abi = OB_DRIVER_ABI,
	.in_transaction = sqlite_in_transaction,
	.insert = ob_sqlite_insert,
	.append = ob_sqlite_append,
	.look_stream = ob_sqlite_look_stream,
	.keep_stream = ob_sqlite_keep_stream,
	.pin_log = ob_sqlite_pin_log,
	.ask = ob_sqlite_ask,
	.read_events = ob_sqlite_read_events,
	.inbox = ob_sqlite_inbox,
	.close = sqlite_close,
};

/* See that everything is there now, not at the first push. */
static int open_driver(struct ob_sqlite_driver *driver, const struct outbox_options *options,
		       struct outbox_error *err)
{
	sqlite3_stmt *unused;
	int r = ob_options_layout(options, &driver->layout, err);

	if (r == 0)
		r = ob_sqlite_check_table(driver, err);
	if (r == 0)
		r = get_insert(driver, 1, 0, &unused, err);
	return r;
}

int outbox_sqlite_open_sized(sqlite3 *db, const void *options, size_t options_size, outbox **ret_ob,
			     struct outbox_error *err)
{
	struct outbox_error unused;
	struct outbox_options copy;
	const struct outbox_options *ours = NULL;

	if (!err)
		err = &unused;
	if (!db)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "there is no connection");
	OB_CLEANUP(sqlite_closep) struct ob_sqlite_driver *driver = calloc(1, sizeof(*driver));
	if (!driver)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	driver->db = db;
	int r = ob_options_take(options, options_size, &copy, &ours, err);
	if (r == 0)
		r = open_driver(driver, ours, err);
	if (r < 0)
		return r;
	struct ob_check_rules rules = ob_options_rules(ours, &driver->layout);
	r = outbox_driver_attach(&sqlite_ops, driver, &rules, ret_ob, err);
	if (r == 0)
		(void)OB_TAKE(driver);
	return r;
}

OUTBOX_API int first_sqlite_open(sqlite3 *db, const void *options, outbox **ret_ob,
				 struct outbox_error *err) OB_FIRST_ABI("outbox_sqlite_open");

int first_sqlite_open(sqlite3 *db, const void *options, outbox **ret_ob, struct outbox_error *err)
{
	return outbox_sqlite_open_sized(db, options, ob_grow_options.first, ret_ob, err);
}
