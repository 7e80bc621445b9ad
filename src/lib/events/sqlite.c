/* SPDX-License-Identifier: MIT */
/* Events on SQLite. Only the statement that every append runs stays prepared. */
#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "lib/events/drivers.h"
#include "lib/events/row.h"
#include "lib/events/steps.h"
#include "lib/fail.h"
#include "lib/sqlite_push.h"
#include "sql_sqlite.h"

enum { SQL_MAX = 64 * 1024 };

static void finalizep(sqlite3_stmt **stmt)
{
	(void)sqlite3_finalize(*stmt);
}

#define AUTOFINALIZE OB_CLEANUP(finalizep)

/* To ?1, ?2, ?3; always 0. */
static int bind_stream(sqlite3_stmt *stmt, const struct ob_stream_key *stream)
{
	const char *const names[] = { stream->target, stream->type, stream->id };

	for (int i = 0; i < 3 && stream->target; i++)
		(void)sqlite3_bind_text(stmt, i + 1, names[i], -1, SQLITE_STATIC);
	return 0;
}

/* Prepare, and bind the stream. */
static int prepare_stream(struct ob_sqlite_driver *driver, const char *tmpl,
			  const struct ob_stream_key *stream, sqlite3_stmt **ret,
			  struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);
	struct ob_err inner = OB_ERR_INIT;

	if (ob_sqltmpl_expand(&sql, tmpl, &driver->layout, '"', NULL, &inner) < 0)
		return ob_fail(err, OUTBOX_ECONFIG, OUTBOX_NO_INDEX,
			       "the layout has no sequence_number: events need it");
	if (sqlite3_prepare_v2(driver->db, ob_buf_str(&sql), -1, ret, NULL) != SQLITE_OK) {
		if ((sqlite3_errcode(driver->db) & 0xff) == SQLITE_ERROR)
			return ob_fail(err, OUTBOX_ESCHEMA, OUTBOX_NO_INDEX,
				       "%s: run `outbox setup --events`",
				       sqlite3_errmsg(driver->db));
		return ob_sqlite_fail(driver, NULL, "reading the stream", err);
	}
	return bind_stream(*ret, stream);
}

/* One row of numbers; false in *ret_found: there is none. */
static int step_numbers(struct ob_sqlite_driver *driver, sqlite3_stmt *stmt, int64_t *ret,
			int count, bool *ret_found, struct outbox_error *err)
{
	int rc = sqlite3_step(stmt);

	*ret_found = rc == SQLITE_ROW;
	for (int i = 0; *ret_found && i < count; i++)
		ret[i] = sqlite3_column_int64(stmt, i);
	if (rc == SQLITE_ROW || rc == SQLITE_DONE)
		return 0;
	int r = ob_sqlite_fail(driver, NULL, "reading the stream", err);
	return r < 0 ? r : err->status;
}

int ob_sqlite_look_stream(void *self, const struct ob_stream_key *stream,
			  struct ob_stream_state *ret, struct outbox_error *err)
{
	struct ob_sqlite_driver *driver = self;
	int64_t found[3] = { 0, 0, 1 };
	bool any;
	int r = driver->look
			? bind_stream(driver->look, stream)
			: prepare_stream(self, sql_sqlite_stream_look, stream, &driver->look, err);

	if (r == 0) {
		r = step_numbers(self, driver->look, found, 3, &any, err);
		(void)sqlite3_reset(driver->look);
		(void)sqlite3_clear_bindings(driver->look); /* they are the caller's memory */
	}
	if (r == 0)
		*ret = (struct ob_stream_state){ found[0], found[2], (int)found[1] };
	return r;
}

static int sqlite_actual(void *self, const struct ob_stream_key *stream, int64_t *ret,
			 struct outbox_error *err)
{
	struct ob_stream_state state;
	int r = ob_sqlite_look_stream(self, stream, &state, err);

