/* SPDX-License-Identifier: MIT */
/*
 * Fetching from the PostgreSQL store: one snapshot, from each partition its part, begun at its
 * mark. Mostly one round trip; large messages and, now and then, a look take one more.
 */
#include "store/postgres.h"
#include "store/share.h"

/* What the statements of a fetch return, in this order. */
enum { RESULT_MOST, RESULT_REST, RESULT_SNAPSHOT };

enum {
	ANY_PARAMS = 3,     /* of fetch_rest, which fetch_any_rest has too */
	REST_FETCHES = 100, /* once there was something rare, so many look for more of it at once */
};

/* One fetch while it runs. */
struct fetching {
	struct pg_store *s;
	const struct ob_fetch *fetch;
	int64_t *lows, *aheads;            /* where each lane begins */
	int64_t *left;                     /* the first row of a lane that is not returned */
	uint32_t *read;                    /* rows that were read of each lane */
	uint32_t *parts;                   /* how many are asked of each lane */
	uint32_t lanes[OB_PARTITIONS_MAX]; /* of the partitions */
	PGresult *found[2], *large;        /* of the last read */
	struct ob_share *shares;
	struct ob_candidate *list;
	size_t count;
};

static void drop_results(struct fetching *f)
{
	PQclear(f->found[RESULT_MOST]);
	PQclear(f->found[RESULT_REST]);
	PQclear(f->large);
	f->found[RESULT_MOST] = f->found[RESULT_REST] = f->large = NULL;
}

/* Everyone's share, or what it was good for last time when others had less. */
static void plan_parts(struct fetching *f)
{
	uint32_t lanes = (uint32_t)f->fetch->partition_count;
	uint32_t share = (f->fetch->limit - 1) / lanes + 1;

	for (size_t i = 0; i < lanes; i++) {
		uint32_t p = f->fetch->partitions[i];
		uint32_t last = p < OB_PARTITIONS_MAX ? f->s->parts[p] : 0;

		f->parts[i] = last > share ? last : share;
		if (f->parts[i] > f->fetch->limit)
			f->parts[i] = f->fetch->limit;
	}
}

/* The parameters of `most` are those of `rest` with other places, and one more. */
static int add_statements(struct fetching *f, const struct pg_params *most,
			  const struct pg_params *rest, struct ob_err *err)
{
	struct pg_params any = *rest;
	int r = pg_add(f->s, PG_fetch, most, err);

	any.count = ANY_PARAMS;
	if (r == 0)
		r = f->s->rest_left > 0 ? pg_add(f->s, PG_fetch_rest, rest, err)
					: pg_add(f->s, PG_fetch_any_rest, &any, err);
	/* Without writers to watch it would say nothing. */
	if (r == 0 && f->s->marks.writer_count > 0)
		r = pg_add(f->s, PG_snapshot, NULL, err);
	return r;
}

/* The arrays of both statements. */
struct sent {
	struct ob_pgarray lanes, lows, from, parts, as_is, exclude;
};

static void list_lanes(struct fetching *f, struct sent *to)
{
	const struct ob_fetch *fetch = f->fetch;
	bool seen[OB_PARTITIONS_MAX] = { false };

	ob_pgarray_begin(&to->lanes, OB_PG_INT8);
	ob_pgarray_begin(&to->lows, OB_PG_INT8);
	ob_pgarray_begin(&to->from, OB_PG_INT8);
	ob_pgarray_begin(&to->parts, OB_PG_INT8);
	ob_pgarray_begin(&to->as_is, OB_PG_INT8);
	for (size_t i = 0; i < fetch->partition_count; i++) {
		uint32_t partition = fetch->partitions[i];
		bool ahead = f->aheads[i] > OB_MARK_NONE;

		/* Out of range holds nothing, and what is named twice is served once. */
		if (partition >= OB_PARTITIONS_MAX || seen[partition])
			continue;
		seen[partition] = true;
		f->lanes[partition] = (uint32_t)i;
		ob_pgarray_int(&to->lanes, (int64_t)partition);
		ob_pgarray_int(&to->lows, f->lows[i]);
		ob_pgarray_int(&to->from, ahead ? f->aheads[i] : f->lows[i]);
		ob_pgarray_int(&to->parts, f->parts[i]);
		ob_pgarray_int(&to->as_is, ahead);
	}
	ob_pgarray_begin(&to->exclude, OB_PG_INT8);
	for (size_t i = 0; i < fetch->exclude_count; i++)
		ob_pgarray_int(&to->exclude, fetch->exclude[i]);
}

