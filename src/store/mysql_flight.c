/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store: where a message in flight stands. A fetch reads past what is in flight, and the
 * caller names only numbers: without this every lane would be read as far as if all of them stood
 * in it.
 */
#include "store/mysql.h"
#include "store/share.h"

static int by_seq(const void *a, const void *b)
{
	const struct my_handed *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

const struct my_handed *my_flight_find(const struct my_store *s, int64_t seq)
{
	const struct my_handed key = { .seq = seq };

	if (s->handed_count == 0)
		return NULL;
	return bsearch(&key, s->handed, s->handed_count, sizeof(key), by_seq);
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
			(struct my_handed){ .seq = batch->messages[i].seq,
					    .priority = batch->messages[i].priority,
					    .partition = batch->messages[i].partition };
	if (s->handed_count)
		qsort(s->handed, s->handed_count, sizeof(*s->handed), by_seq);
}
