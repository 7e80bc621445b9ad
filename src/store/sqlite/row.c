/* SPDX-License-Identifier: MIT */
/* The SQLite store: the one function that reads a row, by the one list of its columns. */
#include "store/sqlite/row.h"

#include "store/sql/message.h"
#include "store/sqlite/stmt.h"

/* How a column becomes a member: by the word in the column's line. */
#define GET_INT(m, member, stmt, col) \
	((m)->member = (__typeof__((m)->member))sqlite3_column_int64(stmt, col))
#define GET_TIME(m, member, stmt, col) ((m)->member = sqlite3_column_int64(stmt, col))
#define GET_STR(m, member, stmt, col)  ((m)->member = lite_str(stmt, col))
#define GET_UUID(m, member, stmt, col) (has_id = ob_uuid_scan(lite_str(stmt, col), &(m)->member))

size_t lite_row_size(sqlite3_stmt *stmt)
{
	return (size_t)sqlite3_column_bytes(stmt, OB_SQL_COL_payload) +
	       (size_t)sqlite3_column_bytes(stmt, OB_SQL_COL_headers) +
	       (size_t)sqlite3_column_bytes(stmt, OB_SQL_COL_snapshot);
}

int lite_row_add(struct lite_store *s, sqlite3_stmt *stmt, struct ob_batch *batch,
		 struct ob_message **ret_message, struct ob_err *err)
{
	struct ob_message *m = ob_batch_add(batch);
	bool has_id = false;

	if (!m)
		return lite_oom(s, err);
#define X(member, how) GET_##how(m, member, stmt, OB_SQL_COL_##member);
	OB_SQL_MESSAGE_MAP(X)
#undef X
	if (!has_id)
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
				  "%s: the id of the row with %s %lld is no UUID; correct or "
				  "delete the row",
				  lite_path(s->base.url), s->base.layout->column[OB_COL_seq],
				  (long long)m->seq);
	/* A text that could not be fetched looks empty, and must not be sent so. */
	if (sqlite3_errcode(s->db) == SQLITE_NOMEM || !ob_batch_own(batch, m))
		return lite_oom(s, err);
	*ret_message = m;
	return 0;
}
