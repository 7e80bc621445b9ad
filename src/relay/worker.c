/* SPDX-License-Identifier: MIT */
/* The worker's step: what comes first, when to wait, and how to stop. */
#include "relay/worker.h"

#include "relay/failures.h"
#include "relay/tx_worker.h"
#include "relay/worker_impl.h"

/* One being settled, one acknowledged, one at the sink, one read ahead; large ones one less. */
enum { BATCHES_IN_MEMORY = 4, LARGE_BATCHES_IN_MEMORY = 3 };

/* ---- making and freeing ---------------------------------------------- */

enum { SAY_US = 30 * 1000000 }; /* between two lines about a failing store */

static int init_flight(struct ob_relay_worker *worker, struct ob_err *err)
{
	const struct ob_config_relay *relay = worker->conf.relay;
	bool ordered = (worker->conf.sink->ops->caps & OB_SINK_ORDERED) != 0;
	enum ob_ordering ordering = (enum ob_ordering)relay->ordering;
	struct ob_flight_conf conf = {
		.max_messages = BATCHES_IN_MEMORY * relay->batch_size,
		.max_bytes = LARGE_BATCHES_IN_MEMORY * (size_t)relay->batch_bytes,
		.ordering = ordering,
		/*
		 * With hold a refused message must stop those after it, so none may be under
		 * way. And a sink keeps the order of a key, not that of a partition's keys; nor
		 * can a broker keep it among messages that it gets under several keys.
		 */
		.pipelined = ordered && ob_route_keeps_key(&worker->route) &&
			     (ordering == OB_ORDER_NONE ||
			      (ordering == OB_ORDER_KEY && relay->on_dead == OB_ON_DEAD_RELEASE)),
		.hold_dead = relay->on_dead == OB_ON_DEAD_HOLD,
		.hold_delayed = relay->hold_delayed,
	};

	worker->decide = (struct ob_decide){
		.ordering = ordering,
		.hold_dead = conf.hold_dead,
		.hold_delayed = conf.hold_delayed,
	};

	worker->alone = UINT64_MAX; /* no message's */
	int r = ob_suspects_init(&worker->suspects, conf.max_messages, err);
	if (r < 0)
		return r;
	r = ob_flight_init(&worker->flight, &conf, err);
	if (r < 0)
		ob_suspects_done(&worker->suspects);
	return r;
}

int ob_worker_new(const struct ob_worker_conf *conf, struct ob_relay_worker **ret_worker,
		  struct ob_err *err)
{
	const struct ob_config_relay *relay = conf->relay;
	struct ob_relay_worker *worker = calloc(1, sizeof(*worker));
	int r;

	if (!worker)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a worker");
	if (ob_tx_worker_suits(conf->sink)) {
		r = ob_tx_worker_new(conf, &worker->tx, err);
		if (r < 0)
			free(worker);
		else
			*ret_worker = worker;
		return r;
	}
	worker->conf = *conf;
	worker->gate = OB_MAY_SEND;
	worker->owner = conf->id;
	worker->started_us = ob_worker_now(worker);
	worker->passed_us = conf->passed_us ? conf->passed_us : &worker->own_passed_us;
	ob_worker_make_hungry(worker);
	worker->flush_us = ob_worker_now(worker) + OB_WORKER_FLUSH_US;
	worker->retry_due_us = INT64_MAX;
	worker->policy = (struct ob_policy){
		.retry = { relay->retry.base_delay_ms, relay->retry.max_backoff_ms,
			   relay->retry.multiplier, relay->retry.jitter },
		.max_attempts = relay->retry.max_attempts,
	};
	ob_rng_init(&worker->rng, conf->seed);
	ob_breaker_init(&worker->breaker);
	ob_backoff_init(&worker->store_backoff, OB_WORKER_STORE_MS, OB_WORKER_STORE_CAP_MS);
	ob_backoff_init(&worker->idle_backoff, OB_WORKER_IDLE_MS, relay->idle_backoff_ms);
	ob_backoff_init(&worker->alone_backoff, OB_WORKER_ALONE_MS, OB_WORKER_ALONE_CAP_MS);
	if (!conf->classify && relay->failure_count > 0) {
		worker->conf.classify = ob_failures_classify;
		worker->conf.classify_arg = &worker->conf.relay;
	}
	r = ob_route_init(&worker->route, &relay->route, conf->sink->ops, err);
	if (r < 0) {
		free(worker);
		return r;
	}
	r = init_flight(worker, err);
	if (r < 0) {
		ob_route_done(&worker->route);
		free(worker);
		return r;
	}
	size_t max = worker->flight.conf.max_messages;

