/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store under store/sql. A transaction that is added at once is one packet, from START
 * TRANSACTION to COMMIT: a process that is stopped in the middle holds no lock, for there is no
 * middle, and after a deadlock the packet is sent again. One that is flushed before its end stays
 * open in between; its operation is what is run again.
 */
#include "store/mysql/driver.h"
#include "base/fault.h"
#include "store/mysql/gaps.h"
#include "store/mysql/place.h"
#include "store/mysql/reach.h"
#include "store/mysql/tx.h"
#include "store/writer.h"

#include "sql_mysql.h"

#include <mysqld_error.h>

enum {
	COLLISION_TRIES = 100, /* a verb against workers that settle all the time */
	TIMEOUT_TRIES = 2,
	ARGS_MAX = 24,
	GAPS_MAX = 64 << 20,
};

static const char *const templates[] = {
#define X(name, planned) sql_mysql_##name,
	OB_SQL_MAP(X)
#undef X
};

struct my_run {
	struct my_packet p;
	bool writes, alone;
	bool sent;             /* what stands in the packet has its answers */
	size_t first;          /* of the operation's in the packet: after START TRANSACTION */
	size_t statement, row; /* the one that p stands on */
	/* What statements may ask for besides their values: the lowest position of the reader that
	 * they are about, and a condition that its gaps fulfil, for a row of the log and for an
	 * exception; " OR ..." or nothing. */
	int64_t low;
	struct ob_buf gaps, seek_gaps;
};

static struct my_run *run_of(struct ob_store *store)
{
	return ((struct my_store *)store)->run;
}

static bool has_run(struct my_store *s)
{
	if (s->run)
		return true;
	s->run = calloc(1, sizeof(*s->run));
	if (s->run)
		s->run->gaps = s->run->seek_gaps = OB_BUF_INIT(GAPS_MAX);
	return s->run != NULL;
}

static void start_packet(struct my_run *run)
{
	my_packet_clear(&run->p);
	run->first = 0;
	run->sent = false;
	run->statement = SIZE_MAX;
}

static int my_begin(struct ob_store *store, enum ob_sql_mode mode, const char *doing,
		    struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;

	if (!has_run(s))
		return my_oom(doing, err);
	if (mode == OB_SQL_JOIN && !s->in_tx)
		return ob_writer_no_transaction(err);
	if (mode != OB_SQL_JOIN && s->in_tx)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "a transaction is open on this store: end it first");
	my_packet_done(&s->run->p);
	my_packet_init(&s->run->p, s, doing);
	s->run->writes = s->run->p.writes = mode >= OB_SQL_WRITE;
	s->run->alone = mode == OB_SQL_ALONE;
	start_packet(s->run);
	s->code = 0;
	/* After a deadlock there is no transaction left: nothing may be sent again. */
	s->joined = s->in_work = mode == OB_SQL_JOIN;
	if (s->joined)
		return my_tx_is_open(s)
			       ? 0
			       : (s->joined = s->in_work = false, ob_writer_rolled_back(err));
	return my_ready(s, s->patient, err);
}

/* The values of a statement, and those of ours. */
static void all_args(const struct my_run *run, const struct ob_sql_arg *args,
		     struct ob_sql_arg all[ARGS_MAX])
{
	size_t n = 0;

	while (args[n].name && n < ARGS_MAX - 4) {
		all[n] = args[n];
		n++;
	}
	all[n++] = OB_ARG_INT("low", run->low);
	all[n++] = OB_ARG_RAW("gaps", ob_buf_str(&run->gaps));
	all[n++] = OB_ARG_RAW("seek_gaps", ob_buf_str(&run->seek_gaps));
	all[n].name = NULL;
}

static int my_add(struct ob_store *store, enum ob_sql_id id, const struct ob_sql_arg *args,
		  struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct my_run *run = s->run;
	struct ob_sql_arg all[ARGS_MAX];

	all_args(run, args, all);
	if (run->sent)
		start_packet(run);
	if (run->p.statements == 0 && run->writes && !run->alone && !s->in_work)
		run->first = MY_ADD0(&run->p, sql_mysql_begin_write) + 1;
	(void)my_packet_add(&run->p, templates[id], all);
	if (run->p.err.status)
		*err = run->p.err;
	return run->p.err.status;
}

static int my_flush(struct ob_store *store, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;

	if (s->run->sent || s->run->p.statements == 0)
		return 0;
	s->run->sent = true;
	/* Now there is a middle. */
	s->in_work = s->run->writes && !s->run->alone;
	return my_packet_run(&s->run->p, err);
}

/* The rest of a transaction that is open, and its commit. */
static int commit_open(struct my_store *s, struct ob_err *err)
{
	struct my_run *run = s->run;

	if (OB_FAULT("store.before_commit"))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault before the commit");
	/* Rows of the last flush are still read: COMMIT goes without the packet then. */
	int r = 0;
	if (run->sent)
		r = my_exec(s, s->db, sql_mysql_commit, "committing", err);
	else
		(void)MY_ADD0(&run->p, sql_mysql_commit);
	if (!run->sent)
		r = my_packet_run(&run->p, err);
	run->sent = true;
	if (r == 0 && OB_FAULT("store.after_commit"))
		r = ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault after the commit");
	return r;
}

