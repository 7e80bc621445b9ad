/* SPDX-License-Identifier: MIT */
/* Statements of the PostgreSQL store: queued, sent together, their results kept in order. */
#include "store/postgres/stmt.h"

#include "base/cleanup.h"
#include "base/fault.h"

#include "sql_postgres.h"

enum { SQL_MAX = 64 * 1024 };

/* us from 1970 to 2000, where PostgreSQL's time begins. */
static const int64_t epoch_us = INT64_C(946684800000000);

static const struct {
	const char *tmpl;
	/* What runs for every batch or beat is planned once on a connection that is ours alone. A
	 * pooler may hand the next transaction to another server connection, which knows nothing of
	 * it. */
	bool planned;
	const char *doing;
} statements[] = {
#define X(name, planned) { sql_postgres_##name, planned, NULL },
	OB_SQL_MAP(X)
#undef X
#define X(name, planned, what) { sql_postgres_##name, planned, what },
		PG_MAP(X)
#undef X
};

const char *pg_template(enum ob_sql_id id)
{
	return statements[id].tmpl;
}

/* What a statement that all share is for, its operation says. */
static const char *doing_of(const struct pg_store *s, int id)
{
	return statements[id].doing ? statements[id].doing : s->doing;
}

/* ---- parameters ------------------------------------------------------ */

void pg_str(struct pg_params *p, struct ob_str value)
{
	p->values[p->count] = value.p;
	p->lengths[p->count] = (int)value.n;
	p->formats[p->count++] = 1;
}

void pg_text(struct pg_params *p, const char *value)
{
	pg_str(p, ob_str(value));
}

void pg_int(struct pg_params *p, int64_t value)
{
	char *bytes = p->ints[p->count];

	ob_pg_put64(bytes, (uint64_t)value);
	pg_str(p, (struct ob_str){ bytes, 8 });
}

void pg_literal(struct pg_params *p, const char *value)
{
	pg_text(p, value);
	p->formats[p->count - 1] = 0;
}

struct ob_pgarray *pg_array(struct pg_params *p, enum ob_pgtype type)
{
	struct ob_pgarray *array = &p->array[p->count];

	p->arrays |= 1U << p->count;
	ob_pgarray_begin(array, type);
	pg_str(p, OB_STR_NULL);
	return array;
}

struct ob_pgarray *pg_ints(struct pg_params *p)
{
	return pg_array(p, OB_PG_INT8);
}

/* The arrays are complete: their bytes are the values. False: out of memory. */
static bool end_arrays(struct pg_params *p)
{
	bool ok = true;

	for (int i = 0; i < p->count; i++) {
		if (!(p->arrays >> i & 1))
			continue;
		ok = ob_pgarray_end(&p->array[i]) && ok;
		p->values[i] = ob_buf_str(&p->array[i].data);
		p->lengths[i] = (int)p->array[i].data.len;
	}
	return ok;
}

static void free_arrays(struct pg_params *p)
{
	for (int i = 0; i < p->count; i++) {
		if (p->arrays >> i & 1)
			ob_pgarray_done(&p->array[i]);
	}
	p->arrays = 0;
}

/* ---- cells ----------------------------------------------------------- */

struct ob_str pg_get_str(const PGresult *r, int row, int column)
{
	int n = PQgetlength(r, row, column);

	/* Only what is empty may be NULL. */
	if (n == 0 && PQgetisnull(r, row, column))
		return OB_STR_NULL;
	return (struct ob_str){ PQgetvalue(r, row, column), (size_t)n };
}

int64_t pg_get_int(const PGresult *r, int row, int column)
{
	int n = PQgetlength(r, row, column);

	return n > 0 ? ob_pg_get(PQgetvalue(r, row, column), (size_t)n) : 0;
}

int64_t pg_get_time(const PGresult *r, int row, int column)
{
	if (PQgetisnull(r, row, column))
		return 0;
	int64_t us = pg_get_int(r, row, column);
	/* Infinities of either sign stay what they are. */
	return us == INT64_MAX || us == INT64_MIN ? us : us + epoch_us;
}

bool pg_get_uuid(const PGresult *r, int row, int column, struct ob_uuid *ret)
{
	return ob_uuid_scan(pg_get_str(r, row, column), ret);
}