	worker->settling = calloc(max, sizeof(*worker->settling));
	worker->changes = calloc(max, sizeof(*worker->changes));
	worker->promotes = calloc(max, sizeof(*worker->promotes));
	if (!worker->settling || !worker->changes || !worker->promotes ||
	    ob_track_new(OB_FLIGHT_PARTITIONS, &worker->track, err) < 0) {
		ob_worker_free(worker);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a worker");
	}
	*ret_worker = worker;
	return 0;
}

void ob_worker_free(struct ob_relay_worker *worker)
{
	if (!worker)
		return;
	if (worker->tx) {
		ob_tx_worker_free(worker->tx);
		free(worker);
		return;
	}
	if (worker->job_runs)
		(void)worker->conf.settler->ended(worker->conf.settler, true);
	if (worker->reading) {
		(void)worker->conf.read_ahead->ended(worker->conf.read_ahead, true);
		for (size_t i = 0;
		     worker->read_job.base.r >= 0 && i < worker->read_job.read.part_count; i++)
			ob_progress_done(&worker->read_parts[i].after);
	}
	ob_sink_reset(worker->conf.sink);
	ob_flight_done(&worker->flight);
	ob_suspects_done(&worker->suspects);
	ob_route_done(&worker->route);
	for (size_t i = 0; i < worker->part_count; i++)
		ob_progress_done(&worker->settle_parts[i].progress);
	ob_track_free(worker->track);
	free(worker->settling);
	free(worker->changes);
	free(worker->promotes);
	free(worker);
}

/* ---- failing --------------------------------------------------------- */

void ob_worker_fail(struct ob_relay_worker *worker, enum ob_error_of of, const struct ob_err *err)
{
	if (worker->err.kind != OB_ERR_NONE)
		return;
	worker->err = *err;
	(void)ob_metrics_error(worker->conf.metrics, of, ob_clock_real_us(worker->conf.clock), err,
			       NULL);
	if (worker->conf.log)
		ob_log(worker->conf.log, OB_LOG_ERROR, "worker cannot go on, stopping",
		       OB_KV("relay", worker->conf.relay->name), OB_KV("error", err->msg));
	atomic_store(&worker->stop, OB_STOP_NOW);
}

void ob_worker_reset_sink(struct ob_relay_worker *worker)
{
	ob_sink_reset(worker->conf.sink);
	worker->sink_ready = worker->sink_full = false;
	ob_flight_unsend(&worker->flight);
}

void ob_worker_store_failed(struct ob_relay_worker *worker, const char *doing,
			    const struct ob_err *err)
{
	int64_t wait_ms = ob_backoff_next_ms(&worker->store_backoff);

	worker->data.store_errors++;
	worker->store_retry_us = ob_worker_now(worker) + wait_ms * 1000;
	if (err->kind == OB_ERR_FATAL) {
		ob_worker_fail(worker, OB_ERROR_OF_STORE, err);
		/*
		 * We can settle nothing any more: the leases will expire. But a settle that
		 * runs concurrently is waited for, as at any stop.
		 */
		ob_worker_reset_sink(worker);
		if (!worker->job_runs)
			worker->state = OB_WORKER_FAILED;
		return;
	}
	/* An outage is one piece of news, not one for each attempt. */
	if (!ob_metrics_error(worker->conf.metrics, OB_ERROR_OF_STORE,
			      ob_clock_real_us(worker->conf.clock), err, NULL) &&
	    ob_worker_now(worker) - worker->store_said_us < SAY_US)
		return;
	worker->store_said_us = ob_worker_now(worker);
	if (worker->conf.log)
		ob_log(worker->conf.log, OB_LOG_WARN, "store failed, trying again",
		       OB_KV("relay", worker->conf.relay->name), OB_KV("doing", doing),
		       OB_KI("delay_ms", wait_ms), OB_KV("error", err->msg));
}

