/* SPDX-License-Identifier: MIT */
/* The SQLite store under store/sql. There is nobody to wait for: a statement runs when it is added,
 * and its rows are copied. */
#include "store/sqlite/driver.h"

#include "base/cleanup.h"
#include "store/writer.h"

enum { TEXT_MAX = 64 * 1024, KEEP = 1 << 16 };

struct cell {
	int64_t number;
	struct ob_str text;
};

struct result {
	struct cell *cells;
	size_t rows, room;
	int columns;
	uint64_t changed;
};

struct lite_run {
	bool writes, relaxed, flushed, joined;
	struct result results[OB_SQL_STATEMENTS];
	size_t count;
	struct ob_arena arena; /* of the rows */
};

static struct lite_run *run_of(struct ob_store *store)
{
	return ((struct lite_store *)store)->run;
}

void lite_run_free(struct lite_run *run)
{
	if (run)
		ob_arena_done(&run->arena);
	free(run);
}

static void lite_sql_clear(struct ob_store *store)
{
	struct lite_run *run = run_of(store);

	if (!run)
		return;
	ob_arena_reset(&run->arena, KEEP);
	run->count = 0;
	run->flushed = false;
}

/*
 * A settle that a power cut undoes is only sent again, and what producers have committed stays as
 * durable as it was: their commits, before or after, sync all of the log.
 */
static bool may_relax(const struct lite_store *s, enum ob_sql_mode mode)
{
	return (mode == OB_SQL_SETTLE || mode == OB_SQL_ALONE) && !s->settle_durable &&
	       s->synchronous == LITE_SYNC_FULL && s->db && !s->in_tx;
}

static void end_relaxed(struct lite_store *s)
{
	struct ob_err ignored = OB_ERR_INIT;

	if (s->run->relaxed && s->db && lite_set_synchronous(s, &ignored) < 0)
		s->broken = true; /* a new connection begins with what was asked for */
	s->run->relaxed = false;
}

static int lite_sql_begin(struct ob_store *store, enum ob_sql_mode mode, const char *doing,
			  struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct ob_err ignored = OB_ERR_INIT;

	if (!s->run) {
		s->run = calloc(1, sizeof(*s->run));
		if (!s->run)
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "%s: out of memory",
					  doing);
		s->run->arena = OB_ARENA_INIT(SIZE_MAX / 2);
	}
	lite_sql_clear(store);
	s->run->writes = mode >= OB_SQL_WRITE;
	s->run->joined = mode == OB_SQL_JOIN;
	if (s->run->joined)
		return s->in_tx ? 0 : ob_writer_no_transaction(err);
	s->run->relaxed = may_relax(s, mode);
	if (s->run->relaxed)
		(void)lite_run(s, LITE_synchronous_normal, OB_NO_ARGS, &ignored);
	int r = s->run->writes ? lite_begin(s, doing, err) : lite_begin_read(s, doing, err);
	if (r < 0)
		end_relaxed(s);
	return r;
}

/* ---- running --------------------------------------------------------- */

static bool keep_row(struct lite_run *run, struct result *result, sqlite3_stmt *stmt)
{
	size_t columns = (size_t)result->columns;

	if (result->rows == result->room) {
		size_t room = result->room ? result->room * 2 : 8;
		struct cell *more = ob_arena_alloc(&run->arena, room * columns * sizeof(*more));

		if (!more)
			return false;
		if (result->rows)
			memcpy(more, result->cells, result->rows * columns * sizeof(*more));
		result->cells = more;
		result->room = room;
	}
	for (int i = 0; i < result->columns; i++) {
		struct cell *cell = &result->cells[result->rows * columns + (size_t)i];

		cell->number = sqlite3_column_int64(stmt, i);
		if (!ob_arena_copy(&run->arena, lite_str(stmt, i), &cell->text))
			return false;
	}
	result->rows++;
	/* A text that could not be fetched looks empty. */
	return sqlite3_errcode(sqlite3_db_handle(stmt)) != SQLITE_NOMEM;
}

static int run_statement(struct lite_store *s, sqlite3_stmt *stmt, struct result *result,
			 struct ob_err *err)
{
	int code = SQLITE_ROW;