uint64_t pg_changed(PGresult *r)
{
	return strtoull(PQcmdTuples(r), NULL, 10);
}

/* ---- queueing -------------------------------------------------------- */

int pg_expand(const struct ob_layout *layout, const char *tmpl, int64_t partition_count,
	      struct ob_buf *out, struct ob_err *err)
{
	return ob_sql_expand(layout, tmpl, '"', partition_count, out, err);
}

static int expanded(struct pg_store *s, int id, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);

	if (s->sql[id])
		return 0;
	int r = pg_expand(s->base.layout, statements[id].tmpl, 0, &sql, err);
	if (r < 0)
		return r;
	s->sql[id] = ob_buf_take(&sql);
	return s->sql[id] ? 0 : pg_oom(doing_of(s, id), err);
}

static void enqueue(struct pg_store *s, const char *doing)
{
	s->queue[s->queued].doing = doing;
	s->queue[s->queued].hidden = false;
	s->queue[s->queued++].plans = NULL;
}

static int too_many(const char *doing, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "%s: too many statements at once",
			  doing);
}

static int send_unnamed(struct pg_store *s, const char *sql, const char *doing,
			const struct pg_params *p, struct ob_err *err)
{
	if (s->queued >= PG_QUEUE_MAX)
		return too_many(doing, err);
	if (!PQsendQueryParams(s->conn, sql, p->count, NULL, p->values, p->lengths, p->formats, 1))
		return pg_err(s, NULL, doing, err);
	enqueue(s, doing);
	return 0;
}

/* The same by name. That the name is known there is noted when the answer comes. */
static int send_named(struct pg_store *s, int id, const struct pg_params *p, struct ob_err *err)
{
	const char *doing = doing_of(s, id);
	char name[16];

	if (s->queued + 2 > PG_QUEUE_MAX)
		return too_many(doing, err);
	(void)snprintf(name, sizeof(name), "ob%d", id);
	if (!s->planned[id]) {
		if (!PQsendPrepare(s->conn, name, s->sql[id], 0, NULL))
			return pg_err(s, NULL, doing, err);
		enqueue(s, doing);
		s->queue[s->queued - 1].hidden = true;
		s->queue[s->queued - 1].plans = &s->planned[id];
	}
	if (!PQsendQueryPrepared(s->conn, name, p->count, p->values, p->lengths, p->formats, 1))
		return pg_err(s, NULL, doing, err);
	enqueue(s, doing);
	return 0;
}

int pg_add_sql(struct pg_store *s, const char *sql, const char *doing, struct pg_params *p,
	       struct ob_err *err)
{
	int r = end_arrays(p) ? send_unnamed(s, sql, doing, p, err) : pg_oom(doing, err);

	free_arrays(p);
	return r;
}

int pg_add(struct pg_store *s, int id, struct pg_params *p, struct ob_err *err)
{
	struct pg_params none = { 0 };
	const char *doing = doing_of(s, id);
	int r = expanded(s, id, err);

	p = p ? p : &none;
	if (r == 0 && !end_arrays(p))
		r = pg_oom(doing, err);
	if (r == 0)
		r = statements[id].planned && !s->pooled
			    ? send_named(s, id, p, err)
			    : send_unnamed(s, s->sql[id], doing, p, err);
	free_arrays(p);
	return r;
}

static int add_hidden(struct pg_store *s, int id, struct pg_params *p, struct ob_err *err)
{
	int r = pg_add(s, id, p, err);

	if (r == 0)
		s->queue[s->queued - 1].hidden = true;
	return r;
}

static int add_pins(struct pg_store *s, bool batch, bool relaxed, bool session, struct ob_err *err)
{
	/* The session outlives the operation that may take long. */
	bool unlimited = s->unlimited && !session;
	struct pg_params p = { 0 };
	char timeout[32], lock_timeout[32];

	(void)snprintf(timeout, sizeof(timeout), "%lld",
		       unlimited ? 0LL : (long long)s->timeout_ms);
	(void)snprintf(lock_timeout, sizeof(lock_timeout), "%lld", (long long)s->lock_timeout_ms);
	pg_text(&p, s->path);
	pg_text(&p, timeout);
	pg_text(&p, lock_timeout);
	pg_text(&p, relaxed ? "off" : "on");
	/* A worker that was stopped between two statements must not keep others from its rows. */
	pg_text(&p, unlimited ? "0" : "10s");
	pg_text(&p, batch ? "force_generic_plan" : "auto");
	pg_int(&p, !session);
	return add_hidden(s, PG_pins, &p, err);
}

