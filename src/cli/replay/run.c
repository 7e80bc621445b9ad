/* SPDX-License-Identifier: MIT */
/* The run of a replay: the relay's own engine, watched from here until it has reached the end. */
#include "base/count.h"
#include "cli/out/grid.h"
#include "cli/out/jprint.h"
#include "cli/out/para.h"
#include "cli/replay/bar.h"
#include "cli/replay/replay.h"
#include "operate/readers.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

enum {
	TICK_MS = 100,
	SAMPLE_US = 500000, /* between two questions to the store */
	LINE_US = 1000000,  /* between two lines of --json */
	REMOVE_MS = 5000,   /* how long a last heartbeat may stand in the way */
	DEAD_SHOWN = 10,
	LINE_BYTES = 4096,
	ARENA_MAX = 1 << 20,
};

enum show { SHOW_NOTHING, SHOW_BAR, SHOW_JSON };

struct running {
	struct ob_replay *replay;
	struct ob_signals *signals;
	struct ob_relay *relay;
	enum show show;
	struct ob_log log;
	pthread_mutex_t lock; /* guards the terminal: a line of the log comes from any thread */
	bool drawn;           /* the bar stands on the last line */
	struct ob_replay_bar bar;
	struct ob_rate messages, numbers;
	int64_t low_pos; /* everything up to it is out */
	bool made;       /* the reader is there, and ours to remove */
	uint32_t partitions;
	uint64_t waits;
	bool ended;    /* as of the last sample: it has reached its end */
	bool complete; /* and nothing of it waits */
	int64_t begin_us, sample_us, line_us;
};

static int64_t now_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

/* ---- showing --------------------------------------------------------------- */

static void clear_bar(struct running *run)
{
	if (run->drawn)
		(void)fputs("\r\033[K", stderr);
	run->drawn = false;
}

static void draw_bar(struct running *run)
{
	struct ob_buf line = OB_BUF_INIT(LINE_BYTES);
	size_t width = ob_terminal_width();

	ob_replay_bar_draw(&run->bar, (width ? width : 80) - 1, !ob_screen_speaks_utf8(), &line);
	(void)pthread_mutex_lock(&run->lock);
	(void)fprintf(stderr, "\r%s\033[K", ob_buf_str(&line));
	(void)fflush(stderr);
	run->drawn = true;
	(void)pthread_mutex_unlock(&run->lock);
	ob_buf_done(&line);
}

/* A line about what goes wrong stands above the bar. */
static void log_hook(void *arg, enum ob_log_level level, const char *line)
{
	struct running *run = arg;

	(void)level;
	(void)pthread_mutex_lock(&run->lock);
	clear_bar(run);
	(void)fprintf(stderr, "%s\n", line);
	(void)pthread_mutex_unlock(&run->lock);
}

static void figures_json(struct ob_jout *j, const struct running *run)
{
	const struct ob_replay_bar *bar = &run->bar;

	ob_jout_text(j, "replay", ob_str(bar->name));
	ob_jout_int(j, "from", bar->from + 1);
	ob_jout_int(j, "position", bar->position);
	ob_jout_int(j, "end", bar->end);
	ob_jout_int(j, "percent", ob_replay_percent(bar));
	ob_jout_int(j, "published", (int64_t)bar->published);
	ob_jout_int(j, "failed", (int64_t)bar->failed);
	ob_jout_int(j, "dead", (int64_t)bar->dead);
	ob_jout_int(j, "waiting", (int64_t)bar->waits);
}