void ob_worker_store_ok(struct ob_relay_worker *worker)
{
	worker->store_retry_us = 0;
	ob_backoff_reset(&worker->store_backoff);
}

/* ---- stopping -------------------------------------------------------- */

void ob_worker_stop(struct ob_relay_worker *worker, enum ob_stop how)
{
	int was = atomic_load(&worker->stop);

	if (worker->tx)
		ob_tx_worker_stop(worker->tx, how);
	while (was < (int)how && !atomic_compare_exchange_weak(&worker->stop, &was, (int)how))
		;
}

void ob_worker_nudge(struct ob_relay_worker *worker)
{
	if (worker->tx)
		ob_tx_worker_nudge(worker->tx);
	atomic_store(&worker->nudged, true);
}

/* Act on a new wish to stop. */
static bool begin_stop(struct ob_relay_worker *worker)
{
	enum ob_stop stop = (enum ob_stop)atomic_load(&worker->stop);

	if (stop == worker->stopping)
		return false;
	worker->stopping = stop;
	worker->flush_us = 0;
	if (stop == OB_STOP_NOW)
		ob_worker_reset_sink(worker);
	return true;
}

static bool end_stop(struct ob_relay_worker *worker)
{
	bool tried = worker->stopping == OB_STOP_NOW && worker->store_retry_us > 0;

	if (worker->stopping == OB_STOP_NO || worker->job_runs)
		return false;
	/* Told to leave at once, what the store would not take is left to the next owner. */
	if (worker->flight.count + worker->unrecorded + worker->settles > 0 &&
	    !(tried && worker->flight.in_flight == 0))
		return false;
	worker->state = worker->err.kind != OB_ERR_NONE ? OB_WORKER_FAILED : OB_WORKER_STOPPED;
	return true;
}

/* ---- stepping -------------------------------------------------------- */

static bool try_settle(struct ob_relay_worker *worker)
{
	return !worker->job_runs && ob_worker_now(worker) >= worker->store_retry_us &&
	       ob_worker_settle(worker);
}

/* A probe that was forgotten with its partition: another one may go. */
static void check_probe(struct ob_relay_worker *worker)
{
	if (worker->probing && !ob_flight_find(&worker->flight, worker->probe)) {
		worker->probing = false;
		ob_breaker_unprobe(&worker->breaker);
	}
}

/*
 * While a read runs on another thread, the sink is served and nothing else changes: to leases, the
 * journal and settles a read is one instant. A settle that ended meanwhile is taken in afterwards;
 * so a key whose failure it recorded still parks what the read brings of it, and the read, which
 * may not have seen that failure, cannot overtake it (P3). And what fails meanwhile is not settled
 * before the read has ended: else the read could bring it a second time, as an exception (P4).
 */
static bool work_while_reading(struct ob_relay_worker *worker)
{
	if (ob_worker_read_end(worker) || ob_worker_poll(worker, 0))
		return true;
	/* A partition may be another's by now, or be asked back: that is taken in first. */
	return atomic_load(&worker->stop) == OB_STOP_NO &&
	       atomic_load(&worker->conf.view->version) == worker->view_version &&
	       ob_worker_send(worker, false);
}

/*
 * During a backlog the sink always has something to say. So the next read begins before it is
 * served, or the database would wait for it; and the settle before that, as none begins during a
 * read.
 */
static bool work_ahead(struct ob_relay_worker *worker)
{
	if (!ob_worker_reads_ahead(worker))
		return false;
	return (ob_worker_settle_due(worker) && try_settle(worker)) ||
	       ob_worker_take_over(worker) || ob_worker_read(worker);
}

/*
 * One thing at a time. What the sink gave comes first, then it gets more to do;
 * while it is at that, the store brings what comes next, and concurrently records what is over.
 */
