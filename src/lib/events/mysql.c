/* SPDX-License-Identifier: MIT */
/* Events on MySQL and MariaDB. Statements are prepared for each call. */
#include "base/cleanup.h"
#include "lib/events/drivers.h"
#include "lib/events/row.h"
#include "lib/events/steps.h"
#include "lib/fail.h"
#include "lib/mysql_push.h"
#include "sql_mysql.h"

#include <mysqld_error.h>
#include <stdlib.h>

enum { PARAMS_MAX = 14 };

static void stmt_closep(MYSQL_STMT **stmt)
{
	if (*stmt)
		(void)mysql_stmt_close(*stmt);
}

#define AUTOCLOSE_STMT OB_CLEANUP(stmt_closep)

/* The parameters of a statement, and what they point to. */
struct params {
	MYSQL_BIND binds[PARAMS_MAX];
	unsigned long sizes[PARAMS_MAX];
	int64_t numbers[PARAMS_MAX];
	int count;
};

static void add_bytes(struct params *p, struct ob_str value)
{
	p->binds[p->count] = ob_mysql_bind_bytes(value, &p->sizes[p->count]);
	p->count++;
}

static void add_number(struct params *p, int64_t value)
{
	p->numbers[p->count] = value;
	p->binds[p->count] =
		(MYSQL_BIND){ .buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &p->numbers[p->count] };
	p->count++;
}

static void add_stream(struct params *p, const struct ob_stream_key *stream)
{
	add_bytes(p, ob_str(stream->target));
	add_bytes(p, ob_str(stream->type));
	add_bytes(p, ob_str(stream->id));
}

static int prepare_query(struct ob_mysql_driver *driver, const char *tmpl, MYSQL_STMT **ret,
			 struct outbox_error *err)
{
	if (!driver->layout.column[OB_COL_sequence_number][0])
		return ob_fail(err, OUTBOX_ECONFIG, OUTBOX_NO_INDEX,
			       "the layout has no sequence_number: events need it");
	int r = ob_mysql_prepare(driver, tmpl, ret, err);
	if (r < 0 && strtoul(err->native, NULL, 10) == ER_NO_SUCH_TABLE)
		return ob_fail(
			err, OUTBOX_ESCHEMA, OUTBOX_NO_INDEX,
			"a table of the event store is missing: run `outbox setup --events`");
	return r;
}

static int run_query(struct ob_mysql_driver *driver, MYSQL_STMT *stmt, struct params *p,
		     struct outbox_error *err)
{
	if ((p->count == 0 || !mysql_stmt_bind_param(stmt, p->binds)) &&
	    mysql_stmt_execute(stmt) == 0)
		return 0;
	struct ob_mysql_failure f = ob_mysql_stmt_failure(stmt, "reading the stream");
	int r = ob_mysql_fail(driver, NULL, &f, err);
	return r < 0 ? r : err->status;
}

/* Prepare and run; *ret is closed by the caller in every case. */
static int query(struct ob_mysql_driver *driver, const char *tmpl, struct params *p,
		 MYSQL_STMT **ret, struct outbox_error *err)
{
	int r = prepare_query(driver, tmpl, ret, err);

	return r < 0 ? r : run_query(driver, *ret, p, err);
}

/* The numbers of the first row, 0 for NULL; all are 0 where there is no row. */
static int fetch_numbers(struct ob_mysql_driver *driver, MYSQL_STMT *stmt, int64_t *ret, int count,
			 struct outbox_error *err)
{
	MYSQL_BIND out[3] = { 0 };
	my_bool null[3] = { 0 };

	for (int i = 0; i < count; i++) {
		ret[i] = 0;
		out[i] = (MYSQL_BIND){ .buffer_type = MYSQL_TYPE_LONGLONG,
				       .buffer = &ret[i],
				       .is_null = &null[i] };
	}
	if (mysql_stmt_bind_result(stmt, out) || mysql_stmt_store_result(stmt) != 0 ||
	    mysql_stmt_fetch(stmt) == 1) {
		struct ob_mysql_failure f = ob_mysql_stmt_failure(stmt, "reading the stream");

		return ob_mysql_fail(driver, NULL, &f, err);
	}
	return 0;
}

