/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store: changing the number of partitions. The ALTER commits by itself, so it runs on a
 * connection of its own while this one holds all leases and the count. Should the process die
 * between the ALTER and the commit, check says that the resize must be run again: the journal is
 * still that of the old count, and which old partition a row was in can be computed.
 */
#include "base/cleanup.h"
#include "store/mysql/gaps.h"
#include "store/mysql/reach.h"
#include "store/mysql/schema.h"
#include "store/mysql/tx.h"

#include "sql_mysql.h"

#include <inttypes.h>

enum { LIST_MAX = 1 << 20, GAPS_MAX = 64 << 20, SETUP_WAIT_S = 20 };

/* One resize while it runs. */
struct resizing {
	int64_t old, count;
	int64_t modulus; /* of the column now */
};

static int repartition(struct my_store *s, struct resizing *z, struct ob_err *err)
{
	MYSQL *other;
	int r = my_connect(s, true, &other, err);

	if (r < 0)
		return r;
	r = my_run_schema(s, other, sql_mysql_repartition, z->count, err);
	mysql_close(other);
	if (r == 0)
		z->modulus = z->count;
	return r;
}

/* Keep every relay from taking a lease until the transaction ends. */
static int lock_leases(struct my_store *s, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, s, "changing the partitions");
	(void)MY_ADD0(&p, sql_mysql_lock_leases);
	(void)MY_ADD0(&p, sql_mysql_any_lease);
	int r = my_packet_run(&p, err);
	my_use(&p, 1);
	if (r == 0 && my_step(&p) && my_int(&p, 0))
		r = ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
			       "partitions are leased: stop the relays of this store first");
	return r;
}

static int move_to(struct my_store *s, const struct resizing *z, struct ob_str reader,
		   const struct my_reach *reach, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf parts = OB_BUF_INIT(LIST_MAX);
	OB_CLEANUP(ob_buf_done) struct ob_buf gaps = OB_BUF_INIT(GAPS_MAX);
	OB_CLEANUP(ob_buf_done) struct ob_buf seen = OB_BUF_INIT(GAPS_MAX);
	const struct ob_uuid nobody = { 0 };
	char column[OB_IDENT_SIZE + 8];
	int64_t epoch = 0;
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	(void)snprintf(column, sizeof(column), "m.`%s`", s->base.layout->column[OB_COL_seq]);
	for (int64_t i = 0; i < z->count * OB_LANES; i++)
		ob_buf_addf(&parts, "%c[%" PRId64 "]", i ? ',' : '[', i);
	ob_buf_addc(&parts, ']');
	my_gaps_or(column, &reach->gaps, &gaps);
	ob_gaps_format(&reach->gaps, &seen);
	const struct ob_sql_arg some[] = { OB_ARG_STR("reader", reader),
					   OB_ARG_STR("parts", ob_buf_view(&parts)),
					   { .name = NULL } };
	int r = my_number(s, "changing the partitions", sql_mysql_highest_epoch, some, &epoch, err);
	if (r < 0)
		return r;
	const struct ob_sql_arg args[] = {
		OB_ARG_STR("reader", reader),
		OB_ARG_STR("parts", ob_buf_view(&parts)),
		OB_ARG_INT("old", z->old),
		OB_ARG_INT("count", z->count * OB_LANES),
		OB_ARG_INT("pos", reach->low),
		OB_ARG_RAW("gaps", ob_buf_str(&gaps)),
		OB_ARG_STR("seen", reach->gaps.count ? ob_buf_view(&seen) : OB_STR_NULL),
		OB_ARG_INT("epoch", epoch + 1),
		OB_ARG_UUID("owner", &nobody),
		{ .name = NULL },
	};
	my_packet_init(&p, s, "changing the partitions");
	(void)my_packet_add(&p, sql_mysql_resize_exceptions, args);
	(void)my_packet_add(&p, sql_mysql_resize_done, args);
	(void)my_packet_add(&p, sql_mysql_leases_move, args);
	(void)my_packet_add(&p, sql_mysql_journal_move, args);
	(void)my_packet_add(&p, sql_mysql_seek_forget, args);
	(void)my_packet_add(&p, sql_mysql_resize_forget_gone, args);
	(void)my_packet_add(&p, sql_mysql_resize_promote, args);
	r = my_packet_run(&p, err);
	return r;
}

static int move_reader(struct my_store *s, const struct resizing *z, struct ob_str reader,
		       struct ob_err *err)
{
	struct my_reach reach;
	int r = my_reach_read(s, reader, -1, &reach, err);

	if (r < 0)
		return r;
	r = move_to(s, z, reader, &reach, err);
	my_reach_done(&reach);
	return r;
}

static int move_readers(struct my_store *s, const struct resizing *z, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, s, "changing the partitions");
	(void)MY_ADD0(&p, sql_mysql_all_readers);
	int r = my_packet_run(&p, err);
	for (my_use(&p, 0); r == 0 && my_step(&p);)
		r = move_reader(s, z, my_str(&p, 0), err);
	return r;
}

static int resize_work(struct my_store *s, void *arg, struct ob_err *err)
{
	struct resizing *z = arg;
	int r = my_meta(s, "partition_count", &z->old, err);

	if (r < 0 || (z->old == z->count && z->modulus == z->count))
		return r;
	r = lock_leases(s, err);
	if (r == 0 && z->modulus != z->count)
		r = repartition(s, z, err);
	if (r == 0)
		r = move_readers(s, z, err);
	const struct ob_sql_arg args[] = { OB_ARG_TEXT("name", "partition_count"),
					   OB_ARG_INT("value", z->count),
					   { .name = NULL } };
	if (r == 0)
		r = my_change(s, "changing the partitions", sql_mysql_meta_set, args, err);
	return r < 0 ? r : 0;
}

static int resize(struct my_store *s, uint32_t count, struct ob_err *err)
{
	struct resizing z = { .count = count };
	struct my_found found;
	int r = my_look_schema(s, &found, err);

	if (r == 0 && !found.table[OB_TABLE_outbox])
		r = ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			       "table '%s' is missing; run `outbox setup`",
			       s->base.layout->table[OB_TABLE_outbox]);
	if (r == 0)
		r = my_check_columns(s, &found, err);
	if (r < 0)
		return r;
	z.modulus = found.modulus;
	return my_transact(s, resize_work, &z, err);
}

int my_resize(struct ob_store *store, uint32_t partition_count, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	int r = my_lock(s, "setup", SETUP_WAIT_S, err);

	if (r < 0)
		return r;
	r = resize(s, partition_count, err);
	my_unlock(s, "setup");
	return r;
}
