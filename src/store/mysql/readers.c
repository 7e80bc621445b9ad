/* SPDX-License-Identifier: MIT */
/* The MySQL store: making, listing, moving and removing readers. */
#include "base/cleanup.h"
#include "store/mysql/gaps.h"
#include "store/mysql/journal.h"
#include "store/mysql/proof.h"
#include "store/mysql/schema.h"
#include "store/mysql/tx.h"

#include "sql_mysql.h"

enum { LIST_MAX = 1 << 20, SEEN_MAX = 64 << 20 };

static const struct ob_uuid nobody = { 0 };

/* ---- places ---------------------------------------------------------- */

/* A position with its gaps. */
struct spot {
	int64_t pos;
	struct ob_gaps gaps;
	struct ob_buf seen; /* the gaps as text */
};

static void spot_done(struct spot *spot)
{
	ob_gaps_done(&spot->gaps);
	ob_buf_done(&spot->seen);
}

/* The last number, with those below it that may still appear. */
static int find_end(struct my_store *s, struct spot *spot, struct ob_err *err)
{
	int r = my_number(s, "looking for a place in the log", sql_mysql_last_number, OB_NO_ARGS,
			  &spot->pos, err);

	if (r >= 0)
		r = my_gaps_scan(s, spot->pos, &spot->gaps, err);
	return r < 0 ? r : my_proof_now(s, &spot->gaps, spot->pos, err);
}

static int find_place(struct my_store *s, const struct ob_place *place, struct spot *ret_spot,
		      struct ob_err *err)
{
	struct spot spot = { .seen = OB_BUF_INIT(SEEN_MAX) };
	int64_t first = 0;
	int r = 0;

	switch (place->start) {
	case OB_START_BEGINNING:
		break;
	case OB_START_SEQ:
		spot.pos = place->at > 0 ? place->at - 1 : 0;
		break;
	case OB_START_END:
		r = find_end(s, &spot, err);
		break;
	case OB_START_TIME:
		r = find_end(s, &spot, err);
		if (r == 0)
			r = MY_NUMBER(s, "looking for a place in the log", &first, err,
				      sql_mysql_first_created_since, OB_ARG_INT("at", place->at));
		if (r > 0 && first > 0 && first <= spot.pos) {
			spot.pos = first - 1;
			if (!ob_gaps_remove(&spot.gaps, first, INT64_MAX - 1))
				r = my_gaps_full(s, err);
		}
		break;
	}
	if (r >= 0)
		ob_gaps_format(&spot.gaps, &spot.seen);
	if (r >= 0 && spot.seen.failed)
		r = my_oom("looking for a place in the log", err);
	if (r < 0) {
		spot_done(&spot);
		return r;
	}
	*ret_spot = spot;
	return 0;
}

/* ---- making ---------------------------------------------------------- */

static int add_reader(struct my_store *s, const struct ob_reader *reader, const struct spot *spot,
		      bool *ret_made, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf parts = OB_BUF_INIT(LIST_MAX);
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int64_t count;
	int r = my_meta(s, "partition_count", &count, err);

	if (r < 0)
		return r;
	my_partition_list(count, &parts);
	my_packet_init(&p, s, "making the reader");
	p.writes = true;
	(void)MY_ADD0(&p, sql_mysql_begin_write);
	size_t made = MY_ADD(&p, sql_mysql_reader_insert, OB_ARG_STR("reader", reader->name),
			     OB_ARG_STR("target", reader->target),
			     OB_ARG_STR("filter", reader->filter.p ? reader->filter : OB_STR("")),
			     OB_ARG_INT("temporary", reader->temporary));
	(void)MY_ADD(&p, sql_mysql_reader_begin, OB_ARG_STR("reader", reader->name),
		     OB_ARG_UUID("owner", &nobody), OB_ARG_INT("pos", spot->pos),
		     OB_ARG_STR("seen", spot->gaps.count ? ob_buf_view(&spot->seen) : OB_STR_NULL),
		     OB_ARG_STR("parts", ob_buf_view(&parts)));
	(void)MY_ADD0(&p, sql_mysql_commit);
	r = my_packet_run(&p, err);
	if (r == 0)
		*ret_made = my_changed(&p, made) == 1;
	return r;
}