int pg_pin_session(struct pg_store *s, struct ob_err *err)
{
	/* A standby refuses the BEGIN. */
	int r = add_hidden(s, PG_begin, NULL, err);

	if (r == 0)
		r = add_pins(s, true, true, true, err);
	if (r == 0)
		r = add_hidden(s, PG_commit, NULL, err);
	return r < 0 ? r : pg_flush(s, err);
}

static int begin_operation(struct pg_store *s, struct ob_err *err)
{
	if (s->in_tx)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "a transaction is open on this store: end it first");
	int r = pg_ready(s, err);
	if (r == 0)
		pg_clear(s);
	return r;
}

static int begin(struct pg_store *s, int how, bool batch, bool relaxed, struct ob_err *err)
{
	int r = begin_operation(s, err);

	if (how == PG_begin && s->base.read_limit_ms)
		how = PG_begin_read;
	if (r == 0)
		r = add_hidden(s, how, NULL, err);
	/* The session has them. */
	if (batch && relaxed && !s->pooled)
		return r;
	return r < 0 ? r : add_pins(s, batch, relaxed, false, err);
}

int pg_begin(struct pg_store *s, struct ob_err *err)
{
	return begin(s, PG_begin, false, false, err);
}

int pg_begin_batch(struct pg_store *s, bool relaxed, struct ob_err *err)
{
	return begin(s, PG_begin, true, relaxed, err);
}

int pg_begin_snapshot(struct pg_store *s, struct ob_err *err)
{
	int r = begin_operation(s, err);

	if (r < 0 || s->pooled)
		return r < 0 ? r : begin(s, PG_begin_snapshot, true, true, err);
	s->bare = true;
	return 0;
}

/* ---- sending and receiving ------------------------------------------- */

void pg_clear(struct pg_store *s)
{
	for (int i = 0; i < s->result_count; i++)
		PQclear(s->results[i]);
	s->result_count = 0;
}

static int timed_out(struct pg_store *s, const char *doing, struct ob_err *err)
{
	s->broken = true;
	return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "%s: no answer within %lld ms", doing,
			  (long long)s->timeout_ms);
}

/* The next result, waiting for it; *ret is NULL between statements. */
static int next_result(struct pg_store *s, int64_t deadline_us, const char *doing, PGresult **ret,
		       struct ob_err *err)
{
	int unsent = 1;

	for (;;) {
		if (unsent)
			unsent = PQflush(s->conn);
		if (unsent < 0)
			return pg_err(s, NULL, doing, err);
		if (!PQisBusy(s->conn) && !unsent)
			break;
		if (!pg_wait(s->conn, unsent, deadline_us))
			return timed_out(s, doing, err);
		if (!PQconsumeInput(s->conn))
			return pg_err(s, NULL, doing, err);
	}
	*ret = PQgetResult(s->conn);
	if (!*ret && PQstatus(s->conn) == CONNECTION_BAD)
		return pg_err(s, NULL, doing, err);
	return 0;
}

