/* SPDX-License-Identifier: MIT */
/* Made from the last sample: no request for it reaches a database. */
#include "monitor/state.h"

#include "base/count.h"
#include "base/when.h"
#include "monitor/jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	STORES_MAX = 64,
	ERRORS_MAX = 20,
	OLD_DUE_US = 300000000, /* as the alert OutboxNotDelivering has it */
	OLD_DEAD_S = 3600,
	SKEW_US = 2000000,
	TRANSACTION_US = 300000000,
};

struct writing {
	struct ob_monitor *m;
	struct ob_jout *j;
	struct ob_watch_store stores[STORES_MAX];
	size_t count, errors;
};

/* ---- pieces ---------------------------------------------------------- */

void ob_jout_null(struct ob_jout *j, const char *key)
{
	ob_jout_raw(j, key, OB_STR("null"));
}

void ob_jout_number(struct ob_jout *j, const char *key, double value)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%.3f", value);
	ob_jout_raw(j, key, ob_str(text));
}

void ob_jout_us(struct ob_jout *j, const char *key, int64_t us)
{
	if (us)
		ob_jout_int(j, key, us);
	else
		ob_jout_null(j, key);
}

static void count_json(struct ob_jout *j, const char *key, uint64_t n)
{
	ob_jout_begin(j, key, '{');
	ob_jout_int(j, "n", n < OB_SNAPSHOT_CAP ? (int64_t)n : OB_SNAPSHOT_CAP - 1);
	ob_jout_bool(j, "capped", n >= OB_SNAPSHOT_CAP);
	ob_jout_end(j, '}');
}

const struct ob_config_relay *ob_state_relay(const struct ob_config *config,
					     const struct ob_config_store *store,
					     struct ob_str reader)
{
	for (size_t i = 0; i < config->relay_count; i++) {
		if (config->relays[i].store == store &&
		    ob_str_eq(ob_str(config->relays[i].name), reader))
			return &config->relays[i];
	}
	return NULL;
}

/* ---- sinks ----------------------------------------------------------- */

/* By enum ob_breaker_state: as a report has it, and as it is told. */
static const char *const breakers[] = { "closed", "half_open", "open" };
static const char *const sink_states[] = { "ok", "half_open", "open" };

/* What the relays of this process know; others tell theirs with their heartbeats. */
static const struct ob_monitor_note *find_note(const struct ob_monitor *m, const char *store,
					       struct ob_str reader)
{
	for (size_t i = 0; i < m->note_count; i++) {
		if (strcmp(m->notes[i].store, store) == 0 &&
		    ob_str_eq(ob_str(m->notes[i].name), reader))
			return &m->notes[i];
	}
	return NULL;
}

static struct ob_worker_report report_of_note(const struct ob_monitor_note *note)
{
	const struct ob_metrics_data *d = &note->data;
	const struct ob_last_error *last = &d->last[OB_ERROR_OF_SINK];
	struct ob_worker_report r = { .breaker_since_us = d->breaker_since_us,
				      .probe_us = d->probe_us,
				      .in_flight = d->in_flight,
				      .rate = -1 };

	(void)snprintf(r.breaker, sizeof(r.breaker), "%s", breakers[d->breaker]);
	(void)snprintf(r.breaker_why, sizeof(r.breaker_why), "%s", d->breaker_why);
	r.sink_error.at_us = last->at_us;
	r.sink_error.times = last->times;
	(void)snprintf(r.sink_error.text, sizeof(r.sink_error.text), "%s", last->text);
	return r;
}

static int severity(const struct ob_worker_report *r)
{
	for (int i = 0; i < 3; i++) {
		if (strcmp(r->breaker, breakers[i]) == 0)
			return i;
	}
	return -1;
}

/* Of all workers of a reader: the worst breaker, the last error, what is in flight in sum. */
static bool report_of_reader(const struct writing *w, const struct ob_watch_store *store,
			     struct ob_str reader, struct ob_worker_report *ret)
{
	const struct ob_monitor_note *note = find_note(w->m, store->entry->name, reader);
	const struct ob_snapshot *s = &store->sight->snapshot;
	bool known = false;

