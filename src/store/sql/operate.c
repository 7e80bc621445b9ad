/* SPDX-License-Identifier: MIT */
/*
 * Operator verbs. What matches is found first, by reading alone. Then one transaction writes the
 * next journal row of every partition that changes, which serialises the verb with settles and
 * takeovers, reads the rows again by their numbers and changes them. So workers wait for the
 * changes only, not for the search.
 */
#include "base/cleanup.h"
#include "store/sql/change.h"
#include "store/sql/filter.h"
#include "store/sql/ops.h"

enum {
	CHUNK = 1000,
	FENCE_TRIES = 100,
	SEQS_MAX = 1 << 30, /* bytes */
	PARTITION_NOS = OB_LANES * OB_PARTITIONS_MAX,
};

/* One operate while it runs. */
struct operating {
	struct ob_store *store;
	const struct ob_operate *operate;
	struct ob_buf seqs; /* int64_t: what is to be changed */
	bool touched[PARTITION_NOS];
	struct ob_sql_fence fences[PARTITION_NOS]; /* by partition, ascending */
	size_t fence_count;
	struct ob_change changes[CHUNK];
	struct ob_promote promotes[CHUNK];
	size_t change_count, promote_count;
	struct ob_arena arena; /* their queues */
	uint64_t changed;
	uint64_t refused, refused_later; /* when found; when read again */
};

static size_t seq_count(const struct operating *o)
{
	return o->seqs.len / sizeof(int64_t);
}

/* ---- finding --------------------------------------------------------- */

static void consider(struct operating *o, const struct ob_verb_row *row)
{
	uint32_t limit = o->operate->filter.limit;
	struct ob_change ignored;
	bool promote;

	if (row->partition >= PARTITION_NOS ||
	    !ob_exception_verb(o->operate->verb, row, &ignored, &promote)) {
		o->refused++;
	} else if (limit == 0 || seq_count(o) < limit) {
		ob_buf_add(&o->seqs, (struct ob_str){ (const char *)&row->seq, sizeof(row->seq) });
		o->touched[row->partition] = true;
	}
}

static int find_rows(struct operating *o, struct ob_err *err)
{
	struct ob_filter filter = o->operate->filter;
	OB_CLEANUP(ob_sql_done) struct ob_sql q = { 0 };
	size_t count = CHUNK;
	int r = ob_sql_filter_reach(o->store, &filter, err);

	if (r < 0)
		return r;
	filter.after_seq = 0;
	filter.newest_first = false;
	filter.limit = CHUNK;
	ob_sql_begin(&q, o->store, OB_SQL_READ, "changing messages");
	while (r == 0 && count == CHUNK) {
		size_t found = ob_sql_add_filter(&q, &filter, true);
		size_t target = OB_SQL_ADD(&q, reader_target, OB_ARG_TEXT("reader", filter.reader));

		r = ob_sql_flush(&q, err);
		if (r == 0 && ob_sql_count(&q, target) == 0)
			r = ob_sql_no_reader(filter.reader, err);
		struct ob_sql_rows rows = ob_sql_rows(&q, found);
		count = r == 0 ? rows.count : 0;
		while (r == 0 && ob_sql_next(&rows)) {
			struct ob_verb_row row = ob_sql_verb_row(&rows);

			consider(o, &row);
			filter.after_seq = row.seq;
		}
	}
	if (r == 0 && o->seqs.failed)
		r = ob_sql_oom(&q, err);
	return ob_sql_end(&q, r, err);
}

