/* SPDX-License-Identifier: MIT */
/* The MySQL store: progress of a whole reader, as the journal has it. */
#include "store/mysql/reach.h"
#include "base/cleanup.h"
#include "store/mysql/gaps.h"

#include "sql_mysql.h"

/* A row of the templates reach and reach_before: partition_no, at, pos, seen. */
static int add_row(struct my_reach *reach, const struct my_packet *p, struct ob_err *err)
{
	int64_t at_us = my_time(p, 1), pos = my_int(p, 2);
	struct ob_str seen = my_str(p, 3);
	struct ob_gaps gaps = { 0 };
	bool ok = ob_gaps_parse(&gaps, seen.p ? seen : OB_STR("")) &&
		  ob_gaps_merge(&reach->gaps, &gaps);

	ob_gaps_done(&gaps);
	if (!ok)
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
				  "a gap list of the journal cannot be read");
	if (reach->rows == 0 || pos < reach->low)
		reach->low = pos;
	if (reach->rows == 0 || pos > reach->high)
		reach->high = pos;
	if (at_us > reach->moved_us)
		reach->moved_us = at_us;
	reach->rows++;
	return 0;
}

int my_reach_read(struct my_store *s, struct ob_str reader, int64_t age_us,
		  struct my_reach *ret_reach, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	struct my_reach reach = { 0 };

	my_packet_init(&p, s, "reading the journal");
	(void)MY_ADD(&p, age_us < 0 ? sql_mysql_reach : sql_mysql_reach_before,
		     OB_ARG_STR("reader", reader), OB_ARG_INT("age", age_us));
	int r = my_packet_run(&p, err);
	for (my_use(&p, 0); r == 0 && my_step(&p);)
		r = add_row(&reach, &p, err);
	/* A partition that is farther on has gaps up there too: they are above `low` anyway. */
	if (r == 0 && reach.rows && !ob_gaps_remove(&reach.gaps, reach.low + 1, INT64_MAX - 1))
		r = my_gaps_full(s, err);
	if (r < 0) {
		my_reach_done(&reach);
		return r;
	}
	*ret_reach = reach;
	return 0;
}

void my_reach_done(struct my_reach *reach)
{
	ob_gaps_done(&reach->gaps);
}