	if (r == 0)
		*ret = state.version;
	return r;
}

int ob_sqlite_keep_stream(void *self, const struct ob_stream_key *stream,
			  const struct ob_stream_state *state, struct outbox_error *err)
{
	AUTOFINALIZE sqlite3_stmt *stmt = NULL;
	bool forget = state->end == OUTBOX_STREAM_OPEN && state->first_version == 1, any;
	int r = prepare_stream(self, forget ? sql_sqlite_stream_forget : sql_sqlite_stream_keep,
			       stream, &stmt, err);

	if (r < 0)
		return r;
	if (!forget) {
		(void)sqlite3_bind_int(stmt, 4, state->end);
		(void)sqlite3_bind_int64(stmt, 5, state->first_version);
	}
	return step_numbers(self, stmt, NULL, 0, &any, err);
}

static int sqlite_version_of(void *self, const struct ob_stream_key *stream,
			     const struct ob_uuid *id, int64_t *ret, struct outbox_error *err)
{
	AUTOFINALIZE sqlite3_stmt *stmt = NULL;
	bool any;
	int r = prepare_stream(self, sql_sqlite_stream_version_of, stream, &stmt, err);

	*ret = 0;
	if (r == 0)
		(void)ob_sqlite_bind_id(self, stmt, 4, id);
	return r < 0 ? r : step_numbers(self, stmt, ret, 1, &any, err);
}

static int sqlite_place(void *self, const struct ob_stream_key *stream, int64_t first, int64_t last,
			int64_t ret[2], struct outbox_error *err)
{
	AUTOFINALIZE sqlite3_stmt *stmt = NULL;
	bool any;
	int r = prepare_stream(self, sql_sqlite_stream_place, stream, &stmt, err);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 4, first);
	(void)sqlite3_bind_int64(stmt, 5, last);
	return step_numbers(self, stmt, ret, 2, &any, err);
}

int ob_sqlite_append(void *self, const struct ob_append *call, struct ob_append_done *ret,
		     struct outbox_error *err)
{
	const struct ob_append_steps steps = {
		.driver = self,
		.look = ob_sqlite_look_stream,
		.actual = sqlite_actual,
		.insert = ob_sqlite_insert,
		.version_of = sqlite_version_of,
		.place = sqlite_place,
	};

	return ob_append_by_steps(&steps, call, ret, err);
}

/* ---- reading --------------------------------------------------------- */

/* Numbers are the order of commits: the highest one says it all. */
int ob_sqlite_pin_log(void *self, int64_t *ret_end, char **ret_now, struct outbox_error *err)
{
	const struct ob_stream_key none = { 0 };
	AUTOFINALIZE sqlite3_stmt *stmt = NULL;
	bool any;
	int r = prepare_stream(self, sql_sqlite_log_end, &none, &stmt, err);

	*ret_now = NULL;
	return r < 0 ? r : step_numbers(self, stmt, ret_end, 1, &any, err);
}

static int take_row(sqlite3_stmt *stmt, struct ob_event_page *page, struct outbox_error *err)
{
	struct ob_event_row row = { 0 };

	for (int c = 0; c < OB_EV_COLUMNS; c++) {
		if (ob_event_is_number(c))
			row.number[c] = sqlite3_column_int64(stmt, c);
		else if (sqlite3_column_type(stmt, c) != SQLITE_NULL) {
			const void *p = sqlite3_column_blob(stmt, c);
			row.text[c] = (struct ob_str){ p ? p : "",
						       (size_t)sqlite3_column_bytes(stmt, c) };
		}
	}
	return ob_event_add(page, &row, err);
}

