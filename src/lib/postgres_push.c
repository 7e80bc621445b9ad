/* SPDX-License-Identifier: MIT */
/*
 * Pushing into PostgreSQL: one INSERT with an array for each field, in a savepoint, on the
 * caller's own connection. The three statements go out together.
 */
#include "lib/postgres_push.h"

#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "lib/duplicate.h"
#include "lib/events/drivers.h"
#include "lib/fail.h"
#include "lib/inbox/drivers.h"
#include "lib/options.h"
#include "outbox/postgres.h"
#include "sql_postgres.h"

enum { SQL_MAX = 64 * 1024 };

static void clearp(PGresult **result)
{
	PQclear(*result);
}

#define AUTOCLEAR OB_CLEANUP(clearp)

/* ---- errors ---------------------------------------------------------- */

/* What a failed statement reports, kept before the next one. */
struct failure {
	char state[6], constraint[64], text[256];
};

static void copy_field(const PGresult *result, int field, char *out, size_t size)
{
	const char *text = result ? PQresultErrorField(result, field) : NULL;

	(void)snprintf(out, size, "%s", text ? text : "");
}

static struct failure failure_of(const struct ob_postgres_driver *driver, const PGresult *result)
{
	struct failure f;

	copy_field(result, PG_DIAG_SQLSTATE, f.state, sizeof(f.state));
	copy_field(result, PG_DIAG_CONSTRAINT_NAME, f.constraint, sizeof(f.constraint));
	copy_field(result, PG_DIAG_MESSAGE_PRIMARY, f.text, sizeof(f.text));
	if (!f.text[0])
		(void)snprintf(f.text, sizeof(f.text), "%s", PQerrorMessage(driver->conn));
	f.text[strcspn(f.text, "\n")] = '\0';
	return f;
}

static const struct meaning {
	const char *state; /* SQLSTATE, or how it begins */
	int status;
	const char *advice;
} meanings[] = {
	{ "42P01", OUTBOX_ESCHEMA,
	  "run `outbox setup`, or name the schema: table \"SCHEMA.outbox\"" },
	{ "42703", OUTBOX_ESCHEMA, "the table is not ours, or the options do not fit it" },
	{ "42804", OUTBOX_ESCHEMA, "the table is not ours, or the options do not fit it" },
	{ "42883", OUTBOX_ESCHEMA, "the table is not ours, or the options do not fit it" },
	{ "3F000", OUTBOX_ESCHEMA, "create the schema" },
	{ "42501", OUTBOX_ESTORE, "grant INSERT on the table to this user" },
	{ "40", OUTBOX_EBUSY, "roll the transaction back and run it again" },
	{ "55P03", OUTBOX_EBUSY, "roll the transaction back and run it again" },
	{ "57014", OUTBOX_EBUSY, "roll the transaction back and run it again" },
	{ "25006", OUTBOX_ESTORE, "the server or the transaction is read-only" },
	{ "25P02", OUTBOX_ESTORE, "the transaction has failed before: roll it back" },
	{ "", OUTBOX_ESTORE, NULL },
};

static const struct meaning *meaning_of(const char *state)
{
	const struct meaning *m = meanings;

	while (strncmp(state, m->state, strlen(m->state)) != 0)
		m++;
	return m;
}

/* The one place that knows what SQLSTATEs mean; duplicates are told apart before. */
static int tell(const struct failure *f, struct outbox_error *err)
{
	const struct meaning *m = meaning_of(f->state);
	/* A document that the column's type refused, or a CHECK: the core knows more of it. */
	bool check = strcmp(f->state, "22P02") == 0 || strcmp(f->state, "22P05") == 0 ||
		     strcmp(f->state, "23514") == 0 || strcmp(f->state, "54001") == 0;

	(void)ob_fail(err, m->status, OUTBOX_NO_INDEX, "storing the messages: %s%s%s", f->text,
		      m->advice ? "; " : "", m->advice ? m->advice : "");
	(void)snprintf(err->native, sizeof(err->native), "%s", f->state);
	return check ? OB_DRIVER_CHECK : m->status;
}

