/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store: options, opening and closing, and the table of operations. */
#include "store/postgres/diagnose.h"
#include "store/postgres/driver.h"
#include "store/postgres/ops.h"
#include "store/postgres/parts.h"
#include "store/sql/ops.h"

#include "base/cleanup.h"

static const char *const on_off[] = { "on", "off", NULL };

static const struct ob_opt postgres_opts[] = {
	{
		.name = "password",
		.type = OB_OPT_STR,
		.flags = OB_OPT_SECRET,
		.offset = offsetof(struct pg_store, password),
		.help = "The password, instead of writing it into the url.",
	},
	{
		.name = "timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct pg_store, timeout_ms),
		.dflt = "30s",
		.min = 100,
		.max = 3600000,
		.help = "How long one statement may take.",
	},
	{
		.name = "lock_timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct pg_store, lock_timeout_ms),
		.dflt = "5s",
		.min = 1,
		.max = 3600000,
		.help = "How long to wait for a lock that someone else holds.",
	},
	{
		.name = "settle_durable",
		.type = OB_OPT_BOOL,
		.offset = offsetof(struct pg_store, settle_durable),
		.dflt = "false",
		.help = "Wait for the disk with every settle. Without, a crash of the server may "
			"undo the last ones, and their messages are sent again.",
	},
	{
		.name = "notify",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct pg_store, notify),
		.dflt = "on",
		.choices = on_off,
		.help = "Be woken by NOTIFY; off: `outbox setup` makes no trigger, and the relay "
			"polls.",
	},
	{
		.name = "listen_url",
		.type = OB_OPT_STR,
		.flags = OB_OPT_SECRET,
		.offset = offsetof(struct pg_store, listen_url),
		.help = "A direct connection for LISTEN, when url leads to a pooler.",
	},
	{
		.name = "search_path",
		.type = OB_OPT_STR,
		.offset = offsetof(struct pg_store, search_path),
		.help = "Where tables without a schema are; default: where the server looks for "
			"them, "
			"behind pg_catalog.",
	},
	OB_OPT_END,
};

/* Libpq's own message may show what stands in the URL, and so a password. */
static int check_url(const char *url, const char *what, struct ob_err *err)
{
	PQconninfoOption *options = PQconninfoParse(url, NULL);

	PQconninfoFree(options);
	if (options)
		return 0;
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "%s is no PostgreSQL URL: write postgresql://USER:PASSWORD@HOST:PORT/"
			  "DATABASE, with %%XX for other characters than letters and digits",
			  what);
}

static int postgres_open(struct ob_store *store, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	int r = check_url(store->url, "url", err);

	if (r == 0 && s->listen_url)
		r = check_url(s->listen_url, "listen_url", err);
	if (store->read_limit_ms && store->read_limit_ms < s->timeout_ms)
		s->timeout_ms = store->read_limit_ms;
	return r < 0 ? r : pg_ready(s, err);
}

static void postgres_close(struct ob_store *store)
{
	struct pg_store *s = (struct pg_store *)store;

	pg_disconnect(s);
	for (int i = 0; i < PG_COUNT; i++)
		free(s->sql[i]);
}

static void postgres_describe(struct ob_store *store, struct ob_buf *out)
{
	const struct pg_store *s = (struct pg_store *)store;

	if (s->server[0])
		ob_buf_addf(out, "PostgreSQL %s, database %s", s->server, s->database);
	else
		ob_buf_adds(out, "PostgreSQL, not connected");
}

extern const struct ob_store_ops ob_store_postgres;

const struct ob_store_ops ob_store_postgres = {
	.name = "postgres",
	.caps = OB_STORE_CONCURRENT_WRITERS,
	.size = sizeof(struct pg_store),
	.opts = postgres_opts,
	.sql = &pg_driver,
	.open = postgres_open,
	.close = postgres_close,
	.setup = pg_setup,
	.setup_sql = pg_setup_sql,
	.grants_sql = pg_grants_sql,
	.check = pg_check,
	.checks = pg_checks,
	.diagnose = pg_diagnose,
	.oldest = pg_oldest,
	.tx_begin = pg_tx_begin,
	.tx_push = pg_tx_push,
	.tx_end = pg_tx_end,
	.tx_writer = pg_tx_writer,
	.tx_exec = pg_tx_exec,
	.tx_native = pg_tx_native,
	.read = pg_read,
	.resize = pg_resize,
	.adopt = pg_adopt,
	.retain = pg_retain,
	.parts = pg_parts,
	.wake_fd = pg_wake_fd,
	.wake_check = pg_wake_check,
	.describe = postgres_describe,
	OB_SQL_OPS,
};
