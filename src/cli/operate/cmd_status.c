/* SPDX-License-Identifier: MIT */
/* outbox status: where each reader is, what waits for it, and who works on it. */
#include "base/utf8.h"
#include "base/when.h"
#include "cli/commands.h"
#include "cli/operate/readers.h"
#include "cli/operate/snapshot.h"
#include "cli/out/para.h"
#include "cli/out/pen.h"

#include <inttypes.h>
#include <stdio.h>

enum { LINE_BYTES = 8192 };

struct status_args {
	const char *reader;
};

static void print_counts(const struct ob_snapshot *s, size_t width)
{
	static const struct ob_grid_column columns[] = {
		{ "READER", OB_GRID_SHRINK }, { "READS", OB_GRID_SHRINK },
		{ "PENDING", OB_GRID_RIGHT }, { "DELAYED", OB_GRID_RIGHT },
		{ "FAILED", OB_GRID_RIGHT },  { "PARKED", OB_GRID_RIGHT },
		{ "DEAD", OB_GRID_RIGHT },    { "HELD KEYS", OB_GRID_RIGHT },
	};
	struct ob_grid table;

	ob_grid_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < s->count; i++) {
		const struct ob_stats *stats = s->rows[i].stats;

		ob_grid_cell(&table, s->rows[i].reader.name);
		ob_grid_cell(&table, s->rows[i].reader.target);
		for (int view = 0; view <= OB_VIEW_DEAD; view++)
			ob_snapshot_cell(&table, stats ? stats->count[view] : 0);
		ob_snapshot_cell(&table, stats ? stats->held_keys : 0);
	}
	ob_grid_print(&table, width, stdout);
	ob_grid_done(&table);
}

static void count_cell(struct ob_grid *table, int64_t n)
{
	char text[OB_COUNT_SIZE];

	ob_format_count(n > 0 ? (uint64_t)n : 0, text);
	ob_grid_cell(table, ob_str(text));
}

static void print_progress(const struct ob_snapshot *s, size_t width)
{
	static const struct ob_grid_column columns[] = {
		{ "READER", OB_GRID_SHRINK },    { "POSITION", OB_GRID_RIGHT },
		{ "LAG", OB_GRID_RIGHT },        { "OLDEST DUE", OB_GRID_RIGHT },
		{ "MOVED", OB_GRID_RIGHT },      { "LEASED", OB_GRID_RIGHT },
		{ "PARTITIONS", OB_GRID_RIGHT }, { "WORKERS", OB_GRID_RIGHT },
	};
	struct ob_grid table;

	ob_grid_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < s->count; i++) {
		const struct ob_snapshot_row *row = &s->rows[i];
		char oldest[OB_WHEN_SIZE] = "-", moved[OB_WHEN_SIZE];

		if (row->stats && row->stats->oldest_due_us)
			ob_when_age(s->now_us - row->stats->oldest_due_us, oldest);
		ob_when_age(s->now_us - row->reader.moved_at_us, moved);
		ob_grid_cell(&table, row->reader.name);
		count_cell(&table, row->reader.high_pos);
		count_cell(&table, ob_snapshot_lag(row));
		ob_grid_cell(&table, ob_str(oldest));
		ob_grid_cell(&table, ob_str(moved));
		ob_grid_int(&table, (int64_t)row->leased);
		ob_grid_int(&table, (int64_t)row->partitions);
		ob_grid_int(&table, (int64_t)row->reader.workers);
	}
	ob_grid_print(&table, width, stdout);
	ob_grid_done(&table);
}

static void print_workers(const struct ob_snapshot *s, size_t width)
{
	static const struct ob_grid_column columns[] = {
		{ "WORKER", 0 },
		{ "READER", OB_GRID_SHRINK },
		{ "HOST", OB_GRID_SHRINK },
		{ "PID", OB_GRID_RIGHT },
		{ "UP", OB_GRID_RIGHT },
		{ "BEAT FOR", OB_GRID_RIGHT },
		{ "PUBLISHED", OB_GRID_RIGHT },
		{ "FAILED", OB_GRID_RIGHT },
	};
	struct ob_grid table;

	ob_grid_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < s->worker_count; i++) {
		const struct ob_worker *w = &s->workers[i];
		char id[OB_UUID_TEXT_SIZE], up[OB_WHEN_SIZE], beat[OB_WHEN_SIZE];

		ob_uuid_format(&w->id, id);
		ob_when_age(s->now_us - w->started_at_us, up);
		ob_when_age(w->heartbeat_until_us - s->now_us, beat);
		ob_grid_cell(&table, ob_str(id));
		ob_grid_cell(&table, w->reader);
		ob_grid_cell(&table, w->hostname);
		ob_grid_int(&table, w->pid);
		ob_grid_cell(&table, ob_str(up));
		ob_grid_cell(&table, ob_str(beat));
		ob_grid_int(&table, (int64_t)w->published);
		ob_grid_int(&table, (int64_t)w->failed);
	}
	ob_grid_print(&table, width, stdout);
	ob_grid_done(&table);
}