/* Is it there, and of this target? 1: yes. */
static int find_reader(struct my_store *s, const struct ob_reader *reader, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, s, "looking for the reader");
	(void)MY_ADD(&p, sql_mysql_reader_target, OB_ARG_STR("reader", reader->name));
	int r = my_packet_run(&p, err);
	my_use(&p, 0);
	if (r == 0)
		r = my_step(&p);
	if (r > 0 && !ob_str_eq(my_str(&p, 0), reader->target))
		r = ob_err_set(
			err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			"reader '%.*s' reads target '%.*s', not '%.*s': give it another name, "
			"or remove it with `outbox readers remove`",
			(int)reader->name.n, reader->name.p, (int)my_str(&p, 0).n, my_str(&p, 0).p,
			(int)reader->target.n, reader->target.p);
	return r;
}

int my_reader_make(struct ob_store *store, const struct ob_reader *reader,
		   const struct ob_place *place, bool *ret_made, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct spot spot;
	bool made = false;
	int r = find_reader(s, reader, err);

	if (r == 0) {
		r = find_place(s, place, &spot, err);
		if (r < 0)
			return r;
		r = add_reader(s, reader, &spot, &made, err);
		spot_done(&spot);
		/* Another may have made it in between. */
		if (r == 0 && !made)
			r = find_reader(s, reader, err);
	}
	if (r >= 0)
		*ret_made = made;
	return r < 0 ? r : 0;
}

/* ---- listing --------------------------------------------------------- */

static bool read_reader(const struct my_packet *p, struct my_rows *rows)
{
	struct ob_reader *reader = my_rows_add(rows);

	if (!reader)
		return false;
	reader->temporary = my_int(p, 3);
	reader->created_at_us = my_time(p, 4);
	reader->workers = (uint32_t)my_int(p, 5);
	return ob_arena_copy(rows->arena, my_str(p, 0), &reader->name) &&
	       ob_arena_copy(rows->arena, my_str(p, 1), &reader->target) &&
	       ob_arena_copy(rows->arena, my_str(p, 2), &reader->filter);
}

static int complete_reader(struct my_store *s, struct ob_reader *reader, struct ob_err *err)
{
	struct my_reach reach;
	int r = my_reach_read(s, reader->name, -1, &reach, err);

	if (r < 0)
		return r;
	reader->low_pos = reach.low;
	reader->high_pos = reach.high;
	reader->moved_at_us = reach.moved_us;
	reader->held_seq = reach.gaps.count ? reach.gaps.ranges[0].low : reach.low + 1;
	my_reach_done(&reach);
	int64_t exceptions;
	r = MY_NUMBER(s, "listing readers", &exceptions, err, sql_mysql_reader_exceptions,
		      OB_ARG_STR("reader", reader->name));
	reader->exceptions = r > 0 ? (uint64_t)exceptions : 0;
	return r < 0 ? r : 0;
}

int my_readers(struct ob_store *store, struct ob_arena *arena, struct ob_reader **ret_readers,
	       size_t *ret_count, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct my_rows rows = { .arena = arena, .size = sizeof(struct ob_reader) };
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, s, "listing readers");
	(void)MY_ADD0(&p, sql_mysql_readers);
	int r = my_packet_run(&p, err);
	for (my_use(&p, 0); r == 0 && my_step(&p);) {
		if (!read_reader(&p, &rows))
			r = my_oom("listing readers", err);
	}
	struct ob_reader *readers = (void *)rows.data;
	for (size_t i = 0; i < rows.count && r == 0; i++)
		r = complete_reader(s, &readers[i], err);
	if (r < 0)
		return r;
	*ret_readers = readers;
	*ret_count = rows.count;
	return 0;
}

/* ---- moving ---------------------------------------------------------- */

int my_no_reader(const char *reader, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
			  "there is no reader '%.100s': `outbox readers list` shows them", reader);
}

