/* SPDX-License-Identifier: MIT */
/*
 * The rules, checked as things happen: who may send, what may be stored when, and which
 * change of a row is allowed to whom.
 *
 *   P1 nothing is lost          P2 nothing rolled back goes out   P3 order within a key
 *   P4 copies only after faults P5 attempts only for verdicts     P6 other keys go on
 *   P7 only the owner writes    lease, state, stored: what the promises rest on
 */
#include "sim.h"

#include <stdlib.h>

enum { BATCHES_IN_MEMORY = 4, STRIKES = 3 };

/* ---- sending ---------------------------------------------------------- */

static void check_right(struct sim *sim, const struct sim_actor *actor, const struct sim_message *m,
			uint32_t partition)
{
	int64_t now = sim->clock.real_us;

	if (!sim->plan.leasing) {
		if (m->claimer != actor || m->claim_until_us <= now)
			sim_break(sim, m, "lease", "w%u sends m%u without a valid claim",
				  actor->number, m->number);
		return;
	}

	const struct sim_lease *lease = &sim->leases[partition % SIM_PARTITIONS_MAX];

	if (!lease->owned || !ob_uuid_eq(&lease->owner, &actor->leaser.owner) ||
	    lease->until_us <= now)
		sim_break(sim, m, "lease", "w%u sends m%u of partition %u, whose lease it has not",
			  actor->number, m->number, partition);
}

struct sim_delivery *sim_check_send(struct sim *sim, struct sim_actor *actor,
				    const struct ob_message *message, uint64_t tag,
				    enum ob_err_kind verdict, bool stored_anyway)
{
	struct sim_message *m = sim_message_of(sim, &message->id);
	struct sim_delivery *d = ob_arena_alloc(&sim->deliveries, sizeof(*d));

	if (!d)
		abort();
	if (!m || m->fate != SIM_COMMITTED) {
		sim_break(sim, m, "P2", "w%u sends a message that was not committed",
			  actor->number);
		return NULL;
	}
	check_right(sim, actor, m, message->partition);
	*d = (struct sim_delivery){
		.next = m->deliveries,
		.actor = actor,
		.tag = tag,
		.verdict = verdict,
		.excused = stored_anyway, /* the acknowledgement is lost */
		.alone = actor->sink_plan.unconfirmed == 0,
		.stores = actor->stores,
	};
	if (!d->alone && actor->last)
		actor->last->alone = false;
	actor->last = d;
	m->deliveries = d;
	m->was_rejected = m->was_rejected || verdict == OB_ERR_REJECT;
	sim_note(sim, SIM_EV_SEND, m, actor, message->partition, verdict, stored_anyway);
	return d;
}

void sim_excuse(struct sim *sim, const struct sim_actor *actor, int64_t partition)
{
	uint32_t in_flight = 0;

	for (uint32_t i = 1; i <= sim->message_count; i++) {
		if (partition >= 0 && sim->messages[i].partition != (uint32_t)partition)
			continue;
		for (struct sim_delivery *d = sim->messages[i].deliveries; d; d = d->next) {
			if (d->actor != actor || d->settled || d->excused)
				continue;
			/* What an operator removed on the way is never settled. */
			in_flight += d->verdict == OB_ERR_NONE && !sim->messages[i].removed;
			d->excused = true;
		}
	}
	if (in_flight > BATCHES_IN_MEMORY * sim->plan.relay.batch_size)
		sim_break(sim, NULL, "P4", "w%u has %u messages in flight, batches are of %u",
			  actor->number, in_flight, sim->plan.relay.batch_size);
}

/* ---- storing ---------------------------------------------------------- */

static bool same_lane(const struct sim *sim, const struct sim_message *a,
		      const struct sim_message *b)
{
	if (sim->plan.relay.ordering == OB_ORDER_PARTITION && !sim->resized)
		return a->partition == b->partition;
	return a->key != SIM_NO_KEY && a->key == b->key;
}

/* Was `a` there, for sure, when `b` was inserted? */
static bool comes_before(const struct sim_message *a, const struct sim_message *b)
{
	if (a->tx == b->tx)
		return a->number < b->number;
	return a->committed_at < b->inserted_at;
}