	*result = (struct result){ .columns = sqlite3_column_count(stmt) };
	while (code == SQLITE_ROW && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
		if (!keep_row(s->run, result, stmt))
			code = SQLITE_NOMEM;
	}
	int r = code == SQLITE_DONE ? 0 : lite_err(s, code, err);
	if (!sqlite3_stmt_readonly(stmt))
		result->changed = (uint64_t)sqlite3_changes(s->db);
	(void)sqlite3_reset(stmt);
	(void)sqlite3_clear_bindings(stmt); /* the values are the caller's */
	return r;
}

/* A statement with SQL of the caller's in it is prepared each time. */
static int run_raw(struct lite_store *s, enum ob_sql_id id, const struct ob_sql_arg *args,
		   struct result *result, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done)
	struct ob_buf text = OB_BUF_INIT(TEXT_MAX), sql = OB_BUF_INIT(TEXT_MAX);
	sqlite3_stmt *stmt = NULL;
	int r = lite_expand(s->base.layout, lite_template((int)id), 0, &text, err);
	const char *from = ob_buf_str(&text);

	if (r < 0)
		return r;
	for (const char *colon; (colon = strchr(from, ':'));) {
		size_t n = ob_sql_name_length(colon);
		const struct ob_sql_arg *arg = ob_sql_find(args, colon + 1, n);
		bool raw = arg && arg->kind == OB_SQL_KIND_RAW;

		ob_buf_add(&sql, (struct ob_str){ from, (size_t)(colon - from) + !raw });
		if (raw)
			ob_buf_add(&sql, arg->text);
		from = colon + 1 + (raw ? n : 0);
	}
	ob_buf_adds(&sql, from);
	int code = sql.failed ? SQLITE_NOMEM
			      : sqlite3_prepare_v2(s->db, ob_buf_str(&sql), -1, &stmt, NULL);
	if (code != SQLITE_OK)
		return lite_err(s, code, err);
	r = lite_bind_args(s, stmt, args, err);
	if (r == 0)
		r = run_statement(s, stmt, result, err);
	(void)sqlite3_finalize(stmt);
	return r;
}

static int lite_sql_add(struct ob_store *store, enum ob_sql_id id, const struct ob_sql_arg *args,
			struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct lite_run *run = s->run;

	if (run->flushed)
		lite_sql_clear(store);
	struct result *result = &run->results[run->count++];
	*result = (struct result){ 0 };
	if (ob_sql_has_raw(args))
		return run_raw(s, id, args, result, err);
	int r = lite_bind(s, (int)id, args, err);
	return r < 0 ? r : run_statement(s, s->stmt[id], result, err);
}

static int lite_sql_flush(struct ob_store *store, struct ob_err *err)
{
	(void)err;
	run_of(store)->flushed = true;
	return 0;
}

static int lite_sql_end(struct ob_store *store, int r, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;

	if (!s->run->joined)
		r = s->run->writes ? lite_end(s, r, err) : lite_end_read(s, r, err);
	end_relaxed(s);
	s->run->flushed = true;
	return r;
}

/* ---- rows ------------------------------------------------------------ */

static size_t lite_sql_rows(struct ob_store *store, size_t statement)
{
	const struct lite_run *run = run_of(store);

	return run && statement < run->count ? run->results[statement].rows : 0;
}

static uint64_t lite_sql_changed(struct ob_store *store, size_t statement)
{
	const struct lite_run *run = run_of(store);

	return run && statement < run->count ? run->results[statement].changed : 0;
}

static const struct cell *cell_of(struct ob_store *store, size_t statement, size_t row, int column)
{
	const struct result *result = &run_of(store)->results[statement];

	return &result->cells[row * (size_t)result->columns + (size_t)column];
}

/* Times are numbers: microseconds since 1970. */
static int64_t lite_sql_int(struct ob_store *store, size_t statement, size_t row, int column)
{
	return cell_of(store, statement, row, column)->number;
}

static struct ob_str lite_sql_str(struct ob_store *store, size_t statement, size_t row, int column)
{
	return cell_of(store, statement, row, column)->text;
}

static const char *lite_sql_text(enum ob_sql_id id)
{
	return lite_template((int)id);
}

const struct ob_sql_driver lite_driver = {
	.text = lite_sql_text,
	.begin = lite_sql_begin,
	.add = lite_sql_add,
	.flush = lite_sql_flush,
	.end = lite_sql_end,
	.clear = lite_sql_clear,
	.rows = lite_sql_rows,
	.changed = lite_sql_changed,
	.get_int = lite_sql_int,
	.get_time = lite_sql_int,
	.get_str = lite_sql_str,
};
