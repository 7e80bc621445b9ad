/* SPDX-License-Identifier: MIT */
/* Who holds which partition, and changing how many there are. */
#ifndef OB_CLI_OPERATE_RESIZE_H
#define OB_CLI_OPERATE_RESIZE_H

#include "cli/cli.h"

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

/*
 * Change the number of partitions. Running workers are asked to let go first and share again
 * afterwards; that may take wait_ms. Prints the old and the new
 * number, or who is in the way; an exit code.
 */
int ob_resize(const struct ob_cli *cli, const struct ob_session *session, uint32_t count,
	      int64_t wait_ms);

#endif
