/* SPDX-License-Identifier: MIT */
/* Dividing a fetch among its partitions, for stores that find more than is wanted. */
#ifndef OB_STORE_SHARE_H
#define OB_STORE_SHARE_H

#include "store/store.h"

struct ob_candidate {
	uint32_t lane; /* index of its partition in the fetch */
	int32_t priority;
	int64_t seq;
	size_t size;
	union {
		void *row;
		int at;
	};
};

/* Of a lane's candidates list[first .. first + count) the first `taken` are to be sent. */
struct ob_share {
	size_t first, count, taken;
};

/* Is that message in flight? */
bool ob_fetch_excludes(const struct ob_fetch *fetch, int64_t seq);
/* By lane, priority (higher first) and seq: the order of sending. */
void ob_candidates_sort(struct ob_candidate *list, size_t count);
/*
 * First everyone's share, then what is left, in the order of the lanes, as far as messages and
 * bytes go. One message always fits; one that does not fit ends its lane. `shares` has an entry
 * for each partition of the fetch, all zero.
 */
void ob_candidates_share(const struct ob_fetch *fetch, const struct ob_candidate *list,
			 size_t count, struct ob_share *shares);

#endif
