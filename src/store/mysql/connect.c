/* SPDX-License-Identifier: MIT */
/* The connection of the MySQL store: making it, what its session is, and its errors. */
#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "store/mysql/conn.h"
#include "store/mysql/proof.h"
#include "store/mysql/sql.h"

#include "sql_mysql.h"

#include <errmsg.h>
#include <inttypes.h>
#include <mysqld_error.h>
#include <pthread.h>

enum { SESSION_SQL_MAX = 4096, PATIENCE_S = 7 * 24 * 3600 };

/* Numbers that the headers of one of the two servers do not have. */
enum {
	CODE_STATEMENT_TIMEOUT_MARIADB = 1969,
	CODE_QUERY_INTERRUPTED_MYSQL = 3024,
	CODE_READ_ONLY_TRANSACTION = 1792,
	CODE_READ_ONLY_MODE = 1836,
	CODE_CONNECTION_KILLED = 1927,
	CODE_ACCESS_DENIED_NO_PASSWORD = 1698,
	CODE_CHECK_MARIADB = 4025,
	CODE_RECORD_CHANGED_MARIADB = 1020,
};

/* ---- errors ---------------------------------------------------------- */

static const struct failure {
	unsigned code;
	int status;
	enum ob_err_kind kind;
	const char *advice;
} failures[] = {
	{ CR_CONNECTION_ERROR, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ CR_CONN_HOST_ERROR, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ CR_UNKNOWN_HOST, OUTBOX_ESTORE, OB_ERR_DOWN, "look at the host in the url" },
	{ CR_SERVER_GONE_ERROR, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ CR_SERVER_LOST, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ CR_SERVER_LOST_EXTENDED, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ CR_OUT_OF_MEMORY, OUTBOX_ENOMEM, OB_ERR_DOWN, NULL },
	{ CR_STMT_CLOSED, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ CR_NO_PREPARE_STMT, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ CR_COMMANDS_OUT_OF_SYNC, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ CR_SSL_CONNECTION_ERROR, OUTBOX_ESTORE, OB_ERR_FATAL,
	  "look at ssl_ca and ssl_verify, and at the server's certificate" },
	{ ER_CON_COUNT_ERROR, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ ER_TOO_MANY_USER_CONNECTIONS, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ ER_SERVER_SHUTDOWN, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ ER_NEW_ABORTING_CONNECTION, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ CODE_CONNECTION_KILLED, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ ER_QUERY_INTERRUPTED, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ CODE_STATEMENT_TIMEOUT_MARIADB, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ CODE_QUERY_INTERRUPTED_MYSQL, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ ER_LOCK_WAIT_TIMEOUT, OUTBOX_EBUSY, OB_ERR_DOWN,
	  "another transaction kept its lock longer than lock_timeout" },
	{ ER_LOCK_DEADLOCK, OUTBOX_EBUSY, OB_ERR_DOWN, NULL },
	{ ER_DUP_ENTRY, OUTBOX_EBUSY, OB_ERR_DOWN, NULL }, /* a number of the journal was taken */
	{ CODE_RECORD_CHANGED_MARIADB, OUTBOX_EBUSY, OB_ERR_DOWN, NULL },
	{ ER_OPTION_PREVENTS_STATEMENT, OUTBOX_ESTORE, OB_ERR_DOWN,
	  "connect to the server that takes writes" },
	{ CODE_READ_ONLY_MODE, OUTBOX_ESTORE, OB_ERR_DOWN,
	  "connect to the server that takes writes" },
	{ CODE_READ_ONLY_TRANSACTION, OUTBOX_ESTORE, OB_ERR_DOWN,
	  "connect to the server that takes writes" },
	{ ER_DISK_FULL, OUTBOX_ESTORE, OB_ERR_DOWN, "free some disk space on the server" },
	{ ER_RECORD_FILE_FULL, OUTBOX_ESTORE, OB_ERR_DOWN, "free some disk space on the server" },
	{ ER_ERROR_ON_WRITE, OUTBOX_ESTORE, OB_ERR_DOWN, "look at the server's disk" },
	{ ER_OUT_OF_RESOURCES, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ ER_OUTOFMEMORY, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ ER_UNKNOWN_STMT_HANDLER, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ ER_NEED_REPREPARE, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ ER_TABLE_DEF_CHANGED, OUTBOX_ESTORE, OB_ERR_DOWN, NULL },
	{ ER_ACCESS_DENIED_ERROR, OUTBOX_ESTORE, OB_ERR_FATAL,
	  "correct the user and the password of the store" },
	{ CODE_ACCESS_DENIED_NO_PASSWORD, OUTBOX_ESTORE, OB_ERR_FATAL,
	  "correct the user and the password of the store" },
	{ ER_DBACCESS_DENIED_ERROR, OUTBOX_ESTORE, OB_ERR_FATAL,
	  "grant this user rights on the database" },
	{ ER_BAD_DB_ERROR, OUTBOX_ESTORE, OB_ERR_FATAL,
	  "create the database, or correct its name in the url" },
	{ ER_TABLEACCESS_DENIED_ERROR, OUTBOX_ESTORE, OB_ERR_FATAL,
	  "grant this user SELECT, INSERT, UPDATE and DELETE on the outbox tables" },
	{ ER_COLUMNACCESS_DENIED_ERROR, OUTBOX_ESTORE, OB_ERR_FATAL,
	  "grant this user SELECT, INSERT, UPDATE and DELETE on the outbox tables" },
	{ ER_PROCACCESS_DENIED_ERROR, OUTBOX_ESTORE, OB_ERR_FATAL,
	  "run the setup as a user with CREATE ROUTINE on the database" },
	{ ER_SPECIFIC_ACCESS_DENIED_ERROR, OUTBOX_ESTORE, OB_ERR_FATAL, NULL },
	/* Our SQL is valid, so what it does not find is the schema's fault. */
	{ ER_NO_SUCH_TABLE, OUTBOX_ESCHEMA, OB_ERR_FATAL, "run `outbox setup`" },
	{ ER_BAD_FIELD_ERROR, OUTBOX_ESCHEMA, OB_ERR_FATAL, "run `outbox setup`" },
	{ ER_KEY_DOES_NOT_EXISTS, OUTBOX_ESCHEMA, OB_ERR_FATAL, "run `outbox setup`" },
};

