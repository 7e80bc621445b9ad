/* SPDX-License-Identifier: MIT */
/* All readers at one moment: counts, position, leases, workers. Shared by status and readers. */
#ifndef OB_OPERATE_SNAPSHOT_H
#define OB_OPERATE_SNAPSHOT_H

#include "base/jout.h"
#include "store/store.h"

/* Counting stops here: more is "10,000+". */
enum { OB_SNAPSHOT_CAP = 10001 };

/* What the workers of a reader tell of their sink, as of their last heartbeats. */
struct ob_snapshot_sink {
	size_t told, down;            /* workers that tell anything; whose sink is down */
	struct ob_worker_report tale; /* of one whose sink is down, the longest; else of any */
	struct ob_worker_error sink_error, store_error; /* the newest of all of them */
	double rate;                                    /* of all of them */
	uint64_t in_flight;
	/* What retention did last; at 0: nobody tells. */
	int64_t retained_us;
	uint64_t retained_rows, retained_parts;
};

struct ob_snapshot_row {
	struct ob_reader reader;
	const struct ob_stats *stats; /* NULL: it came in this moment */
	uint64_t leased, partitions;
	int64_t end_seq; /* the newest message of its target; 0: none */
	struct ob_snapshot_sink sink;
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
/* Only the readers and their targets' ends: nothing is counted. Stats, leases and workers stay
 * empty. */
int ob_snapshot_take_readers(struct ob_snapshot *snapshot, struct ob_store *store,
			     const char *reader, struct ob_err *err);
void ob_snapshot_done(struct ob_snapshot *snapshot);

/* Numbers of the log between the reader's position and the newest message of its target. */
int64_t ob_snapshot_lag(const struct ob_snapshot_row *row);
/* Does retention keep rows for a reader that nobody runs? */
bool ob_snapshot_is_left(const struct ob_snapshot_row *row);
/* "reader mail: nobody runs it; it stands still since 3d04h and keeps ..." */
void ob_snapshot_left_text(const struct ob_snapshot *snapshot, const struct ob_snapshot_row *row,
			   struct ob_buf *out);
/* "ok", "down", "probing" or "most keys fail" of one report; "-": not known. */
const char *ob_report_word(const struct ob_worker_report *report);
/* "sink orders is down since 6m12s: connection refused; next try in 2s" */
void ob_report_down_text(const struct ob_worker_report *report, int64_t now_us, struct ob_buf *out);
/* Append one object: the database, every reader, every worker; the second to an open one. */
void ob_snapshot_json(struct ob_jout *j, const struct ob_snapshot *snapshot);
void ob_snapshot_json_members(struct ob_jout *j, const struct ob_snapshot *snapshot);
/* Append one object about the reader. */
void ob_snapshot_row_json(struct ob_jout *j, const struct ob_snapshot *snapshot,
			  const struct ob_snapshot_row *row);
/* Append one object about a worker. */
void ob_worker_json(struct ob_jout *j, const struct ob_worker *worker);

#endif
