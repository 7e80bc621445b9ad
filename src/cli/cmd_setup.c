/* SPDX-License-Identifier: MIT */
/* outbox setup: make or upgrade the tables, or print the SQL for whoever may. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/out/jprint.h"

#include <inttypes.h>
#include <stdio.h>

enum { PARTITIONS_DEFAULT = 16 };

struct setup_args {
	bool print, grants, partitioned, events, inbox;
	int64_t partitions, partition_rows;
};

/* --partitions, else what a relay of this store says, else the default. */
static uint32_t partition_count(const struct ob_session *session, const struct setup_args *args)
{
	if (args->partitions)
		return (uint32_t)args->partitions;
	for (size_t i = 0; i < session->config->relay_count; i++) {
		const struct ob_config_relay *relay = &session->config->relays[i];
		if (relay->store == session->entry && relay->leasing.partition_count)
			return relay->leasing.partition_count;
	}
	return PARTITIONS_DEFAULT;
}

static int print_sql(const struct ob_session *session, const struct ob_setup *setup, bool grants)
{
	const struct ob_store_conf *conf = &session->entry->conf;
	const struct ob_store_backend *backend;
	struct ob_buf sql = OB_BUF_INIT(1 << 20);
	struct ob_err err = OB_ERR_INIT;
	int r = ob_store_find(conf->url, &backend, &err);

	if (r == 0 && grants)
		r = ob_store_grants_sql(backend->ops, conf->layout, setup, &sql, &err);
	else if (r == 0)
		r = ob_store_setup_sql(backend->ops, conf->layout, setup, &sql, &err);
	if (r < 0)
		r = ob_cli_fail("%s", err.msg);
	else
		(void)fputs(ob_buf_str(&sql), stdout);
	ob_buf_done(&sql);
	return r;
}

static int done_json(const struct ob_setup *setup, const struct ob_setup_done *done)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_int(&j, "from_version", done->from_version);
	ob_jout_int(&j, "to_version", done->to_version);
	if (!done->from_version)
		ob_jout_int(&j, "partitions", setup->partition_count);
	if (done->partitioned)
		ob_jout_bool(&j, "partitioned", true);
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static int do_setup(const struct ob_cli *cli, struct ob_session *session,
		    const struct ob_setup *setup)
{
	struct ob_setup_done done;
	struct ob_err err = OB_ERR_INIT;

	if (ob_store_setup(session->store, setup, &done, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	if (cli->json)
		return done_json(setup, &done);
	if (setup->partitioned && !done.partitioned)
		printf("the log is not partitioned by number and stays as it is: "
		       "docs/partitioned.md says how to move to one that is\n");
	if (!done.from_version && done.partitioned)
		printf("a log partitioned by number refuses a repeated id or sequence number "
		       "within one partition at most: it is no event store that checks versions\n");
	if (!done.from_version)
		printf("created version %" PRIu32 " with %" PRIu32 " partitions\n", done.to_version,
		       setup->partition_count);
	else if (done.from_version == done.to_version)
		printf("already at version %" PRIu32 "\n", done.to_version);
	else
		printf("upgraded from version %" PRIu32 " to %" PRIu32 "\n", done.from_version,
		       done.to_version);
	return OB_EXIT_OK;
}

static int setup_run(struct ob_cli *cli, const void *opts)
{
	const struct setup_args *args = opts;
	bool print = args->print || args->grants;
	struct ob_session session;
	int r;

	if (print && cli->json)
		return ob_cli_usage(cli, "--%s prints SQL: --json has no meaning with it",
				    args->print ? "print" : "grants");
	if (args->print && args->grants)
		return ob_cli_usage(cli,
				    "--print prints the tables, --grants the roles: give one "
				    "of them");
	r = print ? ob_session_load(&session, cli) : ob_session_connect(&session, cli);
	if (!r) {
		struct ob_setup setup = { .partition_count = partition_count(&session, args),
					  .partitioned = args->partitioned,
					  .events = args->events,
					  .inbox = args->inbox,
					  .partition_rows = args->partition_rows };
		r = print ? print_sql(&session, &setup, args->grants)
			  : do_setup(cli, &session, &setup);
	}
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "print",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct setup_args, print),
		.help = "Print the SQL instead of running it; connects to nothing.",
	},
	{
		.name = "grants",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct setup_args, grants),
		.help = "Print the SQL that makes a role for producers and one for the relay, with "
			"the rights they need and no more; connects to nothing.",
	},
	{
		.name = "partitions",
		.arg = "N",
		.type = OB_CMD_INT,
		.offset = offsetof(struct setup_args, partitions),
		.min = 1,
		.max = OB_PARTITIONS_MAX,
		.help = "How many partitions a new outbox gets; left out: what the relay's "
			"configuration says, else 16.",
	},
	{
		.name = "partitioned",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct setup_args, partitioned),
		.help = "Make a new log as a table partitioned by number (PostgreSQL, MySQL, "
			"MariaDB): retention then drops whole partitions instead of deleting "
			"rows. Such a log is an outbox, not an event store that checks versions: "
			"an id or a sequence number that is repeated is refused within one "
			"partition only, on MySQL and MariaDB not at all.",
	},
	{
		.name = "events",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct setup_args, events),
		.help = "Also make what an event store needs: the table of streams that ended, "
			"and on PostgreSQL, MySQL and MariaDB the functions outbox_append, "
			"outbox_read_stream and outbox_stream_version. Also for an outbox that "
			"exists; not for one that is partitioned by number.",
	},
	{
		.name = "inbox",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct setup_args, inbox),
		.help = "Also make what a consumer's database needs: the tables of what was "
			"handled, of consumers, of positions and of parked messages, and on "
			"PostgreSQL, MySQL and MariaDB the function outbox_inbox. Also for an "
			"outbox that exists.",
	},
	{
		.name = "partition-rows",
		.arg = "N",
		.type = OB_CMD_INT,
		.offset = offsetof(struct setup_args, partition_rows),
		.min = 1000,
		.max = OB_PARTITION_ROWS_MAX,
		.help = "With --partitioned: how many numbers each partition holds; left out: "
			"1000000.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox setup",
	"outbox setup --store sqlite:shop.db",
	"outbox setup --print > migration.sql",
	"outbox setup --grants > roles.sql",
	"outbox setup --partitioned",
	"outbox setup --events",
	"outbox setup --inbox",
	NULL,
};

const struct ob_cmd ob_cmd_setup = {
	.name = "setup",
	.group = OB_GROUP_START,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "create or upgrade the tables",
	.description =
		"Creates the tables that are missing or upgrades older ones, in one "
		"transaction (on MySQL and MariaDB in steps that the next run finishes if they "
		"were "
		"interrupted), and says what it did. Running it again changes nothing. An "
		"outbox that exists keeps its number of partitions. Tables of a newer "
		"version are left alone.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct setup_args),
	.run = setup_run,
};