/* What lets others of its key pass: it was given up, or an operator decided. */
static bool may_be_passed(const struct sim *sim, const struct sim_message *a)
{
	if (a->was_dead || a->removed || a->priority_changed || a->delayed)
		return true;
	/* Where the key goes on behind a dead message, those behind may be under way already. */
	return a->was_rejected && sim->plan.relay.on_dead == OB_ON_DEAD_RELEASE;
}

static void check_order(struct sim *sim, const struct sim_message *b)
{
	if (sim->plan.relay.ordering == OB_ORDER_NONE || b->priority_changed)
		return;
	for (uint32_t i = 1; i <= sim->message_count; i++) {
		const struct sim_message *a = &sim->messages[i];

		if (a == b || a->copies > 0 || a->fate != SIM_COMMITTED ||
		    a->priority != b->priority || !same_lane(sim, a, b))
			continue;
		if (comes_before(a, b) && !may_be_passed(sim, a)) {
			sim_break(sim, b, "P3", "m%u is stored before m%u, which comes first",
				  b->number, a->number);
			return;
		}
	}
}

static void check_copies(struct sim *sim, const struct sim_message *m)
{
	uint32_t plain = 0;

	for (const struct sim_delivery *d = m->deliveries; d; d = d->next)
		plain += d->stored && !d->excused;
	if (plain > 1 || (sim->plan.calm && m->copies > 1))
		sim_break(sim, m, "P4", "m%u is stored %u times, and no fault excuses it",
			  m->number, m->copies);
}

static void check_entry(struct sim *sim, const struct ob_memsink_entry *entry)
{
	struct sim_message *m = sim_message_of(sim, &entry->id);
	struct sim_delivery *d = m ? m->deliveries : NULL;

	while (d && (d->tag != entry->tag || d->actor->name != entry->sender))
		d = d->next;
	if (!d || m->fate != SIM_COMMITTED) {
		sim_break(sim, m, "P2", "the sink holds what nobody sent");
		return;
	}
	if (m->copies == 0)
		check_order(sim, m);
	d->stored = true;
	d->actor->stores++;
	m->copies++;
	sim->counts.stored++;
	sim->counts.duplicates += m->copies > 1;
	sim->counts.late_copies += m->copies > 1 && d->excused;
	sim_note(sim, SIM_EV_STORED, m, d->actor, m->copies, 0, 0);
	check_copies(sim, m);
}

void sim_check_stored(struct sim *sim)
{
	while (sim->log_seen < sim->log.count)
		check_entry(sim, &sim->log.entries[sim->log_seen++]);
}

/* ---- rows ------------------------------------------------------------- */

static void illegal(struct sim *sim, const struct sim_message *m,
		    const struct ob_memdb_change *change)
{
	sim_break(sim, m, "state", "m%u: from %d to %d by cause %d", m->number, change->before,
		  change->after, change->cause);
}

static void check_fence(struct sim *sim, const struct sim_message *m,
			const struct ob_memdb_change *change)
{
	const struct sim_lease *lease = &sim->leases[m->partition % SIM_PARTITIONS_MAX];
	bool ours = sim->plan.leasing ? lease->owned && lease->epoch == change->epoch &&
						ob_uuid_eq(&lease->owner, change->owner)
				      : m->claim_until_us > 0 && m->claimer == sim->current &&
						ob_uuid_eq(&m->token, change->owner);

	if (!ours)
		sim_break(sim, m, "P7", "w%u settles m%u, which is another's by now",
			  sim->current->number, m->number);
}

static void check_published(struct sim *sim, struct sim_message *m)
{
	const struct sim_delivery *d = m->deliveries;

	while (d && !(d->actor == sim->current && d->stored && d->verdict == OB_ERR_NONE))
		d = d->next;
	if (!d)
		sim_break(sim, m, "stored", "m%u is settled as published, but the sink has it not",
			  m->number);
}

