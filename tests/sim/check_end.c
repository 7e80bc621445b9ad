/* SPDX-License-Identifier: MIT */
/* The rules that hold when everything has come to rest. */
#include "sim.h"

bool sim_is_held(const struct sim *sim, const struct sim_message *message)
{
	enum ob_ordering ordering = (enum ob_ordering)sim->plan.relay.ordering;

	for (uint32_t i = 1; i <= sim->message_count && ordering != OB_ORDER_NONE; i++) {
		const struct sim_message *a = &sim->messages[i];

		if (!a->exists || a->state != OB_STATE_DEAD_HOLD)
			continue;
		if (ordering == OB_ORDER_PARTITION ? a->partition == message->partition
						   : a->key != SIM_NO_KEY && a->key == message->key)
			return true;
	}
	return false;
}

static bool is_over(const struct sim_message *m)
{
	return !m->exists || m->state == OB_STATE_PUBLISHED || m->state == OB_STATE_DEAD ||
	       m->state == OB_STATE_DEAD_HOLD;
}

bool sim_is_drained(const struct sim *sim)
{
	for (uint32_t i = 1; i <= sim->message_count; i++) {
		const struct sim_message *m = &sim->messages[i];

		if (m->fate == SIM_COMMITTED && !is_over(m) && !sim_is_held(sim, m))
			return false;
	}
	return true;
}

void sim_check_end(struct sim *sim)
{
	for (uint32_t i = 1; i <= sim->message_count; i++) {
		const struct sim_message *m = &sim->messages[i];
		bool dead =
			m->exists && (m->state == OB_STATE_DEAD || m->state == OB_STATE_DEAD_HOLD);

		if (m->fate != SIM_COMMITTED) {
			if (m->copies > 0 || m->exists)
				sim_break(sim, m, "P2", "m%u was rolled back and is there",
					  m->number);
			continue;
		}
		if (!is_over(m) && !sim_is_held(sim, m))
			sim_break(sim, m, "P6", "m%u is still in state %d, and nothing holds it",
				  m->number, m->state);
		else if (m->exists && m->state == OB_STATE_PUBLISHED && m->copies == 0)
			sim_break(sim, m, "P1", "m%u is published, the sink has it not", m->number);
		else if (is_over(m) && m->copies == 0 && !dead && !m->removed)
			sim_break(sim, m, "P1", "m%u is lost", m->number);
	}
}
