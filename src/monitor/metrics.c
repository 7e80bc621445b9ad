/* SPDX-License-Identifier: MIT */
/*
 * In the text format of Prometheus. Labels name stores, relays and sinks of the configuration and
 * words of ours: nothing that a message holds, so that their number is bounded.
 */
#include "monitor/metrics.h"

#include "monitor/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- lines ----------------------------------------------------------- */

static void add_label(struct ob_buf *out, const char *name, struct ob_str value, bool first)
{
	ob_buf_addf(out, "%s%s=\"", first ? "{" : ",", name);
	for (size_t i = 0; i < value.n; i++) {
		char c = value.p[i];

		if (c == '\n')
			ob_buf_adds(out, "\\n");
		else if (c == '"' || c == '\\')
			ob_buf_addf(out, "\\%c", c);
		else
			ob_buf_addc(out, c);
	}
	ob_buf_addc(out, '"');
}

/* The labels of a relay, and one more (NULL: none); the brace stays open. */
static void add_relay(struct ob_buf *out, const char *store, struct ob_str relay, const char *sink)
{
	add_label(out, "store", ob_str(store), true);
	if (relay.p)
		add_label(out, "relay", relay, false);
	if (sink)
		add_label(out, "sink", ob_str(sink), false);
}

static void add_count(struct ob_buf *out, uint64_t value)
{
	ob_buf_addf(out, "} %" PRIu64 "\n", value);
}

static void add_number(struct ob_buf *out, double value)
{
	ob_buf_addf(out, "} %.6g\n", value);
}

/* ---- counters of relays in this process ------------------------------ */

static uint64_t member(const void *base, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)base + offset, sizeof(value));
	return value;
}

static void write_counter(const struct ob_exposition *e, const struct ob_metric *metric)
{
	for (size_t i = 0; i < e->note_count; i++) {
		const struct ob_monitor_note *n = &e->notes[i];

		ob_buf_adds(e->out, metric->name);
		add_relay(e->out, n->store, ob_str(n->name), n->sink);
		add_count(e->out, member(&n->data, metric->offset));
	}
}

struct kind {
	const char *label;
	size_t offset;
};

static void write_kinds(const struct ob_exposition *e, const struct ob_metric *metric,
			const char *label, const struct kind *kinds, size_t count)
{
	for (size_t i = 0; i < e->note_count; i++) {
		const struct ob_monitor_note *n = &e->notes[i];

		for (size_t k = 0; k < count; k++) {
			ob_buf_adds(e->out, metric->name);
			add_relay(e->out, n->store, ob_str(n->name), n->sink);
			add_label(e->out, label, ob_str(kinds[k].label), false);
			add_count(e->out, member(&n->data, kinds[k].offset));
		}
	}
}

#define DATA(member) offsetof(struct ob_metrics_data, member)

static void write_outcomes(const struct ob_exposition *e, const struct ob_metric *metric)
{
	static const struct kind kinds[] = {
		{ "published", DATA(published) },
		{ "failed", DATA(retries) },
		{ "dead", DATA(dead) },
		{ "returned", DATA(down) },
	};

	write_kinds(e, metric, "outcome", kinds, COUNT(kinds));
}

static void write_sink_errors(const struct ob_exposition *e, const struct ob_metric *metric)
{
	static const struct kind kinds[] = {
		{ "down", DATA(said_down) },
		{ "retry", DATA(said_retry) },
		{ "reject", DATA(said_reject) },
	};

	write_kinds(e, metric, "kind", kinds, COUNT(kinds));
}

/* Only what a worker can find out about messages that it has in memory. */
static void write_waits(const struct ob_exposition *e, const struct ob_metric *metric)
{
	for (size_t i = 0; i < e->note_count; i++) {
		const struct ob_monitor_note *n = &e->notes[i];

		for (int reason = OB_WHY_NO_LEASE; reason < OB_MAY_SEND; reason++) {
			ob_buf_adds(e->out, metric->name);
			add_relay(e->out, n->store, ob_str(n->name), n->sink);
			add_label(e->out, "reason", ob_str(ob_why_name((enum ob_why_reason)reason)),
				  false);
			add_count(e->out, n->data.waits[reason]);
		}
	}
}

