/* SPDX-License-Identifier: MIT */
/*
 * What a worker has read of the log and not yet recorded. Every read is a span: for each partition
 * that was read, the progress that holds once everything the span brought has an outcome. Progress
 * may be recorded up to the last span before which nothing is open (P1: the position never passes
 * a message without an outcome or an exception).
 */
#ifndef OB_LOG_TRACK_H
#define OB_LOG_TRACK_H

#include "base/err.h"
#include "log/progress.h"

enum { OB_TRACK_SPANS = 64 }; /* reads that are not recorded yet */

struct ob_track;

int ob_track_new(uint32_t partitions, struct ob_track **ret_track, struct ob_err *err);
void ob_track_free(struct ob_track *track);

/* A partition is ours: reading goes on from here, and this much is recorded as `batch`. */
int ob_track_take(struct ob_track *track, uint32_t partition, uint64_t batch,
		  const struct ob_progress *progress, struct ob_err *err);
/* Not any more: forget it. */
void ob_track_drop(struct ob_track *track, uint32_t partition);
bool ob_track_has(const struct ob_track *track, uint32_t partition);

/* What was read after the last recordable progress is forgotten: the next read goes on there. */
void ob_track_rewind(struct ob_track *track, uint32_t partition);

/* Where the next read goes on; borrowed. */
const struct ob_progress *ob_track_read_from(const struct ob_track *track, uint32_t partition);
/* Room for one more span? */
bool ob_track_has_room(const struct ob_track *track);
/* Begin a span and return its number (> 0, growing); then ob_track_reach() for each partition
 * that was read, ob_track_open() for each message from the log. */
uint64_t ob_track_span(struct ob_track *track, int64_t now_us);
int ob_track_reach(struct ob_track *track, uint32_t partition, const struct ob_progress *after,
		   struct ob_err *err);
void ob_track_open(struct ob_track *track, uint64_t span, uint32_t partition);
/* The message has an outcome that the next settle records, or was recorded as an exception. */
void ob_track_close(struct ob_track *track, uint64_t span, uint32_t partition);

/* Is there progress to record for the partition? *ret_progress is borrowed until the next call that
 * changes the track; *ret_span: up to here. If there is none, they are what is recorded and 0. */
bool ob_track_recordable(const struct ob_track *track, uint32_t partition,
			 const struct ob_progress **ret_progress, uint64_t *ret_span);
/* It was recorded, as `batch`; the spans up to `span` are through for this partition. */
void ob_track_recorded(struct ob_track *track, uint32_t partition, uint64_t span, uint64_t batch);
/* Messages with an outcome that what is recorded does not cover: one before them is open. */
uint32_t ob_track_unrecorded(const struct ob_track *track, uint32_t partition);
/* The number of the last journal row that is ours (or an operator's after it). */
uint64_t ob_track_batch(const struct ob_track *track, uint32_t partition);
void ob_track_set_batch(struct ob_track *track, uint32_t partition, uint64_t batch);

/*
 * The number of the newest span whose open messages hold the position back although two later spans
 * that brought messages are through everywhere, or that began before `older_than_us`; 0: none. The
 * open messages of it and of all spans before it are spilled.
 */
uint64_t ob_track_spill(const struct ob_track *track, int64_t older_than_us);

#endif
