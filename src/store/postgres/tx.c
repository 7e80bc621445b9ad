/* SPDX-License-Identifier: MIT */
/* Writing messages into the PostgreSQL store, through the public library on our own connection. */
#include "store/postgres/ops.h"
#include "store/postgres/stmt.h"
#include "store/writer.h"

static int open_writer(struct pg_store *s, struct outbox_error *fault)
{
	struct ob_writer_options writer;

	ob_writer_options(&s->base, &writer);
	return outbox_postgres_open(s->conn, &writer.options, &s->writer, fault);
}

static int take_over(struct pg_store *s, const struct outbox_error *fault, size_t *ret_index,
		     struct ob_err *err)
{
	if (PQstatus(s->conn) != CONNECTION_OK)
		s->broken = true;
	return ob_writer_fail(fault, ob_writer_kind(fault->status), ret_index, err);
}

/* The library is used as an application uses it: without a pipeline. */
int pg_tx_begin(struct ob_store *store, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;

	/* Its caller may read from a slow pipe in between. */
	s->unlimited = true;
	int r = pg_begin(s, err);
	if (r == 0)
		r = pg_flush(s, err);
	s->unlimited = false;
	if (r < 0)
		return r;
	if (!PQexitPipelineMode(s->conn)) {
		s->broken = true;
		return pg_err(s, NULL, "beginning a transaction", err);
	}
	s->in_tx = true;
	return 0;
}

int pg_tx_push(struct ob_store *store, const struct outbox_message *messages, size_t count,
	       struct outbox_id *ret_ids, size_t *ret_index, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct outbox_error fault = { 0 };

	if (!s->in_tx)
		return ob_writer_no_transaction(err);
	int r = s->writer ? 0 : open_writer(s, &fault);
	if (r == 0)
		r = outbox_push(s->writer, messages, count, ret_ids, &fault);
	return r < 0 ? take_over(s, &fault, ret_index, err) : 0;
}

/* Was it rolled back by an error, or by the connection's end? */
static bool is_undone(const struct pg_store *s)
{
	return s->broken || PQtransactionStatus(s->conn) != PQTRANS_INTRANS;
}

int pg_tx_end(struct ob_store *store, bool commit, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	bool open = s->in_tx, undone = open && is_undone(s);

	s->in_tx = false;
	if (open && !PQenterPipelineMode(s->conn))
		s->broken = true;
	if (!commit || undone)
		pg_rollback(s);
	if (!commit)
		return 0;
	if (!open)
		return ob_writer_no_transaction(err);
	if (undone)
		return ob_writer_rolled_back(err);
	return pg_commit(s, err);
}

int pg_tx_writer(struct ob_store *store, outbox **ret_writer, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct outbox_error fault = { 0 };
	size_t ignored;

	if (!s->in_tx)
		return ob_writer_no_transaction(err);
	if (!s->writer && open_writer(s, &fault) < 0)
		return take_over(s, &fault, &ignored, err);
	*ret_writer = s->writer;
	return 0;
}