static void print_line(const struct running *run, const struct ob_metrics_data *data)
{
	const struct ob_last_error *last =
		data->error_count ? &data->errors[data->error_count - 1] : NULL;
	struct ob_jout j = OB_JOUT_INIT;
	char rate[32];

	(void)snprintf(rate, sizeof(rate), "%.1f", run->bar.rate);
	ob_jout_begin(&j, NULL, '{');
	ob_jout_when(&j, "time", ob_clock_real_us(&ob_clock_system));
	figures_json(&j, run);
	ob_jout_raw(&j, "rate", ob_str(rate));
	if (run->bar.left_us >= 0)
		ob_jout_int(&j, "left_ms", run->bar.left_us / 1000);
	else
		ob_jout_raw(&j, "left_ms", OB_STR("null"));
	ob_jout_text(&j, "last_error", last ? ob_str(last->text) : OB_STR_NULL);
	ob_jout_bool(&j, "done", false);
	ob_jout_end(&j, '}');
	(void)ob_jout_print(&j);
	(void)fflush(stdout);
	ob_jout_done(&j);
}

/* ---- how far it is ----------------------------------------------------------- */

static int sample_position(struct running *run, struct ob_err *err)
{
	struct ob_readers readers;
	int r = ob_readers_load(&readers, run->replay->store, err);
	const struct ob_reader *reader =
		r == 0 ? ob_readers_find(&readers, run->replay->name) : NULL;

	if (reader) {
		run->bar.position = reader->high_pos;
		run->low_pos = reader->low_pos;
	}
	ob_readers_done(&readers);
	return r;
}

static int sample_counts(struct running *run, struct ob_err *err)
{
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_stats *stats;
	size_t count;
	int64_t now;
	int r = ob_store_stats(run->replay->store, run->replay->name, 0, &arena, &stats, &count,
			       &now, err);

	if (r == 0 && count)
		run->waits = stats[0].count[OB_VIEW_FAILED] + stats[0].count[OB_VIEW_PARKED];
	ob_arena_done(&arena);
	return r;
}

/*
 * Everything up to the end is recorded when all workers say so and all partitions are theirs;
 * counts are asked for only then, since what lies before the position must be counted row by row.
 */
static void look(struct running *run)
{
	struct ob_metrics_data data;
	struct ob_err ignored = OB_ERR_INIT;
	int64_t now = now_us();

	ob_relay_metrics(run->relay, &data);
	bool ended = ob_relay_has_ended(run->relay);
	if (now >= run->sample_us || (ended && !run->ended)) {
		run->sample_us = now + SAMPLE_US;
		run->ended = sample_position(run, &ignored) == 0 && ended &&
			     sample_counts(run, &ignored) == 0 &&
			     data.partitions == run->partitions;
	}
	run->bar.published = data.published;
	run->bar.failed = data.failed;
	run->bar.dead = data.dead;
	run->bar.waits = run->waits;
	run->bar.down = data.breaker == OB_BREAKER_OPEN;
	ob_rate_note(&run->messages, data.published, now);
	ob_rate_note(&run->numbers, (uint64_t)(run->bar.position - run->bar.from), now);
	run->bar.rate = ob_rate_now(&run->messages);
	run->bar.left_us = ob_replay_left_us(&run->bar, ob_rate_minute(&run->numbers));
	if (run->show == SHOW_BAR) {
		draw_bar(run);
	} else if (run->show == SHOW_JSON && now >= run->line_us) {
		run->line_us = now + LINE_US;
		print_line(run, &data);
	}
}

/* ---- running ------------------------------------------------------------------ */

static void choose_show(struct running *run)
{
	bool taken = ob_work_uses_stdout(&run->replay->conf) && isatty(STDOUT_FILENO);

	if (run->replay->cli->json)
		run->show = SHOW_JSON;
	else if (isatty(STDERR_FILENO) && !taken)
		run->show = SHOW_BAR;
	run->log = (struct ob_log){
		.fd = STDERR_FILENO,
		.level = OB_LOG_WARN,
		.format = run->replay->plan->config->log_format,
		.clock = &ob_clock_system,
	};
	if (run->show == SHOW_BAR) {
		run->log.hook = log_hook;
		run->log.hook_arg = run;
	}
}

