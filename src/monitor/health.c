/* SPDX-License-Identifier: MIT */
/*
 * Health from memory. Alive says nothing of databases and brokers: a probe that fails with them
 * would turn one outage into two. Ready says what is degraded, and stays ready.
 */
#include "monitor/impl.h"

#include <inttypes.h>

unsigned ob_health_live(struct ob_monitor *m, struct ob_buf *out)
{
	int64_t now = ob_clock_boot_us(&ob_clock_system);
	unsigned status = 200;

	(void)pthread_mutex_lock(&m->lock);
	if (m->has_relays && now - m->noted_us > OB_STALLED_US) {
		ob_buf_addf(out, "stuck: the main loop has not turned for %" PRId64 " s\n",
			    (now - m->noted_us) / 1000000);
		status = 503;
	}
	for (size_t i = 0; i < m->note_count; i++) {
		if (m->notes[i].stalled_us <= OB_STALLED_US)
			continue;
		ob_buf_addf(out, "stuck: a worker of relay %s has not stepped for %" PRId64 " s\n",
			    m->notes[i].name, m->notes[i].stalled_us / 1000000);
		status = 503;
	}
	(void)pthread_mutex_unlock(&m->lock);
	if (status == 200)
		ob_buf_adds(out, "ok\n");
	return status;
}

/* The consumer of this process, as it stands in the database. */
static bool add_consumer(const struct ob_monitor *m, const struct ob_sight *sight,
			 struct ob_buf *out)
{
	const struct ob_consumers *list =
		sight && sight->consumers ? &sight->consumers->list : NULL;

	for (size_t i = 0; m->consumer && list && i < list->count; i++) {
		const struct ob_consumer_view *view = &list->views[i];

		if (!ob_str_eq(view->row.name, ob_str(m->consumer)) || !ob_consumer_is_bad(view))
			continue;
		ob_buf_addf(out, "degraded: consumer %s: ", m->consumer);
		ob_consumer_trouble_text(view, out);
		ob_buf_addc(out, '\n');
		return true;
	}
	return false;
}

/* Each part that does not work as it should, in a line. */
static bool add_degraded(struct ob_monitor *m, struct ob_buf *out)
{
	bool any = false;

	for (size_t i = 0; i < ob_watch_count(m->watch); i++) {
		struct ob_watch_store store;

		ob_watch_read(m->watch, i, &store);
		if (!store.ok) {
			ob_buf_addf(out, "degraded: store %s does not answer\n", store.entry->name);
			any = true;
		}
		any |= add_consumer(m, store.sight, out);
		ob_sight_unref(store.sight);
	}
	(void)pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->note_count; i++) {
		const struct ob_monitor_note *note = &m->notes[i];

		if (note->data.breaker == OB_BREAKER_CLOSED)
			continue;
		ob_buf_addf(out, "degraded: sink %s of relay %s is down\n", note->sink, note->name);
		any = true;
	}
	(void)pthread_mutex_unlock(&m->lock);
	return any;
}

static bool knows_schema(struct ob_monitor *m)
{
	bool any = ob_watch_count(m->watch) == 0;

	for (size_t i = 0; i < ob_watch_count(m->watch); i++) {
		struct ob_watch_store store;

		ob_watch_read(m->watch, i, &store);
		any = any || store.sight;
		ob_sight_unref(store.sight);
	}
	return any;
}

unsigned ob_health_started(struct ob_monitor *m, struct ob_buf *out)
{
	(void)pthread_mutex_lock(&m->lock);
	bool started = !m->has_relays || m->noted;
	(void)pthread_mutex_unlock(&m->lock);
	if (started)
		started = knows_schema(m);
	ob_buf_adds(out, started ? "ok\n" : "starting: no store has answered yet\n");
	return started ? 200 : 503;
}

unsigned ob_health_ready(struct ob_monitor *m, struct ob_buf *out)
{
	(void)pthread_mutex_lock(&m->lock);
	bool stopping = m->stopping;
	(void)pthread_mutex_unlock(&m->lock);
	if (stopping) {
		ob_buf_adds(out, "stopping\n");
		return 503;
	}
	unsigned status = ob_health_started(m, out);
	if (status != 200)
		return status;
	ob_buf_clear(out);
	if (!add_degraded(m, out))
		ob_buf_adds(out, "ok\n");
	return 200;
}
