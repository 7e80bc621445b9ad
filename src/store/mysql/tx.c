/* SPDX-License-Identifier: MIT */
/* Transactions of the MySQL store, and writing messages through the public library. */
#include "store/mysql/tx.h"
#include "base/fault.h"
#include "store/writer.h"

#include "sql_mysql.h"

#include <mysqld_error.h>

enum { COLLISION_TRIES = 10, TIMEOUT_TRIES = 2 };

static int refuse_open(const struct my_store *s, struct ob_err *err)
{
	if (!s->in_tx)
		return 0;
	return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
			  "a transaction is open on this store: end it first");
}

static int commit(struct my_store *s, int r, struct ob_err *err)
{
	if (r >= 0 && OB_FAULT("store.before_commit"))
		r = ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault before the commit");
	if (r < 0) {
		my_rollback(s);
		return r;
	}
	int committed = my_exec(s, s->db, sql_mysql_commit, "committing", err);
	if (committed < 0) {
		my_rollback(s);
		return committed;
	}
	if (OB_FAULT("store.after_commit"))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault after the commit");
	return r;
}

static bool is_retried(const struct my_store *s, int tries)
{
	/* A number of the journal that someone took meanwhile: what was read is no longer so. */
	bool collided = s->code == ER_LOCK_DEADLOCK || s->code == ER_DUP_ENTRY;

	return !s->broken && ((collided && tries < COLLISION_TRIES) ||
			      (s->code == ER_LOCK_WAIT_TIMEOUT && tries < TIMEOUT_TRIES));
}

int my_transact(struct my_store *s, my_work_fn *work, void *arg, struct ob_err *err)
{
	int tries = 0, r = refuse_open(s, err);

	if (r == 0)
		r = my_ready(s, s->patient, err);
	if (r < 0)
		return r;
	do {
		s->code = 0;
		*err = OB_ERR_INIT; /* of the attempt before: a success leaves none */
		r = my_exec(s, s->db, sql_mysql_begin_write, "beginning a transaction", err);
		if (r < 0)
			continue;
		s->in_work = true;
		r = work(s, arg, err);
		s->in_work = false;
		r = commit(s, r, err);
	} while (r < 0 && is_retried(s, ++tries));
	return r;
}

/* ---- pushing --------------------------------------------------------- */

static int open_writer(struct my_store *s, struct outbox_error *fault)
{
	struct ob_writer_options writer;

	ob_writer_options(&s->base, &writer);
	return outbox_mysql_open(s->db, &writer.options, &s->writer, fault);
}

static int push_fault(struct my_store *s, const struct outbox_error *fault, size_t *ret_index,
		      struct ob_err *err)
{
	struct ob_err meaning = OB_ERR_INIT;
	unsigned long code = strtoul(fault->native, NULL, 10);

	/* The number tells whether the connection is lost, and what passes by itself. */
	if (code)
		(void)my_err(s, (unsigned)code, fault->message, "pushing", &meaning);
	return ob_writer_fail(fault,
			      fault->status == OUTBOX_ESTORE && code
				      ? meaning.kind
				      : ob_writer_kind(fault->status),
			      ret_index, err);
}

int my_tx_begin(struct ob_store *store, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	int r = refuse_open(s, err);

	if (r == 0)
		r = my_ready(s, s->patient, err);
	if (r == 0)
		r = my_exec(s, s->db, sql_mysql_idle_unlimited, "beginning a transaction", err);
	if (r == 0)
		r = my_exec(s, s->db, sql_mysql_begin_write, "beginning a transaction", err);
	if (r == 0)
		s->in_tx = true;
	return r;
}

/* Did the server end the transaction by itself, or is the connection gone with it? */
static bool undone(const struct my_store *s)
{
	unsigned status = 0;

	if (!s->db || s->broken)
		return true;
	(void)mariadb_get_infov(s->db, MARIADB_CONNECTION_SERVER_STATUS, &status);
	return !(status & SERVER_STATUS_IN_TRANS);
}

bool my_tx_is_open(const struct my_store *s)
{
	return s->in_tx && !undone(s);
}

int my_tx_push(struct ob_store *store, const struct outbox_message *messages, size_t count,
	       struct outbox_id *ret_ids, size_t *ret_index, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct outbox_error fault = { 0 };

	if (!s->in_tx)
		return ob_writer_no_transaction(err);
	if (undone(s))
		return ob_writer_rolled_back(err);
	int r = s->writer ? 0 : open_writer(s, &fault);
	if (r == 0)
		r = outbox_push(s->writer, messages, count, ret_ids, &fault);
	return r < 0 ? push_fault(s, &fault, ret_index, err) : 0;
}

/* For what follows on this connection the usual limit holds again. */
static void limit_idle(struct my_store *s)
{
	struct ob_err ignored;

	if (s->db && !s->broken &&
	    my_exec(s, s->db, sql_mysql_idle_limited, "ending a transaction", &ignored) < 0)
		s->broken = true;
}

static int end_tx(struct my_store *s, bool open, bool lost, bool end_commit, struct ob_err *err)
{
	if (!end_commit) {
		if (open)
			my_rollback(s);
		return 0;
	}
	if (!open)
		return ob_writer_no_transaction(err);
	if (lost) {
		my_rollback(s);
		return ob_writer_rolled_back(err);
	}
	return commit(s, 0, err);
}

int my_tx_end(struct ob_store *store, bool end_commit, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	bool open = s->in_tx, lost = open && undone(s);

	s->in_tx = false;
	int r = end_tx(s, open, lost, end_commit, err);
	if (open)
		limit_idle(s);
	return r;
}

int my_tx_writer(struct ob_store *store, outbox **ret_writer, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct outbox_error fault = { 0 };
	size_t ignored;

	if (!s->in_tx)
		return ob_writer_no_transaction(err);
	if (!s->writer && open_writer(s, &fault) < 0)
		return push_fault(s, &fault, &ignored, err);
	*ret_writer = s->writer;
	return 0;
}
