/* SPDX-License-Identifier: MIT */
/* What works on a PostgreSQL server, and yet weakens a promise. */
#include "store/postgres/ops.h"
#include "store/postgres/parts.h"
#include "store/postgres/stmt.h"

#include <inttypes.h>

static void advise(const PGresult *result, struct ob_buf *out)
{
	int64_t prepared = pg_get_int(result, 0, 2);

	if (ob_str_eq(pg_get_str(result, 0, 0), OB_STR("off")))
		ob_buf_adds(out,
			    "fsync is off: a power cut may cost committed messages, or the "
			    "database; turn it on\n");
	if (ob_str_eq(pg_get_str(result, 0, 1), OB_STR("off")))
		ob_buf_adds(out,
			    "synchronous_commit is off: a message may be sent whose transaction is "
			    "lost when the server crashes right after; turn it on for producers\n");
	if (prepared > 0)
		ob_buf_addf(out,
			    "%" PRId64
			    " prepared transaction(s) are open: one that was left behind "
			    "holds its messages back and keeps vacuum from its work; look at "
			    "pg_prepared_xacts, COMMIT PREPARED or ROLLBACK PREPARED it\n",
			    prepared);
}

int pg_advise(struct ob_store *store, struct ob_buf *out, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	int r = pg_begin(s, err);

	if (r == 0)
		r = pg_ask(s, PG_advise, NULL, err);
	if (r == 0)
		advise(s->results[s->result_count - 1], out);
	if (r == 0)
		r = pg_parts_advise(s, out, err);
	r = pg_finish(s, r, err);
	pg_clear(s);
	return r;
}
