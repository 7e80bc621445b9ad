/* SPDX-License-Identifier: MIT */
/*
 * What may be removed from the log. A row may go when every reader of the log has it behind it: seq
 * <= pos of every partition of every reader, covered by what that reader had seen, no exception
 * names it, and all of that was so long enough ago. Never by number alone: a row that commits late
 * has a low number and is not delivered yet.
 */
#ifndef OB_LOG_RETENTION_H
#define OB_LOG_RETENTION_H

#include "log/gaps.h"
#include "log/snapshot.h"

struct ob_retain_bound {
	bool any;            /* false: nothing may go */
	int64_t seq;         /* rows up to this number, */
	uint64_t txid;       /* of transactions below this one (PostgreSQL), */
	struct ob_gaps gaps; /* but for these numbers (MySQL) */
};

void ob_retain_init(struct ob_retain_bound *bound);
void ob_retain_done(struct ob_retain_bound *bound);
/* One partition of one reader: the progress that it had at that time. With `snapshots`, seen is one
 * (a missing one lets nothing go); else it is a gap list or NULL. False: it cannot be read. */
bool ob_retain_add(struct ob_retain_bound *bound, const struct ob_progress *progress,
		   bool snapshots);
bool ob_retain_may_go(const struct ob_retain_bound *bound, int64_t seq, uint64_t txid);

#endif
