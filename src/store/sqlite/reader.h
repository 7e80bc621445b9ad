/* SPDX-License-Identifier: MIT */
/* Readers of the SQLite store. */
#ifndef OB_STORE_SQLITE_READER_H
#define OB_STORE_SQLITE_READER_H

#include "store/sqlite/conn.h"

/* All readers, by name; `reader` NULL: of all. Inside any transaction. */
int lite_reader_list(struct lite_store *s, const char *reader, struct ob_arena *arena,
		     struct ob_reader **ret_readers, size_t *ret_count, struct ob_err *err);
/* The lowest position of a reader; OUTBOX_EINVAL when there is no such reader. */
int lite_reader_low(struct lite_store *s, const char *reader, int64_t *ret_pos, struct ob_err *err);
/* Remove everything of a reader; inside a write transaction. */
int lite_reader_forget(struct lite_store *s, const char *reader, struct ob_err *err);

ob_store_reader_make_fn lite_reader_make;
ob_store_readers_fn lite_readers;
ob_store_reader_seek_fn lite_reader_seek;
ob_store_reader_remove_fn lite_reader_remove;

/* read.c, settle.c, retain.c */
ob_store_read_fn lite_read;
ob_store_settle_fn lite_settle;
ob_store_retain_fn lite_retain;

#endif
