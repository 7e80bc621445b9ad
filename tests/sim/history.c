/* SPDX-License-Identifier: MIT */
/* The history of a run: its events, their hash, and how a broken rule is shown. */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const kind_names[] = {
	[SIM_EV_INSERT] = "insert",
	[SIM_EV_COMMIT] = "commit",
	[SIM_EV_ROLLBACK] = "rollback",
	[SIM_EV_SEND] = "send",
	[SIM_EV_STORED] = "stored",
	[SIM_EV_ROW] = "row",
	[SIM_EV_LEASE] = "lease",
	[SIM_EV_START] = "start",
	[SIM_EV_CRASH] = "crash",
	[SIM_EV_PAUSE] = "pause",
	[SIM_EV_STOP] = "stop",
	[SIM_EV_LEFT] = "left",
	[SIM_EV_STORE_FAULT] = "store fault",
	[SIM_EV_SINK_DOWN] = "sink down",
	[SIM_EV_SINK_UP] = "sink up",
	[SIM_EV_RESET] = "sink reset",
	[SIM_EV_RESIZE] = "resize",
	[SIM_EV_SEEK] = "seek",
	[SIM_EV_RESTORE] = "restore",
	[SIM_EV_TAKEN] = "taken over",
	[SIM_EV_PHASE] = "phase",
};

static uint64_t fold(uint64_t hash, uint64_t value)
{
	hash ^= value;
	hash *= UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

void sim_note(struct sim *sim, enum sim_event_kind kind, const struct sim_message *message,
	      const struct sim_actor *actor, int64_t a, int64_t b, int64_t c)
{
	struct sim_event event = {
		.at_us = sim_now(sim),
		.kind = kind,
		.message = message ? message->number : 0,
		.actor = actor ? actor->number : 0,
		.a = a,
		.b = b,
		.c = c,
	};

	if (sim->event_count == sim->event_capacity) {
		size_t capacity = sim->event_capacity ? sim->event_capacity * 2 : 4096;
		struct sim_event *events = reallocarray(sim->events, capacity, sizeof(*events));

		if (!events)
			abort();
		sim->events = events;
		sim->event_capacity = capacity;
	}
	sim->events[sim->event_count++] = event;
	sim->hash = fold(sim->hash, (uint64_t)event.at_us);
	sim->hash =
		fold(sim->hash, (uint64_t)kind << 48 ^ (uint64_t)event.message << 24 ^ event.actor);
	sim->hash = fold(sim->hash, (uint64_t)a);
	sim->hash = fold(sim->hash, (uint64_t)b);
	sim->hash = fold(sim->hash, (uint64_t)c);
	sim->clock_of_events++;
}

void sim_break(struct sim *sim, const struct sim_message *message, const char *rule,
	       const char *fmt, ...)
{
	va_list args;

	if (sim->broken)
		return;
	sim->broken = true;
	sim->culprit = message ? message->number : 0;
	(void)snprintf(sim->rule, sizeof(sim->rule), "%s", rule);
	va_start(args, fmt);
	(void)vsnprintf(sim->text, sizeof(sim->text), fmt, args);
	va_end(args);
}

/* ---- ids -------------------------------------------------------------- */

struct ob_uuid sim_id_of(uint32_t number)
{
	struct ob_uuid id = { { [6] = 0x70, [8] = 0x80 } };

	id.b[0] = 1;
	for (int i = 0; i < 4; i++)
		id.b[12 + i] = (uint8_t)(number >> (24 - 8 * i));
	return id;
}

struct sim_message *sim_message_of(struct sim *sim, const struct ob_uuid *id)
{
	uint32_t number = 0;

	for (int i = 0; i < 4; i++)
		number = number << 8 | id->b[12 + i];
	if (number == 0 || number > sim->message_count)
		return NULL;
	return &sim->messages[number];
}

/* ---- showing ---------------------------------------------------------- */

static const char *const state_names[] = {
#define X(name, word, number) [number] = #word,
	OB_STATE_MAP(X)
#undef X
};

static const char *const cause_names[] = { "pushed", "taken", "settled", "operated",
					   "sought", "moved", "retained" };

static void show_details(const struct sim_event *e)
{
	switch ((int)e->kind) {
	case SIM_EV_SEND:
		printf(" partition %lld, the sink says %s%s", (long long)e->a,
		       ob_err_kind_name((enum ob_err_kind)e->b), e->c ? ", but stores it" : "");
		break;
	case SIM_EV_STORED:
		printf(" copy %lld", (long long)e->a);
		break;
	case SIM_EV_ROW:
		printf(" %s: %s, attempts %lld", cause_names[e->a],
		       e->b == 99   ? "gone"
		       : e->b == 98 ? "delivered"
		       : e->b == 97 ? "not delivered"
				    : state_names[e->b],
		       (long long)e->c);
		break;
	case SIM_EV_LEASE:
		printf(" partition %lld, epoch %lld%s", (long long)e->a, (long long)e->b,
		       e->c ? "" : ", nobody's");
		break;
	case SIM_EV_INSERT:
		printf(" transaction %lld, key %lld, priority %lld", (long long)e->a,
		       (long long)e->b, (long long)e->c);
		break;
	default:
		if (e->a || e->b || e->c)
			printf(" %lld %lld %lld", (long long)e->a, (long long)e->b,
			       (long long)e->c);
	}
}

static bool same_lane(const struct sim *sim, uint32_t number)
{
	const struct sim_message *a = &sim->messages[number], *b = &sim->messages[sim->culprit];

	if (number == sim->culprit)
		return true;
	if (sim->plan.relay.ordering == OB_ORDER_PARTITION)
		return a->partition == b->partition;
	return a->key != SIM_NO_KEY && a->key == b->key;
}

static bool is_shown(const struct sim *sim, const struct sim_event *e, bool everything)
{
	if (everything || e->kind == SIM_EV_CRASH || e->kind == SIM_EV_SEEK ||
	    e->kind == SIM_EV_RESTORE || e->kind == SIM_EV_PAUSE || e->kind == SIM_EV_PHASE ||
	    e->kind == SIM_EV_RESIZE || e->kind == SIM_EV_STOP)
		return true;
	if (e->kind == SIM_EV_LEASE || e->kind == SIM_EV_TAKEN)
		return sim->culprit &&
		       sim->messages[sim->culprit].partition % sim->partition_count ==
			       (uint32_t)e->a % sim->partition_count;
	return e->message > 0 && sim->culprit > 0 && same_lane(sim, e->message);
}

void sim_trace(const struct sim *sim, bool everything, size_t max)
{
	size_t shown = 0, from = sim->event_count;

	while (from > 0 && shown < max)
		shown += is_shown(sim, &sim->events[--from], everything);
	for (size_t i = from; i < sim->event_count; i++) {
		const struct sim_event *e = &sim->events[i];

		if (!is_shown(sim, e, everything))
			continue;
		printf("  %10.3f ms  #%zu %s", (double)e->at_us / 1000.0, i, kind_names[e->kind]);
		if (e->actor)
			printf(" by w%u", e->actor);
		if (e->message)
			printf(" m%u", e->message);
		show_details(e);
		printf("\n");
	}
}
