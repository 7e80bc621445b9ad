/* SPDX-License-Identifier: MIT */
/* The rows of the memory store: their memory, indexes, states, and who holds whom. */
#include "store/memory_impl.h"

#include <assert.h>

static uint64_t fnv1a(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ p[i]) * UINT64_C(1099511628211);
	return hash;
}

static const uint64_t fnv_start = UINT64_C(14695981039346656037);

/* ---- memory ---------------------------------------------------------- */

struct mem_row *mem_row_new(const struct ob_message *message)
{
	struct mem_row *row = calloc(1, sizeof(*row));

	if (!row)
		return NULL;
	row->m = *message;

	struct ob_str *const texts[] = {
		&row->m.aggregate_type, &row->m.aggregate_id, &row->m.event_type,
		&row->m.payload,        &row->m.headers,      &row->m.correlation_id,
		&row->m.causation_id,   &row->m.key,          &row->m.target,
		&row->m.partition_key,  &row->m.snapshot,
	};
	const size_t count = sizeof(texts) / sizeof(texts[0]);
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += texts[i]->n + 1;
	row->text = malloc(size);
	if (!row->text) {
		free(row);
		return NULL;
	}
	char *at = row->text;
	for (size_t i = 0; i < count; i++) {
		if (!texts[i]->p)
			continue;
		memcpy(at, texts[i]->p, texts[i]->n);
		at[texts[i]->n] = '\0';
		texts[i]->p = at;
		at += texts[i]->n + 1;
	}
	return row;
}

void mem_row_free(struct mem_row *row)
{
	if (!row)
		return;
	free(row->text);
	free(row->error);
	free(row->locked_by);
	free(row);
}

/* ---- the unique indexes ---------------------------------------------- */

static uint64_t id_hash(const struct ob_uuid *id, struct ob_str target)
{
	return fnv1a(fnv1a(fnv_start, id->b, sizeof(id->b)), target.p, target.n);
}

static uint64_t sequence_hash(const struct ob_message *m)
{
	uint64_t hash = fnv1a(fnv_start, m->aggregate_type.p, m->aggregate_type.n);

	hash = fnv1a(hash, m->aggregate_id.p, m->aggregate_id.n);
	return fnv1a(hash, &m->sequence_number, sizeof(m->sequence_number));
}

static bool index_reserve(struct mem_index *index, size_t kind)
{
	if (index->count < index->size)
		return true;

	size_t size = index->size ? index->size * 2 : 64;
	struct mem_row **buckets = calloc(size, sizeof(struct mem_row *));
	if (!buckets)
		return false;
	for (size_t i = 0; i < index->size; i++) {
		for (struct mem_row *row = index->buckets[i], *next; row; row = next) {
			struct mem_row **to = &buckets[row->hash[kind] & (size - 1)];

			next = row->next[kind];
			row->next[kind] = *to;
			*to = row;
		}
	}
	free(index->buckets);
	index->buckets = buckets;
	index->size = size;
	return true;
}

bool mem_row_index(struct ob_memdb *db, struct mem_row *row)
{
	row->hash[MEM_BY_ID] = id_hash(&row->m.id, row->m.target);
	row->hash[MEM_BY_SEQUENCE] = sequence_hash(&row->m);
	for (size_t kind = 0; kind < MEM_INDEX_COUNT; kind++) {
		if (!index_reserve(&db->index[kind], kind))
			return false;
	}
	for (size_t kind = 0; kind < MEM_INDEX_COUNT; kind++) {
		struct mem_index *index = &db->index[kind];
		struct mem_row **to = &index->buckets[row->hash[kind] & (index->size - 1)];

		row->next[kind] = *to;
		*to = row;
		index->count++;
	}
	return true;
}

void mem_row_unindex(struct ob_memdb *db, struct mem_row *row)
{
	for (size_t kind = 0; kind < MEM_INDEX_COUNT; kind++) {
		struct mem_index *index = &db->index[kind];
		struct mem_row **at = &index->buckets[row->hash[kind] & (index->size - 1)];

		while (*at != row)
			at = &(*at)->next[kind];
		*at = row->next[kind];
		index->count--;
	}
}

