/* SPDX-License-Identifier: MIT */
/* Which rows a progress covers: progress.h says what that means, this answers for one row. */
#ifndef OB_LOG_COVER_H
#define OB_LOG_COVER_H

#include "log/gaps.h"
#include "log/snapshot.h"

/* A progress, ready to be asked. */
struct ob_cover {
	int64_t pos, late_pos; /* late_pos INT64_MIN: nothing late is covered */
	bool snapshots;
	struct ob_snapshot seen, late_seen; /* they borrow from the progress */
	struct ob_gaps gaps;
};

/* Ask before the progress changes. False: what was seen cannot be read; then nothing is covered. */
bool ob_cover_open(struct ob_cover *cover, const struct ob_progress *progress);
void ob_cover_close(struct ob_cover *cover);
/* Did `seen` show it, whatever the position? `txid` is asked of a snapshot only; 0: not known, and
 * not shown. */
bool ob_cover_seen(const struct ob_cover *cover, int64_t seq, uint64_t txid);
/* The same of late_seen; false where there is none. */
bool ob_cover_late_seen(const struct ob_cover *cover, uint64_t txid);
/* Is it behind the reader, exceptions aside? */
bool ob_cover_has(const struct ob_cover *cover, int64_t seq, uint64_t txid);

#endif
