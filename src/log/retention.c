/* SPDX-License-Identifier: MIT */
/* How far every reader is through: what the log need not keep. */
#include "log/retention.h"

void ob_retain_init(struct ob_retain_bound *bound)
{
	*bound = (struct ob_retain_bound){ .seq = INT64_MAX, .txid = UINT64_MAX };
}

void ob_retain_done(struct ob_retain_bound *bound)
{
	ob_gaps_done(&bound->gaps);
	bound->any = false;
}

/*
 * Below xmin every transaction had ended when the reader read, so every row of one is delivered
 * or gone. Between xmin and xmax one may have been open: its rows have low numbers and are not.
 */
static bool add_snapshot(struct ob_retain_bound *bound, const struct ob_seen *seen)
{
	struct ob_snapshot snapshot;

	if (!seen) {
		bound->txid = 0;
		return true;
	}
	if (!ob_snapshot_parse((struct ob_str){ seen->text, seen->size }, &snapshot))
		return false;
	if (snapshot.xmin < bound->txid)
		bound->txid = snapshot.xmin;
	return true;
}

static bool add_gaps(struct ob_retain_bound *bound, const struct ob_seen *seen)
{
	struct ob_gaps gaps = { 0 };

	if (!seen)
		return true;
	bool ok = ob_gaps_parse(&gaps, (struct ob_str){ seen->text, seen->size }) &&
		  ob_gaps_merge(&bound->gaps, &gaps);

	ob_gaps_done(&gaps);
	return ok;
}

/* P1: a row may go when every reader has passed it, so each reader can only narrow the bound. */
bool ob_retain_add(struct ob_retain_bound *bound, const struct ob_progress *progress,
		   bool snapshots)
{
	bound->any = true;
	if (progress->pos < bound->seq)
		bound->seq = progress->pos;
	if (snapshots ? add_snapshot(bound, progress->seen) : add_gaps(bound, progress->seen))
		return true;
	bound->seq = INT64_MIN; /* what cannot be read lets nothing go */
	return false;
}

bool ob_retain_may_go(const struct ob_retain_bound *bound, int64_t seq, uint64_t txid)
{
	/*
	 * Never by number alone: a transaction that commits late has rows with low numbers, which
	 * no reader has delivered yet (P1). And without any reader nobody has passed anything.
	 */
	return bound->any && seq <= bound->seq && txid < bound->txid &&
	       !ob_gaps_has(&bound->gaps, seq);
}
