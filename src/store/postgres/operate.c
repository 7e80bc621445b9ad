/* SPDX-License-Identifier: MIT */
/*
 * Operator verbs, in one transaction. What matches is found first; then the next journal row of
 * every partition that changes is written, which serialises the verb with settles and takeovers;
 * then the rows are read again and changed. So workers wait for the changes only, not for the
 * search.
 */
#include "store/postgres/change.h"
#include "store/postgres/filter.h"
#include "store/postgres/ops.h"
#include "store/postgres/readers.h"

#include "sql_postgres.h"

enum {
	CHUNK = 1000,
	TRIES = 100,
	SEQS_MAX = 1 << 30, /* bytes */
	PARTITION_NOS = OB_LANES * OB_PARTITIONS_MAX,
};

/* Columns of verb_rows. */
enum { V_SEQ, V_PARTITION, V_STATE, V_ATTEMPTS, V_QUEUE, V_COVERED };

/* One operate while it runs. */
struct operating {
	struct pg_store *s;
	const struct ob_operate *operate;
	struct ob_buf seqs; /* int64_t: what is to be changed */
	bool touched[PARTITION_NOS];
	struct pg_fence fences[PARTITION_NOS]; /* by partition, ascending */
	size_t fence_count;
	struct ob_change changes[CHUNK];
	struct ob_promote promotes[CHUNK];
	size_t change_count, promote_count;
	struct ob_arena arena; /* their queues */
	uint64_t changed, refused;
};

static size_t seq_count(const struct operating *o)
{
	return o->seqs.len / sizeof(int64_t);
}

static struct ob_verb_row verb_row(const PGresult *found, int row)
{
	return (struct ob_verb_row){
		.covered = pg_get_int(found, row, V_COVERED) != 0,
		.excepted = !PQgetisnull(found, row, V_STATE),
		.state = (enum ob_state)pg_get_int(found, row, V_STATE),
		.partition = (uint32_t)pg_get_int(found, row, V_PARTITION) % PARTITION_NOS,
		.attempts = (uint32_t)pg_get_int(found, row, V_ATTEMPTS),
		.seq = pg_get_int(found, row, V_SEQ),
		.queue = pg_get_str(found, row, V_QUEUE),
	};
}

/* ---- finding --------------------------------------------------------- */

static void consider(struct operating *o, const struct ob_verb_row *row)
{
	uint32_t limit = o->operate->filter.limit;
	struct ob_change ignored;
	bool promote;

	if (!ob_exception_verb(o->operate->verb, row, &ignored, &promote)) {
		o->refused++;
	} else if (limit == 0 || seq_count(o) < limit) {
		ob_buf_add(&o->seqs, (struct ob_str){ (const char *)&row->seq, sizeof(row->seq) });
		o->touched[row->partition] = true;
	}
}

static int find_rows(struct operating *o, struct ob_err *err)
{
	struct ob_filter filter = o->operate->filter;
	struct pg_params reader = { 0 };
	int count = CHUNK;

	pg_text(&reader, filter.reader);
	int r = pg_ask(o->s, PG_reader_target, &reader, err);
	if (r == 0 && PQntuples(o->s->results[0]) == 0)
		r = pg_no_reader(filter.reader, err);
	filter.after_seq = 0;
	filter.newest_first = false;
	filter.limit = CHUNK;
	while (r == 0 && count == CHUNK) {
		r = pg_add_filter(o->s, &filter, sql_postgres_verb_rows, err);
		if (r == 0)
			r = pg_flush(o->s, err);
		count = r == 0 ? PQntuples(o->s->results[0]) : 0;
		for (int row = 0; row < count; row++) {
			struct ob_verb_row found = verb_row(o->s->results[0], row);

			consider(o, &found);
			filter.after_seq = found.seq;
		}
	}
	return r == 0 && o->seqs.failed ? pg_oom("operating", err) : r;
}

/* ---- fencing --------------------------------------------------------- */

static int by_partition(const void *a, const void *b)
{
	const struct pg_fence *x = a, *y = b;

	return x->partition < y->partition ? -1 : x->partition > y->partition;
}

/* Rows for the partitions that have none of ours yet; where a worker was first, its row is the
 * newest then. How many are missing. */
