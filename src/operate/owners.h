/* SPDX-License-Identifier: MIT */
/* Who holds which partition. */
#ifndef OB_OPERATE_OWNERS_H
#define OB_OPERATE_OWNERS_H

#include "base/jout.h"
#include "store/store.h"

/* The lease rows and the workers that may own them, at one moment. */
struct ob_owners {
	struct ob_arena arena;
	struct ob_partition *partitions;
	struct ob_worker *workers;
	size_t partition_count, worker_count;
	int64_t now_us; /* the database's clock */
};

/* Read them; reader NULL: of all. The caller ends *owners in every case. */
int ob_owners_load(struct ob_owners *owners, struct ob_store *store, const char *reader,
		   struct ob_err *err);
/* The worker of that id, or NULL when its heartbeat is over. */
const struct ob_worker *ob_owners_find(const struct ob_owners *owners, const struct ob_uuid *id);
void ob_owners_done(struct ob_owners *owners);

/* Room for the last group of an id, where two workers differ. */
enum { OB_OWNER_SHORT_SIZE = 13 };
void ob_owner_short(const struct ob_uuid *id, char out[OB_OWNER_SHORT_SIZE]);

/* Append one object about a partition of `owners`. */
void ob_partition_json(struct ob_jout *j, const struct ob_owners *owners,
		       const struct ob_partition *partition);

#endif