static struct mem_row *bucket(const struct mem_index *index, uint64_t hash)
{
	return index->size ? index->buckets[hash & (index->size - 1)] : NULL;
}

struct mem_row *mem_row_by_id(const struct ob_memdb *db, const struct ob_uuid *id,
			      struct ob_str target)
{
	struct mem_row *row = bucket(&db->index[MEM_BY_ID], id_hash(id, target));

	while (row && !(ob_uuid_eq(&row->m.id, id) && ob_str_eq(row->m.target, target)))
		row = row->next[MEM_BY_ID];
	return row;
}

static bool same_sequence(const struct ob_message *a, const struct ob_message *b)
{
	return a->sequence_number == b->sequence_number && ob_str_eq(a->target, b->target) &&
	       ob_str_eq(a->aggregate_type, b->aggregate_type) &&
	       ob_str_eq(a->aggregate_id, b->aggregate_id);
}

struct mem_row *mem_row_by_sequence(const struct ob_memdb *db, const struct ob_message *message)
{
	/* As in SQL: where a part is absent, nothing is equal. */
	if (message->sequence_number == 0 || !message->aggregate_id.p)
		return NULL;

	struct mem_row *row = bucket(&db->index[MEM_BY_SEQUENCE], sequence_hash(message));
	while (row && !same_sequence(&row->m, message))
		row = row->next[MEM_BY_SEQUENCE];
	return row;
}

/* ---- states ---------------------------------------------------------- */

static bool live_state(enum ob_state state)
{
	return state != OB_STATE_PUBLISHED && state != OB_STATE_DEAD;
}

/* Both lists are by seq; a new row nearly always belongs at the end. */
static void enter_all(struct ob_memdb *db, struct mem_row *row)
{
	struct mem_row *at = TAILQ_LAST(&db->all, mem_rows);

	while (at && at->m.seq > row->m.seq)
		at = TAILQ_PREV(at, mem_rows, all_link);
	if (at)
		TAILQ_INSERT_AFTER(&db->all, at, row, all_link);
	else
		TAILQ_INSERT_HEAD(&db->all, row, all_link);
	db->all_count++;
}

static void enter_live(struct ob_memdb *db, struct mem_row *row)
{
	struct mem_row *at = TAILQ_LAST(&db->live, mem_rows);

	while (at && at->m.seq > row->m.seq)
		at = TAILQ_PREV(at, mem_rows, live_link);
	if (at)
		TAILQ_INSERT_AFTER(&db->live, at, row, live_link);
	else
		TAILQ_INSERT_HEAD(&db->live, row, live_link);
	db->live_count++;
	row->live = true;
}

static void quit_live(struct ob_memdb *db, struct mem_row *row)
{
	TAILQ_REMOVE(&db->live, row, live_link);
	db->live_count--;
	row->live = false;
}

static void tell(struct ob_memdb *db, const struct mem_cause *cause, struct ob_memdb_change change)
{
	if (!db->conf.history)
		return;
	change.cause = cause->cause;
	change.owner = cause->owner;
	change.epoch = cause->epoch;
	db->conf.history(db->conf.history_arg, &change);
}

void mem_row_commit(struct ob_memdb *db, struct mem_row *row)
{
	row->writer = NULL;
	row->m.partition = mem_partition(db, &row->m);
	enter_all(db, row);
	enter_live(db, row);
	tell(db, &(struct mem_cause){ .cause = OB_MEMDB_PUSHED },
	     (struct ob_memdb_change){ .row = &row->m,
				       .exists = true,
				       .before = row->m.state,
				       .after = row->m.state });
}

void mem_row_set(struct ob_memdb *db, struct mem_row *row, enum ob_state state,
		 const struct mem_cause *cause)
{
	enum ob_state before = row->m.state;

	row->m.state = state;
	if (row->live && !live_state(state))
		quit_live(db, row);
	else if (!row->live && live_state(state))
		enter_live(db, row);
	tell(db, cause,
	     (struct ob_memdb_change){ .row = &row->m,
				       .existed = true,
				       .exists = true,
				       .before = before,
				       .after = state });
}

