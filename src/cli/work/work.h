/* SPDX-License-Identifier: MIT */
/* The parts of `outbox work`, one file each; the plan also serves `outbox replay`. */
#ifndef OB_CLI_WORK_H
#define OB_CLI_WORK_H

#include "base/signals.h"
#include "cli/cli.h"
#include "cli/monitor/inside.h"
#include "cli/work/dashboard.h"
#include "cli/work/service.h"
#include "relay/relay.h"

#include <termios.h>

struct ob_work_args {
	int64_t workers, interval_ms, window_s; /* 0: as configured, or the default */
	bool once, silent;
	const char *sink; /* of a database that --store names by its URL */
	struct ob_cmd_list relays;
};

/* ---- config.c: which relays, and how ---------------------------------- */

/* A configuration, and those of its relays that shall run. */
struct ob_work_plan {
	struct ob_config *config;
	const struct ob_config_relay **relays; /* as the command line changed them */
	size_t count;
	unsigned refs;
};

/*
 * Load what --config and --store name, choose the relays, apply the options. Every fault is a line
 * in *faults. On success the caller holds one reference to *ret_plan. Returns an exit code.
 */
int ob_work_plan_load(const struct ob_cli *cli, const struct ob_work_args *args,
		      struct ob_buf *faults, struct ob_work_plan **ret_plan);
/* Print them: those of the file behind their place in it, all others behind our name. */
void ob_work_print_faults(const struct ob_cli *cli, struct ob_str faults);
struct ob_work_plan *ob_work_plan_ref(struct ob_work_plan *plan);
void ob_work_plan_unref(struct ob_work_plan *plan);
/* Does it write messages to standard output? Does any of them? */
bool ob_work_uses_stdout(const struct ob_config_relay *relay);
bool ob_work_plan_uses_stdout(const struct ob_work_plan *plan);

/* ---- sample.c: asking the stores --------------------------------------- */

/* What to ask for one relay; what it points to is borrowed and outlives the sampler. */
struct ob_sample_job {
	const struct ob_store_conf *store;
	const char *reader;
	const struct ob_uuid *own; /* the ids of our workers */
	size_t own_count;
};

struct ob_sampler;

/* A thread with connections of its own; a slow database delays nothing but the numbers. */
int ob_sampler_new(const struct ob_sample_job *jobs, size_t count, struct ob_sampler **ret_sampler,
		   struct ob_err *err);
void ob_sampler_free(struct ob_sampler *sampler);
/* Ask every store; at most once a second, and a store that took long is left alone for longer. */
void ob_sampler_ask(struct ob_sampler *sampler);
/* Readable when an answer is there; reading a sample does not consume it, this does. */
int ob_sampler_fd(const struct ob_sampler *sampler);
void ob_sampler_consume(struct ob_sampler *sampler);
void ob_sampler_read(struct ob_sampler *sampler, size_t index, struct ob_sample *ret);

/* ---- gather.c: what the dashboards of work and top share ------------------ */

enum { OB_DASH_ORDERS = 5 };

/* What the workers tell, added up: for a dashboard in a process without relays. */
void ob_dash_gather(const struct ob_sample *sample, struct ob_metrics_data *ret);
/* Sort by the order of that number, 0 leaves them; the order's name. */
const char *ob_dash_sort(struct ob_dash_relay *relays, size_t count, size_t order);
/* The first relay to show after `lines` down, or up. */
size_t ob_dash_scroll(size_t first, size_t count, int lines);

/* ---- opener.c: a relay whose store is away -------------------------------- */

struct ob_opener;

/* Try from now on; what it points to is borrowed and outlives the opener. */
int ob_opener_new(const struct ob_config_relay *conf, const struct ob_log *log,
		  struct ob_opener **ret_opener, struct ob_err *err);
