/* SPDX-License-Identifier: MIT */
/* Operations over a driver: the first failure is kept, rows become structs. */
#include "store/sql/sql.h"

#include "base/cleanup.h"
#include "base/sqltmpl.h"

#define STATE_NUMBER(name, word, number) { #word, OB_STATE_##name },
#define VIEW_NUMBER(name, text)          { "view_" text, OB_VIEW_##name },

int ob_sql_expand(const struct ob_layout *layout, const char *tmpl, char quote,
		  int64_t partition_count, struct ob_buf *out, struct ob_err *err)
{
	const struct ob_sqltmpl_number numbers[] = {
		{ "schema_version", OB_SCHEMA_VERSION },
		{ "partition_count", partition_count },
		{ "lanes", OB_LANES },
		{ "audit_days", OB_AUDIT_DAYS },
		OB_STATE_MAP(STATE_NUMBER) OB_VIEW_MAP(VIEW_NUMBER){ NULL, 0 },
	};

	return ob_sqltmpl_expand(out, tmpl, layout, quote, numbers, err);
}

static const struct ob_sql_driver *driver_of(const struct ob_sql *q)
{
	return q->store->ops->sql;
}

/* ---- an operation ---------------------------------------------------- */

void ob_sql_begin(struct ob_sql *q, struct ob_store *store, enum ob_sql_mode mode,
		  const char *doing)
{
	*q = (struct ob_sql){ .store = store, .doing = doing };
	q->open = driver_of(q)->begin(store, mode, doing, &q->err) == 0;
}

static bool is_empty(const char *text)
{
	return text[strspn(text, "\n")] == '\0';
}

size_t ob_sql_add(struct ob_sql *q, enum ob_sql_id id, const struct ob_sql_arg *args)
{
	bool empty = is_empty(driver_of(q)->text(id));

	if (q->added == OB_SQL_STATEMENTS && q->err.status == 0)
		(void)ob_err_set(&q->err, OUTBOX_EINVAL, OB_ERR_FATAL,
				 "%s: too many statements at once", q->doing);
	if (q->err.status)
		return 0;
	q->places[q->added] = empty ? -1 : q->sent++;
	if (!empty)
		(void)driver_of(q)->add(q->store, id, args, &q->err);
	return q->added++;
}

/* What failed before is what is reported. */
static int failed(const struct ob_sql *q, struct ob_err *err)
{
	if (q->err.status)
		*err = q->err;
	return q->err.status;
}

int ob_sql_flush(struct ob_sql *q, struct ob_err *err)
{
	if (q->err.status == 0)
		(void)driver_of(q)->flush(q->store, &q->err);
	q->added = 0;
	q->sent = 0;
	return failed(q, err);
}

int ob_sql_end(struct ob_sql *q, int r, struct ob_err *err)
{
	if (r >= 0 && q->err.status)
		r = failed(q, err);
	if (!q->open)
		return r;
	q->open = false;
	return driver_of(q)->end(q->store, r, err);
}

int ob_sql_commit(struct ob_sql *q, struct ob_err *err)
{
	return ob_sql_end(q, 0, err);
}

void ob_sql_done(struct ob_sql *q)
{
	struct ob_err ignored;

	if (q->open)
		(void)ob_sql_end(q, OUTBOX_ESTORE, &ignored);
	if (q->store)
		driver_of(q)->clear(q->store);
}

bool ob_sql_again(struct ob_store *store, int tries, struct ob_err *err)
{
	if (!store->ops->sql->again || !store->ops->sql->again(store, tries))
		return false;
	*err = OB_ERR_INIT;
	return true;
}

int ob_sql_oom(const struct ob_sql *q, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "%s: out of memory", q->doing);
}

int ob_sql_no_reader(const char *reader, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
			  "there is no reader '%.100s': `outbox readers list` shows them", reader);
}

/* ---- rows ------------------------------------------------------------ */

struct ob_sql_rows ob_sql_rows(const struct ob_sql *q, size_t statement)
{
	/* The first step goes to row 0. */
	return (struct ob_sql_rows){ .store = q->store,
				     .statement = (size_t)q->places[statement],
				     .row = SIZE_MAX,
				     .count = ob_sql_count(q, statement) };
}

bool ob_sql_next(struct ob_sql_rows *rows)
{
	return ++rows->row < rows->count;
}

