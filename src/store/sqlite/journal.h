/* SPDX-License-Identifier: MIT */
/* The journal of the SQLite store: progress, and who may record more of it. */
#ifndef OB_STORE_SQLITE_JOURNAL_H
#define OB_STORE_SQLITE_JOURNAL_H

#include "store/sqlite/conn.h"

/* One row. */
struct lite_journal {
	uint64_t batch, epoch;
	struct ob_uuid owner; /* nil: an operator's, or the first */
	int64_t pos;
	uint32_t published, failed; /* written, not read */
};

/* The newest row of a partition; 0: there is none, 1: *ret_row. */
int lite_journal_newest(struct lite_store *s, const char *reader, uint32_t partition,
			struct lite_journal *ret_row, struct ob_err *err);
/* The row of that number; likewise. */
int lite_journal_row(struct lite_store *s, const char *reader, uint32_t partition, uint64_t batch,
		     struct lite_journal *ret_row, struct ob_err *err);
/* Add one whose number is free; inside a write transaction. */
int lite_journal_add(struct lite_store *s, const char *reader, uint32_t partition,
		     const struct lite_journal *row, struct ob_err *err);
/* The highest number that the log ever had, as the transaction sees it. */
int lite_log_end(struct lite_store *s, int64_t *ret_seq, struct ob_err *err);

ob_store_take_over_fn lite_take_over;

#endif
