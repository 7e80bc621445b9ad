/* SPDX-License-Identifier: MIT */
/* Changes of exceptions, for a settle and for an operator's verb. */
#ifndef OB_STORE_SQL_CHANGE_H
#define OB_STORE_SQL_CHANGE_H

#include "store/sql/sql.h"

/* A journal row of this transaction, which changes of its partition depend on. */
struct ob_sql_fence {
	uint32_t partition;
	uint64_t batch, epoch;
};

struct ob_sql_changes {
	const char *reader;
	const struct ob_uuid *owner;       /* NULL: an operator */
	const struct ob_sql_fence *fences; /* by partition, ascending */
	size_t fence_count;
	const struct ob_change *changes;
	size_t change_count;
	const struct ob_promote *promotes;
	size_t promote_count;
};

/* Add them: they apply only where the journal has the fence's row with our owner, and nobody has
 * taken over since. */
void ob_sql_add_changes(struct ob_sql *q, const struct ob_sql_changes *changes);

#endif
