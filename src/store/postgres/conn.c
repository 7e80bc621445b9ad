/* SPDX-License-Identifier: MIT */
/* Connecting to PostgreSQL, with a deadline, and what its errors mean. */
#include "store/postgres/conn.h"

#include "base/cleanup.h"
#include "store/postgres/stmt.h"

#include <ctype.h>
#include <poll.h>

enum { OLDEST = 140000, CONNECT_MS = 10000, MESSAGE_MAX = 300 };

/* ---- errors ---------------------------------------------------------- */

static const struct failure {
	const char *state; /* SQLSTATE, or how it begins */
	int status;
	enum ob_err_kind kind;
	bool reconnect;
	const char *advice;
} failures[] = {
	{ "25006", OUTBOX_ESTORE, OB_ERR_DOWN, true,
	  "the server is read-only, a standby perhaps; it must be the primary" },
	{ "25P03", OUTBOX_ESTORE, OB_ERR_DOWN, true,
	  NULL }, /* idle in a transaction for too long */
	{ "28P01", OUTBOX_ESTORE, OB_ERR_FATAL, true, "correct the user or the password" },
	{ "28", OUTBOX_ESTORE, OB_ERR_FATAL, true,
	  "correct the user, or let it in by the server's pg_hba.conf" },
	{ "3D000", OUTBOX_ESTORE, OB_ERR_FATAL, true, "create the database, or correct its name" },
	{ "3F000", OUTBOX_ESCHEMA, OB_ERR_FATAL, false,
	  "create the schema, or name one in the layout: table: SCHEMA.outbox" },
	{ "42501", OUTBOX_ESTORE, OB_ERR_FATAL, false,
	  "grant this user SELECT, INSERT, UPDATE and DELETE on the outbox tables" },
	{ "42P01", OUTBOX_ESCHEMA, OB_ERR_FATAL, false, "run `outbox setup`" },
	{ "42703", OUTBOX_ESCHEMA, OB_ERR_FATAL, false,
	  "correct the layout, or run `outbox setup`" },
	{ "42", OUTBOX_ESCHEMA, OB_ERR_FATAL, false, "run `outbox setup`" },
	{ "08", OUTBOX_ESTORE, OB_ERR_DOWN, true, NULL },
	{ "57P", OUTBOX_ESTORE, OB_ERR_DOWN, true, NULL }, /* shutting down, starting up */
	{ "57014", OUTBOX_EBUSY, OB_ERR_DOWN, false, NULL },
	{ "53300", OUTBOX_EBUSY, OB_ERR_DOWN, true, "raise max_connections, or use fewer workers" },
	{ "53100", OUTBOX_ESTORE, OB_ERR_DOWN, false, "free some disk space" },
	{ "53", OUTBOX_ESTORE, OB_ERR_DOWN, false, NULL },
	{ "40", OUTBOX_EBUSY, OB_ERR_DOWN, false, NULL },    /* deadlock, serialization */
	{ "55P03", OUTBOX_EBUSY, OB_ERR_DOWN, false, NULL }, /* lock_timeout */
	{ "55006", OUTBOX_EBUSY, OB_ERR_DOWN, false, NULL },
	{ "58", OUTBOX_ESTORE, OB_ERR_DOWN, false, "look at the server's log" },
	{ "XX", OUTBOX_ESTORE, OB_ERR_FATAL, false, "look at the server's log" },
	{ "0A000", OUTBOX_ESTORE, OB_ERR_FATAL, false, NULL },
};

static const struct failure *failure_of(const char *state)
{
	static const struct failure other = { "", OUTBOX_ESTORE, OB_ERR_FATAL, false, NULL };
	static const struct failure gone = { "", OUTBOX_ESTORE, OB_ERR_DOWN, true, NULL };

	if (!*state)
		return &gone; /* no answer of the server: its absence */
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		if (strncmp(state, failures[i].state, strlen(failures[i].state)) == 0)
			return &failures[i];
	}
	return &other;
}

