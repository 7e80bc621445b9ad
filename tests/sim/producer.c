/* SPDX-License-Identifier: MIT */
/* Those who write messages, and the operator who meddles with them. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

enum { PASSERS = 4, PASSERS_US = 300000 };

/* ---- producers -------------------------------------------------------- */

/*
 * The first half of the keys stands for aggregates that are locked by the transaction that writes
 * them; the others are written by anyone at any time.
 */
static bool is_locked_key(const struct sim *sim, int32_t key)
{
	return (uint32_t)key < (sim->plan.keys + 1) / 2;
}

static int32_t choose_key(struct sim *sim, int32_t writer)
{
	for (int tries = 0; tries < 4; tries++) {
		int32_t key = (int32_t)ob_rng_below(&sim->rng, sim->plan.keys);

		if (!is_locked_key(sim, key))
			return key;
		if (sim->locked_by[key] < 0 || sim->locked_by[key] == writer) {
			sim->locked_by[key] = writer;
			return key;
		}
	}
	return SIM_NO_KEY;
}

static void fail_hard(const char *doing, const struct ob_err *err)
{
	(void)fprintf(stderr, "sim: %s: %s\n", doing, err->msg);
	abort();
}

static void draw_message(struct sim *sim, struct sim_message *m, int32_t writer)
{
	const struct sim_plan *plan = &sim->plan;

	*m = (struct sim_message){ .number = sim->message_count, .key = SIM_NO_KEY };
	if (!sim_chance(sim, 50))
		m->key = choose_key(sim, writer);
	if (sim_chance(sim, 60))
		m->priority = (int32_t)sim_between(&sim->rng, -2, 2);
	/*
	 * A sink that keeps order fails what follows a failure of a key. With ordering partition
	 * lanes go each for itself, so a key that is in two of them may pay for the other.
	 */
	if (plan->relay.ordering == OB_ORDER_PARTITION && m->key != SIM_NO_KEY)
		m->priority = m->key % 5 == 4 ? m->key % 2 * 2 - 1 : 0;
	m->delayed = sim_chance(sim, 40);
	if (sim->hang_up_count < plan->poison_hang_up && sim_chance(sim, 30)) {
		m->poison = SIM_POISON_HANG_UP;
		sim->hang_up_count++;
		/* What is behind it must leave room in memory for what could pass. */
		if (4 * plan->relay.batch_size < SIM_MESSAGES_MAX)
			m->key = SIM_NO_KEY;
	} else if (sim_chance(sim, plan->poison_reject)) {
		m->poison = SIM_POISON_REJECT;
	} else if (sim_chance(sim, plan->poison_retry)) {
		m->poison = SIM_POISON_RETRY;
		m->turns_bad = (uint32_t)sim_between(&sim->rng, 1, 8);
	}
	sim->counts.priorities += m->priority != 0;
	sim->counts.delayed += m->delayed;
}

static void push(struct sim *sim, struct sim_writer *writer, bool passer)
{
	static const char payload[] = "{\"n\":\"abcdefghijklmnopqrstuvwxyz0123456789\"}";
	struct sim_message *m = &sim->messages[++sim->message_count];
	struct ob_err err = OB_ERR_INIT;
	char id[OB_UUID_TEXT_SIZE], aggregate[16];
	size_t index;

	if (passer)
		*m = (struct sim_message){ .number = sim->message_count, .key = SIM_NO_KEY };
	else
		draw_message(sim, m, (int32_t)(writer - sim->writers));
	m->tx = writer->tx;
	m->inserted_at = sim->clock_of_events;

	struct ob_uuid uuid = sim_id_of(m->number);

	ob_uuid_format(&uuid, id);
	(void)snprintf(aggregate, sizeof(aggregate), "k%d", (int)m->key);

	const struct outbox_message message = {
		.aggregate_type = "order",
		.aggregate_id = m->key == SIM_NO_KEY ? NULL : aggregate,
		.event_type = "Changed",
		.payload = payload,
		.id = id,
		.priority = m->priority,
		.delay_ms = m->delayed ? (uint64_t)sim_between(&sim->rng, 1, 2000) : 0,
	};

	if (ob_store_tx_push(writer->store, &message, 1, NULL, &index, &err) < 0)
		fail_hard("pushing", &err);
	writer->pushed[writer->count++] = m->number;
	sim_note(sim, SIM_EV_INSERT, m, NULL, m->tx, m->key, m->priority);
}

/* False: another one writes, where only one may. */
static bool begin(struct sim *sim, struct sim_writer *writer)
{
	struct ob_err err = OB_ERR_INIT;

	int r = ob_store_tx_begin(writer->store, &err);
	if (r == OUTBOX_EBUSY)
		return false;
	if (r < 0)
		fail_hard("beginning", &err);
	writer->open = true;
	writer->slow = sim_chance(sim, 100);
	sim->counts.slow_writers += writer->slow;
	writer->tx = ++sim->tx_count;
	writer->left = (uint32_t)sim_between(&sim->rng, 1, 5);
	if (sim_chance(sim, 40)) {
		writer->left = (uint32_t)sim_between(&sim->rng, 5, SIM_PUSHED_MAX);
		sim->counts.large_commits += writer->left > sim->plan.relay.batch_size;
	}
	writer->count = 0;
	return true;
}

