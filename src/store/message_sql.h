/* SPDX-License-Identifier: MIT */
/* A statement of the operator's with values of a message in it: what the backends need of it. */
#ifndef OB_STORE_MESSAGE_SQL_H
#define OB_STORE_MESSAGE_SQL_H

#include "store/store.h"

enum ob_message_value {
	OB_VALUE_NONE = -1,
	OB_VALUE_ID,
	OB_VALUE_TYPE,
	OB_VALUE_PAYLOAD,
	OB_VALUE_HEADERS,
	OB_VALUE_KEY,
	OB_VALUE_AGGREGATE_TYPE,
	OB_VALUE_AGGREGATE_ID,
	OB_VALUE_SEQUENCE,
	OB_VALUE_CORRELATION_ID,
	OB_VALUE_CAUSATION_ID,
	OB_VALUE_OCCURRED_AT,
	OB_VALUE_CREATED_AT,
	OB_VALUE_REVISION,
	OB_VALUE_TARGET,
	OB_VALUE_POSITION,
};

enum { OB_MESSAGE_SQL_VALUES = 64 };

/* Text and the value after it; the last has none. */
struct ob_message_sql_piece {
	struct ob_str text;
	enum ob_message_value value;
};

struct ob_message_sql {
	char *text;      /* what the pieces point to */
	uint64_t serial; /* no other one of this process has it */
	struct ob_message_sql_piece pieces[OB_MESSAGE_SQL_VALUES + 1];
	size_t count; /* values; there is one piece more */
};

/* One value, ready to be bound. Texts borrow from the message or from `room`. */
struct ob_bound {
	enum { OB_BOUND_NULL, OB_BOUND_NUMBER, OB_BOUND_TEXT, OB_BOUND_BYTES, OB_BOUND_TIME } kind;
	int64_t number; /* also a time: microseconds since 1970 UTC */
	struct ob_str text;
	char room[40];
};

/* The SQL with a parameter in place of every value: '?' or '$' for $1, $2 ... */
void ob_message_sql_text(const struct ob_message_sql *sql, char style, struct ob_buf *out);
/* Write value `at` of the statement; `binary`: the layout's payload is bytes. */
void ob_message_sql_bind(const struct ob_message_sql *sql, size_t at,
			 const struct ob_message *message, bool binary, struct ob_bound *ret);
/* What the database said of a statement of the operator's, with the kind that holds for a handler.
 * `broken`: it never ran on this connection and cannot, whatever the message. */
int ob_message_sql_fail(bool broken, struct ob_err *err);

#endif