/* Libpq's messages have several lines. */
static void one_line(const char *text, char *out, size_t size)
{
	size_t n = 0;

	for (; *text && n + 3 < size; text++) {
		if (*text != '\n' && *text != '\t') {
			out[n++] = *text;
		} else if (text[1] && n > 0 && out[n - 1] != ' ') {
			out[n++] = *text == '\n' ? ';' : ' ';
			if (*text == '\n')
				out[n++] = ' ';
		}
	}
	out[n] = '\0';
}

/* Every SQLSTATE has a digit; "FATAL" has none. */
static bool is_state(const char *p)
{
	bool digit = false;

	for (int i = 0; i < 5; i++) {
		if (!isdigit((unsigned char)p[i]) && !(p[i] >= 'A' && p[i] <= 'Z'))
			return false;
		digit = digit || isdigit((unsigned char)p[i]);
	}
	return digit && p[5] == ':';
}

/*
 * A connection that was refused has no result to ask. Asked to be verbose, libpq puts the
 * SQLSTATE into its text: "FATAL:  28P01: ...". Cut it out; what stands behind is the message.
 */
static const char *cut_state(const char *text, char state[6])
{
	for (const char *p = text; *p; p++) {
		if (p > text && p[-1] == ' ' && is_state(p)) {
			memcpy(state, p, 5);
			state[5] = '\0';
			p += 6;
			return p + strspn(p, " ");
		}
	}
	state[0] = '\0';
	return text;
}

/* Who may not change the schema needs other rights than a relay. */
static const char *advice_for(const struct failure *f, const char *doing)
{
	if (strcmp(f->state, "42501") == 0 && strcmp(doing, "changing the schema") == 0)
		return "run it as a user who may create tables there, or give such a user what "
		       "`outbox setup --print` prints";
	return f->advice;
}

/* The one place that knows what SQLSTATEs mean. */
int pg_err(struct pg_store *s, const PGresult *result, const char *doing, struct ob_err *err)
{
	const char *field = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
	const char *primary = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	char state[6] = "", text[MESSAGE_MAX];

	if (primary) {
		(void)snprintf(state, sizeof(state), "%s", field ? field : "");
		one_line(primary, text, sizeof(text));
	} else {
		const char *all = result    ? PQresultErrorMessage(result)
				  : s->conn ? PQerrorMessage(s->conn)
					    : "";
		one_line(cut_state(all, state), text, sizeof(text));
		char *detail = strstr(text, "; LOCATION:");
		if (detail)
			*detail = '\0';
	}
	const struct failure *f = failure_of(state);
	/* BEGIN READ WRITE on a standby has a code of its own. */
	if (strcmp(state, "0A000") == 0 && result && strcmp(doing, "beginning a transaction") == 0)
		f = &failures[0];
	if (f->reconnect || !s->conn || PQstatus(s->conn) != CONNECTION_OK)
		s->broken = true;
	const char *advice = advice_for(f, doing);
	(void)ob_err_set(err, f->status, f->kind, "%s: %s%s%s", doing,
			 *text ? text : "the connection is gone", advice ? "; " : "",
			 advice ? advice : "");
	(void)snprintf(err->native, sizeof(err->native), "%s", state);
	return err->status;
}

int pg_oom(const char *doing, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "%s: out of memory", doing);
}

/* ---- connecting ------------------------------------------------------ */

bool pg_wait(PGconn *conn, bool write, int64_t deadline_us)
{
	struct pollfd fd = { .fd = PQsocket(conn),
			     .events = (short)(write ? POLLIN | POLLOUT : POLLIN) };
	int timeout = -1;

	if (deadline_us != INT64_MAX) {
		int64_t left = (deadline_us - ob_clock_boot_us(&ob_clock_system) + 999) / 1000;

		timeout = left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
	}
	return fd.fd >= 0 && poll(&fd, 1, timeout) > 0;
}

static void ignore_notice(void *arg, const PGresult *result)
{
	(void)arg;
	(void)result;
}

