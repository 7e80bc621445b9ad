/* SPDX-License-Identifier: MIT */
/*
 * Progress: what a reader has behind it in one partition of the log.
 *
 *   delivered = { rows of the partition that `seen` covers, with seq <= pos }
 *             + while a large late transaction is worked off:
 *               { rows that `late_seen` covers and `seen` does not, with seq <= late_pos }
 *             - the exceptions
 *
 * What `seen` says depends on how a database numbers rows; nobody but the store and the
 * functions of src/log reads it:
 *  - PostgreSQL: a snapshot in the text form of pg_snapshot. It covers a row whose transaction
 *    it shows (snapshot.h).
 *  - MySQL: the gaps, numbers up to pos that were not there when the reader passed. It covers
 *    every number that is not a gap (gaps.h).
 *  - SQLite: nothing (NULL). One writer at a time: numbers are the order of commits.
 */
#ifndef OB_LOG_PROGRESS_H
#define OB_LOG_PROGRESS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An immutable text that many progresses share: after one read, all partitions of a worker have
 * the same. Counted without atomics: references are made and dropped by one thread, others may
 * read the text while that thread keeps one.
 */
struct ob_seen {
	uint32_t refs;
	uint32_t size;
	char text[]; /* size bytes and a NUL */
};

/* A new one with one reference; NULL when out of memory. */
struct ob_seen *ob_seen_new(struct ob_str text);
struct ob_seen *ob_seen_ref(struct ob_seen *seen); /* NULL is allowed, here and below */
void ob_seen_unref(struct ob_seen *seen);
bool ob_seen_equal(const struct ob_seen *a, const struct ob_seen *b);

struct ob_progress {
	int64_t pos;
	int64_t late_pos; /* only with late_seen */
	struct ob_seen *seen, *late_seen;
};

/* *to holds references of its own afterwards; what it held before is dropped. */
void ob_progress_set(struct ob_progress *to, const struct ob_progress *from);
void ob_progress_done(struct ob_progress *progress);
bool ob_progress_equal(const struct ob_progress *a, const struct ob_progress *b);

#endif