static bool work(struct ob_relay_worker *worker)
{
	if (worker->reading)
		return work_while_reading(worker);
	if (ob_worker_take_view(worker) || begin_stop(worker) || ob_worker_settle_end(worker) ||
	    ob_worker_give_up_queued(worker) || work_ahead(worker))
		return true;
	if (ob_worker_poll(worker, 0) || ob_worker_send(worker, false))
		return true;
	if (ob_worker_settle_due(worker) && try_settle(worker))
		return true;
	if (ob_worker_take_over(worker) || ob_worker_read(worker) || ob_worker_send(worker, true))
		return true;
	if (ob_flight_outcome(&worker->flight) && try_settle(worker))
		return true;
	if (end_stop(worker) || ob_worker_check_news(worker))
		return true;
	/* Nothing to do: a sink without an fd is waited for here. */
	if (worker->conf.sink_wait_ms > 0 && ob_sink_fd(worker->conf.sink) < 0)
		return ob_worker_poll(worker, worker->conf.sink_wait_ms);
	return false;
}

static int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t read_wake(const struct ob_relay_worker *worker, int64_t now, int store_fd)
{
	int64_t wake = min_i64(worker->idle_until_us, worker->retry_due_us);

	if (worker->stopping != OB_STOP_NO || !ob_worker_can_read(worker))
		return INT64_MAX;
	if (worker->breaker.state == OB_BREAKER_OPEN)
		return worker->breaker.open_until_us;
	/* Full: an outcome will make room. */
	if (ob_worker_is_hungry(worker))
		return now + OB_WORKER_SINK_US;
	return store_fd < 0 ? min_i64(wake, now + OB_WORKER_CHECK_US) : wake;
}

static int64_t next_wake(const struct ob_relay_worker *worker, const struct ob_step *step)
{
	int64_t now = ob_worker_now(worker);
	int64_t wake = read_wake(worker, now, step->store_fd);
	const struct ob_entry *oldest = ob_flight_outcome(&worker->flight);

	/* The end of the read wakes the worker; until then only the sink has something to say. */
	if (worker->reading)
		return worker->flight.in_flight + worker->flight.queued == 0
			       ? INT64_MAX
			       : now + (step->sink_fd < 0 ? 1000 : OB_WORKER_SINK_US);
	if (worker->flight.in_flight > 0)
		wake = min_i64(wake, now + (step->sink_fd < 0 ? 1000 : OB_WORKER_SINK_US));
	if (worker->stopping == OB_STOP_NO && !worker->job_runs)
		wake = min_i64(wake, worker->flush_us);
	if (oldest && !worker->job_runs)
		wake = min_i64(wake, oldest->since_us + OB_WORKER_SETTLE_US);
	if (worker->untaken > 0 || (worker->settles && !worker->job_runs))
		wake = min_i64(wake, worker->store_retry_us);
	if (worker->flight.queued > 0)
		wake = min_i64(wake, worker->breaker.state == OB_BREAKER_OPEN
					     ? worker->breaker.open_until_us
					     : now + OB_WORKER_SINK_US);
	if (worker->store_retry_us > 0 && wake < worker->store_retry_us &&
	    worker->flight.in_flight == 0)
		wake = worker->store_retry_us;
	return wake > now ? wake : now + 1000;
}

/* Its times by the wall clock; closed, it costs no call. */
static void publish_breaker(struct ob_relay_worker *worker, struct ob_metrics_data *data)
{
	const struct ob_breaker *breaker = &worker->breaker;

	if (breaker->state == OB_BREAKER_CLOSED) {
		worker->data.breaker_since_us = data->breaker_since_us = data->probe_us = 0;
		data->breaker_why[0] = '\0';
		return;
	}
	data->breaker_since_us = worker->data.breaker_since_us;
	memcpy(data->breaker_why, worker->data.breaker_why, sizeof(data->breaker_why));
	data->probe_us = breaker->state != OB_BREAKER_OPEN
				 ? 0
				 : ob_clock_real_us(worker->conf.clock) + breaker->open_until_us -
					   ob_worker_now(worker);
}

