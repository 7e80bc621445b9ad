/* SPDX-License-Identifier: MIT */
/*
 * A PostgreSQL snapshot in its text form, "xmin:xmax:xip,xip,...": which transactions had
 * committed when it was taken. A transaction below xmin has ended, one from xmax on had not
 * begun, one in xip was open.
 */
#ifndef OB_LOG_SNAPSHOT_H
#define OB_LOG_SNAPSHOT_H

#include "log/progress.h"

struct ob_snapshot {
	uint64_t xmin, xmax;
	const char *xip; /* borrowed: the rest of the text */
	size_t xip_size;
};

/* False: not a snapshot. Borrows `text`. */
bool ob_snapshot_parse(struct ob_str text, struct ob_snapshot *ret_snapshot);
/* Would a row of this (committed) transaction be visible in it? */
bool ob_snapshot_shows(const struct ob_snapshot *snapshot, uint64_t txid);

#endif