static int my_end(struct ob_store *store, int r, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct my_run *run = s->run;
	int ended = 0;

	if (s->joined) {
		if (r >= 0 && !run->sent && run->p.statements > 0)
			ended = my_packet_run(&run->p, err);
		run->sent = true;
		s->joined = s->in_work = false;
		return r < 0 ? r : ended < 0 ? ended : r;
	}
	if (r >= 0 && s->in_work) {
		ended = commit_open(s, err);
	} else if (r >= 0 && !run->sent && run->p.statements > 0) {
		if (run->writes && !run->alone)
			(void)MY_ADD0(&run->p, sql_mysql_commit);
		run->sent = true;
		ended = my_packet_run(&run->p, err);
	}
	if (s->in_work && (r < 0 || ended < 0))
		my_rollback(s);
	s->in_work = false;
	return r < 0 ? r : ended < 0 ? ended : r;
}

static void my_clear(struct ob_store *store)
{
	if (run_of(store))
		start_packet(run_of(store));
}

static bool my_again(struct ob_store *store, int tries)
{
	const struct my_store *s = (struct my_store *)store;
	/* A number of the journal that someone took meanwhile: what was read is no longer so. */
	bool collided = s->code == ER_LOCK_DEADLOCK || s->code == ER_DUP_ENTRY;

	return !s->broken && ((collided && tries < COLLISION_TRIES) ||
			      (s->code == ER_LOCK_WAIT_TIMEOUT && tries < TIMEOUT_TRIES));
}

/* ---- rows ------------------------------------------------------------ */

static const struct my_answer *answer_of(struct ob_store *store, size_t statement)
{
	const struct my_run *run = run_of(store);
	size_t place = run->first + statement;

	return run->sent && place < run->p.answer_count ? &run->p.answers[place] : NULL;
}

static size_t my_rows(struct ob_store *store, size_t statement)
{
	const struct my_answer *answer = answer_of(store, statement);

	return answer && answer->rows ? (size_t)mysql_num_rows(answer->rows) : 0;
}

static uint64_t my_changed_by(struct ob_store *store, size_t statement)
{
	const struct my_answer *answer = answer_of(store, statement);

	return answer ? answer->changed : 0;
}

/* Stand on that row; they are mostly read in their order. */
static const struct my_packet *stand_on(struct ob_store *store, size_t statement, size_t row)
{
	struct my_run *run = run_of(store);

	if (run->statement == statement && run->row == row)
		return &run->p;
	if (run->statement != statement || run->row + 1 != row) {
		my_use(&run->p, run->first + statement);
		mysql_data_seek(run->p.rows, row);
	}
	(void)my_step(&run->p);
	run->statement = statement;
	run->row = row;
	return &run->p;
}

static int64_t my_get_int(struct ob_store *store, size_t statement, size_t row, int column)
{
	return my_int(stand_on(store, statement, row), (unsigned)column);
}

static int64_t my_get_time(struct ob_store *store, size_t statement, size_t row, int column)
{
	return my_time(stand_on(store, statement, row), (unsigned)column);
}

static struct ob_str my_get_str(struct ob_store *store, size_t statement, size_t row, int column)
{
	return my_str(stand_on(store, statement, row), (unsigned)column);
}

/* ---- what a reader has behind it ------------------------------------- */

static int my_learn_reach(struct ob_store *store, struct ob_str reader, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	char column[OB_IDENT_SIZE + 8];
	struct my_reach reach;
	int r = has_run(s) ? my_reach_read(s, reader, -1, &reach, err)
			   : my_oom("reading the journal", err);

	if (r < 0)
		return r;
	(void)snprintf(column, sizeof(column), "m.`%s`", store->layout->column[OB_COL_seq]);
	ob_buf_clear(&s->run->gaps);
	my_gaps_or(column, &reach.gaps, &s->run->gaps);
	s->run->low = reach.low;
	my_reach_done(&reach);
	return s->run->gaps.failed ? my_oom("reading the journal", err) : 0;
}

static int my_learn_place(struct ob_store *store, const struct ob_place *place, int64_t *ret_pos,
			  struct ob_buf *seen, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct ob_gaps gaps = { 0 };
	int r = has_run(s) ? my_find_place(s, place, ret_pos, &gaps, err)
			   : my_oom("looking for a place in the log", err);

	if (r == 0) {
		ob_buf_clear(&s->run->seek_gaps);
		my_gaps_or("seq", &gaps, &s->run->seek_gaps);
		ob_gaps_format(&gaps, seen);
		if (s->run->seek_gaps.failed || seen->failed)
			r = my_oom("looking for a place in the log", err);
	}
	ob_gaps_done(&gaps);
	return r;
}

void my_run_free(struct my_run *run)
{
	if (!run)
		return;
	my_packet_done(&run->p);
	ob_buf_done(&run->gaps);
	ob_buf_done(&run->seek_gaps);
	free(run);
}

static const char *my_text(enum ob_sql_id id)
{
	return templates[id];
}

const struct ob_sql_driver my_driver = {
	.text = my_text,
	.begin = my_begin,
	.add = my_add,
	.flush = my_flush,
	.end = my_end,
	.clear = my_clear,
	.again = my_again,
	.rows = my_rows,
	.changed = my_changed_by,
	.get_int = my_get_int,
	.get_time = my_get_time,
	.get_str = my_get_str,
	.reach = my_learn_reach,
	.place = my_learn_place,
};
