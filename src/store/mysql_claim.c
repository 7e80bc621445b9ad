/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store: row claims. Candidates are read without locks; then those that
 * nobody else is just taking are locked, looked at again, and marked.
 */
#include "store/mysql.h"

enum { ROUNDS = 12 };

/* One claim while it runs. */
struct claiming {
	const struct ob_claim *claim;
	struct ob_batch *batch;
	struct ob_arena arena;
};

static int by_order(const void *a, const void *b)
{
	const struct my_candidate *x = a, *y = b;

	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* The first rows of the target, of all partitions together. */
static int find(struct my_store *s, struct claiming *c, int64_t partitions, uint32_t limit,
		struct my_rows *out, struct ob_err *err)
{
	uint32_t lanes[OB_PARTITIONS_MAX];
	bool held;
	int r = 0;

	*out = (struct my_rows){ .arena = &c->arena, .size = sizeof(struct my_candidate) };
	for (uint32_t i = 0; i < partitions && i < OB_PARTITIONS_MAX; i++)
		lanes[i] = i;
	for (uint32_t i = 0; i < partitions && r == 0; i += MY_LANES_MAX) {
		size_t left = (size_t)partitions - i;
		const struct my_searching search = {
			.search = MY_SEARCH_CLAIM,
			.target = c->claim->target,
			.partitions = lanes + i,
			.lanes = left < MY_LANES_MAX ? left : MY_LANES_MAX,
			.first_lane = i,
			.limit = limit,
			.token = &c->claim->token,
		};

		r = my_search(s, &search, out, &held, err);
	}
	if (r == 0 && out->count)
		qsort(out->data, out->count, out->size, by_order);
	/* Behind the first `limit` a lane may lack rows. */
	if (out->count > limit)
		out->count = limit;
	return r;
}

static int mark(struct my_store *s, struct claiming *c, struct ob_err *err)
{
	int64_t seqs[MY_LIST_MAX];
	struct my_query *q;
	int r = 0;

	for (uint32_t done = 0; done < c->batch->count && r >= 0; done += MY_LIST_MAX) {
		size_t count = c->batch->count - done;

		if (count > MY_LIST_MAX)
			count = MY_LIST_MAX;
		for (size_t i = 0; i < count; i++)
			seqs[i] = c->batch->messages[done + i].seq;
		r = my_prepare(s, MY_claim, count, &q, err);
		if (r < 0)
			break;
		my_bind_list(q, "seqs", seqs, count);
		my_bind_uuid(q, "token", &c->claim->token);
		my_bind_text(q, "worker", c->claim->worker);
		my_bind_int(q, "ttl", my_us(c->claim->ttl_ms));
		r = my_run(s, q, err);
	}
	return r < 0 ? r : 0;
}

/*
 * When others are just taking all that was found, look further: each round finds
 * twice as many and leaves out those that were tried.
 */
static int claim_work(struct my_store *s, void *arg, struct ob_err *err)
{
	struct claiming *c = arg;
	struct my_loading l = {
		.s = s,
		.batch = c->batch,
		.limit = c->claim->limit,
		.max_bytes = c->claim->max_bytes,
		.token = &c->claim->token,
	};
	uint32_t limit = c->claim->limit;
	size_t tried = 0;
	int64_t partitions;
	struct my_rows found;
	int r = my_meta(s, MY_meta_get, "partition_count", &partitions, err);

	ob_arena_reset(&c->arena, SIZE_MAX);
	ob_batch_reset(c->batch);
	for (int round = 0; r == 0 && round < ROUNDS && c->batch->count == 0; round++) {
		r = find(s, c, partitions, limit, &found, err);
		if (r < 0 || found.count <= tried)
			break;
		l.list = (struct my_candidate *)(void *)found.data;
		l.count = found.count;
		r = my_load(&l, err);
		tried = found.count;
		limit = limit > UINT32_MAX / 4 ? limit : limit * 2;
	}
	return r < 0 ? r : mark(s, c, err);
}

int my_claim(struct ob_store *store, const struct ob_claim *claim, struct ob_batch *batch,
	     struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct claiming c = { .claim = claim,
			      .batch = batch,
			      .arena = OB_ARENA_INIT(SIZE_MAX / 2) };
	int r = my_transact(s, claim_work, &c, err);

	ob_arena_done(&c.arena);
	if (r < 0)
		ob_batch_reset(batch);
	return r < 0 ? r : 0;
}
