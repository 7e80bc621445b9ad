/* SPDX-License-Identifier: MIT */
/* Gap lists as SQL, and finding the numbers that are missing from the log. */
#include "store/mysql/gaps.h"
#include "base/cleanup.h"
#include "store/mysql/proof.h"

#include "sql_mysql.h"

#include <inttypes.h>

enum { SCAN_STEP = 100000, SCAN_GAPS = OB_GAPS_MAX / 2 };

int my_gaps_full(struct my_store *s, struct ob_err *err)
{
	char place[256];

	return ob_err_set(
		err, OUTBOX_ESTORE, OB_ERR_DOWN,
		"%s: more than %d numbers of the log are missing and may still appear: end "
		"the statements that have been running for long, and grant this user PROCESS",
		my_place(s, place), OB_GAPS_MAX);
}

static void add_condition(const char *column, const struct ob_gaps *gaps, size_t first,
			  size_t count, struct ob_buf *out)
{
	bool any = false;

	for (size_t i = first; i < first + count; i++) {
		const struct ob_gap *range = &gaps->ranges[i];

		if (range->high - range->low < 4)
			continue;
		ob_buf_addf(out, "%s%s BETWEEN %" PRId64 " AND %" PRId64, any ? " OR " : "", column,
			    range->low, range->high);
		any = true;
	}
	ob_buf_addf(out, "%s%s IN (", any ? " OR " : "", column);
	any = false;
	for (size_t i = first; i < first + count; i++) {
		const struct ob_gap *range = &gaps->ranges[i];

		if (range->high - range->low >= 4)
			continue;
		for (int64_t n = range->low; n <= range->high; n++) {
			ob_buf_addf(out, "%s%" PRId64, any ? "," : "", n);
			any = true;
		}
	}
	ob_buf_adds(out, any ? ")" : "-1)");
}

void my_gaps_where(const struct my_store *s, const struct ob_gaps *gaps, size_t first,
		   struct ob_buf *out)
{
	char column[OB_IDENT_SIZE + 8];
	size_t count = gaps->count - first;

	(void)snprintf(column, sizeof(column), "m.`%s`", s->base.layout->column[OB_COL_seq]);
	add_condition(column, gaps, first, count < MY_GAPS_PIECE ? count : MY_GAPS_PIECE, out);
}

void my_gaps_or(const char *column, const struct ob_gaps *gaps, struct ob_buf *out)
{
	if (gaps->count == 0)
		return;
	ob_buf_adds(out, " OR ");
	add_condition(column, gaps, 0, gaps->count, out);
}

bool my_walk_step(struct my_walk *walk, int64_t seq)
{
	int64_t before = walk->at;

	walk->at = seq;
	return seq <= before + 1 || ob_gaps_add(walk->gaps, before + 1, seq - 1);
}

bool my_walk_end(struct my_walk *walk, int64_t last)
{
	return my_walk_step(walk, last + 1);
}

int my_gaps_scan(struct my_store *s, int64_t last, struct ob_gaps *gaps, struct ob_err *err)
{
	struct my_walk walk = { .gaps = gaps };
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	bool more = true, fits = true;
	int r = 0;

	my_packet_init(&p, s, "reading the numbers of the log");
	while (r == 0 && more && fits) {
		size_t count = 0;

		my_packet_clear(&p);
		(void)MY_ADD(&p, sql_mysql_numbers, OB_ARG_INT("pos", walk.at),
			     OB_ARG_INT("last", last), OB_ARG_INT("limit", SCAN_STEP));
		r = my_packet_run(&p, err);
		for (my_use(&p, 0); r == 0 && fits && my_step(&p); count++)
			fits = my_walk_step(&walk, my_int(&p, 0));
		more = count == SCAN_STEP;
		/* What is dead already need not be carried along. */
		if (r == 0 && gaps->count > SCAN_GAPS)
			r = my_proof_now(s, gaps, last, err);
	}
	if (r == 0 && fits)
		fits = my_walk_end(&walk, last);
	return r < 0 || fits ? r : my_gaps_full(s, err);
}
