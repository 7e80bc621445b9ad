/* SPDX-License-Identifier: MIT */
/* The memory store: giving work out, by lease (fetch) and by row claim. */
#include "store/memory_impl.h"
#include "store/share.h"

struct candidates {
	struct ob_candidate *list;
	size_t count;
};

static bool candidates_reserve(struct candidates *found, struct ob_store *store)
{
	found->list = mem_scratch(store, mem_of(store)->db->live_count, sizeof(*found->list));
	return found->list;
}

static bool is_due(const struct mem_row *row, int64_t now)
{
	return (row->m.state == OB_STATE_PENDING || row->m.state == OB_STATE_FAILED) &&
	       row->m.available_at_us <= now;
}

static void candidates_add(struct candidates *found, struct mem_row *row, size_t lane)
{
	found->list[found->count++] = (struct ob_candidate){
		.lane = (uint32_t)lane,
		.priority = row->m.priority,
		.seq = row->m.seq,
		.size = row->m.payload.n + row->m.headers.n,
		.row = row,
	};
}

/* ---- who is held ----------------------------------------------------- */

struct held {
	struct ob_str *keys; /* sorted; borrowed from their rows */
	size_t key_count;
	bool partition[OB_PARTITIONS_MAX];
};

static int compare_keys(const void *left, const void *right)
{
	const struct ob_str *a = left, *b = right;
	int order = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);

	return order ? order : (a->n > b->n) - (a->n < b->n);
}

static bool held_collect(struct held *held, struct ob_store *store, struct ob_str target)
{
	const struct ob_memdb *db = mem_of(store)->db;

	held->keys = mem_scratch(store, db->live_count, sizeof(*held->keys));
	if (!held->keys)
		return false;
	for (struct mem_row *row = TAILQ_FIRST(&db->live); row; row = TAILQ_NEXT(row, live_link)) {
		if (!mem_holds(row) || !ob_str_eq(row->m.target, target))
			continue;
		held->partition[row->m.partition] = true;
		if (row->m.key.p)
			held->keys[held->key_count++] = row->m.key;
	}
	if (held->key_count > 0)
		qsort(held->keys, held->key_count, sizeof(*held->keys), compare_keys);
	return true;
}

static bool is_held(const struct held *held, const struct mem_row *row, enum ob_ordering ordering)
{
	const struct ob_str *key = &row->m.key;

	if (ordering == OB_ORDER_PARTITION)
		return held->partition[row->m.partition];
	if (ordering == OB_ORDER_NONE || !key->p || held->key_count == 0)
		return false;
	return bsearch(key, held->keys, held->key_count, sizeof(*held->keys), compare_keys);
}

/* ---- fetch ----------------------------------------------------------- */

enum { NO_SLOT = UINT16_MAX };

/* Where each partition stands in the caller's list; NO_SLOT: not in it. */
static void slots_of(const struct ob_fetch *fetch, uint16_t slots[OB_PARTITIONS_MAX])
{
	for (size_t p = 0; p < OB_PARTITIONS_MAX; p++)
		slots[p] = NO_SLOT;
	for (size_t i = fetch->partition_count; i-- > 0;) {
		if (fetch->partitions[i] < OB_PARTITIONS_MAX && i < NO_SLOT)
			slots[fetch->partitions[i]] = (uint16_t)i;
	}
}

/* Where each partition begins. */
struct places {
	int64_t *lows, *aheads;
};

static bool is_usual(const struct mem_row *row)
{
	return row->m.state == OB_STATE_PENDING && row->m.priority == 0;
}

/* A row below the mark is not seen, as if an index had been entered behind it. */
static bool is_below(const struct mem_row *row, const struct places *places, size_t lane)
{
	return row->m.state == OB_STATE_PENDING &&
	       (row->m.seq < places->lows[lane] ||
		(is_usual(row) && row->m.seq < places->aheads[lane]));
}

/* Where reading goes on ahead nothing is held, and nobody asks: as the PostgreSQL store does it. */
static bool waits(const struct mem_row *row, const struct places *places, size_t lane,
		  const struct held *held, enum ob_ordering ordering)
{
	if (row->m.state != OB_STATE_PENDING ||
	    (is_usual(row) && places->aheads[lane] > OB_MARK_NONE))
		return false;
	return is_held(held, row, ordering);
}