static int fence_some(struct operating *o, struct ob_err *err)
{
	struct pg_params p = { 0 };

	pg_text(&p, o->operate->filter.reader);
	struct ob_pgarray *partitions = pg_ints(&p);
	for (uint32_t i = 0; i < PARTITION_NOS; i++) {
		if (o->touched[i])
			ob_pgarray_int(partitions, i);
	}
	int wanted = (int)partitions->count;
	int r = pg_ask(o->s, PG_operator_row, &p, err);
	if (r < 0)
		return r;
	const PGresult *made = o->s->results[0];
	for (int i = 0; i < PQntuples(made); i++) {
		struct pg_fence *fence = &o->fences[o->fence_count++];

		fence->partition = (uint32_t)pg_get_int(made, i, 0);
		fence->batch = (uint64_t)pg_get_int(made, i, 1);
		fence->epoch = (uint64_t)pg_get_int(made, i, 2);
		o->touched[fence->partition] = false;
	}
	return wanted - PQntuples(made);
}

static int fence_all(struct operating *o, struct ob_err *err)
{
	int missing = 1;

	for (int tries = 0; missing > 0; tries++) {
		if (tries == TRIES)
			return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
					  "operating: workers keep writing the journal");
		missing = fence_some(o, err);
	}
	if (missing == 0)
		qsort(o->fences, o->fence_count, sizeof(*o->fences), by_partition);
	return missing;
}

/* ---- changing -------------------------------------------------------- */

static int decide_row(struct operating *o, const struct ob_verb_row *row, struct ob_err *err)
{
	struct ob_change *change = &o->changes[o->change_count];
	struct ob_promote *to = &o->promotes[o->promote_count];
	bool promote;

	/* It has changed since it was found. */
	if (!ob_exception_verb(o->operate->verb, row, change, &promote)) {
		o->refused++;
		return 0;
	}
	o->changed++;
	o->change_count++;
	o->promote_count += promote;
	to->partition = row->partition;
	/* The result goes with the next statement. */
	return ob_arena_copy(&o->arena, change->queue, &change->queue) &&
			       ob_arena_copy(&o->arena, row->queue, &to->queue)
		       ? 0
		       : pg_oom("operating", err);
}

static int change_chunk(struct operating *o, size_t from, struct ob_err *err)
{
	const int64_t *seqs = (const int64_t *)(const void *)o->seqs.data;
	struct pg_params p = { 0 };

	pg_text(&p, o->operate->filter.reader);
	struct ob_pgarray *these = pg_ints(&p);
	for (size_t i = from; i < from + CHUNK && i < seq_count(o); i++)
		ob_pgarray_int(these, seqs[i]);
	int r = pg_ask(o->s, PG_verb_these, &p, err);
	o->change_count = o->promote_count = 0;
	for (int row = 0; r == 0 && row < PQntuples(o->s->results[0]); row++) {
		struct ob_verb_row found = verb_row(o->s->results[0], row);

		r = decide_row(o, &found, err);
	}
	if (r < 0)
		return r;
	r = pg_add_changes(o->s,
			   &(struct pg_changes){
				   .reader = o->operate->filter.reader,
				   .fences = o->fences,
				   .fence_count = o->fence_count,
				   .changes = o->changes,
				   .change_count = o->change_count,
				   .promotes = o->promotes,
				   .promote_count = o->promote_count,
			   },
			   err);
	ob_arena_reset(&o->arena, 1 << 20);
	/* Their results would stand before the next rows. */
	return r < 0 ? r : pg_flush(o->s, err);
}

static int operate_all(struct operating *o, struct ob_err *err)
{
	int r = find_rows(o, err);

	if (r == 0 && seq_count(o) > 0)
		r = fence_all(o, err);
	for (size_t i = 0; i < seq_count(o) && r == 0; i += CHUNK)
		r = change_chunk(o, i, err);
	return r;
}

int pg_operate(struct ob_store *store, const struct ob_operate *operate, uint64_t *ret_changed,
	       uint64_t *ret_refused, struct ob_err *err)
{
	struct operating *o = calloc(1, sizeof(*o));

	if (!o)
		return pg_oom("operating", err);
	o->s = (struct pg_store *)store;
	o->operate = operate;
	o->arena = OB_ARENA_INIT(SIZE_MAX / 2);
	o->seqs = OB_BUF_INIT(SEQS_MAX);
	int r = pg_begin(o->s, err);
	if (r == 0)
		r = pg_finish(o->s, operate_all(o, err), err);
	if (r == 0) {
		*ret_changed = o->changed;
		*ret_refused = o->refused;
	}
	pg_clear(o->s);
	ob_arena_done(&o->arena);
	ob_buf_done(&o->seqs);
	free(o);
	return r;
}
