/* SPDX-License-Identifier: MIT */
/* Asking a progress about rows. */
#include "log/cover.h"

static struct ob_str seen_text_of(const struct ob_seen *seen)
{
	return (struct ob_str){ seen->text, seen->size };
}

bool ob_cover_open(struct ob_cover *cover, const struct ob_progress *progress)
{
	bool ok = true;

	*cover = (struct ob_cover){ .pos = progress->pos, .late_pos = INT64_MIN };
	if (progress->seen && memchr(progress->seen->text, ':', progress->seen->size)) {
		cover->snapshots = true;
		ok = ob_snapshot_parse(seen_text_of(progress->seen), &cover->seen);
	} else if (progress->seen) {
		ok = ob_gaps_parse(&cover->gaps, seen_text_of(progress->seen));
	}
	if (ok && progress->late_seen) {
		ok = ob_snapshot_parse(seen_text_of(progress->late_seen), &cover->late_seen);
		cover->late_pos = progress->late_pos;
	}
	if (!ok)
		cover->pos = cover->late_pos = INT64_MIN;
	return ok;
}

void ob_cover_close(struct ob_cover *cover)
{
	ob_gaps_done(&cover->gaps);
}

bool ob_cover_seen(const struct ob_cover *cover, int64_t seq, uint64_t txid)
{
	if (cover->snapshots)
		return txid > 0 && ob_snapshot_shows(&cover->seen, txid);
	return !ob_gaps_has(&cover->gaps, seq);
}

bool ob_cover_late_seen(const struct ob_cover *cover, uint64_t txid)
{
	return cover->late_seen.xmax > 0 && txid > 0 && ob_snapshot_shows(&cover->late_seen, txid);
}

bool ob_cover_has(const struct ob_cover *cover, int64_t seq, uint64_t txid)
{
	if (seq > cover->pos)
		return false;
	return ob_cover_seen(cover, seq, txid) ||
	       (seq <= cover->late_pos && ob_cover_late_seen(cover, txid));
}