static void fill(struct pg_params *p, const struct ob_fetch *fetch, struct sent *to,
		 struct ob_pgarray *places)
{
	pg_text(p, fetch->target);
	pg_array(p, &to->lanes);
	pg_array(p, places);
	pg_array(p, &to->parts);
	pg_array(p, &to->exclude);
	pg_int(p, fetch->ordering);
	/* All that are not large fit together. */
	pg_int(p, fetch->max_bytes < INT64_MAX ? (int64_t)(fetch->max_bytes / fetch->limit)
					       : INT64_MAX);
}

static int send_fetch(struct fetching *f, struct ob_err *err)
{
	struct pg_params most = { 0 }, rest = { 0 };
	struct sent to = { 0 };

	list_lanes(f, &to);
	fill(&most, f->fetch, &to, &to.from);
	fill(&rest, f->fetch, &to, &to.lows);
	pg_array(&most, &to.as_is);
	int r = pg_begin_snapshot(f->s, err);
	if (r == 0)
		r = pg_finish(f->s, add_statements(f, &most, &rest, err), err);
	ob_pgarray_done(&to.lanes);
	ob_pgarray_done(&to.lows);
	ob_pgarray_done(&to.from);
	ob_pgarray_done(&to.parts);
	ob_pgarray_done(&to.as_is);
	ob_pgarray_done(&to.exclude);
	return r;
}

/* Their results are kept, since more statements may follow. */
static void take_results(struct fetching *f)
{
	drop_results(f);
	for (int i = RESULT_MOST; i <= RESULT_REST; i++) {
		f->found[i] = f->s->results[i];
		f->s->results[i] = NULL;
	}
}

/*
 * The rest is mostly nothing, and asking whether there is something costs less than asking for it.
 * False: there is something, so it must be read together with the others.
 */
static bool is_rest_read(struct fetching *f)
{
	uint32_t *left = &f->s->rest_left;
	bool asked = *left > 0, any = PQntuples(f->s->results[RESULT_REST]) > 0;

	if (any)
		*left = REST_FETCHES;
	else if (asked)
		(*left)--;
	return asked || !any;
}

/* The rows that were found, counted through both results. */
static const PGresult *result_of(const struct fetching *f, int at, int *ret_row)
{
	int first = PQntuples(f->found[RESULT_MOST]);

	*ret_row = at < first ? at : at - first;
	return f->found[at < first ? RESULT_MOST : RESULT_REST];
}

static struct ob_candidate candidate_of(const struct fetching *f, int at)
{
	int row;
	const PGresult *r = result_of(f, at, &row);
	uint32_t partition = (uint32_t)pg_get_int(r, row, PG_COL_PARTITION);

	return (struct ob_candidate){
		.lane = partition < OB_PARTITIONS_MAX ? f->lanes[partition] : 0,
		.priority = (int32_t)pg_get_int(r, row, PG_COL_PRIORITY),
		.seq = pg_get_int(r, row, PG_COL_SEQ),
		.size = (size_t)PQgetlength(r, row, PG_COL_PAYLOAD) +
			(size_t)PQgetlength(r, row, PG_COL_HEADERS) +
			(size_t)pg_get_int(r, row, PG_COL_LARGE),
		.at = at,
	};
}

static void share(struct fetching *f)
{
	memset(f->shares, 0, f->fetch->partition_count * sizeof(*f->shares));
	ob_candidates_share(f->fetch, f->list, f->count, f->shares);
}

static void leave(struct fetching *f, uint32_t lane, int64_t seq)
{
	if (seq < f->left[lane])
		f->left[lane] = seq;
}

/* Of a lane that is read as it is: may this row be returned? */
static bool is_due(struct fetching *f, const struct ob_candidate *found)
{
	uint32_t lane = found->lane;

	if (found->at >= PQntuples(f->found[RESULT_MOST]) || f->aheads[lane] == OB_MARK_NONE)
		return true;
	if (ob_fetch_excludes(f->fetch, found->seq))
		return false;
	if (pg_get_int(f->found[RESULT_MOST], found->at, PG_COL_DUE) == 1)
		return true;
	leave(f, lane, found->seq);
	ob_marks_close(&f->s->marks, f->fetch->partitions[lane],
		       ob_clock_boot_us(&ob_clock_system));
	return false;
}

static void begin_list(struct fetching *f)
{
	f->count = 0;
	memset(f->read, 0, f->fetch->partition_count * sizeof(*f->read));
	for (size_t i = 0; i < f->fetch->partition_count; i++)
		f->left[i] = INT64_MAX;
}

