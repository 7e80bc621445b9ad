/* SPDX-License-Identifier: MIT */
/* The worker's side of the sink: sending, polling, and what follows from an outcome. */
#include "relay/advice.h"
#include "relay/faultpoints.h"
#include "relay/worker_impl.h"

#include <stdatomic.h>

enum { PASSED_US = 10000 }; /* how exactly it is known when something passed */

static bool log_on(const struct ob_relay_worker *worker)
{
	return worker->conf.log != NULL;
}

/* For people: since when nothing goes out, and why. */
static void note_opened(struct ob_relay_worker *worker, const char *why)
{
	if (worker->data.breaker_since_us)
		return;
	worker->data.breaker_since_us = ob_clock_real_us(worker->conf.clock);
	ob_worker_text(worker->data.breaker_why, sizeof(worker->data.breaker_why), ob_str(why));
}

static void log_opened(struct ob_relay_worker *worker, const char *why)
{
	note_opened(worker, why);
	worker->data.breaker_opened++;
	if (log_on(worker))
		ob_log(worker->conf.log, OB_LOG_WARN, "sink is down, waiting for it",
		       OB_KV("relay", worker->conf.relay->name), OB_KV("error", why));
}

static void log_closed(const struct ob_relay_worker *worker)
{
	if (log_on(worker))
		ob_log(worker->conf.log, OB_LOG_INFO, "sink is back, going on",
		       OB_KV("relay", worker->conf.relay->name));
}

static bool is_probe(struct ob_relay_worker *worker, const struct ob_entry *entry)
{
	if (!worker->probing || ob_flight_tag(&worker->flight, entry) != worker->probe)
		return false;
	worker->probing = false;
	return true;
}

static void sink_down(struct ob_relay_worker *worker, const struct ob_err *err)
{
	worker->sink_ready = false;
	if (ob_breaker_down(&worker->breaker, ob_worker_now(worker))) {
		ob_metrics_error(worker->conf.metrics, OB_ERROR_OF_SINK,
				 ob_clock_real_us(worker->conf.clock), err, NULL);
		log_opened(worker, err->msg);
	}
}

/* ---- outcomes -------------------------------------------------------- */

static void succeeded(struct ob_relay_worker *worker, struct ob_entry *entry, bool probe,
		      int64_t now)
{
	if ((probe || worker->breaker.state == OB_BREAKER_CLOSED) &&
	    ob_breaker_success(&worker->breaker))
		log_closed(worker);
	ob_breaker_note(&worker->breaker, ob_flight_key_hash(&worker->flight, entry->message),
			false, now);
	/* Other threads write it, too: not more often than it is worth. */
	if (now - atomic_load_explicit(worker->passed_us, memory_order_relaxed) > PASSED_US)
		atomic_store_explicit(worker->passed_us, now, memory_order_relaxed);
	ob_suspects_pass(&worker->suspects, entry->message->seq);
	ob_histogram_note(&worker->data.times.sink, ob_histogram_us, now - entry->since_us);
	ob_histogram_note(&worker->data.times.delivery, ob_histogram_us,
			  ob_clock_real_us(worker->conf.clock) - entry->message->created_at_us);
	ob_flight_ok(&worker->flight, entry, now);
}

/* What is about the message itself is reported; what is about the sink, the breaker reports. */
static void report(struct ob_relay_worker *worker, const struct ob_entry *entry,
		   const struct ob_verdict *verdict)
{
	bool dead = verdict->action == OB_ACT_DEAD;
	char id[OB_UUID_TEXT_SIZE];
	struct ob_err err = { .kind = entry->failure };

	(void)snprintf(err.msg, sizeof(err.msg), "%s", entry->error ? entry->error : "");
	ob_metrics_error(worker->conf.metrics, OB_ERROR_OF_SINK,
			 ob_clock_real_us(worker->conf.clock), &err, &entry->message->id);
	if (!log_on(worker))
		return;
	ob_uuid_format(&entry->message->id, id);
	ob_log(worker->conf.log, dead ? OB_LOG_ERROR : OB_LOG_WARN,
	       dead ? "send failed, giving the message up" : "send failed, trying again later",
	       OB_KV("relay", worker->conf.relay->name), OB_KV("id", id),
	       OB_KI("attempt", (int64_t)entry->message->attempts + 1),
	       OB_KI("delay_ms", verdict->delay_ms), OB_KV("error", err.msg));
}

