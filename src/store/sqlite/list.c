/* SPDX-License-Identifier: MIT */
/*
 * Filters of the SQLite store, and listing. A filter's SQL is put together from templates and
 * prepared each time: people ask, not the relay. First the numbers of the rows, then each row.
 */
#include "store/sqlite/list.h"

#include "base/cleanup.h"
#include "store/sqlite/reader.h"
#include "store/sqlite/row.h"
#include "store/sqlite/stmt.h"

#include "sql_sqlite.h"

enum { PICK_MAX = 64 * 1024 };

/* Views that only an exception gives, and those that rows above the position may have too. */
enum {
	EXCEPTED = 1 << OB_VIEW_FAILED | 1 << OB_VIEW_DEAD | 1 << OB_VIEW_DISCARDED,
	WAITING = EXCEPTED | 1 << OB_VIEW_PENDING | 1 << OB_VIEW_DELAYED | 1 << OB_VIEW_PARKED,
};

/* ---- a filter -------------------------------------------------------- */

static int add_conditions(const struct lite_store *s, const struct ob_filter *filter,
			  struct ob_buf *sql, struct ob_err *err)
{
	const struct {
		bool set;
		const char *tmpl;
	} parts[] = {
		{ filter->id, sql_sqlite_and_id },
		{ filter->after_seq > 0 && !filter->newest_first, sql_sqlite_and_after },
		{ filter->after_seq > 0 && filter->newest_first, sql_sqlite_and_before },
		{ filter->key, sql_sqlite_and_key },
		{ filter->aggregate_type, sql_sqlite_and_aggregate_type },
		{ filter->aggregate_id, sql_sqlite_and_aggregate_id },
		{ filter->event_type, sql_sqlite_and_event_type },
		{ filter->views, sql_sqlite_and_view },
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++) {
		if (parts[i].set)
			r = lite_expand(s->base.layout, parts[i].tmpl, 0, sql, err);
	}
	return r;
}

/* The log is walked as a whole only for what may stand anywhere in it: published rows. */
static int build(const struct lite_store *s, const struct ob_filter *filter, struct ob_buf *sql,
		 struct ob_err *err)
{
	bool any = !filter->views || filter->views & ~(unsigned)WAITING || filter->id ||
		   !filter->reader;
	bool excepted = !any && !(filter->views & ~(unsigned)EXCEPTED);
	const struct ob_layout *layout = s->base.layout;
	int r = 0;

	if (!any)
		r = lite_expand(layout, sql_sqlite_pick_exceptions, 0, sql, err);
	if (!any && r == 0)
		r = add_conditions(s, filter, sql, err);
	if (!any && !excepted && r == 0)
		r = lite_expand(layout, sql_sqlite_union, 0, sql, err);
	if (!excepted && r == 0)
		r = lite_expand(layout, sql_sqlite_pick_log, 0, sql, err);
	if (!any && !excepted && r == 0)
		r = lite_expand(layout, sql_sqlite_and_pending, 0, sql, err);
	if (!excepted && r == 0)
		r = add_conditions(s, filter, sql, err);
	return r < 0 ? r
		     : lite_expand(layout,
				   filter->newest_first ? sql_sqlite_newest_first
							: sql_sqlite_oldest_first,
				   0, sql, err);
}

/* ",pending,failed,": as and_view wants it. */
static void list_views(unsigned views, struct ob_buf *out)
{
	for (int v = 0; v < OB_VIEW_COUNT; v++) {
		if (views & 1U << v)
			ob_buf_addf(out, ",%s", ob_view_name((enum ob_view)v));
	}
	ob_buf_addc(out, ',');
}

int lite_pick(struct lite_store *s, const struct ob_filter *filter, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(PICK_MAX);
	struct ob_buf views = OB_BUF_INIT(sizeof(s->pick_views));
	int64_t low = 0;
	int r = build(s, filter, &sql, err);

	lite_pick_done(s);
	if (r == 0 && filter->reader)
		r = lite_reader_low(s, filter->reader, &low, err);
	if (r < 0)
		return r;
	int code = sqlite3_prepare_v2(s->db, ob_buf_str(&sql), -1, &s->pick, NULL);
	if (code != SQLITE_OK)
		return lite_err(s, code, err);
	list_views(filter->views, &views);
	(void)snprintf(s->pick_views, sizeof(s->pick_views), "%s", ob_buf_str(&views));
	ob_buf_done(&views);
	struct ob_sql_arg id = OB_ARG_TEXT("id", NULL);
	if (filter->id)
		id = lite_id_arg(s, filter->id, s->pick_id);
	return lite_bind_args(
		s, s->pick,
		OB_ARGS(OB_ARG_TEXT("reader", filter->reader), id, OB_ARG_TEXT("key", filter->key),
			OB_ARG_TEXT("views", s->pick_views),
			OB_ARG_TEXT("aggregate_type", filter->aggregate_type),
			OB_ARG_TEXT("aggregate_id", filter->aggregate_id),
			OB_ARG_TEXT("event_type", filter->event_type), OB_ARG_INT("low", low),
			OB_ARG_INT("after", filter->after_seq),
			OB_ARG_INT("limit", filter->limit ? (int64_t)filter->limit : -1)),
		err);
}

int lite_pick_next(struct lite_store *s, struct ob_verb_row *ret_row, struct ob_err *err)
{
	int code = sqlite3_step(s->pick);

	if (code == SQLITE_DONE)
		return 0;
	if (code != SQLITE_ROW)
		return lite_err(s, code, err);
	*ret_row = (struct ob_verb_row){
		.seq = sqlite3_column_int64(s->pick, 0),
		.partition = (uint32_t)sqlite3_column_int64(s->pick, 1),
		.excepted = sqlite3_column_int(s->pick, 2),
		.state = (enum ob_state)sqlite3_column_int(s->pick, 3),
		.attempts = (uint32_t)sqlite3_column_int64(s->pick, 4),
		.queue = lite_str(s->pick, 5),
		.covered = sqlite3_column_int(s->pick, 6),
	};
	return 1;
}

void lite_pick_done(struct lite_store *s)
{
	(void)sqlite3_finalize(s->pick);
	s->pick = NULL;
}

/* ---- listing --------------------------------------------------------- */

static int list_row(struct lite_store *s, const char *reader, int64_t seq, struct ob_batch *batch,
		    struct ob_err *err)
{
	struct ob_message *ignored;
	int r = lite_bind(s, LITE_list_row,
			  OB_ARGS(OB_ARG_TEXT("reader", reader), OB_ARG_INT("seq", seq)), err);

	if (r == 0)
		r = lite_step(s, LITE_list_row, err);
	if (r > 0)
		r = lite_row_add(s, s->stmt[LITE_list_row], true, batch, &ignored, err);
	lite_reset(s, LITE_list_row);
	return r;
}

int lite_list(struct ob_store *store, const struct ob_filter *filter, struct ob_batch *batch,
	      int64_t *ret_now_us, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct ob_verb_row row = { 0 };
	int r = lite_begin_read(s, "listing", err);

	if (r < 0)
		return r;
	r = lite_pick(s, filter, err);
	while (r >= 0 && (r = lite_pick_next(s, &row, err)) > 0)
		r = list_row(s, filter->reader, row.seq, batch, err);
	lite_pick_done(s);
	r = lite_end_read(s, r, err);
	if (r < 0)
		return r;
	*ret_now_us = s->now;
	return 0;
}
