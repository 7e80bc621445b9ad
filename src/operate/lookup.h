/* SPDX-License-Identifier: MIT */
/* One message by its id: its rows, and what each reader says of them. */
#ifndef OB_OPERATE_LOOKUP_H
#define OB_OPERATE_LOOKUP_H

#include "operate/readers.h"

struct ob_lookup {
	struct ob_store *store; /* borrowed */
	const char *wanted;     /* one reader, or NULL: every reader of its target */
	struct ob_uuid id;
	struct ob_readers readers;
	struct ob_batch rows; /* one for each target it was pushed for */
	struct ob_batch seen; /* as the reader asked last sees them */
	int64_t now_us;
};

/*
 * Find the rows of `text`: a UUID, the beginning of one, or a number of the log; with `wanted` only
 * those that this reader reads. OUTBOX_EINVAL: it is none of these (see ob_lookup_check());
 * OUTBOX_ENOTFOUND: there is none, or several begin so, or there is no such reader. `gone` is added
 * to the line that says that there is none. The caller ends *lookup in every case.
 */
int ob_lookup_find(struct ob_lookup *lookup, struct ob_store *store, const char *text,
		   const char *wanted, const char *gone, struct ob_err *err);
/* Is `text` something that could be looked up? OUTBOX_EINVAL says what it should be. */
int ob_lookup_check(const char *text, struct ob_err *err);
void ob_lookup_done(struct ob_lookup *lookup);

/* Does this reader read that row, and is it among those asked for? */
bool ob_lookup_reads(const struct ob_lookup *lookup, const struct ob_reader *reader,
		     const struct ob_message *row);
/*
 * The row as `reader` sees it; valid until the next call. *ret_name: the reader's name with a NUL
 * behind it. OUTBOX_ENOTFOUND: the row has gone meanwhile.
 */
int ob_lookup_see(struct ob_lookup *lookup, const struct ob_reader *reader,
		  const struct ob_message *row, const struct ob_message **ret_message,
		  const char **ret_name, struct ob_err *err);

#endif