/* While most keys fail, a failure says nothing about its message. */
static bool is_outage(const struct ob_relay_worker *worker)
{
	return worker->breaker.alarm && worker->breaker.state != OB_BREAKER_CLOSED;
}

/*
 * Has nothing at all passed while this message waited for its attempt? With few keys, or little to
 * send, that is all an outage shows of itself, and the message must not pay for it. A poison among
 * others that pass is charged as ever: its waits grow beyond the time between two of these.
 */
static bool nothing_passed(const struct ob_relay_worker *worker, const struct ob_message *message,
			   bool last)
{
	int64_t passed = atomic_load(worker->passed_us);
	int64_t least_ms = last ? OB_WORKER_LAST_MS : OB_WORKER_SILENT_MS;
	int64_t wait_ms = ob_retry_delay_ms(&worker->policy.retry, message->attempts, 0);

	/* A first failure is no more than that. */
	if (message->attempts == 0)
		return false;
	if (passed == 0 && last)
		return true;
	if (passed == 0)
		passed = worker->started_us;
	return (ob_worker_now(worker) - passed) / 1000 > (wait_ms > least_ms ? wait_ms : least_ms);
}

void ob_worker_tell(const struct ob_relay_worker *worker, const struct ob_entry *entry, bool dead)
{
	if (worker->conf.failed)
		worker->conf.failed(worker->conf.failed_arg,
				    &(struct ob_worker_failure){
					    .message = entry->message,
					    .kind = entry->failure,
					    .error = entry->error ? entry->error : "",
					    .timed_out = entry->timed_out,
					    .dead = dead,
				    });
}

void ob_worker_outage(struct ob_relay_worker *worker, const char *why, const char *error)
{
	const struct ob_flight *flight = &worker->flight;

	worker->data.breaker_opened += worker->breaker.state == OB_BREAKER_CLOSED;
	note_opened(worker, *error ? error : why);
	if (ob_breaker_mass(&worker->breaker, ob_worker_now(worker))) {
		worker->data.alarms++;
		if (log_on(worker))
			ob_log(worker->conf.log, OB_LOG_ERROR, why,
			       OB_KV("relay", worker->conf.relay->name), OB_KV("error", error));
	}
	for (struct ob_entry *entry = ob_flight_outcome(flight); entry;
	     entry = ob_flight_outcome_next(flight, entry)) {
		if ((entry->outcome == OB_OUTCOME_RETRY || entry->outcome == OB_OUTCOME_DEAD) &&
		    !entry->counted && !entry->about_it)
			ob_worker_tell(worker, entry, false);
	}
	ob_flight_undo_failures(&worker->flight);
}

/* Nothing passes, and this message found it out: it waits with the others. */
static void take_for_outage(struct ob_relay_worker *worker, struct ob_entry *entry, int64_t now)
{
	struct ob_err err = { .kind = entry->failure };

	(void)snprintf(err.msg, sizeof(err.msg), "%s", entry->error ? entry->error : "");
	ob_metrics_error(worker->conf.metrics, OB_ERROR_OF_SINK,
			 ob_clock_real_us(worker->conf.clock), &err, &entry->message->id);
	worker->data.down++;
	worker->silent_us = now;
	ob_worker_tell(worker, entry, false);
	ob_flight_requeue(&worker->flight, entry);
	ob_worker_outage(worker, "nothing passes: taken as an outage, nothing is given up",
			 err.msg);
}

