/* SPDX-License-Identifier: MIT */
/* The MySQL store: its options, opening and closing, and the table of operations. */
#include "store/mysql/diagnose.h"
#include "store/mysql/driver.h"
#include "store/mysql/parts.h"
#include "store/mysql/proof.h"
#include "store/mysql/read.h"
#include "store/mysql/retain.h"
#include "store/mysql/schema.h"
#include "store/mysql/sql.h"
#include "store/mysql/tx.h"
#include "store/sql/ops.h"

static const struct ob_opt mysql_opts[] = {
	{
		.name = "password",
		.type = OB_OPT_STR,
		.flags = OB_OPT_SECRET,
		.offset = offsetof(struct my_store, password),
		.help = "The password, instead of writing it into the url.",
	},
	{
		.name = "socket",
		.type = OB_OPT_STR,
		.offset = offsetof(struct my_store, socket),
		.help = "Path of the server's Unix socket, instead of a host.",
	},
	{
		.name = "connect_timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct my_store, connect_timeout_ms),
		.dflt = "5s",
		.min = 1000,
		.max = 600000,
		.help = "How long to wait for a connection.",
	},
	{
		.name = "timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct my_store, timeout_ms),
		.dflt = "30s",
		.min = 1000,
		.max = 3600000,
		.help = "How long one statement may take before the connection is given up.",
	},
	{
		.name = "lock_timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct my_store, lock_timeout_ms),
		.dflt = "5s",
		.min = 1000,
		.max = 600000,
		.help = "How long to wait for a lock of another transaction.",
	},
	{
		.name = "ssl_ca",
		.type = OB_OPT_STR,
		.offset = offsetof(struct my_store, ssl_ca),
		.help = "File of the authority that signed the server's certificate; the "
			"connection "
			"is then encrypted or refused.",
	},
	{
		.name = "ssl_cert",
		.type = OB_OPT_STR,
		.offset = offsetof(struct my_store, ssl_cert),
		.help = "File of our own certificate, for servers that ask for one.",
	},
	{
		.name = "ssl_key",
		.type = OB_OPT_STR,
		.offset = offsetof(struct my_store, ssl_key),
		.help = "File of the key of ssl_cert.",
	},
	{
		.name = "ssl_verify",
		.type = OB_OPT_BOOL,
		.offset = offsetof(struct my_store, ssl_verify),
		.dflt = "true",
		.help = "With ssl_ca: whether the server's name must be that of its certificate.",
	},
	OB_OPT_END,
};

static int mysql_open_store(struct ob_store *store, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	int r = my_url_parse(s, mysql_opts, err);

	if (store->read_limit_ms && store->read_limit_ms < s->timeout_ms)
		s->timeout_ms = store->read_limit_ms;
	return r < 0 ? r : my_ready(s, false, err);
}

static void mysql_close_store(struct ob_store *store)
{
	struct my_store *s = (struct my_store *)store;

	my_disconnect(s);
	my_run_free(s->run);
	my_templates_free(s->templates);
	my_proof_free(s->proof);
	my_url_done(&s->address);
}

/* Nothing tells us of another's commit: the caller polls. */
static int mysql_wake_check(struct ob_store *store, bool *ret_news, struct ob_err *err)
{
	(void)store;
	(void)err;
	*ret_news = false;
	return 0;
}

static void mysql_describe(struct ob_store *store, struct ob_buf *out)
{
	struct my_store *s = (struct my_store *)store;
	bool maria = strstr(s->version, "MariaDB") != NULL;
	char place[256];

	ob_buf_addf(out, "%s %.*s, %s", maria ? "MariaDB" : "MySQL", (int)strcspn(s->version, "-"),
		    s->version, my_place(s, place));
}

extern const struct ob_store_ops ob_store_mysql;

const struct ob_store_ops ob_store_mysql = {
	.name = "mysql",
	.caps = OB_STORE_CONCURRENT_WRITERS | OB_STORE_MYSQL_WORDS,
	.size = sizeof(struct my_store),
	.opts = mysql_opts,
	.sql = &my_driver,
	.open = mysql_open_store,
	.close = mysql_close_store,
	.setup = my_setup,
	.setup_sql = my_setup_sql,
	.grants_sql = my_grants_sql,
	.check = my_check,
	.checks = my_checks,
	.diagnose = my_diagnose,
	.oldest = my_oldest,
	.tx_begin = my_tx_begin,
	.tx_push = my_tx_push,
	.tx_end = my_tx_end,
	.tx_writer = my_tx_writer,
	.tx_exec = my_tx_exec,
	.tx_native = my_tx_native,
	.read = my_read,
	.resize = my_resize,
	.retain = my_retain,
	.parts = my_parts,
	.wake_check = mysql_wake_check,
	.describe = mysql_describe,
	OB_SQL_OPS,
};
