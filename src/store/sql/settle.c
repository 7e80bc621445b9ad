/* SPDX-License-Identifier: MIT */
/*
 * Recording progress: journal rows, which are the fence, and the changes that depend on them. All
 * of it is sent at once, so that a client that freezes leaves no open transaction.
 */
#include "base/cleanup.h"
#include "store/sql/change.h"
#include "store/sql/ops.h"

/* A settle as values: its parts, and what they have seen. */
struct values {
	/* p, batch, epoch, pos, published, failed, place of `seen`, late_pos, place of `late_seen`
	 */
	struct ob_sql_table parts;
	struct ob_sql_table seens;
	const struct ob_seen **list; /* of `seens` */
	struct ob_sql_fence *fences; /* of the parts */
};

static void values_done(struct values *v)
{
	ob_sql_table_done(&v->parts);
	ob_sql_table_done(&v->seens);
	free((void *)v->list);
	free(v->fences);
}

/* After a read all partitions share one `seen`: each is sent once and named by its place, from 1
 * on; 0: there is none. */
static int64_t place_of(struct values *v, const struct ob_seen *seen)
{
	if (!seen)
		return 0;
	for (size_t i = v->seens.count; i > 0; i--) {
		if (ob_seen_equal(v->list[i - 1], seen))
			return (int64_t)i;
	}
	v->list[v->seens.count] = seen;
	ob_sql_table_str(&v->seens, (struct ob_str){ seen->text, seen->size });
	return (int64_t)v->seens.count;
}

/* False: out of memory. */
static bool make_values(const struct ob_settle *settle, struct values *v)
{
	*v = (struct values){ .parts = OB_SQL_TABLE("iiiiiiiii"), .seens = OB_SQL_TABLE("t") };
	v->list = calloc(2 * settle->part_count + 1, sizeof(struct ob_seen *));
	v->fences = calloc(settle->part_count + 1, sizeof(*v->fences));
	if (!v->list || !v->fences)
		return false;
	for (size_t i = 0; i < settle->part_count; i++) {
		const struct ob_settle_part *part = &settle->parts[i];

		v->fences[i] = (struct ob_sql_fence){ part->partition, part->batch, part->epoch };
		ob_sql_table_int(&v->parts, part->partition);
		ob_sql_table_int(&v->parts, (int64_t)part->batch);
		ob_sql_table_int(&v->parts, (int64_t)part->epoch);
		ob_sql_table_int(&v->parts, part->progress.pos);
		ob_sql_table_int(&v->parts, part->published);
		ob_sql_table_int(&v->parts, part->failed);
		ob_sql_table_int(&v->parts, place_of(v, part->progress.seen));
		ob_sql_table_int(&v->parts, part->progress.late_pos);
		ob_sql_table_int(&v->parts, place_of(v, part->progress.late_seen));
	}
	return !v->parts.failed && !v->seens.failed;
}

static void add_changes(struct ob_sql *q, const struct ob_settle *settle, const struct values *v)
{
	ob_sql_add_changes(q, &(struct ob_sql_changes){
				      .reader = settle->reader,
				      .owner = &settle->owner,
				      .fences = v->fences,
				      .fence_count = settle->part_count,
				      .changes = settle->changes,
				      .change_count = settle->change_count,
				      .promotes = settle->promotes,
				      .promote_count = settle->promote_count,
			      });
}

/* *ret_all: every row was inserted. */
static int try_settle(struct ob_store *store, const struct ob_settle *settle,
		      const struct values *v, bool alone, bool *ret_all, struct ob_err *err)
{
	const struct ob_sql_arg args[] = {
		OB_ARG_TEXT("reader", settle->reader),
		OB_ARG_UUID("owner", &settle->owner),
		OB_ARG_TABLE("parts", &v->parts),
		OB_ARG_LIST("seens", &v->seens),
		{ .name = NULL },
	};
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, alone ? OB_SQL_ALONE : OB_SQL_SETTLE, "settling");
	/*
	 * P7: the journal row comes first, and the changes apply only to partitions whose row was
	 * inserted (`won`). A worker that was replaced finds its number taken and changes nothing.
	 */
	size_t journal = ob_sql_add(&q, OB_SQL_journal, args);
	if (settle->change_count + settle->promote_count > 0) {
		(void)ob_sql_add(&q, OB_SQL_won, args);
		add_changes(&q, settle, v);
	}
	int r = ob_sql_commit(&q, err);
	if (r == 0)
		*ret_all = ob_sql_changed(&q, journal) == settle->part_count;
	return r;
}

