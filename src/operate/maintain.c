/* SPDX-License-Identifier: MIT */
/* One pass of retention, with or without an archive. */
#include "operate/maintain.h"

#include "base/cleanup.h"
#include "base/count.h"
#include "base/fault.h"
#include "operate/readers.h"

#include <inttypes.h>
#include <poll.h>

/* BUSY_*: how long and how often it is tried while a relay does the same. PAGE: rows with their
 * payloads that are in memory at once. */
enum { HELD_BYTES = 4096, BUSY_MS = 5000, TRY_MS = 100, PAGE = 200, ARENA_MAX = 1 << 20 };

void ob_maintained_init(struct ob_maintained *done)
{
	*done = (struct ob_maintained){ .held_by = OB_BUF_INIT(HELD_BYTES) };
}

void ob_maintained_done(struct ob_maintained *done)
{
	ob_buf_done(&done->held_by);
}

/* ---- without an archive ---------------------------------------------- */

/* One call; while a relay holds the lock of retention it is tried again for a while. */
static int remove_batch(struct ob_store *store, const struct ob_retain *rule,
			struct ob_maintained *done, bool *ret_more, struct ob_err *err)
{
	OB_CLEANUP(ob_arena_done) struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_retained one = { 0 };
	int r = 0;

	for (int waited = 0; waited <= BUSY_MS; waited += TRY_MS) {
		r = ob_store_retain(store, rule, &arena, &one, err);
		if (r < 0 || !one.busy)
			break;
		(void)poll(NULL, 0, TRY_MS);
	}
	if (r < 0)
		return r;
	done->busy = one.busy;
	done->rows += one.rows;
	done->dead += one.dead;
	done->parts_made += one.parts_made;
	done->parts_dropped += one.parts_dropped;
	done->batches += one.rows + one.dead > 0;
	if (!one.busy) {
		ob_buf_clear(&done->held_by);
		ob_buf_add(&done->held_by, one.held_by);
		done->held_us = one.held_us;
	}
	*ret_more = one.more && !one.busy;
	return 0;
}

/* ---- with one -------------------------------------------------------- */

struct archiving {
	struct ob_store *store;
	const struct ob_maintain *maintain;
	struct ob_maintained *done;
	struct ob_readers readers;
	int64_t held_seq;     /* nothing from here on may go */
	struct ob_batch page; /* with payloads */
	struct ob_batch seen; /* as one reader sees them */
	bool has_reader[PAGE], stays[PAGE];
	int64_t gone[PAGE];
	size_t gone_count;
};

/* Which rows of the page must stay because of this reader. */
static int judge_page(struct archiving *a, const struct ob_reader *reader, int64_t after,
		      struct ob_err *err)
{
	struct ob_filter filter = { .reader = ob_readers_text(&a->readers, reader->name),
				    .after_seq = after,
				    .limit = a->page.count,
				    .brief = true };
	int64_t now_us = 0;
	uint32_t at = 0;

	if (!filter.reader)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	int r = ob_store_list(a->store, &filter, &a->seen, &now_us, err);
	int64_t age_us = a->maintain->rule.published_ms * 1000;
	for (uint32_t i = 0; r == 0 && i < a->page.count; i++) {
		const struct ob_message *row = &a->page.messages[i];

		if (!ob_str_eq(row->target, reader->target))
			continue;
		while (at < a->seen.count && a->seen.messages[at].seq < row->seq)
			at++;
		bool found = at < a->seen.count && a->seen.messages[at].seq == row->seq;
		const struct ob_message *m = found ? &a->seen.messages[at] : NULL;

		a->has_reader[i] = true;
		a->stays[i] = a->stays[i] || !m || m->view != OB_VIEW_PUBLISHED || m->excepted ||
			      m->published_at_us > now_us - age_us;
	}
	return r;
}

/* Onto the disk first, then out of the log: a crash in between leaves them in both. */
static int move_page(struct archiving *a, struct ob_err *err)
{
	struct ob_retain rule = a->maintain->rule;
	bool more;
	int r = 0;

	a->gone_count = 0;
	for (uint32_t i = 0; r == 0 && i < a->page.count; i++) {
		const struct ob_message *row = &a->page.messages[i];

		if (a->stays[i] || !a->has_reader[i] || row->seq >= a->held_seq)
			continue;
		a->gone[a->gone_count++] = row->seq;
		r = ob_archive_add(a->maintain->archive, row, err);
	}
	if (r < 0 || a->gone_count == 0)
		return r;
	(void)OB_FAULT("archive.before_sync");
	r = ob_archive_sync(a->maintain->archive, err);
	if (r < 0)
		return r;
	(void)OB_FAULT("archive.synced");
	a->done->archived += a->gone_count;
	rule.only = a->gone;
	rule.only_count = a->gone_count;
	if (rule.limit < PAGE)
		rule.limit = PAGE;
	return remove_batch(a->store, &rule, a->done, &more, err);
}

