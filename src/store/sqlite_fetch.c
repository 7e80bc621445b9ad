/* SPDX-License-Identifier: MIT */
/*
 * Reading rows of the SQLite store: fetch, claim and list. First the numbers of
 * the rows, from an index alone; then each row that is wanted, by its number.
 */
#include "store/share.h"
#include "store/sqlite.h"

/* The result columns of load; load_all has more. */
enum {
	COL_SEQ,
	COL_ID,
	COL_AGGREGATE_TYPE,
	COL_AGGREGATE_ID,
	COL_EVENT_TYPE,
	COL_PAYLOAD,
	COL_HEADERS,
	COL_CORRELATION_ID,
	COL_CAUSATION_ID,
	COL_KEY,
	COL_TARGET,
	COL_SEQUENCE_NUMBER,
	COL_OCCURRED_AT,
	COL_CREATED_AT,
	COL_REVISION,
	COL_PRIORITY,
	COL_ATTEMPTS,
	COL_STATUS,
	COL_LOCKED_UNTIL,
	COL_PARTITION,
	COL_PARTITION_KEY,
	COL_SNAPSHOT,
	COL_LAST_ERROR,
	COL_LOCKED_BY,
	COL_AVAILABLE_AT,
	COL_PUBLISHED_AT,
};

/* ---- one row --------------------------------------------------------- */

/* Everything in *m points into the statement. */
static int read_message(struct lite_store *s, sqlite3_stmt *stmt, struct ob_message *m,
			struct ob_err *err)
{
	*m = (struct ob_message){
		.seq = sqlite3_column_int64(stmt, COL_SEQ),
		.aggregate_type = lite_str(stmt, COL_AGGREGATE_TYPE),
		.aggregate_id = lite_str(stmt, COL_AGGREGATE_ID),
		.event_type = lite_str(stmt, COL_EVENT_TYPE),
		.payload = lite_str(stmt, COL_PAYLOAD),
		.headers = lite_str(stmt, COL_HEADERS),
		.correlation_id = lite_str(stmt, COL_CORRELATION_ID),
		.causation_id = lite_str(stmt, COL_CAUSATION_ID),
		.key = lite_str(stmt, COL_KEY),
		.target = lite_str(stmt, COL_TARGET),
		.sequence_number = sqlite3_column_int64(stmt, COL_SEQUENCE_NUMBER),
		.occurred_at_us = sqlite3_column_int64(stmt, COL_OCCURRED_AT),
		.created_at_us = sqlite3_column_int64(stmt, COL_CREATED_AT),
		.revision = sqlite3_column_int(stmt, COL_REVISION),
		.priority = sqlite3_column_int(stmt, COL_PRIORITY),
		.attempts = (uint32_t)sqlite3_column_int64(stmt, COL_ATTEMPTS),
		.state = (enum ob_state)sqlite3_column_int(stmt, COL_STATUS),
	};
	if (!ob_uuid_scan(lite_str(stmt, COL_ID), &m->id))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
				  "%s: the id of the row with %s %lld is no UUID; correct or "
				  "delete the row",
				  lite_path(s->base.url), s->base.layout->column[OB_COL_seq],
				  (long long)m->seq);
	/* A text that could not be fetched looks empty, and must not be sent so. */
	if (sqlite3_errcode(s->db) == SQLITE_NOMEM)
		return lite_oom("reading a row", err);
	return 0;
}

static void read_rest(sqlite3_stmt *stmt, struct ob_message *m)
{
	m->partition = (uint32_t)sqlite3_column_int64(stmt, COL_PARTITION);
	m->partition_key = lite_str(stmt, COL_PARTITION_KEY);
	m->snapshot = lite_str(stmt, COL_SNAPSHOT);
	m->last_error = lite_str(stmt, COL_LAST_ERROR);
	m->locked_by = lite_str(stmt, COL_LOCKED_BY);
	m->available_at_us = sqlite3_column_int64(stmt, COL_AVAILABLE_AT);
	m->published_at_us = sqlite3_column_int64(stmt, COL_PUBLISHED_AT);
	m->locked_until_us = sqlite3_column_int64(stmt, COL_LOCKED_UNTIL);
}

