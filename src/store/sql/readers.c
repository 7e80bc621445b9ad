/* SPDX-License-Identifier: MIT */
/* Readers: making, listing, moving and removing them. */
#include "base/cleanup.h"
#include "store/sql/ops.h"

enum { SEEK_TRIES = 20, NAME_MAX_BYTES = 1 << 16, SEEN_MAX = 64 << 20 };

/* ---- a place in the log ---------------------------------------------- */

/* The progress of a place. */
struct spot {
	int64_t pos;
	struct ob_buf text;
	struct ob_str seen; /* absent: there is none */
};

/* It is found before the transaction that uses it: a search by time reads much. What commits in
 * between is after it. */
static int find_place(struct ob_store *store, struct ob_str target, const struct ob_place *place,
		      struct spot *spot, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q = { 0 };

	*spot = (struct spot){ .text = OB_BUF_INIT(SEEN_MAX) };
	if (store->ops->sql->place) {
		int r = store->ops->sql->place(store, place, &spot->pos, &spot->text, err);

		spot->seen = spot->text.len ? ob_buf_view(&spot->text) : OB_STR_NULL;
		return r;
	}
	ob_sql_begin(&q, store, OB_SQL_LONG_READ, "looking for a place in the log");
	size_t found = OB_SQL_ADD(&q, place, OB_ARG_STR("target", target),
				  OB_ARG_INT("start", place->start), OB_ARG_INT("at", place->at));
	int r = ob_sql_commit(&q, err);
	struct ob_sql_rows rows = ob_sql_rows(&q, found);
	if (r < 0 || !ob_sql_next(&rows))
		return r;
	spot->pos = ob_sql_int(&rows, 0);
	if (!ob_sql_is_null(&rows, 1)) {
		ob_buf_add(&spot->text, ob_sql_str(&rows, 1));
		spot->seen = ob_buf_view(&spot->text);
	}
	return spot->text.failed ? ob_sql_oom(&q, err) : 0;
}

/* ---- making ---------------------------------------------------------- */

static int other_target(const struct ob_reader *reader, struct ob_str found, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "reader '%.*s' reads target '%.*s', not '%.*s': give this one another "
			  "name, or remove it with `outbox readers remove`",
			  (int)reader->name.n, reader->name.p, (int)found.n, found.p,
			  (int)reader->target.n, reader->target.p);
}

/* Is it there, and of this target? 1: yes. */
static int check_target(const struct ob_sql *q, size_t statement, const struct ob_reader *reader,
			struct ob_err *err)
{
	struct ob_sql_rows rows = ob_sql_rows(q, statement);

	if (!ob_sql_next(&rows))
		return 0;
	struct ob_str target = ob_sql_str(&rows, 0);
	return ob_str_eq(target, reader->target) ? 1 : other_target(reader, target, err);
}

static int find_reader(struct ob_store *store, const struct ob_reader *reader, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_READ, "looking for a reader");
	size_t target = OB_SQL_ADD(&q, reader_target, OB_ARG_STR("reader", reader->name));
	int r = ob_sql_commit(&q, err);
	return r < 0 ? r : check_target(&q, target, reader, err);
}

static int make_reader(struct ob_store *store, const struct ob_reader *reader,
		       const struct spot *spot, bool *ret_made, struct ob_err *err)
{
	const struct ob_sql_arg args[] = {
		OB_ARG_STR("reader", reader->name),
		OB_ARG_STR("target", reader->target),
		OB_ARG_STR("filter", reader->filter.p ? reader->filter : OB_STR("")),
		OB_ARG_INT("temporary", reader->temporary),
		OB_ARG_INT("pos", spot->pos),
		OB_ARG_STR("seen", spot->seen),
		{ .name = NULL },
	};
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "making a reader");
	(void)OB_SQL_ADD0(&q, lock_log);
	size_t made = ob_sql_add(&q, OB_SQL_reader_make, args);
	(void)ob_sql_add(&q, OB_SQL_reader_begin, args);
	size_t target = ob_sql_add(&q, OB_SQL_reader_target, args);
	int r = ob_sql_commit(&q, err);
	/* Another may have made it in between. */
	if (r == 0)
		r = check_target(&q, target, reader, err);
	if (r >= 0)
		*ret_made = ob_sql_changed(&q, made) > 0;
	return r;
}

int ob_sql_op_reader_make(struct ob_store *store, const struct ob_reader *reader,
			  const struct ob_place *place, bool *ret_made, struct ob_err *err)
{
	struct spot spot;
	bool made = false;
	int r = find_reader(store, reader, err);

	if (r == 0) {
		r = find_place(store, reader->target, place, &spot, err);
		if (r == 0)
			r = make_reader(store, reader, &spot, &made, err);
		ob_buf_done(&spot.text);
	}
	if (r < 0)
		return r;
	*ret_made = made;
	return 0;
}

/* ---- listing --------------------------------------------------------- */

static const struct ob_sql_column reader_columns[] = {
	OB_SQL_COLUMN(struct ob_reader, name, STR),
	OB_SQL_COLUMN(struct ob_reader, target, STR),
	OB_SQL_COLUMN(struct ob_reader, filter, STR),
	OB_SQL_COLUMN(struct ob_reader, temporary, INT),
	OB_SQL_COLUMN(struct ob_reader, created_at_us, TIME),
	OB_SQL_COLUMN(struct ob_reader, low_pos, INT),
	OB_SQL_COLUMN(struct ob_reader, high_pos, INT),
	OB_SQL_COLUMN(struct ob_reader, moved_at_us, TIME),
	OB_SQL_COLUMN(struct ob_reader, workers, INT),
	OB_SQL_COLUMN(struct ob_reader, exceptions, INT),
	OB_SQL_COLUMN(struct ob_reader, held_seq, INT),
};
static const struct ob_sql_map reader_map = OB_SQL_MAP_OF(struct ob_reader, reader_columns);