static void judge(struct ob_relay_worker *worker, struct ob_entry *entry)
{
	const struct ob_message *message = entry->message;
	int64_t now = ob_worker_now(worker);
	/* Said by the receiver, of this message or of all. */
	bool answer = !entry->about_it &&
		      (entry->failure == OB_ERR_RETRY || entry->failure == OB_ERR_REJECT);
	struct ob_verdict verdict = ob_policy_judge(&worker->policy, entry->failure,
						    message->attempts, ob_rng_unit(&worker->rng));

	if (answer && message->attempts == 0)
		ob_breaker_note(&worker->breaker, ob_flight_key_hash(&worker->flight, message),
				true, now);
	if (answer && is_outage(worker)) {
		verdict.action = OB_ACT_WAIT;
	} else if (answer && entry->failure == OB_ERR_RETRY &&
		   nothing_passed(worker, message, verdict.action == OB_ACT_DEAD)) {
		take_for_outage(worker, entry, now);
		return;
	}
	switch (verdict.action) {
	case OB_ACT_RETRY:
		report(worker, entry, &verdict);
		ob_flight_decide(&worker->flight, entry, OB_OUTCOME_RETRY, verdict.delay_ms, now);
		return;
	case OB_ACT_DEAD:
		report(worker, entry, &verdict);
		ob_flight_decide(&worker->flight, entry, OB_OUTCOME_DEAD, 0, now);
		return;
	case OB_ACT_WAIT:
		worker->data.down++;
		ob_worker_tell(worker, entry, false);
		break;
	case OB_ACT_PUBLISHED: /* a classifier may say that a failure is none */
		ob_flight_decide(&worker->flight, entry, OB_OUTCOME_PUBLISHED, 0, now);
		return;
	case OB_ACT_FORGET:
	case OB_ACT_STOP:
		break;
	}
	ob_flight_requeue(&worker->flight, entry);
}

/* The receiver ended the connection: over this message? Then `err` says so. */
static bool is_to_blame(struct ob_relay_worker *worker, const struct ob_entry *entry,
			struct ob_err *err)
{
	bool alone = ob_flight_tag(&worker->flight, entry) == worker->alone;

	if (!err->hung_up || !ob_suspects_drop(&worker->suspects, entry->message->seq, alone))
		return false;
	(void)ob_err_context(err,
			     "the receiver hung up %d times on this message alone, while others "
			     "pass",
			     OB_SUSPECT_STRIKES);
	return true;
}

/* The probe was answered. While nothing but the message at hand failed, others may have passed. */
static void probe_answered(struct ob_relay_worker *worker, int64_t now)
{
	bool others_pass = worker->breaker.alarm && worker->silent_us > 0 &&
			   atomic_load(worker->passed_us) > worker->silent_us;

	if (others_pass ? ob_breaker_success(&worker->breaker)
			: ob_breaker_answer(&worker->breaker, now))
		log_closed(worker);
}

/* `own`: it is our own refusal; the receiver has not seen the message and said nothing. */
static void failed(struct ob_relay_worker *worker, struct ob_entry *entry, struct ob_err *err,
		   bool own)
{
	int64_t now = ob_worker_now(worker);
	enum ob_err_kind kind = err->kind;
	bool probe = is_probe(worker, entry);

	/* Whatever a rule makes of it: the sink asks to be opened again. */
	if (kind == OB_ERR_DOWN)
		worker->sink_ready = false;
	if (worker->conf.classify)
		kind = worker->conf.classify(worker->conf.classify_arg, entry->message, err);
	entry->timed_out = err->timed_out;
	entry->about_it = own;
	if (probe && own) {
		ob_breaker_unprobe(&worker->breaker);
		probe = false;
	}
	if (kind == OB_ERR_NONE) {
		succeeded(worker, entry, probe, now);
		return;
	}
	if (kind == OB_ERR_DOWN && is_to_blame(worker, entry, err)) {
		kind = OB_ERR_RETRY;
		entry->about_it = true; /* others passed each time */
	}
	if (kind == OB_ERR_DOWN)
		sink_down(worker, err);
	else if (kind == OB_ERR_FATAL)
		ob_worker_fail(worker, OB_ERROR_OF_SINK, err);
	else if (probe)
		probe_answered(worker, now);
	worker->data.said_down += kind == OB_ERR_DOWN;
	worker->data.said_retry += kind == OB_ERR_RETRY;
	worker->data.said_reject += kind == OB_ERR_REJECT;
	ob_histogram_note(&worker->data.times.sink, ob_histogram_us, now - entry->since_us);
	ob_flight_fail(&worker->flight, entry, kind, err->msg, now);
}

/* A success may also decide who is to blame for a failure that came before it. */
static void judge_all(struct ob_relay_worker *worker)
{
	for (struct ob_entry *own; (own = ob_flight_judge(&worker->flight));)
		judge(worker, own);
}