static int archive_page(struct archiving *a, int64_t *after, bool *ret_more, struct ob_err *err)
{
	struct ob_filter filter = { .after_seq = *after, .limit = PAGE };
	int64_t now_us;
	int r = ob_store_list(a->store, &filter, &a->page, &now_us, err);

	*ret_more = false;
	if (r < 0 || a->page.count == 0)
		return r;
	memset(a->stays, 0, sizeof(a->stays));
	memset(a->has_reader, 0, sizeof(a->has_reader));
	for (size_t i = 0; r == 0 && i < a->readers.count; i++)
		r = judge_page(a, &a->readers.list[i], *after, err);
	*after = a->page.messages[a->page.count - 1].seq;
	*ret_more = a->page.count == PAGE && *after < a->held_seq;
	return r < 0 ? r : move_page(a, err);
}

/* Dead messages that may be forgotten, the journal, table partitions: no row of the log. */
static int tidy(struct archiving *a, struct ob_err *err)
{
	struct ob_retain rule = a->maintain->rule;
	bool more;

	rule.only = a->gone;
	rule.only_count = 0;
	return remove_batch(a->store, &rule, a->done, &more, err);
}

static int archive_all(struct archiving *a, struct ob_err *err)
{
	int64_t after = 0;
	bool more = a->maintain->rule.published_ms != OB_NEVER_MS;
	int r = tidy(a, err);

	a->held_seq = INT64_MAX;
	if (r == 0)
		r = ob_readers_load(&a->readers, a->store, err);
	for (size_t i = 0; r == 0 && i < a->readers.count; i++) {
		if (a->readers.list[i].held_seq < a->held_seq)
			a->held_seq = a->readers.list[i].held_seq;
	}
	while (r == 0 && more && !a->done->busy)
		r = archive_page(a, &after, &more, err);
	return r;
}

static int run_archive(struct ob_store *store, const struct ob_maintain *maintain,
		       struct ob_maintained *done, struct ob_err *err)
{
	struct archiving *a = calloc(1, sizeof(*a));

	if (!a)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	*a = (struct archiving){ .store = store, .maintain = maintain, .done = done };
	ob_batch_init(&a->page);
	ob_batch_init(&a->seen);
	int r = archive_all(a, err);
	ob_batch_done(&a->page);
	ob_batch_done(&a->seen);
	ob_readers_done(&a->readers);
	free(a);
	return r;
}

/* ---- both ------------------------------------------------------------ */

int ob_maintain_run(struct ob_store *store, const struct ob_maintain *maintain,
		    struct ob_maintained *done, struct ob_err *err)
{
	bool more = true;
	int r = 0;

	if (maintain->archive)
		return run_archive(store, maintain, done, err);
	while (r == 0 && more)
		r = remove_batch(store, &maintain->rule, done, &more, err);
	return r;
}

static void add_parts(const char *verb, uint64_t count, struct ob_buf *out)
{
	if (!count)
		return;
	ob_buf_addf(out, ", %s ", verb);
	ob_count_add(out, count, "table partition");
}

void ob_maintained_text(const struct ob_maintained *done, struct ob_buf *out)
{
	ob_buf_adds(out, "removed ");
	ob_count_add(out, done->rows, "row");
	if (done->archived) {
		ob_buf_adds(out, ", archived ");
		ob_count_add(out, done->archived, "row");
	}
	if (done->dead) {
		ob_buf_adds(out, " and forgot ");
		ob_count_add(out, done->dead, "dead message");
	}
	add_parts("dropped", done->parts_dropped, out);
	add_parts("made", done->parts_made, out);
}

void ob_maintained_json(struct ob_jout *j, const struct ob_maintained *done)
{
	ob_jout_int(j, "rows", (int64_t)done->rows);
	ob_jout_int(j, "dead", (int64_t)done->dead);
	ob_jout_int(j, "batches", (int64_t)done->batches);
	ob_jout_int(j, "archived", (int64_t)done->archived);
	ob_jout_int(j, "partitions_made", (int64_t)done->parts_made);
	ob_jout_int(j, "partitions_dropped", (int64_t)done->parts_dropped);
	ob_jout_text(j, "held_by", done->held_by.len ? ob_buf_view(&done->held_by) : OB_STR_NULL);
	ob_jout_when(j, "held_since", done->held_by.len ? done->held_us : 0);
}