/* The one copy of a row: from SQLite's pages into the batch. */
static int add_message(struct ob_batch *batch, const struct ob_message *from, struct ob_err *err)
{
	struct ob_message *to = ob_batch_add(batch);

	if (!to)
		return lite_oom("reading rows", err);
	*to = *from;
	return ob_batch_own(batch, to) ? 0 : lite_oom("reading rows", err);
}

/* ---- candidates of one partition ------------------------------------- */

struct candidate {
	int64_t seq, priority;
};

enum { LANE_CHUNK = 32 };

/* A partition and how far it has been read. */
struct lane {
	uint32_t partition;
	bool end;            /* nothing more, or nothing more that fits */
	struct candidate at; /* behind this one */
	struct candidate list[LANE_CHUNK];
	uint32_t next, count;
};

/* One fetch or claim while it runs. */
struct fetching {
	struct lite_store *s;
	struct ob_batch *batch;
	const char *target;
	int64_t now;
	uint32_t limit;
	size_t max_bytes;
	const struct ob_fetch *fetch; /* NULL: a claim */
	const struct ob_claim *claim;
	struct lane *lanes;
	size_t lane_count;
};

static void lane_init(struct lane *lane, uint32_t partition)
{
	lane->partition = partition;
	lane->at = (struct candidate){ .seq = INT64_MIN, .priority = INT64_MAX };
}

/* Begin to step over the lane's candidates, behind those that were seen. */
static int begin_lane(struct fetching *f, const struct lane *lane, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = lite_prepare(f->s, LITE_candidates, &stmt, err);

	if (r < 0)
		return r;
	lite_bind_text(stmt, ":target", f->target);
	lite_bind_int(stmt, ":partition", lane->partition);
	lite_bind_int(stmt, ":priority", lane->at.priority);
	lite_bind_int(stmt, ":seq", lane->at.seq);
	lite_bind_int(stmt, ":now", f->now);
	lite_bind_int(stmt, ":ordering", f->fetch ? f->fetch->ordering : OB_ORDER_NONE);
	if (f->claim)
		lite_bind_uuid(stmt, ":token", &f->claim->token);
	return 0;
}

static int step_lane(struct fetching *f, struct lane *lane, struct ob_err *err)
{
	int r = lite_step(f->s, LITE_candidates, err);

	if (r > 0) {
		sqlite3_stmt *stmt = f->s->stmt[LITE_candidates];
		lane->at.seq = sqlite3_column_int64(stmt, 0);
		lane->at.priority = sqlite3_column_int64(stmt, 1);
	}
	return r;
}

/* Load a row into the batch, if it fits and nobody claimed it. */
enum loaded { LOADED_NONE, LOADED_ONE, LOADED_TOO_LARGE };

static int load(struct fetching *f, uint32_t partition, int64_t seq, struct ob_err *err)
{
	struct ob_message m;
	sqlite3_stmt *stmt;
	int r = lite_prepare(f->s, LITE_load, &stmt, err);

	if (r < 0)
		return r;
	lite_bind_int(stmt, ":seq", seq);
	r = lite_step(f->s, LITE_load, err);
	if (r <= 0)
		return r;
	bool claimed = f->fetch && sqlite3_column_int64(stmt, COL_LOCKED_UNTIL) > f->now;
	size_t size = (size_t)sqlite3_column_bytes(stmt, COL_PAYLOAD) +
		      (size_t)sqlite3_column_bytes(stmt, COL_HEADERS);
	size_t left = f->batch->bytes < f->max_bytes ? f->max_bytes - f->batch->bytes : 0;
	if (claimed) {
		r = LOADED_NONE;
	} else if (f->batch->count > 0 && size > left) {
		r = LOADED_TOO_LARGE;
	} else {
		r = read_message(f->s, stmt, &m, err);
		m.partition = partition;
		if (r == 0)
			r = add_message(f->batch, &m, err);
		if (r == 0)
			r = LOADED_ONE;
	}
	lite_reset(f->s, LITE_load);
	return r;
}

/* ---- fetch ----------------------------------------------------------- */

