/* SPDX-License-Identifier: MIT */
/* What a reader's filter selects now and did not before: delivered after all. */
#ifndef OB_EVENTS_RECONCILE_H
#define OB_EVENTS_RECONCILE_H

#include "config/config.h"

struct ob_reconcile {
	const struct ob_config_relay
		*relay;         /* its name is the reader's, its filter is the new one */
	const char *old_filter; /* NULL: what the reader was made with */
	int64_t from_seq;       /* nothing below it; 0: from the beginning */
	bool dry_run;           /* count only */
};

/*
 * Walk the history that the reader has behind it and mark what the new filter selects and the old
 * one did not, so that its relay delivers it: in order by key, and before what comes later of that
 * key. In one transaction, which also stores the new filter. Running it again finds nothing.
 * *ret_count: messages. Unknown reader: OUTBOX_ENOTFOUND.
 */
int ob_reconcile_run(struct ob_store *store, const struct ob_reconcile *what, uint64_t *ret_count,
		     struct ob_err *err);

#endif