/* ---- duplicates ------------------------------------------------------ */

/* The log's own index, or that of one of its partitions: "id_p" and a number. */
static bool is_index(const struct ob_postgres_driver *driver, const char *name, const char *suffix,
		     const char *of_partition)
{
	size_t n = strlen(driver->layout.table[OB_TABLE_outbox]), p = strlen(of_partition);

	if (strncmp(name, driver->layout.table[OB_TABLE_outbox], n) != 0 || name[n] != '_')
		return false;
	name += n + 1;
	return strcmp(name, suffix) == 0 || (strncmp(name, of_partition, p) == 0 && name[p] &&
					     name[p + strspn(name + p, "0123456789")] == '\0');
}

/* Ask which message it was, inside the savepoint: the user may have no right to look. */
static size_t find_duplicate(struct ob_postgres_driver *driver,
			     const struct ob_postgres_chunk *chunk)
{
	struct ob_postgres_values v;

	if (!ob_postgres_bind(driver, chunk, true, &v))
		return OUTBOX_NO_INDEX;
	AUTOCLEAR PGresult *found =
		PQexecParams(driver->conn, driver->find, OB_POSTGRES_FIND_FIELDS, NULL, v.values,
			     v.lengths, v.formats, 1);
	if (PQresultStatus(found) != PGRES_TUPLES_OK || PQntuples(found) != 1)
		return OUTBOX_NO_INDEX;
	int64_t at = ob_pg_get(PQgetvalue(found, 0, 0), (size_t)PQgetlength(found, 0, 0));
	return at >= 0 && (size_t)at < chunk->count ? (size_t)at : OUTBOX_NO_INDEX;
}

static int tell_duplicate(struct ob_postgres_driver *driver, const struct ob_postgres_chunk *chunk,
			  const struct failure *f, bool id, struct outbox_error *err)
{
	size_t at = chunk->count == 1 ? 0 : find_duplicate(driver, chunk);
	const struct ob_push_row *row = at == OUTBOX_NO_INDEX ? NULL : &chunk->rows[at];
	size_t index = row ? chunk->first + at : OUTBOX_NO_INDEX;
	char text[OB_UUID_TEXT_SIZE];
	int r;

	if (!row) {
		r = ob_fail(err, id ? OUTBOX_EDUPID : OUTBOX_EDUPSEQUENCE, index,
			    "one of the messages is already stored, by its %s",
			    id ? "id" : "aggregate and sequence number");
	} else if (id) {
		ob_uuid_format(&row->id, text);
		r = ob_fail(err, OUTBOX_EDUPID, index, "id %s is already stored for target '%.80s'",
			    text, ob_push_target(row));
	} else {
		r = ob_fail(err, OUTBOX_EDUPSEQUENCE, index,
			    "aggregate '%.80s' of type '%.60s' already has sequence number %lld",
			    row->message->aggregate_id ? row->message->aggregate_id : "",
			    row->message->aggregate_type, (long long)row->message->sequence_number);
	}
	(void)snprintf(err->native, sizeof(err->native), "%s", f->state);
	return r;
}

/* ---- statements ------------------------------------------------------ */

static int expand(const struct ob_layout *layout, const char *tmpl, char **ret_sql,
		  struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);
	struct ob_err inner = OB_ERR_INIT;

	if (ob_sqltmpl_expand(&sql, tmpl, layout, '"', NULL, &inner) < 0)
		return ob_fail(err, inner.status, OUTBOX_NO_INDEX, "%s", inner.msg);
	*ret_sql = ob_buf_take(&sql);
	return *ret_sql ? 0 : ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
}

int ob_postgres_name_columns(struct ob_postgres_driver *driver, uint32_t columns,
			     struct outbox_error *err)
{
	uint32_t dropped = ob_postgres_all_columns() & ~columns;
	struct ob_layout layout = driver->layout;
	char *sql;