/* The newest by this worker from that one on. */
static struct sim_delivery *by_current(const struct sim *sim, struct sim_delivery *d)
{
	while (d && d->actor != sim->current)
		d = d->next;
	return d;
}

/*
 * May it pay for lost connections? Three times it was alone, and each time others had been stored
 * since it was sent before. Where nothing but outages loses connections, no sound message pays.
 */
static struct sim_delivery *find_blame(const struct sim *sim, const struct sim_message *m)
{
	struct sim_delivery *newest = by_current(sim, m->deliveries);
	uint32_t strikes = 0;

	if (m->poison != SIM_POISON_HANG_UP && sim->plan.flaky_hang_up == 0)
		return NULL;
	for (struct sim_delivery *d = newest, *before; d && !d->charged; d = before) {
		before = by_current(sim, d->next);
		/* Behind a failure of its key it was on a lost connection without being sent. */
		strikes += d->alone && (before ? before->stores : 0) < d->stores;
	}
	return newest && newest->alone && strikes >= STRIKES ? newest : NULL;
}

static void check_charge(struct sim *sim, struct sim_message *m,
			 const struct ob_memdb_change *change)
{
	struct sim_delivery *d = m->deliveries;
	bool blamed = false;
	uint32_t max = sim->plan.relay.retry.max_attempts;
	bool is_dead = change->after != OB_STATE_FAILED;

	while (d && (d->actor != sim->current || d->charged ||
		     (d->verdict != OB_ERR_RETRY && d->verdict != OB_ERR_REJECT)))
		d = d->next;
	if (!d) {
		d = find_blame(sim, m);
		blamed = d != NULL;
	}
	if (!d) {
		sim_break(sim, m, "P5", "m%u pays an attempt, but the sink said nothing about it",
			  m->number);
		return;
	}
	d->charged = true;
	d->unheard = sim->current->reply_lost;
	if (change->row->attempts != m->attempts + 1)
		sim_break(sim, m, "P5", "m%u has %u attempts after %u", m->number,
			  change->row->attempts, m->attempts);
	else if (is_dead != (d->verdict == OB_ERR_REJECT || change->row->attempts >= max))
		sim_break(sim, m, "P5", "m%u is %s after attempt %u of %u", m->number,
			  is_dead ? "dead" : "tried again", change->row->attempts, max);
	sim->counts.failed++;
	sim->counts.blamed += blamed;
	sim->counts.blamed_dead += blamed && is_dead;
	sim->counts.dead += is_dead;
	sim->counts.dead_hold += change->after == OB_STATE_DEAD_HOLD;
}

static void check_settled(struct sim *sim, struct sim_message *m,
			  const struct ob_memdb_change *change)
{
	bool deleted = !change->exists;

	if (!sim->current) {
		sim_break(sim, m, "P7", "m%u is settled by nobody", m->number);
		return;
	}
	if (deleted) {
		if (change->before != OB_STATE_PUBLISHED ||
		    sim->plan.relay.after_publish != OB_AFTER_DELETE)
			illegal(sim, m, change);
		return;
	}
	check_fence(sim, m, change);
	if (change->before != OB_STATE_PENDING && change->before != OB_STATE_FAILED &&
	    change->before != OB_STATE_PARKED)
		illegal(sim, m, change);
	m->claim_until_us = 0;
	if (change->after == OB_STATE_PUBLISHED)
		check_published(sim, m);
	else if (change->after != change->before || change->row->attempts != m->attempts)
		check_charge(sim, m, change);
	else
		return; /* a row claim was given back */
	for (struct sim_delivery *d = m->deliveries; d; d = d->next)
		d->settled = d->settled || d->actor == sim->current;
}

