/* SPDX-License-Identifier: MIT */
/* The journal: the newest progress of a reader, and takeovers. */
#ifndef OB_STORE_MYSQL_JOURNAL_H
#define OB_STORE_MYSQL_JOURNAL_H

#include "store/mysql/sql.h"

/* A journal row. */
struct my_batch {
	uint32_t partition;
	uint64_t batch, epoch;
	struct ob_uuid owner;
	int64_t at_us, pos;
	struct ob_str seen; /* absent: no gaps */
};

/* The row on which the packet stands, of the template progress; its text is the packet's. */
void my_batch_read(const struct my_packet *p, struct my_batch *ret);
/* "[0,1,2]": all partitions of all lanes. */
void my_partition_list(int64_t partition_count, struct ob_buf *out);
/* Fill `progress`, which holds nothing yet. */
int my_batch_progress(const struct my_batch *row, struct ob_progress *ret, struct ob_err *err);

/*
 * What a reader has behind it, over all of its partitions: the lowest and highest position, and
 * all gaps below the lowest one. Every row that is not delivered is above `low`, or one of `gaps`.
 */
struct my_reach {
	int64_t low, high;
	struct ob_gaps gaps;
	int64_t moved_us; /* time of the newest row */
	size_t rows;      /* partitions that have a row */
};

/* `age_us` < 0: now; else as of that long ago. */
int my_reach_read(struct my_store *s, struct ob_str reader, int64_t age_us,
		  struct my_reach *ret_reach, struct ob_err *err);
/* The same of now; OUTBOX_EINVAL when there is no such reader. */
int my_reach_known(struct my_store *s, const char *reader, struct my_reach *ret_reach,
		   struct ob_err *err);
void my_reach_done(struct my_reach *reach);

ob_store_take_over_fn my_take_over;

/* ---- readers: readers.c ---------------------------------------------- */

int my_no_reader(const char *reader, struct ob_err *err);
/* Remove a reader with all that is its own. */
int my_reader_delete(struct my_store *s, struct ob_str reader, struct ob_err *err);

ob_store_reader_make_fn my_reader_make;
ob_store_readers_fn my_readers;
ob_store_reader_seek_fn my_reader_seek;
ob_store_reader_remove_fn my_reader_remove;

#endif