static void print_left(const struct ob_snapshot *s, size_t width)
{
	for (size_t i = 0; i < s->count; i++) {
		struct ob_buf line = OB_BUF_INIT(LINE_BYTES);

		if (ob_snapshot_is_left(&s->rows[i])) {
			(void)fputc('\n', stdout);
			ob_snapshot_left_text(s, &s->rows[i], &line);
			ob_para_print(stdout, ob_buf_view(&line), width);
		}
		ob_buf_done(&line);
	}
}

static void print_text(const struct ob_snapshot *s)
{
	size_t width = ob_terminal_width();
	struct ob_buf safe = OB_BUF_INIT(LINE_BYTES);

	ob_utf8_sanitize(&safe, ob_buf_view(&s->store), 1000);
	printf("%s\n", ob_buf_str(&safe));
	ob_buf_done(&safe);
	if (s->count == 0) {
		printf("no reader yet: 'outbox work' makes one when a relay first starts\n");
		return;
	}
	(void)fputc('\n', stdout);
	print_counts(s, width);
	(void)fputc('\n', stdout);
	print_progress(s, width);
	if (s->worker_count) {
		(void)fputc('\n', stdout);
		print_workers(s, width);
	}
	print_left(s, width);
}

static void worker_json(struct ob_jout *j, const struct ob_worker *w)
{
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&w->id, id);
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "id", ob_str(id));
	ob_jout_text(j, "reader", w->reader);
	ob_jout_text(j, "hostname", w->hostname);
	ob_jout_int(j, "pid", w->pid);
	ob_jout_when(j, "started_at", w->started_at_us);
	ob_jout_when(j, "heartbeat_until", w->heartbeat_until_us);
	ob_jout_int(j, "published", (int64_t)w->published);
	ob_jout_int(j, "failed", (int64_t)w->failed);
	ob_jout_end(j, '}');
}

static int print_json(const struct ob_snapshot *s)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_text(&j, "store", ob_buf_view(&s->store));
	ob_jout_when(&j, "now", s->now_us);
	ob_jout_begin(&j, "readers", '[');
	for (size_t i = 0; i < s->count; i++)
		ob_snapshot_json(&j, s, &s->rows[i]);
	ob_jout_end(&j, ']');
	ob_jout_begin(&j, "workers", '[');
	for (size_t i = 0; i < s->worker_count; i++)
		worker_json(&j, &s->workers[i]);
	ob_jout_end(&j, ']');
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

/* A name that is not there is a mistake to hear of, not an empty table. */
static int check_reader(struct ob_store *store, const char *name)
{
	struct ob_readers readers;
	struct ob_err err = OB_ERR_INIT;
	int r = OB_EXIT_OK;

	if (ob_readers_load(&readers, store, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	else if (!ob_readers_find(&readers, name))
		r = ob_readers_unknown(&readers, name);
	ob_readers_done(&readers);
	return r;
}

static int status_run(struct ob_cli *cli, const void *opts)
{
	const struct status_args *args = opts;
	struct ob_snapshot s = { 0 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session;
	int r = ob_session_open(&session, cli);

	if (!r && args->reader)
		r = check_reader(session.store, args->reader);
	if (!r && ob_snapshot_take(&s, session.store, args->reader, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	if (!r && cli->json)
		r = print_json(&s);
	else if (!r)
		print_text(&s);
	ob_snapshot_done(&s);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "reader",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct status_args, reader),
		.help = "Only this reader.",
	},
	OB_CMD_OPT_END,
};

const struct ob_cmd ob_cmd_status = {
	.name = "status",
	.group = OB_GROUP_MESSAGES,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "where each reader is, and who works on it",
	.description =
		"Prints, for each reader, how many messages are in which state and how many keys "
		"are held; its position in the log, how many numbers it is behind the newest "
		"message of its target, how long the oldest one that is due has been waiting, and "
		"when it moved last; its partitions and leases, and the workers that are alive "
		"with "
		"the time until their heartbeat runs out. Counting stops at 10,000: more is "
		"printed "
		"as 10,000+, and with --json the counts that stopped are listed in capped.\n\n"
		"A reader that nobody runs keeps rows from being removed: a line says so, and "
		"since "
		"when.",
	.options = options,
	.args_size = sizeof(struct status_args),
	.run = status_run,
};
