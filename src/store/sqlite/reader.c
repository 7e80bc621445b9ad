/* SPDX-License-Identifier: MIT */
/* Readers of the SQLite store: making, listing, moving and removing them. */
#include "store/sqlite/reader.h"

#include "base/cleanup.h"
#include "store/sqlite/journal.h"
#include "store/sqlite/stmt.h"

#include <inttypes.h>

enum { NAMES_MAX = 1 << 16 };

/* Run a statement about a reader; 0 on success. */
static int run_for(struct lite_store *s, int id, const char *reader, int64_t pos,
		   struct ob_err *err)
{
	int r = lite_run(s, id, OB_ARGS(OB_ARG_TEXT("reader", reader), OB_ARG_INT("pos", pos)),
			 err);

	return r < 0 ? r : 0;
}

/* ---- a place in the log ---------------------------------------------- */

/*
 * The position before a place. Runs without the write lock: a search by time reads much. Rows that
 * are committed afterwards have higher numbers. A place after the end is the end.
 */
static int find_place(struct lite_store *s, const struct ob_place *place, int64_t *ret_pos,
		      struct ob_err *err)
{
	int64_t first = place->start == OB_START_SEQ ? place->at : INT64_MAX;
	int r = lite_begin_read(s, "finding a place in the log", err);

	if (r < 0)
		return r;
	r = lite_log_end(s, ret_pos, err);
	if (r == 0 && place->start == OB_START_TIME) {
		r = lite_value(s, LITE_place_by_time, OB_ARGS(OB_ARG_INT("at", place->at)), &first,
			       err);
		first = r > 0 ? first : INT64_MAX;
	}
	if (place->start == OB_START_BEGINNING || first < 1)
		*ret_pos = 0;
	else if (first <= *ret_pos)
		*ret_pos = first - 1;
	r = lite_end_read(s, r, err);
	return r < 0 ? r : 0;
}

/* ---- making ---------------------------------------------------------- */

/* 1: it is there, and reads that target; 0: it is not. */
static int find_reader(struct lite_store *s, const struct ob_reader *reader, struct ob_err *err)
{
	int r = lite_bind(s, LITE_reader_get, OB_ARGS(OB_ARG_STR("reader", reader->name)), err);

	if (r == 0)
		r = lite_step(s, LITE_reader_get, err);
	if (r <= 0)
		return r;
	struct ob_str target = lite_str(s->stmt[LITE_reader_get], 0);
	if (!ob_str_eq(target, reader->target))
		r = ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			       "reader '%.*s' reads target '%s', not '%.*s': give this one another "
			       "name, or remove that one",
			       (int)reader->name.n, reader->name.p, target.p, (int)reader->target.n,
			       reader->target.p);
	lite_reset(s, LITE_reader_get);
	return r;
}

static int make_reader(struct lite_store *s, const struct ob_reader *reader, int64_t pos,
		       struct ob_err *err)
{
	int r = lite_run(
		s, LITE_reader_add,
		OB_ARGS(OB_ARG_STR("reader", reader->name), OB_ARG_STR("target", reader->target),
			OB_ARG_STR("filter", reader->filter.p ? reader->filter : OB_STR("")),
			OB_ARG_INT("temporary", reader->temporary)),
		err);

	if (r >= 0)
		r = lite_run(s, LITE_reader_begin,
			     OB_ARGS(OB_ARG_STR("reader", reader->name), OB_ARG_INT("pos", pos)),
			     err);
	return r;
}

int lite_reader_make(struct ob_store *store, const struct ob_reader *reader,
		     const struct ob_place *place, bool *ret_made, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int64_t pos = 0;
	int r = find_place(s, place, &pos, err);

	if (r == 0)
		r = lite_begin(s, "making a reader", err);
	if (r < 0)
		return r;
	int found = find_reader(s, reader, err);
	r = lite_end(s, found == 0 ? make_reader(s, reader, pos, err) : found, err);
	if (r < 0)
		return r;
	*ret_made = found == 0;
	return 0;
}

/* ---- listing --------------------------------------------------------- */