	*ret = (struct ob_worker_report){ 0 };
	for (size_t i = 0; i < s->worker_count; i++) {
		struct ob_worker_report r;

		if (!ob_str_eq(s->workers[i].reader, reader) ||
		    !ob_worker_report_read(&r, s->workers[i].state))
			continue;
		uint64_t in_flight = ret->in_flight + r.in_flight;
		double rate = ret->rate + r.rate;
		struct ob_worker_error last =
			r.sink_error.at_us > ret->sink_error.at_us ? r.sink_error : ret->sink_error;

		if (!known || severity(&r) > severity(ret))
			*ret = r;
		ret->in_flight = in_flight;
		ret->rate = rate;
		ret->sink_error = last;
		known = true;
	}
	if (note && note->running) {
		struct ob_worker_report own = report_of_note(note);

		/* Of our own we know more than their last heartbeat says. */
		if (!known || severity(&own) > severity(ret))
			*ret = own;
		known = true;
	}
	return known;
}

static void sink_json(struct ob_jout *j, const struct ob_worker_report *r, bool known)
{
	int state = known ? severity(r) : -1;

	ob_jout_begin(j, "sink_state", '{');
	ob_jout_text(j, "state", state < 0 ? OB_STR("unknown") : ob_str(sink_states[state]));
	ob_jout_us(j, "since_us", known ? r->breaker_since_us : 0);
	ob_jout_text(j, "why", state > 0 ? ob_str(r->breaker_why) : OB_STR_NULL);
	ob_jout_us(j, "next_probe_us", state > 0 ? r->probe_us : 0);
	ob_jout_int(j, "in_flight", known ? (int64_t)r->in_flight : 0);
	ob_jout_text(j, "last_error",
		     known && r->sink_error.at_us ? ob_str(r->sink_error.text) : OB_STR_NULL);
	ob_jout_us(j, "last_error_us", known ? r->sink_error.at_us : 0);
	ob_jout_end(j, '}');
}

/* ---- readers and workers --------------------------------------------- */

static void counts_json(struct ob_jout *j, const struct ob_stats *stats)
{
	static const enum ob_view shown[] = { OB_VIEW_PENDING, OB_VIEW_DELAYED, OB_VIEW_FAILED,
					      OB_VIEW_PARKED, OB_VIEW_DEAD };

	ob_jout_begin(j, "counts", '{');
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		count_json(j, ob_view_name(shown[i]), stats ? stats->count[shown[i]] : 0);
	ob_jout_end(j, '}');
	count_json(j, "held_keys", stats ? stats->held_keys : 0);
}

static void reader_json(struct writing *w, const struct ob_watch_store *store, size_t index)
{
	const struct ob_snapshot_row *row = &store->sight->snapshot.rows[index];
	const struct ob_sight_reader *more = &store->sight->readers[index];
	const struct ob_config_relay *relay =
		ob_state_relay(w->m->config, store->entry, row->reader.name);
	struct ob_worker_report report;
	bool known = report_of_reader(w, store, row->reader.name, &report);
	double rate = known && report.rate > 0 ? report.rate : more->rate;
	struct ob_jout *j = w->j;

	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "store", ob_str(store->entry->name));
	ob_jout_text(j, "reader", row->reader.name);
	ob_jout_text(j, "target", row->reader.target);
	ob_jout_text(j, "sink", relay ? ob_str(relay->sink->name) : OB_STR_NULL);
	ob_jout_text(j, "sink_type", relay ? ob_str(relay->sink->ops->name) : OB_STR_NULL);
	ob_jout_bool(j, "temporary", row->reader.temporary);
	counts_json(j, row->stats);
	ob_jout_us(j, "oldest_due_us", row->stats ? row->stats->oldest_due_us : 0);
	ob_jout_us(j, "oldest_dead_us", more->oldest_dead_us);
	if (rate >= 0)
		ob_jout_number(j, "rate", rate);
	else
		ob_jout_null(j, "rate");
	ob_jout_int(j, "published_hour", (int64_t)more->published_hour);
	ob_jout_int(j, "failed_hour", (int64_t)more->failed_hour);
	ob_jout_int(j, "lag", ob_snapshot_lag(row));
	ob_jout_int(j, "leased", (int64_t)row->leased);
	ob_jout_int(j, "partitions", (int64_t)row->partitions);
	ob_jout_int(j, "workers", (int64_t)row->reader.workers);
	ob_jout_bool(j, "left", ob_snapshot_is_left(row));
	sink_json(j, &report, known);
	ob_jout_end(j, '}');
}

