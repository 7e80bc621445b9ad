/* SPDX-License-Identifier: MIT */
/* By ids, by a group of failures, by a filter: it always ends in a list of ids. */
#include "operate/plan.h"

#include "operate/failures.h"
#include "operate/readers.h"

#include <stdlib.h>

enum { PAGE = 1000, SHOWN_IDS = 50 };

static int out_of_memory(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
}

/* ---- the set --------------------------------------------------------- */

static int too_many(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
			  "more than %d messages: narrow the filter, or use the command line",
			  OB_PLAN_MAX);
}

static int add_id(struct ob_plan_set *set, const struct ob_uuid *id, struct ob_err *err)
{
	if (set->count == OB_PLAN_MAX)
		return too_many(err);
	if (set->count == set->room) {
		size_t room = set->room ? set->room * 2 : 256;
		struct ob_uuid *more = reallocarray(set->ids, room, sizeof(*more));

		if (!more)
			return out_of_memory(err);
		set->ids = more;
		set->room = room;
	}
	set->ids[set->count++] = *id;
	for (size_t i = 0; i < sizeof(id->b); i++)
		set->hash = (set->hash ^ id->b[i]) * UINT64_C(1099511628211);
	return 0;
}

static int add_message(struct ob_plan_set *set, enum ob_verb verb, const struct ob_message *m,
		       struct ob_err *err)
{
	if (!ob_verb_allows(verb, m)) {
		set->refused++;
		return 0;
	}
	if (set->sample.count < OB_PLAN_SAMPLE) {
		struct ob_message *copy = ob_batch_add(&set->sample);

		if (!copy)
			return out_of_memory(err);
		*copy = *m;
		if (!ob_batch_own(&set->sample, copy))
			return out_of_memory(err);
	}
	return add_id(set, &m->id, err);
}

static int collect_ids(struct ob_plan_set *set, struct ob_store *store,
		       const struct ob_plan_ask *ask, const struct ob_uuid *ids, size_t count,
		       bool must_be, struct ob_err *err)
{
	char text[OB_UUID_TEXT_SIZE];
	struct ob_batch batch;
	int r = 0;

	ob_batch_init(&batch);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct ob_filter filter = {
			.reader = ask->reader, .id = &ids[i], .limit = 1, .brief = true
		};

		r = ob_store_list(store, &filter, &batch, &set->now_us, err);
		ob_uuid_format(&ids[i], text);
		if (r == 0 && batch.count)
			r = add_message(set, ask->verb, &batch.messages[0], err);
		else if (r == 0 && must_be)
			r = ob_err_set(err, OUTBOX_ENOTFOUND, OB_ERR_FATAL,
				       "no message %s among those of reader %s", text, ask->reader);
	}
	ob_batch_done(&batch);
	return r;
}

static int collect_filter(struct ob_plan_set *set, struct ob_store *store,
			  const struct ob_plan_ask *ask, struct ob_err *err)
{
	struct ob_filter page = *ask->filter;
	struct ob_batch batch;
	int r;

	page.reader = ask->reader;
	page.views = page.views ? page.views : ob_verb_rules[ask->verb].usual;
	page.after_seq = 0;
	page.newest_first = false;
	page.limit = PAGE;
	page.brief = true;
	ob_batch_init(&batch);
	do {
		r = ob_store_list(store, &page, &batch, &set->now_us, err);
		for (uint32_t i = 0; r == 0 && i < batch.count; i++) {
			page.after_seq = batch.messages[i].seq;
			r = add_message(set, ask->verb, &batch.messages[i], err);
		}
	} while (r == 0 && batch.count == PAGE);
	ob_batch_done(&batch);
	return r;
}

static int collect_group(struct ob_plan_set *set, struct ob_store *store,
			 const struct ob_config *config, const struct ob_plan_ask *ask,
			 struct ob_err *err)
{
	int by = ob_failures_by_of(ask->group);
	struct ob_failures failures = { 0 };

	if (by < 0)
		return ob_err_set(err, OUTBOX_ENOTFOUND, OB_ERR_FATAL, "no group '%.60s'",
				  ask->group);
	const struct ob_failures_ask what = { .by = (enum ob_failures_by)by,
					      .reader = ask->reader,
					      .ids = true };
	int r = ob_failures_take(&failures, store, config, &what, err);
	const struct ob_failure_group *group =
		r == 0 ? ob_failures_find(&failures, ask->group) : NULL;
	if (group)
		r = collect_ids(set, store, ask, group->ids, group->failed + group->dead, false,
				err);
	/* A group whose messages have all gone out is empty, not unknown. */
	ob_failures_done(&failures);
	return r;
}

