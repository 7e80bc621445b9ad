/* SPDX-License-Identifier: MIT */
/* Readiness, life and state for the service manager, from the main thread of outbox work. */
#include "cli/work/service.h"

#include "cli/out/pen.h"
#include "cli/work/work.h"
#include "relay/sdnotify.h"

#include <stdio.h>

enum {
	SECOND_US = 1000000,
	STALL_US = 60 * SECOND_US,
};

static int64_t now_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

void ob_service_begin(struct ob_work *w)
{
	int64_t watchdog = ob_sd_watchdog_us() / 3;

	w->service = (struct ob_service){ .watchdog_us = watchdog, .alive_us = now_us() };
	w->service.status_us = now_us() + SECOND_US;
	w->service.listens = ob_sd_notify("READY=1");
}

void ob_service_reloading(struct ob_work *w)
{
	if (w->service.listens)
		(void)ob_sd_reloading();
}

void ob_service_reloaded(struct ob_work *w)
{
	if (w->service.listens)
		(void)ob_sd_notify("READY=1");
}

void ob_service_stopping(struct ob_work *w)
{
	if (w->service.listens)
		(void)ob_sd_notify("STOPPING=1");
}

/* ---- the state ------------------------------------------------------- */

struct state {
	uint64_t published, due;
	bool due_known;
	size_t down;      /* relays whose sink is down */
	const char *sink; /* of one of them */
	bool store_down;
};

static void look(const struct ob_work *w, struct state *ret)
{
	*ret = (struct state){ .due_known = w->set.count > 0 };
	for (size_t i = 0; i < w->set.count; i++) {
		const struct ob_work_relay *relay = &w->set.relays[i];
		struct ob_metrics_data data;
		struct ob_sample sample = { 0 };

		ob_work_metrics(relay, &data);
		if (w->sampler)
			ob_sampler_read(w->sampler, i, &sample);
		ret->published += data.published;
		ret->due += sample.backlog;
		ret->due_known = ret->due_known && sample.valid;
		ret->store_down = ret->store_down || data.store_down;
		if (data.breaker == OB_BREAKER_CLOSED)
			continue;
		ret->down++;
		ret->sink = relay->conf->sink->name;
	}
}

static void add_count(struct ob_buf *out, uint64_t count, const char *unit)
{
	char text[OB_COUNT_SIZE];

	ob_format_count(count, text);
	ob_buf_addf(out, "%s%s", text, unit);
}

static void write_state(const struct ob_work *w, const struct state *state, struct ob_buf *out)
{
	if (w->stopping != OB_STOP_NO)
		ob_buf_adds(out, "stopping, ");
	add_count(out, (uint64_t)(ob_rate_now(&w->service.rate) + 0.5), "/s");
	if (state->due_known) {
		ob_buf_adds(out, ", ");
		add_count(out, state->due, " due");
	}
	if (state->store_down)
		ob_buf_adds(out, ", store away");
	if (state->down == 0)
		ob_buf_adds(out, ", sink ok");
	else if (state->down == 1)
		ob_buf_addf(out, ", sink %.60s down", state->sink);
	else
		ob_buf_addf(out, ", %zu sinks down", state->down);
}

static void say_state(struct ob_work *w)
{
	struct ob_buf line = OB_BUF_INIT(OB_SERVICE_STATUS - 1);
	struct state state;

	look(w, &state);
	ob_rate_note(&w->service.rate, state.published, now_us());
	ob_buf_adds(&line, "STATUS=");
	write_state(w, &state, &line);
	if (!line.failed && strcmp(ob_buf_str(&line), w->service.said) != 0) {
		(void)snprintf(w->service.said, sizeof(w->service.said), "%s", ob_buf_str(&line));
		(void)ob_sd_notify(w->service.said);
	}
	ob_buf_done(&line);
}

/* ---- signs of life --------------------------------------------------- */

static bool every_worker_steps(const struct ob_work *w)
{
	for (size_t i = 0; i < w->set.count; i++) {
		const struct ob_relay *relay = w->set.relays[i].relay;

		if (relay && ob_relay_stalled_us(relay) > STALL_US)
			return false;
	}
	return true;
}

void ob_service_tick(struct ob_work *w)
{
	int64_t now = now_us();

	if (w->service.watchdog_us && now >= w->service.alive_us) {
		w->service.alive_us = now + w->service.watchdog_us;
		if (every_worker_steps(w))
			(void)ob_sd_notify("WATCHDOG=1");
	}
	if (!w->service.listens || now < w->service.status_us)
		return;
	w->service.status_us = now + SECOND_US;
	say_state(w);
	/* shutdown_timeout of each relay is the end of it. */
	if (w->stopping == OB_STOP_DRAIN)
		(void)ob_sd_more_time();
}

int64_t ob_service_next_us(const struct ob_work *w)
{
	int64_t next = w->service.listens ? w->service.status_us : INT64_MAX;

	return w->service.watchdog_us && w->service.alive_us < next ? w->service.alive_us : next;
}