/* Take up to `want` messages of a lane. */
static int serve(struct fetching *f, struct lane *lane, uint32_t want, struct ob_err *err)
{
	uint32_t taken = 0;
	int r = begin_lane(f, lane, err);

	if (r < 0)
		return r;
	while (taken < want && (r = step_lane(f, lane, err)) > 0) {
		if (ob_fetch_excludes(f->fetch, lane->at.seq))
			continue;
		r = load(f, lane->partition, lane->at.seq, err);
		if (r < 0 || r == LOADED_TOO_LARGE)
			break;
		taken += r == LOADED_ONE;
	}
	lite_reset(f->s, LITE_candidates);
	/* What does not fit ends the lane: nothing behind it may overtake it. */
	if (taken < want)
		lane->end = true;
	return r < 0 ? r : 0;
}

static int by_lane(const void *a, const void *b, void *arg)
{
	const struct ob_message *x = a, *y = b;
	const uint16_t *rank = arg;

	if (x->partition != y->partition)
		return rank[x->partition] < rank[y->partition] ? -1 : 1;
	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* Put what the second round brought behind its partition's first part. */
static void sort_batch(struct fetching *f)
{
	uint16_t rank[OB_PARTITIONS_MAX] = { 0 };

	for (size_t i = 0; i < f->lane_count; i++)
		rank[f->lanes[i].partition] = (uint16_t)i;
	qsort_r(f->batch->messages, f->batch->count, sizeof(*f->batch->messages), by_lane, rank);
}

/* First everyone's share, then what is left, in the caller's order. */
static int serve_all(struct fetching *f, struct ob_err *err)
{
	uint32_t share = f->limit / (uint32_t)f->fetch->partition_count;
	int r = 0;

	for (size_t i = 0; i < f->lane_count && f->batch->count < f->limit && r == 0; i++)
		r = serve(f, &f->lanes[i], share ? share : 1, err);
	uint32_t first = f->batch->count;
	for (size_t i = 0; i < f->lane_count && f->batch->count < f->limit && r == 0; i++) {
		if (!f->lanes[i].end)
			r = serve(f, &f->lanes[i], f->limit - f->batch->count, err);
	}
	if (r == 0 && f->batch->count > first)
		sort_batch(f);
	return r;
}

/* What is out of range holds nothing, and what is named twice is served once. */
static void make_lanes(struct fetching *f)
{
	bool seen[OB_PARTITIONS_MAX] = { false };

	for (size_t i = 0; i < f->fetch->partition_count; i++) {
		uint32_t partition = f->fetch->partitions[i];

		if (partition >= OB_PARTITIONS_MAX || seen[partition])
			continue;
		seen[partition] = true;
		lane_init(&f->lanes[f->lane_count++], partition);
	}
}

int lite_fetch(struct ob_store *store, const struct ob_fetch *fetch, struct ob_batch *batch,
	       struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct fetching f = {
		.s = s,
		.batch = batch,
		.target = fetch->target,
		.now = lite_now(s),
		.limit = fetch->limit,
		.max_bytes = fetch->max_bytes,
		.fetch = fetch,
	};
	int r = lite_begin_read(s, err);

	if (r < 0)
		return r;
	f.lanes = ob_arena_alloc(&batch->arena, fetch->partition_count * sizeof(*f.lanes));
	if (!f.lanes)
		r = lite_oom("fetching", err);
	if (r == 0) {
		make_lanes(&f);
		r = serve_all(&f, err);
	}
	r = lite_end_read(s, r, err);
	if (r < 0)
		ob_batch_reset(batch);
	return r;
}

/* ---- claim ----------------------------------------------------------- */

static int refill(struct fetching *f, struct lane *lane, struct ob_err *err)
{
	int r = begin_lane(f, lane, err);

	if (r < 0)
		return r;
	lane->next = lane->count = 0;
	while (lane->count < LANE_CHUNK && (r = step_lane(f, lane, err)) > 0)
		lane->list[lane->count++] = lane->at;
	lite_reset(f->s, LITE_candidates);
	lane->end = r == 0;
	return r < 0 ? r : 0;
}

static bool goes_before(const struct candidate *a, const struct candidate *b)
{
	return a->priority > b->priority || (a->priority == b->priority && a->seq < b->seq);
}

/* The lane whose next candidate goes first of all; NULL: there is none. */
static int best_lane(struct fetching *f, struct lane **ret_best, struct ob_err *err)
{
	struct lane *best = NULL;

	for (size_t i = 0; i < f->lane_count; i++) {
		struct lane *lane = &f->lanes[i];

		if (lane->next == lane->count && !lane->end) {
			int r = refill(f, lane, err);
			if (r < 0)
				return r;
		}
		if (lane->next < lane->count &&
		    (!best || goes_before(&lane->list[lane->next], &best->list[best->next])))
			best = lane;
	}
	*ret_best = best;
	return 0;
}

static int mark_claimed(struct fetching *f, int64_t seq, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = lite_prepare(f->s, LITE_claim, &stmt, err);

	if (r < 0)
		return r;
	lite_bind_uuid(stmt, ":token", &f->claim->token);
	lite_bind_text(stmt, ":worker", f->claim->worker);
	lite_bind_int(stmt, ":now", f->now);
	lite_bind_int(stmt, ":ttl", lite_us(f->claim->ttl_ms));
	lite_bind_int(stmt, ":seq", seq);
	return lite_run(f->s, LITE_claim, err);
}

static int claim_rows(struct fetching *f, struct ob_err *err)
{
	while (f->batch->count < f->limit) {
		struct lane *lane = NULL;
		int r = best_lane(f, &lane, err);

		if (r < 0 || !lane)
			return r;
		int64_t seq = lane->list[lane->next++].seq;
		r = load(f, lane->partition, seq, err);
		if (r < 0 || r == LOADED_TOO_LARGE)
			return r < 0 ? r : 0;
		r = mark_claimed(f, seq, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Every partition is a lane: their rows stand in order in the ready index. */
static int claim_from_all(struct fetching *f, struct ob_err *err)
{
	int64_t count;
	int r = lite_meta(f->s, "partition_count", &count, err);

	if (r < 0)
		return r;
	f->lanes = ob_arena_alloc(&f->batch->arena, (size_t)count * sizeof(*f->lanes));
	if (!f->lanes)
		return lite_oom("claiming", err);
	for (; f->lane_count < (size_t)count; f->lane_count++)
		lane_init(&f->lanes[f->lane_count], (uint32_t)f->lane_count);
	return claim_rows(f, err);
}

int lite_claim(struct ob_store *store, const struct ob_claim *claim, struct ob_batch *batch,
	       struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct fetching f = {
		.s = s,
		.batch = batch,
		.target = claim->target,
		.now = lite_now(s),
		.limit = claim->limit,
		.max_bytes = claim->max_bytes,
		.claim = claim,
	};
	int r = lite_begin(s, err);

	if (r < 0)
		return r;
	r = lite_end(s, claim_from_all(&f, err), err);
	if (r < 0)
		ob_batch_reset(batch);
	return r;
}

/* ---- list ------------------------------------------------------------ */

static int load_all(struct lite_store *s, int64_t seq, struct ob_batch *batch, struct ob_err *err)
{
	struct ob_message m;
	sqlite3_stmt *stmt;
	int r = lite_prepare(s, LITE_load_all, &stmt, err);

	if (r < 0)
		return r;
	lite_bind_int(stmt, ":seq", seq);
	r = lite_step(s, LITE_load_all, err);
	if (r <= 0)
		return r;
	r = read_message(s, stmt, &m, err);
	if (r == 0) {
		read_rest(stmt, &m);
		r = add_message(batch, &m, err);
	}
	lite_reset(s, LITE_load_all);
	return r;
}

int lite_list(struct ob_store *store, const struct ob_filter *filter, struct ob_batch *batch,
	      int64_t *ret_now_us, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int64_t now = lite_now(s);
	struct lite_pick pick;
	int r = lite_begin_read(s, err);

	if (r < 0)
		return r;
	r = lite_pick(s, filter, now, err);
	while (r == 0 && (r = lite_pick_next(s, now, &pick, err)) > 0)
		r = load_all(s, pick.seq, batch, err);
	lite_pick_done(s);
	r = lite_end_read(s, r, err);
	if (r < 0) {
		ob_batch_reset(batch);
		return r;
	}
	*ret_now_us = now;
	return 0;
}