static void bind_window(sqlite3_stmt *stmt, const struct ob_event_query *q)
{
	const int64_t bounds[] = { q->after_version, q->to_version, q->after_position,
				   q->to_position,   q->after_us,   q->to_us };

	if (q->recent) {
		(void)sqlite3_bind_int64(stmt, 2, q->to_position);
		(void)sqlite3_bind_int64(stmt, 3, q->limit);
		return;
	}
	if (q->log) {
		for (int i = 2; i < 6; i++)
			(void)sqlite3_bind_int64(stmt, 2 + i, bounds[i]);
		(void)sqlite3_bind_text(stmt, 8, q->event_type, -1, SQLITE_STATIC);
		(void)sqlite3_bind_text(stmt, 9, q->correlation_id, -1, SQLITE_STATIC);
		(void)sqlite3_bind_int(stmt, 10, q->with_ended);
		(void)sqlite3_bind_int64(stmt, 11, q->limit);
		return;
	}
	for (int i = 0; i < 6; i++)
		(void)sqlite3_bind_int64(stmt, 4 + i, bounds[i]);
	(void)sqlite3_bind_text(stmt, 10, q->event_type, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(stmt, 11, q->limit);
}

int ob_sqlite_read_events(void *self, const struct ob_event_query *q, struct ob_event_page *page,
			  struct outbox_error *err)
{
	AUTOFINALIZE sqlite3_stmt *stmt = NULL;
	const char *forward = q->log ? sql_sqlite_log_forward : sql_sqlite_stream_forward;
	const char *backward = q->log ? sql_sqlite_log_backward : sql_sqlite_stream_backward;
	const char *tmpl = q->recent ? sql_sqlite_streams_recent : q->backward ? backward : forward;
	int r = prepare_stream(self, tmpl, &q->stream, &stmt, err), rc = SQLITE_ROW;

	if (r < 0)
		return r;
	bind_window(stmt, q);
	while (r == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
		r = take_row(stmt, page, err);
	if (r == 0 && rc != SQLITE_DONE)
		r = ob_sqlite_fail(self, NULL, "reading events", err);
	return r;
}

/* ---- small statements ------------------------------------------------ */

static int take_answer(sqlite3_stmt *stmt, struct ob_answer *ret, struct outbox_error *err)
{
	struct ob_str *row = ob_answer_row(ret, err);
	int columns = sqlite3_column_count(stmt), r = row ? 0 : err->status;

	for (int i = 0; i < columns && i < OB_ASK_COLUMNS && r == 0; i++) {
		const void *p = sqlite3_column_text(stmt, i);

		if (p)
			r = ob_answer_cell(
				ret, &row[i],
				(struct ob_str){ p, (size_t)sqlite3_column_bytes(stmt, i) }, err);
	}
	return r;
}

int ob_sqlite_ask(void *self, enum ob_ask ask, const struct ob_ask_value *values, size_t count,
		  struct ob_answer *ret, struct outbox_error *err)
{
	static const char *const templates[] = {
#define X(name) [OB_ASK_##name] = sql_sqlite_##name,
		OB_ASK_MAP(X)
#undef X
	};
	const struct ob_sqlite_driver *driver = self;
	const struct ob_stream_key none = { 0 };
	AUTOFINALIZE sqlite3_stmt *stmt = NULL;
	int r = prepare_stream(self, templates[ask], &none, &stmt, err), rc = SQLITE_ROW;

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		const struct ob_ask_value *v = &values[i];

		if (v->is_number)
			(void)sqlite3_bind_int64(stmt, (int)i + 1, v->number);
		else if (v->text.p)
			(void)sqlite3_bind_text64(stmt, (int)i + 1, v->text.p, v->text.n,
						  SQLITE_STATIC, SQLITE_UTF8);
	}
	while (r == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
		r = take_answer(stmt, ret, err);
	if (r == 0 && rc != SQLITE_DONE)
		r = ob_sqlite_fail(self, NULL, "asking about events", err);
	if (r == 0 && !sqlite3_stmt_readonly(stmt))
		ret->changed = (uint64_t)sqlite3_changes(driver->db);
	return r > 0 ? err->status : r;
}