bool ob_worker_poll(struct ob_relay_worker *worker, int timeout_ms)
{
	struct ob_err err = OB_ERR_INIT;
	int64_t now = ob_worker_now(worker);
	int n;

	/* With nothing under way it may still have heartbeats to exchange, now and then. */
	if (worker->flight.in_flight == 0) {
		if (!worker->sink_ready || now < worker->sink_polled_us + OB_WORKER_KEEP_US)
			return false;
		timeout_ms = 0;
	}
	worker->sink_polled_us = now;
	n = ob_sink_poll(worker->conf.sink, timeout_ms, worker->acks, OB_WORKER_ACKS, &err);
	if (n < 0) {
		ob_worker_fail(worker, OB_ERROR_OF_SINK, &err);
		ob_worker_reset_sink(worker);
		return true;
	}
	if (n == 0)
		return false;
	(void)OB_FAULT(OB_FAULT_POLL_AFTER);
	worker->sink_full = false;
	now = ob_worker_now(worker);
	for (int i = 0; i < n; i++) {
		struct ob_entry *entry = ob_flight_find(&worker->flight, worker->acks[i].tag);

		if (!entry)
			continue;
		if (worker->acks[i].err.kind == OB_ERR_NONE)
			succeeded(worker, entry, is_probe(worker, entry), now);
		else
			failed(worker, entry, &worker->acks[i].err, false);
		judge_all(worker);
	}
	return true;
}

/* ---- sending --------------------------------------------------------- */

enum { CHOICE = 64 }; /* messages that a probe is chosen from */

/* Some things about a sink are only known once it is open. */
static void advise(const struct ob_relay_worker *worker)
{
	struct ob_findings findings;

	if (!worker->conf.sink_advised || atomic_exchange(worker->conf.sink_advised, true))
		return;
	ob_findings_init(&findings);
	ob_sink_advise(worker->conf.sink, &findings);
	ob_advice_log(worker->conf.log, worker->conf.relay->name, "the sink weakens a promise",
		      &findings);
	ob_findings_done(&findings);
}

static bool make_ready(struct ob_relay_worker *worker)
{
	struct ob_err err = OB_ERR_INIT;

	if (worker->sink_ready)
		return true;
	if (ob_sink_open(worker->conf.sink, &err) < 0) {
		if (err.kind == OB_ERR_FATAL)
			ob_worker_fail(worker, OB_ERROR_OF_SINK, &err);
		else
			sink_down(worker, &err);
		return false;
	}
	worker->sink_ready = true;
	advise(worker);
	return true;
}

/* Hand one message over; false when no more should follow now. */
static bool send_one(struct ob_relay_worker *worker, struct ob_entry *entry, int64_t now)
{
	struct ob_err err = OB_ERR_INIT;
	bool probe = worker->breaker.state == OB_BREAKER_HALF_OPEN;
	bool alone = ob_suspects_company(&worker->suspects, entry->message->seq) == 0;
	int r;

	r = entry->delivery.message
		    ? 0
		    : ob_route_apply(&worker->route, entry->message, &entry->batch->batch.arena,
				     &entry->delivery, &err);
	if (r == 0) {
		entry->delivery.tag = ob_flight_tag(&worker->flight, entry);
		(void)OB_FAULT(OB_FAULT_SEND_BEFORE);
		r = ob_sink_send(worker->conf.sink, &entry->delivery, &err);
	}
	if (r == OB_SINK_FULL) {
		worker->sink_full = true;
		return false;
	}
	if (probe) {
		worker->probing = true;
		worker->probe = ob_flight_tag(&worker->flight, entry);
		ob_breaker_probe(&worker->breaker);
	}
	if (alone)
		worker->alone = ob_flight_tag(&worker->flight, entry);
	ob_flight_sent(&worker->flight, entry, now);
	if (r < 0) {
		err.hung_up = false; /* before it was handed over: not because of it */
		failed(worker, entry, &err, err.kind == OB_ERR_REJECT);
		judge_all(worker);
		return err.kind != OB_ERR_DOWN && err.kind != OB_ERR_FATAL && !probe;
	}
	worker->data.sent++;
	(void)OB_FAULT(OB_FAULT_SEND_AFTER);
	return !probe && !alone;
}

