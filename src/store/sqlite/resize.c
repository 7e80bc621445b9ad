/* SPDX-License-Identifier: MIT */
/* The SQLite store: another number of partitions, in one transaction. */
#include "store/sqlite/schema.h"
#include "store/sqlite/stmt.h"

#include "sql_sqlite.h"

static int run_steps(struct lite_store *s, const int *steps, size_t count, uint32_t partition_count,
		     struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < count && r >= 0; i++)
		r = lite_run(s, steps[i], OB_ARGS(OB_ARG_INT("count", partition_count)), err);
	return r < 0 ? r : 0;
}

static int change_column(struct lite_store *s, uint32_t count, struct ob_err *err)
{
	static const char *const scripts[] = { sql_sqlite_unpartition, sql_sqlite_partition,
					       sql_sqlite_view };
	int r = 0;

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]) && r == 0; i++)
		r = lite_run_script(s, scripts[i], count, err);
	return r < 0 ? r : lite_set_meta(s, "partition_count", count, err);
}

static int resize(struct lite_store *s, uint32_t count, struct ob_err *err)
{
	static const int before[] = { LITE_resize_done, LITE_resize_leases, LITE_resize_journal,
				      LITE_resize_forget };
	static const int after[] = { LITE_resize_lost, LITE_resize_move, LITE_resize_promote };
	int64_t now_count = 0, leased = 0;
	int r = lite_meta(s, "partition_count", &now_count, err);

	if (r < 0 || now_count == count)
		return r;
	r = lite_value(s, LITE_any_lease, OB_NO_ARGS, &leased, err);
	if (r >= 0 && leased)
		r = ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
			       "partitions are leased: stop the relays of this store first");
	if (r >= 0)
		r = run_steps(s, before, sizeof(before) / sizeof(before[0]), count, err);
	if (r == 0)
		r = change_column(s, count, err);
	return r < 0 ? r : run_steps(s, after, sizeof(after) / sizeof(after[0]), count, err);
}

int lite_resize(struct ob_store *store, uint32_t partition_count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_begin(s, "changing the partitions", err);

	return r < 0 ? r : lite_end(s, resize(s, partition_count, err), err);
}