static void write_wakeups(const struct ob_exposition *e, const struct ob_metric *metric)
{
	for (size_t i = 0; i < e->note_count; i++) {
		const struct ob_monitor_note *n = &e->notes[i];
		uint64_t polled =
			n->data.fetches > n->data.woken ? n->data.fetches - n->data.woken : 0;

		for (int told = 1; told >= 0; told--) {
			ob_buf_adds(e->out, metric->name);
			add_relay(e->out, n->store, ob_str(n->name), n->sink);
			add_label(e->out, "source", told ? OB_STR("notify") : OB_STR("poll"),
				  false);
			add_count(e->out, told ? n->data.woken : polled);
		}
	}
}

/* ---- histograms ------------------------------------------------------ */

static void add_bucket(const struct ob_exposition *e, const struct ob_metric *metric,
		       const struct ob_monitor_note *n, const char *le, uint64_t count)
{
	ob_buf_addf(e->out, "%s_bucket", metric->name);
	add_relay(e->out, n->store, ob_str(n->name), n->sink);
	add_label(e->out, "le", ob_str(le), false);
	add_count(e->out, count);
}

static void write_histogram(const struct ob_exposition *e, const struct ob_metric *metric,
			    const int64_t *bounds, double unit)
{
	for (size_t i = 0; i < e->note_count; i++) {
		const struct ob_monitor_note *n = &e->notes[i];
		const struct ob_histogram *h =
			(const struct ob_histogram *)(const void *)((const char *)&n->data +
								    metric->offset);
		uint64_t count = 0;
		char le[32];

		for (size_t b = 0; b < OB_HISTOGRAM_BOUNDS; b++) {
			count += h->counts[b];
			(void)snprintf(le, sizeof(le), "%g", (double)bounds[b] / unit);
			add_bucket(e, metric, n, le, count);
		}
		count += h->counts[OB_HISTOGRAM_BOUNDS];
		add_bucket(e, metric, n, "+Inf", count);
		ob_buf_addf(e->out, "%s_sum", metric->name);
		add_relay(e->out, n->store, ob_str(n->name), n->sink);
		ob_buf_addf(e->out, "} %.9g\n", (double)h->sum / unit);
		ob_buf_addf(e->out, "%s_count", metric->name);
		add_relay(e->out, n->store, ob_str(n->name), n->sink);
		add_count(e->out, count);
	}
}

static void write_times(const struct ob_exposition *e, const struct ob_metric *metric)
{
	write_histogram(e, metric, ob_histogram_us, 1e6);
}

static void write_batches(const struct ob_exposition *e, const struct ob_metric *metric)
{
	write_histogram(e, metric, ob_histogram_messages, 1);
}

/* ---- breakers -------------------------------------------------------- */

static void write_up(const struct ob_exposition *e, const struct ob_metric *metric)
{
	for (size_t i = 0; i < e->note_count; i++) {
		const struct ob_monitor_note *n = &e->notes[i];

		ob_buf_adds(e->out, metric->name);
		add_relay(e->out, n->store, ob_str(n->name), n->sink);
		add_count(e->out, n->data.breaker == OB_BREAKER_CLOSED);
	}
}

static void write_breakers(const struct ob_exposition *e, const struct ob_metric *metric)
{
	static const char *const states[] = { "closed", "half_open", "open" };

	for (size_t i = 0; i < e->note_count; i++) {
		const struct ob_monitor_note *n = &e->notes[i];

		for (size_t s = 0; s < COUNT(states); s++) {
			ob_buf_adds(e->out, metric->name);
			add_relay(e->out, n->store, ob_str(n->name), n->sink);
			add_label(e->out, "state", ob_str(states[s]), false);
			add_count(e->out, n->data.breaker == (enum ob_breaker_state)s);
		}
	}
}

