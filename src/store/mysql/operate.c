/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store: operator verbs. First a read says which partitions are concerned. Then one
 * transaction writes their next journal rows, so that no worker records anything for them until it
 * ends, and only now reads, decides and changes.
 */
#include "base/cleanup.h"
#include "store/mysql/change.h"
#include "store/mysql/list.h"
#include "store/mysql/tx.h"

#include "sql_mysql.h"

#include <stdlib.h>

enum { PARTS = OB_PARTITIONS_MAX * OB_LANES, LIST_MAX = 1 << 20 };

/* One verb while it runs. */
struct operating {
	struct my_store *s;
	const struct ob_operate *operate;
	struct ob_arena arena;
	struct my_rows changes;  /* struct ob_change */
	struct my_rows promotes; /* struct ob_promote */
	struct my_reach reach;
	bool fenced[PARTS]; /* partitions whose rows may be changed; while !deciding, those that
			       must be */
	bool deciding;
	uint64_t changed, refused;
};

static int add_change(struct operating *o, const struct ob_change *change, bool promote,
		      struct ob_str queue, struct ob_err *err)
{
	struct ob_change *to = my_rows_add(&o->changes);

	if (!to)
		return my_oom("changing messages", err);
	*to = *change;
	if (!ob_arena_copy(&o->arena, change->queue, &to->queue) ||
	    !ob_arena_copy(&o->arena, change->error, &to->error))
		return my_oom("changing messages", err);
	if (!promote || !queue.p)
		return 0;
	struct ob_promote *also = my_rows_add(&o->promotes);
	if (!also || !ob_arena_copy(&o->arena, queue, &also->queue))
		return my_oom("changing messages", err);
	also->partition = change->partition;
	return 0;
}

/* A row of the template pick_head. */
static int judge_row(struct operating *o, const struct my_packet *p, struct ob_err *err)
{
	const struct ob_verb_row row = {
		.seq = my_int(p, 0),
		.partition = (uint32_t)my_int(p, 1),
		.covered = my_int(p, 2),
		.excepted = my_int(p, 3),
		.state = (enum ob_state)my_int(p, 4),
		.attempts = (uint32_t)my_int(p, 5),
		.queue = my_str(p, 6),
	};
	struct ob_change change = { 0 };
	bool promote = false;

	if (row.partition >= PARTS ||
	    !ob_exception_verb(o->operate->verb, &row, &change, &promote)) {
		o->refused++;
		return 0;
	}
	if (!o->deciding)
		o->fenced[row.partition] = true;
	/* One that came after the partitions were chosen comes after the verb. */
	if (!o->deciding || !o->fenced[row.partition])
		return 0;
	if (o->operate->filter.limit && o->changed >= o->operate->filter.limit)
		return 0;
	o->changed++;
	/* Whoever leaves a queue and whoever stays in it: both have it promoted. */
	return add_change(o, &change, promote, row.queue.p ? row.queue : change.queue, err);
}

static int read_rows(struct operating *o, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	struct ob_filter filter = o->operate->filter;

	filter.after_seq = 0;
	filter.newest_first = false;
	filter.limit = 0;
	my_packet_init(&p, o->s, "changing messages");
	my_filter_add(&p, &filter, &o->reach, true);
	int r = my_packet_run(&p, err);
	for (my_use(&p, 0); r == 0 && my_step(&p);)
		r = judge_row(o, &p, err);
	return r;
}

static int write_changes(struct operating *o, const struct ob_buf *won, struct ob_err *err)
{
	const struct my_changes changes = {
		.reader = o->operate->filter.reader,
		.changes = (const void *)o->changes.data,
		.change_count = o->changes.count,
		.promotes = (const void *)o->promotes.data,
		.promote_count = o->promotes.count,
		.any_state = true,
	};
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, o->s, "changing messages");
	(void)MY_ADD(&p, sql_mysql_verb_won, OB_ARG_STR("won", ob_buf_view(won)));
	my_changes_add(&p, &changes);
	return my_packet_run(&p, err);
}

static int operate_work(struct my_store *s, void *arg, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done)
	struct ob_buf list = OB_BUF_INIT(LIST_MAX), parts = OB_BUF_INIT(LIST_MAX);
	const struct ob_uuid nobody = { 0 };
	struct operating *o = arg;

	ob_arena_reset(&o->arena, SIZE_MAX);
	o->changes = (struct my_rows){ .arena = &o->arena, .size = sizeof(struct ob_change) };
	o->promotes = (struct my_rows){ .arena = &o->arena, .size = sizeof(struct ob_promote) };
	o->changed = o->refused = 0;
	for (int i = 0; i < PARTS; i++) {
		if (o->fenced[i])
			my_add_number(&list, i);
	}
	ob_buf_addf(&parts, "[%s]", ob_buf_str(&list));
	const struct ob_sql_arg args[] = { OB_ARG_TEXT("reader", o->operate->filter.reader),
					   OB_ARG_UUID("owner", &nobody),
					   OB_ARG_STR("parts", ob_buf_view(&parts)),
					   { .name = NULL } };
	int r = my_change(s, "changing messages", sql_mysql_verb_journal, args, err);
	if (r >= 0)
		r = read_rows(o, err);
	return r < 0 ? r : write_changes(o, &list, err);
}

static int operate_all(struct operating *o, struct ob_err *err)
{
	int r = read_rows(o, err);
	bool any = false;

	for (int i = 0; i < PARTS; i++)
		any = any || o->fenced[i];
	o->deciding = true;
	return r < 0 || !any ? r : my_transact(o->s, operate_work, o, err);
}

int my_operate(struct ob_store *store, const struct ob_operate *operate, uint64_t *ret_changed,
	       uint64_t *ret_refused, struct ob_err *err)
{
	struct operating *o = calloc(1, sizeof(*o));

	if (!o)
		return my_oom("changing messages", err);
	o->s = (struct my_store *)store;
	o->operate = operate;
	o->arena = OB_ARENA_INIT(SIZE_MAX / 2);
	int r = my_reach_known(o->s, operate->filter.reader, &o->reach, err);
	if (r == 0)
		r = operate_all(o, err);
	if (r == 0) {
		*ret_changed = o->changed;
		*ret_refused = o->refused;
	}
	ob_arena_done(&o->arena);
	my_reach_done(&o->reach);
	free(o);
	return r;
}
