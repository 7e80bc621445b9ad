/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store: fetching on from where the last fetch ended. What is in flight stands before
 * what is wanted, and InnoDB reads it slowly: in a page of the index that a settle has just
 * changed it looks for each entry at the row, and at the row's older versions. So a lane is read
 * from its position on, the last row that was returned, in the order of the index.
 *
 * That alone would pass over a row that commits late with a low number, has a higher priority,
 * becomes due, or was given back. So what stands before the positions is read too, uncommitted
 * (then InnoDB takes the index as it is), by a statement that begins after the fetch's snapshot
 * was taken. What that snapshot shows there is still there, unless somebody decided over it since:
 * it is in flight, or this finds it, and the fetch is done again from the front.
 *
 * So no promise rests on what is remembered here: a wrong position costs time and nothing else.
 */
#include "store/mysql.h"
#include "store/share.h"

#include "sql_mysql.h"

enum {
	AHEAD_MIN = 64,  /* with less in flight the second statement costs more than it saves */
	CLOSED_FOR = 16, /* fetches from the front, once something else was found there */
	TOP = INT16_MAX, /* the highest priority */
};

static const struct my_position front = { .priority = TOP, .seq = INT64_MIN };

static bool is_behind(int64_t priority, int64_t seq, const struct my_position *position)
{
	if (priority != position->priority)
		return priority < position->priority;
	return seq > position->seq;
}

static const struct my_position *position_of(const struct my_store *s, uint32_t partition)
{
	const struct my_lane *lane = &s->lanes[partition];

	return lane->known && lane->closed == 0 ? &lane->last : &front;
}

void my_ahead_plan(const struct my_store *s, const struct ob_fetch *fetch, bool from_front,
		   struct my_ahead *a)
{
	bool ahead = !from_front && fetch->exclude_count >= AHEAD_MIN;

	memset(a, 0, sizeof(*a));
	for (size_t i = 0; i < OB_PARTITIONS_MAX; i++)
		a->from[i] = front;
	for (size_t i = 0; i < fetch->exclude_count; i++) {
		const struct my_handed *at = my_flight_find(s, fetch->exclude[i]);
		uint32_t partition = at ? at->partition : 0;

		if (!at)
			a->unknown++;
		else if (!ahead || is_behind(at->priority, at->seq, position_of(s, partition)))
			a->behind[partition]++;
		else
			a->before[partition]++;
	}
	for (uint32_t i = 0; i < OB_PARTITIONS_MAX; i++) {
		/* Those may stand anywhere. */
		a->behind[i] += a->unknown;
		if (a->before[i] == 0)
			continue;
		a->from[i] = *position_of(s, i);
		a->any = true;
	}
}

/* Rows before the positions of these lanes, into `out`. */
static int read_before(struct my_store *s, const struct my_searching *search, struct my_rows *out,
		       struct ob_err *err)
{
	struct my_query *q;
	bool held;
	/* Prepared first: the isolation is that of the next statement. */
	int r = my_prepare_search(s, search->search, search->lanes, &q, err);

	if (r == 0)
		r = my_exec(s, s->db, sql_mysql_look_isolation, "fetching", err);
	return r < 0 ? r : my_search(s, search, out, &held, err);
}

static int find_before(struct my_store *s, const struct ob_fetch *fetch, const struct my_ahead *a,
		       struct my_rows *out, struct ob_err *err)
{
	uint32_t partitions[MY_LANES_MAX];
	struct my_searching search = {
		.search = MY_SEARCH_BEFORE,
		.target = fetch->target,
		.partitions = partitions,
		.from = a->from,
	};
	int r = 0;

	for (size_t i = 0; i < fetch->partition_count && r == 0; i++) {
		uint32_t partition = fetch->partitions[i];

		/* One more than can be in flight there is one that is not. */
		if (search.lanes == 0)
			search.limit = a->unknown + 1;
		if (partition < OB_PARTITIONS_MAX && a->before[partition] > 0) {
			search.limit += a->before[partition];
			partitions[search.lanes++] = partition;
		}
		if (search.lanes == MY_LANES_MAX ||
		    (search.lanes > 0 && i + 1 == fetch->partition_count)) {
			r = read_before(s, &search, out, err);
			search.lanes = 0;
		}
	}
	return r;
}

int my_ahead_check(struct my_store *s, const struct ob_fetch *fetch, const struct my_ahead *a,
		   struct ob_arena *arena, struct ob_err *err)
{
	struct my_rows found = { .arena = arena, .size = sizeof(struct my_candidate) };
	const struct my_candidate *list;
	bool alone = true;
	int r = a->any ? find_before(s, fetch, a, &found, err) : 0;

	list = (const void *)found.data;
	for (size_t i = 0; i < found.count && r == 0; i++) {
		if (ob_fetch_excludes(fetch, list[i].seq))
			continue;
		/* It may be uncommitted for a long time. */
		s->lanes[list[i].partition].closed = CLOSED_FOR;
		alone = false;
	}
	return r < 0 ? r : alone;
}

void my_ahead_note(struct my_store *s, const struct ob_fetch *fetch, const struct ob_batch *batch)
{
	for (size_t i = 0; i < fetch->partition_count; i++) {
		uint32_t partition = fetch->partitions[i];

		if (partition < OB_PARTITIONS_MAX && s->lanes[partition].closed > 0)
			s->lanes[partition].closed--;
	}
	/* They are in order: the last one of each lane stays. */
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct ob_message *m = &batch->messages[i];

		if (m->state != OB_STATE_PENDING)
			continue;
		s->lanes[m->partition].known = true;
		s->lanes[m->partition].last =
			(struct my_position){ .priority = m->priority, .seq = m->seq };
	}
}
