/* SPDX-License-Identifier: MIT */
/* outbox partitions: who works on which, and how many there are. */
#include "base/when.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/operate/decide.h"
#include "cli/operate/resize.h"
#include "cli/out/grid.h"
#include "cli/out/jprint.h"
#include "operate/owners.h"
#include "operate/readers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MAX_MS  (INT64_C(24) * 3600 * 1000)
#define WAIT_DFLT_MS (INT64_C(30) * 1000)

struct partitions_args {
	const char *reader, *reason;
	int64_t wait_ms;
	bool all, yes;
};

/* "12s" ahead, "over 3s" behind, "free" when nobody has it. */
static void lease_text(const struct ob_partition *p, int64_t now_us, char out[OB_WHEN_SIZE + 8])
{
	char age[OB_WHEN_SIZE];

	ob_when_age(p->leased ? p->until_us - now_us : now_us - p->until_us, age);
	if (ob_uuid_is_nil(&p->owner))
		(void)snprintf(out, OB_WHEN_SIZE + 8, "free");
	else
		(void)snprintf(out, OB_WHEN_SIZE + 8, "%s%s", p->leased ? "" : "over ", age);
}

static void add_row(struct ob_grid *table, const struct ob_owners *o, const struct ob_partition *p)
{
	const struct ob_worker *w = ob_owners_find(o, &p->owner);
	char label[8], id[OB_OWNER_SHORT_SIZE], lease[OB_WHEN_SIZE + 8], pid[16];
	bool owned = !ob_uuid_is_nil(&p->owner);

	ob_partition_label(p->number, label);
	ob_owner_short(&p->owner, id);
	lease_text(p, o->now_us, lease);
	(void)snprintf(pid, sizeof(pid), "%d", w ? w->pid : 0);
	ob_grid_cell(table, ob_str(label));
	ob_grid_cell(table, p->reader);
	ob_grid_cell(table, owned ? ob_str(id) : OB_STR_NULL);
	ob_grid_cell(table, w ? w->hostname : OB_STR_NULL);
	ob_grid_cell(table, w ? ob_str(pid) : OB_STR_NULL);
	ob_grid_int(table, (int64_t)p->epoch);
	ob_grid_int(table, p->pos);
	ob_grid_cell(table, ob_str(lease));
}

static void print_table(const struct ob_owners *o)
{
	static const struct ob_grid_column columns[] = {
		{ "PARTITION", 0 },
		{ "READER", OB_GRID_SHRINK },
		{ "WORKER", 0 },
		{ "HOST", OB_GRID_SHRINK },
		{ "PID", OB_GRID_RIGHT },
		{ "EPOCH", OB_GRID_RIGHT },
		{ "POSITION", OB_GRID_RIGHT },
		{ "LEASE", OB_GRID_RIGHT },
	};
	struct ob_grid table;

	if (o->partition_count == 0) {
		printf("no partitions: a worker makes them when it first starts\n");
		return;
	}
	ob_grid_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < o->partition_count; i++)
		add_row(&table, o, &o->partitions[i]);
	ob_grid_print(&table, ob_terminal_width(), stdout);
	ob_grid_done(&table);
}