/* Stops and waits for an attempt that runs; NULL is allowed. */
void ob_opener_free(struct ob_opener *opener);
/* Ask it to end; does not wait. */
void ob_opener_stop(struct ob_opener *opener);
/* Readable once it has ended. */
int ob_opener_fd(const struct ob_opener *opener);
/* After that: the relay, which is the caller's, or NULL; then err says why, or NONE: it was
 * stopped. */
struct ob_relay *ob_opener_take(struct ob_opener *opener, struct ob_err *err);

/* ---- relays.c: the relays that run ------------------------------------- */

struct ob_work_relay {
	struct ob_work_plan *plan; /* a reference: conf lives in it */
	const struct ob_config_relay *conf;
	struct ob_relay *relay;      /* NULL while its store is away */
	struct ob_opener *opener;    /* while its store is away */
	struct ob_metrics_data away; /* what there is to show meanwhile */
	struct ob_uuid *own;         /* the ids of its workers */
	struct ob_rate rate;
	struct ob_metrics_data reported; /* as of the last line about it */
	bool leaving;                    /* it was told to stop */
	/* what takes its place once it has left */
	struct ob_work_plan *next_plan;
	const struct ob_config_relay *next_conf;
	struct ob_relay *next;
};

struct ob_work_set {
	const struct ob_log *log;
	struct ob_work_relay *relays;
	size_t count;
	struct ob_buf summary; /* a line for each relay that has ended */
	bool failed;           /* one could not start, or ended by itself */
};

/* Connect and check one; nothing runs yet. DOWN: its store is away. */
int ob_work_make(const struct ob_config_relay *conf, const struct ob_log *log,
		 struct ob_relay **ret_relay, struct ob_err *err);
/* Of an entry, whether it runs or waits for its store. */
void ob_work_metrics(const struct ob_work_relay *entry, struct ob_metrics_data *ret_data);
uint32_t ob_work_workers(const struct ob_work_relay *entry);
/* One line for people about its sink; borrowed. */
const char *ob_work_sink(const struct ob_work_relay *entry);
/* Readable when ob_work_set_reap() has something to do for it. */
int ob_work_fd(const struct ob_work_relay *entry);

/*
 * Connect and check every relay of the plan; nothing runs yet. One that cannot start is left out,
 * with a line that says why; one whose store is away waits for it, or with `once` is left out as
 * well. An exit code: a failure when none is left.
 */
int ob_work_set_open(struct ob_work_set *set, struct ob_work_plan *plan, bool once,
		     const struct ob_log *log);
int ob_work_set_start(struct ob_work_set *set, struct ob_err *err);
void ob_work_set_stop(struct ob_work_set *set, enum ob_stop how);
/* Take out those that have ended, start what takes their place. */
void ob_work_set_reap(struct ob_work_set *set);
/*
 * Go over to another plan: first everything new is connected and checked; if that fails
 * nothing changes and err says why. Then what changed or is gone drains.
 */
int ob_work_set_change(struct ob_work_set *set, struct ob_work_plan *plan, struct ob_err *err);
void ob_work_set_done(struct ob_work_set *set);

/* ---- screen.c: the terminal --------------------------------------------- */

enum {
	OB_SCREEN_QUIT = 1 << 0,
	OB_SCREEN_REDRAW = 1 << 1,
	OB_SCREEN_SCROLL = 1 << 2,
	OB_SCREEN_PAUSE = 1 << 3,
	OB_SCREEN_SORT = 1 << 4,
	OB_SCREEN_HELP = 1 << 5,
};

struct ob_screen {
	bool open;
	int signal_fd;
	bool has_keys; /* stdin is the terminal, and still there */
	bool is_raw;   /* its keys come one by one */
	struct termios saved;
	struct ob_dash_style style;
	struct ob_buf frame; /* what is on the screen */
	int scroll;          /* lines to go down, since ob_screen_read() was called */
};

