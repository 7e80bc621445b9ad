/* SPDX-License-Identifier: MIT */
/* Events on PostgreSQL. Values go and come as text, but for payloads that are bytes. */
#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "lib/events/drivers.h"
#include "lib/events/row.h"
#include "lib/events/steps.h"
#include "lib/fail.h"
#include "lib/postgres_push.h"
#include "sql_postgres.h"

#include <inttypes.h>

enum { SQL_MAX = 64 * 1024, NUMBER_SIZE = 24, PARAMS_MAX = 11 };

static void clearp(PGresult **result)
{
	PQclear(*result);
}

#define AUTOCLEAR OB_CLEANUP(clearp)

/* The parameters of a statement; the stream comes first. */
struct params {
	const char *values[PARAMS_MAX];
	char numbers[PARAMS_MAX][NUMBER_SIZE];
	int count;
};

static struct params params_of(const struct ob_stream_key *stream)
{
	return (struct params){ .values = { stream->target, stream->type, stream->id },
				.count = 3 };
}

static void add_number(struct params *p, int64_t value)
{
	(void)snprintf(p->numbers[p->count], NUMBER_SIZE, "%" PRId64, value);
	p->values[p->count] = p->numbers[p->count];
	p->count++;
}

/* A failed statement ends the transaction, if one is open: there is no savepoint to read in. */
static int fail_query(const PGresult *result, const PGconn *conn, struct outbox_error *err)
{
	const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
	const char *text = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	bool schema = state && (strcmp(state, "42P01") == 0 || strcmp(state, "42703") == 0);
	bool busy = state && strncmp(state, "40", 2) == 0;

	(void)ob_fail(
		err,
		schema ? OUTBOX_ESCHEMA
		: busy ? OUTBOX_EBUSY
		       : OUTBOX_ESTORE,
		OUTBOX_NO_INDEX, "reading the stream: %.150s%s%s",
		text ? text : PQerrorMessage(conn), schema ? "; run `outbox setup --events`" : "",
		PQtransactionStatus(conn) == PQTRANS_INERROR ? "; roll the transaction back" : "");
	(void)snprintf(err->native, sizeof(err->native), "%s", state ? state : "");
	return err->status;
}

/* Run it; *ret is the caller's to clear. */
static int query(const struct ob_postgres_driver *driver, const char *tmpl, const struct params *p,
		 PGresult **ret, struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);
	struct ob_err inner = OB_ERR_INIT;

	if (ob_sqltmpl_expand(&sql, tmpl, &driver->layout, '"', NULL, &inner) < 0)
		return ob_fail(err, OUTBOX_ECONFIG, OUTBOX_NO_INDEX,
			       "the layout has no sequence_number: events need it");
	*ret = PQexecParams(driver->conn, ob_buf_str(&sql), p->count, NULL, p->values, NULL, NULL,
			    0);
	ExecStatusType status = PQresultStatus(*ret);
	return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK
		       ? 0
		       : fail_query(*ret, driver->conn, err);
}

static int64_t number_at(const PGresult *result, int row, int column)
{
	return strtoll(PQgetvalue(result, row, column), NULL, 10);
}

int ob_postgres_look_stream(void *self, const struct ob_stream_key *stream,
			    struct ob_stream_state *ret, struct outbox_error *err)
{
	const struct params p = params_of(stream);
	AUTOCLEAR PGresult *found = NULL;
	int r = query(self, sql_postgres_stream_look, &p, &found, err);

	if (r == 0)
		*ret = (struct ob_stream_state){ number_at(found, 0, 0), number_at(found, 0, 2),
						 (int)number_at(found, 0, 1) };
	return r;
}

static int postgres_actual(void *self, const struct ob_stream_key *stream, int64_t *ret,
			   struct outbox_error *err)
{
	struct ob_stream_state state;
	int r = ob_postgres_look_stream(self, stream, &state, err);

	if (r == 0)
		*ret = state.version;
	return r;
}

int ob_postgres_keep_stream(void *self, const struct ob_stream_key *stream,
			    const struct ob_stream_state *state, struct outbox_error *err)
{
	bool forget = state->end == OUTBOX_STREAM_OPEN && state->first_version == 1;
	struct params p = params_of(stream);
	AUTOCLEAR PGresult *done = NULL;

	if (!forget) {
		add_number(&p, state->end);
		add_number(&p, state->first_version);
	}
	return query(self, forget ? sql_postgres_stream_forget : sql_postgres_stream_keep, &p,
		     &done, err);
}

static int postgres_version_of(void *self, const struct ob_stream_key *stream,
			       const struct ob_uuid *id, int64_t *ret, struct outbox_error *err)
{
	struct params p = params_of(stream);
	char text[OB_UUID_TEXT_SIZE];
	AUTOCLEAR PGresult *found = NULL;

	ob_uuid_format(id, text);
	p.values[p.count++] = text;
	int r = query(self, sql_postgres_stream_version_of, &p, &found, err);
	if (r == 0)
		*ret = PQntuples(found) ? number_at(found, 0, 0) : 0;
	return r;
}

static int postgres_place(void *self, const struct ob_stream_key *stream, int64_t first,
			  int64_t last, int64_t ret[2], struct outbox_error *err)
{
	struct params p = params_of(stream);
	AUTOCLEAR PGresult *found = NULL;

	add_number(&p, first);
	add_number(&p, last);
	int r = query(self, sql_postgres_stream_place, &p, &found, err);
	for (int i = 0; r == 0 && i < 2; i++)
		ret[i] = number_at(found, 0, i);
	return r;
}