static int print_json(const struct ob_owners *o)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_when(&j, "now", o->now_us);
	ob_jout_begin(&j, "partitions", '[');
	for (size_t i = 0; i < o->partition_count; i++)
		ob_partition_json(&j, o, &o->partitions[i]);
	ob_jout_end(&j, ']');
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static int list(const struct ob_cli *cli, struct ob_store *store, const char *reader)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_owners o;
	int r = OB_EXIT_OK;

	if (ob_owners_load(&o, store, reader, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	else if (cli->json)
		r = print_json(&o);
	else
		print_table(&o);
	ob_owners_done(&o);
	return r;
}

/* ---- freeing --------------------------------------------------------- */

/* "p07" or "7" */
static bool parse_partition(const char *word, uint32_t *ret_number)
{
	char *end;

	word += *word == 'p';
	errno = 0;
	unsigned long n = strtoul(word, &end, 10);
	if (errno || end == word || *end || *word == '-' || *word == '+' || n >= OB_PARTITIONS_MAX)
		return false;
	*ret_number = (uint32_t)n;
	return true;
}

/* The owners lose their partitions in the middle of their work: messages may go out twice. */
static int confirm_free(const struct ob_cli *cli, const char *reader, size_t count)
{
	char line[512];

	if (count)
		(void)snprintf(line, sizeof(line),
			       "free %zu partitions of reader %s, whoever holds them", count,
			       reader);
	else
		(void)snprintf(line, sizeof(line),
			       "free all partitions of reader %s, whoever holds them", reader);
	return ob_cli_confirm(cli, line);
}

static int print_freed(const struct ob_cli *cli, const char *reader, const uint32_t *numbers,
		       size_t count)
{
	struct ob_jout j = OB_JOUT_INIT;
	char label[8];
	int r = OB_EXIT_OK;

	if (cli->json) {
		ob_jout_begin(&j, NULL, '{');
		ob_jout_text(&j, "reader", ob_str(reader));
		ob_jout_begin(&j, "freed", '[');
		for (size_t i = 0; i < count; i++)
			ob_jout_int(&j, NULL, numbers[i]);
		ob_jout_end(&j, ']');
		ob_jout_bool(&j, "all", count == 0);
		ob_jout_end(&j, '}');
		r = ob_jout_print(&j);
	} else if (count == 0) {
		printf("freed all partitions of reader %s\n", reader);
	} else {
		printf("freed");
		for (size_t i = 0; i < count; i++) {
			ob_partition_label(numbers[i], label);
			printf(" %s", label);
		}
		printf(" of reader %s\n", reader);
	}
	ob_jout_done(&j);
	return r;
}

static int check_numbers(struct ob_store *store, const char *reader, const uint32_t *numbers,
			 size_t count)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_owners o;
	int r = OB_EXIT_OK;

	if (ob_owners_load(&o, store, reader, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	for (size_t i = 0; !r && i < count; i++) {
		bool found = false;

		for (size_t k = 0; k < o.partition_count; k++)
			found = found || o.partitions[k].number == numbers[i];
		if (!found)
			r = ob_cli_fail("reader %s has no partition %" PRIu32, reader, numbers[i]);
	}
	ob_owners_done(&o);
	return r;
}

static void take_down_free(const struct partitions_args *args, struct ob_store *store,
			   const char *reader, const uint32_t *numbers, size_t count)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf which = OB_BUF_INIT(8192);
	struct ob_cli_decision decision;
	char label[8];

	for (size_t i = 0; i < count; i++) {
		ob_partition_label(numbers[i], label);
		ob_buf_addf(&which, "%s%s", i ? " " : "", label);
	}
	ob_cli_decide(&decision, "partitions free", reader, count ? ob_buf_str(&which) : "all",
		      args->reason);
	ob_cli_decided(&decision, store, count);
}

/* The numbers that were named; 0 of them: all. */
static int free_leases(const struct ob_cli *cli, struct ob_store *store,
		       const struct partitions_args *args, const uint32_t *numbers, size_t count)
{
	struct ob_readers readers;
	struct ob_err err = OB_ERR_INIT;
	const char *reader;
	int r = OB_EXIT_OK;

	if (ob_readers_name(&readers, store, args->reader, false, &reader, &err) < 0)
		r = ob_cli_fail("%s", err.msg);

	if (!r)
		r = check_numbers(store, reader, numbers, count);
	if (!r && !args->yes && count != 1)
		r = confirm_free(cli, reader, count);
	if (!r && ob_store_free_leases(store, reader, numbers, count, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	if (!r) {
		take_down_free(args, store, reader, numbers, count);
		r = print_freed(cli, reader, numbers, count);
	}
	ob_readers_done(&readers);
	return r;
}

/* ---- the command line ------------------------------------------------ */

static bool is_action(const struct ob_cli *cli, const char *name)
{
	return cli->operand_count && strcmp(cli->operands[0], name) == 0;
}

static int check_resize(const struct ob_cli *cli, const struct partitions_args *args,
			uint32_t *ret_count)
{
	char *end;

	if (cli->operand_count == 1)
		return ob_cli_usage(cli, "resize needs a number: N");
	if (cli->operand_count > 2)
		return ob_cli_usage(cli, "one word too many: '%s'", cli->operands[2]);
	if (args->reader)
		return ob_cli_usage(cli, "resize is for all readers: --reader has no meaning here");
	errno = 0;
	long n = strtol(cli->operands[1], &end, 10);
	if (errno || end == cli->operands[1] || *end || n < 1 || n > OB_PARTITIONS_MAX)
		return ob_cli_usage(cli, "'%s' is not a number from 1 to %d", cli->operands[1],
				    OB_PARTITIONS_MAX);
	*ret_count = (uint32_t)n;
	return OB_EXIT_OK;
}

static int check_free(const struct ob_cli *cli, const struct partitions_args *args,
		      uint32_t *numbers, size_t *ret_count)
{
	size_t count = cli->operand_count - 1;

	if (count == 0 && !args->all)
		return ob_cli_usage(cli, "free needs partitions such as p07, or --all");
	if (count && args->all)
		return ob_cli_usage(cli, "give partitions or --all, not both");
	if (count > OB_PARTITIONS_MAX)
		return ob_cli_usage(cli, "more than %d partitions", OB_PARTITIONS_MAX);
	for (size_t i = 0; i < count; i++) {
		if (!parse_partition(cli->operands[i + 1], &numbers[i]))
			return ob_cli_usage(cli, "'%s' is not a partition such as p07",
					    cli->operands[i + 1]);
	}
	*ret_count = count;
	return OB_EXIT_OK;
}

static int check_words(const struct ob_cli *cli, const struct partitions_args *args,
		       uint32_t *numbers, size_t *ret_count)
{
	if (args->wait_ms && !is_action(cli, "resize"))
		return ob_cli_usage(cli, "--wait belongs to resize");
	if (args->all && !is_action(cli, "free"))
		return ob_cli_usage(cli, "--all belongs to free");
	if (is_action(cli, "resize"))
		return check_resize(cli, args, &numbers[0]);
	if (is_action(cli, "free"))
		return check_free(cli, args, numbers, ret_count);
	if (cli->operand_count > 1)
		return ob_cli_usage(cli, "one word too many: '%s'", cli->operands[1]);
	return OB_EXIT_OK;
}

static int partitions_run(struct ob_cli *cli, const void *opts)
{
	const struct partitions_args *args = opts;
	uint32_t numbers[OB_PARTITIONS_MAX] = { 0 };
	struct ob_session session;
	size_t count = 0;
	int r = check_words(cli, args, numbers, &count);

	if (r)
		return r;
	r = ob_session_open(&session, cli);
	if (!r && is_action(cli, "resize"))
		r = ob_resize(cli, &session, numbers[0],
			      args->wait_ms ? args->wait_ms : WAIT_DFLT_MS, args->reason);
	else if (!r && is_action(cli, "free"))
		r = free_leases(cli, session.store, args, numbers, count);
	else if (!r)
		r = list(cli, session.store, args->reader);
	ob_session_done(&session);
	return r;
}

static const char *const actions[] = { "list", "resize", "free", NULL };

static const struct ob_cmd_operand operands[] = {
	{ .name = "ACTION", .optional = true, .complete = OB_COMPLETE_CHOICES, .choices = actions },
	{ .name = "N", .optional = true, .many = true },
	OB_CMD_OPERAND_END,
};

static const struct ob_cmd_opt options[] = {
	{
		.name = "reader",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct partitions_args, reader),
		.help = "Only the partitions of this reader.",
	},
	{
		.name = "wait",
		.arg = "DURATION",
		.type = OB_CMD_DURATION,
		.offset = offsetof(struct partitions_args, wait_ms),
		.max = WAIT_MAX_MS,
		.help = "With resize: how long workers may take to let go; 30s if left out.",
	},
	{
		.name = "all",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct partitions_args, all),
		.help = "With free: every partition of the reader.",
	},
	{
		.name = "yes",
		.letter = 'y',
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct partitions_args, yes),
		.help = "With free: do not ask.",
	},
	OB_REASON_OPTION(struct partitions_args, reason),
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox partitions",
	"outbox partitions resize 32",
	"outbox partitions free p03 p07 --reader mail",
	NULL,
};

const struct ob_cmd ob_cmd_partitions = {
	.name = "partitions",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "who works on which partition; change their number",
	.description =
		"Lists the partitions of each reader with the worker that holds the lease, the "
		"number of times the partition changed hands, the reader's position in it, and how "
		"long the lease lasts. The worker is named by the last group of its id, as status "
		"prints it.\n\n"
		"resize N changes the number of partitions for all readers. Messages keep the "
		"order of their keys and none is left behind. Running workers are asked to finish "
		"what is in flight and let go, and share the new partitions afterwards: nothing "
		"needs to be stopped. A worker that does not answer is waited for until its leases "
		"end.\n\n"
		"free takes leases away from whoever holds them: for a lease that lasts too long "
		"because the database's clock was set back. Whoever held one can record nothing "
		"any "
		"more, and what it had in flight is sent again.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct partitions_args),
	.run = partitions_run,
};