static const struct failure *failure_of(unsigned code)
{
	static const struct failure other = { 0, OUTBOX_ESTORE, OB_ERR_FATAL, NULL };

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		if (failures[i].code == code)
			return &failures[i];
	}
	return &other;
}

/* After these the connection is of no use, or leads to the wrong server. */
static bool is_lost(unsigned code)
{
	switch (code) {
	case CR_SERVER_GONE_ERROR:
	case CR_SERVER_LOST:
	case CR_SERVER_LOST_EXTENDED:
	case CR_STMT_CLOSED:
	case CR_NO_PREPARE_STMT:
	case CR_COMMANDS_OUT_OF_SYNC:
	case CODE_CONNECTION_KILLED:
	case ER_SERVER_SHUTDOWN:
	case ER_NEW_ABORTING_CONNECTION:
	case ER_UNKNOWN_STMT_HANDLER:
	case ER_OPTION_PREVENTS_STATEMENT:
	case CODE_READ_ONLY_MODE:
	case CODE_READ_ONLY_TRANSACTION:
		return true;
	default:
		return code >= CR_MIN_ERROR && code <= CR_MAX_ERROR && code != CR_OUT_OF_MEMORY;
	}
}

/* Who may not change the schema needs other rights than a relay. */
static const char *advice_for(const struct failure *f, const char *doing)
{
	bool denied = f->code == ER_TABLEACCESS_DENIED_ERROR || f->code == ER_DBACCESS_DENIED_ERROR;

	if (denied && strcmp(doing, "changing the schema") == 0)
		return "run it as a user who may create tables there, or give such a user what "
		       "`outbox setup --print` prints";
	return f->advice;
}

/* The one place that knows what the server's numbers mean. */
int my_err(struct my_store *s, unsigned code, const char *text, const char *doing,
	   struct ob_err *err)
{
	const struct failure *f = failure_of(code);
	const char *advice = advice_for(f, doing);
	char place[256];

	(void)ob_err_set(err, f->status, f->kind, "%s: %s: %.200s%s%s", doing, my_place(s, place),
			 text, advice ? "; " : "", advice ? advice : "");
	(void)snprintf(err->native, sizeof(err->native), "%u", code);
	s->code = code;
	if (is_lost(code))
		s->broken = true;
	return err->status;
}

int my_oom(const char *doing, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "%s: out of memory", doing);
}

/* ---- connecting ------------------------------------------------------ */

int my_exec(struct my_store *s, MYSQL *db, const char *sql, const char *doing, struct ob_err *err)
{
	if (mysql_real_query(db, sql, strlen(sql)) != 0)
		return my_err(s, mysql_errno(db), mysql_error(db), doing, err);
	MYSQL_RES *rows = mysql_store_result(db);
	if (rows)
		mysql_free_result(rows);
	return 0;
}

void my_rollback(struct my_store *s)
{
	struct ob_err ignored;
	unsigned code = s->code;

	if (s->db && !s->broken &&
	    my_exec(s, s->db, sql_mysql_rollback, "rolling back", &ignored) < 0)
		s->broken = true;
	s->code = code;
}

bool my_is_mariadb(const struct my_store *s)
{
	return strstr(s->version, "MariaDB") != NULL;
}

static unsigned seconds(int64_t ms)
{
	return (unsigned)((ms + 999) / 1000);
}

