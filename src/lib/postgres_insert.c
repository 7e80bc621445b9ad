/* SPDX-License-Identifier: MIT */
/*
 * The text of an insert into PostgreSQL, and whether it is prepared. Parsing and planning it cost
 * about as much as running it, so that of an append gets a name after a few uses. The name is made
 * of the text: whoever finds it taken, on a connection of a pool, finds the same statement.
 */
#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "lib/fail.h"
#include "lib/postgres_push.h"
#include "sql_postgres.h"

#include <inttypes.h>

enum {
	SQL_MAX = 64 * 1024,
	/* A handle that is opened for each request leaves nothing on the connection. */
	USES_UNNAMED = 3,
};

int ob_postgres_expand(const struct ob_layout *layout, const char *tmpl, char **ret_sql,
		       struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);
	struct ob_err inner = OB_ERR_INIT;

	if (ob_sqltmpl_expand(&sql, tmpl, layout, '"', NULL, &inner) < 0)
		return ob_fail(err, inner.status, OUTBOX_NO_INDEX, "%s", inner.msg);
	*ret_sql = ob_buf_take(&sql);
	return *ret_sql ? 0 : ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
}

/* FNV-1a. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

int ob_postgres_insert_write(struct ob_postgres_driver *driver, struct ob_postgres_insert *insert,
			     uint32_t columns, struct outbox_error *err)
{
	const char *tmpl =
		insert == &driver->append ? sql_postgres_append_expected : sql_postgres_push;
	uint32_t dropped = ob_postgres_all_columns() & ~columns;
	struct ob_layout layout = driver->layout;
	char *sql;

	if (insert->sql && insert->columns == columns)
		return 0;
	for (int c = 0; c < OB_COL_COUNT; c++) {
		if (dropped >> c & 1)
			layout.column[c][0] = '\0';
	}
	int r = ob_postgres_expand(&layout, tmpl, &sql, err);
	if (r < 0)
		return r;
	free(insert->sql);
	*insert = (struct ob_postgres_insert){ .sql = sql, .columns = columns };
	(void)snprintf(insert->name, sizeof(insert->name), "outbox_%016" PRIx64, hash_of(sql));
	return 0;
}

static bool has_name(const struct ob_postgres_driver *driver,
		     const struct ob_postgres_insert *insert)
{
	return insert == &driver->append && !driver->nameless && insert->uses >= USES_UNNAMED;
}

bool ob_postgres_insert_send(struct ob_postgres_driver *driver, struct ob_postgres_insert *insert,
			     const struct ob_postgres_values *v)
{
	if (!has_name(driver, insert))
		return PQsendQueryParams(driver->conn, insert->sql, OB_POSTGRES_FIELDS, v->types,
					 v->values, v->lengths, v->formats, 1) == 1;
	return (insert->prepared || PQsendPrepare(driver->conn, insert->name, insert->sql,
						  OB_POSTGRES_FIELDS, v->types) == 1) &&
	       PQsendQueryPrepared(driver->conn, insert->name, OB_POSTGRES_FIELDS, v->values,
				   v->lengths, v->formats, 1) == 1;
}

bool ob_postgres_insert_again(struct ob_postgres_driver *driver, struct ob_postgres_insert *insert,
			      const char *sqlstate)
{
	bool named = has_name(driver, insert);

	insert->uses += insert->uses < USES_UNNAMED;
	if (named && strcmp(sqlstate, "42P05") == 0 && !insert->prepared) {
		insert->prepared = true; /* by another handle, with the same text */
		return true;
	}
	/* DISCARD ALL, or a pooler that gives us another connection. */
	if (named && (strcmp(sqlstate, "26000") == 0 || strcmp(sqlstate, "42P05") == 0)) {
		driver->nameless = true;
		return true;
	}
	insert->prepared = insert->prepared || (named && !*sqlstate);
	return false;
}
