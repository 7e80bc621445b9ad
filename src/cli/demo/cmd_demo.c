/* SPDX-License-Identifier: MIT */
/* outbox demo: orders, workers and a file for a few seconds, and then the audit. */
#include "base/signals.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/demo/demo.h"
#include "cli/out/grid.h"
#include "cli/out/jprint.h"
#include "cli/work/work.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

enum {
	SECOND_US = 1000000,
	FRAME_MS = 100,
	LINE_US = 2 * SECOND_US,
	DRAIN_US = 60 * SECOND_US,
	STOP_MS = 15000,
	BATCHES_IN_FLIGHT = 3, /* of a worker: settled, sent, fetched ahead */
	ARENA_MAX = 4 << 20,
	FRAME_BYTES = 64 << 10,
	SECONDS_MAX = 3600,
};

struct demo_args {
	int64_t seconds;
	bool chaos, keep;
};

enum show { SHOW_NOTHING, SHOW_LINES, SHOW_SCREEN };

struct demo {
	const struct demo_args *args;
	enum show show;
	struct ob_demo_style style;
	struct ob_demo_files files;
	struct ob_signals signals;
	struct ob_store *store;
	struct ob_demo_shop *shop;
	struct ob_demo_fleet fleet;
	struct ob_demo_view view;
	struct ob_arena arena;
	struct ob_buf frame;
	size_t frame_lines; /* on the screen, to be drawn over */
	int64_t start_us, line_us, sample_us;
};

static int64_t now_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

/* ---- showing ---------------------------------------------------------- */

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

static void choose_show(struct demo *d, const struct ob_cli *cli)
{
	d->show = cli->json ? SHOW_NOTHING : ob_screen_possible() ? SHOW_SCREEN : SHOW_LINES;
	d->style.width = d->show == SHOW_SCREEN ? ob_terminal_width() : 0;
	d->style.width = d->style.width ? d->style.width : 100;
	d->style.colour = d->show == SHOW_SCREEN && !is_set("NO_COLOR");
	d->style.ascii = !ob_screen_speaks_utf8();
}

static void put_frame(struct demo *d)
{
	(void)fputs(ob_buf_str(&d->frame), stdout);
	(void)fflush(stdout);
	ob_buf_clear(&d->frame);
}

/* Over what stands there; a line that got shorter is cleared to its end. */
static void show_screen(struct demo *d)
{
	d->style.width = ob_terminal_width() ? ob_terminal_width() : d->style.width;
	ob_buf_adds(&d->frame, "\033[?25l\033[?7l");
	if (d->frame_lines)
		ob_buf_addf(&d->frame, "\033[%zuA\r\033[J", d->frame_lines);
	d->frame_lines = ob_demo_draw(&d->view, &d->style, &d->frame);
	ob_buf_adds(&d->frame, "\033[?7h\033[?25h");
	put_frame(d);
}

static void show(struct demo *d, bool must)
{
	if (d->show == SHOW_SCREEN)
		show_screen(d);
	if (d->show != SHOW_LINES || (!must && now_us() < d->line_us))
		return;
	d->line_us += LINE_US;
	ob_demo_draw_line(&d->view, &d->frame);
	put_frame(d);
}

/* ---- looking ---------------------------------------------------------- */

/* What was committed and waits no more is delivered. Orders that came in since `committed` was
 * read make it look smaller than it is, so it is never taken back. */
static int look_at_rows(struct demo *d, struct ob_err *err)
{
	struct ob_stats *stats;
	uint64_t delivered = 0;
	size_t count;
	int64_t now = 0;
	int r = ob_store_stats(d->store, "default", 0, &d->arena, &stats, &count, &now, err);

	if (r < 0 || count == 0)
		return r;
	d->view.waiting = 0;
	for (int i = 0; i < OB_VIEW_PUBLISHED; i++)
		d->view.waiting += stats->count[i];
	if (d->view.committed > d->view.waiting)
		delivered = d->view.committed - d->view.waiting;
	if (delivered > d->view.delivered)
		d->view.delivered = delivered;
	d->view.oldest_us = stats->oldest_due_us ? now - stats->oldest_due_us : 0;
	return 0;
}