static void check_operated(struct sim *sim, struct sim_message *m,
			   const struct ob_memdb_change *change)
{
	enum ob_state before = change->before;
	bool dead = before == OB_STATE_DEAD || before == OB_STATE_DEAD_HOLD;
	bool ok = before != OB_STATE_PUBLISHED;

	switch (sim->verb) {
	case OB_VERB_RETRY:
		ok = (dead || before == OB_STATE_FAILED) && change->after == OB_STATE_PENDING &&
		     change->row->attempts == 0;
		m->attempts = 0;
		break;
	case OB_VERB_SKIP:
		ok = ok && change->after == OB_STATE_DEAD;
		m->removed = true;
		break;
	case OB_VERB_DISCARD:
		ok = ok && !change->exists;
		m->removed = true;
		break;
	case OB_VERB_PRIORITY:
		ok = ok && !dead && change->after == before;
		m->priority_changed = true;
		break;
	}
	if (!ok)
		illegal(sim, m, change);
	m->claim_until_us = 0;
	/* The operator decides over whatever is under way. */
	for (struct sim_delivery *d = m->deliveries; d; d = d->next) {
		d->excused = true;
		/* With attempts at 0 again a repeated settle looks like a first one. */
		if (sim->verb == OB_VERB_RETRY && d->unheard)
			d->charged = false;
	}
}

static void check_claimed(struct sim *sim, struct sim_message *m,
			  const struct ob_memdb_change *change)
{
	bool again = m->claim_until_us > 0 && ob_uuid_eq(&m->token, change->owner);

	if (m->claim_until_us > sim->clock.real_us && !again)
		sim_break(sim, m, "lease", "m%u is claimed twice", m->number);
	if (m->claim_until_us > 0 && !again) {
		sim->counts.claims_over++;
		for (struct sim_delivery *d = m->deliveries; d; d = d->next)
			d->excused = true;
	}
	m->token = *change->owner;
	m->claimer = sim->current;
	m->claim_until_us = change->row->locked_until_us;
}

static void check_pushed(struct sim *sim, struct sim_message *m,
			 const struct ob_memdb_change *change)
{
	m->fate = SIM_COMMITTED;
	m->committed_at = sim->clock_of_events;
	m->seq = change->row->seq;
	m->available_us = change->row->available_at_us;
	if (m->seq < sim->highest_seq)
		sim->counts.late_commits++;
	else
		sim->highest_seq = m->seq;
	sim_note(sim, SIM_EV_COMMIT, m, NULL, m->tx, m->seq, 0);
}

void sim_check_row(void *arg, const struct ob_memdb_change *change)
{
	struct sim *sim = arg;
	struct sim_message *m = sim_message_of(sim, &change->row->id);

	sim_check_stored(sim);
	if (!m)
		abort();
	switch (change->cause) {
	case OB_MEMDB_PUSHED:
		check_pushed(sim, m, change);
		break;
	case OB_MEMDB_CLAIMED:
		check_claimed(sim, m, change);
		break;
	case OB_MEMDB_SETTLED:
		check_settled(sim, m, change);
		break;
	case OB_MEMDB_PARKED:
		sim->counts.parked++;
		if (change->before != OB_STATE_PENDING || change->after != OB_STATE_PARKED)
			illegal(sim, m, change);
		break;
	case OB_MEMDB_RELEASED:
		if (change->before != OB_STATE_PARKED || change->after != OB_STATE_PENDING)
			illegal(sim, m, change);
		break;
	case OB_MEMDB_OPERATED:
		check_operated(sim, m, change);
		break;
	case OB_MEMDB_CLEANED:
		sim->counts.cleaned++;
		if (change->before != OB_STATE_PUBLISHED && change->before != OB_STATE_DEAD)
			illegal(sim, m, change);
		break;
	case OB_MEMDB_MOVED:
		if (change->after != change->before && change->before != OB_STATE_PARKED)
			illegal(sim, m, change);
		break;
	}
	if (change->cause != OB_MEMDB_SETTLED && change->row->attempts != m->attempts)
		sim_break(sim, m, "P5", "m%u has %u attempts, nobody charged them", m->number,
			  change->row->attempts);
	m->exists = change->exists;
	m->state = change->after;
	m->attempts = change->row->attempts;
	m->partition = change->row->partition;
	m->was_dead = m->was_dead || m->state == OB_STATE_DEAD;
	sim_note(sim, SIM_EV_ROW, m, sim->current, change->cause, change->exists ? m->state : 99,
		 m->attempts);
}
