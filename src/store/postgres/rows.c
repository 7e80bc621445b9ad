/* SPDX-License-Identifier: MIT */
/* Reading messages from results of the PostgreSQL store. */
#include "store/postgres/rows.h"

#include "store/postgres/stmt.h"

/* How a column becomes a member: by the word in the column's line. */
#define GET_INT(m, member, r, row, col) \
	((m)->member = (__typeof__((m)->member))pg_get_int(r, row, col))
#define GET_STR(m, member, r, row, col)  ((m)->member = pg_get_str(r, row, col))
#define GET_TIME(m, member, r, row, col) ((m)->member = pg_get_time(r, row, col))
#define GET_UUID(m, member, r, row, col) (has_id = pg_get_uuid(r, row, col, &(m)->member))

int pg_read_message(const struct pg_store *s, const PGresult *r, int row, struct ob_message *m,
		    struct ob_err *err)
{
	bool has_id = false;

	*m = (struct ob_message){ 0 };
#define X(member, how) GET_##how(m, member, r, row, OB_SQL_COL_##member);
	OB_SQL_MESSAGE_MAP(X)
#undef X
	if (m->available_at_us < 0)
		m->available_at_us = 0;
	if (has_id)
		return 0;
	return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
			  "the id of the row with %s %lld is no UUID; correct or delete the row",
			  s->base.layout->column[OB_COL_seq], (long long)m->seq);
}

int pg_add_message(struct ob_batch *batch, const struct ob_message *from, struct ob_err *err)
{
	struct ob_message *to = ob_batch_add(batch);

	if (!to)
		return pg_oom("reading rows", err);
	*to = *from;
	return ob_batch_own(batch, to) ? 0 : pg_oom("reading rows", err);
}