int ob_postgres_append(void *self, const struct ob_append *call, struct ob_append_done *ret,
		       struct outbox_error *err)
{
	const struct ob_append_steps steps = {
		.driver = self,
		.look = ob_postgres_look_stream,
		.actual = postgres_actual,
		.insert = ob_postgres_insert,
		.version_of = postgres_version_of,
		.place = postgres_place,
		.insert_expected = ob_postgres_insert_expected,
	};

	return ob_append_by_steps(&steps, call, ret, err);
}

/* ---- reading --------------------------------------------------------- */

static int take_row(const struct ob_postgres_driver *driver, const PGresult *rows, int row,
		    struct ob_event_page *page, struct outbox_error *err)
{
	struct ob_event_row event = { 0 };
	unsigned char *bytes = NULL;

	for (int c = 0; c < OB_EV_COLUMNS; c++) {
		if (ob_event_is_number(c))
			event.number[c] = number_at(rows, row, c);
		else if (!PQgetisnull(rows, row, c))
			event.text[c] = (struct ob_str){ PQgetvalue(rows, row, c),
							 (size_t)PQgetlength(rows, row, c) };
	}
	if (driver->layout.binary_payload && event.text[OB_EV_PAYLOAD].p) {
		size_t size = 0;

		bytes = PQunescapeBytea((const unsigned char *)event.text[OB_EV_PAYLOAD].p, &size);
		event.text[OB_EV_PAYLOAD] = (struct ob_str){ (const char *)bytes, size };
	}
	int r = ob_event_add(page, &event, err);
	PQfreemem(bytes);
	return r;
}

int ob_postgres_pin_log(void *self, int64_t *ret_end, char **ret_now, struct outbox_error *err)
{
	const struct params p = { .count = 0 };
	AUTOCLEAR PGresult *found = NULL;
	int r = query(self, sql_postgres_log_now, &p, &found, err);

	if (r < 0)
		return r;
	*ret_end = INT64_MAX;
	*ret_now = strdup(PQgetvalue(found, 0, 0));
	return *ret_now ? 0 : ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
}

static void bind_log(const struct ob_event_query *q, struct params *p)
{
	const int64_t bounds[] = { q->after_position, q->to_position, q->after_us, q->to_us };

	*p = (struct params){ .values = { q->stream.target, q->stream.type }, .count = 2 };
	for (int i = 0; i < 4; i++)
		add_number(p, bounds[i]);
	p->values[p->count++] = q->event_type;
	p->values[p->count++] = q->correlation_id;
	add_number(p, q->with_ended);
	p->values[p->count++] = q->now;
}

static void bind_stream(const struct ob_event_query *q, struct params *p)
{
	const int64_t bounds[] = { q->after_version, q->to_version, q->after_position,
				   q->to_position,   q->after_us,   q->to_us };

	*p = params_of(&q->stream);
	for (int i = 0; i < 6; i++)
		add_number(p, bounds[i]);
	p->values[p->count++] = q->event_type;
}

static void bind_recent(const struct ob_event_query *q, struct params *p)
{
	*p = (struct params){ .values = { q->stream.target }, .count = 1 };
	add_number(p, q->to_position);
}

int ob_postgres_read_events(void *self, const struct ob_event_query *q, struct ob_event_page *page,
			    struct outbox_error *err)
{
	const char *forward = q->log ? sql_postgres_log_forward : sql_postgres_stream_forward;
	const char *backward = q->log ? sql_postgres_log_backward : sql_postgres_stream_backward;
	struct params p;
	AUTOCLEAR PGresult *rows = NULL;

	if (q->recent)
		bind_recent(q, &p);
	else if (q->log)
		bind_log(q, &p);
	else
		bind_stream(q, &p);
	add_number(&p, q->limit);
	int r = query(self,
		      q->recent     ? sql_postgres_streams_recent
		      : q->backward ? backward
				    : forward,
		      &p, &rows, err);
	for (int i = 0; r == 0 && i < PQntuples(rows); i++)
		r = take_row(self, rows, i, page, err);
	return r;
}

/* ---- small statements ------------------------------------------------ */

static int bind_values(const struct ob_ask_value *values, size_t count, struct params *p,
		       struct ob_arena *arena, struct outbox_error *err)
{
	for (size_t i = 0; i < count; i++) {
		struct ob_str text;

		if (values[i].is_number) {
			add_number(p, values[i].number);
			continue;
		}
		/* Parameters end with a NUL. */
		if (!ob_arena_copy(arena, values[i].text, &text))
			return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
		p->values[p->count++] = text.p;
	}
	return 0;
}

int ob_postgres_ask(void *self, enum ob_ask ask, const struct ob_ask_value *values, size_t count,
		    struct ob_answer *ret, struct outbox_error *err)
{
	static const char *const templates[] = {
#define X(name) [OB_ASK_##name] = sql_postgres_##name,
		OB_ASK_MAP(X)
#undef X
	};
	struct params p = { .count = 0 };
	AUTOCLEAR PGresult *rows = NULL;
	int r = bind_values(values, count, &p, &ret->arena, err);

	if (r == 0)
		r = query(self, templates[ask], &p, &rows, err);
	for (int i = 0; r == 0 && i < PQntuples(rows); i++) {
		struct ob_str *row = ob_answer_row(ret, err);

		r = row ? 0 : err->status;
		for (int c = 0; r == 0 && c < PQnfields(rows) && c < OB_ASK_COLUMNS; c++) {
			if (!PQgetisnull(rows, i, c))
				r = ob_answer_cell(
					ret, &row[c],
					(struct ob_str){ PQgetvalue(rows, i, c),
							 (size_t)PQgetlength(rows, i, c) },
					err);
		}
	}
	if (r == 0)
		ret->changed = strtoull(PQcmdTuples(rows), NULL, 10);
	return r;
}
