/* SPDX-License-Identifier: MIT */
/* Writing messages into the PostgreSQL store, through the public library on our own connection. */
#include "base/fault.h"
#include "store/postgres.h"

/* The library takes the layout in its public form. */
static int open_writer(struct pg_store *s, struct outbox_error *fault)
{
	static const char *const names[] = {
#define X(name, optional) #name,
		OB_COLUMN_MAP(X)
#undef X
	};
	const struct ob_layout *layout = s->base.layout;
	struct outbox_column columns[OB_COL_COUNT];
	char table[2 * OB_IDENT_SIZE];

	for (int c = 0; c < OB_COL_COUNT; c++)
		columns[c] = (struct outbox_column){
			names[c],
			layout->column[c][0] ? layout->column[c] : NULL,
		};
	(void)snprintf(table, sizeof(table), "%s%s%s", layout->schema, layout->schema[0] ? "." : "",
		       layout->table[OB_TABLE_outbox]);
	const struct outbox_options options = {
		.table = table,
		.columns = columns,
		.column_count = OB_COL_COUNT,
		.flags = s->base.writer_flags | (layout->string_id ? OUTBOX_STRING_ID : 0) |
			 (layout->binary_payload ? OUTBOX_BINARY_PAYLOAD : 0),
	};
	return outbox_postgres_open(s->conn, &options, &s->writer, fault);
}

static enum ob_err_kind kind_of(int status)
{
	switch (status) {
	case OUTBOX_EBUSY:
	case OUTBOX_ESTORE:
	case OUTBOX_ENOMEM:
		return OB_ERR_DOWN;
	case OUTBOX_ESCHEMA:
	case OUTBOX_ECONFIG:
	case OUTBOX_ENOTRANSACTION:
		return OB_ERR_FATAL;
	default:
		return OB_ERR_REJECT;
	}
}

static int take_over(struct pg_store *s, const struct outbox_error *fault, size_t *ret_index,
		     struct ob_err *err)
{
	if (fault->index != OUTBOX_NO_INDEX)
		*ret_index = fault->index;
	(void)ob_err_set(err, fault->status, kind_of(fault->status), "%s", fault->message);
	(void)snprintf(err->native, sizeof(err->native), "%s", fault->native);
	if (PQstatus(s->conn) != CONNECTION_OK)
		s->broken = true;
	return fault->status;
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
		return ob_err_set(err, OUTBOX_ENOTRANSACTION, OB_ERR_FATAL,
				  "no transaction is open on this connection");
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
		return ob_err_set(err, OUTBOX_ENOTRANSACTION, OB_ERR_FATAL,
				  "no transaction is open on this connection");
	if (undone)
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN,
				  "the transaction was rolled back after an error");
	return pg_commit(s, err);
}