static void set_options(const struct my_store *s, MYSQL *db, bool patient)
{
	unsigned connect_s = seconds(s->connect_timeout_ms);
	/* Later than the server's own limit, so that its answer is still heard. */
	unsigned wait_s = patient ? PATIENCE_S : seconds(s->timeout_ms) + 2;
	const unsigned off = 0;
	my_bool yes = 1, no = 0, verify = s->ssl_verify ? 1 : 0;

	(void)mysql_optionsv(db, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
	(void)mysql_optionsv(db, MYSQL_OPT_READ_TIMEOUT, &wait_s);
	(void)mysql_optionsv(db, MYSQL_OPT_WRITE_TIMEOUT, &wait_s);
	/* A hostile server must not read our files. */
	(void)mysql_optionsv(db, MYSQL_OPT_LOCAL_INFILE, &off);
	(void)mysql_optionsv(db, MYSQL_OPT_RECONNECT, &no);
	(void)mysql_optionsv(db, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	(void)mysql_optionsv(db, MYSQL_REPORT_DATA_TRUNCATION, &yes);
	if (!s->ssl_ca)
		return;
	(void)mysql_optionsv(db, MYSQL_OPT_SSL_CA, s->ssl_ca);
	(void)mysql_optionsv(db, MYSQL_OPT_SSL_ENFORCE, &yes);
	(void)mysql_optionsv(db, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
	if (s->ssl_cert)
		(void)mysql_optionsv(db, MYSQL_OPT_SSL_CERT, s->ssl_cert);
	if (s->ssl_key)
		(void)mysql_optionsv(db, MYSQL_OPT_SSL_KEY, s->ssl_key);
}

static int pin_session(struct my_store *s, MYSQL *db, bool patient, struct ob_err *err)
{
	const char *const parts[] = { sql_mysql_session, sql_mysql_session_limit,
				      s->base.read_limit_ms ? sql_mysql_session_reads
							    : sql_mysql_session_isolation };
	const struct ob_sqltmpl_number numbers[] = {
		{ "lock_seconds", seconds(s->lock_timeout_ms) },
		{ "statement_seconds", patient ? 0 : seconds(s->timeout_ms) },
		{ NULL, 0 },
	};
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SESSION_SQL_MAX);
	int r = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++) {
		ob_buf_clear(&sql);
		r = ob_sqltmpl_expand(&sql, parts[i], s->base.layout, '`', numbers, err);
		if (r == 0)
			r = my_exec(s, db, ob_buf_str(&sql), "setting up the connection", err);
	}
	return r;
}

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static void init_library(void)
{
	(void)mysql_library_init(0, NULL, NULL);
}

static int connect_to(struct my_store *s, MYSQL *db, bool patient, struct ob_err *err)
{
	const struct my_address *a = &s->address;
	const char *password = a->password ? a->password : s->password;

	set_options(s, db, patient);
	if (!mysql_real_connect(db, s->socket ? NULL : a->host, a->user, password, a->database,
				a->port, s->socket, CLIENT_FOUND_ROWS | CLIENT_MULTI_STATEMENTS))
		return my_err(s, mysql_errno(db), mysql_error(db), "connecting", err);
	return pin_session(s, db, patient, err);
}

int my_connect(struct my_store *s, bool patient, MYSQL **ret_db, struct ob_err *err)
{
	(void)pthread_once(&library_once, init_library);
	MYSQL *db = mysql_init(NULL);

	if (!db)
		return my_oom("connecting", err);
	int r = connect_to(s, db, patient, err);
	if (r < 0) {
		mysql_close(db);
		return r;
	}
	*ret_db = db;
	return 0;
}

void my_disconnect(struct my_store *s)
{
	outbox_close(s->writer);
	s->writer = NULL;
	my_exec_forget(s);
	my_proof_forget(s->proof);
	if (s->db)
		mysql_close(s->db);
	s->db = NULL;
	s->in_tx = s->broken = false;
	s->counter_us = 0;
}

/* A clock that is not the system's is a test's: then the server's session takes its time. */
static int turn_clock(struct my_store *s, struct ob_err *err)
{
	int64_t now = ob_clock_real_us(s->base.clock);
	char sql[64];

	if (s->base.clock == &ob_clock_system)
		return 0;
	(void)snprintf(sql, sizeof(sql), "SET timestamp = %" PRId64 ".%06d", now / 1000000,
		       (int)(now % 1000000));
	return my_exec(s, s->db, sql, "setting the clock", err);
}

static int reconnect(struct my_store *s, bool patient, struct ob_err *err)
{
	int r = my_connect(s, patient, &s->db, err);
	if (r < 0)
		return r;
	s->broken = false;
	s->patient = patient;
	s->reconnected = true;
	(void)snprintf(s->version, sizeof(s->version), "%s", mysql_get_server_info(s->db));
	return 0;
}

int my_ready(struct my_store *s, bool patient, struct ob_err *err)
{
	int r = 0;

	if (s->db && !s->in_tx && (s->broken || s->patient != patient))
		my_disconnect(s);
	if (!s->db)
		r = reconnect(s, patient, err);
	return r < 0 ? r : turn_clock(s, err);
}
