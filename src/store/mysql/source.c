/* SPDX-License-Identifier: MIT */
/* The MySQL store: the trigger on a table of the application's own. */
#include "store/mysql/source.h"
#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "store/mysql/sql.h"
#include "store/source.h"

#include "sql_mysql.h"

enum { SCRIPT_MAX = 64 * 1024 };

static const char *const id_types[] = { "varbinary", "binary", "varchar", "char", "uuid", NULL };
static const char *const string_types[] = { "varchar", "char", "uuid", NULL };
static const char *const json_types[] = { "json",    "text",     "mediumtext", "longtext",
					  "varchar", "tinytext", NULL };
static const char *const byte_types[] = { "blob",      "mediumblob", "longblob",
					  "varbinary", "tinyblob",   NULL };
/* A TIMESTAMP would read as the zone of the application's session has it. */
static const char *const time_types[] = { "datetime", "bigint", NULL };
static const struct ob_source_types types = { id_types, string_types, json_types, byte_types,
					      time_types };

static const char *schema_of(const struct my_store *s)
{
	const char *schema = s->base.layout->source.schema;

	return schema[0] ? schema : NULL;
}

static int find_table(struct my_store *s, struct ob_err *err)
{
	int64_t there;
	int r = MY_NUMBER(s, "reading the schema", &there, err, sql_mysql_table_info,
			  OB_ARG_TEXT("schema", schema_of(s)),
			  OB_ARG_TEXT("table", s->base.layout->source.table));

	return r != 0 ? (r < 0 ? r : 0) : ob_source_no_table(s->base.layout, err);
}

static int check_columns(struct my_store *s, struct ob_err *err)
{
	const struct ob_layout *layout = s->base.layout;
	char type[OB_COL_COUNT][32] = { "" };
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, s, "reading the schema");
	(void)MY_ADD(&p, sql_mysql_column_info, OB_ARG_TEXT("schema", schema_of(s)),
		     OB_ARG_TEXT("table", layout->source.table));
	int r = my_packet_run(&p, err);
	for (my_use(&p, 0); r == 0 && my_step(&p);) {
		struct ob_str name = my_str(&p, 0), kind = my_str(&p, 1);

		for (int c = 0; c < OB_COL_COUNT; c++) {
			if (name.p && kind.p && name.n == strlen(layout->source.column[c]) &&
			    strncasecmp(name.p, layout->source.column[c], name.n) == 0)
				(void)snprintf(type[c], sizeof(type[c]), "%.*s", (int)kind.n,
					       kind.p);
		}
	}
	for (int c = 0; c < OB_COL_COUNT && r == 0; c++) {
		if (layout->source.column[c][0])
			r = ob_source_check(layout, c, type[c][0] ? type[c] : NULL, &types, err);
	}
	return r;
}

static int expand(const struct ob_layout *layout, const char *tmpl, struct ob_buf *out,
		  struct ob_err *err)
{
	return ob_sqltmpl_expand(out, tmpl, layout, '`', NULL, err);
}

/* The server drops white space around a body. */
static struct ob_str trimmed(struct ob_str text)
{
	while (text.n > 0 && strchr(" \n\r\t;", text.p[text.n - 1]))
		text.n--;
	while (text.n > 0 && strchr(" \n\r\t", text.p[0]))
		text = (struct ob_str){ text.p + 1, text.n - 1 };
	return text;
}

/* 1: the trigger is there; 0: it is not. One that does something else is an error: it cannot be
 * replaced without a moment in which rows are not copied. */
static int find_trigger(struct my_store *s, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf body = OB_BUF_INIT(SCRIPT_MAX);
	char name[OB_SOURCE_TRIGGER_SIZE];
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int r = expand(s->base.layout, sql_mysql_copy_body, &body, err);

	if (r < 0)
		return r;
	ob_source_trigger(s->base.layout, name);
	my_packet_init(&p, s, "reading the schema");
	(void)MY_ADD(&p, sql_mysql_copy_trigger, OB_ARG_TEXT("schema", schema_of(s)),
		     OB_ARG_TEXT("table", s->base.layout->source.table), OB_ARG_TEXT("name", name));
	r = my_packet_run(&p, err);
	my_use(&p, 0);
	if (r == 0)
		r = my_step(&p);
	if (r > 0 && !ob_str_eq(trimmed(my_str(&p, 0)), trimmed(ob_buf_view(&body))))
		r = ob_err_set(
			err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			"trigger '%s' of table '%s' is not as this layout needs it: while nobody "
			"writes to the table, run DROP TRIGGER %s and `outbox setup`",
			name, s->base.layout->source.table, name);
	return r;
}

int my_source_sql(const struct ob_layout *layout, struct ob_buf *out, struct ob_err *err)
{
	if (!layout->source.table[0])
		return 0;
	int r = expand(layout, sql_mysql_copy_head, out, err);
	if (r == 0)
		r = expand(layout, sql_mysql_copy_body, out, err);
	return r;
}

int my_source_look(struct my_store *s, struct ob_err *err)
{
	int r = s->base.layout->source.table[0] ? find_table(s, err) : 1;

	if (r == 0)
		r = check_columns(s, err);
	if (r == 0)
		r = find_trigger(s, err);
	return r < 0 ? r : 0;
}

int my_source_attach(struct my_store *s, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SCRIPT_MAX);
	int r = s->base.layout->source.table[0] ? find_trigger(s, err) : 1;

	if (r != 0)
		return r < 0 ? r : 0;
	r = my_source_sql(s->base.layout, &sql, err);
	return r < 0 ? r : my_exec(s, s->db, ob_buf_str(&sql), "making the trigger", err);
}