static uint32_t partitions_of(const struct ob_partition *partitions, size_t count,
			      const struct ob_uuid *owner)
{
	uint32_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += partitions[i].leased && ob_uuid_eq(&partitions[i].owner, owner);
	return n;
}

static int look_at_workers(struct demo *d, struct ob_err *err)
{
	struct ob_partition *partitions = NULL;
	struct ob_worker *workers = NULL;
	size_t partition_count = 0, worker_count = 0;
	int r = ob_store_partitions(d->store, "default", &d->arena, &partitions, &partition_count,
				    err);

	if (r == 0)
		r = ob_store_workers(d->store, "default", &d->arena, &workers, &worker_count, err);
	if (r < 0)
		return r;
	d->view.worker_count = d->fleet.count;
	for (size_t i = 0; i < d->fleet.count; i++) {
		struct ob_demo_worker *shown = &d->view.workers[i];

		*shown = (struct ob_demo_worker){ .pid = d->fleet.processes[i].child.pid,
						  .role = d->fleet.processes[i].role };
		for (size_t k = 0; k < worker_count; k++) {
			if (workers[k].pid == shown->pid)
				shown->partitions +=
					partitions_of(partitions, partition_count, &workers[k].id);
		}
	}
	return 0;
}

/* A database that is busy answers the next time. */
static int look(struct demo *d, struct ob_err *err)
{
	int64_t began = now_us();
	int r = ob_demo_shop_counts(d->shop, &d->view.committed, &d->view.rolled_back, err);

	if (r < 0)
		return r;
	d->view.killed = d->fleet.killed;
	d->view.paused = d->fleet.paused;
	d->view.news = d->fleet.news;
	d->view.elapsed_us = began - d->start_us;
	if (began < d->sample_us)
		return 0;
	ob_arena_reset(&d->arena, SIZE_MAX);
	r = look_at_rows(d, err);
	if (r == 0)
		r = look_at_workers(d, err);
	ob_rate_note(&d->view.rate, d->view.delivered, began);
	/* counting many rows takes its time: never more than a tenth of ours */
	d->sample_us = began + (now_us() - began) * 10;
	return r < 0 && err->kind == OB_ERR_DOWN ? 0 : r;
}

/* ---- running ---------------------------------------------------------- */

static int tick(struct demo *d, struct ob_err *err)
{
	struct pollfd fd = { .fd = d->signals.fd, .events = POLLIN };

	(void)poll(&fd, 1, FRAME_MS);
	ob_signals_read(&d->signals);
	if (d->signals.stop == OB_STOP_NOW)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "interrupted before its audit");
	int r = ob_demo_fleet_tick(&d->fleet, now_us(), err);
	if (r == 0)
		r = look(d, err);
	show(d, false);
	return r;
}

/* Orders come in until time is up or somebody has seen enough. */
static int take_orders(struct demo *d, struct ob_err *err)
{
	int r = 0;

	d->view.phase = "taking orders";
	while (r == 0 && now_us() < d->start_us + d->view.total_us && d->signals.stop == OB_STOP_NO)
		r = tick(d, err);
	ob_demo_shop_close(d->shop);
	return r;
}

static int deliver_rest(struct demo *d, struct ob_err *err)
{
	int64_t end = now_us() + DRAIN_US;
	int r = 0;

	d->view.phase = "delivering the rest";
	ob_demo_fleet_calm(&d->fleet);
	do {
		r = tick(d, err);
		if (r == 0 && now_us() >= end)
			r = ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				       "%" PRIu64
				       " events are still waiting; the log of the "
				       "workers is in '%s'",
				       d->view.waiting, d->files.log);
	} while (r == 0 && d->view.delivered < d->view.committed);
	if (r == 0)
		r = ob_demo_fleet_stop(&d->fleet, STOP_MS, err);
	d->view.phase = "done";
	d->view.worker_count = 0;
	return r;
}

