/* SPDX-License-Identifier: MIT */
/* Between a store and the public library. */
#include "store/writer.h"

void ob_writer_options(const struct ob_store *store, struct ob_writer_options *ret)
{
	static const char *const names[] = {
#define X(name, optional) #name,
		OB_COLUMN_MAP(X)
#undef X
	};
	const struct ob_layout *layout = store->layout;

	for (int c = 0; c < OB_COL_COUNT; c++)
		ret->columns[c] = (struct outbox_column){
			names[c],
			layout->column[c][0] ? layout->column[c] : NULL,
		};
	(void)snprintf(ret->table, sizeof(ret->table), "%s%s%s", layout->schema,
		       layout->schema[0] ? "." : "", layout->table[OB_TABLE_outbox]);
	ret->options = (struct outbox_options){
		.table = ret->table,
		.columns = ret->columns,
		.column_count = OB_COL_COUNT,
		.flags = store->writer_flags | (layout->string_id ? OUTBOX_STRING_ID : 0) |
			 (layout->binary_payload ? OUTBOX_BINARY_PAYLOAD : 0),
	};
}

enum ob_err_kind ob_writer_kind(int status)
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

int ob_writer_fail(const struct outbox_error *fault, enum ob_err_kind kind, size_t *ret_index,
		   struct ob_err *err)
{
	if (fault->index != OUTBOX_NO_INDEX)
		*ret_index = fault->index;
	(void)ob_err_set(err, fault->status, kind, "%s", fault->message);
	(void)snprintf(err->native, sizeof(err->native), "%s", fault->native);
	return fault->status;
}

int ob_writer_no_transaction(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOTRANSACTION, OB_ERR_FATAL,
			  "no transaction is open on this connection");
}

int ob_writer_rolled_back(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN,
			  "the transaction was rolled back after an error");
}