int64_t ob_sql_int(const struct ob_sql_rows *rows, int column)
{
	return rows->store->ops->sql->get_int(rows->store, rows->statement, rows->row, column);
}

int64_t ob_sql_time(const struct ob_sql_rows *rows, int column)
{
	return rows->store->ops->sql->get_time(rows->store, rows->statement, rows->row, column);
}

struct ob_str ob_sql_str(const struct ob_sql_rows *rows, int column)
{
	return rows->store->ops->sql->get_str(rows->store, rows->statement, rows->row, column);
}

bool ob_sql_is_null(const struct ob_sql_rows *rows, int column)
{
	return !ob_sql_str(rows, column).p;
}

bool ob_sql_uuid(const struct ob_sql_rows *rows, int column, struct ob_uuid *ret)
{
	return ob_uuid_scan(ob_sql_str(rows, column), ret);
}

size_t ob_sql_count(const struct ob_sql *q, size_t statement)
{
	int place = q->places[statement];

	return place < 0 || q->err.status ? 0 : driver_of(q)->rows(q->store, (size_t)place);
}

uint64_t ob_sql_changed(const struct ob_sql *q, size_t statement)
{
	int place = q->places[statement];

	return place < 0 || q->err.status ? 0 : driver_of(q)->changed(q->store, (size_t)place);
}

int64_t ob_sql_value(const struct ob_sql *q, size_t statement)
{
	struct ob_sql_rows rows = ob_sql_rows(q, statement);

	return ob_sql_next(&rows) ? ob_sql_int(&rows, 0) : 0;
}

int64_t ob_sql_value_time(const struct ob_sql *q, size_t statement)
{
	struct ob_sql_rows rows = ob_sql_rows(q, statement);

	return ob_sql_next(&rows) ? ob_sql_time(&rows, 0) : 0;
}

/* ---- structs --------------------------------------------------------- */

static void put_int(void *to, size_t size, int64_t value)
{
	if (size == sizeof(int64_t))
		*(int64_t *)to = value;
	else if (size == sizeof(int32_t))
		*(int32_t *)to = (int32_t)value;
	else
		*(int8_t *)to = (int8_t)value;
}

static bool read_column(const struct ob_sql_rows *rows, int at, const struct ob_sql_column *column,
			struct ob_arena *arena, void *to)
{
	struct ob_str text;

	switch (column->how) {
	case OB_SQL_HOW_INT:
		put_int(to, column->size, ob_sql_int(rows, at));
		return true;
	case OB_SQL_HOW_TIME:
		*(int64_t *)to = ob_sql_time(rows, at);
		return true;
	case OB_SQL_HOW_STR:
		text = ob_sql_str(rows, at);
		*(struct ob_str *)to = text;
		return !arena || ob_arena_copy(arena, text, to);
	case OB_SQL_HOW_UUID:
	default:
		return ob_sql_is_null(rows, at) || ob_sql_uuid(rows, at, to);
	}
}

bool ob_sql_read(const struct ob_sql_rows *rows, const struct ob_sql_map *map,
		 struct ob_arena *arena, void *to)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct ob_sql_column *column = &map->columns[i];

		if (!read_column(rows, (int)i, column, arena, (char *)to + column->offset))
			return false;
	}
	return true;
}

void *ob_sql_collect(const struct ob_sql *q, size_t statement, const struct ob_sql_map *map,
		     struct ob_arena *arena, size_t *ret_count, struct ob_err *err)
{
	struct ob_sql_rows rows = ob_sql_rows(q, statement);
	char *list = ob_arena_alloc(arena, (rows.count + 1) * map->size);
	bool ok = list != NULL;

	while (ok && ob_sql_next(&rows))
		ok = ob_sql_read(&rows, map, arena, list + rows.row * map->size);
	if (!ok) {
		(void)ob_sql_oom(q, err);
		return NULL;
	}
	*ret_count = rows.count;
	return list;
}

/* NOLINTNEXTLINE(readability-function-size): everything that makes a list */
void *ob_sql_list(struct ob_store *store, const char *doing, enum ob_sql_id id,
		  const struct ob_sql_arg *args, const struct ob_sql_map *map,
		  struct ob_arena *arena, size_t *ret_count, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_READ, doing);
	size_t found = ob_sql_add(&q, id, args);
	if (ob_sql_commit(&q, err) < 0)
		return NULL;
	return ob_sql_collect(&q, found, map, arena, ret_count, err);
}