static int make_files(struct demo *d, struct ob_err *err)
{
	/*
	 * A short lease makes the mishaps interesting. Without them it is longer, so that a
	 * slow machine does not look like one.
	 */
	const char *lease = d->args->chaos
				    ? "{ lease_ttl: 2s, lease_renew: 500ms, heartbeat_ttl: 2s }"
				    : "{ lease_ttl: 15s, lease_renew: 5s, heartbeat_ttl: 20s }";
	char relay[160];

	(void)snprintf(relay, sizeof(relay), "    batch_size: %d\n    leasing: %s\n", OB_DEMO_BATCH,
		       lease);
	return ob_demo_files_make(&d->files, "demo", relay, err);
}

static int begin(struct demo *d, struct ob_err *err)
{
	struct ob_store_conf conf = { .url = d->files.url };

	/* the demonstration is its own world */
	(void)unsetenv("OUTBOX_CONFIG");
	(void)unsetenv("OUTBOX_STORE");
	int r = ob_signals_init(&d->signals, err);
	if (r == 0)
		r = make_files(d, err);
	if (r < 0)
		return r;
	r = ob_store_connect(&conf, &d->store, err);
	if (r < 0)
		return r;
	d->fleet.files = &d->files;
	d->fleet.store = d->store;
	d->fleet.chaos = d->args->chaos;
	d->start_us = d->line_us = now_us();
	d->view.total_us = d->args->seconds * SECOND_US;
	d->view.chaos = d->args->chaos;
	d->view.news = "";
	r = ob_demo_fleet_start(&d->fleet, d->start_us, err);
	return r < 0 ? r : ob_demo_shop_open(&d->files, &d->shop, err);
}

/* ---- judging ---------------------------------------------------------- */

