/* SPDX-License-Identifier: MIT */
/* The workers with their leasers: starting, stepping, and all the ways to end. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- store calls concurrent with the worker ---------------------------- */

static void arm(struct sim *sim, const struct sim_actor *actor, struct ob_store *store);
static void disarm(struct sim *sim, const struct sim_actor *actor, struct ob_store *store);

static void call_job(struct sim_thread *thread)
{
	struct sim_actor *actor = thread->actor;
	struct sim *sim = actor->sim;
	struct ob_store_job *job = thread->job;
	struct sim_actor *current = sim->current;
	bool reply_lost = actor->reply_lost;

	sim->current = actor;
	arm(sim, actor, thread->store);
	job->err = (struct ob_err)OB_ERR_INIT;
	job->r = job->call(job, thread->store, &job->err);
	disarm(sim, actor, thread->store);
	sim_check_stored(sim);
	actor->reply_lost = reply_lost;
	sim->current = current;
	thread->called = true;
}

/* The call is made at once and its end told later, or it is made later. */
static bool start_job(struct ob_store_thread *base, struct ob_store_job *job)
{
	struct sim_thread *thread = (struct sim_thread *)base;
	struct sim *sim = thread->actor->sim;

	if (sim_chance(sim, 200))
		return false;
	sim->counts.beside += thread == &thread->actor->settler;
	sim->counts.read_ahead += thread == &thread->actor->read_ahead;
	thread->job = job;
	thread->called = false;
	thread->due_us =
		sim_now(sim) + sim_between(&sim->rng, 0, 1) *
				       sim_between(&sim->rng, 0, sim->healed ? 5000 : 600000);
	if (sim_chance(sim, 300))
		call_job(thread);
	return true;
}

/* With `wait` the worker is gone: what it had begun may happen or not. */
static bool job_ended(struct ob_store_thread *base, bool wait)
{
	struct sim_thread *thread = (struct sim_thread *)base;
	struct sim *sim = thread->actor->sim;

	if (!wait && sim_now(sim) < thread->due_us)
		return false;
	sim->counts.cut_off += wait && thread == &thread->actor->settler;
	if (!thread->called && (!wait || sim_chance(sim, 500)))
		call_job(thread);
	else if (!thread->called)
		thread->job->r = -1;
	thread->job = NULL;
	return true;
}

/* The end of a call wakes the worker, once. */
static void wake_with(struct sim_actor *actor, const struct sim_thread *thread)
{
	if (thread->job && thread->due_us > sim_now(actor->sim) &&
	    actor->worker_wake_us > thread->due_us)
		actor->worker_wake_us = thread->due_us;
}

static struct sim_thread make_thread(struct sim_actor *actor, struct ob_store *store)
{
	return (struct sim_thread){
		.base = { start_job, job_ended },
		.actor = actor,
		.store = store,
	};
}

/* ---- starting --------------------------------------------------------- */

static void must(int r, const struct ob_err *err)
{
	if (r >= 0)
		return;
	(void)fprintf(stderr, "sim: %s\n", err->msg);
	abort();
}

static struct ob_store *connect(struct sim *sim, struct ob_store **ret_inner)
{
	const struct ob_store_fault_plan none = { 0 };
	struct ob_store *inner = NULL, *store = NULL;
	struct ob_err err = OB_ERR_INIT;

	must(ob_store_memory_open(sim->db, &inner, &err), &err);
	must(ob_store_fault_new(inner, &none, &store, &err), &err);
	if (ret_inner)
		*ret_inner = inner;
	return store;
}

static void make_sink(struct sim *sim, struct sim_actor *actor)
{
	const struct sim_plan *plan = &sim->plan;
	struct ob_err err = OB_ERR_INIT;

	actor->sink_plan = (struct ob_memsink_plan){
		.log = &sim->log,
		.sender = actor->name,
		.window = plan->window,
		.ack_polls = plan->ack_polls,
		.acks_per_poll = plan->acks_per_poll,
		.ack_delay_us = plan->ack_delay_us,
		.shuffle = sim_chance(sim, 500) ? ob_rng_next(&sim->rng) | 1 : 0,
		.store_late = plan->store_late,
		.down = sim->sink_down,
		.judge = sim_judge,
		.judge_arg = actor,
	};
	must(ob_memsink_new(plan->sink_ordered ? &ob_sink_memory_ordered : &ob_sink_memory,
			    &actor->sink_plan, &sim->clock.clock, &actor->sink, &err),
	     &err);
}

