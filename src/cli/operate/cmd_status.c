/* SPDX-License-Identifier: MIT */
/* outbox status: where each reader is, what waits for it, and who works on it. */
#include "base/utf8.h"
#include "base/when.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/operate/cells.h"
#include "cli/out/jprint.h"
#include "cli/out/para.h"
#include "operate/maintain.h"
#include "operate/readers.h"
#include "operate/snapshot.h"

#include <inttypes.h>
#include <stdio.h>

enum { LINE_BYTES = 8192 };

struct status_args {
	const char *reader;
	int64_t older_ms; /* 0: not asked for */
	bool dead;        /* more than dead_above */
	bool down;
	int64_t dead_above; /* -1: not asked for */
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
			ob_cell_capped(&table, stats ? stats->count[view] : 0);
		ob_cell_capped(&table, stats ? stats->held_keys : 0);
	}
	ob_grid_print(&table, width, stdout);
	ob_grid_done(&table);
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
		ob_cell_count(&table, row->reader.high_pos);
		ob_cell_count(&table, ob_snapshot_lag(row));
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

/* What the relays tell of their sinks; nothing while none runs. */
static void print_sinks(const struct ob_snapshot *s, size_t width)
{
	static const struct ob_grid_column columns[] = {
		{ "READER", OB_GRID_SHRINK },
		{ "SINK", OB_GRID_SHRINK },
		{ "STATE", 0 },
		{ "SINCE", OB_GRID_RIGHT },
		{ "RATE", OB_GRID_RIGHT },
		{ "IN FLIGHT", OB_GRID_RIGHT },
		{ "LAST ERROR", OB_GRID_SHRINK },
	};
	struct ob_grid table;
	bool any = false;

	ob_grid_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < s->count; i++) {
		const struct ob_snapshot_sink *sink = &s->rows[i].sink;
		char since[OB_WHEN_SIZE] = "-", rate[32], error[OB_WORKER_TEXT + OB_WHEN_SIZE + 8];
		char age[OB_WHEN_SIZE];

		if (sink->told == 0)
			continue;
		any = true;
		error[0] = '\0';
		if (sink->down && sink->tale.breaker_since_us)
			ob_when_age(s->now_us - sink->tale.breaker_since_us, since);
		(void)snprintf(rate, sizeof(rate), "%.*f/s", sink->rate < 10 ? 1 : 0, sink->rate);
		if (sink->sink_error.at_us) {
			ob_when_age(s->now_us - sink->sink_error.at_us, age);
			(void)snprintf(error, sizeof(error), "%s ago: %s", age,
				       sink->sink_error.text);
		}
		ob_grid_cell(&table, s->rows[i].reader.name);
		ob_grid_cell(&table, ob_str(sink->tale.sink_name));
		ob_grid_cell(&table, ob_str(ob_report_word(&sink->tale)));
		ob_grid_cell(&table, ob_str(since));
		ob_grid_cell(&table, ob_str(rate));
		ob_grid_int(&table, (int64_t)sink->in_flight);
		ob_grid_cell(&table, error[0] ? ob_str(error) : OB_STR_NULL);
	}
	if (any) {
		(void)fputc('\n', stdout);
		ob_grid_print(&table, width, stdout);
	}
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

static void print_upkeep(const struct ob_snapshot *s, const struct ob_upkeep *upkeep, size_t width)
{
	struct ob_buf line = OB_BUF_INIT(LINE_BYTES);

	(void)fputc('\n', stdout);
	ob_upkeep_text(upkeep, s->now_us, &line);
	ob_para_print(stdout, ob_buf_view(&line), width);
	ob_buf_done(&line);
}

static void print_text(const struct ob_snapshot *s, const struct ob_upkeep *upkeep)
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
	print_sinks(s, width);
	if (s->worker_count) {
		(void)fputc('\n', stdout);
		print_workers(s, width);
	}
	print_left(s, width);
	if (upkeep)
		print_upkeep(s, upkeep, width);
}

static int print_json(const struct ob_snapshot *s, const struct ob_upkeep *upkeep)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_snapshot_json_members(&j, s);
	if (upkeep)
		ob_upkeep_json(&j, upkeep);
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

	if (ob_readers_load(&readers, store, &err) < 0 ||
	    (!ob_readers_find(&readers, name) && ob_readers_unknown(&readers, name, &err) < 0))
		r = ob_cli_fail("%s", err.msg);
	ob_readers_done(&readers);
	return r;
}

/* ---- for cron -------------------------------------------------------- */

static bool is_watch(const struct status_args *args)
{
	return args->older_ms > 0 || args->dead || args->dead_above >= 0 || args->down;
}

/* A sink that is down; a reader that nobody runs is down as well. */
static void add_down(const struct ob_snapshot *s, const struct ob_snapshot_row *row,
		     struct ob_buf *line)
{
	bool idle = row->reader.workers == 0 && !row->reader.temporary;