static void write_leases(const struct ob_exposition *e, const struct ob_metric *metric)
{
	for (size_t i = 0; i < e->note_count; i++) {
		const struct ob_monitor_note *n = &e->notes[i];

		ob_buf_adds(e->out, metric->name);
		add_relay(e->out, n->store, ob_str(n->name), NULL);
		add_count(e->out, n->data.partitions);
	}
}

/* ---- what was sampled from the databases ----------------------------- */

struct row {
	const struct ob_watch_store *store;
	const struct ob_sight *sight;
	const struct ob_snapshot_row *row;
	const struct ob_sight_reader *more;
};

/* Each reader of each store in turn; a replay is nobody's relay. */
static bool next_row(const struct ob_exposition *e, size_t *store, size_t *at, struct row *ret)
{
	for (; *store < e->store_count; (*store)++, *at = 0) {
		const struct ob_sight *sight = e->stores[*store].sight;

		for (; sight && *at < sight->snapshot.count; (*at)++) {
			const struct ob_snapshot_row *row = &sight->snapshot.rows[*at];

			if (row->reader.temporary)
				continue;
			*ret = (struct row){ &e->stores[*store], sight, row, &sight->readers[*at] };
			(*at)++;
			return true;
		}
	}
	return false;
}

#define EACH_ROW(e, r) for (size_t s_ = 0, i_ = 0; next_row(e, &s_, &i_, &(r));)

static const struct {
	const char *label;
	enum ob_view view;
} waiting[] = {
	{ "due", OB_VIEW_PENDING },   { "delayed", OB_VIEW_DELAYED }, { "failed", OB_VIEW_FAILED },
	{ "parked", OB_VIEW_PARKED }, { "dead", OB_VIEW_DEAD },
};

static void write_waiting(const struct ob_exposition *e, const struct ob_metric *metric,
			  bool capped)
{
	struct row r;

	EACH_ROW(e, r)
	{
		for (size_t w = 0; w < COUNT(waiting); w++) {
			uint64_t n = r.row->stats ? r.row->stats->count[waiting[w].view] : 0;
			bool more = n >= OB_SNAPSHOT_CAP;

			ob_buf_adds(e->out, metric->name);
			add_relay(e->out, r.store->entry->name, r.row->reader.name, NULL);
			add_label(e->out, "state", ob_str(waiting[w].label), false);
			add_count(e->out, capped ? more : more ? OB_SNAPSHOT_CAP - 1 : n);
		}
	}
}

static void write_pending(const struct ob_exposition *e, const struct ob_metric *metric)
{
	write_waiting(e, metric, false);
}

static void write_capped(const struct ob_exposition *e, const struct ob_metric *metric)
{
	write_waiting(e, metric, true);
}

/* A gauge of one number for each reader. */
static void write_rows(const struct ob_exposition *e, const struct ob_metric *metric,
		       double (*value)(const struct row *row))
{
	struct row r;

	EACH_ROW(e, r)
	{
		ob_buf_adds(e->out, metric->name);
		add_relay(e->out, r.store->entry->name, r.row->reader.name, NULL);
		ob_buf_addf(e->out, "} %.15g\n", value(&r));
	}
}

static double age_s(const struct row *r, int64_t since_us)
{
	int64_t age = since_us ? r->sight->snapshot.now_us - since_us : 0;

	return age > 0 ? (double)age / 1e6 : 0;
}

static double oldest_due(const struct row *r)
{
	return age_s(r, r->row->stats ? r->row->stats->oldest_due_us : 0);
}

static double oldest_dead(const struct row *r)
{
	return age_s(r, r->more->oldest_dead_us);
}

static double held_keys(const struct row *r)
{
	return r->row->stats ? (double)r->row->stats->held_keys : 0;
}

static double partitions(const struct row *r)
{
	return (double)r->row->partitions;
}

static double workers(const struct row *r)
{
	return (double)r->row->reader.workers;
}

static double sampled(const struct row *r)
{
	return (double)r->sight->counted_us / 1e6;
}

