/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store: fetching. One statement finds the rows of all partitions,
 * from the ready index alone while nothing is held; another loads those that are chosen.
 */
#include "store/mysql.h"
#include "store/share.h"

/* One fetch while it runs. */
struct fetching {
	const struct ob_fetch *fetch;
	struct ob_batch *batch;
	uint32_t partitions[OB_PARTITIONS_MAX];
	uint32_t lanes;
	struct my_ahead ahead; /* where they begin, */
	bool from_front;       /* or all at their front */
	uint32_t limit;        /* of each lane, for the next find */
	struct my_rows found;  /* struct my_candidate, by lane, priority, seq */
	bool held;
};

static enum my_search search_of(enum ob_ordering ordering, bool held)
{
	if (ordering == OB_ORDER_NONE)
		return MY_SEARCH_NONE;
	if (!held)
		return MY_SEARCH_FREE;
	return ordering == OB_ORDER_KEY ? MY_SEARCH_KEY : MY_SEARCH_PARTITION;
}

static int by_lane(const void *a, const void *b)
{
	const struct my_candidate *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* Up to f->limit candidates of each lane that are not in flight. */
static int find(struct my_store *s, struct fetching *f, enum my_search how, struct ob_err *err)
{
	struct my_candidate *list;
	size_t kept = 0;
	int r = 0;

	f->held = false;
	f->found = (struct my_rows){ .arena = &f->batch->arena, .size = sizeof(*list) };
	for (uint32_t i = 0; i < f->lanes && r == 0; i += MY_LANES_MAX) {
		const struct my_searching search = {
			.search = how,
			.target = f->fetch->target,
			.partitions = f->partitions + i,
			.lanes = f->lanes - i < MY_LANES_MAX ? f->lanes - i : MY_LANES_MAX,
			.first_lane = i,
			.limit = f->limit,
			.more = f->ahead.behind,
			.from = f->ahead.from,
		};

		r = my_search(s, &search, &f->found, &f->held, err);
	}
	if (r < 0 || f->found.count == 0)
		return r;
	list = (void *)f->found.data;
	for (size_t i = 0; i < f->found.count; i++) {
		if (!ob_fetch_excludes(f->fetch, list[i].seq))
			list[kept++] = list[i];
	}
	f->found.count = kept;
	qsort(list, kept, sizeof(*list), by_lane);
	return 0;
}

/* Does a lane have `limit` or more, so that there may be more behind? */
static bool has_full_lane(const struct fetching *f, uint32_t limit)
{
	const struct my_candidate *list = (void *)f->found.data;
	uint32_t run = 0;

	for (size_t i = 0; i < f->found.count; i++) {
		run = i > 0 && list[i].lane == list[i - 1].lane ? run + 1 : 1;
		if (run >= limit)
			return true;
	}
	return false;
}

/* First everyone's share, then what is left, in the caller's order. */
static int choose(struct fetching *f, uint32_t share, struct my_candidate **ret_list,
		  size_t *ret_count, struct ob_err *err)
{
	const struct my_candidate *from = (void *)f->found.data;
	struct my_candidate *list =
		ob_arena_alloc(&f->batch->arena, (f->found.count + 1) * sizeof(*list));
	size_t count = 0;

	if (!list)
		return my_oom("fetching", err);
	for (int round = 0; round < 2; round++) {
		uint32_t run = 0;

		for (size_t i = 0; i < f->found.count && count < f->fetch->limit; i++) {
			run = i > 0 && from[i].lane == from[i - 1].lane ? run + 1 : 0;
			if ((run < share) == (round == 0))
				list[count++] = from[i];
		}
	}
	*ret_list = list;
	*ret_count = count;
	return 0;
}

static int message_by_lane(const void *a, const void *b, void *arg)
{
	const struct ob_message *x = a, *y = b;
	const uint32_t *rank = arg;

	if (x->partition != y->partition)
		return rank[x->partition] < rank[y->partition] ? -1 : 1;
	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int load(struct my_store *s, struct fetching *f, uint32_t share, struct ob_err *err)
{
	uint32_t rank[OB_PARTITIONS_MAX] = { 0 };
	struct my_loading l = {
		.s = s,
		.batch = f->batch,
		.limit = f->fetch->limit,
		.max_bytes = f->fetch->max_bytes,
	};
	int r = choose(f, share, &l.list, &l.count, err);

	if (r == 0)
		r = my_load(&l, err);
	if (r < 0 || f->batch->count == 0)
		return r;
	for (uint32_t i = 0; i < f->lanes; i++)
		rank[f->partitions[i]] = i;
	qsort_r(f->batch->messages, f->batch->count, sizeof(*f->batch->messages), message_by_lane,
		rank);
	return 0;
}

/* The statement for the usual case tells when it is not the usual case; only that knows positions.
 */
static int find_all(struct my_store *s, void *arg, struct ob_err *err)
{
	struct fetching *f = arg;
	enum ob_ordering ordering = f->fetch->ordering;
	bool held = ordering != OB_ORDER_NONE && s->held;

	my_ahead_plan(s, f->fetch, held || f->from_front, &f->ahead);
	int r = find(s, f, search_of(ordering, held), err);
	if (r == 0 && f->held && !held && ordering != OB_ORDER_NONE) {
		my_ahead_plan(s, f->fetch, true, &f->ahead);
		r = find(s, f, search_of(ordering, true), err);
	}
	if (r == 0 && ordering != OB_ORDER_NONE)
		s->held = f->held;
	return r;
}

/* One statement is one snapshot; several need a transaction. */
static int find_at_once(struct my_store *s, struct fetching *f, uint32_t limit, struct ob_err *err)
{
	f->limit = limit;
	return f->lanes > MY_LANES_MAX ? my_read(s, find_all, f, err) : find_all(s, f, err);
}

/*
 * When some lanes had less than their share and others more, all are read once
 * more, further: what is sent is chosen from one snapshot.
 */
static int find_enough(struct my_store *s, struct fetching *f, struct ob_err *err)
{
	uint32_t limit = f->fetch->limit;
	/* Rounded up: lanes that all have enough fill the fetch at once. */
	uint32_t part = (limit - 1) / f->lanes + 1;
	int r = find_at_once(s, f, part, err);

	if (r == 0 && part < limit && f->found.count < limit && has_full_lane(f, part))
		r = find_at_once(s, f, limit, err);
	return r;
}

static int fetch_work(struct my_store *s, struct fetching *f, struct ob_err *err)
{
	uint32_t share = f->fetch->limit / f->lanes ? f->fetch->limit / f->lanes : 1;
	int r = find_enough(s, f, err);

	if (r == 0)
		r = my_ahead_check(s, f->fetch, &f->ahead, &f->batch->arena, err);
	if (r == 0) {
		f->from_front = true;
		r = find_enough(s, f, err);
	}
	return r < 0 ? r : load(s, f, share, err);
}

int my_fetch(struct ob_store *store, const struct ob_fetch *fetch, struct ob_batch *batch,
	     struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct fetching f = { .fetch = fetch, .batch = batch };
	bool seen[OB_PARTITIONS_MAX] = { false };
	int r = my_ready(s, false, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < fetch->partition_count; i++) {
		uint32_t partition = fetch->partitions[i];

		if (partition < OB_PARTITIONS_MAX && !seen[partition])
			f.partitions[f.lanes++] = partition;
		if (partition < OB_PARTITIONS_MAX)
			seen[partition] = true;
	}
	if (f.lanes == 0)
		return 0;
	r = fetch_work(s, &f, err);
	if (r < 0) {
		ob_batch_reset(batch);
		return r;
	}
	my_flight_note(s, fetch, batch);
	my_ahead_note(s, fetch, batch);
	return 0;
}