static struct ob_settle_part *find_part(struct ob_settle *settle, int64_t partition)
{
	for (size_t i = 0; i < settle->part_count; i++) {
		if (settle->parts[i].partition == partition)
			return &settle->parts[i];
	}
	return NULL;
}

/*
 * Whose is the row that we met? Our own: the reply to an earlier try was lost, and it is recorded.
 * Our epoch, but not our row: an operator's verb took the number. Another epoch, or no row: lost.
 */
static void judge_rows(struct ob_settle *settle, struct ob_sql_rows rows)
{
	enum { PARTITION, OURS, NEWEST, EPOCH };

	while (ob_sql_next(&rows)) {
		struct ob_settle_part *part = find_part(settle, ob_sql_int(&rows, PARTITION));

		if (!part || ob_sql_is_null(&rows, EPOCH) ||
		    (uint64_t)ob_sql_int(&rows, EPOCH) != part->epoch)
			continue;
		if (ob_sql_int(&rows, OURS)) {
			part->settled = OB_SETTLED;
		} else {
			part->settled = OB_SETTLE_MOVED;
			part->batch = (uint64_t)ob_sql_int(&rows, NEWEST);
		}
	}
}

static int judge_parts(struct ob_store *store, struct ob_settle *settle, const struct values *v,
		       struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_PEEK, "settling");
	size_t state =
		OB_SQL_ADD(&q, journal_state, OB_ARG_TEXT("reader", settle->reader),
			   OB_ARG_UUID("owner", &settle->owner), OB_ARG_TABLE("parts", &v->parts));
	int r = ob_sql_commit(&q, err);
	if (r == 0)
		judge_rows(settle, ob_sql_rows(&q, state));
	return r;
}

int ob_sql_op_tx_settle(struct ob_store *store, struct ob_settle *settle, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;
	struct values v;

	if (!make_values(settle, &v)) {
		values_done(&v);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "settling: out of memory");
	}
	const struct ob_sql_arg args[] = {
		OB_ARG_TEXT("reader", settle->reader),
		OB_ARG_UUID("owner", &settle->owner),
		OB_ARG_TABLE("parts", &v.parts),
		OB_ARG_LIST("seens", &v.seens),
		{ .name = NULL },
	};
	ob_sql_begin(&q, store, OB_SQL_JOIN, "settling");
	size_t journal = ob_sql_add(&q, OB_SQL_journal, args);
	(void)ob_sql_add(&q, OB_SQL_won, args);
	add_changes(&q, settle, &v);
	int r = ob_sql_flush(&q, err);
	bool all = r == 0 && ob_sql_changed(&q, journal) == settle->part_count;
	for (size_t i = 0; i < settle->part_count && r == 0; i++)
		settle->parts[i].settled = all ? OB_SETTLED : OB_SETTLE_LOST;
	if (r == 0 && !all) {
		size_t state = OB_SQL_ADD(&q, journal_state, args[0], args[1], args[2]);

		r = ob_sql_flush(&q, err);
		if (r == 0)
			judge_rows(settle, ob_sql_rows(&q, state));
	}
	r = ob_sql_end(&q, r, err);
	values_done(&v);
	return r;
}

/*
 * Without changes it is one statement, which needs no transaction around it. On PostgreSQL it runs
 * in a snapshot then: a row that someone inserts at the same moment is an error, not a conflict.
 */
int ob_sql_op_settle(struct ob_store *store, struct ob_settle *settle, struct ob_err *err)
{
	bool alone = settle->change_count + settle->promote_count == 0, all = false;
	struct ob_err tried = OB_ERR_INIT;
	struct values v;
	int r = make_values(settle, &v)
			? 0
			: ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "settling: out of memory");

	if (r == 0) {
		r = try_settle(store, settle, &v, alone, &all, &tried);
		if (r < 0 && alone && strcmp(tried.native, "40001") == 0)
			r = try_settle(store, settle, &v, false, &all, err);
		else if (r < 0)
			*err = tried;
	}
	for (size_t i = 0; i < settle->part_count && r == 0; i++)
		settle->parts[i].settled = all ? OB_SETTLED : OB_SETTLE_LOST;
	if (r == 0 && !all)
		r = judge_parts(store, settle, &v, err);
	values_done(&v);
	return r;
}
