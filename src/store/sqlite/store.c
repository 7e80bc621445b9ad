/* SPDX-License-Identifier: MIT */
/* The SQLite store: its options and the table of its operations. */
#include "store/sql/ops.h"
#include "store/sqlite/conn.h"
#include "store/sqlite/diagnose.h"
#include "store/sqlite/driver.h"
#include "store/sqlite/push.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/wake.h"

static const char *const sync_choices[] = { "full", "normal", NULL };

static const struct ob_opt sqlite_opts[] = {
	{
		.name = "busy_timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct lite_store, busy.timeout_ms),
		.dflt = "5s",
		.min = 0,
		.max = 600000,
		.help = "How long to wait for another writer's lock.",
	},
	{
		.name = "synchronous",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct lite_store, synchronous),
		.dflt = "full",
		.choices = sync_choices,
		.help = "normal: nothing that the relay writes waits for the disk.",
	},
	{
		.name = "settle_durable",
		.type = OB_OPT_BOOL,
		.offset = offsetof(struct lite_store, settle_durable),
		.dflt = "false",
		.help = "Wait for the disk with every settle. Without, a power cut may undo the "
			"last ones, and their messages are sent again.",
	},
	OB_OPT_END,
};

const struct ob_store_ops ob_store_sqlite = {
	.name = "sqlite",
	.caps = 0,
	.size = sizeof(struct lite_store),
	.opts = sqlite_opts,
	.sql = &lite_driver,
	.open = lite_open,
	.close = lite_close,
	.setup = lite_setup,
	.setup_sql = lite_setup_sql,
	.grants_sql = lite_grants_sql,
	.checks = lite_checks,
	.check = lite_check,
	.diagnose = lite_diagnose,
	.tx_begin = lite_tx_begin,
	.tx_push = lite_tx_push,
	.tx_end = lite_tx_end,
	.tx_writer = lite_tx_writer,
	.tx_exec = lite_tx_exec,
	.tx_native = lite_tx_native,
	.read = lite_read,
	.resize = lite_resize,
	.retain = lite_retain,
	.wake_fd = lite_wake_fd,
	.wake_check = lite_wake_check,
	.describe = lite_describe,
	OB_SQL_OPS,
};
