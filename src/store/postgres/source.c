/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store: the trigger on a table of the application's own. */
#include "store/source.h"
#include "base/cleanup.h"
#include "store/postgres/schema.h"
#include "store/postgres/stmt.h"

#include "sql_postgres.h"

enum { SCRIPT_MAX = 64 * 1024 };

static const char *const id_types[] = { "uuid", "text", "character varying", "character", NULL };
static const char *const json_types[] = { "json",      "jsonb", "text", "character varying",
					  "character", NULL };
static const char *const byte_types[] = { "bytea",     "json", "jsonb", "text", "character varying",
					  "character", NULL };
static const char *const time_types[] = { "timestamp with time zone", "timestamp without time zone",
					  "bigint", NULL };
static const struct ob_source_types types = { id_types, id_types, json_types, byte_types,
					      time_types };

/* Its oid; 0: there is no such table. */
static int find_table(struct pg_store *s, int64_t *ret_oid, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf name = OB_BUF_INIT(256);
	struct pg_params p = { 0 };
	int r = pg_expand(s->base.layout, "{source}", 0, &name, err);

	if (r < 0)
		return r;
	pg_text(&p, ob_buf_str(&name));
	(void)pg_array(&p, OB_PG_TEXT); /* no rights are asked for */
	r = pg_ask(s, PG_object, &p, err);
	if (r < 0)
		return r;
	const PGresult *result = s->results[s->result_count - 1];
	struct ob_str kind = PQntuples(result) ? pg_get_str(result, 0, 0) : OB_STR("");
	bool table = ob_str_eq(kind, OB_STR("r")) || ob_str_eq(kind, OB_STR("p"));
	*ret_oid = table ? pg_get_int(result, 0, 1) : 0;
	return 0;
}

static const char *type_of(const PGresult *result, const char *column, char out[64])
{
	for (int row = 0; row < PQntuples(result); row++) {
		struct ob_str type = pg_get_str(result, row, 1);

		if (!ob_str_eq(pg_get_str(result, row, 0), ob_str(column)))
			continue;
		(void)snprintf(out, 64, "%.*s", (int)type.n, type.p);
		return out;
	}
	return NULL;
}

static int check_columns(struct pg_store *s, int64_t oid, struct ob_err *err)
{
	const struct ob_layout *layout = s->base.layout;
	struct pg_params p = { 0 };
	char type[64];

	pg_int(&p, oid);
	int r = pg_ask(s, PG_columns, &p, err);
	for (int c = 0; c < OB_COL_COUNT && r == 0; c++) {
		const char *name = layout->source.column[c];

		if (name[0])
			r = ob_source_check(layout, c, type_of(s->results[0], name, type), &types,
					    err);
	}
	return r;
}

/* Is the trigger there, and does it do what it would do if it were made now? */
static int is_attached(struct pg_store *s, int64_t oid, bool *ret, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf body = OB_BUF_INIT(SCRIPT_MAX);
	struct pg_params p = { 0 };
	char name[OB_SOURCE_TRIGGER_SIZE];

	ob_source_trigger(s->base.layout, name);
	pg_int(&p, oid);
	pg_text(&p, name);
	int r = pg_ask(s, PG_copy_trigger, &p, err);
	ob_buf_addc(&body, '\n'); /* the one behind $copy$ */
	if (r == 0)
		r = pg_expand(s->base.layout, sql_postgres_copy_body, 0, &body, err);
	if (r == 0)
		*ret = PQntuples(s->results[0]) == 1 &&
		       ob_str_eq(pg_get_str(s->results[0], 0, 0), ob_buf_view(&body));
	return r;
}

int pg_source_sql(const struct ob_layout *layout, struct ob_buf *out, struct ob_err *err)
{
	static const char *const parts[] = { sql_postgres_copy_head, sql_postgres_copy_body,
					     sql_postgres_copy_tail };
	int r = 0;

	for (size_t i = 0; i < 3 && layout->source.table[0] && r == 0; i++)
		r = pg_expand(layout, parts[i], 0, out, err);
	return r;
}

int pg_source_attach(struct pg_store *s, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SCRIPT_MAX);
	bool attached = false;
	int64_t oid = 0;
	int r = 0;

	if (!s->base.layout->source.table[0])
		return 0;
	r = find_table(s, &oid, err);
	if (r == 0 && !oid)
		r = ob_source_no_table(s->base.layout, err);
	if (r == 0)
		r = check_columns(s, oid, err);
	if (r == 0)
		r = is_attached(s, oid, &attached, err);
	if (r < 0 || attached)
		return r;
	r = pg_source_sql(s->base.layout, &sql, err);
	return r < 0 ? r : pg_script(s, ob_buf_str(&sql), "making the trigger", err);
}

int pg_source_check(struct pg_store *s, struct ob_err *err)
{
	bool attached = false;
	int64_t oid = 0;
	int r = 0;

	if (!s->base.layout->source.table[0])
		return 0;
	r = find_table(s, &oid, err);
	if (r == 0 && !oid)
		r = ob_source_no_table(s->base.layout, err);
	if (r == 0)
		r = is_attached(s, oid, &attached, err);
	return r < 0 || attached ? r : ob_source_no_trigger(s->base.layout, err);
}
