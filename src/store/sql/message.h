/* SPDX-License-Identifier: MIT */
/* The columns of a message in every dialect, in their order: the member of struct ob_message, how
 * it is read. */
#ifndef OB_STORE_SQL_MESSAGE_H
#define OB_STORE_SQL_MESSAGE_H

/* {>message_columns}, payload, headers and snapshot; a read has the last only where the layout says
 * so. */
#define OB_SQL_MESSAGE_MAP(X) \
	X(seq, INT) \
	X(txid, INT) \
	X(id, UUID) \
	X(aggregate_type, STR) \
	X(aggregate_id, STR) \
	X(event_type, STR) \
	X(key, STR) \
	X(target, STR) \
	X(partition, INT) \
	X(priority, INT) \
	X(created_at_us, TIME) \
	X(available_at_us, TIME) \
	X(occurred_at_us, TIME) \
	X(revision, INT) \
	X(sequence_number, INT) \
	X(correlation_id, STR) \
	X(causation_id, STR) \
	X(payload, STR) \
	X(headers, STR) \
	X(snapshot, STR)

/* Those of a list after them. */
#define OB_SQL_LISTED_MAP(X) \
	X(partition_key, STR) \
	X(last_error, STR) \
	X(view, INT) \
	X(state, INT) \
	X(attempts, INT) \
	X(due_us, TIME) \
	X(since_us, TIME) \
	X(published_at_us, TIME) \
	X(payload_bytes, INT)

enum ob_sql_message_column {
#define X(member, how) OB_SQL_COL_##member,
	OB_SQL_MESSAGE_MAP(X)
#undef X
		OB_SQL_MESSAGE_COLUMNS,
	OB_SQL_LISTED_BEFORE = OB_SQL_MESSAGE_COLUMNS - 1,
#define X(member, how) OB_SQL_COL_##member,
	OB_SQL_LISTED_MAP(X)
#undef X
};

#endif
