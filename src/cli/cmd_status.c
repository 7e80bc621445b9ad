/* SPDX-License-Identifier: MIT */
/* outbox status: how much is where, and who works on it. */
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/grid.h"
#include "cli/jout.h"
#include "cli/when.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { ARENA_MAX = 256 << 20 };

struct status_args {
	const char *target;
};

struct target_row {
	struct ob_str name;
	const struct ob_stats *stats; /* NULL: it has leases or workers, but no message */
	uint64_t leased, partitions, workers;
};

struct snapshot {
	struct ob_arena arena;
	struct ob_stats *stats;
	struct ob_partition *partitions;
	struct ob_worker *workers;
	size_t stats_count, partition_count, worker_count;
	struct target_row *rows;
	size_t row_count;
	int64_t now_us;
	struct ob_buf store; /* the database in one line */
};

static struct target_row *row_of(struct snapshot *s, struct ob_str target)
{
	assert(target.p); /* the column is NOT NULL */
	for (size_t i = 0; i < s->row_count; i++) {
		if (ob_str_eq(s->rows[i].name, target))
			return &s->rows[i];
	}
	s->rows[s->row_count].name = target;
	return &s->rows[s->row_count++];
}

/* A target may have messages, leases or workers: whoever has any gets a row. */
static bool make_rows(struct snapshot *s)
{
	size_t most = s->stats_count + s->partition_count + s->worker_count;

	s->rows = ob_arena_alloc(&s->arena, (most + 1) * sizeof(*s->rows));
	if (!s->rows)
		return false;
	for (size_t i = 0; i < s->stats_count; i++)
		row_of(s, s->stats[i].target)->stats = &s->stats[i];
	for (size_t i = 0; i < s->partition_count; i++) {
		struct target_row *row = row_of(s, s->partitions[i].target);
		row->partitions++;
		row->leased += s->partitions[i].leased;
	}
	for (size_t i = 0; i < s->worker_count; i++)
		row_of(s, s->workers[i].target)->workers++;
	return true;
}

static int take_snapshot(struct snapshot *s, struct ob_store *store, const char *target,
			 struct ob_err *err)
{
	int r = ob_store_stats(store, target, &s->arena, &s->stats, &s->stats_count, &s->now_us,
			       err);

	if (r == 0)
		r = ob_store_partitions(store, target, &s->arena, &s->partitions,
					&s->partition_count, err);
	if (r == 0)
		r = ob_store_workers(store, target, &s->arena, &s->workers, &s->worker_count, err);
	if (r < 0)
		return r;
	ob_store_describe(store, &s->store);
	if (!make_rows(s))
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	return 0;
}

static void print_counts(const struct snapshot *s, size_t width)
{
	static const struct ob_grid_column columns[] = { { "TARGET", OB_GRID_SHRINK },
#define X(name, text) { #name, OB_GRID_RIGHT },
							 OB_STATE_MAP(X)
#undef X
	};
	struct ob_grid table;

	ob_grid_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < s->row_count; i++) {
		const struct ob_stats *stats = s->rows[i].stats;

		ob_grid_cell(&table, s->rows[i].name);
		for (int view = 0; view < OB_VIEW_COUNT; view++)
			ob_grid_int(&table, stats ? (int64_t)stats->count[view] : 0);
	}
	ob_grid_print(&table, width, stdout);
	ob_grid_done(&table);
}

static void print_health(const struct snapshot *s, size_t width)
{
	static const struct ob_grid_column columns[] = {
		{ "TARGET", OB_GRID_SHRINK },    { "OLDEST DUE", OB_GRID_RIGHT },
		{ "HELD KEYS", OB_GRID_RIGHT },  { "LEASED", OB_GRID_RIGHT },
		{ "PARTITIONS", OB_GRID_RIGHT }, { "WORKERS", OB_GRID_RIGHT },
	};
	struct ob_grid table;

	ob_grid_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < s->row_count; i++) {
		const struct target_row *row = &s->rows[i];
		char age[OB_WHEN_SIZE] = "-";

		if (row->stats && row->stats->oldest_due_us)
			ob_when_age(s->now_us - row->stats->oldest_due_us, age);
		ob_grid_cell(&table, row->name);
		ob_grid_cell(&table, ob_str(age));
		ob_grid_int(&table, row->stats ? (int64_t)row->stats->held_keys : 0);
		ob_grid_int(&table, (int64_t)row->leased);
		ob_grid_int(&table, (int64_t)row->partitions);
		ob_grid_int(&table, (int64_t)row->workers);
	}
	ob_grid_print(&table, width, stdout);
	ob_grid_done(&table);
}