static int ask_numbers(struct ob_mysql_driver *driver, const char *tmpl, struct params *p,
		       int64_t *ret, int count, struct outbox_error *err)
{
	AUTOCLOSE_STMT MYSQL_STMT *stmt = NULL;
	int r = query(driver, tmpl, p, &stmt, err);

	return r < 0 ? r : fetch_numbers(driver, stmt, ret, count, err);
}

/* The statement stays prepared; after a failure it is made anew. */
static int ask_look(struct ob_mysql_driver *driver, struct params *p, int64_t ret[2],
		    struct outbox_error *err)
{
	int r = driver->look ? 0 : prepare_query(driver, sql_mysql_stream_look, &driver->look, err);

	if (r == 0)
		r = run_query(driver, driver->look, p, err);
	if (r == 0)
		r = fetch_numbers(driver, driver->look, ret, 2, err);
	if (driver->look)
		(void)mysql_stmt_free_result(driver->look);
	if (r != 0 && driver->look) {
		(void)mysql_stmt_close(driver->look);
		driver->look = NULL;
	}
	return r;
}

int ob_mysql_look_stream(void *self, const struct ob_stream_key *stream,
			 struct ob_stream_state *ret, struct outbox_error *err)
{
	struct params p = { 0 };
	int64_t found[2];

	for (int i = 0; i < 2; i++)
		add_stream(&p, stream);
	int r = ask_look(self, &p, found, err);
	if (r == 0)
		*ret = (struct ob_stream_state){ found[0], found[1] / 4, (int)(found[1] % 4) };
	return r;
}

static int mysql_actual(void *self, const struct ob_stream_key *stream, int64_t *ret,
			struct outbox_error *err)
{
	struct params p = { 0 };

	add_stream(&p, stream);
	return ask_numbers(self, sql_mysql_stream_actual, &p, ret, 1, err);
}

int ob_mysql_keep_stream(void *self, const struct ob_stream_key *stream,
			 const struct ob_stream_state *state, struct outbox_error *err)
{
	bool forget = state->end == OUTBOX_STREAM_OPEN && state->first_version == 1;
	AUTOCLOSE_STMT MYSQL_STMT *stmt = NULL;
	struct params p = { 0 };

	add_stream(&p, stream);
	if (!forget) {
		add_number(&p, state->end);
		add_number(&p, state->first_version);
	}
	return query(self, forget ? sql_mysql_stream_forget : sql_mysql_stream_keep, &p, &stmt,
		     err);
}

static int mysql_version_of(void *self, const struct ob_stream_key *stream,
			    const struct ob_uuid *id, int64_t *ret, struct outbox_error *err)
{
	char text[OB_UUID_TEXT_SIZE];
	struct params p = { 0 };

	add_stream(&p, stream);
	add_bytes(&p, ob_mysql_id(self, id, text));
	return ask_numbers(self, sql_mysql_stream_version_of, &p, ret, 1, err);
}

static int mysql_place(void *self, const struct ob_stream_key *stream, int64_t first, int64_t last,
		       int64_t ret[2], struct outbox_error *err)
{
	struct params p = { 0 };

	add_stream(&p, stream);
	add_number(&p, first);
	add_number(&p, last);
	return ask_numbers(self, sql_mysql_stream_place, &p, ret, 2, err);
}

int ob_mysql_append(void *self, const struct ob_append *call, struct ob_append_done *ret,
		    struct outbox_error *err)
{
	const struct ob_append_steps steps = {
		.driver = self,
		.look = ob_mysql_look_stream,
		.actual = mysql_actual,
		.insert = ob_mysql_insert,
		.version_of = mysql_version_of,
		.place = mysql_place,
	};

	return ob_append_by_steps(&steps, call, ret, err);
}

/* ---- reading --------------------------------------------------------- */

