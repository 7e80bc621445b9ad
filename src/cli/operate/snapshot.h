/* SPDX-License-Identifier: MIT */
/* All readers at one moment: counts, position, leases, workers. Shared by status and readers. */
#ifndef OB_CLI_OPERATE_SNAPSHOT_H
#define OB_CLI_OPERATE_SNAPSHOT_H

#include "cli/cli.h"
#include "cli/out/grid.h"
#include "cli/out/jout.h"

/* Counting stops here: more is "10,000+". */
enum { OB_SNAPSHOT_CAP = 10001 };

struct ob_snapshot_row {
	struct ob_reader reader;
	const struct ob_stats *stats; /* NULL: it came in this moment */
	uint64_t leased, partitions;
	int64_t end_seq; /* the newest message of its target; 0: none */
};

struct ob_snapshot {
	struct ob_arena arena;
	struct ob_snapshot_row *rows; /* by name */
	size_t count;
	struct ob_worker *workers;
	size_t worker_count;
	struct ob_buf store; /* the database in one line */
	int64_t now_us;      /* the database's clock */
};

/* `reader` NULL: all. The caller ends *snapshot in every case. */
int ob_snapshot_take(struct ob_snapshot *snapshot, struct ob_store *store, const char *reader,
		     struct ob_err *err);
void ob_snapshot_done(struct ob_snapshot *snapshot);

/* Numbers of the log between the reader's position and the newest message of its target. */
int64_t ob_snapshot_lag(const struct ob_snapshot_row *row);
/* Does retention keep rows for a reader that nobody runs? */
bool ob_snapshot_is_left(const struct ob_snapshot_row *row);
/* "reader mail: nobody runs it; it stands still since 3d04h and keeps ..." */
void ob_snapshot_left_text(const struct ob_snapshot *snapshot, const struct ob_snapshot_row *row,
			   struct ob_buf *out);
/* A capped count: "1,234" or "10,000+". */
void ob_snapshot_cell(struct ob_grid *grid, uint64_t count);
/* Append one object about the reader. */
void ob_snapshot_json(struct ob_jout *j, const struct ob_snapshot *snapshot,
		      const struct ob_snapshot_row *row);

#endif