static int collect(struct ob_store *store, const struct ob_fetch *fetch,
		   const struct places *places, struct candidates *found, struct ob_err *err)
{
	const struct ob_memdb *db = mem_of(store)->db;
	struct held held = { 0 };
	uint16_t slots[OB_PARTITIONS_MAX];
	struct ob_str target = ob_str(fetch->target);
	int64_t now = mem_now(db);

	if (!candidates_reserve(found, store) || !held_collect(&held, store, target))
		return mem_oom(err);
	slots_of(fetch, slots);
	for (struct mem_row *row = TAILQ_FIRST(&db->live); row; row = TAILQ_NEXT(row, live_link)) {
		if (slots[row->m.partition] == NO_SLOT || !is_due(row, now) ||
		    !ob_str_eq(row->m.target, target) || mem_claim_valid(row, now) ||
		    ob_fetch_excludes(fetch, row->m.seq))
			continue;
		size_t lane = slots[row->m.partition];
		if (!is_below(row, places, lane) &&
		    !waits(row, places, lane, &held, fetch->ordering))
			candidates_add(found, row, lane);
	}
	ob_candidates_sort(found->list, found->count);
	return 0;
}

/* ---- marks ----------------------------------------------------------- */

static void take_snapshot(const struct ob_memdb *db, struct ob_snapshot *ret)
{
	memcpy(ret->open, db->writers, db->writer_count * sizeof(db->writers[0]));
	ret->count = db->writer_count;
	ret->more = false;
	ret->next = UINT64_MAX;
}

/* The lowest unfinished row of a partition from its mark on. */
static int64_t lowest_of(const struct ob_memdb *db, const struct ob_fetch *fetch, size_t lane,
			 int64_t low)
{
	for (const struct mem_row *row = TAILQ_FIRST(&db->live); row;
	     row = TAILQ_NEXT(row, live_link)) {
		bool below = row->m.state == OB_STATE_PENDING && row->m.seq < low;

		if (row->m.partition == fetch->partitions[lane] && !below &&
		    row->m.state != OB_STATE_PUBLISHED && row->m.state != OB_STATE_DEAD &&
		    ob_str_eq(row->m.target, ob_str(fetch->target)))
			return row->m.seq;
	}
	return INT64_MAX;
}

static bool was_returned(const struct ob_batch *batch, int64_t seq)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		if (batch->messages[i].seq == seq)
			return true;
	}
	return false;
}

/* Pending rows of priority 0 of a lane: the lowest that was never returned, or what is above all.
 */
static int64_t left_of(const struct ob_memdb *db, const struct ob_fetch *fetch, size_t lane,
		       int64_t from, const struct ob_batch *batch)
{
	int64_t above = from;

	for (const struct mem_row *row = TAILQ_FIRST(&db->live); row;
	     row = TAILQ_NEXT(row, live_link)) {
		if (row->m.partition != fetch->partitions[lane] || !is_usual(row) ||
		    row->m.seq < from || !ob_str_eq(row->m.target, ob_str(fetch->target)))
			continue;
		if (!ob_fetch_excludes(fetch, row->m.seq) && !was_returned(batch, row->m.seq))
			return row->m.seq;
		above = row->m.seq + 1;
	}
	return above;
}

/* Nothing of the partition waits for anything but its turn. */
static bool is_clear(const struct ob_memdb *db, const struct ob_fetch *fetch, size_t lane)
{
	for (const struct mem_row *row = TAILQ_FIRST(&db->live); row;
	     row = TAILQ_NEXT(row, live_link)) {
		if (row->m.partition == fetch->partitions[lane] &&
		    (row->m.state == OB_STATE_FAILED || row->m.state == OB_STATE_PARKED ||
		     row->m.state == OB_STATE_DEAD_HOLD) &&
		    ob_str_eq(row->m.target, ob_str(fetch->target)))
			return false;
	}
	return true;
}

/* Read on from here the next time. */
static void go_ahead(struct mem_store *mem, const struct ob_fetch *fetch,
		     const struct places *places, const struct ob_batch *batch)
{
	for (size_t i = 0; i < fetch->partition_count; i++) {
		if (fetch->partitions[i] < OB_PARTITIONS_MAX && places->aheads[i] > OB_MARK_NONE)
			ob_marks_set_ahead(&mem->marks, fetch->partitions[i], fetch->generation,
					   left_of(mem->db, fetch, i, places->aheads[i], batch));
	}
}

static void look(struct mem_store *mem, const struct ob_fetch *fetch, const int64_t *lows,
		 const struct ob_batch *batch)
{
	const struct ob_memdb *db = mem->db;
	int64_t now = ob_clock_boot_us(mem->base.clock);
	struct ob_snapshot snapshot;

	take_snapshot(db, &snapshot);
	if (!ob_marks_look_due(&mem->marks, fetch, now) ||
	    !ob_marks_looked(&mem->marks, snapshot.open, snapshot.count, db->last_seq, now))
		return;
	for (size_t i = 0; i < fetch->partition_count; i++) {
		uint32_t partition = fetch->partitions[i];

		if (partition >= OB_PARTITIONS_MAX)
			continue;
		ob_marks_set(&mem->marks, partition, fetch->epochs[i],
			     lowest_of(db, fetch, i, lows[i]));
		if (is_clear(db, fetch, i))
			ob_marks_set_ahead(&mem->marks, partition, fetch->generation,
					   left_of(db, fetch, i, lows[i], batch));
	}
}