static int64_t owned_by(const struct ob_sight *sight, const struct ob_uuid *id)
{
	int64_t n = 0;

	for (size_t i = 0; i < sight->partition_count; i++)
		n += sight->partitions[i].leased && ob_uuid_eq(&sight->partitions[i].owner, id);
	return n;
}

static void worker_json(struct writing *w, const struct ob_watch_store *store,
			const struct ob_worker *worker)
{
	const struct ob_sight *sight = store->sight;
	struct ob_worker_report report;
	bool known = ob_worker_report_read(&report, worker->state);
	char id[OB_UUID_TEXT_SIZE];
	struct ob_jout *j = w->j;

	ob_uuid_format(&worker->id, id);
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "store", ob_str(store->entry->name));
	ob_jout_text(j, "reader", worker->reader);
	ob_jout_text(j, "id", ob_str(id));
	ob_jout_text(j, "host", worker->hostname);
	ob_jout_int(j, "pid", worker->pid);
	ob_jout_text(j, "version",
		     known && report.version[0] ? ob_str(report.version) : OB_STR_NULL);
	ob_jout_us(j, "since_us", worker->started_at_us);
	ob_jout_us(j, "beat_us", worker->heartbeat_until_us);
	ob_jout_bool(j, "alive", worker->heartbeat_until_us > sight->snapshot.now_us);
	ob_jout_int(j, "partitions", owned_by(sight, &worker->id));
	if (known)
		ob_jout_number(j, "rate", report.rate);
	else
		ob_jout_null(j, "rate");
	ob_jout_int(j, "in_flight", known ? (int64_t)report.in_flight : 0);
	ob_jout_int(j, "published", (int64_t)worker->published);
	ob_jout_int(j, "failed", (int64_t)worker->failed);
	sink_json(j, &report, known);
	ob_jout_end(j, '}');
}

static void store_json(struct writing *w, const struct ob_watch_store *store)
{
	const struct ob_sight *sight = store->sight;
	struct ob_jout *j = w->j;

	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "name", ob_str(store->entry->name));
	ob_jout_text(j, "describe", sight ? ob_buf_view(&sight->snapshot.store) : OB_STR_NULL);
	ob_jout_bool(j, "ok", store->ok);
	ob_jout_text(j, "error", store->ok ? OB_STR_NULL : ob_str(store->error));
	ob_jout_us(j, "sampled_us", sight ? sight->counted_us : 0);
	if (sight)
		ob_jout_int(j, "clock_skew_us", sight->skew_us);
	else
		ob_jout_null(j, "clock_skew_us");
	if (sight && sight->oldest_transaction_us >= 0)
		ob_jout_int(j, "oldest_transaction_us", sight->oldest_transaction_us);
	else
		ob_jout_null(j, "oldest_transaction_us");
	ob_jout_null(j, "partitioned");
	ob_jout_end(j, '}');
}

/* ---- alerts ---------------------------------------------------------- */

static void alert(struct ob_jout *j, bool error, const char *href, struct ob_buf *text)
{
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "level", error ? OB_STR("error") : OB_STR("warning"));
	ob_jout_text(j, "text", ob_buf_view(text));
	ob_jout_text(j, "href", ob_str(href));
	ob_jout_end(j, '}');
	ob_buf_clear(text);
}

