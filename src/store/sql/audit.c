/* SPDX-License-Identifier: MIT */
/* What people did: taking it down and listing it. */
#include "base/cleanup.h"
#include "store/sql/ops.h"

void ob_sql_add_audit(struct ob_sql *q, const struct ob_audit_row *entry, uint64_t more)
{
	(void)OB_SQL_ADD(q, audit, OB_ARG_STR("who", entry->who),
			 OB_ARG_STR("origin", entry->origin), OB_ARG_STR("verb", entry->verb),
			 OB_ARG_STR("reader", entry->reader), OB_ARG_STR("filter", entry->filter),
			 OB_ARG_INT("messages", entry->count), OB_ARG_STR("plan", entry->plan),
			 OB_ARG_STR("reason", entry->reason), OB_ARG_INT("more", more));
}

int ob_sql_op_audit(struct ob_store *store, const struct ob_audit_row *entry, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "writing the audit");
	ob_sql_add_audit(&q, entry, 0);
	return ob_sql_commit(&q, err);
}

static const struct ob_sql_column audit_columns[] = {
	OB_SQL_COLUMN(struct ob_audit_row, number, INT),
	OB_SQL_COLUMN(struct ob_audit_row, at_us, TIME),
	OB_SQL_COLUMN(struct ob_audit_row, who, STR),
	OB_SQL_COLUMN(struct ob_audit_row, origin, STR),
	OB_SQL_COLUMN(struct ob_audit_row, verb, STR),
	OB_SQL_COLUMN(struct ob_audit_row, reader, STR),
	OB_SQL_COLUMN(struct ob_audit_row, filter, STR),
	OB_SQL_COLUMN(struct ob_audit_row, count, INT),
	OB_SQL_COLUMN(struct ob_audit_row, plan, STR),
	OB_SQL_COLUMN(struct ob_audit_row, reason, STR),
};
static const struct ob_sql_map audit_map = OB_SQL_MAP_OF(struct ob_audit_row, audit_columns);

int ob_sql_op_audits(struct ob_store *store, const struct ob_audit_ask *ask, struct ob_arena *arena,
		     struct ob_audit_row **ret_entries, size_t *ret_count, struct ob_err *err)
{
	struct ob_audit_row *entries = ob_sql_list(
		store, "reading the audit", OB_SQL_audits,
		OB_ARGS(OB_ARG_INT("before", ask->before > 0 ? ask->before : INT64_MAX),
			OB_ARG_TEXT("reader", ask->reader), OB_ARG_TEXT("verb", ask->verb),
			OB_ARG_INT("limit", ask->limit ? ask->limit : UINT32_MAX)),
		&audit_map, arena, ret_count, err);

	if (!entries)
		return err->status;
	*ret_entries = entries;
	return 0;
}