/* Where each partition begins, so that nothing is missed. */
static void find_places(struct mem_store *mem, const struct ob_fetch *fetch,
			const struct places *places)
{
	struct ob_snapshot snapshot;

	take_snapshot(mem->db, &snapshot);
	do
		ob_marks_begin(&mem->marks, fetch, ob_clock_boot_us(mem->base.clock), places->lows,
			       places->aheads);
	while (!ob_marks_complete(&mem->marks, &snapshot));
}

int mem_fetch(struct ob_store *store, const struct ob_fetch *fetch, struct ob_batch *batch,
	      struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct candidates found = { 0 };

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	const struct places places = {
		mem_scratch(store, fetch->partition_count, sizeof(int64_t)),
		mem_scratch(store, fetch->partition_count, sizeof(int64_t)),
	};
	if (!places.lows || !places.aheads)
		return mem_oom(err);
	find_places(mem_of(store), fetch, &places);
	r = collect(store, fetch, &places, &found, err);
#if MEM_STALE_FENCE
	for (size_t i = 0; r >= 0 && i < db->lease_count && i < 64; i++)
		mem_of(store)->stale[i] = db->leases[i];
#endif
	if (r < 0)
		return r;
	struct ob_share *parts = mem_scratch(store, fetch->partition_count, sizeof(*parts));
	if (!parts)
		return mem_oom(err);
	ob_candidates_share(fetch, found.list, found.count, parts);
	for (size_t i = 0; i < fetch->partition_count; i++) {
		for (size_t k = 0; k < parts[i].taken; k++) {
			if (mem_copy_out(batch, found.list[parts[i].first + k].row, false))
				continue;
			ob_batch_reset(batch);
			return mem_oom(err);
		}
	}
	go_ahead(mem_of(store), fetch, &places, batch);
	look(mem_of(store), fetch, places.lows, batch);
	ob_marks_end(&mem_of(store)->marks, batch->count, ob_clock_boot_us(store->clock));
	return 0;
}

/* ---- claim ----------------------------------------------------------- */

static bool claimable(const struct mem_row *row, const struct ob_claim *claim, int64_t now)
{
	return is_due(row, now) && ob_str_eq(row->m.target, ob_str(claim->target)) &&
	       (!mem_claim_valid(row, now) || ob_uuid_eq(&row->token, &claim->token));
}

static void give(struct ob_memdb *db, struct mem_row *row, const struct ob_claim *claim,
		 char *worker)
{
	const struct mem_cause cause = { .cause = OB_MEMDB_CLAIMED, .owner = &claim->token };

	mem_row_unclaim(row);
	row->locked_by = worker;
	row->m.locked_by = ob_str(worker);
	row->m.locked_until_us = mem_after(mem_now(db), claim->ttl_ms);
	row->token = claim->token;
	row->claimed = true;
	mem_row_set(db, row, row->m.state, &cause);
}

/* Everything that can fail: copies for the caller, and the names of the worker. */
static bool prepare(const struct candidates *found, const struct ob_claim *claim,
		    struct ob_batch *batch, char **names)
{
	const struct ob_fetch all = {
		.partition_count = 1,
		.limit = claim->limit,
		.max_bytes = claim->max_bytes,
	};
	struct ob_share part = { 0 };

	ob_candidates_share(&all, found->list, found->count, &part);
	for (size_t i = 0; i < part.taken; i++) {
		names[i] = strdup(claim->worker);
		if (!names[i] || !mem_copy_out(batch, found->list[i].row, false))
			return false;
	}
	return true;
}

int mem_claim(struct ob_store *store, const struct ob_claim *claim, struct ob_batch *batch,
	      struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct candidates found = { 0 };

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	char **names = mem_scratch(store, db->live_count, sizeof(*names));
	if (!names || !candidates_reserve(&found, store))
		return mem_oom(err);
	for (struct mem_row *row = TAILQ_FIRST(&db->live); row; row = TAILQ_NEXT(row, live_link)) {
		if (claimable(row, claim, mem_now(db)))
			candidates_add(&found, row, 0);
	}
	ob_candidates_sort(found.list, found.count);
	if (!prepare(&found, claim, batch, names)) {
		for (size_t i = 0; names[i]; i++)
			free(names[i]);
		ob_batch_reset(batch);
		return mem_oom(err);
	}
	for (size_t i = 0; i < batch->count; i++)
		give(db, found.list[i].row, claim, names[i]);
	if (batch->count > 0)
		mem_committed(mem_of(store));
	return 0;
}