static void make_engine(struct sim *sim, struct sim_actor *actor, const struct ob_uuid *id)
{
	const struct ob_config_relay *relay = &sim->plan.relay;
	struct ob_err err = OB_ERR_INIT;

	ob_metrics_init(&actor->metrics, id);
	must(ob_lease_view_init(&actor->view, &err), &err);
	ob_leaser_init(&actor->leaser, &(struct ob_leaser_conf){
					       .reader = relay->name,
					       .owner = *id,
					       .hostname = actor->host,
					       .pid = (int32_t)actor->number,
					       .lease_ttl_ms = relay->leasing.lease_ttl_ms,
					       .lease_renew_ms = relay->leasing.lease_renew_ms,
					       .heartbeat_ttl_ms = relay->leasing.heartbeat_ttl_ms,
					       .store = actor->leaser_store,
					       .clock = &sim->clock.clock,
					       .view = &actor->view,
					       .metrics = &actor->metrics,
				       });
	must(ob_worker_new(
		     &(struct ob_worker_conf){
			     .relay = relay,
			     .id = *id,
			     .store = actor->worker_store,
			     .sink = actor->sink,
			     .settler = &actor->settler.base,
			     .read_ahead = &actor->read_ahead.base,
			     .read_ahead_from = 1,
			     .clock = &sim->clock.clock,
			     .view = &actor->view,
			     .metrics = &actor->metrics,
			     .seed = ob_rng_next(&sim->rng),
		     },
		     &actor->worker, &err),
	     &err);
}

void sim_actor_start(struct sim *sim, uint32_t slot)
{
	struct sim_actor *actor;
	struct ob_uuid id;

	if (sim->actor_count + 1 >= SIM_ACTORS_MAX)
		return;
	actor = calloc(1, sizeof(*actor));
	if (!actor)
		abort();
	actor->sim = sim;
	actor->slot = slot;
	actor->number = ++sim->actor_count;
	actor->alive = true;
	sim->actors[actor->number] = actor;
	sim->slots[slot] = actor;
	(void)snprintf(actor->name, sizeof(actor->name), "w%u", actor->number);
	(void)snprintf(actor->host, sizeof(actor->host), "host%u", slot / sim->plan.workers % 2);
	for (size_t i = 0; i < sizeof(id.b); i++)
		id.b[i] = (uint8_t)ob_rng_next(&sim->rng);
	actor->worker_store = connect(sim, NULL);
	actor->leaser_store = connect(sim, &actor->leaser_inner);
	actor->settler_store = connect(sim, NULL);
	actor->settler = make_thread(actor, actor->settler_store);
	actor->read_ahead = make_thread(actor, actor->worker_store);
	make_sink(sim, actor);
	make_engine(sim, actor, &id);
	sim_note(sim, SIM_EV_START, NULL, actor, slot, 0, 0);
}

/* ---- ending ----------------------------------------------------------- */

static void add_counts(struct sim *sim, struct sim_actor *actor)
{
	struct ob_metrics_data data;

	ob_metrics_read(&actor->metrics, &data);
	sim->counts.fenced += data.lost;
	sim->counts.breaker_opened += data.breaker_opened;
	sim->counts.alarms += data.alarms;
}

/* The record stays: deliveries point to it. */
void sim_actor_end(struct sim *sim, struct sim_actor *actor, int64_t back_in_ms)
{
	add_counts(sim, actor);
	ob_worker_free(actor->worker);
	ob_leaser_done(&actor->leaser);
	ob_lease_view_done(&actor->view);
	ob_metrics_done(&actor->metrics);
	ob_sink_free(actor->sink);
	ob_store_free(actor->worker_store);
	ob_store_free(actor->leaser_store);
	ob_store_free(actor->settler_store);
	actor->worker = NULL;
	actor->alive = false;
	sim->slots[actor->slot] = NULL;
	sim->slot_free_us[actor->slot] = sim_now(sim) + back_in_ms * 1000;
}

static bool has_in_flight(const struct sim *sim, const struct sim_actor *actor)
{
	for (uint32_t i = 1; i <= sim->message_count; i++) {
		const struct sim_message *m = &sim->messages[i];

		for (const struct sim_delivery *d = m->deliveries; d; d = d->next) {
			if (d->actor == actor && !sim_is_over(m))
				return true;
		}
	}
	return false;
}

