/* SPDX-License-Identifier: MIT */
/* Changes of exceptions: one statement for each kind, whatever their number. */
#include "store/sql/change.h"

#include "base/cleanup.h"
#include "base/utf8.h"

/* A change that is not for a partition of the fences would apply nowhere: it is left out. */
static const struct ob_sql_fence *fence_of(const struct ob_sql_changes *c, uint32_t partition)
{
	size_t low = 0, high = c->fence_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->fences[middle].partition == partition)
			return &c->fences[middle];
		if (c->fences[middle].partition < partition)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static void put_fence(struct ob_sql_table *to, const struct ob_sql_fence *fence)
{
	ob_sql_table_int(to, fence->partition);
	ob_sql_table_int(to, (int64_t)fence->batch);
	ob_sql_table_int(to, (int64_t)fence->epoch);
}

static int64_t due_value(const struct ob_change *change)
{
	switch (change->due) {
	case OB_DUE_AFTER:
		return ob_sql_us(change->delay_ms);
	case OB_DUE_AVAILABLE:
		return change->available_at_us;
	case OB_DUE_NEVER:
	default:
		return 0;
	}
}

/* Any bytes become text of a bounded length; false: out of memory. */
static bool clean_error(struct ob_str error, struct ob_arena *arena, struct ob_str *ret)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT((size_t)4 * OB_LAST_ERROR_MAX);

	if (error.p)
		ob_utf8_sanitize(&text, error, OB_LAST_ERROR_MAX);
	return !text.failed && ob_arena_copy(arena, error.p ? ob_buf_view(&text) : error, ret);
}

/* p, b, e of its fence; seq, state, attempts, attempts as they were, how it is due (0 never, 1 in
 * so many us, 2 at a time), that time, queue, error. */
static void put_change(struct ob_sql_table *to, const struct ob_sql_fence *fence,
		       const struct ob_change *change, struct ob_arena *arena)
{
	struct ob_str error = OB_STR_NULL;

	to->failed |= !clean_error(change->error, arena, &error);
	put_fence(to, fence);
	ob_sql_table_int(to, change->seq);
	ob_sql_table_int(to, change->state);
	ob_sql_table_int(to, change->attempts);
	ob_sql_table_int(to, change->was_attempts);
	ob_sql_table_int(to, change->due);
	ob_sql_table_int(to, due_value(change));
	ob_sql_table_str(to, change->queue);
	ob_sql_table_str(to, error);
}

/* Add the changes of one kind, if there are any. */
static void add_kind(struct ob_sql *q, const struct ob_sql_changes *c, enum ob_change_kind kind,
		     enum ob_sql_id id)
{
	OB_CLEANUP(ob_sql_table_done) struct ob_sql_table table = OB_SQL_TABLE("iiiiiiiiitt");
	OB_CLEANUP(ob_arena_done) struct ob_arena arena = OB_ARENA_INIT(SIZE_MAX / 2);

	for (size_t i = 0; i < c->change_count; i++) {
		const struct ob_change *change = &c->changes[i];
		const struct ob_sql_fence *fence =
			change->kind == kind ? fence_of(c, change->partition) : NULL;

		if (fence)
			put_change(&table, fence, change, &arena);
	}
	if (table.count || table.failed)
		(void)ob_sql_add(q, id,
				 OB_ARGS(OB_ARG_TEXT("reader", c->reader),
					 OB_ARG_UUID("owner", c->owner),
					 /* An operator may change what is dead. */
					 OB_ARG_INT("any", c->owner == NULL),
					 OB_ARG_TABLE("changes", &table)));
}

static void add_promotes(struct ob_sql *q, const struct ob_sql_changes *c)
{
	OB_CLEANUP(ob_sql_table_done) struct ob_sql_table table = OB_SQL_TABLE("iiit");

	for (size_t i = 0; i < c->promote_count; i++) {
		const struct ob_sql_fence *fence = fence_of(c, c->promotes[i].partition);

		if (!fence)
			continue;
		put_fence(&table, fence);
		ob_sql_table_str(&table, c->promotes[i].queue);
	}
	if (table.count || table.failed)
		(void)OB_SQL_ADD(q, promote, OB_ARG_TEXT("reader", c->reader),
				 OB_ARG_UUID("owner", c->owner), OB_ARG_TABLE("queues", &table));
}

void ob_sql_add_changes(struct ob_sql *q, const struct ob_sql_changes *changes)
{
	add_kind(q, changes, OB_CHANGE_REMOVE, OB_SQL_except_remove);
	add_kind(q, changes, OB_CHANGE_SET, OB_SQL_except_set);
	add_kind(q, changes, OB_CHANGE_ADD, OB_SQL_except_add);
	/* Last: who is the head shows only now. */
	add_promotes(q, changes);
}
