/* SPDX-License-Identifier: MIT */
/*
 * Filters of the SQLite store: the rows that match, by the index that knows
 * them. A filter's SQL is put together from templates and prepared each time:
 * people ask, not the relay.
 */
#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "store/sqlite.h"

#include "sql_sqlite.h"

enum { PICK_MAX = 16 * 1024, PICK_PARTS = 12 };

enum {
	WAITING = 1 << OB_VIEW_PENDING | 1 << OB_VIEW_DELAYED,
	TROUBLED = 1 << OB_VIEW_FAILED | 1 << OB_VIEW_PARKED | 1 << OB_VIEW_DEAD,
	CLAIMED = 1 << OB_VIEW_PROCESSING,
};

/* An index is named only when every row that can match is in it. */
static const char *head_of(const struct ob_filter *filter)
{
	if (filter->id)
		return sql_sqlite_pick_id;
	if (filter->views && !(filter->views & ~(unsigned)WAITING))
		return sql_sqlite_pick_waiting;
	if (filter->views && !(filter->views & ~(unsigned)TROUBLED))
		return sql_sqlite_pick_exceptions;
	if (filter->views == CLAIMED)
		return sql_sqlite_pick_claims;
	return sql_sqlite_pick_any;
}

static int build(const struct lite_store *s, const struct ob_filter *filter, struct ob_buf *sql,
		 struct ob_err *err)
{
	const char *after = !filter->after_seq     ? NULL
			    : filter->newest_first ? sql_sqlite_and_before
						   : sql_sqlite_and_after;
	const char *const parts[PICK_PARTS] = {
		head_of(filter),
		filter->target ? sql_sqlite_and_target : NULL,
		filter->views ? sql_sqlite_and_view : NULL,
		filter->key ? sql_sqlite_and_key : NULL,
		filter->aggregate_type ? sql_sqlite_and_aggregate_type : NULL,
		filter->aggregate_id ? sql_sqlite_and_aggregate_id : NULL,
		filter->event_type ? sql_sqlite_and_event_type : NULL,
		after,
		filter->newest_first ? sql_sqlite_newest_first : sql_sqlite_oldest_first,
	};
	int r = 0;

	for (int i = 0; i < PICK_PARTS && r == 0; i++) {
		if (parts[i])
			r = ob_sqltmpl_expand(sql, parts[i], s->base.layout, '"', NULL, err);
	}
	return r;
}

int lite_pick(struct lite_store *s, const struct ob_filter *filter, int64_t now_us,
	      struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(PICK_MAX);
	int r = build(s, filter, &sql, err);

	lite_pick_done(s);
	if (r < 0)
		return r;
	int code = sqlite3_prepare_v2(s->db, ob_buf_str(&sql), -1, &s->pick, NULL);
	if (code != SQLITE_OK)
		return lite_err(s, code, "looking for rows", err);
	if (filter->id)
		lite_bind_id(s, s->pick, filter->id, s->pick_id);
	lite_bind_text(s->pick, ":target", filter->target);
	lite_bind_text(s->pick, ":key", filter->key);
	lite_bind_text(s->pick, ":aggregate_type", filter->aggregate_type);
	lite_bind_text(s->pick, ":aggregate_id", filter->aggregate_id);
	lite_bind_text(s->pick, ":event_type", filter->event_type);
	lite_bind_int(s->pick, ":views", filter->views);
	lite_bind_int(s->pick, ":now", now_us);
	lite_bind_int(s->pick, ":after", filter->after_seq);
	lite_bind_int(s->pick, ":limit", filter->limit ? (int64_t)filter->limit : -1);
	return 0;
}

int lite_pick_next(struct lite_store *s, int64_t now_us, struct lite_pick *ret_pick,
		   struct ob_err *err)
{
	int code = sqlite3_step(s->pick);

	if (code == SQLITE_DONE)
		return 0;
	if (code != SQLITE_ROW)
		return lite_err(s, code, "looking for rows", err);
	*ret_pick = (struct lite_pick){
		.seq = sqlite3_column_int64(s->pick, 0),
		.state = (enum ob_state)sqlite3_column_int(s->pick, 1),
		.claimed = sqlite3_column_int64(s->pick, 2) > now_us,
	};
	return 1;
}

void lite_pick_done(struct lite_store *s)
{
	(void)sqlite3_finalize(s->pick);
	s->pick = NULL;
}
