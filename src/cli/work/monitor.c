/* SPDX-License-Identifier: MIT */
/* The web monitor inside outbox work: started, told how the relays are, and never in their way. */
#include "cli/work/work.h"
#include "config.h"

#if HAVE_MONITOR
#include "monitor/monitor.h"
#endif

void ob_work_monitor_start(struct ob_work *w, struct ob_work_plan *plan)
{
	ob_work_monitor_stop(w);
	ob_inside_start(&w->inside, plan->config, NULL, &w->log);
	if (w->inside.monitor)
		w->monitor_plan = ob_work_plan_ref(plan);
}

void ob_work_monitor_stop(struct ob_work *w)
{
	ob_inside_stop(&w->inside);
	ob_work_plan_unref(w->monitor_plan);
	w->monitor_plan = NULL;
}

#if HAVE_MONITOR
void ob_work_monitor_tick(struct ob_work *w)
{
	struct ob_monitor_relay *relays;
	size_t count = w->set.count;

	if (!ob_inside_is_due(&w->inside))
		return;
	relays = calloc(count ? count : 1, sizeof(*relays));
	for (size_t i = 0; relays && i < count; i++) {
		const struct ob_work_relay *entry = &w->set.relays[i];

		relays[i].conf = entry->conf;
		relays[i].running = entry->relay != NULL;
		relays[i].stalled_us = entry->relay ? ob_relay_stalled_us(entry->relay) : 0;
		ob_work_metrics(entry, &relays[i].data);
	}
	if (relays)
		ob_inside_tell(&w->inside, relays, count, w->stopping != OB_STOP_NO);
	free(relays);
}
#else
void ob_work_monitor_tick(struct ob_work *w)
{
	(void)w;
}
#endif

int64_t ob_work_monitor_next_us(const struct ob_work *w)
{
	return ob_inside_next_us(&w->inside);
}
