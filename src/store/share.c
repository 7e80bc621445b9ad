/* SPDX-License-Identifier: MIT */
/* Who gets how much of a fetch. */
#include "store/share.h"

#include <stdlib.h>

static int in_order(const void *left, const void *right)
{
	const struct ob_candidate *a = left, *b = right;

	if (a->lane != b->lane)
		return a->lane < b->lane ? -1 : 1;
	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

void ob_candidates_sort(struct ob_candidate *list, size_t count)
{
	/* Mostly they are in order already. */
	for (size_t i = 1; i < count; i++) {
		if (in_order(&list[i - 1], &list[i]) > 0) {
			qsort(list, count, sizeof(*list), in_order);
			return;
		}
	}
}

struct budget {
	size_t messages, bytes;
	bool any;
};

static void take_up_to(const struct ob_candidate *list, struct ob_share *share, size_t cap,
		       struct budget *budget)
{
	while (share->taken < share->count && share->taken < cap && budget->messages > 0) {
		size_t size = list[share->first + share->taken].size;

		if (budget->any && size > budget->bytes)
			return;
		budget->any = true;
		budget->bytes -= size < budget->bytes ? size : budget->bytes;
		budget->messages--;
		share->taken++;
	}
}

void ob_candidates_share(const struct ob_fetch *fetch, const struct ob_candidate *list,
			 size_t count, struct ob_share *shares)
{
	struct budget budget = { .messages = fetch->limit, .bytes = fetch->max_bytes };
	size_t share = fetch->limit / fetch->partition_count;

	for (size_t i = count; i-- > 0;) {
		shares[list[i].lane].first = i;
		shares[list[i].lane].count++;
	}
	for (size_t i = 0; i < fetch->partition_count; i++)
		take_up_to(list, &shares[i], share ? share : 1, &budget);
	for (size_t i = 0; i < fetch->partition_count; i++)
		take_up_to(list, &shares[i], SIZE_MAX, &budget);
}

bool ob_fetch_excludes(const struct ob_fetch *fetch, int64_t seq)
{
	size_t low = 0, high = fetch->exclude_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (fetch->exclude[middle] == seq)
			return true;
		if (fetch->exclude[middle] < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}