static void reader_alerts(struct writing *w, const struct ob_watch_store *store, size_t index,
			  struct ob_buf *text)
{
	const struct ob_snapshot *snap = &store->sight->snapshot;
	const struct ob_snapshot_row *row = &snap->rows[index];
	const struct ob_sight_reader *more = &store->sight->readers[index];
	struct ob_worker_report report;
	bool known = report_of_reader(w, store, row->reader.name, &report);
	int64_t due = row->stats ? row->stats->oldest_due_us : 0;
	int name_n = (int)row->reader.name.n;
	char age[OB_WHEN_SIZE];

	if (known && severity(&report) == OB_BREAKER_OPEN) {
		ob_when_age(ob_clock_real_us(&ob_clock_system) - report.breaker_since_us, age);
		ob_buf_addf(text,
			    "the sink of relay %.*s is down since %s: messages wait, nothing is "
			    "lost",
			    name_n, row->reader.name.p, age);
		alert(w->j, true, "relays", text);
	}
	if (due && snap->now_us - due > OLD_DUE_US) {
		ob_when_age(snap->now_us - due, age);
		ob_buf_addf(text, "the oldest message of relay %.*s has been due for %s", name_n,
			    row->reader.name.p, age);
		alert(w->j, true, "messages?state=pending", text);
	}
	if (row->reader.workers == 0 && !row->reader.temporary &&
	    ob_state_relay(w->m->config, store->entry, row->reader.name)) {
		ob_buf_addf(text, "nobody runs relay %.*s", name_n, row->reader.name.p);
		alert(w->j, true, "relays", text);
	} else if (ob_snapshot_is_left(row)) {
		ob_buf_addf(text, "nobody runs reader %.*s, and retention keeps rows for it",
			    name_n, row->reader.name.p);
		alert(w->j, false, "relays", text);
	}
	if (more->oldest_dead_us && row->stats && row->stats->held_keys &&
	    snap->now_us - more->oldest_dead_us > OLD_DEAD_S * INT64_C(1000000)) {
		ob_when_age(snap->now_us - more->oldest_dead_us, age);
		ob_buf_addf(text,
			    "keys of relay %.*s are held; its oldest dead message is dead for %s",
			    name_n, row->reader.name.p, age);
		alert(w->j, false, "keys", text);
	}
}

static void store_alerts(struct writing *w, const struct ob_watch_store *store, struct ob_buf *text)
{
	const struct ob_sight *sight = store->sight;

	if (!store->ok) {
		ob_buf_addf(text, "store %s does not answer: %s", store->entry->name, store->error);
		alert(w->j, true, "doctor", text);
	}
	if (!sight)
		return;
	if (llabs(sight->skew_us) > SKEW_US) {
		ob_buf_addf(text, "the clocks of this host and of store %s differ by %.1f s",
			    store->entry->name, (double)sight->skew_us / 1e6);
		alert(w->j, false, "doctor", text);
	}
	if (sight->oldest_transaction_us > TRANSACTION_US) {
		ob_buf_addf(text, "a transaction in store %s has been open for %" PRId64 " s",
			    store->entry->name, sight->oldest_transaction_us / 1000000);
		alert(w->j, false, "doctor", text);
	}
	for (size_t i = 0; i < sight->snapshot.count; i++)
		reader_alerts(w, store, i, text);
}

/* ---- errors ---------------------------------------------------------- */

static void error_json(struct writing *w, const char *store, struct ob_str reader, const char *kind,
		       const struct ob_worker_error *e)
{
	if (!e->at_us || w->errors++ >= ERRORS_MAX)
		return;
	ob_jout_begin(w->j, NULL, '{');
	ob_jout_text(w->j, "store", ob_str(store));
	ob_jout_text(w->j, "reader", reader);
	ob_jout_us(w->j, "at_us", e->at_us);
	ob_jout_text(w->j, "kind", ob_str(kind));
	ob_jout_text(w->j, "text", ob_str(e->text));
	ob_jout_int(w->j, "count", e->times);
	ob_jout_end(w->j, '}');
}

