/* SPDX-License-Identifier: MIT */
/*
 * The PostgreSQL store under store/sql. The :names of a template become $1, $2, ... in the order in
 * which they stand in it; a table becomes the arrays of its columns, so that it can be unnested.
 */
#include "store/postgres/driver.h"

#include "base/cleanup.h"
#include "store/postgres/schema.h"
#include "store/writer.h"

enum { TEXT_MAX = 64 * 1024 };

/* ---- texts ----------------------------------------------------------- */

static const char *array_type(char type)
{
	return type == 'i' ? "bigint[]" : type == 't' ? "text[]" : "uuid[]";
}

/* The place of a parameter among those that were met; a table takes one for each column. */
static int place_of(const char **names, int *count, const struct ob_sql_arg *arg)
{
	bool table = arg->kind == OB_SQL_KIND_TABLE;
	int columns = table ? (int)strlen(arg->table->types) : 1;

	for (int i = 0; i < *count; i++) {
		if (names[i] && strcmp(names[i], arg->name) == 0)
			return i;
	}
	if (*count + columns > PG_PARAMS_MAX)
		return -1;
	names[*count] = arg->name;
	for (int i = 1; i < columns; i++)
		names[*count + i] = "";
	*count += columns;
	return *count - columns;
}

static void add_param(struct ob_buf *out, const struct ob_sql_arg *arg, int place)
{
	if (arg->kind == OB_SQL_KIND_RAW) {
		ob_buf_add(out, arg->text);
	} else if (arg->kind == OB_SQL_KIND_TABLE || arg->kind == OB_SQL_KIND_LIST) {
		for (int i = 0; arg->table->types[i]; i++)
			ob_buf_addf(out, "%s$%d::%s", i ? ", " : "", place + i + 1,
				    array_type(arg->table->types[i]));
	} else {
		ob_buf_addf(out, "$%d", place + 1);
	}
}

/* The key of the session lock, if it is that of the worker `id`. */
static struct ob_sql_arg session_arg(const struct pg_store *s, const struct ob_sql_arg *args)
{
	const struct ob_sql_arg *id = ob_sql_find(args, "id", 2);

	if (!id || !ob_str_eq(id->text, ob_sql_uuid_bytes(&s->session)))
		return OB_ARG_TEXT("session", NULL);
	return OB_ARG_INT("session", pg_session_key(&s->session));
}

static const struct ob_sql_arg *find_arg(const struct ob_sql_arg *args,
					 const struct ob_sql_arg *own, const char *name, size_t n)
{
	const struct ob_sql_arg *arg = ob_sql_find(args, name, n);

	return arg ? arg : ob_sql_find(own, name, n);
}

/* Put numbers in place of names; `names` is filled in their order. */
static int number_params(const char *text, const struct ob_sql_arg *args,
			 const struct ob_sql_arg *own, const char **names, struct ob_buf *out,
			 struct ob_err *err)
{
	int count = 0;

	for (const char *colon; (colon = strchr(text, ':'));) {
		size_t n = ob_sql_name_length(colon);
		bool cast = colon[1] == ':';

		ob_buf_add(out, (struct ob_str){ text, (size_t)(colon - text) });
		text = colon + 1 + (cast ? 1 : n);
		if (cast || n == 0) {
			ob_buf_adds(out, cast ? "::" : ":");
			continue;
		}
		const struct ob_sql_arg *arg = find_arg(args, own, colon + 1, n);
		int place = !arg                           ? -1
			    : arg->kind == OB_SQL_KIND_RAW ? 0
							   : place_of(names, &count, arg);
		if (place < 0)
			return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
					  "no value for '%.*s' in an SQL template, or too many",
					  (int)n, colon + 1);
		add_param(out, arg, place);
	}
	ob_buf_adds(out, text);
	return out->failed ? pg_oom("building SQL", err) : 0;
}

static int make_text(struct pg_store *s, enum ob_sql_id id, const struct ob_sql_arg *args,
		     const struct ob_sql_arg *own, const char **names, struct ob_buf *out,
		     struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT(TEXT_MAX);
	int r = pg_expand(s->base.layout, pg_template(id), 0, &text, err);

	return r < 0 ? r : number_params(ob_buf_str(&text), args, own, names, out, err);
}

/* ---- values ---------------------------------------------------------- */

static void add_column(struct pg_params *p, const struct ob_sql_table *table, size_t column)
{
	static const enum ob_pgtype types[] = {
		['i'] = OB_PG_INT8, ['t'] = OB_PG_TEXT, ['u'] = OB_PG_UUID
	};
	size_t columns = strlen(table->types);
	char type = table->types[column];
	struct ob_pgarray *array = pg_array(p, types[(unsigned char)type]);

	for (size_t i = column; i < table->count; i += columns) {
		if (type == 'i')
			ob_pgarray_int(array, table->cells[i].number);
		else
			ob_pgarray_str(array, table->cells[i].text);
	}
	array->data.failed |= table->failed;
}

static void add_value(struct pg_params *p, const struct ob_sql_arg *arg)
{
	if (arg->kind == OB_SQL_KIND_INT)
		pg_int(p, arg->number);
	else if (arg->table)
		for (size_t i = 0; arg->table->types[i]; i++)
			add_column(p, arg->table, i);
	else
		pg_str(p, arg->text);
}

