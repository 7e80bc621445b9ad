/* SPDX-License-Identifier: MIT */
/* Changes of exceptions as arrays: one statement for each kind, whatever their number. */
#include "store/postgres/change.h"

#include "base/utf8.h"

/* A change that is not for a partition of the fences would apply nowhere: it is left out. */
static const struct pg_fence *fence_of(const struct pg_changes *c, uint32_t partition)
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

/* The parameters that all of these statements begin with. */
struct fenced {
	struct ob_pgarray *partitions, *batches, *epochs;
};

static struct fenced begin_params(const struct pg_changes *c, struct pg_params *p)
{
	struct fenced to;

	pg_text(p, c->reader);
	pg_uuid(p, c->owner);
	to.partitions = pg_ints(p);
	to.batches = pg_ints(p);
	to.epochs = pg_ints(p);
	return to;
}

static void put_fence(struct fenced *to, const struct pg_fence *fence)
{
	ob_pgarray_int(to->partitions, fence->partition);
	ob_pgarray_int(to->batches, (int64_t)fence->batch);
	ob_pgarray_int(to->epochs, (int64_t)fence->epoch);
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

static void put_error(struct ob_pgarray *errors, struct ob_str error, struct ob_buf *text)
{
	ob_buf_clear(text);
	if (error.p)
		ob_utf8_sanitize(text, error, OB_LAST_ERROR_MAX);
	ob_pgarray_str(errors, error.p ? ob_buf_view(text) : OB_STR_NULL);
	errors->data.failed |= text->failed;
}

/* One kind of change while its parameters are made. */
struct columns {
	struct fenced fenced;
	struct ob_pgarray *seqs, *states, *attempts, *due_how, *due, *queues, *errors, *were;
	struct ob_buf text;
};

static void put_change(struct columns *to, const struct ob_change *change)
{
	ob_pgarray_int(to->seqs, change->seq);
	if (change->kind == OB_CHANGE_REMOVE)
		return;
	ob_pgarray_int(to->states, change->state);
	ob_pgarray_int(to->attempts, change->attempts);
	ob_pgarray_int(to->due_how, change->due);
	ob_pgarray_int(to->due, due_value(change));
	ob_pgarray_str(to->queues, change->queue);
	put_error(to->errors, change->error, &to->text);
	if (to->were)
		ob_pgarray_int(to->were, change->was_attempts);
}

static bool has_kind(const struct pg_changes *c, enum ob_change_kind kind)
{
	for (size_t i = 0; i < c->change_count; i++) {
		if (c->changes[i].kind == kind)
			return true;
	}
	return false;
}

/* Queue the changes of one kind, if there are any. */
static int add_kind(struct pg_store *s, const struct pg_changes *c, enum ob_change_kind kind,
		    struct ob_err *err)
{
	static const enum pg_id ids[] = {
		[OB_CHANGE_ADD] = PG_except_add,
		[OB_CHANGE_SET] = PG_except_set,
		[OB_CHANGE_REMOVE] = PG_except_remove,
	};
	struct columns to = { .text = OB_BUF_INIT((size_t)4 * OB_LAST_ERROR_MAX) };
	struct pg_params p = { 0 };

	if (!has_kind(c, kind))
		return 0;
	to.fenced = begin_params(c, &p);
	to.seqs = pg_ints(&p);
	if (kind != OB_CHANGE_REMOVE) {
		to.states = pg_ints(&p);
		to.attempts = pg_ints(&p);
		to.due_how = pg_ints(&p);
		to.due = pg_ints(&p);
		to.queues = pg_array(&p, OB_PG_TEXT);
		to.errors = pg_array(&p, OB_PG_TEXT);
	}
	if (kind == OB_CHANGE_SET) {
		to.were = pg_ints(&p);
		/* An operator may change what is dead. */
		pg_int(&p, c->owner == NULL);
	}
	for (size_t i = 0; i < c->change_count; i++) {
		const struct ob_change *change = &c->changes[i];
		const struct pg_fence *fence =
			change->kind == kind ? fence_of(c, change->partition) : NULL;

		if (!fence)
			continue;
		put_fence(&to.fenced, fence);
		put_change(&to, change);
	}
	int r = pg_add(s, ids[kind], &p, err);
	ob_buf_done(&to.text);
	return r;
}

static int add_promotes(struct pg_store *s, const struct pg_changes *c, struct ob_err *err)
{
	struct pg_params p = { 0 };

	if (c->promote_count == 0)
		return 0;
	struct fenced to = begin_params(c, &p);
	struct ob_pgarray *queues = pg_array(&p, OB_PG_TEXT);
	for (size_t i = 0; i < c->promote_count; i++) {
		const struct pg_fence *fence = fence_of(c, c->promotes[i].partition);

		if (!fence)
			continue;
		put_fence(&to, fence);
		ob_pgarray_str(queues, c->promotes[i].queue);
	}
	return pg_add(s, PG_promote, &p, err);
}

int pg_add_changes(struct pg_store *s, const struct pg_changes *changes, struct ob_err *err)
{
	int r = add_kind(s, changes, OB_CHANGE_ADD, err);

	if (r == 0)
		r = add_kind(s, changes, OB_CHANGE_SET, err);
	if (r == 0)
		r = add_kind(s, changes, OB_CHANGE_REMOVE, err);
	/* Last: who is the head shows only now. */
	return r < 0 ? r : add_promotes(s, changes, err);
}