	if (driver->insert && driver->insert_columns == columns)
		return 0;
	for (int c = 0; c < OB_COL_COUNT; c++) {
		if (dropped >> c & 1)
			layout.column[c][0] = '\0';
	}
	int r = expand(&layout, sql_postgres_push, &sql, err);
	if (r < 0)
		return r;
	free(driver->insert);
	driver->insert = sql;
	driver->insert_columns = columns;
	return 0;
}

static bool run(struct ob_postgres_driver *driver, const char *sql)
{
	AUTOCLEAR PGresult *result = PQexec(driver->conn, sql);

	return PQresultStatus(result) == PGRES_COMMAND_OK;
}

/* Undo what the call did so far; the savepoint stays. */
static bool undo(struct ob_postgres_driver *driver)
{
	return run(driver, "ROLLBACK TO SAVEPOINT outbox_push");
}

static int explain(struct ob_postgres_driver *driver, const struct ob_postgres_chunk *chunk,
		   const struct failure *f, struct outbox_error *err)
{
	bool unique = strcmp(f->state, "23505") == 0;
	bool undone = undo(driver);
	int r;

	if (unique && undone && is_index(driver, f->constraint, "uniq_id", "id_p"))
		r = tell_duplicate(driver, chunk, f, true, err);
	else if (unique && undone &&
		 is_index(driver, f->constraint, "uniq_aggregate_sequence", "sq_p"))
		r = tell_duplicate(driver, chunk, f, false, err);
	else
		r = tell(f, err);
	/* Again: the question which message it was may have failed. */
	if (!undone || !undo(driver) || !run(driver, "RELEASE SAVEPOINT outbox_push")) {
		struct outbox_error first = *err;

		(void)ob_fail(err, first.status, first.index, "%.180s; roll the transaction back",
			      first.message);
		memcpy(err->native, first.native, sizeof(err->native));
	}
	return r;
}

static bool send(struct ob_postgres_driver *driver, const char *sql,
		 const struct ob_postgres_values *v)
{
	return PQsendQueryParams(driver->conn, sql, v ? OB_POSTGRES_FIELDS : 0, v ? v->types : NULL,
				 v ? v->values : NULL, v ? v->lengths : NULL, v ? v->formats : NULL,
				 1) == 1;
}

/* Read up to the sync. *ret_failed: the first result that is an error; the caller clears it. */
static long long receive(struct ob_postgres_driver *driver, PGresult **ret_failed)
{
	long long stored = 0;
	int nothing = 0;

	*ret_failed = NULL;
	/* Two NULLs in a row come only when the connection is gone. */
	while (nothing < 2) {
		PGresult *result = PQgetResult(driver->conn);
		ExecStatusType status = PQresultStatus(result);

		nothing = result ? 0 : nothing + 1;
		if (status == PGRES_COMMAND_OK && *PQcmdTuples(result))
			stored = strtoll(PQcmdTuples(result), NULL, 10);
		if (result && status == PGRES_FATAL_ERROR && !*ret_failed)
			*ret_failed = result;
		else
			PQclear(result);
		if (status == PGRES_PIPELINE_SYNC)
			break;
	}
	return stored;
}

static int lost(struct ob_postgres_driver *driver, struct outbox_error *err)
{
	struct failure f = failure_of(driver, NULL);

	return ob_fail(err, OUTBOX_ESTORE, OUTBOX_NO_INDEX,
		       "storing the messages: %s; the connection is gone, and the transaction with "
		       "it",
		       f.text);
}

