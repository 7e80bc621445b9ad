/* SPDX-License-Identifier: MIT */
/* The relay for applications: make, run, stop. */
#include "base/cleanup.h"
#include "base/grow.h"
#include "base/utf8.h"
#include "embed/embed.h"
#include "events/wait.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>

enum { METRICS_MS = 10000, ARENA_MAX = 1 << 20, PENDING_CAP = 10001 };

/* ---- making ------------------------------------------------------------------ */

static int give_error(const struct ob_err *from, struct outbox_error *err)
{
	if (!err)
		return from->status;
	*err = (struct outbox_error){ .status = from->status, .index = OUTBOX_NO_INDEX };
	(void)snprintf(err->native, sizeof(err->native), "%s", from->native);

	/* Never cut inside a character. */
	struct ob_buf text = OB_BUF_INIT(sizeof(from->msg) * 4);
	ob_utf8_sanitize(&text, ob_str(from->msg), sizeof(err->message) - 1);
	size_t n = text.len;
	while (n >= sizeof(err->message) ||
	       (n < text.len && ((uint8_t)text.data[n] & 0xC0) == 0x80))
		n--;
	(void)snprintf(err->message, sizeof(err->message), "%.*s", (int)n, ob_buf_str(&text));
	ob_buf_done(&text);
	return from->status;
}

static void log_hook(void *arg, enum ob_log_level level, const char *line)
{
	const outbox_relay *relay = arg;

	relay->options.log(relay->options.arg, (enum outbox_relay_level)((int)level + 1), line);
}

static void make_log(outbox_relay *relay)
{
	enum outbox_relay_level level = relay->options.log_level;

	relay->log = (struct ob_log){
		.fd = -1,
		.level = level ? (enum ob_log_level)((int)level - 1) : OB_LOG_INFO,
		.format = OB_LOG_LOGFMT,
		.clock = &ob_clock_system,
		.hook = log_hook,
		.hook_arg = relay,
	};
}

static int check_store(const outbox_relay *relay, struct ob_err *err)
{
	struct ob_store *store;
	int r = ob_store_connect(&relay->config->stores[0].conf, &store, err);

	if (r < 0)
		return r;
	r = ob_store_check(store, err);
	ob_store_free(store);
	return r;
}

static int make(const struct outbox_relay_options *options, outbox_relay **ret_relay,
		struct ob_err *err)
{
	outbox_relay *relay = calloc(1, sizeof(*relay));

	if (!relay)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a relay");
	relay->ops = ob_handler_sink;
	if (options && (options->flags & OUTBOX_RELAY_IN_TRANSACTION))
		relay->ops.in_store = ob_handler_in_store;
	relay->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r = relay->stop_fd < 0
			? ob_err_errno(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "making an eventfd")
			: ob_embed_configure(relay, options, err);
	if (r >= 0)
		r = check_store(relay, err);
	if (r < 0) {
		outbox_relay_free(relay);
		return r;
	}
	make_log(relay);
	*ret_relay = relay;
	return 0;
}

static const struct ob_grow grow_relay_options = {
	.name = "struct outbox_relay_options",
	.first = OB_GROW_SIZE(struct outbox_relay_options, keep_dead_ms),
	.now = sizeof(struct outbox_relay_options),
};

/* The options as ours, whatever version of the headers the program was built with. */
static int make_sized(const void *options, size_t options_size, size_t table_size,
		      outbox_relay **ret_relay, struct ob_err *err)
{
	struct outbox_relay_options ours;
	struct outbox_options table;

	if (!options)
		return make(NULL, ret_relay, err);
	if (ob_grow_check(&grow_relay_options, options_size, err) < 0 ||
	    ob_grow_check(&ob_grow_options, table_size, err) < 0)
		return err->status;
	ob_grow_copy(&grow_relay_options, options, options_size, &ours);
	if (ours.table) {
		ob_grow_copy(&ob_grow_options, ours.table, table_size, &table);
		ours.table = &table;
	}
	return make(&ours, ret_relay, err);
}

int outbox_relay_new_sized(const void *options, size_t options_size, size_t table_size,
			   outbox_relay **ret_relay, struct outbox_error *err)
{
	struct ob_err e = OB_ERR_INIT;

	if (!ret_relay)
		(void)ob_err_set(&e, OUTBOX_EINVAL, OB_ERR_FATAL, "ret_relay is NULL");
	else if (make_sized(options, options_size, table_size, ret_relay, &e) >= 0)
		return OUTBOX_OK;
	return give_error(&e, err);
}