/* Does the URL name several hosts and not say which of them may be used? */
static bool wants_primary(const char *url)
{
	PQconninfoOption *options = PQconninfoParse(url, NULL);
	bool several = false, said = false;

	for (const PQconninfoOption *o = options; o && o->keyword; o++) {
		if (strcmp(o->keyword, "host") == 0 || strcmp(o->keyword, "hostaddr") == 0)
			several = several || (o->val && strchr(o->val, ','));
		if (strcmp(o->keyword, "target_session_attrs") == 0)
			said = o->val != NULL;
	}
	PQconninfoFree(options);
	return several && !said;
}

static int poll_connection(struct pg_store *s, PGconn *conn, int64_t deadline_us,
			   struct ob_err *err)
{
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	while (status != PGRES_POLLING_OK) {
		if (status == PGRES_POLLING_FAILED || PQstatus(conn) == CONNECTION_BAD)
			return -1;
		struct pollfd fd = {
			.fd = PQsocket(conn),
			.events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT,
		};
		int64_t left = (deadline_us - ob_clock_boot_us(&ob_clock_system) + 999) / 1000;
		if (left <= 0 || poll(&fd, 1, (int)left) <= 0)
			return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN,
					  "connecting: no answer within %lld ms",
					  (long long)s->timeout_ms);
		status = PQconnectPoll(conn);
	}
	return 0;
}

/*
 * What libpq itself refuses has no code, only its text, which is not translated since we never
 * set a locale. Not known to it: as DOWN as any server that does not answer.
 */
static const struct {
	const char *text;
	enum ob_err_kind kind;
	const char *advice;
} refusals[] = {
	{ "certificate verify failed", OB_ERR_FATAL,
	  "the server's certificate is not signed by what sslrootcert holds" },
	{ "does not match host name", OB_ERR_FATAL, "use the name of the certificate as host" },
	{ "root certificate file", OB_ERR_FATAL, "correct sslrootcert in the url" },
	{ "could not load root certificate", OB_ERR_FATAL, "correct sslrootcert in the url" },
	{ "does not support SSL", OB_ERR_FATAL,
	  "turn on ssl in the server, or ask for less with sslmode in the url" },
	{ "session is read-only", OB_ERR_DOWN, "none of the hosts takes writes: name the primary" },
	{ "server is in hot standby mode", OB_ERR_DOWN,
	  "none of the hosts takes writes: name the primary" },
};

static int refused_by_libpq(struct ob_err *err)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		if (!err->native[0] && strstr(err->msg, refusals[i].text)) {
			struct ob_err said = *err;

			return ob_err_set(err, said.status, refusals[i].kind, "%s; %s", said.msg,
					  refusals[i].advice);
		}
	}
	return err->status;
}

static int refused(struct pg_store *s, PGconn *conn, struct ob_err *err)
{
	PGconn *kept = s->conn;

	if (PQconnectionNeedsPassword(conn))
		return ob_err_set(
			err, OUTBOX_ESTORE, OB_ERR_FATAL,
			"connecting: the server asks for a password; give one in password "
			"or in ~/.pgpass");
	s->conn = conn;
	(void)pg_err(s, NULL, "connecting", err);
	s->conn = kept;
	return refused_by_libpq(err);
}

int pg_connect(struct pg_store *s, const char *url, PGconn **ret_conn, struct ob_err *err)
{
	/* What stands behind dbname wins over the URL, what stands before gives way to it. */
	const char *keys[] = { "fallback_application_name",
			       "connect_timeout",
			       "keepalives_idle",
			       "keepalives_interval",
			       "keepalives_count",
			       "tcp_user_timeout",
			       "target_session_attrs",
			       "password",
			       "dbname",
			       "client_encoding",
			       NULL };
	const char *values[] = { "outbox",
				 "10",
				 "15",
				 "5",
				 "3",
				 "20000",
				 wants_primary(url) ? "read-write" : "any",
				 s->password,
				 url,
				 "UTF8",
				 NULL };
	int64_t wait_ms = s->timeout_ms > CONNECT_MS ? s->timeout_ms : CONNECT_MS;
	int64_t deadline = ob_clock_boot_us(&ob_clock_system) + wait_ms * 1000;
	PGconn *conn = PQconnectStartParams(keys, values, 1);

	if (!conn)
		return pg_oom("connecting", err);
	(void)PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
	(void)PQsetNoticeReceiver(conn, ignore_notice, NULL);
	err->status = 0;
	int r = poll_connection(s, conn, deadline, err);
	if (r == -1 && err->status == 0)
		r = refused(s, conn, err);
	if (r == 0 && (PQsetnonblocking(conn, 1) < 0 || !PQenterPipelineMode(conn)))
		r = ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "connecting: %s",
			       PQerrorMessage(conn));
	if (r < 0) {
		PQfinish(conn);
		return r;
	}
	*ret_conn = conn;
	return 0;
}