static void add_values(struct pg_params *p, const char *const *names, const struct ob_sql_arg *args,
		       const struct ob_sql_arg *own)
{
	for (int i = 0; i < PG_PARAMS_MAX && names[i]; i++) {
		/* The further columns of a table. */
		if (names[i][0])
			add_value(p, find_arg(args, own, names[i], strlen(names[i])));
	}
}

/* ---- the operation --------------------------------------------------- */

/* The open transaction is used without a pipeline; our own statements need one. */
static int join_tx(struct pg_store *s, struct ob_err *err)
{
	if (!s->in_tx)
		return ob_writer_no_transaction(err);
	if (s->broken || PQtransactionStatus(s->conn) != PQTRANS_INTRANS)
		return ob_writer_rolled_back(err);
	pg_clear(s);
	if (!PQenterPipelineMode(s->conn)) {
		s->broken = true;
		return pg_err(s, NULL, s->doing, err);
	}
	s->joined = true;
	return 0;
}

static int leave_tx(struct pg_store *s, int r, struct ob_err *err)
{
	struct ob_err ignored;

	s->joined = false;
	if (s->queued > 0) {
		int sent = pg_flush(s, r < 0 ? &ignored : err);

		r = r < 0 ? r : sent;
	}
	if (!s->broken && s->conn && !PQexitPipelineMode(s->conn))
		s->broken = true;
	return r;
}

static int pg_sql_begin(struct ob_store *store, enum ob_sql_mode mode, const char *doing,
			struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;

	s->doing = doing;
	if (mode == OB_SQL_JOIN)
		return join_tx(s, err);
	s->unlimited = mode == OB_SQL_LONG_READ;
	switch (mode) {
	case OB_SQL_PEEK:
	case OB_SQL_BEAT:
		return pg_begin_batch(s, true, err);
	case OB_SQL_SETTLE:
		return pg_begin_batch(s, !s->settle_durable, err);
	case OB_SQL_ALONE:
		return s->settle_durable ? pg_begin_batch(s, false, err)
					 : pg_begin_snapshot(s, err);
	case OB_SQL_READ:
	case OB_SQL_WRITE:
	case OB_SQL_LONG_READ:
	case OB_SQL_JOIN:
	default:
		return pg_begin(s, err);
	}
}

static int pg_sql_add(struct ob_store *store, enum ob_sql_id id, const struct ob_sql_arg *args,
		      struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(TEXT_MAX);
	struct pg_store *s = (struct pg_store *)store;
	const struct ob_sql_arg own[] = { session_arg(s, args), { .name = NULL } };
	const char *once[PG_PARAMS_MAX] = { NULL }, **names = s->names[id];
	struct pg_params p = { 0 };
	bool raw = ob_sql_has_raw(args);
	int r = 0;

	if (raw)
		names = once;
	if (raw || !s->sql[id]) {
		r = make_text(s, id, args, own, names, &sql, err);
		if (r < 0)
			return r;
	}
	if (!raw && !s->sql[id])
		s->sql[id] = ob_buf_take(&sql);
	add_values(&p, names, args, own);
	return raw ? pg_add_sql(s, ob_buf_str(&sql), s->doing, &p, err)
		   : pg_add(s, (int)id, &p, err);
}

static int pg_sql_flush(struct ob_store *store, struct ob_err *err)
{
	return pg_flush((struct pg_store *)store, err);
}

static int pg_sql_end(struct ob_store *store, int r, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	int ended;

	if (s->joined)
		return leave_tx(s, r, err);
	/* Rows of the last flush are still read: the commit must not drop them. */
	s->keep = r >= 0;
	for (int i = 0; i < s->queued; i++)
		s->keep = s->keep && s->queue[i].hidden;
	ended = pg_finish(s, r, err);
	s->keep = s->unlimited = false;
	return ended;
}

static void pg_sql_clear(struct ob_store *store)
{
	pg_clear((struct pg_store *)store);
}

/* ---- rows ------------------------------------------------------------ */

static PGresult *result_of(struct ob_store *store, size_t statement)
{
	const struct pg_store *s = (struct pg_store *)store;

	return statement < (size_t)s->result_count ? s->results[statement] : NULL;
}

static size_t pg_sql_rows(struct ob_store *store, size_t statement)
{
	const PGresult *result = result_of(store, statement);

	return result ? (size_t)PQntuples(result) : 0;
}

static uint64_t pg_sql_changed(struct ob_store *store, size_t statement)
{
	PGresult *result = result_of(store, statement);

	return result ? pg_changed(result) : 0;
}

static int64_t pg_sql_int(struct ob_store *store, size_t statement, size_t row, int column)
{
	return pg_get_int(result_of(store, statement), (int)row, column);
}

static int64_t pg_sql_time(struct ob_store *store, size_t statement, size_t row, int column)
{
	return pg_get_time(result_of(store, statement), (int)row, column);
}

static struct ob_str pg_sql_str(struct ob_store *store, size_t statement, size_t row, int column)
{
	return pg_get_str(result_of(store, statement), (int)row, column);
}

const struct ob_sql_driver pg_driver = {
	.text = pg_template,
	.begin = pg_sql_begin,
	.add = pg_sql_add,
	.flush = pg_sql_flush,
	.end = pg_sql_end,
	.clear = pg_sql_clear,
	.rows = pg_sql_rows,
	.changed = pg_sql_changed,
	.get_int = pg_sql_int,
	.get_time = pg_sql_time,
	.get_str = pg_sql_str,
	.hold_session = pg_hold_session,
	.left_session = pg_left_session,
	.check_numbering = pg_check_numbering,
};