	if (!idle && row->sink.down == 0)
		return;
	ob_buf_adds(line, line->len ? "; reader " : "reader ");
	ob_buf_add(line, row->reader.name);
	ob_buf_adds(line, ": ");
	if (idle)
		ob_buf_adds(line, "no worker runs it");
	else
		ob_report_down_text(&row->sink.tale, s->now_us, line);
}

/* What is wrong with one reader, if something is. */
static void add_fault(const struct ob_snapshot *s, const struct ob_snapshot_row *row,
		      const struct status_args *args, struct ob_buf *line)
{
	uint64_t above = args->dead_above > 0 ? (uint64_t)args->dead_above : 0;
	char late[OB_WHEN_SIZE], limit[OB_WHEN_SIZE];
	const struct ob_stats *stats = row->stats;
	bool watches_dead = args->dead || args->dead_above >= 0;

	if (args->down)
		add_down(s, row, line);
	if (!stats)
		return;
	if (args->older_ms > 0 && stats->oldest_due_us &&
	    s->now_us - stats->oldest_due_us > args->older_ms * 1000) {
		ob_when_age(s->now_us - stats->oldest_due_us, late);
		ob_when_age(args->older_ms * 1000, limit);
		ob_buf_adds(line, line->len ? "; reader " : "reader ");
		ob_buf_add(line, row->reader.name);
		ob_buf_addf(line, ": a message is due for %s, longer than %s", late, limit);
	}
	if (watches_dead && stats->count[OB_VIEW_DEAD] > above) {
		ob_buf_adds(line, line->len ? "; reader " : "reader ");
		ob_buf_add(line, row->reader.name);
		ob_buf_addf(line, ": %" PRIu64 "%s dead", stats->count[OB_VIEW_DEAD],
			    stats->count[OB_VIEW_DEAD] >= OB_SNAPSHOT_CAP ? " or more" : "");
	}
}

/* One line when something is wrong, and none when not: cron mails whatever is printed. */
static int watch(const struct ob_snapshot *s, const struct status_args *args, bool silent)
{
	struct ob_buf line = OB_BUF_INIT(LINE_BYTES);

	for (size_t i = 0; i < s->count; i++)
		add_fault(s, &s->rows[i], args, &line);
	if (line.len && !silent)
		ob_para_print(stdout, ob_buf_view(&line), 0);
	int r = line.len ? OB_EXIT_FAILURE : OB_EXIT_OK;
	ob_buf_done(&line);
	return r;
}

static int status_run(struct ob_cli *cli, const void *opts)
{
	const struct status_args *args = opts;
	struct ob_snapshot s = { 0 };
	struct ob_upkeep upkeep = { 0 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session;
	int r = ob_session_open(&session, cli);

	if (!r && args->reader)
		r = check_reader(session.store, args->reader);
	if (!r && ob_snapshot_take(&s, session.store, args->reader, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	/* One reader alone does not tell what retention may do. */
	bool whole = !args->reader && (cli->json || !is_watch(args));
	if (!r && whole &&
	    ob_upkeep_find(&upkeep, session.store, &s, &session.entry->retention, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	if (!r && cli->json)
		r = print_json(&s, whole ? &upkeep : NULL);
	else if (!r && !is_watch(args))
		print_text(&s, whole ? &upkeep : NULL);
	if (!r && is_watch(args))
		r = watch(&s, args, cli->json);
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
	{
		.name = "fail-if-older",
		.arg = "AGE",
		.type = OB_CMD_DURATION,
		.offset = offsetof(struct status_args, older_ms),
		.min = 1,
		.max = INT64_C(3650) * 24 * 3600 * 1000,
		.help = "Print only what is wrong, and exit with 1 when a message has been due for "
			"longer.",
	},
	{
		.name = "fail-if-dead",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct status_args, dead),
		.help = "The same when a message is dead.",
	},
	{
		.name = "fail-if-dead-above",
		.arg = "N",
		.type = OB_CMD_INT,
		.offset = offsetof(struct status_args, dead_above),
		.dflt = "-1",
		.min = -1,
		.max = OB_SNAPSHOT_CAP - 1,
		.help = "The same when more than so many messages of a reader are dead.",
	},
	{
		.name = "fail-if-down",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct status_args, down),
		.help = "The same when a sink is down, or no worker runs a reader.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox status",
	"outbox status --fail-if-older 5m --fail-if-dead",
	NULL,
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
		"when.\n\n"
		"Relays tell with each heartbeat how their sink is, since when and why, how fast "
		"they are, and the last error; it is printed from any host that reaches the "
		"database.\n\n"
		"For cron and checks such as Nagios', --fail-if-older, --fail-if-dead and "
		"--fail-if-down print nothing when all is well, else one line with what is wrong, "
		"and the exit code is 1.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct status_args),
	.run = status_run,
};
