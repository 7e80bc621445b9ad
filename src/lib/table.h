/* SPDX-License-Identifier: MIT */
/* Has the table every column that a push needs, and do they hold what the options say? */
#ifndef OB_LIB_TABLE_H
#define OB_LIB_TABLE_H

#include "base/layout.h"
#include "outbox/outbox.h"

/* What a database calls the types of the two columns that have a choice. */
struct ob_table_types {
	const char *text_id, *binary_id, *text_payload, *binary_payload;
};

struct ob_table_seen {
	uint32_t columns; /* bits 1 << enum ob_column: those of ours that are there */
	bool any;
};

/* One column of the table; OUTBOX_ESCHEMA when its type is not the one of the options. */
int ob_table_column(const struct ob_layout *layout, const struct ob_table_types *types,
		    const char *name, const char *type, struct ob_table_seen *seen,
		    struct outbox_error *err);
/* After all of them: OUTBOX_ESCHEMA says what is missing, the table or a column. */
int ob_table_complete(const struct ob_layout *layout, const struct ob_table_seen *seen,
		      struct outbox_error *err);

#endif
