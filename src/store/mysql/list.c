/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store: filters and listings. A filter's SQL is put together from templates: from the
 * log, or, where published rows are not asked for, from the exceptions and the end of the log.
 */
#include "store/mysql/list.h"
#include "base/cleanup.h"
#include "store/mysql/gaps.h"
#include "store/mysql/message.h"

#include "sql_mysql.h"

enum { GAPS_MAX = 64 << 20 };

/* Columns after those of a message. */
enum {
	COL_ATTEMPTS = MY_MESSAGE_COLUMNS,
	COL_STATE,
	COL_EXCEPTED,
	COL_PARTITION_KEY,
	COL_SNAPSHOT,
	COL_LAST_ERROR,
	COL_VIEW,
	COL_DUE,
	COL_SINCE,
	COL_PUBLISHED_AT,
};

/* States that only an exception has. */
static const unsigned of_exceptions =
	1 << OB_VIEW_FAILED | 1 << OB_VIEW_DEAD | 1 << OB_VIEW_DISCARDED;

/* One SELECT: a head, where its rows come from, the conditions that are set, an order. */
static void add_select(struct my_packet *p, const struct ob_filter *f, const char *head,
		       const char *from, const char *also, const struct ob_sql_arg *args)
{
	const char *const parts[] = {
		head,
		from,
		also,
		f->views ? sql_mysql_and_view : NULL,
		f->id && from != sql_mysql_from_id ? sql_mysql_and_id : NULL,
		f->key ? sql_mysql_and_key : NULL,
		f->aggregate_type ? sql_mysql_and_aggregate_type : NULL,
		f->aggregate_id ? sql_mysql_and_aggregate_id : NULL,
		f->event_type ? sql_mysql_and_event_type : NULL,
		f->after_seq <= 0 ? NULL
		: f->newest_first ? sql_mysql_and_before
				  : sql_mysql_and_after,
		f->newest_first ? sql_mysql_newest_first : sql_mysql_oldest_first,
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i])
			my_packet_more(p, parts[i], args);
	}
}

static void add_selects(struct my_packet *p, const struct ob_filter *f, const char *head,
			const struct ob_sql_arg *args)
{
	bool published = !f->views || (f->views & (1 << OB_VIEW_PUBLISHED));

	if (!f->reader) {
		add_select(p, f, head, sql_mysql_from_any, NULL, args);
	} else if (f->id) {
		add_select(p, f, head, sql_mysql_from_id, NULL, args);
	} else if (published) {
		add_select(p, f, head, sql_mysql_from_log, NULL, args);
	} else {
		add_select(p, f, head, sql_mysql_from_exceptions, NULL, args);
		if (f->views & ~of_exceptions) {
			ob_buf_adds(&p->text, " UNION ALL ");
			add_select(p, f, head, sql_mysql_from_log, sql_mysql_and_open, args);
		}
	}
	my_packet_more(p, f->newest_first ? sql_mysql_all_newest_first : sql_mysql_all_oldest_first,
		       args);
}

void my_filter_add(struct my_packet *p, const struct ob_filter *f, const struct my_reach *reach,
		   bool pick)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf gaps = OB_BUF_INIT(GAPS_MAX);
	char column[OB_IDENT_SIZE + 8], id[OB_UUID_TEXT_SIZE] = "";
	const bool text = p->s->base.layout->string_id;

	(void)snprintf(column, sizeof(column), "m.`%s`", p->s->base.layout->column[OB_COL_seq]);
	my_gaps_or(column, &reach->gaps, &gaps);
	if (f->id)
		ob_uuid_format(f->id, id);
	const struct ob_sql_arg args[] = {
		OB_ARG_TEXT("reader", f->reader),
		{ .name = "id",
		  .kind = text ? OB_SQL_KIND_TEXT : OB_SQL_KIND_BYTES,
		  .text = !f->id ? OB_STR_NULL
			  : text ? ob_str(id)
				 : (struct ob_str){ (const char *)f->id->b, sizeof(f->id->b) } },
		OB_ARG_INT("views", f->views),
		OB_ARG_TEXT("key", f->key),
		OB_ARG_TEXT("aggregate_type", f->aggregate_type),
		OB_ARG_TEXT("aggregate_id", f->aggregate_id),
		OB_ARG_TEXT("event_type", f->event_type),
		OB_ARG_INT("after", f->after_seq),
		OB_ARG_INT("low", reach->low),
		OB_ARG_RAW("gaps", ob_buf_str(&gaps)),
		OB_ARG_INT("limit", f->limit ? (int64_t)f->limit : INT64_MAX),
		{ .name = NULL },
	};

	(void)my_packet_begin(p);
	add_selects(p, f, pick ? sql_mysql_pick_head : sql_mysql_list_head, args);
}

static int read_listed(struct my_packet *p, struct ob_batch *batch, struct ob_err *err)
{
	struct ob_message m;
	int r = my_read_message(p, &m, err);

	if (r < 0)
		return r;
	m.attempts = (uint32_t)my_int(p, COL_ATTEMPTS);
	m.state = (uint8_t)my_int(p, COL_STATE);
	m.excepted = my_int(p, COL_EXCEPTED);
	m.partition_key = my_str(p, COL_PARTITION_KEY);
	m.snapshot = my_str(p, COL_SNAPSHOT);
	m.last_error = my_str(p, COL_LAST_ERROR);
	m.view = (enum ob_view)my_int(p, COL_VIEW);
	m.due_us = my_time(p, COL_DUE);
	m.since_us = my_time(p, COL_SINCE);
	m.published_at_us = my_time(p, COL_PUBLISHED_AT);
	return my_add_message(batch, &m, err);
}

int my_list_messages(struct ob_store *store, const struct ob_filter *filter, struct ob_batch *batch,
		     int64_t *ret_now_us, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct my_reach reach = { 0 };
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int r = 0;

	if (filter->reader)
		r = my_reach_known(s, filter->reader, &reach, err);
	if (r < 0)
		return r;
	my_packet_init(&p, s, "listing messages");
	size_t now = MY_ADD0(&p, sql_mysql_time);
	my_filter_add(&p, filter, &reach, false);
	r = my_packet_run(&p, err);
	for (my_use(&p, 1); r == 0 && my_step(&p);)
		r = read_listed(&p, batch, err);
	my_use(&p, now);
	if (r == 0 && my_step(&p))
		*ret_now_us = my_time(&p, 0);
	my_reach_done(&reach);
	return r;
}
