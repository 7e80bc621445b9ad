/* SPDX-License-Identifier: MIT */
/* What works on a MySQL or MariaDB server, and yet weakens a promise. */
#include "store/mysql.h"

int my_advise(struct ob_store *store, struct ob_buf *out, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct my_query *q;
	int r = my_ready(s, false, err);

	if (r < 0)
		return r;
	r = my_prepare(s, MY_durability, 1, &q, err);
	if (r < 0)
		return r;
	r = my_first(s, q, err);
	if (r < 0)
		return r;
	if (my_int(q, 0) != 1)
		ob_buf_addf(
			out,
			"innodb_flush_log_at_trx_commit is %lld: a message may be sent whose "
			"transaction is lost when the server crashes right after; set it to 1\n",
			(long long)my_int(q, 0));
	if (my_int(q, 1) && my_int(q, 2) != 1)
		ob_buf_addf(out,
			    "sync_binlog is %lld: after a power cut a replica may lack messages "
			    "that were sent; set it to 1\n",
			    (long long)my_int(q, 2));
	return 0;
}