OUTBOX_API int first_relay_new(const void *options, outbox_relay **ret_relay,
			       struct outbox_error *err) OB_FIRST_ABI("outbox_relay_new");

int first_relay_new(const void *options, outbox_relay **ret_relay, struct outbox_error *err)
{
	return outbox_relay_new_sized(options, grow_relay_options.first, ob_grow_options.first,
				      ret_relay, err);
}

int outbox_wait_caught_up(const char *store, const char *reader, uint32_t timeout_ms,
			  struct outbox_error *err)
{
	struct ob_err e = OB_ERR_INIT;
	struct ob_store *connected = NULL;
	bool caught = false;

	if (!store || !reader) {
		(void)ob_err_set(&e, OUTBOX_EINVAL, OB_ERR_FATAL, "store or reader is NULL");
		return give_error(&e, err);
	}
	int r = ob_store_connect(&(struct ob_store_conf){ .url = store }, &connected, &e);
	if (r >= 0)
		r = ob_wait_caught_up(connected, reader, timeout_ms, &caught, &e);
	ob_store_free(connected);
	return r < 0 ? give_error(&e, err) : caught;
}

void outbox_relay_free(outbox_relay *relay)
{
	if (!relay)
		return;
	ob_config_free(relay->config);
	if (relay->stop_fd >= 0)
		(void)close(relay->stop_fd);
	free(relay);
}

/* ---- stopping ------------------------------------------------------------------- */

/* Nothing here but an atomic and a write(): a signal handler may call it. */
void outbox_relay_stop(outbox_relay *relay)
{
	int saved = errno;
	uint64_t one = 1;

	(void)atomic_fetch_add(&relay->stops, 1);
	(void)!write(relay->stop_fd, &one, sizeof(one));
	errno = saved;
}

static void obey(outbox_relay *relay, struct ob_relay *inner)
{
	unsigned stops = atomic_load(&relay->stops);
	uint64_t value;

	(void)!read(relay->stop_fd, &value, sizeof(value));
	if (stops)
		ob_relay_stop(inner, stops > 1 ? OB_STOP_NOW : OB_STOP_DRAIN);
}

static void forget_stops(outbox_relay *relay)
{
	uint64_t value;

	atomic_store(&relay->stops, 0);
	(void)!read(relay->stop_fd, &value, sizeof(value));
}

/* ---- metrics ---------------------------------------------------------------------- */

/* A connection for this one question: it is asked seldom, if at all. */
static int64_t count_pending(const outbox_relay *relay)
{
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_err err = OB_ERR_INIT;
	struct ob_store *store;
	struct ob_stats *stats;
	int64_t now_us, pending = -1;
	size_t count;

	if (ob_store_connect(&relay->config->stores[0].conf, &store, &err) < 0)
		return -1;
	if (ob_store_stats(store, relay->options.name, PENDING_CAP, &arena, &stats, &count, &now_us,
			   &err) >= 0) {
		const uint64_t *n = count ? stats[0].count : (const uint64_t[OB_VIEW_COUNT]){ 0 };

		pending = (int64_t)(n[OB_VIEW_PENDING] + n[OB_VIEW_DELAYED] + n[OB_VIEW_FAILED] +
				    n[OB_VIEW_PARKED]);
		pending = pending < PENDING_CAP ? pending : PENDING_CAP;
	}
	ob_store_free(store);
	ob_arena_done(&arena);
	return pending;
}

static void report(outbox_relay *relay, struct ob_relay *inner)
{
	const struct outbox_relay_options *o = &relay->options;
	struct ob_metrics_data now, *before = &relay->reported;
	int64_t now_us = ob_clock_boot_us(&ob_clock_system);

	if (!o->metrics)
		return;
	ob_relay_metrics(inner, &now);
	struct outbox_relay_metrics m = {
		.span_ms = (now_us - relay->reported_us) / 1000,
		.published = now.published - before->published,
		.failed = now.failed - before->failed,
		.retries = now.retries - before->retries,
		.dead = now.dead - before->dead,
		.down = now.down - before->down,
		.published_total = now.published,
		.failed_total = now.failed,
		.dead_total = now.dead,
		.in_flight = now.in_flight,
		.partitions = now.partitions,
		.breaker_open = now.breaker != OB_BREAKER_CLOSED,
		.pending = o->flags & OUTBOX_RELAY_SAMPLE_PENDING ? count_pending(relay) : -1,
	};
	if (m.published + m.failed + m.down == 0)
		m.backoff_ms = relay->config->relays[0].idle_backoff_ms;
	*before = now;
	relay->reported_us = now_us;
	o->metrics(o->arg, &m);
}