static double lag(const struct row *r)
{
	return (double)ob_snapshot_lag(r->row);
}

/* Until the first lease of the reader ends, of those that somebody holds. */
static double first_lease(const struct row *r)
{
	int64_t first = 0;

	for (size_t i = 0; i < r->sight->partition_count; i++) {
		const struct ob_partition *p = &r->sight->partitions[i];

		if (p->leased && ob_str_eq(p->reader, r->row->reader.name) &&
		    (!first || p->until_us < first))
			first = p->until_us;
	}
	return first ? (double)(first - r->sight->snapshot.now_us) / 1e6 : 0;
}

#define ROWS(name) \
	static void write_##name(const struct ob_exposition *e, const struct ob_metric *metric) \
	{ \
		write_rows(e, metric, name); \
	}
ROWS(oldest_due)
ROWS(oldest_dead)
ROWS(held_keys)
ROWS(partitions)
ROWS(workers)
ROWS(sampled)
ROWS(lag)
ROWS(first_lease)
#undef ROWS

/* ---- stores ---------------------------------------------------------- */

static void write_store_up(const struct ob_exposition *e, const struct ob_metric *metric)
{
	for (size_t i = 0; i < e->store_count; i++) {
		ob_buf_adds(e->out, metric->name);
		add_relay(e->out, e->stores[i].entry->name, OB_STR_NULL, NULL);
		add_count(e->out, e->stores[i].ok);
	}
}

static void write_skew(const struct ob_exposition *e, const struct ob_metric *metric)
{
	for (size_t i = 0; i < e->store_count; i++) {
		const struct ob_sight *sight = e->stores[i].sight;

		ob_buf_adds(e->out, metric->name);
		add_relay(e->out, e->stores[i].entry->name, OB_STR_NULL, NULL);
		add_number(e->out, sight ? (double)sight->skew_us / 1e6 : 0);
	}
}

static void write_transaction(const struct ob_exposition *e, const struct ob_metric *metric)
{
	for (size_t i = 0; i < e->store_count; i++) {
		const struct ob_sight *sight = e->stores[i].sight;
		int64_t age = sight && sight->oldest_transaction_us > 0
				      ? sight->oldest_transaction_us
				      : 0;

		ob_buf_adds(e->out, metric->name);
		add_relay(e->out, e->stores[i].entry->name, OB_STR_NULL, NULL);
		add_number(e->out, (double)age / 1e6);
	}
}

/* ---- this process ---------------------------------------------------- */

static void write_verbs(const struct ob_exposition *e, const struct ob_metric *metric)
{
	for (int verb = 0; verb < 3; verb++) {
		static const char *const names[] = { "retry", "skip", "discard" };

		for (size_t i = 0; i < e->store_count; i++) {
			ob_buf_adds(e->out, metric->name);
			add_relay(e->out, e->stores[i].entry->name, OB_STR_NULL, NULL);
			add_label(e->out, "verb", ob_str(names[verb]), false);
			/* What was done is counted for the process, not for each store. */
			add_count(e->out, e->monitor && i == 0 ? e->monitor->verbs[verb] : 0);
		}
	}
}

static void write_requests(const struct ob_exposition *e, const struct ob_metric *metric)
{
	char code[16];

	for (unsigned i = 100; e->monitor && i < OB_STATUS_CODES; i++) {
		if (!e->monitor->codes[i] && i != 200)
			continue;
		(void)snprintf(code, sizeof(code), "%u", i);
		ob_buf_adds(e->out, metric->name);
		add_label(e->out, "code", ob_str(code), true);
		add_count(e->out, e->monitor->codes[i]);
	}
}

static void write_clients(const struct ob_exposition *e, const struct ob_metric *metric)
{
	if (e->monitor)
		ob_buf_addf(e->out, "%s %u\n", metric->name, e->monitor->sse_clients);
}

static void write_wrong(const struct ob_exposition *e, const struct ob_metric *metric)
{
	if (e->monitor)
		ob_buf_addf(e->out, "%s %" PRIu64 "\n", metric->name, e->monitor->throttle.wrong);
}