void mem_row_delete(struct ob_memdb *db, struct mem_row *row, const struct mem_cause *cause)
{
	if (row->live)
		quit_live(db, row);
	TAILQ_REMOVE(&db->all, row, all_link);
	db->all_count--;
	mem_row_unindex(db, row);
	tell(db, cause,
	     (struct ob_memdb_change){ .row = &row->m,
				       .existed = true,
				       .before = row->m.state,
				       .after = row->m.state });
	mem_row_free(row);
}

void mem_row_unclaim(struct mem_row *row)
{
	free(row->locked_by);
	row->locked_by = NULL;
	row->m.locked_by = OB_STR_NULL;
	row->m.locked_until_us = 0;
	row->claimed = false;
}

bool mem_claim_valid(const struct mem_row *row, int64_t now_us)
{
	return row->claimed && row->m.locked_until_us > now_us;
}

/* ---- holding --------------------------------------------------------- */

bool mem_holds(const struct mem_row *row)
{
	return row->m.state == OB_STATE_FAILED || row->m.state == OB_STATE_DEAD_HOLD;
}

static bool same_key(const struct mem_row *a, const struct mem_row *b)
{
	return a->m.key.p && ob_str_eq(a->m.key, b->m.key);
}

static bool same_lane(const struct mem_row *a, const struct mem_row *b)
{
	return a->m.partition == b->m.partition && ob_str_eq(a->m.target, b->m.target);
}

void mem_park(struct ob_memdb *db, const struct mem_row *row, enum ob_ordering ordering)
{
	const struct mem_cause cause = { .cause = OB_MEMDB_PARKED };

	if (ordering == OB_ORDER_NONE)
		return;
	for (struct mem_row *at = TAILQ_FIRST(&db->live); at; at = TAILQ_NEXT(at, live_link)) {
		bool held =
			same_lane(at, row) && (ordering == OB_ORDER_PARTITION || same_key(at, row));

		if (held && at != row && at->m.state == OB_STATE_PENDING)
			mem_row_set(db, at, OB_STATE_PARKED, &cause);
	}
}

void mem_release(struct ob_memdb *db, const struct mem_row *row)
{
	const struct mem_cause cause = { .cause = OB_MEMDB_RELEASED };
	bool key_free = true, lane_free = true;

	for (struct mem_row *at = TAILQ_FIRST(&db->live); at; at = TAILQ_NEXT(at, live_link)) {
		if (at == row || !mem_holds(at) || !same_lane(at, row))
			continue;
		lane_free = false;
		if (same_key(at, row))
			key_free = false;
	}
	for (struct mem_row *at = TAILQ_FIRST(&db->live); at; at = TAILQ_NEXT(at, live_link)) {
		if (at->m.state == OB_STATE_PARKED && same_lane(at, row) &&
		    (lane_free || (key_free && same_key(at, row))))
			mem_row_set(db, at, OB_STATE_PENDING, &cause);
	}
}

uint32_t mem_partition(const struct ob_memdb *db, const struct ob_message *message)
{
	uint64_t hash = message->key.p ? fnv1a(fnv_start, message->key.p, message->key.n)
				       : fnv1a(fnv_start, message->id.b, sizeof(message->id.b));

	/* The low bits of FNV-1a depend on the low bits of its input alone. */
	return (uint32_t)((hash >> 32 ^ hash) % db->partition_count);
}

bool mem_copy_out(struct ob_batch *batch, const struct mem_row *row, bool whole)
{
	struct ob_message *to = ob_batch_add(batch);

	if (!to)
		return false;
	*to = row->m;
	if (!whole) {
		to->partition_key = to->snapshot = to->last_error = to->locked_by = OB_STR_NULL;
		to->available_at_us = to->published_at_us = to->locked_until_us = 0;
	}
	return ob_batch_own(batch, to);
}