void sim_actor_crash(struct sim *sim, struct sim_actor *actor)
{
	sim->counts.crashes++;
	sim->counts.crashes_in_flight += has_in_flight(sim, actor);
	sim_excuse(sim, actor, -1);
	sim_note(sim, SIM_EV_CRASH, NULL, actor, 0, 0, 0);
	sim_actor_end(sim, actor, sim_between(&sim->rng, 0, 2000));
}

void sim_actor_stop(struct sim *sim, struct sim_actor *actor, enum ob_stop how)
{
	if (actor->leaving)
		return;
	if (how == OB_STOP_NOW) {
		sim_excuse(sim, actor, -1);
		actor->told_now = true;
		sim->counts.stops_now++;
	} else if (!actor->stopping) {
		actor->drain_until_us = sim_now(sim) + sim->plan.relay.shutdown_timeout_ms * 1000;
	}
	actor->stopping = true;
	actor->worker_wake_us = 0;
	sim_note(sim, SIM_EV_STOP, NULL, actor, how, 0, 0);
	ob_worker_stop(actor->worker, how);
}

void sim_was_late(struct sim *sim, struct sim_actor *actor, int64_t us)
{
	if (us < sim->plan.relay.leasing.lease_ttl_ms * 100)
		return;
	for (uint32_t i = 0; i < sim->slot_count; i++) {
		struct sim_actor *one = sim->slots[i];

		if (!one || (actor && one != actor))
			continue;
		one->lost_lease = one->late = true;
		sim_excuse(sim, one, -1);
	}
}

void sim_actor_pause(struct sim *sim, struct sim_actor *actor, int64_t ms, bool worker, bool leaser)
{
	int64_t until = sim_now(sim) + ms * 1000;

	if (worker)
		actor->worker_paused_us = until;
	if (leaser)
		actor->leaser_paused_us = until;
	sim->counts.pauses += ms > sim->plan.relay.leasing.lease_ttl_ms;
	sim_was_late(sim, actor, ms * 1000);
	sim_note(sim, SIM_EV_PAUSE, NULL, actor, ms, worker, leaser);
}

void sim_sink_away(struct sim *sim, struct sim_actor *actor, int64_t ms)
{
	actor->sink_plan.down = true;
	actor->sink_away_us = sim_now(sim) + ms * 1000;
	sim_excuse(sim, actor, -1);
	sim_note(sim, SIM_EV_SINK_DOWN, NULL, actor, ms, 0, 0);
}

void sim_actor_heal(struct sim *sim, struct sim_actor *actor)
{
	actor->worker_paused_us = actor->leaser_paused_us = actor->store_away_us = 0;
	actor->sink_plan.down = false;
	actor->sink_plan.ack_delay_us = sim->plan.ack_delay_us;
	actor->sink_away_us = actor->slow_until_us = 0;
}

/* ---- stepping --------------------------------------------------------- */

bool sim_worker_due(const struct sim *sim, const struct sim_actor *actor)
{
	int64_t now = sim_now(sim);

	if (actor->leaving || now < actor->worker_paused_us)
		return false;
	return actor->worker_wake_us <= now ||
	       atomic_load(&actor->view.version) != actor->view_version;
}

bool sim_leaser_due(const struct sim *sim, const struct sim_actor *actor)
{
	int64_t now = sim_now(sim);

	if (now < actor->leaser_paused_us)
		return false;
	return actor->leaser_wake_us <= now || atomic_load(&actor->view.answers) != actor->answers;
}

/* The next call of the store may fail. */
static void arm(struct sim *sim, const struct sim_actor *actor, struct ob_store *store)
{
	/* A leaser whose connection is gone learns it by its next call. */
	bool away =
		sim_now(sim) < actor->store_away_us || (actor->cut && store == actor->leaser_store);

	if (!away && !sim_chance(sim, sim->healed ? 0 : sim->plan.store_errors))
		return;

	struct ob_store_fault_plan plan = {
		.nth = 1,
		.mode = !away && sim_chance(sim, 500) ? OB_FAULT_AFTER : OB_FAULT_BEFORE,
		.only = ~(UINT64_C(1) << OB_STORE_FAULT_wake_check),
	};

	ob_store_fault_arm(store, &plan);
	sim->current->reply_lost = plan.mode == OB_FAULT_AFTER;
}

/* A fault that did not fire does not wait for a later step. */
static void disarm(struct sim *sim, const struct sim_actor *actor, struct ob_store *store)
{
	const struct ob_store_fault_plan none = { 0 };

	if (ob_store_fault_counted(store).fired) {
		sim_note(sim, SIM_EV_STORE_FAULT, NULL, actor, store == actor->leaser_store, 0, 0);
		sim->counts.store_after += actor->reply_lost;
		sim->counts.store_before += !actor->reply_lost;
	}
	ob_store_fault_arm(store, &none);
	sim->current->reply_lost = false;
}