void pg_disconnect(struct pg_store *s)
{
	outbox_close(s->writer);
	s->writer = NULL;
	s->exec_ran = s->exec_planned = 0;
	pg_clear(s);
	if (s->listener && s->listener != s->conn)
		PQfinish(s->listener);
	s->listener = NULL;
	s->listening = s->listen_tried = false;
	PQfinish(s->conn);
	s->conn = NULL;
	memset(s->planned, 0, sizeof(s->planned));
	s->queued = 0;
	s->in_tx = s->bare = s->broken = s->unlimited = false;
	s->sequence = 0;
	s->has_due = false;
	s->session = (struct ob_uuid){ 0 }; /* the lock went with the connection */
	free(s->path);
	s->path = NULL;
}

/* ---- what a new connection must know --------------------------------- */

/*
 * The system's own schema is searched first where it is not named, so that nobody's function
 * stands for one of its; temporary tables last. Where the layout names the schema nothing else
 * is needed.
 */
static int set_path(struct pg_store *s, struct ob_str own, struct ob_err *err)
{
	struct ob_buf path = OB_BUF_INIT(65536);

	ob_buf_adds(&path, "");
	if (s->search_path) {
		ob_buf_adds(&path, s->search_path);
	} else if (!s->base.layout->schema[0] && own.n > 0) {
		ob_buf_add(&path, own);
		ob_buf_adds(&path, ", pg_temp");
	}
	s->path = ob_buf_take(&path);
	return s->path ? 0 : pg_oom("connecting", err);
}

int pg_check_version(int number, const char *text, struct ob_err *err)
{
	if (number >= OLDEST)
		return 0;
	return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
			  "PostgreSQL %s is too old: upgrade it to %d or newer", text,
			  OLDEST / 10000);
}

static int greet(struct pg_store *s, struct ob_err *err)
{
	int r = pg_ask(s, PG_hello, NULL, err);
	if (r < 0)
		return r;
	const PGresult *hello = s->results[0];
	struct ob_str version = pg_get_str(hello, 0, 4), encoding = pg_get_str(hello, 0, 3);
	struct ob_str database = pg_get_str(hello, 0, 5);
	s->version = (int)pg_get_int(hello, 0, 0);
	s->pooled = pg_get_int(hello, 0, 1) != PQbackendPID(s->conn);
	(void)snprintf(s->server, sizeof(s->server), "%.*s", (int)version.n, version.p);
	(void)snprintf(s->database, sizeof(s->database), "%.*s", (int)database.n, database.p);
	r = pg_check_version(s->version, s->server, err);
	if (r < 0)
		return r;
	if (!ob_str_eq(encoding, OB_STR("UTF8")))
		return ob_err_set(
			err, OUTBOX_ESTORE, OB_ERR_FATAL,
			"database '%s' has the encoding %.*s: make one with ENCODING 'UTF8'",
			s->database, (int)encoding.n, encoding.p);
	r = set_path(s, pg_get_str(hello, 0, 2), err);
	return r < 0 || s->pooled ? r : pg_pin_session(s, err);
}

int pg_ready(struct pg_store *s, struct ob_err *err)
{
	/* Both happen behind our back; without this the first call after it would fail. */
	if (s->conn && (s->broken || PQstatus(s->conn) != CONNECTION_OK))
		pg_disconnect(s);
	if (s->conn)
		return 0;
	int r = pg_connect(s, s->base.url, &s->conn, err);
	if (r == 0)
		r = greet(s, err);
	if (r < 0)
		pg_disconnect(s);
	return r;
}