/* Can a dashboard be drawn on standard output? */
bool ob_screen_possible(void);
/* Does the terminal take more than ASCII? */
bool ob_screen_speaks_utf8(void);
/* Take the terminal over. Call before the first thread starts: it blocks signals. */
int ob_screen_open(struct ob_screen *screen, struct ob_err *err);
/* Show a frame of ob_dash_draw(). */
void ob_screen_show(struct ob_screen *screen, struct ob_str frame);
/* What these bytes of a keyboard ask for; adds lines to *scroll, of which a page has `page`. */
unsigned ob_screen_keys(const char *keys, size_t n, int page, int *scroll);
/* Take in keys, and the terminal's signals: bits OB_SCREEN_... */
unsigned ob_screen_read(struct ob_screen *screen);
/* Give it back as it was; may be called again. */
void ob_screen_close(struct ob_screen *screen);

/* Log lines that wait while the screen is in use. */
struct ob_held_log;
int ob_held_log_new(struct ob_held_log **ret_held, struct ob_err *err);
/* The hook of a struct ob_log; its argument. */
void ob_held_log_hook(void *held_log, enum ob_log_level level, const char *line);
/* Print what was held to stderr. */
void ob_held_log_flush(struct ob_held_log *held);
void ob_held_log_free(struct ob_held_log *held);

/* ---- report.c: lines ----------------------------------------------------- */

/* One line of the log about what happened since the line before. */
void ob_work_report_line(struct ob_work_relay *relay, const struct ob_sample *sample,
			 int64_t span_us, const struct ob_log *log);
/* The same as one JSON object on standard output; an exit code. */
int ob_work_report_json(struct ob_work_relay *relay, const struct ob_sample *sample,
			int64_t span_us, int64_t now_us);

/* ---- once.c ---------------------------------------------------------------- */

/* One tick of each relay, in turn; prints what it did and returns the exit code. */
int ob_work_once(struct ob_work_set *set, const struct ob_cli *cli, bool silent,
		 struct ob_signals *signals);

/* ---- loop.c ---------------------------------------------------------------- */

enum ob_work_mode { OB_WORK_SILENT, OB_WORK_LINES, OB_WORK_JSON, OB_WORK_SCREEN };

struct ob_work {
	const struct ob_cli *cli;
	const struct ob_work_args *args;
	enum ob_work_mode mode;
	struct ob_log log;
	struct ob_held_log *held;
	struct ob_signals signals;
	enum ob_stop stopping; /* as far as it was acted upon */
	struct ob_work_set set;
	struct ob_sampler *sampler;
	struct ob_screen screen;
	struct ob_dash_relay *shown;
	size_t shown_count;
	size_t first; /* of the relays, where not all fit */
	size_t sort;  /* for ob_dash_sort() */
	bool paused, help;
	struct pollfd *fds;                   /* of one turn */
	int64_t start_us, period_us, tick_us; /* boot clock: start; between ticks; the next tick */
	int64_t reported_us;                  /* the last line */
	bool asked;                           /* a line is due when the sampler answers */
	struct ob_service service;
	struct ob_work_plan *plan; /* what was started; borrowed */
	struct ob_inside inside;
	struct ob_work_plan *monitor_plan; /* a reference: the monitor borrows from it */
};

/* ---- monitor.c --------------------------------------------------------------- */

/* The web monitor of a plan in place of the one before; none if it listens nowhere. What is wrong
 * is logged, and the relays go on. */
void ob_work_monitor_start(struct ob_work *w, struct ob_work_plan *plan);
void ob_work_monitor_stop(struct ob_work *w);
/* Called in every turn of the loop: tells it how the relays are. */
void ob_work_monitor_tick(struct ob_work *w);
/* When the next tick is due; INT64_MAX: never. */
int64_t ob_work_monitor_next_us(const struct ob_work *w);

/* Start the relays and stay until all of them have ended; an exit code. */
int ob_work_loop(struct ob_work *w);

#endif