/* The same for numbers that the caller chose. */
static int find_these(struct operating *o, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q = { 0 };
	int r = ob_sql_filter_reach(o->store, &o->operate->filter, err);

	if (r < 0)
		return r;
	ob_sql_begin(&q, o->store, OB_SQL_READ, "changing messages");
	for (size_t from = 0; from < o->operate->seq_count && r == 0; from += CHUNK) {
		OB_CLEANUP(ob_sql_table_done) struct ob_sql_table these = OB_SQL_TABLE("i");

		for (size_t i = from; i < from + CHUNK && i < o->operate->seq_count; i++)
			ob_sql_table_int(&these, o->operate->seqs[i]);
		size_t found =
			OB_SQL_ADD(&q, verb_these, OB_ARG_TEXT("reader", o->operate->filter.reader),
				   OB_ARG_LIST("seqs", &these));
		r = ob_sql_flush(&q, err);
		struct ob_sql_rows rows = ob_sql_rows(&q, found);
		while (r == 0 && ob_sql_next(&rows)) {
			struct ob_verb_row row = ob_sql_verb_row(&rows);

			consider(o, &row);
		}
	}
	return ob_sql_end(&q, r, err);
}

/* Where a message would stand, by the reader's ordering. */
static void set_queue(const struct operating *o, struct ob_verb_row *row)
{
	if (o->operate->ordering == OB_ORDER_PARTITION)
		row->key = OB_STR("");
	else if (o->operate->ordering == OB_ORDER_NONE)
		row->key = OB_STR_NULL;
}

/* ---- fencing --------------------------------------------------------- */

static int by_partition(const void *a, const void *b)
{
	const struct ob_sql_fence *x = a, *y = b;

	return x->partition < y->partition ? -1 : x->partition > y->partition;
}

/* Rows for the partitions that have none of ours yet; where a worker was first, its row is the
 * newest then. How many are missing. */
static int fence_some(struct operating *o, struct ob_sql *q, bool *missing, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_table_done) struct ob_sql_table parts = OB_SQL_TABLE("i");
	int wanted = 0;

	for (uint32_t i = 0; i < PARTITION_NOS; i++) {
		if (missing[i])
			ob_sql_table_int(&parts, i);
		wanted += missing[i];
	}
	const struct ob_sql_arg args[] = {
		OB_ARG_TEXT("reader", o->operate->filter.reader),
		OB_ARG_TABLE("parts", &parts),
		{ .name = NULL },
	};
	size_t made = ob_sql_add(q, OB_SQL_operator_row, args);
	size_t then = ob_sql_add(q, OB_SQL_operator_made, args);
	int r = ob_sql_flush(q, err);
	struct ob_sql_rows rows = ob_sql_rows(q, ob_sql_count(q, made) ? made : then);
	while (r == 0 && ob_sql_next(&rows)) {
		struct ob_sql_fence *fence = &o->fences[o->fence_count++];

		fence->partition = (uint32_t)ob_sql_int(&rows, 0) % PARTITION_NOS;
		fence->batch = (uint64_t)ob_sql_int(&rows, 1);
		fence->epoch = (uint64_t)ob_sql_int(&rows, 2);
		missing[fence->partition] = false;
		wanted--;
	}
	return r < 0 ? r : wanted;
}

static int fence_all(struct operating *o, struct ob_sql *q, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_table_done) struct ob_sql_table parts = OB_SQL_TABLE("iii");
	bool missing[PARTITION_NOS];
	int r = 1;

	memcpy(missing, o->touched, sizeof(missing));
	o->fence_count = 0;
	for (int tries = 0; r > 0; tries++) {
		if (tries == FENCE_TRIES)
			return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
					  "changing messages: workers keep writing the journal");
		r = fence_some(o, q, missing, err);
	}
	if (r < 0)
		return r;
	qsort(o->fences, o->fence_count, sizeof(*o->fences), by_partition);
	for (size_t i = 0; i < o->fence_count; i++) {
		ob_sql_table_int(&parts, o->fences[i].partition);
		ob_sql_table_int(&parts, (int64_t)o->fences[i].batch);
		ob_sql_table_int(&parts, (int64_t)o->fences[i].epoch);
	}
	(void)OB_SQL_ADD(q, won, OB_ARG_TEXT("reader", o->operate->filter.reader),
			 OB_ARG_UUID("owner", NULL), OB_ARG_TABLE("parts", &parts));
	return 0;
}

/* ---- changing -------------------------------------------------------- */

static int decide_row(struct operating *o, const struct ob_sql *q, const struct ob_verb_row *row,
		      struct ob_err *err)
{
	struct ob_change *change = &o->changes[o->change_count];
	struct ob_promote *to = &o->promotes[o->promote_count];
	bool promote;