static void begin_reports(outbox_relay *relay)
{
	relay->reported = (struct ob_metrics_data){ 0 };
	relay->reported_us = ob_clock_boot_us(&ob_clock_system);
}

/* ---- running ------------------------------------------------------------------------ */

static int open_inner(outbox_relay *relay, struct ob_relay **ret_inner, struct ob_err *err)
{
	struct ob_relay_conf conf = { .relay = &relay->config->relays[0],
				      .retention = &relay->config->stores[0].retention,
				      .log = relay->options.log ? &relay->log : NULL,
				      .failed = ob_embed_failed,
				      .failed_arg = relay };

	begin_reports(relay);
	return ob_relay_new(&conf, ret_inner, err);
}

/* Our threads leave the application's signals to the application's threads. */
static int start_quietly(struct ob_relay *inner, struct ob_err *err)
{
	sigset_t all, before;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = ob_relay_start(inner, err);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static int wait_ms(const outbox_relay *relay)
{
	int64_t every_ms = relay->options.metrics_interval_ms ? relay->options.metrics_interval_ms
							      : METRICS_MS;
	int64_t left = every_ms - (ob_clock_boot_us(&ob_clock_system) - relay->reported_us) / 1000;

	if (!relay->options.metrics)
		return -1;
	return left < 0 ? 0 : (int)left;
}

/* Until `done_fd` is readable: pass stops on, report now and then. */
static void attend(outbox_relay *relay, struct ob_relay *inner, int done_fd, bool reports)
{
	for (;;) {
		struct pollfd fds[] = { { .fd = done_fd, .events = POLLIN },
					{ .fd = relay->stop_fd, .events = POLLIN } };

		obey(relay, inner);
		(void)poll(fds, 2, reports ? wait_ms(relay) : -1);
		if (fds[0].revents)
			return;
		if (reports && relay->options.metrics && wait_ms(relay) == 0)
			report(relay, inner);
	}
}

int outbox_relay_run(outbox_relay *relay, struct outbox_error *err)
{
	struct ob_err e = OB_ERR_INIT;
	struct ob_relay *inner;
	int r = open_inner(relay, &inner, &e);

	if (r < 0)
		return give_error(&e, err);
	r = start_quietly(inner, &e);
	if (r >= 0) {
		attend(relay, inner, ob_relay_done_fd(inner), true);
		r = ob_relay_join(inner, &e);
		report(relay, inner);
	}
	ob_relay_free(inner);
	forget_stops(relay);
	return r < 0 ? give_error(&e, err) : OUTBOX_OK;
}

/* ---- once ----------------------------------------------------------------------------- */

struct tick {
	pthread_t thread;
	struct ob_relay *inner;
	int fd; /* eventfd: it is through */
	int result;
	struct ob_err err;
};

static void *tick_main(void *arg)
{
	struct tick *tick = arg;

	tick->result = ob_relay_once(tick->inner, &tick->err);
	(void)eventfd_write(tick->fd, 1);
	return NULL;
}

static int start_tick(struct tick *tick)
{
	sigset_t all, before;

	tick->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = tick->fd < 0 ? -1 : pthread_create(&tick->thread, NULL, tick_main, tick);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		return 0;
	return ob_err_set(&tick->err, OUTBOX_ENOMEM, OB_ERR_FATAL, "starting a thread");
}

int outbox_relay_process_once(outbox_relay *relay, struct outbox_error *err)
{
	struct tick tick = { .fd = -1 };
	int r = open_inner(relay, &tick.inner, &tick.err);

	if (r < 0)
		return give_error(&tick.err, err);
	r = start_tick(&tick);
	if (r == 0) {
		attend(relay, tick.inner, tick.fd, false);
		(void)pthread_join(tick.thread, NULL);
		r = tick.result;
		report(relay, tick.inner);
	}
	if (tick.fd >= 0)
		(void)close(tick.fd);
	ob_relay_free(tick.inner);
	forget_stops(relay);
	return r < 0 ? give_error(&tick.err, err) : r;
}
