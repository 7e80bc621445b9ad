/* SPDX-License-Identifier: MIT */
/*
 * Asking running workers to let go of their partitions, by the rules they already obey: for
 * each partition a stand-in joins whose id comes before theirs. The fair share of every
 * real worker is then none, so it finishes what is in flight and releases; stand-ins
 * take nothing. When they leave, or their heartbeat is over, the workers share again.
 */
#ifndef OB_CLI_OPERATE_STANDINS_H
#define OB_CLI_OPERATE_STANDINS_H

#include "operate/owners.h"

struct ob_standins {
	struct ob_store *store; /* borrowed */
	struct ob_arena arena;
	struct ob_standins_reader *readers;
	size_t count;
};

/* For every reader of `owners`, for ttl_ms at most. The caller ends *standins in every case. */
int ob_standins_join(struct ob_standins *standins, struct ob_store *store,
		     const struct ob_owners *owners, int64_t ttl_ms, struct ob_err *err);
/* All of them leave; those that cannot are forgotten when their heartbeat is over. */
void ob_standins_done(struct ob_standins *standins);

#endif
