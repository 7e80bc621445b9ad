/* SPDX-License-Identifier: MIT */
/* What the stores share where they write messages through the public library, as an application
 * does. */
#ifndef OB_STORE_WRITER_H
#define OB_STORE_WRITER_H

#include "store/store.h"

/* The options of the library with the memory that they point to. */
struct ob_writer_options {
	struct outbox_options options;
	struct outbox_column columns[OB_COL_COUNT];
	char table[2 * OB_IDENT_SIZE + 1];
};

/* A store's layout and flags in the library's own form; it borrows the layout's names. */
void ob_writer_options(const struct ob_store *store, struct ob_writer_options *ret);

/* What a failure of the library is to the caller of a store. */
enum ob_err_kind ob_writer_kind(int status);
/* Hand a failure of the library on; *ret_index is set when it is about one message. Returns its
 * status. */
int ob_writer_fail(const struct outbox_error *fault, enum ob_err_kind kind, size_t *ret_index,
		   struct ob_err *err);

/* The two ways in which there is nothing to write into or to commit. */
int ob_writer_no_transaction(struct ob_err *err);
int ob_writer_rolled_back(struct ob_err *err);

#endif