/* The rows' own fate is told by the history: see sim_check_row(). */
static void end(struct sim *sim, struct sim_writer *writer, bool commit)
{
	struct ob_err err = OB_ERR_INIT;

	if (ob_store_tx_end(writer->store, commit, &err) < 0)
		fail_hard("ending", &err);
	writer->open = false;
	sim->counts.commits += commit;
	sim->counts.rollbacks += !commit;
	for (uint32_t i = 0; i < writer->count; i++) {
		struct sim_message *m = &sim->messages[writer->pushed[i]];

		if (!commit) {
			m->fate = SIM_ROLLED_BACK;
			sim_note(sim, SIM_EV_ROLLBACK, m, NULL, m->tx, 0, 0);
		} else if (m->fate != SIM_COMMITTED) {
			sim_break(sim, m, "P1", "m%u was committed and is not there", m->number);
		}
	}
	for (uint32_t key = 0; key < sim->plan.keys; key++) {
		if (sim->locked_by[key] == (int32_t)(writer - sim->writers))
			sim->locked_by[key] = -1;
	}
}

void sim_roll_back_all(struct sim *sim)
{
	for (uint32_t i = 0; i < SIM_WRITERS; i++) {
		if (sim->writers[i].open)
			end(sim, &sim->writers[i], false);
	}
}

bool sim_producing(const struct sim *sim)
{
	for (uint32_t i = 0; i < SIM_WRITERS; i++) {
		if (sim->writers[i].open)
			return true;
	}
	return sim->message_count < sim->plan.messages;
}

void sim_produce(struct sim *sim)
{
	struct sim_writer *writer = &sim->writers[ob_rng_below(&sim->rng, SIM_WRITERS)];

	if (!writer->open) {
		if (sim->message_count < sim->plan.messages)
			(void)begin(sim, writer);
		return;
	}
	if (writer->left > 0 && sim->message_count < SIM_MESSAGES_MAX) {
		writer->left--;
		push(sim, writer, false);
	} else if (sim_chance(sim, writer->slow ? 30 : 400) ||
		   sim->message_count >= sim->plan.messages) {
		end(sim, writer, ob_rng_below(&sim->rng, 100) >= sim->plan.rollback);
	}
}

static bool hangs_up(const struct sim *sim)
{
	for (uint32_t i = 1; i <= sim->message_count && sim->hang_up_count > 0; i++) {
		const struct sim_message *m = &sim->messages[i];

		/* One that an operator gave up, or that is held by now, may still be in a worker's
		 * memory. */
		if (m->poison == SIM_POISON_HANG_UP && m->fate == SIM_COMMITTED && m->exists &&
		    (!sim_is_over(m) || m->removed))
			return true;
	}
	return false;
}

void sim_produce_passers(struct sim *sim)
{
	struct sim_writer *writer = &sim->writers[0];

	if (sim->cured || sim_now(sim) < sim->passed_us + PASSERS_US || !hangs_up(sim) ||
	    sim->message_count + PASSERS > SIM_MESSAGES_MAX + SIM_PASSERS_MAX)
		return;
	sim->passed_us = sim_now(sim);
	if (!begin(sim, writer))
		return;
	for (int i = 0; i < PASSERS; i++)
		push(sim, writer, true);
	end(sim, writer, true);
	sim->counts.passers += PASSERS;
}

/* ---- the operator ----------------------------------------------------- */

static void operate(struct sim *sim, struct ob_operate *operate)
{
	struct ob_err err = OB_ERR_INIT;
	uint64_t changed, refused;

	sim->verb = operate->verb;
	if (ob_store_operate(sim->observer, operate, &changed, &refused, &err) < 0)
		fail_hard("operating", &err);
	switch (operate->verb) {
	case OB_VERB_RETRY:
		sim->counts.op_retry += changed;
		break;
	case OB_VERB_SKIP:
		sim->counts.op_skip += changed;
		break;
	case OB_VERB_DISCARD:
		sim->counts.op_discard += changed;
		break;
	case OB_VERB_DELIVER: /* not drawn */
		break;
	}
}

/* An operator looks at what is in trouble more often than at what is well. */
static struct sim_message *choose_row(struct sim *sim)
{
	struct sim_message *m = NULL;

	for (int tries = 0; tries < 12 && sim->message_count > 0; tries++) {
		m = &sim->messages[1 + ob_rng_below(&sim->rng, sim->message_count)];
		if (m->exists && m->row.excepted)
			return m;
	}
	return m;
}

void sim_operate(struct sim *sim)
{
	static const enum ob_verb verbs[] = { OB_VERB_RETRY, OB_VERB_RETRY, OB_VERB_RETRY,
					      OB_VERB_SKIP,  OB_VERB_SKIP,  OB_VERB_DISCARD };
	const struct sim_message *m = choose_row(sim);
	uint64_t verb = ob_rng_below(&sim->rng, sizeof(verbs) / sizeof(verbs[0]));

	if (!m)
		return;

	struct ob_uuid id = sim_id_of(m->number);
	struct ob_operate op = {
		.verb = verbs[verb],
		.filter = { .reader = sim->plan.relay.name, .id = &id },
	};

	operate(sim, &op);
}

void sim_operate_dead(struct sim *sim, enum ob_verb verb)
{
	struct ob_operate op = { .verb = verb,
				 .filter = { .reader = sim->plan.relay.name,
					     .views = 1U << OB_VIEW_DEAD } };

	operate(sim, &op);
}
