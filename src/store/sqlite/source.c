/* SPDX-License-Identifier: MIT */
/* The SQLite store: the trigger on a table of the application's own. */
#include "store/sqlite/source.h"

#include "base/cleanup.h"
#include "store/source.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/stmt.h"

#include "sql_sqlite.h"

enum { SCRIPT_MAX = 64 * 1024 };

/* What a column may hold is up to each row; an id is told apart because SQLite cannot make 16 bytes
 * of text. */
static const char *const id_types[] = { "BLOB", NULL };
static const char *const string_types[] = { "TEXT", "VARCHAR", "CHAR", "UUID", NULL };
static const struct ob_source_types types = { .id = id_types, .string = string_types };

/* 0: there is no such table. */
static int find_table(struct lite_store *s, struct ob_err *err)
{
	const char *name = s->base.layout->source.table;
	int r = lite_bind(s, LITE_object, OB_ARGS(OB_ARG_TEXT("name", name)), err);

	if (r == 0)
		r = lite_step(s, LITE_object, err);
	if (r > 0 && !ob_str_eq(lite_str(s->stmt[LITE_object], 0), OB_STR("table")))
		r = 0;
	lite_reset(s, LITE_object);
	return r;
}

static int check_columns(struct lite_store *s, struct ob_err *err)
{
	const struct ob_layout *layout = s->base.layout;
	int r = 0;

	for (int c = 0; c < OB_COL_COUNT && r == 0; c++) {
		const char *name = layout->source.column[c];
		struct lite_column column;

		if (!name[0])
			continue;
		r = lite_column(s, layout->source.table, name, &column, err);
		column.type[strcspn(column.type, "( ")] = '\0'; /* VARCHAR(255) */
		if (r == 0)
			r = ob_source_check(layout, c, column.exists ? column.type : NULL, &types,
					    err);
	}
	return r;
}

/* Is the trigger there, as it would be made now? */
static int is_attached(struct lite_store *s, bool *ret, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SCRIPT_MAX);
	char name[OB_SOURCE_TRIGGER_SIZE];
	int r = lite_expand(s->base.layout, sql_sqlite_copy_trigger, 0, &sql, err);

	ob_source_trigger(s->base.layout, name);
	if (r == 0)
		r = lite_bind(s, LITE_copy_table, OB_ARGS(OB_ARG_TEXT("name", name)), err);
	if (r == 0)
		r = lite_step(s, LITE_copy_table, err);
	if (r < 0)
		return r;
	while (sql.len > 0 && sql.data[sql.len - 1] == '\n')
		sql.len--;
	*ret = r > 0 && ob_str_eq(lite_str(s->stmt[LITE_copy_table], 1), ob_buf_view(&sql));
	lite_reset(s, LITE_copy_table);
	return 0;
}

int lite_source_sql(const struct ob_layout *layout, struct ob_buf *out, struct ob_err *err)
{
	int r = layout->source.table[0] ? lite_expand(layout, sql_sqlite_copy_drop, 0, out, err)
					: 1;

	if (r == 0)
		r = lite_expand(layout, sql_sqlite_copy_trigger, 0, out, err);
	if (r == 0)
		ob_buf_adds(out, ";\n");
	return r < 0 ? r : 0;
}

int lite_source_attach(struct lite_store *s, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SCRIPT_MAX);
	bool attached = false;
	int r = 0;

	if (!s->base.layout->source.table[0])
		return 0;
	r = find_table(s, err);
	if (r == 0)
		r = ob_source_no_table(s->base.layout, err);
	if (r > 0)
		r = check_columns(s, err);
	if (r == 0)
		r = is_attached(s, &attached, err);
	if (r < 0 || attached)
		return r;
	r = lite_source_sql(s->base.layout, &sql, err);
	if (r < 0)
		return r;
	int code = sqlite3_exec(s->db, ob_buf_str(&sql), NULL, NULL, NULL);
	return code == SQLITE_OK ? 0 : lite_err(s, code, err);
}

int lite_source_check(struct lite_store *s, struct ob_err *err)
{
	bool attached = false;
	int r = s->base.layout->source.table[0] ? is_attached(s, &attached, err) : 1;

	if (r != 0)
		return r < 0 ? r : 0;
	return attached ? 0 : ob_source_no_trigger(s->base.layout, err);
}
