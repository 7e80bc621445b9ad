/* SPDX-License-Identifier: MIT */
/*
 * Maintenance: one pass of what a relay does while it runs, and what it may do next. Removes what
 * every reader has passed long enough ago, makes table partitions ahead and drops those that are
 * empty of use, prunes the journal, the throughput and the audit.
 */
#ifndef OB_OPERATE_MAINTAIN_H
#define OB_OPERATE_MAINTAIN_H

#include "config/config.h"
#include "operate/archive.h"
#include "operate/snapshot.h"

struct ob_maintain {
	struct ob_retain rule;
	struct ob_archive *archive; /* NULL: none. Else a row is on its disk before it goes */
};

struct ob_maintained {
	uint64_t rows, dead, batches, archived;
	uint64_t parts_made, parts_dropped; /* of a partitioned log */
	bool busy;                          /* a relay does the same right now: it was not ended */
	struct ob_buf held_by;              /* the reader that holds what is left; "": none */
	int64_t held_us;                    /* since when it stands still */
};

void ob_maintained_init(struct ob_maintained *done);
void ob_maintained_done(struct ob_maintained *done);
/* Batch by batch, until nothing is left. *done counts also what was done before a failure. */
int ob_maintain_run(struct ob_store *store, const struct ob_maintain *maintain,
		    struct ob_maintained *done, struct ob_err *err);
/* "removed 3 rows, ...", without what holds the rest. */
void ob_maintained_text(const struct ob_maintained *done, struct ob_buf *out);
/* Append its members to an open object. */
void ob_maintained_json(struct ob_jout *j, const struct ob_maintained *done);

/* ---- what it may do next --------------------------------------------- */

/* What retention stands at, for the log and for each reader of a snapshot. */
struct ob_upkeep {
	int64_t published_ms, dead_ms, every_ms; /* as configured; OB_NEVER_MS */
	int64_t oldest_seq, oldest_us;           /* the first row of the log; 0: it is empty */
	int64_t newest_seq;
	int64_t free_to;     /* rows up to this number may go once they are old enough; 0: none */
	const char *held_by; /* the reader that stops it there; NULL: none does */
	bool held_left;      /* and nobody runs that one */
	int64_t last_us;     /* what a relay's retention did last; 0: none tells */
	uint64_t last_rows, last_parts;
};

/* `snapshot` is of all readers, and outlives *ret. */
int ob_upkeep_find(struct ob_upkeep *ret, struct ob_store *store,
		   const struct ob_snapshot *snapshot, const struct ob_config_retention *retention,
		   struct ob_err *err);
/* Sentences for people. */
void ob_upkeep_text(const struct ob_upkeep *upkeep, int64_t now_us, struct ob_buf *out);
/* Append it as the member "retention". */
void ob_upkeep_json(struct ob_jout *j, const struct ob_upkeep *upkeep);

#endif