static bool is_good(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

/* Take the results up to the sync; the first failure is *err, and the rest is thrown away. */
static int receive(struct pg_store *s, int64_t deadline_us, struct ob_err *err)
{
	PGresult *result = NULL;
	int at = 0, r = 0;

	for (;;) {
		const char *doing = s->queue[at < s->queued ? at : s->queued - 1].doing;
		int got = next_result(s, deadline_us, doing, &result, err);

		if (got < 0)
			return got;
		if (!result)
			continue;
		ExecStatusType status = PQresultStatus(result);
		if (status == PGRES_PIPELINE_SYNC) {
			PQclear(result);
			return r;
		}
		if (r == 0 && !is_good(result))
			r = pg_err(s, result, doing, err);
		if (r == 0 && at < s->queued && s->queue[at].plans)
			*s->queue[at].plans = true;
		if (r == 0 && at < s->queued && !s->queue[at].hidden)
			s->results[s->result_count++] = result;
		else
			PQclear(result);
		at++;
		/* A connection that is gone sends no sync. */
		if (PQstatus(s->conn) == CONNECTION_BAD)
			return r < 0 ? r : pg_err(s, NULL, doing, err);
	}
}

static int64_t deadline_of(const struct pg_store *s)
{
	/* A little later than the server's own, whose message says more. */
	return s->unlimited ? INT64_MAX
			    : ob_clock_boot_us(&ob_clock_system) + (s->timeout_ms + 2000) * 1000;
}

static int exchange(struct pg_store *s, struct ob_err *err)
{
	if (!s->keep)
		pg_clear(s);
	if (s->queued == 0) {
		s->bare = false;
		return 0;
	}
	if (!PQpipelineSync(s->conn)) {
		s->broken = true;
		return pg_err(s, NULL, "sending", err);
	}
	int r = receive(s, deadline_of(s), err);
	s->queued = 0;
	s->bare = false;
	if (r < 0)
		pg_clear(s);
	return r;
}

void pg_rollback(struct pg_store *s)
{
	struct ob_err ignored;

	pg_clear(s);
	if (!s->conn || s->broken || PQstatus(s->conn) != CONNECTION_OK) {
		s->broken = true;
		s->queued = 0;
		s->bare = false;
		return;
	}
	/* What is queued was never sent with a sync: let it run, then undo it. */
	if (s->queued > 0 && exchange(s, &ignored) < 0 && s->broken)
		return;
	if (PQtransactionStatus(s->conn) == PQTRANS_IDLE)
		return;
	if (pg_add(s, PG_rollback, NULL, &ignored) < 0 || exchange(s, &ignored) < 0)
		s->broken = true;
}

int pg_flush(struct pg_store *s, struct ob_err *err)
{
	int r = exchange(s, err);

	if (r < 0)
		pg_rollback(s);
	return r;
}

int pg_ask(struct pg_store *s, int id, struct pg_params *p, struct ob_err *err)
{
	int r = pg_add(s, id, p, err);

	return r < 0 ? r : pg_flush(s, err);
}

int pg_commit(struct pg_store *s, struct ob_err *err)
{
	int r = OB_FAULT("store.before_commit")
			? ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault before the commit")
		: s->bare ? 0
			  : add_hidden(s, PG_commit, NULL, err);

	if (r < 0) {
		pg_rollback(s);
		return r;
	}
	r = pg_flush(s, err);
	if (r == 0 && OB_FAULT("store.after_commit"))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault after the commit");
	return r;
}

int pg_finish(struct pg_store *s, int r, struct ob_err *err)
{
	if (r < 0) {
		pg_rollback(s);
		return r;
	}
	int committed = pg_commit(s, err);
	return committed < 0 ? committed : r;
}

int pg_run_one(struct pg_store *s, int id, struct pg_params *p, struct ob_err *err)
{
	int r = pg_begin(s, err);

	if (r == 0)
		return pg_finish(s, pg_add(s, id, p, err), err);
	if (p)
		free_arrays(p);
	return r;
}

/* ---- scripts --------------------------------------------------------- */

/* Several statements in one text are for the simple protocol, outside the pipeline. */
int pg_script(struct pg_store *s, const char *sql, const char *doing, struct ob_err *err)
{
	PGresult *result = NULL;
	int r = s->queued > 0 ? pg_flush(s, err) : 0;

	if (r < 0)
		return r;
	if (!PQexitPipelineMode(s->conn) || !PQsendQuery(s->conn, sql)) {
		s->broken = true;
		return pg_err(s, NULL, doing, err);
	}
	do {
		int got = next_result(s, deadline_of(s), doing, &result, err);

		if (got < 0)
			return got;
		if (result && r == 0 && !is_good(result))
			r = pg_err(s, result, doing, err);
		PQclear(result);
	} while (result);
	if (!PQenterPipelineMode(s->conn))
		s->broken = true;
	return r;
}