/* Columns are fetched one by one: how long a text is, is known only then. */
static int take_row(MYSQL_STMT *stmt, const unsigned long *sizes, const my_bool *nulls,
		    const int64_t *numbers, struct ob_event_page *page, struct outbox_error *err)
{
	struct ob_event_row row = { 0 };

	for (unsigned c = 0; c < OB_EV_COLUMNS; c++) {
		row.number[c] = numbers[c];
		if (ob_event_is_number((int)c) || nulls[c])
			continue;
		char *text = ob_arena_alloc(&page->arena, sizes[c] + 1);
		MYSQL_BIND out = { .buffer_type = MYSQL_TYPE_BLOB,
				   .buffer = text,
				   .buffer_length = sizes[c] };

		if (!text)
			return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
		if (sizes[c] > 0 && mysql_stmt_fetch_column(stmt, &out, c, 0) != 0)
			return ob_fail(err, OUTBOX_ESTORE, OUTBOX_NO_INDEX,
				       "reading events: %.180s", mysql_stmt_error(stmt));
		row.text[c] = (struct ob_str){ text, sizes[c] };
	}
	return ob_event_add(page, &row, err);
}

static int take_rows(MYSQL_STMT *stmt, struct ob_event_page *page, struct outbox_error *err)
{
	MYSQL_BIND out[OB_EV_COLUMNS] = { 0 };
	unsigned long sizes[OB_EV_COLUMNS] = { 0 };
	my_bool nulls[OB_EV_COLUMNS] = { 0 };
	int64_t numbers[OB_EV_COLUMNS] = { 0 };
	int r = 0, got = 0;

	for (int c = 0; c < OB_EV_COLUMNS; c++) {
		out[c] = (MYSQL_BIND){ .buffer_type = MYSQL_TYPE_BLOB,
				       .length = &sizes[c],
				       .is_null = &nulls[c] };
		if (ob_event_is_number(c)) {
			out[c].buffer_type = MYSQL_TYPE_LONGLONG;
			out[c].buffer = &numbers[c];
		}
	}
	if (mysql_stmt_bind_result(stmt, out) || mysql_stmt_store_result(stmt) != 0)
		got = 1;
	while (r == 0 && got != 1 && (got = mysql_stmt_fetch(stmt)) != MYSQL_NO_DATA && got != 1)
		r = take_row(stmt, sizes, nulls, numbers, page, err);
	if (r == 0 && got == 1)
		r = ob_fail(err, OUTBOX_ESTORE, OUTBOX_NO_INDEX, "reading events: %.180s",
			    mysql_stmt_error(stmt));
	return r;
}

int ob_mysql_pin_log(void *self, int64_t *ret_end, char **ret_now, struct outbox_error *err)
{
	struct params p = { 0 };

	*ret_now = NULL;
	return ask_numbers(self, sql_mysql_log_end, &p, ret_end, 1, err);
}

/* A text that narrows, or NULL: it stands twice in the statement. */
static void add_wish(struct params *p, const char *text)
{
	add_bytes(p, ob_str(text));
	add_bytes(p, ob_str(text));
}

static void bind_log(const struct ob_event_query *q, struct params *p)
{
	add_number(p, q->after_position);
	add_number(p, q->to_position);
	add_bytes(p, ob_str(q->stream.target));
	add_wish(p, q->stream.type);
	add_number(p, q->after_us);
	add_number(p, q->to_us);
	add_wish(p, q->event_type);
	add_wish(p, q->correlation_id);
	add_number(p, q->with_ended);
}

static void bind_stream(const struct ob_event_query *q, struct params *p)
{
	const int64_t bounds[] = { q->after_version, q->to_version, q->after_position,
				   q->to_position,   q->after_us,   q->to_us };

	add_stream(p, &q->stream);
	for (int i = 0; i < 6; i++)
		add_number(p, bounds[i]);
	add_wish(p, q->event_type);
}

