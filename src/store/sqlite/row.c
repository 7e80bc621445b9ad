/* SPDX-License-Identifier: MIT */
/* The SQLite store: the one function that reads a row, by the one list of its columns. */
#include "store/sqlite/row.h"

#include "store/sqlite/stmt.h"

enum kind { STR, I64, I32, U32, U8, BOOL, ID, VIEW };

#define FIELD(member, kind) \
	{ \
		offsetof(struct ob_message, member), kind \
	}

/* The columns of message_columns in sql/sqlite/read.sql, then those that list_row has more. */
static const struct field {
	size_t offset;
	enum kind kind;
} fields[] = {
	[LITE_ROW_SEQ] = FIELD(seq, I64),
	[LITE_ROW_PARTITION] = FIELD(partition, U32),
	FIELD(id, ID),
	FIELD(aggregate_type, STR),
	FIELD(aggregate_id, STR),
	FIELD(event_type, STR),
	FIELD(revision, I32),
	FIELD(sequence_number, I64),
	FIELD(correlation_id, STR),
	FIELD(causation_id, STR),
	FIELD(key, STR),
	FIELD(priority, I32),
	FIELD(target, STR),
	FIELD(occurred_at_us, I64),
	FIELD(created_at_us, I64),
	FIELD(available_at_us, I64),
#define HEADERS 16
	FIELD(headers, STR),
#define PAYLOAD 17
	FIELD(payload, STR),
#define MESSAGE_COLUMNS 18
	FIELD(attempts, U32),
	FIELD(state, U8),
	FIELD(excepted, BOOL),
	FIELD(partition_key, STR),
	FIELD(snapshot, STR),
	FIELD(last_error, STR),
	FIELD(due_us, I64),
	FIELD(since_us, I64),
	FIELD(published_at_us, I64),
	FIELD(view, VIEW),
};

size_t lite_row_size(sqlite3_stmt *stmt)
{
	return (size_t)sqlite3_column_bytes(stmt, PAYLOAD) +
	       (size_t)sqlite3_column_bytes(stmt, HEADERS);
}

/* False: the id is none. */
static bool read_field(sqlite3_stmt *stmt, int column, const struct field *field, char *to)
{
	switch (field->kind) {
	case STR:
		*(struct ob_str *)(void *)to = lite_str(stmt, column);
		break;
	case I64:
		*(int64_t *)(void *)to = sqlite3_column_int64(stmt, column);
		break;
	case I32:
		*(int32_t *)(void *)to = sqlite3_column_int(stmt, column);
		break;
	case U32:
		*(uint32_t *)(void *)to = (uint32_t)sqlite3_column_int64(stmt, column);
		break;
	case U8:
		*(uint8_t *)to = (uint8_t)sqlite3_column_int(stmt, column);
		break;
	case BOOL:
		*(bool *)to = sqlite3_column_int(stmt, column) != 0;
		break;
	case VIEW:
		*(enum ob_view *)(void *)to = (enum ob_view)ob_view_parse(
			(const char *)sqlite3_column_text(stmt, column));
		break;
	case ID:
	default:
		return ob_uuid_scan(lite_str(stmt, column), (struct ob_uuid *)(void *)to);
	}
	return true;
}

int lite_row_add(struct lite_store *s, sqlite3_stmt *stmt, bool all, struct ob_batch *batch,
		 struct ob_message **ret_message, struct ob_err *err)
{
	int count = all ? (int)(sizeof(fields) / sizeof(fields[0])) : MESSAGE_COLUMNS;
	struct ob_message *m = ob_batch_add(batch);
	bool has_id = true;

	if (!m)
		return lite_oom(s, err);
	for (int i = 0; i < count; i++)
		has_id &= read_field(stmt, i, &fields[i], (char *)m + fields[i].offset);
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
