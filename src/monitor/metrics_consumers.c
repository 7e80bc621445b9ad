/* SPDX-License-Identifier: MIT */
/*
 * Metrics of consumers, from what their processes told with the last renewal of their lease. What
 * is not known yet has no series: an alert on its absence is better than a wrong zero.
 */
#include "monitor/metrics.h"

#include <math.h>

struct at {
	const char *store;
	const struct ob_consumer_view *view;
};

/* Each consumer of each store in turn. */
static bool next_view(const struct ob_exposition *e, size_t *store, size_t *i, struct at *ret)
{
	for (; *store < e->store_count; (*store)++, *i = 0) {
		const struct ob_sight *sight = e->stores[*store].sight;

		if (!sight || !sight->consumers || *i >= sight->consumers->list.count)
			continue;
		*ret = (struct at){ e->stores[*store].entry->name,
				    &sight->consumers->list.views[*i] };
		(*i)++;
		return true;
	}
	return false;
}

#define EACH_VIEW(e, at) for (size_t s_ = 0, i_ = 0; next_view(e, &s_, &i_, &(at));)

static void write_number(const struct ob_exposition *e, const struct ob_metric *metric,
			 const struct at *at, const char *label, const char *word, double number)
{
	if (isnan(number))
		return;
	ob_buf_adds(e->out, metric->name);
	ob_metric_label(e->out, "store", ob_str(at->store), true);
	ob_metric_label(e->out, "consumer", at->view->row.name, false);
	if (label)
		ob_metric_label(e->out, label, ob_str(word), false);
	ob_buf_addf(e->out, "} %.15g\n", number);
}

/* ---- of the consumer's row ------------------------------------------- */

static double lag(const struct ob_consumer_view *view)
{
	return view->row.lag < 0 ? NAN : (double)view->row.lag;
}

static double oldest(const struct ob_consumer_view *view)
{
	return view->row.oldest_us < 0 ? NAN : (double)view->row.oldest_us / 1e6;
}

static double parked(const struct ob_consumer_view *view)
{
	return (double)view->row.parked;
}

static double dead(const struct ob_consumer_view *view)
{
	return (double)view->row.dead;
}

static double parked_age(const struct ob_consumer_view *view)
{
	int64_t since = view->row.parked_since_us;

	return since ? (double)(view->row.now_us - since) / 1e6 : 0;
}

static double handled(const struct ob_consumer_view *view)
{
	return (double)view->row.handled;
}

static double duplicates(const struct ob_consumer_view *view)
{
	return (double)view->row.duplicates;
}

static double failed(const struct ob_consumer_view *view)
{
	return (double)view->row.failed;
}

static double held(const struct ob_consumer_view *view)
{
	return view->row.held;
}

static double processes(const struct ob_consumer_view *view)
{
	return (double)view->alive;
}

static double told_at(const struct ob_consumer_view *view)
{
	return (double)view->row.updated_at_us / 1e6;
}

/* ---- of what the process that works told ----------------------------- */

static const struct ob_consumer_report *told(const struct ob_consumer_view *view)
{
	return view->alive && view->leader ? &view->leader->report : NULL;
}

static double held_keys(const struct ob_consumer_view *view)
{
	return told(view) ? (double)told(view)->held_keys : NAN;
}

static double full(const struct ob_consumer_view *view)
{
	return told(view) ? (double)told(view)->full : NAN;
}

static double in_flight(const struct ob_consumer_view *view)
{
	return (double)view->in_flight;
}

static double source_up(const struct ob_consumer_view *view)
{
	return told(view) && told(view)->source_state[0]
		       ? (double)(strcmp(told(view)->source_state, "up") == 0)
		       : NAN;
}

static double handler_up(const struct ob_consumer_view *view)
{
	return told(view) && told(view)->handler_state[0]
		       ? (double)(strcmp(told(view)->handler_state, "up") == 0)
		       : NAN;
}

