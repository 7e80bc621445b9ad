/* SPDX-License-Identifier: MIT */
/*
 * Filters and listings of the MySQL store. A filter's SQL is put together from
 * templates and prepared each time: people ask, not the relay.
 */
#include "base/cleanup.h"
#include "store/mysql.h"

#include "sql_mysql.h"

enum { PARTS = 12 };

/* ---- targets --------------------------------------------------------- */

int my_next_target(struct my_store *s, char name[MY_TARGET_SIZE], struct ob_err *err)
{
	struct my_query *q;
	int r = my_prepare(s, MY_next_target, 1, &q, err);

	if (r < 0)
		return r;
	my_bind_text(q, "target", name);
	r = my_first(s, q, err);
	if (r <= 0 || !my_str(q, 0).p)
		return r < 0 ? r : 0;
	(void)snprintf(name, MY_TARGET_SIZE, "%.*s", (int)my_str(q, 0).n, my_str(q, 0).p);
	return 1;
}

int my_targets_read(struct my_store *s, struct my_targets *ret_targets, struct ob_err *err)
{
	char name[MY_TARGET_SIZE] = "";
	int r = 1;

	*ret_targets = (struct my_targets){ .arena = OB_ARENA_INIT(SIZE_MAX / 2) };
	while (r > 0 && (r = my_next_target(s, name, err)) > 0) {
		if (ret_targets->count == MY_LIST_MAX) {
			ret_targets->more = true;
			return 0;
		}
		const char *copy = ob_arena_strdup(&ret_targets->arena, name);
		if (!copy)
			return my_oom("reading the targets", err);
		ret_targets->names[ret_targets->count++] = copy;
	}
	return r;
}

void my_targets_done(struct my_targets *targets)
{
	ob_arena_done(&targets->arena);
}

/* ---- the statement --------------------------------------------------- */

static const unsigned troubled = 1 << OB_VIEW_FAILED | 1 << OB_VIEW_PARKED | 1 << OB_VIEW_DEAD;

/* An index is named only when every row that can match is in its range. */
static const char *where_of(const struct ob_filter *filter, const struct my_targets *targets)
{
	bool listed = filter->target || (targets->count && !targets->more);

	if (filter->id)
		return sql_mysql_where_id;
	if (!listed || !filter->views || (filter->views & (1 << OB_VIEW_PUBLISHED)))
		return sql_mysql_where_any;
	return filter->views & ~troubled ? sql_mysql_where_open : sql_mysql_where_troubled;
}

static int prepare(struct my_store *s, const struct ob_filter *filter, bool pick,
		   const struct my_targets *targets, struct my_query **ret_query,
		   struct ob_err *err)
{
	const char *after = !filter->after_seq     ? NULL
			    : filter->newest_first ? sql_mysql_and_before
						   : sql_mysql_and_after;
	const char *const parts[PARTS] = {
		pick ? sql_mysql_pick_any : sql_mysql_list_any,
		where_of(filter, targets),
		filter->target ? sql_mysql_and_target : NULL,
		filter->views ? sql_mysql_and_view : NULL,
		filter->key ? sql_mysql_and_key : NULL,
		filter->aggregate_type ? sql_mysql_and_aggregate_type : NULL,
		filter->aggregate_id ? sql_mysql_and_aggregate_id : NULL,
		filter->event_type ? sql_mysql_and_event_type : NULL,
		after,
		filter->newest_first ? sql_mysql_newest_first : sql_mysql_oldest_first,
	};

	return my_prepare_parts(s, parts, PARTS, filter->target ? 1 : targets->count, ret_query,
				err);
}

static int run_filter(struct my_store *s, const struct ob_filter *filter,
		      const struct my_targets *targets, struct my_query *q, struct ob_err *err)
{
	char text[OB_UUID_TEXT_SIZE];

	if (filter->id && s->base.layout->string_id) {
		ob_uuid_format(filter->id, text);
		my_bind_text(q, "id", text);
	} else if (filter->id) {
		my_bind_uuid(q, "id", filter->id);
	}
	if (filter->target)
		my_bind_text(q, "targets", filter->target);
	else if (targets->count)
		my_bind_texts(q, "targets", targets->names, targets->count);
	my_bind_text(q, "target", filter->target);
	my_bind_text(q, "key", filter->key);
	my_bind_text(q, "aggregate_type", filter->aggregate_type);
	my_bind_text(q, "aggregate_id", filter->aggregate_id);
	my_bind_text(q, "event_type", filter->event_type);
	my_bind_int(q, "views", filter->views);
	my_bind_int(q, "after", filter->after_seq);
	my_bind_int(q, "limit", filter->limit ? (int64_t)filter->limit : INT64_MAX);
	return my_open(s, q, err);
}

int my_filter(struct my_store *s, const struct ob_filter *filter, bool pick,
	      struct my_query **ret_query, struct ob_err *err)
{
	OB_CLEANUP(my_targets_done) struct my_targets targets = { .count = 0 };
	struct my_query *q = NULL;
	int r = 0;

	if (!filter->target && !filter->id && filter->views)
		r = my_targets_read(s, &targets, err);
	if (r == 0)
		r = prepare(s, filter, pick, &targets, &q, err);
	if (r == 0)
		r = run_filter(s, filter, &targets, q, err);
	if (r < 0) {
		my_query_free(q);
		return r;
	}
	*ret_query = q;
	return 0;
}

/* ---- list ------------------------------------------------------------ */

struct listing {
	const struct ob_filter *filter;
	struct ob_batch *batch;
	int64_t now_us;
};

static int read_list(struct my_store *s, struct my_query *q, struct ob_batch *batch,
		     struct ob_err *err)
{
	struct ob_message m;
	int r;

	while ((r = my_step(s, q, err)) > 0) {
		r = my_read_message(s, q, true, &m, err);
		if (r == 0)
			r = my_add_message(batch, &m, err);
		if (r < 0)
			break;
	}
	return r;
}

static int list_work(struct my_store *s, void *arg, struct ob_err *err)
{
	struct listing *l = arg;
	struct my_query *q;
	int r = my_prepare(s, MY_now, 1, &q, err);

	if (r == 0)
		r = my_first(s, q, err);
	if (r < 0)
		return r;
	l->now_us = my_int(q, 0);
	r = my_filter(s, l->filter, false, &q, err);
	if (r < 0)
		return r;
	r = read_list(s, q, l->batch, err);
	my_query_free(q);
	return r;
}

int my_list(struct ob_store *store, const struct ob_filter *filter, struct ob_batch *batch,
	    int64_t *ret_now_us, struct ob_err *err)
{
	struct listing l = { .filter = filter, .batch = batch };
	int r = my_read((struct my_store *)store, list_work, &l, err);

	if (r < 0) {
		ob_batch_reset(batch);
		return r;
	}
	*ret_now_us = l.now_us;
	return 0;
}
