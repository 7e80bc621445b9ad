/* SPDX-License-Identifier: MIT */
/* Reading rows of the log into messages. */
#include "store/mysql/message.h"

/* How a column becomes a member: by the word in the column's line. */
#define GET_INT(m, member, p, col)  ((m)->member = (__typeof__((m)->member))my_int(p, col))
#define GET_TIME(m, member, p, col) ((m)->member = my_time(p, col))
#define GET_STR(m, member, p, col)  ((m)->member = my_str(p, col))
#define GET_UUID(m, member, p, col) (has_id = ob_uuid_scan(my_str(p, col), &(m)->member))

int my_read_message(const struct my_packet *p, struct ob_message *ret_message, struct ob_err *err)
{
	bool has_id = false;
	char place[256];

	*ret_message = (struct ob_message){ 0 };
#define X(member, how) GET_##how(ret_message, member, p, OB_SQL_COL_##member);
	OB_SQL_MESSAGE_MAP(X)
#undef X
	if (has_id)
		return 0;
	return ob_err_set(
		err, OUTBOX_ESTORE, OB_ERR_FATAL,
		"%s: the id of the row with %s %lld is no UUID; correct or delete the row",
		my_place(p->s, place), p->s->base.layout->column[OB_COL_seq],
		(long long)ret_message->seq);
}

int my_add_message(struct ob_batch *batch, const struct ob_message *from, struct ob_err *err)
{
	struct ob_message *to = ob_batch_add(batch);

	if (!to)
		return my_oom("reading rows", err);
	*to = *from;
	return ob_batch_own(batch, to) ? 0 : my_oom("reading rows", err);
}
