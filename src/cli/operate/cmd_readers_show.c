/* SPDX-License-Identifier: MIT */
/* outbox readers show: everything about one reader. */
#include "base/utf8.h"
#include "base/when.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/out/grid.h"
#include "cli/out/jprint.h"
#include "cli/out/para.h"
#include "cli/out/pen.h"
#include "operate/readers.h"
#include "operate/snapshot.h"

#include <inttypes.h>
#include <stdio.h>

static void print_text(const char *name, struct ob_str text)
{
	struct ob_buf safe = OB_BUF_INIT(8192);

	ob_utf8_sanitize(&safe, text, 1000);
	printf("%-16s %s\n", name, ob_buf_str(&safe));
	ob_buf_done(&safe);
}

static void print_when(const char *name, int64_t us, int64_t now_us)
{
	char iso[OB_WHEN_SIZE], age[OB_WHEN_SIZE];

	ob_when_iso(us, iso);
	ob_when_age(now_us - us, age);
	printf("%-16s %s  (%s ago)\n", name, iso, age);
}

static void print_count(const char *name, uint64_t count)
{
	char text[OB_COUNT_SIZE];

	ob_format_count(count, text);
	printf("%-16s %s\n", name, count >= OB_SNAPSHOT_CAP ? "10,000+" : text);
}

static void print_reader(const struct ob_snapshot *s, const struct ob_snapshot_row *row)
{
	const struct ob_reader *r = &row->reader;
	struct ob_buf line = OB_BUF_INIT(8192);
	char oldest[OB_WHEN_SIZE];

	print_text("reader", r->name);
	print_text("reads", r->target);
	print_text("filter", r->filter.n ? r->filter : OB_STR("none: every message of its target"));
	if (r->temporary)
		print_text("kind", OB_STR("a replay"));
	print_when("created_at", r->created_at_us, s->now_us);
	printf("%-16s %" PRId64 " to %" PRId64 "\n", "position", r->low_pos, r->high_pos);
	printf("%-16s %" PRId64 " of %" PRId64 " numbers\n", "lag", ob_snapshot_lag(row),
	       row->end_seq);
	print_when("moved_at", r->moved_at_us, s->now_us);
	for (int view = 0; row->stats && view < OB_VIEW_PUBLISHED; view++)
		print_count(ob_view_name((enum ob_view)view), row->stats->count[view]);
	if (row->stats) {
		print_count("held_keys", row->stats->held_keys);
		ob_when_age(s->now_us - row->stats->oldest_due_us, oldest);
		print_text("oldest_due", ob_str(row->stats->oldest_due_us ? oldest : "-"));
	}
	printf("%-16s %" PRIu64 " of %" PRIu64 " leased\n", "partitions", row->leased,
	       row->partitions);
	printf("%-16s %" PRIu32 "\n", "workers", r->workers);
	printf("%-16s %" PRId64 "\n", "kept_from", r->held_seq);
	if (row->sink.told) {
		print_text("sink", ob_str(row->sink.tale.sink_text));
		print_text("sink_state", ob_str(ob_report_word(&row->sink.tale)));
	}
	if (row->sink.down) {
		ob_report_down_text(&row->sink.tale, s->now_us, &line);
		print_text("sink_down", ob_buf_view(&line));
		ob_buf_clear(&line);
	}
	if (ob_snapshot_is_left(row)) {
		(void)fputc('\n', stdout);
		ob_snapshot_left_text(s, row, &line);
		ob_para_print(stdout, ob_buf_view(&line), ob_terminal_width());
	}
	ob_buf_done(&line);
}

static int show(const struct ob_cli *cli, struct ob_store *store, const char *name)
{
	struct ob_snapshot s;
	struct ob_err err = OB_ERR_INIT;
	struct ob_jout j = OB_JOUT_INIT;
	int r = OB_EXIT_OK;

	if (ob_snapshot_take(&s, store, name, &err) < 0) {
		r = ob_cli_fail("%s", err.msg);
	} else if (s.count == 0) {
		r = ob_cli_fail("reader %s was removed in this moment", name);
	} else if (cli->json) {
		ob_snapshot_row_json(&j, &s, &s.rows[0]);
		r = ob_jout_print(&j);
	} else {
		print_reader(&s, &s.rows[0]);
	}
	ob_jout_done(&j);
	ob_snapshot_done(&s);
	return r;
}

static int readers_show_run(struct ob_cli *cli, const void *opts)
{
	struct ob_readers readers = { 0 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session;
	const char *name;
	int r = ob_session_open(&session, cli);

	(void)opts;
	if (!r &&
	    ob_readers_name(&readers, session.store, cli->operand_count ? cli->operands[0] : NULL,
			    false, &name, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	if (!r)
		r = show(cli, session.store, name);
	ob_readers_done(&readers);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "NAME", .optional = true },
	OB_CMD_OPERAND_END,
};

const struct ob_cmd ob_cmd_readers_show = {
	.name = "readers show",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "one reader, whole",
	.description =
		"Prints everything about a reader: what it reads, where it is, what waits for it, "
		"and from which number on retention keeps rows for it. The name may be left out "
		"when there is only one.",
	.operands = operands,
	.run = readers_show_run,
};