struct seeking {
	const char *reader;
	const struct spot *spot;
	struct ob_buf parts;
};

static int seek_work(struct my_store *s, void *arg, struct ob_err *err)
{
	const struct seeking *k = arg;
	OB_CLEANUP(ob_buf_done) struct ob_buf gaps = OB_BUF_INIT(SEEN_MAX);
	int64_t there, epoch = 0;
	const struct ob_sql_arg some[] = { OB_ARG_TEXT("reader", k->reader),
					   OB_ARG_STR("parts", ob_buf_view(&k->parts)),
					   { .name = NULL } };
	int r = my_number(s, "moving the reader", sql_mysql_reader_lock, some, &there, err);

	if (r == 0)
		r = my_no_reader(k->reader, err);
	if (r > 0)
		r = my_number(s, "moving the reader", sql_mysql_highest_epoch, some, &epoch, err);
	if (r < 0)
		return r;
	my_gaps_or("seq", &k->spot->gaps, &gaps);
	const struct ob_sql_arg all[] = {
		OB_ARG_TEXT("reader", k->reader),
		OB_ARG_STR("parts", ob_buf_view(&k->parts)),
		OB_ARG_INT("epoch", epoch + 1),
		OB_ARG_UUID("owner", &nobody),
		OB_ARG_INT("pos", k->spot->pos),
		OB_ARG_STR("seen", k->spot->gaps.count ? ob_buf_view(&k->spot->seen) : OB_STR_NULL),
		OB_ARG_RAW("gaps", ob_buf_str(&gaps)),
		{ .name = NULL },
	};
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, s, "moving the reader");
	(void)my_packet_add(&p, sql_mysql_leases_move, all);
	(void)my_packet_add(&p, sql_mysql_journal_move, all);
	(void)my_packet_add(&p, sql_mysql_exceptions_uncover, all);
	r = my_packet_run(&p, err);
	return r;
}

int my_reader_seek(struct ob_store *store, const char *reader, const struct ob_place *place,
		   struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct spot spot;
	struct seeking k = { .reader = reader, .spot = &spot, .parts = OB_BUF_INIT(LIST_MAX) };
	int64_t count;
	int r = my_meta(s, "partition_count", &count, err);

	if (r == 0)
		r = find_place(s, place, &spot, err);
	if (r < 0)
		return r;
	my_partition_list(count, &k.parts);
	r = my_transact(s, seek_work, &k, err);
	spot_done(&spot);
	ob_buf_done(&k.parts);
	return r;
}

/* ---- removing -------------------------------------------------------- */

int my_reader_delete(struct my_store *s, struct ob_str reader, struct ob_err *err)
{
	static const char *const statements[] = {
		sql_mysql_reader_delete_leases,     sql_mysql_reader_delete_workers,
		sql_mysql_reader_delete_exceptions, sql_mysql_reader_delete_batches,
		sql_mysql_reader_delete_throughput, sql_mysql_reader_delete,
	};
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, s, "removing the reader");
	p.writes = true;
	(void)MY_ADD0(&p, sql_mysql_begin_write);
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
		(void)MY_ADD(&p, statements[i], OB_ARG_STR("reader", reader));
	(void)MY_ADD0(&p, sql_mysql_commit);
	int r = my_packet_run(&p, err);
	return r;
}

int my_reader_remove(struct ob_store *store, const char *reader, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	const struct ob_sql_arg args[] = { OB_ARG_TEXT("reader", reader), { .name = NULL } };
	int64_t there, busy = 0;
	int r = my_number(s, "removing the reader", sql_mysql_reader_target, args, &there, err);

	if (r == 0)
		r = my_no_reader(reader, err);
	if (r > 0)
		r = my_number(s, "removing the reader", sql_mysql_reader_busy, args, &busy, err);
	if (r > 0 && busy > 0)
		r = ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
			       "reader '%.100s' has %lld workers: stop them first", reader,
			       (long long)busy);
	return r < 0 ? r : my_reader_delete(s, ob_str(reader), err);
}