/* The last error of each worker about its sink, and about its store. */
static void errors_json(struct writing *w)
{
	ob_jout_begin(w->j, "errors", '[');
	for (size_t i = 0; i < w->count; i++) {
		const struct ob_sight *sight = w->stores[i].sight;

		for (size_t k = 0; sight && k < sight->snapshot.worker_count; k++) {
			const struct ob_worker *worker = &sight->snapshot.workers[k];
			const char *store = w->stores[i].entry->name;
			struct ob_worker_report r;

			if (!ob_worker_report_read(&r, worker->state))
				continue;
			error_json(w, store, worker->reader, "sink", &r.sink_error);
			error_json(w, store, worker->reader, "store", &r.store_error);
		}
	}
	ob_jout_end(w->j, ']');
}

/* ---- the whole ------------------------------------------------------- */

static void head_json(struct writing *w, enum ob_role role)
{
	static const char *const payloads[] = { "shown", "masked", "hidden" };
	const struct ob_config_monitor *conf = w->m->conf;
	int64_t sampled = 0;
	struct ob_jout *j = w->j;

	for (size_t i = 0; i < w->count; i++) {
		const struct ob_sight *sight = w->stores[i].sight;

		if (sight && (!sampled || sight->counted_us < sampled))
			sampled = sight->counted_us;
	}
	ob_jout_text(j, "version", ob_str(OUTBOX_VERSION));
	ob_jout_text(j, "title", ob_str(conf->title));
	ob_jout_text(j, "environment", ob_str(conf->environment));
	ob_jout_text(j, "role", ob_str(ob_role_name(role)));
	ob_jout_text(
		j, "payloads",
		ob_str(payloads[conf->payloads[role == OB_ROLE_OPERATOR ? OB_MONITOR_OPERATOR
									: OB_MONITOR_VIEWER]]));
	ob_jout_int(j, "now_us", ob_clock_real_us(&ob_clock_system));
	ob_jout_us(j, "sampled_us", sampled);
}

static void lists_json(struct writing *w)
{
	struct ob_buf text = OB_BUF_INIT(2048);
	struct ob_jout *j = w->j;

	ob_jout_begin(j, "stores", '[');
	for (size_t i = 0; i < w->count; i++)
		store_json(w, &w->stores[i]);
	ob_jout_end(j, ']');
	ob_jout_begin(j, "readers", '[');
	for (size_t i = 0; i < w->count; i++) {
		for (size_t r = 0; w->stores[i].sight && r < w->stores[i].sight->snapshot.count;
		     r++)
			reader_json(w, &w->stores[i], r);
	}
	ob_jout_end(j, ']');
	ob_jout_begin(j, "workers", '[');
	for (size_t i = 0; i < w->count; i++) {
		const struct ob_sight *sight = w->stores[i].sight;

		for (size_t k = 0; sight && k < sight->snapshot.worker_count; k++)
			worker_json(w, &w->stores[i], &sight->snapshot.workers[k]);
	}
	ob_jout_end(j, ']');
	ob_jout_begin(j, "alerts", '[');
	for (size_t i = 0; i < w->count; i++)
		store_alerts(w, &w->stores[i], &text);
	ob_jout_end(j, ']');
	ob_buf_done(&text);
}

void ob_state_json(struct ob_jout *j, struct ob_monitor *m, enum ob_role role)
{
	struct writing w = { .m = m, .j = j };

	w.count = ob_watch_count(m->watch) < STORES_MAX ? ob_watch_count(m->watch) : STORES_MAX;
	for (size_t i = 0; i < w.count; i++)
		ob_watch_read(m->watch, i, &w.stores[i]);
	ob_jout_begin(j, NULL, '{');
	head_json(&w, role);
	(void)pthread_mutex_lock(&m->lock);
	lists_json(&w);
	errors_json(&w);
	(void)pthread_mutex_unlock(&m->lock);
	ob_jout_begin(j, "jobs", '[');
	ob_jobs_json(m->jobs, j);
	ob_jout_end(j, ']');
	ob_jout_end(j, '}');
	for (size_t i = 0; i < w.count; i++)
		ob_sight_unref(w.stores[i].sight);
}
