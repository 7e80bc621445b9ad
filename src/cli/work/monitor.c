/* SPDX-License-Identifier: MIT */
/* The web monitor inside outbox work: started, told how the relays are, and never in their way. */
#include "cli/work/work.h"
#include "config.h"

#if HAVE_MONITOR
#include "monitor/monitor.h"

enum { PERIOD_US = 1000000 };

static int64_t now_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

void ob_work_monitor_start(struct ob_work *w, struct ob_work_plan *plan)
{
	struct ob_monitor_conf conf = {
		.config = plan->config, .log = &w->log, .key = w->monitor_key, .relays = true
	};
	struct ob_err err = OB_ERR_INIT;

	ob_work_monitor_stop(w);
	if (!plan->config->monitor.listen)
		return;
	/* Sessions outlive a reload. */
	if (!w->has_monitor_key)
		ob_monitor_make_key(w->monitor_key);
	w->has_monitor_key = true;
	if (ob_monitor_new(&conf, &w->monitor, &err) < 0) {
		ob_log(&w->log, OB_LOG_ERROR, "no monitor, the relays go on",
		       OB_KV("error", err.msg));
		return;
	}
	w->monitor_plan = ob_work_plan_ref(plan);
	w->monitor_us = now_us();
	ob_log(&w->log, OB_LOG_INFO, "monitor started",
	       OB_KV("address", ob_monitor_address(w->monitor)));
}

void ob_work_monitor_stop(struct ob_work *w)
{
	ob_monitor_free(w->monitor);
	w->monitor = NULL;
	ob_work_plan_unref(w->monitor_plan);
	w->monitor_plan = NULL;
}

void ob_work_monitor_tick(struct ob_work *w)
{
	struct ob_monitor_relay *relays;
	size_t count = w->set.count;

	if (!w->monitor || now_us() < w->monitor_us)
		return;
	w->monitor_us = now_us() + PERIOD_US;
	relays = calloc(count ? count : 1, sizeof(*relays));
	for (size_t i = 0; relays && i < count; i++) {
		const struct ob_work_relay *entry = &w->set.relays[i];

		relays[i].conf = entry->conf;
		relays[i].running = entry->relay != NULL;
		relays[i].stalled_us = entry->relay ? ob_relay_stalled_us(entry->relay) : 0;
		ob_work_metrics(entry, &relays[i].data);
	}
	if (relays)
		ob_monitor_note(w->monitor, relays, count, w->stopping != OB_STOP_NO);
	free(relays);
}

int64_t ob_work_monitor_next_us(const struct ob_work *w)
{
	return w->monitor ? w->monitor_us : INT64_MAX;
}

#else

void ob_work_monitor_start(struct ob_work *w, struct ob_work_plan *plan)
{
	if (plan->config->monitor.listen)
		ob_log(&w->log, OB_LOG_ERROR, "no monitor, the relays go on",
		       OB_KV("error",
			     "this build has none: install libmicrohttpd-dev and build "
			     "again"));
}

void ob_work_monitor_stop(struct ob_work *w)
{
	(void)w;
}

void ob_work_monitor_tick(struct ob_work *w)
{
	(void)w;
}

int64_t ob_work_monitor_next_us(const struct ob_work *w)
{
	(void)w;
	return INT64_MAX;
}

#endif
