/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store: in which partition a message in flight stands. A fetch reads past what is in
 * flight, and the caller names only numbers: without this every lane would be read as far as if all
 * of them stood in it.
 */
#include "store/mysql.h"
#include "store/share.h"

static int by_seq(const void *a, const void *b)
{
	const struct my_handed *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

void my_flight_count(const struct my_store *s, const struct ob_fetch *fetch,
		     uint32_t count[OB_PARTITIONS_MAX])
{
	uint32_t unknown = 0;

	for (size_t i = 0; i < fetch->exclude_count; i++) {
		const struct my_handed key = { .seq = fetch->exclude[i] };
		const struct my_handed *found =
			s->handed_count
				? bsearch(&key, s->handed, s->handed_count, sizeof(key), by_seq)
				: NULL;

		if (found)
			count[found->partition]++;
		else
			unknown++;
	}
	/* Those may stand anywhere. */
	for (size_t i = 0; unknown && i < OB_PARTITIONS_MAX; i++)
		count[i] += unknown;
}

void my_flight_note(struct my_store *s, const struct ob_fetch *fetch, const struct ob_batch *batch)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->handed_count; i++) {
		if (ob_fetch_excludes(fetch, s->handed[i].seq))
			s->handed[kept++] = s->handed[i];
	}
	s->handed_count = kept;
	if (kept + batch->count > s->handed_room) {
		size_t room = 2 * (kept + batch->count);
		struct my_handed *more = reallocarray(s->handed, room, sizeof(*more));

		if (!more)
			return; /* unknown ones cost time and nothing else */
		s->handed = more;
		s->handed_room = room;
	}
	for (uint32_t i = 0; i < batch->count; i++)
		s->handed[s->handed_count++] =
			(struct my_handed){ batch->messages[i].seq, batch->messages[i].partition };
	if (s->handed_count)
		qsort(s->handed, s->handed_count, sizeof(*s->handed), by_seq);
}