/* What it sends, for people who list the readers meanwhile. */
static void write_filter(const struct ob_replay *replay, struct ob_buf *out)
{
	const struct ob_replay_args *a = replay->args;
	const struct {
		const char *name, *value;
	} rows[] = {
		{ "key", a->key },     { "type", a->type },   { "aggregate", a->aggregate },
		{ "event", a->event }, { "since", a->since }, { "until", a->until },
	};

	ob_buf_addf(out, "replay up to %" PRId64, replay->end_seq);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].value)
			ob_buf_addf(out, ", %s %s", rows[i].name, rows[i].value);
	}
}

/*
 * Made here, not by the relay: the partitions are counted with it, and a worker more than there are
 * would never get one, nor reach the end.
 */
static int make_reader(struct running *run)
{
	struct ob_replay *replay = run->replay;
	struct ob_buf filter = OB_BUF_INIT(LINE_BYTES);
	struct ob_err err = OB_ERR_INIT;

	write_filter(replay, &filter);

	const struct ob_reader reader = { .name = ob_str(replay->name),
					  .target = ob_str(replay->conf.reads),
					  .filter = ob_buf_view(&filter),
					  .temporary = true };
	int r = ob_store_reader_make(replay->store, &reader, &replay->place, &run->made, &err);
	if (r == 0 && run->made)
		r = ob_store_seed(replay->store, replay->name, &run->partitions, &err);
	ob_buf_done(&filter);
	if (r < 0)
		return ob_cli_fail("%s", err.msg);
	if (!run->made)
		return ob_replay_name_taken(replay);
	if (replay->conf.workers > run->partitions)
		replay->conf.workers = run->partitions;
	return OB_EXIT_OK;
}

