/* SPDX-License-Identifier: MIT */
/* The MySQL store: the progress of a place in the log. */
#include "store/mysql/place.h"
#include "store/mysql/gaps.h"
#include "store/mysql/proof.h"

#include "sql_mysql.h"

/* The last number, with those below it that may still appear. */
static int find_end(struct my_store *s, int64_t *pos, struct ob_gaps *gaps, struct ob_err *err)
{
	int r = my_number(s, "looking for a place in the log", sql_mysql_last_number, OB_NO_ARGS,
			  pos, err);

	if (r >= 0)
		r = my_gaps_scan(s, *pos, gaps, err);
	return r < 0 ? r : my_proof_now(s, gaps, *pos, err);
}

/* Before the first row that was created since then; without one, the end. */
static int find_time(struct my_store *s, int64_t at, int64_t *pos, struct ob_gaps *gaps,
		     struct ob_err *err)
{
	int64_t first = 0;
	int r = find_end(s, pos, gaps, err);

	if (r == 0)
		r = MY_NUMBER(s, "looking for a place in the log", &first, err,
			      sql_mysql_first_created_since, OB_ARG_INT("at", at));
	if (r <= 0 || first <= 0 || first > *pos)
		return r;
	*pos = first - 1;
	return ob_gaps_remove(gaps, first, INT64_MAX - 1) ? 0 : my_gaps_full(s, err);
}

int my_find_place(struct my_store *s, const struct ob_place *place, int64_t *ret_pos,
		  struct ob_gaps *gaps, struct ob_err *err)
{
	int64_t pos = 0;
	int r = 0;

	switch (place->start) {
	case OB_START_BEGINNING:
		break;
	case OB_START_SEQ:
		pos = place->at > 0 ? place->at - 1 : 0;
		break;
	case OB_START_END:
		r = find_end(s, &pos, gaps, err);
		break;
	case OB_START_TIME:
		r = find_time(s, place->at, &pos, gaps, err);
		break;
	}
	if (r < 0)
		return r;
	*ret_pos = pos;
	return 0;
}