/* Savepoint (for the first chunk), insert, release (for the last), in one round trip. */
static int insert_chunk(struct ob_postgres_driver *driver, const struct ob_postgres_chunk *chunk,
			bool last, struct outbox_error *err)
{
	struct ob_postgres_values v;
	AUTOCLEAR PGresult *failed = NULL;

	int r = ob_postgres_name_columns(driver, ob_postgres_columns(chunk->rows, chunk->count),
					 err);

	if (r == 0 && !ob_postgres_bind(driver, chunk, false, &v))
		r = ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	if (r < 0) {
		if (chunk->first > 0 &&
		    (!undo(driver) || !run(driver, "RELEASE SAVEPOINT outbox_push")))
			return lost(driver, err);
		return r;
	}
	bool sent = PQenterPipelineMode(driver->conn) &&
		    (chunk->first > 0 || send(driver, "SAVEPOINT outbox_push", NULL)) &&
		    send(driver, driver->insert, &v) &&
		    (!last || send(driver, "RELEASE SAVEPOINT outbox_push", NULL)) &&
		    PQpipelineSync(driver->conn);
	long long stored = sent ? receive(driver, &failed) : 0;
	(void)PQexitPipelineMode(driver->conn);
	if (!sent || PQstatus(driver->conn) != CONNECTION_OK)
		return lost(driver, err);
	if (failed) {
		struct failure f = failure_of(driver, failed);

		return explain(driver, chunk, &f, err);
	}
	/* The savepoint may be gone already: it was released in the same round trip. */
	if (stored != (long long)chunk->count)
		return ob_fail(
			err, OUTBOX_ESTORE, OUTBOX_NO_INDEX,
			"%lld of %zu messages were stored, a trigger or rule on '%s' ignored "
			"the rest; roll the transaction back",
			stored, chunk->count, driver->layout.table[OB_TABLE_outbox]);
	return 0;
}

/* ---- the driver ------------------------------------------------------ */

/* Also when the transaction is not usable: insert() says more than that there is none. */
static bool postgres_in_transaction(void *self)
{
	const struct ob_postgres_driver *driver = self;
	PGTransactionStatusType status = PQtransactionStatus(driver->conn);

	return status == PQTRANS_INTRANS || status == PQTRANS_INERROR || status == PQTRANS_ACTIVE;
}

int ob_postgres_check_encoding(const struct ob_postgres_driver *driver, struct outbox_error *err)
{
	const char *encoding = PQparameterStatus(driver->conn, "client_encoding");

	if (encoding && strcmp(encoding, "UTF8") == 0)
		return 0;
	return ob_fail(err, OUTBOX_ECONFIG, OUTBOX_NO_INDEX,
		       "client_encoding is %.40s, but messages are UTF-8: call "
		       "PQsetClientEncoding(conn, \"UTF8\")",
		       encoding ? encoding : "not known");
}

static int check_connection(const struct ob_postgres_driver *driver, struct outbox_error *err)
{
	if (PQtransactionStatus(driver->conn) == PQTRANS_INERROR)
		return ob_fail(err, OUTBOX_ESTORE, OUTBOX_NO_INDEX,
			       "the transaction has failed before: roll it back");
	if (PQpipelineStatus(driver->conn) != PQ_PIPELINE_OFF)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "the connection is in pipeline mode: leave it, or send what "
			       "outbox_postgres_statement() returns");
	if (PQtransactionStatus(driver->conn) == PQTRANS_ACTIVE)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "a command is under way on this connection: take its result first");
	return ob_postgres_check_encoding(driver, err);
}

int ob_postgres_insert(void *self, const struct ob_push_row *rows, size_t count,
		       struct outbox_error *err)
{
	struct ob_postgres_driver *driver = self;
	int r = check_connection(driver, err);

	for (size_t done = 0; done < count && r == 0;) {
		struct ob_postgres_chunk chunk = {
			.rows = rows + done,
			.count = ob_postgres_fit(rows + done, count - done),
			.first = done,
		};

		done += chunk.count;
		r = insert_chunk(driver, &chunk, done == count, err);
	}
	return r;
}

static void postgres_close(void *self)
{
	struct ob_postgres_driver *driver = self;

	for (int i = 0; i < OB_POSTGRES_FIELDS; i++)
		ob_pgarray_done(&driver->arrays[i]);
	free(driver->insert);
	free(driver->find);
	free(driver);
}

