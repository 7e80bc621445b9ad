/* SPDX-License-Identifier: MIT */
/* The memory store: which rows a progress covers, in each of the three ways of telling. */
#include "doubles/memory_store_impl.h"

#include <assert.h>
#include <inttypes.h>

static struct ob_str text_of(const struct ob_seen *seen)
{
	return seen ? (struct ob_str){ seen->text, seen->size } : OB_STR_NULL;
}

bool mem_progress_covers(const struct ob_progress *progress, const struct mem_row *row)
{
	struct ob_cover cover;

	(void)ob_cover_open(&cover, progress);
	bool covers = ob_cover_has(&cover, row->m.seq, row->txid);
	ob_cover_close(&cover);
	return covers;
}

static int compare_txids(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* As pg_current_snapshot(): xmax lies above the last transaction that has ended. */
static void format_snapshot(const struct ob_memdb *db, struct ob_buf *out)
{
	uint64_t open[64], xmin = db->ended_txid + 1;
	size_t count = 0;

	for (const struct mem_store *s = db->stores; s; s = s->next) {
		if (s->txid > 0 && s->txid <= db->ended_txid) {
			assert(count < sizeof(open) / sizeof(open[0]));
			open[count++] = s->txid;
		}
	}
	qsort(open, count, sizeof(open[0]), compare_txids);
	if (count > 0)
		xmin = open[0];
	ob_buf_addf(out, "%" PRIu64 ":%" PRIu64 ":", xmin, db->ended_txid + 1);
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(out, "%s%" PRIu64, i ? "," : "", open[i]);
}

/* Numbers of transactions that are open. One that rolled back has no row: proven dead. */
static void format_gaps(const struct ob_memdb *db, int64_t pos, struct ob_buf *out)
{
	struct ob_gaps gaps = { 0 };

	for (size_t i = 0; i < db->row_count && db->rows[i]->m.seq <= pos; i++) {
		if (db->rows[i]->writer &&
		    !ob_gaps_add(&gaps, db->rows[i]->m.seq, db->rows[i]->m.seq))
			abort();
	}
	ob_gaps_format(&gaps, out);
	ob_gaps_done(&gaps);
}

struct ob_seen *mem_seen_now(const struct ob_memdb *db, int64_t pos)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT(1 << 20);

	if (db->conf.kind == OB_MEMDB_SNAPSHOT)
		format_snapshot(db, &text);
	else if (db->conf.kind == OB_MEMDB_GAPS)
		format_gaps(db, pos, &text);
	if (text.len == 0)
		return NULL;
	struct ob_seen *seen = ob_seen_new(ob_buf_view(&text));
	if (!seen)
		abort();
	return seen;
}

static struct ob_seen *copy_seen(const struct ob_seen *seen)
{
	struct ob_seen *copy = seen ? ob_seen_new(text_of(seen)) : NULL;

	if (seen && !copy)
		abort();
	return copy;
}

void mem_progress_copy(struct ob_progress *to, const struct ob_progress *from)
{
	*to = *from;
	to->seen = copy_seen(from->seen);
	to->late_seen = copy_seen(from->late_seen);
}

static size_t count_open(const struct ob_snapshot *snapshot)
{
	size_t count = snapshot->xip_size > 0;

	for (size_t i = 0; i < snapshot->xip_size; i++)
		count += snapshot->xip[i] == ',';
	return count;
}

/* Of two snapshots of one database one shows all that the other shows. */
static bool is_older(const struct ob_snapshot *a, const struct ob_snapshot *b)
{
	return a->xmax != b->xmax ? a->xmax < b->xmax : count_open(a) > count_open(b);
}

void mem_progress_older(const struct ob_memdb *db, struct ob_progress *oldest,
			const struct ob_progress *other)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT(1 << 20);
	struct ob_cover a, b;
	struct ob_seen *seen;

	(void)ob_cover_open(&a, oldest);
	(void)ob_cover_open(&b, other);
	if (db->conf.kind == OB_MEMDB_SNAPSHOT) {
		seen = copy_seen(is_older(&b.seen, &a.seen) ? other->seen : oldest->seen);
	} else {
		if (!ob_gaps_merge(&a.gaps, &b.gaps))
			abort();
		ob_gaps_format(&a.gaps, &text);
		seen = text.len > 0 ? ob_seen_new(ob_buf_view(&text)) : NULL;
	}
	ob_cover_close(&a);
	ob_cover_close(&b);

	int64_t pos = oldest->pos < other->pos ? oldest->pos : other->pos;
	ob_progress_done(oldest);
	*oldest = (struct ob_progress){ .pos = pos, .seen = seen };
}

int64_t mem_end(const struct ob_memdb *db)
{
	for (size_t i = db->row_count; i-- > 0;) {
		if (!db->rows[i]->writer)
			return db->rows[i]->m.seq;
	}
	return 0;
}
