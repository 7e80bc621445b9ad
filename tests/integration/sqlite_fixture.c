/* SPDX-License-Identifier: MIT */
#include "sqlite_fixture.h"

#include "base/sqltmpl.h"
#include "sql_sqlite.h"
#include "suite.h"

#include <dirent.h>
#include <stdlib.h>

struct outbox_error error;
static char directory[32];

void fixture_init(void)
{
	(void)snprintf(directory, sizeof(directory), "/tmp/outbox-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
}

void fixture_done(void)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)))
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	(void)closedir(dir);
	ck_assert_int_eq(rmdir(directory), 0);
}

sqlite3 *fixture_open(void)
{
	char path[sizeof(directory) + 16];
	sqlite3 *db = NULL;

	(void)snprintf(path, sizeof(path), "%s/outbox.db", directory);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	exec(db, "PRAGMA synchronous = OFF"); /* nobody pulls the plug here */
	return db;
}

void fixture_tables(sqlite3 *db, const struct ob_layout *layout)
{
	static const struct ob_sqltmpl_number numbers[] = {
		{ "partition_count", 16 },
		{ "schema_version", 1 },
		{ NULL, 0 },
	};
	static const char *const parts[] = { sql_sqlite_tables, sql_sqlite_partition,
					     sql_sqlite_indexes };
	struct ob_layout names;
	struct ob_buf sql = OB_BUF_INIT(1 << 20);
	struct ob_err err;

	ob_layout_default(&names);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		ck_assert_int_eq(ob_sqltmpl_expand(&sql, parts[i], layout ? layout : &names, '"',
						   numbers, &err),
				 0);
	exec(db, ob_buf_str(&sql));
	ob_buf_done(&sql);
}

sqlite3 *fixture_new(void)
{
	sqlite3 *db = fixture_open();

	fixture_tables(db, NULL);
	return db;
}

outbox *fixture_outbox(sqlite3 *db, const struct outbox_options *options)
{
	outbox *ob = NULL;
	int r = outbox_sqlite_open(db, options, &ob, &error);

	ck_assert_msg(r == 0, "%s", error.message);
	return ob;
}

void exec(sqlite3 *db, const char *sql)
{
	int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

	ck_assert_msg(rc == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
}

const char *text(sqlite3 *db, const char *sql)
{
	static char value[4096];
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	ck_assert_msg(rc == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	const unsigned char *column = sqlite3_column_text(stmt, 0);
	(void)snprintf(value, sizeof(value), "%s", column ? (const char *)column : "(null)");
	(void)sqlite3_finalize(stmt);
	return value;
}

int64_t number(sqlite3 *db, const char *sql)
{
	return strtoll(text(db, sql), NULL, 10);
}

int64_t rows(sqlite3 *db)
{
	return number(db, "SELECT count(*) FROM outbox");
}

int push(outbox *ob, struct outbox_message message)
{
	error = (struct outbox_error){ 0 };
	return outbox_push(ob, &message, 1, NULL, &error);
}