int ob_mysql_read_events(void *self, const struct ob_event_query *q, struct ob_event_page *page,
			 struct outbox_error *err)
{
	const char *forward = q->log ? sql_mysql_log_forward : sql_mysql_stream_forward;
	const char *backward = q->log ? sql_mysql_log_backward : sql_mysql_stream_backward;
	AUTOCLOSE_STMT MYSQL_STMT *stmt = NULL;
	struct params p = { 0 };

	if (q->recent) {
		add_bytes(&p, ob_str(q->stream.target));
		add_number(&p, q->to_position);
	} else if (q->log) {
		bind_log(q, &p);
	} else {
		bind_stream(q, &p);
	}
	add_number(&p, q->limit);
	int r = query(self,
		      q->recent     ? sql_mysql_streams_recent
		      : q->backward ? backward
				    : forward,
		      &p, &stmt, err);
	return r < 0 ? r : take_rows(stmt, page, err);
}

/* ---- small statements ------------------------------------------------ */

static int take_cells(MYSQL_STMT *stmt, unsigned columns, const unsigned long *sizes,
		      const my_bool *nulls, struct ob_answer *ret, struct outbox_error *err)
{
	struct ob_str *row = ob_answer_row(ret, err);

	if (!row)
		return err->status;
	for (unsigned c = 0; c < columns; c++) {
		if (nulls[c])
			continue;
		char *text = ob_arena_alloc(&ret->arena, sizes[c] + 1);
		MYSQL_BIND out = { .buffer_type = MYSQL_TYPE_STRING,
				   .buffer = text,
				   .buffer_length = sizes[c] };

		if (!text)
			return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
		if (sizes[c] > 0 && mysql_stmt_fetch_column(stmt, &out, c, 0) != 0)
			return ob_fail(err, OUTBOX_ESTORE, OUTBOX_NO_INDEX, "%.180s",
				       mysql_stmt_error(stmt));
		row[c] = (struct ob_str){ text, sizes[c] };
	}
	return 0;
}

static int take_answer(MYSQL_STMT *stmt, struct ob_answer *ret, struct outbox_error *err)
{
	unsigned columns = mysql_stmt_field_count(stmt);
	MYSQL_BIND out[OB_ASK_COLUMNS] = { 0 };
	unsigned long sizes[OB_ASK_COLUMNS] = { 0 };
	my_bool nulls[OB_ASK_COLUMNS] = { 0 };
	int r = 0, got = 0;

	if (columns == 0) {
		ret->changed = mysql_stmt_affected_rows(stmt);
		return 0;
	}
	for (int c = 0; c < OB_ASK_COLUMNS; c++)
		out[c] = (MYSQL_BIND){ .buffer_type = MYSQL_TYPE_STRING,
				       .length = &sizes[c],
				       .is_null = &nulls[c] };
	if (mysql_stmt_bind_result(stmt, out) || mysql_stmt_store_result(stmt) != 0)
		got = 1;
	while (r == 0 && got != 1 && (got = mysql_stmt_fetch(stmt)) != MYSQL_NO_DATA && got != 1)
		r = take_cells(stmt, columns, sizes, nulls, ret, err);
	if (r == 0 && got == 1)
		r = ob_fail(err, OUTBOX_ESTORE, OUTBOX_NO_INDEX, "%.180s", mysql_stmt_error(stmt));
	return r;
}

int ob_mysql_ask(void *self, enum ob_ask ask, const struct ob_ask_value *values, size_t count,
		 struct ob_answer *ret, struct outbox_error *err)
{
	static const char *const templates[] = {
#define X(name) [OB_ASK_##name] = sql_mysql_##name,
		OB_ASK_MAP(X)
#undef X
	};
	AUTOCLOSE_STMT MYSQL_STMT *stmt = NULL;
	struct params p = { 0 };

	for (size_t i = 0; i < count; i++) {
		if (values[i].is_number)
			add_number(&p, values[i].number);
		else
			add_bytes(&p, values[i].text);
	}
	int r = query(self, templates[ask], &p, &stmt, err);
	return r < 0 ? r : take_answer(stmt, ret, err);
}