OB_DEFINE_CLEANUP(struct ob_postgres_driver *, postgres_close)

static const struct ob_driver_ops postgres_ops = {
	.abi = OB_DRIVER_ABI,
	.in_transaction = postgres_in_transaction,
	.insert = ob_postgres_insert,
	.statement = ob_postgres_statement,
	.append = ob_postgres_append,
	.look_stream = ob_postgres_look_stream,
	.keep_stream = ob_postgres_keep_stream,
	.pin_log = ob_postgres_pin_log,
	.ask = ob_postgres_ask,
	.read_events = ob_postgres_read_events,
	.inbox = ob_postgres_inbox,
	.close = postgres_close,
};

/* Parsing the insert tells whether table and columns are there, and needs no right to read them. */
static int check_table(struct ob_postgres_driver *driver, struct outbox_error *err)
{
	static const struct ob_postgres_chunk nothing = { 0 };
	bool in_transaction = PQtransactionStatus(driver->conn) == PQTRANS_INTRANS;
	struct ob_postgres_values v;

	if (!ob_postgres_bind(driver, &nothing, false, &v))
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	if (in_transaction && !run(driver, "SAVEPOINT outbox_push"))
		return lost(driver, err);
	AUTOCLEAR PGresult *result =
		PQprepare(driver->conn, "", driver->insert, OB_POSTGRES_FIELDS, v.types);
	bool good = PQresultStatus(result) == PGRES_COMMAND_OK;
	struct failure f = failure_of(driver, result);
	if (in_transaction &&
	    ((!good && !undo(driver)) || !run(driver, "RELEASE SAVEPOINT outbox_push")))
		return lost(driver, err);
	if (good)
		return 0;
	const struct meaning *m = meaning_of(f.state);
	(void)ob_fail(err, m->status, OUTBOX_NO_INDEX, "%s%s%s", f.text, m->advice ? "; " : "",
		      m->advice ? m->advice : "");
	(void)snprintf(err->native, sizeof(err->native), "%s", f.state);
	return err->status;
}

/* See that everything is there now, not at the first push. */
static int open_driver(struct ob_postgres_driver *driver, const struct outbox_options *options,
		       struct outbox_error *err)
{
	int r = ob_options_layout(options, &driver->layout, err);

	if (r == 0)
		r = check_connection(driver, err);
	if (r == 0)
		r = ob_postgres_name_columns(driver, ob_postgres_all_columns(), err);
	if (r == 0)
		r = expand(&driver->layout, sql_postgres_push_find, &driver->find, err);
	return r < 0 ? r : check_table(driver, err);
}

int outbox_postgres_open_sized(PGconn *conn, const void *options, size_t options_size,
			       outbox **ret_ob, struct outbox_error *err)
{
	struct outbox_error unused;
	struct outbox_options copy;
	const struct outbox_options *ours = NULL;

	if (!err)
		err = &unused;
	if (!conn || PQstatus(conn) != CONNECTION_OK)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "there is no connection");
	OB_CLEANUP(postgres_closep) struct ob_postgres_driver *driver = calloc(1, sizeof(*driver));
	if (!driver)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	driver->conn = conn;
	int r = ob_options_take(options, options_size, &copy, &ours, err);
	if (r == 0)
		r = open_driver(driver, ours, err);
	if (r < 0)
		return r;
	struct ob_check_rules rules = ob_options_rules(ours, &driver->layout);
	r = outbox_driver_attach(&postgres_ops, driver, &rules, ret_ob, err);
	if (r == 0)
		(void)OB_TAKE(driver);
	return r;
}

OUTBOX_API int first_postgres_open(PGconn *conn, const void *options, outbox **ret_ob,
				   struct outbox_error *err) OB_FIRST_ABI("outbox_postgres_open");

int first_postgres_open(PGconn *conn, const void *options, outbox **ret_ob,
			struct outbox_error *err)
{
	return outbox_postgres_open_sized(conn, options, ob_grow_options.first, ret_ob, err);
}