static const char *const breakers[] = { "closed", "half_open", "open" };

static double breaker(const struct ob_consumer_view *view, size_t word)
{
	return told(view) ? (double)(strcmp(told(view)->breaker, breakers[word]) == 0) : NAN;
}

/* Counters of each process, since its start, together. */
static const char *const outcomes[] = { "parked", "retried", "dead", "unreadable", "lost", "down" };

static double outcome(const struct ob_consumer_view *view, size_t word)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < view->process_count; i++) {
		const struct ob_consumer_report *r = &view->processes[i].report;
		const uint64_t counts[] = { r->parked,     r->retried, r->dead,
					    r->unreadable, r->lost,    r->down };

		sum += counts[word];
	}
	return (double)sum;
}

/* ---- the table ------------------------------------------------------- */

#define ONE(name) \
	static void write_##name(const struct ob_exposition *e, const struct ob_metric *metric) \
	{ \
		struct at at; \
\
		EACH_VIEW(e, at) write_number(e, metric, &at, NULL, NULL, name(at.view)); \
	}
ONE(lag)
ONE(oldest)
ONE(parked)
ONE(dead)
ONE(parked_age)
ONE(handled)
ONE(duplicates)
ONE(failed)
ONE(held)
ONE(processes)
ONE(told_at)
ONE(held_keys)
ONE(full)
ONE(in_flight)
ONE(source_up)
ONE(handler_up)
#undef ONE

static void write_breaker(const struct ob_exposition *e, const struct ob_metric *metric)
{
	struct at at;

	EACH_VIEW(e, at)
	{
		for (size_t i = 0; i < sizeof(breakers) / sizeof(breakers[0]); i++)
			write_number(e, metric, &at, "state", breakers[i], breaker(at.view, i));
	}
}

static void write_outcomes(const struct ob_exposition *e, const struct ob_metric *metric)
{
	struct at at;

	EACH_VIEW(e, at)
	{
		for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
			write_number(e, metric, &at, "outcome", outcomes[i], outcome(at.view, i));
	}
}

#define GAUGE(name, help, write) \
	{ \
		"outbox_consumer_" name, help, OB_METRIC_GAUGE, write, 0 \
	}
#define COUNTER(name, help, write) \
	{ \
		"outbox_consumer_" name, help, OB_METRIC_COUNTER, write, 0 \
	}

const struct ob_metric ob_consumer_metrics_list[] = {
	GAUGE("lag_messages", "Messages of the source that are not handled yet.", write_lag),
	GAUGE("oldest_seconds", "Age of the oldest of them.", write_oldest),
	COUNTER("handled_total", "Messages that were handled.", write_handled),
	COUNTER("duplicates_total", "Copies of messages that had been handled before.",
		write_duplicates),
	COUNTER("failed_total", "Attempts that failed.", write_failed),
	COUNTER("outcomes_total", "What else became of messages, since the processes started.",
		write_outcomes),
	GAUGE("parked", "Messages that are parked, dead ones among them.", write_parked),
	GAUGE("parked_seconds", "Age of the oldest parked message.", write_parked_age),
	GAUGE("dead", "Messages that were given up.", write_dead),
	GAUGE("held_keys", "Keys that a parked message holds.", write_held_keys),
	GAUGE("full", "1 while there is no room to park and the source is paused.", write_full),
	GAUGE("in_flight", "Messages with the handler.", write_in_flight),
	GAUGE("source_up", "1 while the source can be read.", write_source_up),
	GAUGE("handler_up", "1 while the handler answers.", write_handler_up),
	GAUGE("breaker_state", "1 for the state of the circuit breaker.", write_breaker),
	GAUGE("processes", "Processes that are alive, at work or standing by.", write_processes),
	GAUGE("leased", "1 while a process has the lease.", write_held),
	GAUGE("told_timestamp_seconds", "When the consumer wrote its state last.", write_told_at),
	{ .name = NULL },
};