/* The next message that is no suspect, among the first few from `skip` on; or NULL. */
static struct ob_entry *find_probe(struct ob_relay_worker *worker, uint32_t skip)
{
	for (uint32_t i = 0; i < CHOICE && i < worker->flight.queued; i++) {
		struct ob_entry *entry = ob_flight_next(&worker->flight, skip + i);

		if (entry && !ob_suspects_has(&worker->suspects, entry->message->seq))
			return entry;
	}
	return NULL;
}

bool ob_worker_has_probe(struct ob_relay_worker *worker)
{
	return find_probe(worker, 0) != NULL;
}

/* One that has not failed yet; or NULL. */
static struct ob_entry *find_fresh(struct ob_relay_worker *worker)
{
	for (uint32_t i = 0; i < CHOICE && i < worker->flight.queued; i++) {
		struct ob_entry *entry = ob_flight_next(&worker->flight, i);

		if (entry && !entry->error && entry->message->attempts == 0 &&
		    !ob_suspects_has(&worker->suspects, entry->message->seq))
			return entry;
	}
	return NULL;
}

/* When most keys fail, another one each time, and first of all what nobody has refused. */
static struct ob_entry *choose_probe(struct ob_relay_worker *worker)
{
	bool pick = worker->breaker.alarm;
	struct ob_entry *fresh = pick ? find_fresh(worker) : NULL;

	if (fresh)
		return fresh;
	return find_probe(worker, pick ? (uint32_t)ob_rng_below(&worker->rng, CHOICE) : 0);
}

/* The next message, or NULL. A probe that is always the same poison would never end it. */
static struct ob_entry *choose(struct ob_relay_worker *worker, bool any)
{
	bool probe = worker->breaker.state == OB_BREAKER_HALF_OPEN;
	struct ob_entry *entry = probe ? choose_probe(worker) : NULL;

	return entry || (probe && !any) ? entry : ob_flight_next(&worker->flight, 0);
}

/* What the worker knows of itself. An open breaker whose wait is over turns half-open here. */
static struct ob_send_facts facts_of_worker(struct ob_relay_worker *worker, int64_t now)
{
	return (struct ob_send_facts){
		.stopping = worker->stopping != OB_STOP_NO,
		.store_failed = worker->store_retry_us > 0,
		.store_waits = now < worker->store_retry_us,
		.has_unrecorded = worker->settles || ob_flight_outcome(&worker->flight),
		.cut_off = atomic_load(&worker->conf.view->cut),
		.sink_full = worker->sink_full,
		.sink_down = ob_breaker_allows(&worker->breaker, now) == 0,
	};
}

/* The same with what it knows of one message. */
static enum ob_why_reason judge_send(struct ob_relay_worker *worker, const struct ob_entry *entry,
				     int64_t now)
{
	struct ob_send_facts facts = facts_of_worker(worker, now);
	uint32_t hash = ob_worker_hash(worker, entry->message->partition);

	facts.suspect_under_way = ob_flight_find(&worker->flight, worker->alone) != NULL;
	facts.under_way = worker->flight.in_flight;
	facts.company = ob_suspects_company(&worker->suspects, entry->message->seq);
	facts.no_lease = !worker->parts[hash].owned;
	facts.handover = worker->parts[hash].draining;
	facts.has_deadline = true;
	facts.now_us = now;
	facts.send_until_us = ob_worker_send_until(worker, hash, now);
	return ob_may_send(&facts);
}

bool ob_worker_send(struct ob_relay_worker *worker, bool any)
{
	struct ob_send_facts facts;
	bool worked = false;

	worker->gate = OB_MAY_SEND;
	if (!ob_flight_next(&worker->flight, 0))
		return false;
	facts = facts_of_worker(worker, ob_worker_now(worker));
	worker->gate = ob_may_send(&facts);
	if (worker->gate != OB_MAY_SEND)
		return false;
	if (!make_ready(worker))
		return true;
	for (int i = 0; i < OB_WORKER_RUN; i++) {
		struct ob_entry *entry = choose(worker, any);
		int64_t now = ob_worker_now(worker);

		if (!entry)
			break;
		worker->gate = judge_send(worker, entry, now);
		if (worker->gate != OB_MAY_SEND)
			break;
		bool more = send_one(worker, entry, now);

		worked = worked || !worker->sink_full;
		if (worker->sink_full)
			worker->gate = OB_WHY_SINK_FULL;
		if (!more)
			break;
	}
	return worked;
}
