/* SPDX-License-Identifier: MIT */
/* Numbers that are used again. */
#include "store/mysql/counter.h"
#include "base/cleanup.h"
#include "store/mysql/gaps.h"
#include "store/mysql/reach.h"
#include "store/mysql/schema.h"

#include "sql_mysql.h"

enum { PACE_US = 1000000 };

/*
 * What is recorded is in the same database. If it, too, is ahead of the counter, the table was
 * emptied, and every row in it is new. Else the server has lost its last transactions: what was
 * recorded is still behind us, what we read since is not.
 */
static int find_reused(struct my_store *s, const struct ob_read *read, int64_t counter, int64_t pos,
		       struct ob_gaps *reused, struct ob_err *err)
{
	struct my_reach reach = { 0 };
	int r = my_reach_read(s, ob_str(read->reader), -1, &reach, err);

	if (r < 0)
		return r;
	int64_t from = reach.high >= counter ? 0 : reach.low;
	bool fits = ob_gaps_merge(reused, &reach.gaps) &&
		    (pos <= from || ob_gaps_add(reused, from + 1, pos));
	my_reach_done(&reach);
	return fits ? 0 : my_gaps_full(s, err);
}

static int64_t highest_pos(const struct ob_read *read)
{
	int64_t pos = 0;

	for (size_t i = 0; i < read->part_count; i++) {
		if (read->parts[i].from.pos > pos)
			pos = read->parts[i].from.pos;
	}
	return pos;
}

int my_counter_check(struct my_store *s, const struct ob_read *read, struct ob_gaps *reused,
		     struct ob_err *err)
{
	int64_t now = ob_clock_boot_us(&ob_clock_system), pos = highest_pos(read), counter;

	if (s->counter_us && now - s->counter_us < PACE_US)
		return 0;
	s->counter_us = now;
	int r = MY_NUMBER(s, "reading the counter of the log", &counter, err, sql_mysql_counter,
			  OB_ARG_TEXT("schema", my_schema(s)),
			  OB_ARG_TEXT("table", s->base.layout->table[OB_TABLE_outbox]));
	if (r < 0 || counter == 0 || counter > pos)
		return r < 0 ? r : 0;
	return find_reused(s, read, counter, pos, reused, err);
}

int my_counter_reconnected(struct my_store *s, const struct ob_read *read, struct ob_gaps *reused,
			   struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int64_t seq = s->last_seq;
	struct ob_uuid id;

	s->last_seq = 0;
	int r = MY_QUERY(&p, s, "looking for the last row", err, sql_mysql_id_of,
			 OB_ARG_INT("seq", seq));
	if (r < 0 ||
	    (my_step(&p) && ob_uuid_scan(my_str(&p, 0), &id) && ob_uuid_eq(&id, &s->last_id)))
		return r;
	/* Removed by retention, it was recorded: then this adds nothing. */
	return find_reused(s, read, INT64_MAX, highest_pos(read), reused, err);
}
