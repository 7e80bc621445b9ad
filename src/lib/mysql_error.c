/* SPDX-License-Identifier: MIT */
/*
 * Errors of MySQL, told apart by number and never by text: which message is a
 * duplicate and of what, what is missing in the table, what the caller can do.
 */
#include "lib/mysql_push.h"

#include "base/cleanup.h"
#include "lib/duplicate.h"
#include "lib/fail.h"
#include "lib/table.h"
#include "sql_mysql.h"

#include <errmsg.h>
#include <mysqld_error.h>
#include <strings.h>

/* Numbers that the headers of one of the two servers do not have. */
enum { CODE_CHECK_MARIADB = 4025, CODE_CHECK_MYSQL = 3819, CODE_PACKET_TOO_LARGE = 1153 };

static void stmt_closep(MYSQL_STMT **stmt)
{
	if (*stmt)
		(void)mysql_stmt_close(*stmt);
}

#define AUTOCLOSE_STMT OB_CLEANUP(stmt_closep)

struct ob_mysql_failure ob_mysql_stmt_failure(MYSQL_STMT *stmt, const char *doing)
{
	struct ob_mysql_failure f = { .code = mysql_stmt_errno(stmt), .doing = doing };

	(void)snprintf(f.text, sizeof(f.text), "%s", mysql_stmt_error(stmt));
	return f;
}

struct ob_mysql_failure ob_mysql_db_failure(MYSQL *db, const char *doing)
{
	struct ob_mysql_failure f = { .code = mysql_errno(db), .doing = doing };

	(void)snprintf(f.text, sizeof(f.text), "%s", mysql_error(db));
	return f;
}

/* ---- duplicates ------------------------------------------------------ */

struct lookup {
	struct ob_mysql_driver *driver;
	MYSQL_STMT *by_id, *by_sequence; /* the second is NULL when the column is off */
};

static bool found(MYSQL_STMT *stmt, MYSQL_BIND *binds)
{
	bool row = !mysql_stmt_bind_param(stmt, binds) && mysql_stmt_execute(stmt) == 0 &&
		   mysql_stmt_store_result(stmt) == 0 && mysql_stmt_num_rows(stmt) > 0;

	(void)mysql_stmt_free_result(stmt);
	return row;
}

static bool id_stored(void *arg, const struct ob_push_row *row)
{
	const struct lookup *l = arg;
	unsigned long size[2];
	char text[OB_UUID_TEXT_SIZE];
	MYSQL_BIND binds[] = {
		ob_mysql_bind_bytes(ob_mysql_id(l->driver, &row->id, text), &size[0]),
		ob_mysql_bind_bytes(ob_str(ob_push_target(row)), &size[1]),
	};

	return found(l->by_id, binds);
}

static bool sequence_stored(void *arg, const struct ob_push_row *row)
{
	const struct lookup *l = arg;
	const struct outbox_message *m = row->message;
	int64_t number = m->sequence_number;
	unsigned long size[3];
	MYSQL_BIND binds[] = {
		ob_mysql_bind_bytes(ob_str(ob_push_target(row)), &size[0]),
		ob_mysql_bind_bytes(ob_str(m->aggregate_type), &size[1]),
		ob_mysql_bind_bytes(ob_str(m->aggregate_id), &size[2]),
		{ .buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &number },
	};

	return found(l->by_sequence, binds);
}

/* The failed statement is undone; it keeps a lock on what it met, and a locking read finds that. */
static int find_duplicate(struct ob_mysql_driver *driver, const struct ob_mysql_chunk *chunk,
			  struct outbox_error *err)
{
	bool sequences = driver->layout.column[OB_COL_sequence_number][0];
	AUTOCLOSE_STMT MYSQL_STMT *by_id = NULL;
	AUTOCLOSE_STMT MYSQL_STMT *by_sequence = NULL;
	struct outbox_error unused;
	int r = ob_mysql_prepare(driver, sql_mysql_push_find_id, &by_id, &unused);

	if (r == 0 && sequences)
		r = ob_mysql_prepare(driver, sql_mysql_push_find_sequence, &by_sequence, &unused);
	if (r < 0)
		return 0;
	struct lookup l = { driver, by_id, by_sequence };
	const struct ob_duplicate_lookup lookup = { &l, id_stored,
						    sequences ? sequence_stored : NULL };
	return ob_duplicate_find(&lookup, chunk->rows, chunk->count, chunk->first, err);
}

/* ---- numbers --------------------------------------------------------- */

static int fail_plain(const struct ob_mysql_failure *f, int status, size_t index, const char *hint,
		      struct outbox_error *err)
{
	return ob_fail(err, status, index, "%s: %s%s", f->doing, f->text, hint);
}

/* A table or a column is gone: say which. */
static int fail_schema(struct ob_mysql_driver *driver, const struct ob_mysql_failure *f,
		       struct outbox_error *err)
{
	int r = ob_mysql_check_table(driver, err);

	return r < 0 ? r : fail_plain(f, OUTBOX_ESTORE, OUTBOX_NO_INDEX, "", err);
}

static int fail_duplicate(struct ob_mysql_driver *driver, const struct ob_mysql_chunk *chunk,
			  const struct ob_mysql_failure *f, size_t index, struct outbox_error *err)
{
	int r = chunk ? find_duplicate(driver, chunk, err) : 0;

	return r < 0 ? r : fail_plain(f, OUTBOX_ESTORE, index, "", err);
}

