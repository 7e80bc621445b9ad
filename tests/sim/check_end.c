/* SPDX-License-Identifier: MIT */
/* The rules that hold when everything has come to rest. */
#include "sim.h"

static bool holds(const struct sim *sim, const struct sim_message *a, const struct sim_message *b)
{
	if (!a->exists || !a->row.excepted || a->row.state != OB_STATE_DEAD_HOLD ||
	    a->partition != b->partition)
		return false;
	return sim->plan.relay.ordering == OB_ORDER_PARTITION ||
	       (a->key != SIM_NO_KEY && a->key == b->key);
}

bool sim_is_held(const struct sim *sim, const struct sim_message *message)
{
	for (uint32_t i = 1; i <= sim->message_count; i++) {
		if (holds(sim, &sim->messages[i], message))
			return true;
	}
	return false;
}

bool sim_is_drained(const struct sim *sim)
{
	for (uint32_t i = 1; i <= sim->message_count; i++) {
		const struct sim_message *m = &sim->messages[i];

		if (m->fate == SIM_COMMITTED && !sim_is_over(m) && !sim_is_held(sim, m))
			return false;
	}
	return true;
}

void sim_check_end(struct sim *sim)
{
	for (uint32_t i = 1; i <= sim->message_count; i++) {
		const struct sim_message *m = &sim->messages[i];
		bool dead = m->exists && m->row.excepted;

		if (m->fate != SIM_COMMITTED) {
			if (m->copies > 0 || m->exists)
				sim_break(sim, m, "P2", "m%u was rolled back and is there",
					  m->number);
			continue;
		}
		if (!sim_is_over(m) && !sim_is_held(sim, m))
			sim_break(sim, m, "P6", "m%u is still there, %s %d, and nothing holds it",
				  m->number, m->row.excepted ? "in state" : "not read",
				  m->row.state);
		else if (sim_is_over(m) && m->copies == 0 && !dead && !m->removed && !m->was_dead)
			sim_break(sim, m, "P1", "m%u is lost", m->number);
	}
}
