/* SPDX-License-Identifier: MIT */
/* Readers of the PostgreSQL store: making, listing, moving and removing them. */
#include "store/postgres/readers.h"

#include "store/postgres/driver.h"
#include "store/postgres/ops.h"
#include "store/postgres/stmt.h"

enum { SEEK_TRIES = 20 };

/* $1 to $4 of reader_make and seek. */
static void place_params(struct pg_params *p, struct ob_str name, struct ob_str target,
			 const struct ob_place *place)
{
	pg_str(p, name);
	pg_str(p, target);
	pg_int(p, place->start);
	pg_int(p, place->at);
}

static int other_target(const struct ob_reader *reader, struct ob_str found, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "reader '%.*s' reads target '%.*s', not '%.*s': give this one another "
			  "name, or remove it with `outbox readers remove`",
			  (int)reader->name.n, reader->name.p, (int)found.n, found.p,
			  (int)reader->target.n, reader->target.p);
}

int pg_reader_make(struct ob_store *store, const struct ob_reader *reader,
		   const struct ob_place *place, bool *ret_made, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params make = { 0 }, name = { 0 };

	s->unlimited = place->start == OB_START_TIME; /* the log is walked up to then */
	int r = pg_begin(s, err);
	place_params(&make, reader->name, reader->target, place);
	pg_str(&make, reader->filter.p ? reader->filter : OB_STR(""));
	pg_int(&make, reader->temporary);
	pg_str(&name, reader->name);
	if (r == 0)
		r = pg_add(s, PG_lock_log, NULL, err);
	if (r == 0)
		r = pg_add(s, PG_reader_make, &make, err);
	if (r == 0)
		r = pg_add(s, PG_reader_target, &name, err);
	r = pg_finish(s, r, err);
	s->unlimited = false;
	if (r == 0) {
		struct ob_str target = pg_get_str(s->results[2], 0, 0);

		*ret_made = pg_changed(s->results[1]) > 0;
		if (!ob_str_eq(target, reader->target))
			r = other_target(reader, target, err);
	}
	pg_clear(s);
	return r;
}

static bool read_reader(const PGresult *found, int row, struct ob_arena *arena, void *reader)
{
	struct ob_reader *to = reader;

	to->temporary = pg_get_int(found, row, 3) != 0;
	to->created_at_us = pg_get_time(found, row, 4);
	to->low_pos = pg_get_int(found, row, 5);
	to->high_pos = pg_get_int(found, row, 6);
	to->moved_at_us = pg_get_time(found, row, 7);
	to->workers = (uint32_t)pg_get_int(found, row, 8);
	to->exceptions = (uint64_t)pg_get_int(found, row, 9);
	to->held_seq = to->low_pos + 1;
	return ob_arena_copy(arena, pg_get_str(found, row, 0), &to->name) &&
	       ob_arena_copy(arena, pg_get_str(found, row, 1), &to->target) &&
	       ob_arena_copy(arena, pg_get_str(found, row, 2), &to->filter);
}

int pg_readers(struct ob_store *store, struct ob_arena *arena, struct ob_reader **ret_readers,
	       size_t *ret_count, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	int r = pg_run_one(s, PG_readers, NULL, err);
	if (r < 0)
		return r;
	*ret_readers = pg_collect(s, 0, read_reader, sizeof(**ret_readers), arena, ret_count);
	return *ret_readers ? 0 : pg_oom("reading rows", err);
}

int pg_no_reader(const char *reader, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
			  "no reader '%s': `outbox readers list` names those that there are",
			  reader);
}

/* ---- seek ------------------------------------------------------------ */

/* 1: someone wrote the journal at the same moment: try again. */
static int seek(struct pg_store *s, const char *reader, const struct ob_place *place,
		struct ob_err *err)
{
	struct pg_params name = { 0 }, at = { 0 };
	int r = pg_add(s, PG_lock_log, NULL, err);

	pg_text(&name, reader);
	if (r == 0)
		r = pg_add(s, PG_reader_target, &name, err);
	/* Without lease rows there would be no epoch to write. */
	if (r == 0)
		r = pg_driver.add(&s->base, OB_SQL_seed, OB_ARGS(OB_ARG_TEXT("reader", reader)),
				  err);
	if (r == 0)
		r = pg_ask(s, PG_seek_leases, &name, err);
	if (r < 0)
		return r;
	if (PQntuples(s->results[1]) == 0)
		return pg_no_reader(reader, err);
	place_params(&at, ob_str(reader), pg_get_str(s->results[1], 0, 0), place);
	r = pg_add(s, PG_seek, &at, err);
	if (r == 0)
		r = pg_add(s, PG_seek_journal, &name, err);
	if (r == 0)
		r = pg_ask(s, PG_seek_exceptions, &name, err);
	return r < 0 ? r : pg_get_int(s->results[0], 0, 0) > 0;
}

int pg_reader_seek(struct ob_store *store, const char *reader, const struct ob_place *place,
		   struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	int r = 1;

	s->unlimited = place->start == OB_START_TIME;
	for (int tries = 0; r > 0; tries++) {
		if (tries == SEEK_TRIES) {
			r = ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
				       "moving reader '%s': its workers keep writing the journal",
				       reader);
			break;
		}
		r = pg_begin(s, err);
		if (r == 0)
			r = seek(s, reader, place, err);
		if (r > 0)
			pg_rollback(s);
		else
			r = pg_finish(s, r, err);
	}
	s->unlimited = false;
	pg_clear(s);
	return r;
}

/* ---- remove ---------------------------------------------------------- */

static int remove_reader(struct pg_store *s, const char *reader, struct ob_err *err)
{
	struct pg_params name = { 0 };

	pg_text(&name, reader);
	int r = pg_ask(s, PG_reader_busy, &name, err);
	if (r < 0)
		return r;
	if (pg_get_int(s->results[0], 0, 0) == 0)
		return pg_no_reader(reader, err);
	if (pg_get_int(s->results[0], 0, 1) > 0)
		return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
				  "reader '%s' has workers: stop them first", reader);
	return pg_add(s, PG_reader_remove, &name, err);
}

int pg_reader_remove(struct ob_store *store, const char *reader, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	int r = pg_begin(s, err);

	if (r == 0)
		r = pg_finish(s, remove_reader(s, reader, err), err);
	pg_clear(s);
	return r;
}