static bool read_reader(sqlite3_stmt *stmt, struct ob_arena *arena, struct ob_reader *to)
{
	if (!to || !ob_arena_copy(arena, lite_str(stmt, 0), &to->name) ||
	    !ob_arena_copy(arena, lite_str(stmt, 1), &to->target) ||
	    !ob_arena_copy(arena, lite_str(stmt, 2), &to->filter))
		return false;
	to->temporary = sqlite3_column_int(stmt, 3);
	to->created_at_us = sqlite3_column_int64(stmt, 4);
	to->low_pos = sqlite3_column_int64(stmt, 5);
	to->high_pos = sqlite3_column_int64(stmt, 6);
	to->moved_at_us = sqlite3_column_int64(stmt, 7);
	to->workers = (uint32_t)sqlite3_column_int64(stmt, 8);
	to->exceptions = (uint64_t)sqlite3_column_int64(stmt, 9);
	to->held_seq = to->low_pos + 1;
	return true;
}

int lite_reader_list(struct lite_store *s, const char *reader, struct ob_arena *arena,
		     struct ob_reader **ret_readers, size_t *ret_count, struct ob_err *err)
{
	struct lite_rows rows = { .arena = arena, .size = sizeof(struct ob_reader) };
	int r = lite_bind(s, LITE_readers, OB_ARGS(OB_ARG_TEXT("reader", reader)), err);

	while (r >= 0 && (r = lite_step(s, LITE_readers, err)) > 0) {
		if (!read_reader(s->stmt[LITE_readers], arena, lite_rows_add(&rows)))
			r = lite_oom(s, err);
	}
	lite_reset(s, LITE_readers);
	*ret_readers = (void *)rows.data;
	*ret_count = rows.count;
	return r;
}

int lite_reader_low(struct lite_store *s, const char *reader, int64_t *ret_pos, struct ob_err *err)
{
	OB_CLEANUP(ob_arena_done) struct ob_arena arena = OB_ARENA_INIT(NAMES_MAX);
	struct ob_reader *readers = NULL;
	size_t count = 0;
	int r = lite_reader_list(s, reader, &arena, &readers, &count, err);

	if (r == 0 && count == 0)
		r = ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "there is no reader '%s'", reader);
	*ret_pos = count ? readers[0].low_pos : 0;
	return r;
}

int lite_readers(struct ob_store *store, struct ob_arena *arena, struct ob_reader **ret_readers,
		 size_t *ret_count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_ready(s, "listing readers", false, err);

	return r < 0 ? r : lite_reader_list(s, NULL, arena, ret_readers, ret_count, err);
}

/* ---- moving and removing --------------------------------------------- */

static int seek(struct lite_store *s, const char *reader, int64_t pos, struct ob_err *err)
{
	int64_t ignored;
	int r = lite_reader_low(s, reader, &ignored, err);
	/* A lease that nobody has made yet takes part, so that the epochs of both agree. */
	if (r == 0)
		r = run_for(s, OB_SQL_seed, reader, 0, err);
	if (r == 0)
		r = lite_run(s, OB_SQL_free_leases,
			     OB_ARGS(OB_ARG_TEXT("reader", reader), OB_ARG_INT("all", 1)), err);
	if (r >= 0)
		r = run_for(s, LITE_seek_journal, reader, pos, err);
	return r < 0 ? r : run_for(s, LITE_seek_exceptions, reader, pos, err);
}

int lite_reader_seek(struct ob_store *store, const char *reader, const struct ob_place *place,
		     struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int64_t pos = 0;
	int r = find_place(s, place, &pos, err);

	if (r == 0)
		r = lite_begin(s, "moving a reader", err);
	return r < 0 ? r : lite_end(s, seek(s, reader, pos, err), err);
}

int lite_reader_forget(struct lite_store *s, const char *reader, struct ob_err *err)
{
	static const int steps[] = { LITE_remove_reader, LITE_remove_batches,
				     LITE_remove_exceptions, LITE_remove_leases,
				     LITE_remove_workers };
	int r = 0;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && r == 0; i++)
		r = run_for(s, steps[i], reader, 0, err);
	return r;
}

static int remove_idle(struct lite_store *s, const char *reader, struct ob_err *err)
{
	int64_t workers = 0, ignored;
	int r = lite_reader_low(s, reader, &ignored, err);

	if (r == 0)
		r = lite_value(s, LITE_busy_workers, OB_ARGS(OB_ARG_TEXT("reader", reader)),
			       &workers, err);
	if (r >= 0 && workers > 0)
		return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
				  "reader '%s' has %" PRId64
				  " running workers: stop its relays first",
				  reader, workers);
	return r < 0 ? r : lite_reader_forget(s, reader, err);
}

int lite_reader_remove(struct ob_store *store, const char *reader, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_begin(s, "removing a reader", err);

	return r < 0 ? r : lite_end(s, remove_idle(s, reader, err), err);
}