static int open_relay(struct running *run)
{
	const struct ob_relay_conf conf = {
		.relay = &run->replay->conf,
		.log = &run->log,
		.end_seq = run->replay->end_seq,
		.wants = ob_replay_wants,
		.wants_arg = &run->replay->which,
	};
	struct ob_err err = OB_ERR_INIT;
	int r = make_reader(run);

	if (r)
		return r;
	if (ob_relay_new(&conf, &run->relay, &err) < 0 || sample_position(run, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	run->bar.name = run->replay->name;
	run->bar.from = run->low_pos;
	run->bar.end = run->replay->end_seq;
	return OB_EXIT_OK;
}

/* Until it is through, told to stop, or has ended by itself. */
static void attend(struct running *run)
{
	enum ob_stop stopping = OB_STOP_NO;
	struct pollfd fds[] = { { .fd = ob_relay_done_fd(run->relay), .events = POLLIN },
				{ .fd = run->signals->fd, .events = POLLIN } };

	while (!fds[0].revents) {
		(void)poll(fds, 2, TICK_MS);
		ob_signals_read(run->signals);
		look(run);
		enum ob_stop wanted = run->signals->stop;
		run->complete = run->complete || (run->ended && run->waits == 0);
		if (wanted == OB_STOP_NO && run->complete)
			wanted = OB_STOP_DRAIN;
		if (wanted > stopping) {
			stopping = wanted;
			ob_relay_stop(run->relay, stopping);
		}
	}
}

/* ---- the end -------------------------------------------------------------------- */

/* What was given up is gone with the reader: so it is told now. */
static void tell_dead(struct running *run)
{
	const struct ob_filter dead = { .reader = run->replay->name,
					.views = 1U << OB_VIEW_DEAD,
					.limit = DEAD_SHOWN };
	struct ob_err ignored = OB_ERR_INIT;
	struct ob_batch batch;
	int64_t now;

	ob_batch_init(&batch);
	if (run->bar.dead &&
	    ob_store_list(run->replay->store, &dead, &batch, &now, &ignored) == 0) {
		for (uint32_t i = 0; i < batch.count; i++) {
			struct ob_buf line = OB_BUF_INIT(LINE_BYTES);
			char id[OB_UUID_TEXT_SIZE];

			ob_uuid_format(&batch.messages[i].id, id);
			ob_buf_add(&line, batch.messages[i].last_error);
			(void)ob_cli_fail("%s was not delivered: %s", id, ob_buf_str(&line));
			ob_buf_done(&line);
		}
		if (run->bar.dead > batch.count)
			(void)ob_cli_fail("and %" PRIu64 " more", run->bar.dead - batch.count);
	}
	ob_batch_done(&batch);
}

/* Whatever came before: no reader stays behind. */
static int remove_reader(struct running *run)
{
	struct ob_err err = OB_ERR_INIT;
	int r = ob_store_reader_remove(run->replay->store, run->replay->name, &err);

	for (int waited = 0; r == OUTBOX_EBUSY && waited < REMOVE_MS; waited += TICK_MS) {
		(void)poll(NULL, 0, TICK_MS);
		r = ob_store_reader_remove(run->replay->store, run->replay->name, &err);
	}
	if (r >= 0)
		return OB_EXIT_OK;
	return ob_cli_fail("%s; 'outbox readers remove %s' removes its reader", err.msg,
			   run->replay->name);
}

static int print_end(const struct running *run, bool complete)
{
	const struct ob_replay_bar *bar = &run->bar;
	struct ob_buf line = OB_BUF_INIT(LINE_BYTES);
	struct ob_jout j = OB_JOUT_INIT;
	int r = OB_EXIT_OK;

	if (run->show == SHOW_JSON) {
		ob_jout_begin(&j, NULL, '{');
		ob_jout_when(&j, "time", ob_clock_real_us(&ob_clock_system));
		figures_json(&j, run);
		ob_jout_int(&j, "elapsed_ms", (now_us() - run->begin_us) / 1000);
		ob_jout_bool(&j, "complete", complete);
		ob_jout_bool(&j, "done", true);
		ob_jout_end(&j, '}');
		r = ob_jout_print(&j);
	} else {
		ob_buf_addf(&line, "%s: ", bar->name);
		ob_count_add(&line, bar->published, "message");
		ob_buf_addf(&line, " sent again, %" PRIu64 " dead", bar->dead);
		ob_para_print(ob_work_uses_stdout(&run->replay->conf) ? stderr : stdout,
			      ob_buf_view(&line), 0);
	}
	ob_jout_done(&j);
	ob_buf_done(&line);
	return r;
}

static int conclude(struct running *run, int joined, const struct ob_err *err)
{
	struct ob_err ignored = OB_ERR_INIT;
	bool complete = joined >= 0 && run->complete;
	struct ob_metrics_data data;

	ob_relay_metrics(run->relay, &data);
	run->bar.published = run->replay->published = data.published;
	run->bar.dead = data.dead;
	(void)sample_position(run, &ignored);
	clear_bar(run);
	int r = print_end(run, complete);
	tell_dead(run);
	if (joined < 0)
		r = ob_cli_fail("%s", err->msg);
	else if (!complete)
		r = ob_cli_fail("stopped at number %" PRId64 " of %" PRId64 "; '--from %" PRId64
				"' goes on from there",
				run->low_pos, run->bar.end, run->low_pos + 1);
	else if (run->bar.dead)
		r = OB_EXIT_FAILURE;
	return r;
}

static int run_relay(struct running *run)
{
	struct ob_err err = OB_ERR_INIT;
	int r = ob_relay_start(run->relay, &err);

	if (r < 0)
		return ob_cli_fail("%s", err.msg);
	attend(run);
	r = ob_relay_join(run->relay, &err);
	return conclude(run, r, &err);
}

int ob_replay_run(struct ob_replay *replay, struct ob_signals *signals)
{
	struct running run = { .replay = replay, .signals = signals, .begin_us = now_us() };

	(void)pthread_mutex_init(&run.lock, NULL);
	choose_show(&run);
	run.line_us = run.begin_us + LINE_US;
	int r = open_relay(&run);
	if (!r)
		r = run_relay(&run);
	ob_relay_free(run.relay);
	if (run.made) {
		int removed = remove_reader(&run);
		r = r ? r : removed;
	}
	(void)pthread_mutex_destroy(&run.lock);
	return r;
}