static int print_json(const struct demo *d, const struct ob_demo_verdict *v)
{
	struct ob_jout j = OB_JOUT_INIT;
	bool kept = d->args->keep || !ob_demo_holds(v);

	ob_jout_begin(&j, NULL, '{');
	ob_jout_bool(&j, "holds", ob_demo_holds(v));
	ob_jout_int(&j, "committed", (int64_t)v->audit->committed);
	ob_jout_int(&j, "rolled_back", (int64_t)v->audit->rolled_back);
	ob_jout_int(&j, "delivered", (int64_t)v->audit->delivered);
	ob_jout_int(&j, "lost", (int64_t)v->audit->lost);
	ob_jout_int(&j, "ghosts", (int64_t)v->audit->ghosts);
	ob_jout_int(&j, "out_of_order", (int64_t)v->audit->out_of_order);
	ob_jout_int(&j, "duplicates", (int64_t)v->audit->duplicates);
	ob_jout_int(&j, "duplicates_max", (int64_t)v->duplicates_max);
	ob_jout_int(&j, "torn_lines", (int64_t)v->audit->unreadable);
	ob_jout_bool(&j, "chaos", v->chaos);
	ob_jout_int(&j, "killed", v->killed);
	ob_jout_int(&j, "paused", v->paused);
	ob_jout_int(&j, "elapsed_ms", (now_us() - d->start_us) / 1000);
	ob_jout_text(&j, "directory", ob_str(kept ? d->files.dir : NULL));
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

/* 1: it holds, 0: it does not, or an error. */
static int judge(struct demo *d, struct ob_err *err)
{
	struct ob_audit_lines lines = { 0 };
	struct ob_audit audit = { .examples = OB_BUF_INIT(1) };
	struct ob_demo_verdict verdict = {
		.audit = &audit,
		.chaos = d->args->chaos,
		.killed = d->fleet.killed,
		.paused = d->fleet.paused,
		.duplicates_max = (uint64_t)(d->fleet.killed + d->fleet.paused) *
				  BATCHES_IN_FLIGHT * OB_DEMO_BATCH,
	};
	int r = ob_audit_read(&lines, d->files.events, err);

	if (r == 0)
		r = ob_audit_run(ob_demo_shop_journal(d->shop), &lines, &audit, err);
	if (r == 0 && d->show == SHOW_NOTHING) {
		(void)print_json(d, &verdict);
	} else if (r == 0) {
		ob_demo_draw_verdict(&verdict, &d->style, &d->frame);
		put_frame(d);
	}
	r = r < 0 ? r : ob_demo_holds(&verdict);
	ob_audit_lines_done(&lines);
	ob_audit_done(&audit);
	return r;
}

static int run_all(struct demo *d, struct ob_err *err)
{
	int r = begin(d, err);

	if (r == 0 && d->show != SHOW_NOTHING) {
		ob_demo_draw_intro(d->args->chaos, &d->style, &d->frame);
		put_frame(d);
	}
	if (r == 0)
		r = take_orders(d, err);
	if (r == 0)
		r = deliver_rest(d, err);
	if (r == 0)
		show(d, true);
	return r < 0 ? r : judge(d, err);
}

static void clean_up(struct demo *d, bool keep, bool tell)
{
	ob_demo_fleet_done(&d->fleet);
	ob_demo_shop_free(d->shop);
	ob_store_free(d->store);
	if (d->files.config[0] && !keep)
		ob_demo_files_remove(&d->files);
	else if (d->files.config[0] && tell)
		printf("\nKept: %s\n  cd there for `outbox status`, `outbox list published`, "
		       "events.ndjson and workers.log\n",
		       d->files.dir);
	if (d->signals.fd >= 0)
		ob_signals_done(&d->signals);
	ob_arena_done(&d->arena);
	ob_buf_done(&d->frame);
}

static int demo_run(struct ob_cli *cli, const void *opts)
{
	struct ob_err err = OB_ERR_INIT;
	struct demo *d = calloc(1, sizeof(*d));
	int code;

	if (!d)
		return ob_cli_fail("out of memory");
	d->args = opts;
	d->signals.fd = -1;
	d->arena = OB_ARENA_INIT(ARENA_MAX);
	d->frame = OB_BUF_INIT(FRAME_BYTES);
	choose_show(d, cli);
	int r = run_all(d, &err);
	bool failed = r == 0 || (r < 0 && d->signals.stop != OB_STOP_NOW);
	/* what is wrong wants to be looked at */
	clean_up(d, d->args->keep || failed, d->show != SHOW_NOTHING);
	code = r < 0 ? ob_cli_fail("%s", err.msg) : r > 0 ? OB_EXIT_OK : OB_EXIT_FAILURE;
	free(d);
	return code;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "seconds",
		.arg = "N",
		.type = OB_CMD_INT,
		.offset = offsetof(struct demo_args, seconds),
		.min = 1,
		.max = SECONDS_MAX,
		.dflt = "20",
		.help = "How long orders come in.",
	},
	{
		.name = "chaos",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct demo_args, chaos),
		.help = "Kill workers, and pause them past their lease, all the while.",
	},
	{
		.name = "keep",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct demo_args, keep),
		.help = "Leave the directory with the database and the file for a look.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox demo",
	"outbox demo --chaos --seconds 30",
	"outbox demo --seconds 10 --json",
	NULL,
};

const struct ob_cmd ob_cmd_demo = {
	.name = "demo",
	.group = OB_GROUP_START,
	.flags = OB_CMD_JSON,
	.summary = "see it work, and have it checked",
	.description =
		"Runs a small shop for a while: orders of 50 customers are written together with "
		"their events into an SQLite database, about one transaction in ten is rolled "
		"back, "
		"and two workers deliver the events to a file. All of it happens in a temporary "
		"directory. Ctrl-C ends it early; again: at once.\n\n"
		"At the end every line of the file is compared with what the shop remembers: "
		"events that were lost, events of rolled-back transactions (ghosts), events out "
		"of order for their customer, and duplicates. The exit code is 0 only if there are "
		"none; with --chaos duplicates are allowed, as many as could be in flight at each "
		"kill or pause.\n\n"
		"--json prints one object: holds, committed, rolled_back, delivered, lost, ghosts, "
		"out_of_order, duplicates, duplicates_max, torn_lines, chaos, killed, paused, "
		"elapsed_ms, directory.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct demo_args),
	.run = demo_run,
};