static void check_reset(struct sim *sim, struct sim_actor *actor)
{
	if (actor->sink_plan.resets == actor->resets)
		return;
	actor->resets = actor->sink_plan.resets;
	sim_note(sim, SIM_EV_RESET, NULL, actor, 0, 0, 0);
	if (!actor->lost_lease && !actor->told_now)
		sim_break(sim, NULL, "P4", "w%u makes its sink forget messages without need",
			  actor->number);
	sim_excuse(sim, actor, -1);
}

/* All that was on a connection that is lost may come twice. */
static void check_losses(struct sim *sim, struct sim_actor *actor)
{
	if (actor->sink_plan.losses == actor->losses)
		return;
	sim->counts.hang_ups += actor->sink_plan.losses - actor->losses;
	actor->losses = actor->sink_plan.losses;
	sim_excuse(sim, actor, -1);
}

/* It gave partitions up: a settle was refused, or it was too late to be sure that they are its. */
static void check_given_up(struct sim *sim, struct sim_actor *actor)
{
	for (size_t i = 0; i < actor->view.count; i++) {
		if (!actor->view.leases[i].lost)
			continue;
		actor->lost_lease = true;
		sim_excuse(sim, actor, actor->view.leases[i].partition);
		if (sim->plan.calm)
			sim_break(sim, NULL, "lease", "w%u gives partition %u up without any fault",
				  actor->number, actor->view.leases[i].partition);
	}
}

void sim_step_worker(struct sim *sim, struct sim_actor *actor)
{
	struct ob_step step;

	if (actor->stopping && actor->drain_until_us > 0 && !actor->told_now &&
	    sim_now(sim) > actor->drain_until_us && !sim->plan.calm)
		sim_actor_stop(sim, actor, OB_STOP_NOW);
	sim->current = actor;
	arm(sim, actor, actor->worker_store);
	actor->view_version = atomic_load(&actor->view.version);
	ob_worker_step(actor->worker, &step);
	disarm(sim, actor, actor->worker_store);
	sim_check_stored(sim);
	check_given_up(sim, actor);
	check_reset(sim, actor);
	check_losses(sim, actor);
	sim->current = NULL;
	actor->worker_wake_us = step.worked ? sim_now(sim) : step.wake_us;
	wake_with(actor, &actor->settler);
	wake_with(actor, &actor->read_ahead);
	if (step.state == OB_WORKER_FAILED && sim->foreign) {
		sim->counts.refusals++;
		sim_actor_end(sim, actor, sim_between(&sim->rng, 100, 2000));
		sim_adopt(sim);
	} else if (step.state == OB_WORKER_FAILED) {
		sim_break(sim, NULL, "state", "w%u failed: %s", actor->number,
			  ob_worker_error(actor->worker)->msg);
	} else if (step.state == OB_WORKER_STOPPED) {
		actor->leaving = true;
		actor->leaser_wake_us = 0;
	}
}

static void leave(struct sim *sim, struct sim_actor *actor)
{
	struct ob_err err = OB_ERR_INIT;

	if (ob_leaser_leave(&actor->leaser, &err) < 0) {
		actor->leaser_wake_us = sim_now(sim) + 50000;
		return;
	}
	actor->stopping = false;
}

void sim_step_leaser(struct sim *sim, struct sim_actor *actor)
{
	bool left = false;

	sim->current = actor;
	arm(sim, actor, actor->leaser_store);
	actor->answers = atomic_load(&actor->view.answers);
	if (actor->leaving) {
		leave(sim, actor);
		left = !actor->stopping;
	} else {
		int64_t wake;
		bool worked = ob_leaser_step(&actor->leaser, &wake);

		actor->leaser_wake_us = worked ? sim_now(sim) : wake;
		actor->late = actor->late && worked;
		if (actor->leaser.failed)
			sim_break(sim, NULL, "state", "the leaser of w%u failed: %s", actor->number,
				  actor->leaser.err.msg);
	}
	disarm(sim, actor, actor->leaser_store);
	actor->cut = false;
	sim_check_leases(sim);
	sim->current = NULL;
	if (left) {
		sim->counts.stops++;
		sim_note(sim, SIM_EV_LEFT, NULL, actor, 0, 0, 0);
		sim_actor_end(sim, actor, sim_between(&sim->rng, 0, 1500));
	}
}