/* The rows that were found, in the order of sending. */
static int list_rows(struct fetching *f, struct ob_arena *arena, struct ob_err *err)
{
	int rows = PQntuples(f->found[RESULT_MOST]) + PQntuples(f->found[RESULT_REST]);

	f->list = ob_arena_alloc(arena, (size_t)rows * sizeof(*f->list));
	if (!f->list)
		return pg_oom("fetching", err);
	begin_list(f);
	for (int at = 0; at < rows; at++) {
		struct ob_candidate found = candidate_of(f, at);

		f->read[found.lane]++;
		if (is_due(f, &found))
			f->list[f->count++] = found;
	}
	ob_candidates_sort(f->list, f->count);
	share(f);
	return 0;
}

static bool is_full(const struct fetching *f, size_t lane)
{
	return f->read[lane] >= f->parts[lane];
}

/*
 * What to ask of each lane next time: those that gave all that was asked of them get what the
 * others leave. True when there is room left in this fetch that they may have more for: then they
 * are asked at once, at the `last` try for all of it.
 */
static bool learn(struct fetching *f, bool last)
{
	const struct ob_fetch *fetch = f->fetch;
	uint32_t taken = 0, full = 0, of_full = 0, missing, left;
	size_t bytes = 0;

	for (size_t i = 0; i < f->count; i++)
		bytes += f->list[i].size;
	/* Then bytes are the limit, and what a lane gave says nothing. */
	if (bytes * 2 >= fetch->max_bytes)
		return false;
	for (size_t i = 0; i < fetch->partition_count; i++) {
		taken += (uint32_t)f->shares[i].taken;
		full += is_full(f, i);
		of_full += is_full(f, i) ? (uint32_t)f->shares[i].taken : 0;
	}
	missing = fetch->limit - taken;
	left = missing + of_full;
	for (size_t i = 0; i < fetch->partition_count; i++) {
		uint32_t p = fetch->partitions[i];

		if (p < OB_PARTITIONS_MAX)
			f->s->parts[p] = is_full(f, i) ? (left - 1) / full + 1 : 0;
		if (is_full(f, i))
			f->parts[i] += last ? missing : 2 * (missing / full + 1);
	}
	return full > 0 && missing > 0;
}

/* ---- large messages -------------------------------------------------- */

static bool is_large(const struct fetching *f, const struct ob_candidate *candidate)
{
	int row;
	const PGresult *r = result_of(f, candidate->at, &row);

	return !PQgetisnull(r, row, PG_COL_LARGE);
}

/* Large messages that there is room for; with their real sizes the room is divided anew. */
static int load_large(struct fetching *f, struct ob_err *err)
{
	struct ob_pgarray seqs = { 0 };
	struct pg_params p = { 0 };
	size_t count = 0;
	int r = 0;

	ob_pgarray_begin(&seqs, OB_PG_INT8);
	for (size_t i = 0; i < f->fetch->partition_count; i++) {
		const struct ob_candidate *at = f->list + f->shares[i].first;

		for (size_t k = 0; k < f->shares[i].taken; k++, at++) {
			if (!is_large(f, at))
				continue;
			ob_pgarray_int(&seqs, at->seq);
			count++;
		}
	}
	pg_array(&p, &seqs);
	if (count > 0)
		r = pg_begin_batch(f->s, true, err);
	if (count > 0 && r == 0)
		r = pg_finish(f->s, pg_add(f->s, PG_fetch_large, &p, err), err);
	ob_pgarray_done(&seqs);
	if (count == 0 || r < 0)
		return r;
	f->large = f->s->results[0];
	f->s->results[0] = NULL;
	for (size_t i = 0; i < f->count; i++) {
		int row = is_large(f, &f->list[i]) ? pg_find_row(f->large, f->list[i].seq) : -1;

		if (row >= 0)
			f->list[i].size = (size_t)PQgetlength(f->large, row, 1) +
					  (size_t)PQgetlength(f->large, row, 2);
	}
	share(f);
	return 0;
}

/* ---- all of it ------------------------------------------------------- */

/* *ret_missing: it is large and was not asked for. */
static int copy_row(struct fetching *f, const struct ob_candidate *at, struct ob_batch *batch,
		    bool *ret_missing, struct ob_err *err)
{
	struct ob_message m;
	int row;
	const PGresult *result = result_of(f, at->at, &row);
	int r = pg_read_message(f->s, result, row, &m, err);

	*ret_missing = false;
	if (r == 0 && is_large(f, at)) {
		int large = pg_find_row(f->large, at->seq);

		*ret_missing = large < 0;
		if (large < 0)
			return 0;
		m.payload = pg_get_str(f->large, large, 1);
		m.headers = pg_get_str(f->large, large, 2);
	}
	return r < 0 ? r : pg_add_message(batch, &m, err);
}