static void print_workers(const struct snapshot *s, size_t width)
{
	static const struct ob_grid_column columns[] = {
		{ "WORKER", 0 },
		{ "TARGET", OB_GRID_SHRINK },
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
		ob_grid_cell(&table, w->target);
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

static void print_text(const struct snapshot *s)
{
	size_t width = ob_terminal_width();
	struct ob_buf safe = OB_BUF_INIT(8192);

	ob_utf8_sanitize(&safe, ob_buf_view(&s->store), 1000);
	printf("%s\n", ob_buf_str(&safe));
	ob_buf_done(&safe);
	if (s->row_count == 0) {
		printf("no messages, no workers\n");
		return;
	}
	(void)fputc('\n', stdout);
	print_counts(s, width);
	(void)fputc('\n', stdout);
	print_health(s, width);
	if (s->worker_count) {
		(void)fputc('\n', stdout);
		print_workers(s, width);
	}
}

static void target_json(struct ob_jout *j, const struct snapshot *s, const struct target_row *row)
{
	int64_t oldest = row->stats ? row->stats->oldest_due_us : 0;

	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "target", row->name);
	for (int view = 0; view < OB_VIEW_COUNT; view++)
		ob_jout_int(j, ob_view_name((enum ob_view)view),
			    row->stats ? (int64_t)row->stats->count[view] : 0);
	ob_jout_int(j, "held_keys", row->stats ? (int64_t)row->stats->held_keys : 0);
	ob_jout_when(j, "oldest_due", oldest);
	ob_jout_int(j, "oldest_due_ms", oldest ? (s->now_us - oldest) / 1000 : 0);
	ob_jout_int(j, "partitions", (int64_t)row->partitions);
	ob_jout_int(j, "leased", (int64_t)row->leased);
	ob_jout_int(j, "workers", (int64_t)row->workers);
	ob_jout_end(j, '}');
}

static void worker_json(struct ob_jout *j, const struct ob_worker *w)
{
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&w->id, id);
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "id", ob_str(id));
	ob_jout_text(j, "target", w->target);
	ob_jout_text(j, "hostname", w->hostname);
	ob_jout_int(j, "pid", w->pid);
	ob_jout_when(j, "started_at", w->started_at_us);
	ob_jout_when(j, "heartbeat_until", w->heartbeat_until_us);
	ob_jout_int(j, "published", (int64_t)w->published);
	ob_jout_int(j, "failed", (int64_t)w->failed);
	ob_jout_end(j, '}');
}

static int print_json(const struct snapshot *s)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_text(&j, "store", ob_buf_view(&s->store));
	ob_jout_when(&j, "now", s->now_us);
	ob_jout_begin(&j, "targets", '[');
	for (size_t i = 0; i < s->row_count; i++)
		target_json(&j, s, &s->rows[i]);
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

static int status_run(struct ob_cli *cli, const void *opts)
{
	const struct status_args *args = opts;
	struct snapshot s = { .arena = OB_ARENA_INIT(ARENA_MAX), .store = OB_BUF_INIT(8192) };
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session;

	int r = ob_session_open(&session, cli);
	if (!r && take_snapshot(&s, session.store, args->target, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	if (!r && cli->json)
		r = print_json(&s);
	else if (!r)
		print_text(&s);
	ob_buf_done(&s.store);
	ob_arena_done(&s.arena);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "target",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct status_args, target),
		.help = "Only this target.",
	},
	OB_CMD_OPT_END,
};

const struct ob_cmd ob_cmd_status = {
	.name = "status",
	.group = OB_GROUP_MESSAGES,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "how much is where, and who works on it",
	.description =
		"Prints, for each target, how many messages are in which state, how long "
		"the oldest one that is due has been waiting, how many keys are held back by a "
		"failed message, how many partitions are leased, and the workers that are "
		"alive with the time until their heartbeat runs out.",
	.options = options,
	.args_size = sizeof(struct status_args),
	.run = status_run,
};