int ob_plan_collect(struct ob_plan_set *set, struct ob_store *store, const struct ob_config *config,
		    const struct ob_plan_ask *ask, struct ob_err *err)
{
	*set = (struct ob_plan_set){ .hash = UINT64_C(14695981039346656037) };
	ob_batch_init(&set->sample);
	if (ask->group)
		return collect_group(set, store, config, ask, err);
	if (ask->filter)
		return collect_filter(set, store, ask, err);
	return collect_ids(set, store, ask, ask->ids, ask->id_count, true, err);
}

void ob_plan_set_done(struct ob_plan_set *set)
{
	ob_batch_done(&set->sample);
	free(set->ids);
	set->ids = NULL;
}

/* ---- as words -------------------------------------------------------- */

/* As a shell reads it. */
static void add_word(struct ob_buf *out, const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789_./:@%+,-";

	ob_buf_addc(out, ' ');
	if (*word && word[strspn(word, plain)] == '\0') {
		ob_buf_adds(out, word);
		return;
	}
	ob_buf_addc(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			ob_buf_adds(out, "'\\''");
		else
			ob_buf_addc(out, *word);
	}
	ob_buf_addc(out, '\'');
}

static void add_option(struct ob_buf *out, const char *name, const char *value)
{
	if (!value)
		return;
	ob_buf_adds(out, name);
	add_word(out, value);
}

static void add_ids(struct ob_buf *out, const struct ob_plan_set *set)
{
	char id[OB_UUID_TEXT_SIZE];

	for (size_t i = 0; i < set->count && i < SHOWN_IDS; i++) {
		ob_uuid_format(&set->ids[i], id);
		add_word(out, id);
	}
	if (set->count > SHOWN_IDS)
		ob_buf_addf(out, "  # and %zu more", set->count - SHOWN_IDS);
}

void ob_plan_command(const struct ob_plan_ask *ask, const struct ob_plan_set *set,
		     const char *store, struct ob_buf *out)
{
	const struct ob_filter *f = ask->filter;
	struct ob_buf states = OB_BUF_INIT(200);

	ob_buf_adds(out, "outbox");
	add_option(out, " --store", store);
	ob_buf_addf(out, " %s", ob_verb_rules[ask->verb].name);
	add_option(out, " --reader", ask->reader);
	/* What the command line has no filter for is told by ids. */
	if (!f || f->correlation_id || f->error) {
		add_ids(out, set);
		return;
	}
	for (int view = 0; view < OB_VIEW_COUNT; view++) {
		if (f->views & 1U << view)
			ob_buf_addf(&states, "%s%s", states.len ? "," : "",
				    ob_view_name((enum ob_view)view));
	}
	add_option(out, " --state", states.len ? ob_buf_str(&states) : NULL);
	add_option(out, " --key", f->key);
	add_option(out, " --type", f->aggregate_type);
	add_option(out, " --aggregate", f->aggregate_id);
	add_option(out, " --event", f->event_type);
	if (!f->views && !f->key && !f->aggregate_type && !f->aggregate_id && !f->event_type)
		ob_buf_adds(out, " --all");
	ob_buf_done(&states);
}

void ob_plan_scope(const struct ob_plan_ask *ask, struct ob_buf *out)
{
	const struct ob_filter *f = ask->filter;

	if (ask->group) {
		ob_buf_addf(out, "group %s", ask->group);
		return;
	}
	if (!f) {
		ob_buf_addf(out, "%zu ids", ask->id_count);
		return;
	}
	const struct {
		const char *name, *value;
	} rows[] = {
		{ "key", f->key },
		{ "type", f->aggregate_type },
		{ "aggregate", f->aggregate_id },
		{ "event", f->event_type },
		{ "correlation", f->correlation_id },
		{ "error", f->error },
	};
	ob_buf_adds(out, "state ");
	ob_views_text(f->views ? f->views : ob_verb_rules[ask->verb].usual, "or", out);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].value)
			ob_buf_addf(out, ", %s %s", rows[i].name, rows[i].value);
	}
}
