/* SPDX-License-Identifier: MIT */
/* The session lock of a worker: it ends with the connection, so that others know at once. */
#include "store/postgres/driver.h"
#include "store/postgres/schema.h"

/* Ids are random, so half of one is enough. */
int64_t pg_session_key(const struct ob_uuid *worker)
{
	return ob_pg_get((const char *)worker->b, 8) ^ ob_pg_get((const char *)worker->b + 8, 8);
}

/* It is not asked for twice: the server counts. A pooler's connections are not ours. */
int pg_hold_session(struct ob_store *store, const struct ob_uuid *worker, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 };
	int r = pg_ready(s, err);

	if (r < 0 || s->pooled || ob_uuid_eq(&s->session, worker))
		return r;
	s->session = (struct ob_uuid){ { 0 } };
	pg_int(&p, pg_session_key(worker));
	r = pg_run_one(s, PG_session_lock, &p, err);
	if (r == 0 && pg_get_int(s->results[0], 0, 0))
		s->session = *worker;
	return r;
}

void pg_left_session(struct ob_store *store, const struct ob_uuid *worker)
{
	struct pg_store *s = (struct pg_store *)store;

	if (ob_uuid_eq(&s->session, worker))
		s->session = (struct ob_uuid){ { 0 } };
}

int pg_check_numbering(struct ob_store *store, int64_t cache, struct ob_err *err)
{
	return pg_check_cache((struct pg_store *)store, cache, err);
}