static int fail_by_code(struct ob_mysql_driver *driver, const struct ob_mysql_chunk *chunk,
			const struct ob_mysql_failure *f, struct outbox_error *err)
{
	size_t index = chunk && chunk->count == 1 ? chunk->first : OUTBOX_NO_INDEX;

	switch (f->code) {
	case ER_DUP_ENTRY:
		return fail_duplicate(driver, chunk, f, index, err);
	case ER_LOCK_DEADLOCK:
		return fail_plain(f, OUTBOX_EBUSY, OUTBOX_NO_INDEX,
				  "; the server rolled the whole transaction back", err);
	case ER_LOCK_WAIT_TIMEOUT:
		return fail_plain(f, OUTBOX_EBUSY, OUTBOX_NO_INDEX, "", err);
	case ER_NO_SUCH_TABLE:
	case ER_BAD_FIELD_ERROR:
		return fail_schema(driver, f, err);
	case ER_TABLEACCESS_DENIED_ERROR:
	case ER_COLUMNACCESS_DENIED_ERROR:
		return fail_plain(f, OUTBOX_ESTORE, OUTBOX_NO_INDEX,
				  "; grant this user INSERT and SELECT on the table", err);
	case CR_OUT_OF_MEMORY:
		return fail_plain(f, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "", err);
	case CODE_PACKET_TOO_LARGE:
		return fail_plain(f, OUTBOX_ETOOLONG, index,
				  "; raise the server's max_allowed_packet", err);
	case CR_SERVER_GONE_ERROR:
	case CR_SERVER_LOST:
		return fail_plain(f, OUTBOX_ESTORE, OUTBOX_NO_INDEX,
				  "; the connection is lost and the transaction with it", err);
	case CR_COMMANDS_OUT_OF_SYNC:
		return fail_plain(f, OUTBOX_ESTORE, OUTBOX_NO_INDEX,
				  "; read all rows of your last statement first", err);
	default:
		return fail_plain(f, OUTBOX_ESTORE, index, "", err);
	}
}

int ob_mysql_fail(struct ob_mysql_driver *driver, const struct ob_mysql_chunk *chunk,
		  const struct ob_mysql_failure *failure, struct outbox_error *err)
{
	int r = fail_by_code(driver, chunk, failure, err);

	(void)snprintf(err->native, sizeof(err->native), "%u", failure->code);
	return failure->code == CODE_CHECK_MARIADB || failure->code == CODE_CHECK_MYSQL
		       ? OB_DRIVER_CHECK
		       : r;
}

/* ---- the table ------------------------------------------------------- */

static const struct ob_table_types types = { "varchar", "varbinary", "longtext", "longblob" };

/* Names and types of the table's columns; the statement was run. */
static int read_columns(struct ob_mysql_driver *driver, MYSQL_STMT *stmt,
			struct ob_table_seen *seen, struct outbox_error *err)
{
	char name[256], type[256];
	unsigned long size[2];
	MYSQL_BIND out[] = {
		{ .buffer_type = MYSQL_TYPE_STRING,
		  .buffer = name,
		  .buffer_length = sizeof(name) - 1,
		  .length = &size[0] },
		{ .buffer_type = MYSQL_TYPE_STRING,
		  .buffer = type,
		  .buffer_length = sizeof(type) - 1,
		  .length = &size[1] },
	};
	int r = 0, got = 0;

	if (mysql_stmt_bind_result(stmt, out) || mysql_stmt_store_result(stmt) != 0)
		got = 1;
	while (r == 0 && got == 0 && (got = mysql_stmt_fetch(stmt)) == 0) {
		name[size[0]] = type[size[1]] = '\0';
		r = ob_table_column(&driver->layout, &types, name, type, seen, err);
	}
	/*
	 * What cannot be read, such as a cancelled statement, says nothing about the table. Of its
	 * own tables the server may give up with a warning alone.
	 */
	if (got == 1 || (!seen->any && mysql_warning_count(driver->db) > 0))
		return ob_fail(err, OUTBOX_ESTORE, OUTBOX_NO_INDEX, "reading the schema: %.180s",
			       got == 1 ? mysql_stmt_error(stmt) : "the server gave up");
	return r;
}

int ob_mysql_check_table(struct ob_mysql_driver *driver, struct outbox_error *err)
{
	const struct ob_layout *layout = &driver->layout;
	AUTOCLOSE_STMT MYSQL_STMT *stmt = NULL;
	struct ob_str schema = layout->schema[0] ? ob_str(layout->schema) : OB_STR_NULL;
	unsigned long size[2];
	MYSQL_BIND in[] = {
		ob_mysql_bind_bytes(schema, &size[0]),
		ob_mysql_bind_bytes(ob_str(layout->table[OB_TABLE_outbox]), &size[1]),
	};
	struct ob_table_seen seen = { 0 };
	int r = ob_mysql_prepare(driver, sql_mysql_push_columns, &stmt, err);

	if (r < 0)
		return r;
	if (mysql_stmt_bind_param(stmt, in) || mysql_stmt_execute(stmt) != 0)
		return ob_fail(err, OUTBOX_ESTORE, OUTBOX_NO_INDEX, "reading the schema: %.180s",
			       mysql_stmt_error(stmt));
	r = read_columns(driver, stmt, &seen, err);
	return r < 0 ? r : ob_table_complete(layout, &seen, err);
}
