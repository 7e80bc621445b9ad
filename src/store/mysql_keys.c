/* SPDX-License-Identifier: MIT */
/* The MySQL store: rows as they are now, and what happens to the rows behind them. */
#include "base/cleanup.h"
#include "store/mysql.h"

/* ---- rows ------------------------------------------------------------ */

static int read_row(const struct my_query *q, struct my_rows *out, struct ob_err *err)
{
	struct my_row *row = my_rows_add(out);

	if (!row)
		return my_oom("reading rows", err);
	row->seq = my_int(q, 0);
	(void)ob_uuid_scan(my_str(q, 1), &row->id);
	row->state = (enum ob_state)my_int(q, 2);
	row->attempts = (uint32_t)my_int(q, 3);
	row->partition = (uint32_t)my_int(q, 4);
	row->has_token = ob_uuid_scan(my_str(q, 7), &row->token);
	row->claimed = my_int(q, 8);
	if (!ob_arena_copy(out->arena, my_str(q, 5), &row->key) ||
	    !ob_arena_copy(out->arena, my_str(q, 6), &row->target))
		return my_oom("reading rows", err);
	return 0;
}

static int by_seq(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

int my_look(struct my_store *s, const int64_t *seqs, size_t count, struct my_rows *out,
	    struct ob_err *err)
{
	/* In one order for everybody: who locks in the order of seq meets nobody crosswise. */
	int64_t *sorted = ob_arena_alloc(out->arena, (count + 1) * sizeof(*sorted));
	struct my_query *q;
	int r = 0;

	if (!sorted)
		return my_oom("reading rows", err);
	memcpy(sorted, seqs, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_seq);
	for (size_t done = 0; done < count && r >= 0; done += MY_LIST_MAX) {
		size_t some = count - done < MY_LIST_MAX ? count - done : MY_LIST_MAX;

		r = my_prepare(s, MY_look, some, &q, err);
		if (r < 0)
			break;
		my_bind_list(q, "seqs", sorted + done, some);
		r = my_open(s, q, err);
		while (r >= 0 && (r = my_step(s, q, err)) > 0)
			r = read_row(q, out, err);
	}
	return r;
}

static int row_by_seq(const void *key, const void *element)
{
	const int64_t seq = *(const int64_t *)key;
	const struct my_row *row = element;

	return seq < row->seq ? -1 : seq > row->seq;
}

const struct my_row *my_row_find(const struct my_rows *rows, int64_t seq)
{
	if (rows->count == 0)
		return NULL;
	return bsearch(&seq, rows->data, rows->count, rows->size, row_by_seq);
}

int my_run_list(struct my_store *s, enum my_id id, const int64_t *seqs, size_t count,
		int64_t priority, struct ob_err *err)
{
	struct my_query *q;
	int r = 0;

	for (size_t done = 0; done < count && r >= 0; done += MY_LIST_MAX) {
		size_t some = count - done < MY_LIST_MAX ? count - done : MY_LIST_MAX;

		r = my_prepare(s, id, some, &q, err);
		if (r < 0)
			break;
		my_bind_list(q, "seqs", seqs + done, some);
		my_bind_int(q, "priority", priority);
		r = my_run(s, q, err);
	}
	return r < 0 ? r : 0;
}

int my_run_found(struct my_store *s, struct my_query *read, enum my_id write,
		 struct ob_arena *arena, struct ob_err *err)
{
	struct my_rows seqs = { .arena = arena, .size = sizeof(int64_t) };
	int r = my_open(s, read, err);

	while (r >= 0 && (r = my_step(s, read, err)) > 0) {
		int64_t *seq = my_rows_add(&seqs);

		if (!seq)
			return my_oom("reading rows", err);
		*seq = my_int(read, 0);
	}
	if (r < 0 || seqs.count == 0)
		return r;
	qsort(seqs.data, seqs.count, seqs.size, by_seq);
	return my_run_list(s, write, (const int64_t *)(const void *)seqs.data, seqs.count, 0, err);
}

/* ---- keys ------------------------------------------------------------ */

struct my_key {
	struct my_key *next;
	struct ob_str target, key; /* key absent: the whole partition */
	uint32_t partition;
};

void my_keys_init(struct my_keys *keys)
{
	*keys = (struct my_keys){ .arena = OB_ARENA_INIT(SIZE_MAX / 2) };
}

void my_keys_done(struct my_keys *keys)
{
	ob_arena_done(&keys->arena);
}

static bool is_listed(const struct my_key *list, struct ob_str target, uint32_t partition,
		      struct ob_str key)
{
	for (; list; list = list->next) {
		if (list->partition == partition && ob_str_eq(list->key, key) &&
		    ob_str_eq(list->target, target))
			return true;
	}
	return false;
}

static int add_key(struct my_keys *keys, struct my_key **list, const struct my_row *row, bool whole,
		   struct ob_err *err)
{
	struct ob_str name = whole ? OB_STR_NULL : row->key;

	if (is_listed(*list, row->target, row->partition, name))
		return 0;
	struct my_key *key = ob_arena_alloc(&keys->arena, sizeof(*key));
	if (!key || !ob_arena_copy(&keys->arena, row->target, &key->target) ||
	    !ob_arena_copy(&keys->arena, name, &key->key))
		return my_oom("releasing a key", err);
	key->partition = row->partition;
	key->next = *list;
	*list = key;
	return 0;
}

int my_keys_add_freed(struct my_keys *keys, const struct my_row *row, struct ob_err *err)
{
	return add_key(keys, &keys->freed, row, false, err);
}

int my_keys_add_held(struct my_keys *keys, const struct my_row *row, bool whole, struct ob_err *err)
{
	return add_key(keys, &keys->held, row, whole, err);
}

static int prepare_lane(struct my_store *s, enum my_id id, const struct my_key *key,
			struct my_query **ret_query, struct ob_err *err)
{
	int r = my_prepare(s, id, 1, ret_query, err);

	if (r < 0)
		return r;
	my_bind_str(*ret_query, "target", key->target);
	my_bind_int(*ret_query, "partition", key->partition);
	my_bind_str(*ret_query, "key", key->key);
	return 0;
}

static int park(struct my_store *s, struct ob_arena *arena, const struct my_key *key,
		struct ob_err *err)
{
	struct my_query *q;
	int r = prepare_lane(s, key->key.p ? MY_waiting_of_key : MY_waiting_of_partition, key, &q,
			     err);

	return r < 0 ? r : my_run_found(s, q, MY_rows_park, arena, err);
}

/* Let rows go on unless something holds them: `holder` finds it, `release` frees. */
static int release_unless(struct my_store *s, enum my_id holder, enum my_id release,
			  const struct my_key *key, struct ob_err *err)
{
	struct my_query *q;
	int r = prepare_lane(s, holder, key, &q, err);

	if (r == 0)
		r = my_first(s, q, err);
	if (r != 0)
		return r < 0 ? r : 0;
	r = prepare_lane(s, release, key, &q, err);
	if (r == 0)
		r = my_run(s, q, err);
	return r < 0 ? r : 0;
}

int my_keys_move(struct my_store *s, struct my_keys *keys, struct ob_err *err)
{
	int r = 0;

	for (const struct my_key *k = keys->held; k && r == 0; k = k->next)
		r = park(s, &keys->arena, k, err);
	for (const struct my_key *k = keys->freed; k && r == 0; k = k->next) {
		if (k->key.p)
			r = release_unless(s, MY_holder_of_key, MY_release_key, k, err);
		if (r == 0)
			r = release_unless(s, MY_holder_of_partition, MY_release_partition, k, err);
	}
	return r;
}