/* The lane was read from its `ahead` on: where does the next fetch go on? */
static void go_ahead(struct fetching *f, uint32_t lane, size_t copied)
{
	int most = PQntuples(f->found[RESULT_MOST]);
	int64_t above = f->aheads[lane];

	if (above == OB_MARK_NONE)
		return;
	for (size_t k = 0; k < f->shares[lane].count; k++) {
		const struct ob_candidate *at = f->list + f->shares[lane].first + k;

		if (at->at < most && k >= copied)
			leave(f, lane, at->seq);
		if (at->at < most && at->seq >= above)
			above = at->seq + 1;
	}
	ob_marks_set_ahead(&f->s->marks, f->fetch->partitions[lane], f->fetch->generation,
			   f->left[lane] < above ? f->left[lane] : above);
}

/* One that is missing ends its lane: nothing overtakes it. */
static int copy_rows(struct fetching *f, struct ob_batch *batch, struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < f->fetch->partition_count && r == 0; i++) {
		const struct ob_candidate *at = f->list + f->shares[i].first;
		bool missing = false;
		size_t k = 0;

		for (; k < f->shares[i].taken && r == 0 && !missing; k += !missing)
			r = copy_row(f, at + k, batch, &missing, err);
		if (f->fetch->partitions[i] < OB_PARTITIONS_MAX)
			go_ahead(f, (uint32_t)i, k);
	}
	return r;
}

/* Were the marks good for what was read? */
static bool is_complete(struct fetching *f)
{
	struct ob_snapshot snapshot = { 0 };

	if (f->s->marks.writer_count > 0)
		pg_read_snapshot(pg_get_str(f->s->results[RESULT_SNAPSHOT], 0, 0), &snapshot);
	return ob_marks_complete(&f->s->marks, &snapshot);
}

/* Read once. *ret_again: it must be read again, with other marks or more of some lanes. */
static int read_lanes(struct fetching *f, struct ob_batch *batch, bool last, bool *ret_again,
		      struct ob_err *err)
{
	/* With the connection goes what it knew. */
	int r = pg_ready(f->s, err);
	if (r < 0)
		return r;
	ob_marks_begin(&f->s->marks, f->fetch, ob_clock_boot_us(&ob_clock_system), f->lows,
		       f->aheads);
	r = send_fetch(f, err);
	if (r < 0)
		return r;
	bool complete = is_complete(f);
	complete = is_rest_read(f) && complete;
	take_results(f);
	if (complete)
		r = list_rows(f, &batch->arena, err);
	*ret_again = !complete || (r == 0 && learn(f, last));
	return r;
}

static int fetch_work(struct fetching *f, struct ob_batch *batch, struct ob_err *err)
{
	struct ob_marks *marks = &f->s->marks;
	bool again = true;
	int r = 0;

	plan_parts(f);
	for (int tries = 0; again && r == 0; tries++)
		r = read_lanes(f, batch, tries > 0, &again, err);
	if (r == 0)
		r = load_large(f, err);
	if (r == 0)
		r = copy_rows(f, batch, err);
	if (r < 0)
		return r;
	ob_marks_end(marks, batch->count, ob_clock_boot_us(&ob_clock_system));
	if (ob_marks_look_due(marks, f->fetch, ob_clock_boot_us(&ob_clock_system)))
		r = pg_find_marks(f->s, f->fetch, f->lows, batch, err);
	return r;
}

int pg_fetch(struct ob_store *store, const struct ob_fetch *fetch, struct ob_batch *batch,
	     struct ob_err *err)
{
	size_t lanes = fetch->partition_count;
	struct fetching f = { .s = (struct pg_store *)store, .fetch = fetch };

	f.lows = ob_arena_alloc(&batch->arena, lanes * sizeof(*f.lows));
	f.aheads = ob_arena_alloc(&batch->arena, lanes * sizeof(*f.aheads));
	f.left = ob_arena_alloc(&batch->arena, lanes * sizeof(*f.left));
	f.read = ob_arena_alloc(&batch->arena, lanes * sizeof(*f.read));
	f.parts = ob_arena_alloc(&batch->arena, lanes * sizeof(*f.parts));
	f.shares = ob_arena_alloc(&batch->arena, lanes * sizeof(*f.shares));
	if (!f.lows || !f.aheads || !f.left || !f.read || !f.parts || !f.shares) {
		ob_batch_reset(batch);
		return pg_oom("fetching", err);
	}
	int r = fetch_work(&f, batch, err);
	drop_results(&f);
	pg_clear(f.s);
	if (r < 0)
		ob_batch_reset(batch);
	return r;
}
