/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store: recording. The journal rows of all partitions are one INSERT; where a number is
 * taken it inserts nothing. Changes of exceptions go with it in the same packet, from START
 * TRANSACTION to COMMIT, and concern only partitions whose row is ours: a process that is stopped
 * in the middle holds no lock, for there is no middle.
 */
#include "store/mysql/settle.h"
#include "base/cleanup.h"
#include "store/mysql/change.h"

#include "sql_mysql.h"

#include <inttypes.h>

enum { JSON_MAX = 256 << 20 };

/* One settle while it runs. */
struct settling {
	struct ob_settle *settle;
	struct ob_buf parts; /* the JSON list of the template settle_parts */
	struct ob_buf seens; /* the gap lists of all parts, each once, as SQL */
};

/* Most parts share one gap list: each is sent once, and named by its number. 0: none. */
static size_t add_seen(struct settling *g, size_t part, size_t *count)
{
	const struct ob_settle_part *parts = g->settle->parts;
	size_t number = 0;

	if (!parts[part].progress.seen)
		return 0;
	/* As the one before, mostly. */
	if (part > 0 && *count > 0 &&
	    (parts[part].progress.seen == parts[part - 1].progress.seen ||
	     ob_seen_equal(parts[part].progress.seen, parts[part - 1].progress.seen)))
		return *count;
	number = ++*count;
	/* Digits, commas and hyphens only. */
	ob_buf_addf(&g->seens, "%s'%s'", number > 1 ? "," : "", parts[part].progress.seen->text);
	return number;
}

static void add_parts(struct settling *g)
{
	const struct ob_settle *settle = g->settle;
	size_t seens = 0;

	for (size_t i = 0; i < settle->part_count; i++) {
		const struct ob_settle_part *part = &settle->parts[i];
		size_t seen = add_seen(g, i, &seens);

		ob_buf_addf(&g->parts, "%c[%u,%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%u,%u,%zu]",
			    i ? ',' : '[', part->partition, part->batch, part->epoch,
			    part->progress.pos, part->published, part->failed, seen);
	}
	ob_buf_addc(&g->parts, ']');
}

static size_t add_statement(struct my_packet *p, const struct settling *g, const char *tmpl)
{
	return MY_ADD(p, tmpl, OB_ARG_TEXT("reader", g->settle->reader),
		      OB_ARG_UUID("owner", &g->settle->owner),
		      OB_ARG_STR("parts", ob_buf_view(&g->parts)),
		      OB_ARG_RAW("seens", my_list(&g->seens)));
}

static struct ob_settle_part *find_part(struct ob_settle *settle, uint32_t partition)
{
	for (size_t i = 0; i < settle->part_count; i++) {
		if (settle->parts[i].partition == partition)
			return &settle->parts[i];
	}
	return NULL;
}

/* Rows of the template settled. */
static void judge_parts(struct my_packet *p, size_t statement, struct ob_settle *settle)
{
	for (my_use(p, statement); my_step(p);) {
		struct ob_settle_part *part = find_part(settle, (uint32_t)my_int(p, 0));

		if (!part)
			continue;
		if ((uint64_t)my_int(p, 3) != part->epoch) {
			part->settled = OB_SETTLE_LOST;
		} else if (my_int(p, 1)) {
			part->settled = OB_SETTLED;
		} else {
			part->settled = OB_SETTLE_MOVED;
			part->batch = (uint64_t)my_int(p, 2);
		}
	}
}

/* Without changes: one statement. Only if it did not insert every row, which ones are ours? */
static int settle_plain(struct my_packet *p, struct settling *g, struct ob_err *err)
{
	struct ob_settle *settle = g->settle;

	(void)add_statement(p, g, sql_mysql_settle);
	int r = my_packet_run(p, err);
	if (r < 0)
		return r;
	bool all = my_changed(p, 0) == settle->part_count;
	for (size_t i = 0; i < settle->part_count; i++)
		settle->parts[i].settled = all ? OB_SETTLED : OB_SETTLE_LOST;
	if (all)
		return 0;
	my_packet_clear(p);
	p->writes = false;
	(void)add_statement(p, g, sql_mysql_settled);
	r = my_packet_run(p, err);
	if (r == 0)
		judge_parts(p, 0, settle);
	return r;
}

static int settle_changes(struct my_packet *p, struct settling *g, struct ob_err *err)
{
	struct ob_settle *settle = g->settle;
	const struct my_changes changes = {
		.reader = settle->reader,
		.changes = settle->changes,
		.change_count = settle->change_count,
		.promotes = settle->promotes,
		.promote_count = settle->promote_count,
	};

	(void)MY_ADD0(p, sql_mysql_begin_write);
	(void)add_statement(p, g, sql_mysql_settle);
	(void)add_statement(p, g, sql_mysql_settle_won);
	my_changes_add(p, &changes);
	size_t settled = add_statement(p, g, sql_mysql_settled);
	(void)MY_ADD0(p, sql_mysql_commit);
	int r = my_packet_run(p, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < settle->part_count; i++)
		settle->parts[i].settled = OB_SETTLE_LOST;
	judge_parts(p, settled, settle);
	return 0;
}

int my_settle(struct ob_store *store, struct ob_settle *settle, struct ob_err *err)
{
	struct settling g = { settle, OB_BUF_INIT(JSON_MAX), OB_BUF_INIT(JSON_MAX) };
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int r;

	add_parts(&g);
	my_packet_init(&p, (struct my_store *)store, "settling");
	p.writes = true;
	if (g.parts.failed || g.seens.failed)
		r = my_oom("settling", err);
	else if (settle->change_count || settle->promote_count)
		r = settle_changes(&p, &g, err);
	else
		r = settle_plain(&p, &g, err);
	ob_buf_done(&g.parts);
	ob_buf_done(&g.seens);
	return r;
}