int ob_sql_op_readers(struct ob_store *store, struct ob_arena *arena,
		      struct ob_reader **ret_readers, size_t *ret_count, struct ob_err *err)
{
	struct ob_reader *readers = ob_sql_list(store, "listing readers", OB_SQL_readers,
						OB_NO_ARGS, &reader_map, arena, ret_count, err);

	if (!readers)
		return err->status;
	*ret_readers = readers;
	return 0;
}

/* ---- moving ---------------------------------------------------------- */

static int target_of(struct ob_store *store, const char *reader, struct ob_arena *arena,
		     struct ob_str *ret_target, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_READ, "moving a reader");
	size_t target = OB_SQL_ADD(&q, reader_target, OB_ARG_TEXT("reader", reader));
	int r = ob_sql_commit(&q, err);
	struct ob_sql_rows rows = ob_sql_rows(&q, target);
	if (r == 0 && !ob_sql_next(&rows))
		r = ob_sql_no_reader(reader, err);
	if (r == 0 && !ob_arena_copy(arena, ob_sql_str(&rows, 0), ret_target))
		r = ob_sql_oom(&q, err);
	return r;
}

/* 1: someone wrote the journal at the same moment: try again. */
static int try_seek(struct ob_store *store, const char *reader, const struct spot *spot,
		    struct ob_err *err)
{
	OB_CLEANUP(ob_sql_table_done) struct ob_sql_table none = OB_SQL_TABLE("i");
	const struct ob_sql_arg args[] = {
		OB_ARG_TEXT("reader", reader),  OB_ARG_INT("all", 1),
		OB_ARG_LIST("numbers", &none),  OB_ARG_INT("pos", spot->pos),
		OB_ARG_STR("seen", spot->seen), { .name = NULL },
	};
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "moving a reader");
	(void)OB_SQL_ADD0(&q, lock_log);
	(void)ob_sql_add(&q, OB_SQL_reader_lock, args);
	/* Without lease rows there would be no epoch to write. */
	(void)ob_sql_add(&q, OB_SQL_seed, args);
	(void)ob_sql_add(&q, OB_SQL_free_leases, args);
	size_t missing = ob_sql_add(&q, OB_SQL_seek, args);
	(void)ob_sql_add(&q, OB_SQL_seek_forget, args);
	(void)ob_sql_add(&q, OB_SQL_seek_exceptions, args);
	int r = ob_sql_flush(&q, err);
	if (r == 0 && ob_sql_value(&q, missing) > 0)
		return 1;
	return ob_sql_end(&q, r, err);
}

int ob_sql_op_reader_seek(struct ob_store *store, const char *reader, const struct ob_place *place,
			  struct ob_err *err)
{
	OB_CLEANUP(ob_arena_done) struct ob_arena arena = OB_ARENA_INIT(NAME_MAX_BYTES);
	struct ob_str target;
	struct spot spot;
	int tries = 0, r = target_of(store, reader, &arena, &target, err);

	if (r < 0)
		return r;
	r = find_place(store, target, place, &spot, err);
	if (r == 0) {
		do
			r = try_seek(store, reader, &spot, err);
		while (++tries < SEEK_TRIES &&
		       (r > 0 || (r < 0 && ob_sql_again(store, tries, err))));
	}
	ob_buf_done(&spot.text);
	if (r > 0)
		r = ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
			       "moving reader '%s': its workers keep writing the journal", reader);
	return r;
}

/* ---- removing -------------------------------------------------------- */

const enum ob_sql_id ob_sql_removal[] = {
	OB_SQL_remove_leases,  OB_SQL_remove_workers, OB_SQL_remove_exceptions,
	OB_SQL_remove_batches, OB_SQL_remove_reader,
};
const size_t ob_sql_removal_count = sizeof(ob_sql_removal) / sizeof(ob_sql_removal[0]);

static int try_remove(struct ob_store *store, const char *reader, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "removing a reader");
	size_t busy = OB_SQL_ADD(&q, reader_busy, OB_ARG_TEXT("reader", reader));
	int r = ob_sql_flush(&q, err);
	struct ob_sql_rows rows = ob_sql_rows(&q, busy);
	if (r == 0 && !ob_sql_next(&rows))
		r = ob_sql_no_reader(reader, err);
	if (r == 0 && ob_sql_int(&rows, 0) > 0)
		r = ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
			       "reader '%.100s' has %lld workers: stop them first", reader,
			       (long long)ob_sql_int(&rows, 0));
	for (size_t i = 0; i < ob_sql_removal_count && r == 0; i++)
		(void)ob_sql_add(&q, ob_sql_removal[i], OB_ARGS(OB_ARG_TEXT("reader", reader)));
	return ob_sql_end(&q, r, err);
}

int ob_sql_op_reader_remove(struct ob_store *store, const char *reader, struct ob_err *err)
{
	int tries = 0, r;

	do
		r = try_remove(store, reader, err);
	while (r < 0 && ob_sql_again(store, ++tries, err));
	return r;
}