/* What is queued while the worker sends waits for one before it in its key. */
static void publish_waits(const struct ob_relay_worker *worker, struct ob_metrics_data *data)
{
	enum ob_why_reason reason = worker->gate == OB_MAY_SEND ? OB_WHY_KEY_BUSY : worker->gate;

	memset(data->waits, 0, sizeof(data->waits));
	data->waits[reason] = worker->flight.queued;
}

static void publish(struct ob_relay_worker *worker)
{
	struct ob_metrics_data *data;
	const struct ob_entry *oldest = ob_flight_settling(&worker->flight);

	if (!worker->conf.metrics)
		return;
	if (!oldest)
		oldest = ob_flight_outcome(&worker->flight);
	worker->data.forgotten = worker->flight.forgotten;
	data = ob_metrics_lock(worker->conf.metrics);
#define X(name, help) data->name = worker->data.name;
	OB_COUNTER_MAP(X)
#undef X
	data->queued = worker->flight.queued;
	publish_waits(worker, data);
	data->in_flight = worker->flight.in_flight;
	data->unsettled = worker->flight.unsettled;
	data->memory_bytes = worker->flight.bytes;
	data->held_keys = worker->flight.held_keys;
	data->times = worker->data.times;
	data->fetch_us = worker->data.fetch_us;
	data->settle_us = worker->data.settle_us;
	data->last_fetch_us = worker->data.last_fetch_us;
	data->last_settle_us = worker->data.last_settle_us;
	data->oldest_unsettled_us = oldest ? ob_worker_now(worker) - oldest->since_us : 0;
	data->breaker = worker->breaker.state;
	data->alarm = worker->breaker.alarm;
	publish_breaker(worker, data);
	ob_metrics_unlock(worker->conf.metrics);
}

void ob_worker_step(struct ob_relay_worker *worker, struct ob_step *ret_step)
{
	struct ob_step step = { .wake_us = INT64_MAX, .store_fd = -1, .sink_fd = -1 };

	if (worker->tx) {
		ob_tx_worker_step(worker->tx, ret_step);
		return;
	}
	if (worker->state == OB_WORKER_RUNNING) {
		step.worked = work(worker);
		check_probe(worker);
		ob_worker_say_drained(worker);
		publish(worker);
	}
	step.state = worker->state;
	step.beside_us = worker->job_runs ? worker->settle_began_us : 0;
	if (worker->reading && (!worker->job_runs || worker->read_began_us < step.beside_us))
		step.beside_us = worker->read_began_us;
	if (step.state == OB_WORKER_RUNNING && !step.worked) {
		/* News that nobody reads would end every wait at once. */
		if (ob_worker_wants_news(worker))
			step.store_fd = ob_store_wake_fd(worker->conf.store);
		if (worker->flight.in_flight > 0)
			step.sink_fd = ob_sink_fd(worker->conf.sink);
		step.wake_us = next_wake(worker, &step);
	}
	*ret_step = step;
}

bool ob_worker_is_idle(const struct ob_relay_worker *worker)
{
	if (worker->tx)
		return ob_tx_worker_is_idle(worker->tx);
	return worker->flight.count == 0 && worker->unrecorded == 0 && !worker->settles &&
	       !worker->reading && worker->untaken == 0 && !ob_worker_is_hungry(worker) &&
	       worker->store_retry_us == 0 && worker->data.fetches > 0;
}

uint32_t ob_worker_ended(const struct ob_relay_worker *worker)
{
	if (worker->tx)
		return ob_tx_worker_ended(worker->tx);
	if (worker->conf.end_seq == 0 || !ob_worker_is_idle(worker))
		return 0;
	for (uint32_t p = 0; p < OB_LANES * worker->partition_count; p++) {
		if (ob_track_has(worker->track, p) &&
		    ob_track_read_from(worker->track, p)->pos < worker->conf.end_seq)
			return 0;
	}
	return (uint32_t)worker->view_count;
}

const struct ob_err *ob_worker_error(const struct ob_relay_worker *worker)
{
	return worker->tx ? ob_tx_worker_error(worker->tx) : &worker->err;
}
