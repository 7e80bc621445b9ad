/* SPDX-License-Identifier: MIT */
/* The MySQL store: progress as the journal has it, and taking partitions over. */
#include "store/mysql/journal.h"
#include "base/cleanup.h"
#include "store/mysql/gaps.h"
#include "store/mysql/schema.h"

#include "sql_mysql.h"

#include <inttypes.h>

enum { LIST_MAX = 1 << 20, TAKE_OVER_TRIES = 20 };

void my_batch_read(const struct my_packet *p, struct my_batch *ret)
{
	*ret = (struct my_batch){
		.partition = (uint32_t)my_int(p, 0),
		.batch = (uint64_t)my_int(p, 1),
		.epoch = (uint64_t)my_int(p, 2),
		.at_us = my_time(p, 4),
		.pos = my_int(p, 5),
		.seen = my_str(p, 6),
	};
	(void)ob_uuid_scan(my_str(p, 3), &ret->owner);
}

void my_partition_list(int64_t partition_count, struct ob_buf *out)
{
	for (int64_t i = 0; i < partition_count * OB_LANES; i++)
		ob_buf_addf(out, "%c%" PRId64, i ? ',' : '[', i);
	ob_buf_addc(out, ']');
}

int my_batch_progress(const struct my_batch *row, struct ob_progress *ret, struct ob_err *err)
{
	*ret = (struct ob_progress){ .pos = row->pos };
	if (!row->seen.p || row->seen.n == 0)
		return 0;
	ret->seen = ob_seen_new(row->seen);
	return ret->seen ? 0 : my_oom("reading the journal", err);
}

/* ---- all of a reader ------------------------------------------------- */

static int add_row(struct my_reach *reach, const struct my_batch *row, struct ob_err *err)
{
	struct ob_gaps gaps = { 0 };
	bool ok = ob_gaps_parse(&gaps, row->seen.p ? row->seen : OB_STR("")) &&
		  ob_gaps_merge(&reach->gaps, &gaps);

	ob_gaps_done(&gaps);
	if (!ok)
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
				  "a gap list of the journal cannot be read");
	if (reach->rows == 0 || row->pos < reach->low)
		reach->low = row->pos;
	if (reach->rows == 0 || row->pos > reach->high)
		reach->high = row->pos;
	if (row->at_us > reach->moved_us)
		reach->moved_us = row->at_us;
	reach->rows++;
	return 0;
}

int my_reach_read(struct my_store *s, struct ob_str reader, int64_t age_us,
		  struct my_reach *ret_reach, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf parts = OB_BUF_INIT(LIST_MAX);
	struct my_reach reach = { 0 };
	struct my_batch row;
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int64_t count;
	int r = my_meta(s, "partition_count", &count, err);

	if (r < 0)
		return r;
	my_partition_list(count, &parts);
	my_packet_init(&p, s, "reading the journal");
	(void)MY_ADD(&p, age_us < 0 ? sql_mysql_progress : sql_mysql_progress_before,
		     OB_ARG_STR("reader", reader), OB_ARG_STR("parts", ob_buf_view(&parts)),
		     OB_ARG_INT("age", age_us));
	r = my_packet_run(&p, err);
	for (my_use(&p, 0); r == 0 && my_step(&p);) {
		my_batch_read(&p, &row);
		r = add_row(&reach, &row, err);
	}
	/* A partition that is farther on has gaps up there too: they are above `low` anyway. */
	if (r == 0 && reach.rows && !ob_gaps_remove(&reach.gaps, reach.low + 1, INT64_MAX - 1))
		r = my_gaps_full(s, err);
	if (r < 0) {
		my_reach_done(&reach);
		return r;
	}
	*ret_reach = reach;
	return 0;
}

int my_reach_known(struct my_store *s, const char *reader, struct my_reach *ret_reach,
		   struct ob_err *err)
{
	int r = my_reach_read(s, ob_str(reader), -1, ret_reach, err);

	/* Every reader has a row for each partition. */
	return r == 0 && ret_reach->rows == 0 ? my_no_reader(reader, err) : r;
}

void my_reach_done(struct my_reach *reach)
{
	ob_gaps_done(&reach->gaps);
}

/* ---- taking over ----------------------------------------------------- */

static struct ob_owned *find_owned(struct ob_owned *owned, size_t count, uint32_t partition)
{
	for (size_t i = 0; i < count; i++) {
		if (owned[i].partition == partition)
			return &owned[i];
	}
	return NULL;
}

static void add_wanted(const struct ob_owned *owned, size_t count, struct ob_buf *pairs,
		       struct ob_buf *parts)
{
	for (size_t i = 0; i < count; i++) {
		ob_buf_addf(pairs, "%c[%u,%" PRIu64 "]", i ? ',' : '[', owned[i].partition,
			    owned[i].epoch);
		ob_buf_addf(parts, "%c%u", i ? ',' : '[', owned[i].partition);
	}
	ob_buf_addc(pairs, ']');
	ob_buf_addc(parts, ']');
}

/* What became of one of them. False: someone else wrote in between, try again. */
static bool judge_newest(const struct my_batch *row, const struct ob_uuid *owner,
			 struct ob_owned *owned, struct ob_err *err, int *r)
{
	if (row->epoch > owned->epoch) {
		owned->lost = true;
		return true;
	}
	if (row->epoch < owned->epoch || !ob_uuid_eq(&row->owner, owner))
		return false;
	struct ob_progress progress;
	*r = my_batch_progress(row, &progress, err);
	if (*r < 0)
		return true;
	owned->lost = false;
	owned->batch = row->batch;
	ob_progress_set(&owned->progress, &progress);
	ob_progress_done(&progress);
	return true;
}

static int take_over_once(struct my_packet *p, const struct ob_uuid *owner, struct ob_owned *owned,
			  size_t count, bool *ret_done, struct ob_err *err)
{
	struct my_batch row;
	int r = my_packet_run(p, err);

	*ret_done = true;
	/* Without a row the partition is gone. */
	for (size_t i = 0; i < count; i++)
		owned[i].lost = true;
	for (my_use(p, 1); r == 0 && my_step(p);) {
		my_batch_read(p, &row);
		struct ob_owned *one = find_owned(owned, count, row.partition);

		if (one && !judge_newest(&row, owner, one, err, &r))
			*ret_done = false;
	}
	return r;
}

int my_take_over(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		 struct ob_owned *owned, size_t count, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf pairs = OB_BUF_INIT(LIST_MAX);
	OB_CLEANUP(ob_buf_done) struct ob_buf parts = OB_BUF_INIT(LIST_MAX);
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	bool done = false;
	int r = 0;

	add_wanted(owned, count, &pairs, &parts);
	my_packet_init(&p, (struct my_store *)store, "taking partitions over");
	p.writes = true;
	(void)MY_ADD(&p, sql_mysql_take_over, OB_ARG_TEXT("reader", reader),
		     OB_ARG_UUID("owner", owner), OB_ARG_STR("parts", ob_buf_view(&pairs)));
	(void)MY_ADD(&p, sql_mysql_progress, OB_ARG_TEXT("reader", reader),
		     OB_ARG_STR("parts", ob_buf_view(&parts)));
	for (int tries = 0; r == 0 && !done && tries < TAKE_OVER_TRIES; tries++)
		r = take_over_once(&p, owner, owned, count, &done, err);
	if (r == 0 && !done)
		r = ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
			       "taking partitions over: others write to the journal all the time");
	return r;
}
