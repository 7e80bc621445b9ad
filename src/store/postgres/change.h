/* SPDX-License-Identifier: MIT */
/* Changes of exceptions as arrays, for a settle and for an operator's verb. */
#ifndef OB_STORE_POSTGRES_CHANGE_H
#define OB_STORE_POSTGRES_CHANGE_H

#include "store/postgres/stmt.h"

/* A journal row of this transaction, which changes of its partition depend on. */
struct pg_fence {
	uint32_t partition;
	uint64_t batch, epoch;
};

struct pg_changes {
	const char *reader;
	const struct ob_uuid *owner;   /* NULL: an operator */
	const struct pg_fence *fences; /* by partition, ascending */
	size_t fence_count;
	const struct ob_change *changes;
	size_t change_count;
	const struct ob_promote *promotes;
	size_t promote_count;
};

/* Queue them: they apply only where the journal has the fence's row with our owner. */
int pg_add_changes(struct pg_store *s, const struct pg_changes *changes, struct ob_err *err);

#endif
