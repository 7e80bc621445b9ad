/* SPDX-License-Identifier: MIT */
/* Counts and throughput, for people. */
#include "store/sql/ops.h"

static const struct ob_sql_column minute_columns[] = {
	OB_SQL_COLUMN(struct ob_minute, minute_us, TIME),
	OB_SQL_COLUMN(struct ob_minute, published, INT),
	OB_SQL_COLUMN(struct ob_minute, failed, INT),
};
static const struct ob_sql_map minute_map = OB_SQL_MAP_OF(struct ob_minute, minute_columns);

int ob_sql_op_throughput(struct ob_store *store, const char *reader, uint32_t minutes,
			 struct ob_arena *arena, struct ob_minute **ret_minutes, size_t *ret_count,
			 struct ob_err *err)
{
	struct ob_minute *found =
		ob_sql_list(store, "reading the throughput", OB_SQL_throughput,
			    OB_ARGS(OB_ARG_TEXT("reader", reader), OB_ARG_INT("minutes", minutes)),
			    &minute_map, arena, ret_count, err);

	if (!found)
		return err->status;
	*ret_minutes = found;
	return 0;
}
