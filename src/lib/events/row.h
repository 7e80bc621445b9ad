/* SPDX-License-Identifier: MIT */
/* The columns of an event as events.sql reads them, and putting them into a page. */
#ifndef OB_LIB_EVENTS_ROW_H
#define OB_LIB_EVENTS_ROW_H

#include "lib/driver.h"

enum ob_event_column {
	OB_EV_POSITION,
	OB_EV_VERSION,
	OB_EV_ID,
	OB_EV_TYPE,
	OB_EV_STREAM_ID,
	OB_EV_TARGET,
	OB_EV_EVENT_TYPE,
	OB_EV_PAYLOAD,
	OB_EV_HEADERS,
	OB_EV_CORRELATION,
	OB_EV_CAUSATION,
	OB_EV_OCCURRED_AT,
	OB_EV_CREATED_AT,
	OB_EV_REVISION,
	OB_EV_COLUMNS,
};

/* One row: texts by column, numbers in their own. */
struct ob_event_row {
	struct ob_str text[OB_EV_COLUMNS];
	int64_t number[OB_EV_COLUMNS];
};

/* True for the columns that are read as numbers. */
bool ob_event_is_number(int column);
/* Add it to the page, copied. */
int ob_event_add(struct ob_event_page *page, const struct ob_event_row *row,
		 struct outbox_error *err);

/* One more row of an answer, its cells absent; NULL: out of memory, and *err says so. */
struct ob_str *ob_answer_row(struct ob_answer *answer, struct outbox_error *err);
/* Copy a text into a cell of it. */
int ob_answer_cell(struct ob_answer *answer, struct ob_str *cell, struct ob_str text,
		   struct outbox_error *err);

#endif
