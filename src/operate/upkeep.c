/* SPDX-License-Identifier: MIT */
/* What retention did, may do next, and what holds it back. */
#include "base/when.h"
#include "operate/maintain.h"

#include <inttypes.h>

/* The first or the last row of the log. */
static int find_end(struct ob_store *store, bool newest, int64_t *ret_seq, int64_t *ret_us,
		    struct ob_err *err)
{
	const struct ob_filter filter = { .newest_first = newest, .limit = 1, .brief = true };
	struct ob_batch batch;
	int64_t now_us;

	ob_batch_init(&batch);
	int r = ob_store_list(store, &filter, &batch, &now_us, err);
	*ret_seq = r == 0 && batch.count ? batch.messages[0].seq : 0;
	*ret_us = r == 0 && batch.count ? batch.messages[0].created_at_us : 0;
	ob_batch_done(&batch);
	return r;
}

static void find_holder(struct ob_upkeep *u, const struct ob_snapshot *s)
{
	const struct ob_snapshot_row *holder = NULL;

	for (size_t i = 0; i < s->count; i++) {
		const struct ob_snapshot_row *row = &s->rows[i];

		if (!holder || row->reader.held_seq < holder->reader.held_seq)
			holder = row;
		if (row->sink.retained_us > u->last_us) {
			u->last_us = row->sink.retained_us;
			u->last_rows = row->sink.retained_rows;
			u->last_parts = row->sink.retained_parts;
		}
	}
	/* Without a reader nothing may go. */
	u->free_to = !holder                                   ? 0
		     : holder->reader.held_seq > u->newest_seq ? u->newest_seq
							       : holder->reader.held_seq - 1;
	if (!holder || holder->reader.held_seq > u->newest_seq)
		return;
	u->held_by = holder->reader.name.p;
	u->held_left = holder->reader.workers == 0;
}

int ob_upkeep_find(struct ob_upkeep *ret, struct ob_store *store,
		   const struct ob_snapshot *snapshot, const struct ob_config_retention *retention,
		   struct ob_err *err)
{
	struct ob_upkeep u = { .published_ms = retention->published_ms,
			       .dead_ms = retention->dead_ms,
			       .every_ms = retention->every_ms };
	int64_t ignored;
	int r = find_end(store, false, &u.oldest_seq, &u.oldest_us, err);

	if (r == 0)
		r = find_end(store, true, &u.newest_seq, &ignored, err);
	if (r < 0)
		return r;
	find_holder(&u, snapshot);
	*ret = u;
	return 0;
}

static void add_rule(const struct ob_upkeep *u, struct ob_buf *out)
{
	char age[OB_WHEN_SIZE];

	if (u->published_ms == OB_NEVER_MS) {
		ob_buf_adds(out, "retention removes nothing: published is 'never'");
		return;
	}
	ob_when_age(u->published_ms * 1000, age);
	ob_buf_addf(out, "retention removes rows that every reader passed more than %s ago", age);
	if (u->every_ms <= 0)
		ob_buf_adds(out,
			    ", but no relay does it ('every' is never): run 'outbox maintain'");
}

static void add_next(const struct ob_upkeep *u, int64_t now_us, struct ob_buf *out)
{
	char age[OB_WHEN_SIZE];

	if (!u->oldest_seq) {
		ob_buf_adds(out, "; the log is empty");
		return;
	}
	ob_when_age(now_us - u->oldest_us, age);
	ob_buf_addf(out, "; the oldest row is number %" PRId64 ", %s old", u->oldest_seq, age);
	if (u->published_ms == OB_NEVER_MS)
		return;
	if (u->free_to >= u->oldest_seq)
		ob_buf_addf(out, "; rows up to number %" PRId64 " may go once they are old enough",
			    u->free_to);
	if (u->held_by)
		ob_buf_addf(out, "; reader %s holds back rows from number %" PRId64 " on%s",
			    u->held_by, u->free_to + 1, u->held_left ? ", and nobody runs it" : "");
}

void ob_upkeep_text(const struct ob_upkeep *u, int64_t now_us, struct ob_buf *out)
{
	char age[OB_WHEN_SIZE];

	add_rule(u, out);
	add_next(u, now_us, out);
	if (u->last_us) {
		ob_when_age(now_us - u->last_us, age);
		ob_buf_addf(out, "; a relay's last pass ended %s ago and removed %" PRIu64 " rows",
			    age, u->last_rows);
		if (u->last_parts)
			ob_buf_addf(out, " and %" PRIu64 " table partitions", u->last_parts);
	}
}

static void duration_json(struct ob_jout *j, const char *key, int64_t ms)
{
	if (ms == OB_NEVER_MS)
		ob_jout_raw(j, key, OB_STR("null"));
	else
		ob_jout_int(j, key, ms);
}

void ob_upkeep_json(struct ob_jout *j, const struct ob_upkeep *u)
{
	ob_jout_begin(j, "retention", '{');
	duration_json(j, "published_ms", u->published_ms);
	duration_json(j, "dead_ms", u->dead_ms);
	duration_json(j, "every_ms", u->every_ms);
	ob_jout_int(j, "oldest", u->oldest_seq);
	ob_jout_when(j, "oldest_at", u->oldest_us);
	ob_jout_int(j, "newest", u->newest_seq);
	ob_jout_int(j, "free_to", u->free_to);
	ob_jout_text(j, "held_by", u->held_by ? ob_str(u->held_by) : OB_STR_NULL);
	ob_jout_bool(j, "held_by_nobody", u->held_left);
	ob_jout_when(j, "last_at", u->last_us);
	ob_jout_int(j, "last_rows", (int64_t)u->last_rows);
	ob_jout_int(j, "last_partitions", (int64_t)u->last_parts);
	ob_jout_end(j, '}');
}