static void write_build(const struct ob_exposition *e, const struct ob_metric *metric)
{
	ob_buf_adds(e->out, metric->name);
	add_label(e->out, "version", ob_str(OUTBOX_VERSION), true);
	add_label(e->out, "revision", OB_STR(""), false);
	add_count(e->out, 1);
}

static void write_cpu(const struct ob_exposition *e, const struct ob_metric *metric)
{
	struct rusage usage = { 0 };

	(void)getrusage(RUSAGE_SELF, &usage);
	ob_buf_addf(e->out, "%s %.6f\n", metric->name,
		    (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			    (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
}

static void write_memory(const struct ob_exposition *e, const struct ob_metric *metric)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long total = 0, resident = 0;

	if (file && fscanf(file, "%lu %lu", &total, &resident) == 2)
		ob_buf_addf(e->out, "%s %lu\n", metric->name,
			    resident * (unsigned long)sysconf(_SC_PAGESIZE));
	if (file)
		(void)fclose(file);
}

/* ---- the table ------------------------------------------------------- */

#define COUNTER(name, help, write, member) \
	{ \
		name, help, OB_METRIC_COUNTER, write, DATA(member) \
	}
#define GAUGE(name, help, write) \
	{ \
		name, help, OB_METRIC_GAUGE, write, 0 \
	}
#define TIMES(name, help, member) \
	{ \
		name, help, OB_METRIC_HISTOGRAM, write_times, DATA(member) \
	}

const struct ob_metric ob_metrics_list[] = {
	COUNTER("outbox_messages_total",
		"Outcomes of messages; returned: given back without an attempt.", write_outcomes,
		published),
	COUNTER("outbox_message_bytes_total", "Payload that was published.", write_counter, bytes),
	TIMES("outbox_delivery_seconds", "From insert to confirmation.", times.delivery),
	TIMES("outbox_sink_seconds", "Time of a message at the sink.", times.sink),
	TIMES("outbox_fetch_seconds", "Time of a read.", times.fetch),
	TIMES("outbox_settle_seconds", "Time of recording outcomes.", times.settle),
	{ "outbox_batch_messages", "Messages of a read.", OB_METRIC_HISTOGRAM, write_batches,
	  DATA(times.batch) },
	GAUGE("outbox_pending_messages", "What waits, counted up to 10,000.", write_pending),
	GAUGE("outbox_pending_messages_capped", "1 where counting stopped.", write_capped),
	GAUGE("outbox_oldest_due_seconds", "Age of the oldest message that is due.",
	      write_oldest_due),
	GAUGE("outbox_oldest_dead_seconds", "Time since the oldest dead message died.",
	      write_oldest_dead),
	GAUGE("outbox_held_keys", "Keys that a failed, delayed or dead message holds.",
	      write_held_keys),
	GAUGE("outbox_waiting_messages",
	      "Messages in memory that are not sent yet, by what they wait for.", write_waits),
	GAUGE("outbox_lag_messages", "Numbers of the log that the reader has still to pass.",
	      write_lag),
	GAUGE("outbox_sink_up", "1 while the circuit breaker is closed.", write_up),
	GAUGE("outbox_breaker_state", "1 for the state of the circuit breaker.", write_breakers),
	COUNTER("outbox_sink_errors_total", "What the sink answered.", write_sink_errors, failed),
	COUNTER("outbox_retries_total", "Attempts that failed and will be repeated.", write_counter,
		retries),
	COUNTER("outbox_fencings_total", "Outcomes that another worker's takeover refused.",
		write_counter, lost),
	COUNTER("outbox_wakeups_total", "What made the relay read.", write_wakeups, woken),
	GAUGE("outbox_leases", "Partitions that this process owns.", write_leases),
	GAUGE("outbox_partitions", "Partitions in all.", write_partitions),
	GAUGE("outbox_workers", "Workers that are alive, of all processes.", write_workers),
	GAUGE("outbox_lease_seconds", "Time until the first lease of the relay ends.",
	      write_first_lease),
	GAUGE("outbox_sampled_timestamp_seconds",
	      "When the gauges of the relay were read from the database.", write_sampled),
	GAUGE("outbox_store_up", "1 while the store answers.", write_store_up),
	GAUGE("outbox_store_clock_skew_seconds",
	      "How far the clock of the database is ahead of this host's.", write_skew),
	GAUGE("outbox_store_oldest_transaction_seconds", "Age of the oldest open transaction.",
	      write_transaction),
	COUNTER("outbox_cleanup_deleted_total", "Rows that retention removed.", write_counter,
		cleaned),
	COUNTER("outbox_verbs_total", "Messages that operators changed through the monitor.",
		write_verbs, failed),
	COUNTER("outbox_monitor_requests_total", "Requests answered.", write_requests, failed),
	GAUGE("outbox_monitor_sse_clients", "Browsers that listen.", write_clients),
	COUNTER("outbox_monitor_wrong_tokens_total", "Tokens that were refused.", write_wrong,
		failed),
	GAUGE("outbox_build_info", "1; the labels say which program this is.", write_build),
	COUNTER("process_cpu_seconds_total", "Processor time of this process.", write_cpu, failed),
	GAUGE("process_resident_memory_bytes", "Memory of this process.", write_memory),
	{ .name = NULL },
};

void ob_exposition_write(const struct ob_exposition *e)
{
	static const char *const types[] = { "counter", "gauge", "histogram" };

	for (const struct ob_metric *metric = ob_metrics_list; metric->name; metric++) {
		ob_buf_addf(e->out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help,
			    metric->name, types[metric->type]);
		metric->write(e, metric);
	}
}

void ob_metrics_text(struct ob_monitor *m, struct ob_buf *out)
{
	size_t count = ob_watch_count(m->watch);
	struct ob_watch_store *stores = calloc(count ? count : 1, sizeof(*stores));

	if (!stores)
		return;
	for (size_t i = 0; i < count; i++)
		ob_watch_read(m->watch, i, &stores[i]);
	(void)pthread_mutex_lock(&m->lock);
	const struct ob_exposition e = { .monitor = m,
					 .config = m->config,
					 .stores = stores,
					 .store_count = count,
					 .notes = m->notes,
					 .note_count = m->note_count,
					 .out = out };
	ob_exposition_write(&e);
	(void)pthread_mutex_unlock(&m->lock);
	for (size_t i = 0; i < count; i++)
		ob_sight_unref(stores[i].sight);
	free(stores);
}

static int ask_store(const struct ob_config_store *entry, struct ob_watch_store *shown,
		     struct ob_err *err)
{
	struct ob_store_conf conf = entry->conf;
	struct ob_store *store = NULL;

	shown->entry = entry;
	conf.read_limit_ms = OB_POOL_LIMIT_MS;
	int r = ob_store_connect(&conf, &store, err);
	if (r == 0)
		r = ob_watch_once(store, &shown->sight, err);
	shown->ok = r == 0;
	ob_store_free(store);
	return r < 0 ? ob_err_context(err, "store %s", entry->name) : 0;
}

int ob_monitor_print_metrics(const struct ob_monitor_conf *conf, struct ob_buf *out,
			     struct ob_err *err)
{
	const struct ob_config *config = conf->config;
	struct ob_watch_store *stores = calloc(config->store_count + 1, sizeof(*stores));
	size_t count = 0;
	int r = 0;

	if (!stores)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	for (size_t i = 0; r == 0 && i < config->store_count; i++) {
		if (!conf->store || conf->store == &config->stores[i])
			r = ask_store(&config->stores[i], &stores[count++], err);
	}
	const struct ob_exposition e = {
		.config = config, .stores = stores, .store_count = count, .out = out
	};
	if (r == 0)
		ob_exposition_write(&e);
	for (size_t i = 0; i < count; i++)
		ob_sight_unref(stores[i].sight);
	free(stores);
	return r;
}
