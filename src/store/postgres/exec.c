/* SPDX-License-Identifier: MIT */
/* A statement of the operator's with values of a message, in the PostgreSQL store's transaction. */
#include "base/cleanup.h"
#include "base/when.h"
#include "store/message_sql.h"
#include "store/postgres/ops.h"
#include "store/postgres/stmt.h"
#include "store/writer.h"

#include <inttypes.h>

enum { TEXT_MAX = 1 << 20, BYTEA = 17 };

#define FEATURE_NOT_SUPPORTED "0A000" /* cached plan must not change result type */

/* Parameters, and room for those that are made here. Every value has a parameter of its own, or
 * PostgreSQL would have to find one type for all its uses. */
struct values {
	struct ob_bound bound[OB_MESSAGE_SQL_VALUES];
	const char *text[OB_MESSAGE_SQL_VALUES];
	char *copies[OB_MESSAGE_SQL_VALUES]; /* texts need a NUL at their end */
	int lengths[OB_MESSAGE_SQL_VALUES], formats[OB_MESSAGE_SQL_VALUES];
	Oid types[OB_MESSAGE_SQL_VALUES]; /* 0: what the statement says */
	size_t count;
};

static void values_done(struct values *v)
{
	for (size_t i = 0; i < v->count; i++)
		free(v->copies[i]);
}

static bool add_value(struct values *v, size_t i)
{
	struct ob_bound *b = &v->bound[i];

	switch (b->kind) {
	case OB_BOUND_NULL:
		return true;
	case OB_BOUND_NUMBER:
		(void)snprintf(b->room, sizeof(b->room), "%" PRId64, b->number);
		v->text[i] = b->room;
		return true;
	case OB_BOUND_TIME:
		ob_when_iso(b->number, b->room);
		v->text[i] = b->room;
		return true;
	case OB_BOUND_BYTES:
		v->text[i] = b->text.p;
		v->lengths[i] = (int)b->text.n;
		v->formats[i] = 1;
		v->types[i] = BYTEA;
		return true;
	case OB_BOUND_TEXT:
	default:
		v->text[i] = v->copies[i] = strndup(b->text.p, b->text.n);
		return v->copies[i] != NULL;
	}
}

static bool make_values(struct values *v, const struct ob_message_sql *sql,
			const struct ob_message *message, bool binary)
{
	bool ok = true;

	for (; ok && v->count < sql->count; v->count++) {
		ob_message_sql_bind(sql, v->count, message, binary, &v->bound[v->count]);
		ok = add_value(v, v->count);
	}
	return ok;
}

/* What never ran on this connection and is refused as SQL can never run. */
static int refuse(struct pg_store *s, const PGresult *result, bool first, struct ob_err *err)
{
	const char *text = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	struct ob_err said = OB_ERR_INIT;

	(void)pg_err(s, result, "running the statement", &said);
	if (text)
		(void)ob_err_set(err, said.status, said.kind, "running the statement: %.300s",
				 text);
	else
		*err = said;
	(void)snprintf(err->native, sizeof(err->native), "%s", said.native);
	return ob_message_sql_fail(first && strncmp(said.native, "42", 2) == 0, err);
}

static bool is_ok(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Bytes come with a type of their own, which a plan does not know. */
static bool may_plan(const struct values *v)
{
	for (size_t i = 0; i < v->count; i++) {
		if (v->types[i])
			return false;
	}
	return true;
}

/* One that has run before on this connection is planned once: most of the time goes into that. */
static PGresult *run_planned(struct pg_store *s, const struct ob_message_sql *sql, const char *text,
			     const struct values *v)
{
	PGresult *result = NULL;
	char name[32];

	s->exec_plans += s->exec_planned != sql->serial;
	(void)snprintf(name, sizeof(name), "obx%u", s->exec_plans);
	if (s->exec_planned != sql->serial) {
		result = PQprepare(s->conn, name, text, (int)v->count, NULL);
		if (!is_ok(result))
			return result;
		PQclear(result);
		s->exec_planned = sql->serial;
	}
	result = PQexecPrepared(s->conn, name, (int)v->count, v->text, v->lengths, v->formats, 0);
	const char *state = is_ok(result) ? NULL : PQresultErrorField(result, PG_DIAG_SQLSTATE);
	/* The columns that it returns have changed: the next one is planned anew. */
	if (state && strcmp(state, FEATURE_NOT_SUPPORTED) == 0)
		s->exec_planned = 0;
	return result;
}

int pg_tx_exec(struct ob_store *store, const struct ob_message_sql *sql,
	       const struct ob_message *message, uint64_t *ret_changed, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT(TEXT_MAX);
	OB_CLEANUP(values_done) struct values v = { .count = 0 };

	if (!s->in_tx)
		return ob_writer_no_transaction(err);
	ob_message_sql_text(sql, '$', &text);
	if (!make_values(&v, sql, message, store->layout->binary_payload) || text.failed)
		return pg_oom("running the statement", err);
	bool ran = s->exec_ran == sql->serial;
	PGresult *result = ran && may_plan(&v)
				   ? run_planned(s, sql, ob_buf_str(&text), &v)
				   : PQexecParams(s->conn, ob_buf_str(&text), (int)sql->count,
						  v.types, v.text, v.lengths, v.formats, 0);
	int r = is_ok(result) ? 0 : refuse(s, result, !ran, err);
	if (r == 0) {
		s->exec_ran = sql->serial;
		*ret_changed = strtoull(PQcmdTuples(result), NULL, 10);
	}
	PQclear(result);
	return r;
}

void *pg_tx_native(struct ob_store *store)
{
	return ((struct pg_store *)store)->conn;
}