	/* It has changed since it was found. */
	if (!ob_exception_verb(o->operate->verb, row, change, &promote)) {
		o->refused_later++;
		return 0;
	}
	o->changed++;
	o->change_count++;
	o->promote_count += promote;
	to->partition = row->partition;
	/* The rows go with the next statement. */
	struct ob_str queue = o->operate->verb == OB_VERB_DELIVER ? row->key : row->queue;

	return ob_arena_copy(&o->arena, change->queue, &change->queue) &&
			       ob_arena_copy(&o->arena, queue, &to->queue)
		       ? 0
		       : ob_sql_oom(q, err);
}

static int change_chunk(struct operating *o, struct ob_sql *q, size_t from, struct ob_err *err)
{
	const int64_t *seqs = (const int64_t *)(const void *)o->seqs.data;
	OB_CLEANUP(ob_sql_table_done) struct ob_sql_table these = OB_SQL_TABLE("i");

	for (size_t i = from; i < from + CHUNK && i < seq_count(o); i++)
		ob_sql_table_int(&these, seqs[i]);
	size_t found = OB_SQL_ADD(q, verb_these, OB_ARG_TEXT("reader", o->operate->filter.reader),
				  OB_ARG_LIST("seqs", &these));
	int r = ob_sql_flush(q, err);
	struct ob_sql_rows rows = ob_sql_rows(q, found);
	o->change_count = o->promote_count = 0;
	while (r == 0 && ob_sql_next(&rows)) {
		struct ob_verb_row row = ob_sql_verb_row(&rows);

		set_queue(o, &row);
		r = decide_row(o, q, &row, err);
	}
	if (r == 0)
		ob_sql_add_changes(q, &(struct ob_sql_changes){
					      .reader = o->operate->filter.reader,
					      .fences = o->fences,
					      .fence_count = o->fence_count,
					      .changes = o->changes,
					      .change_count = o->change_count,
					      .promotes = o->promotes,
					      .promote_count = o->promote_count,
				      });
	ob_arena_reset(&o->arena, 1 << 20);
	return r;
}

static int change_all(struct operating *o, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	o->changed = o->refused_later = 0;
	ob_sql_begin(&q, o->store, OB_SQL_WRITE, "changing messages");
	int r = fence_all(o, &q, err);
	for (size_t i = 0; i < seq_count(o) && r == 0; i += CHUNK)
		r = change_chunk(o, &q, i, err);
	if (r == 0 && o->operate->audit && o->changed > 0) {
		struct ob_audit_row entry = *o->operate->audit;

		entry.count = o->changed;
		ob_sql_add_audit(&q, &entry, o->changed);
	}
	if (r == 0 && o->operate->new_filter)
		(void)OB_SQL_ADD(&q, reader_refilter,
				 OB_ARG_TEXT("reader", o->operate->filter.reader),
				 OB_ARG_TEXT("filter", o->operate->new_filter));
	return ob_sql_end(&q, r, err);
}

int ob_sql_op_operate(struct ob_store *store, const struct ob_operate *operate,
		      uint64_t *ret_changed, uint64_t *ret_refused, struct ob_err *err)
{
	struct operating *o = calloc(1, sizeof(*o));
	int tries = 0;

	if (!o)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN,
				  "changing messages: out of memory");
	o->store = store;
	o->operate = operate;
	o->arena = OB_ARENA_INIT(SIZE_MAX / 2);
	o->seqs = OB_BUF_INIT(SEQS_MAX);
	int r = operate->seqs ? find_these(o, err) : find_rows(o, err);
	if (r == 0 && (seq_count(o) > 0 || operate->new_filter)) {
		do
			r = change_all(o, err);
		while (r < 0 && ob_sql_again(store, ++tries, err));
	}
	if (r == 0) {
		*ret_changed = o->changed;
		*ret_refused = o->refused + o->refused_later;
	}
	ob_arena_done(&o->arena);
	ob_buf_done(&o->seqs);
	free(o);
	return r;
}
