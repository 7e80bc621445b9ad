/* SPDX-License-Identifier: MIT */
/*
 * The rules, checked as things happen: who may send, what may be stored when, and which
 * change of a row is allowed to whom.
 *
 *   P1 nothing is lost          P2 nothing rolled back goes out   P3 order within a key
 *   P4 copies only after faults P5 attempts only for verdicts     P6 other keys go on
 *   P7 only the owner records   lease, state, stored, restore: what the promises rest on
 */
#include "sim.h"

#include <stdlib.h>

enum { BATCHES_UNRECORDED = 8, STRIKES = 3 };

/* ---- sending ---------------------------------------------------------- */

/* False: its lease was taken away before its time, and it does not know. */
static bool check_right(struct sim *sim, const struct sim_actor *actor, const struct sim_message *m,
			uint32_t partition)
{
	/* As it counts them: it may not know yet that they were resized. */
	uint32_t hash = partition % actor->view.partition_count % SIM_PARTITIONS_MAX;
	const struct sim_lease *lease = &sim->leases[hash];
	int64_t now = sim->clock.real_us;
	bool ours = lease->owned && ob_uuid_eq(&lease->owner, &actor->leaser.owner) &&
		    lease->until_us > now;

	if (!ours && actor->robbed_until_us[hash] <= now)
		sim_break(sim, m, "lease", "w%u sends m%u of partition %u, whose lease it has not",
			  actor->number, m->number, partition);
	return ours;
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
	bool ours = check_right(sim, actor, m, message->partition);
	*d = (struct sim_delivery){
		.next = m->deliveries,
		.actor = actor,
		.tag = tag,
		.verdict = verdict,
		/* the acknowledgement is lost, or the lease may be */
		.excused = stored_anyway || !ours || actor->late,
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

bool sim_is_over(const struct sim_message *message)
{
	const struct ob_memdb_state *row = &message->row;

	return !message->exists || row->delivered ||
	       (row->excepted && (row->state == OB_STATE_DEAD || row->state == OB_STATE_DEAD_HOLD ||
				  row->state == OB_STATE_DISCARDED));
}

void sim_excuse(struct sim *sim, const struct sim_actor *actor, int64_t partition)
{
	uint32_t unrecorded = 0;

	for (uint32_t i = 1; i <= sim->message_count; i++) {
		struct sim_message *m = &sim->messages[i];
		bool counted = false;

		if (!m->exists || m->row.delivered ||
		    (partition >= 0 && m->partition % sim->partition_count != (uint32_t)partition))
			continue;
		for (struct sim_delivery *d = m->deliveries; d; d = d->next) {
			if (d->actor != actor || d->excused)
				continue;
			counted = counted || d->verdict == OB_ERR_NONE;
			d->excused = true;
		}
		unrecorded += counted && !sim_is_over(m);
	}
	if (unrecorded > BATCHES_UNRECORDED * sim->plan.relay.batch_size)
		sim_break(sim, NULL, "P4",
			  "w%u has %u messages that are not recorded, batches "
			  "are of %u",
			  actor->number, unrecorded, sim->plan.relay.batch_size);
}

/* ---- storing ---------------------------------------------------------- */

static int lane_of(const struct sim_message *m)
{
	return m->priority == 0 ? 0 : m->priority > 0 ? 1 : 2;
}

static bool same_queue(const struct sim *sim, const struct sim_message *a,
		       const struct sim_message *b)
{
	if (lane_of(a) != lane_of(b))
		return false;
	if (sim->plan.relay.ordering == OB_ORDER_PARTITION) {
		/* Adopting makes queues of keys: it does not know the order of a reader. */
		if (a->adopted || b->adopted)
			return false;
		if (!sim->resized)
			return a->partition == b->partition;
	}
	return a->key != SIM_NO_KEY && a->key == b->key;
}

/* Was `a` there, for sure, when `b` was inserted? */
static bool comes_before(const struct sim_message *a, const struct sim_message *b)
{
	if (a->tx == b->tx)
		return a->number < b->number;
	return a->committed_at < b->inserted_at;
}

/* What has a time of its own, or was brought back from the dead, has no place in the order. */
static bool has_no_place(const struct sim *sim, const struct sim_message *m)
{
	return (m->delayed && !sim->plan.relay.hold_delayed) || m->was_dead || m->removed;
}

/* What lets others of its key pass: it was given up, or an operator decided. */
static bool may_be_passed(const struct sim *sim, const struct sim_message *a)
{
	if (has_no_place(sim, a))
		return true;
	/* Where the key goes on after a dead message, those after it may be under way already. */
	return a->was_rejected && sim->plan.relay.on_dead == OB_ON_DEAD_RELEASE;
}

static void check_order(struct sim *sim, const struct sim_message *b)
{
	if (sim->plan.relay.ordering == OB_ORDER_NONE || has_no_place(sim, b))
		return;
	for (uint32_t i = 1; i <= sim->message_count; i++) {
		const struct sim_message *a = &sim->messages[i];

		if (a == b || a->copies > 0 || a->fate != SIM_COMMITTED || !same_queue(sim, a, b))
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

	/* An operator brought it back while it was under way: a copy was wanted. */
	if (m->brought_back)
		return;
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

/* ---- outcomes --------------------------------------------------------- */

static void illegal(struct sim *sim, const struct sim_message *m,
		    const struct ob_memdb_change *change)
{
	sim_break(sim, m, "state", "m%u: from %d/%d/%d to %d/%d/%d by cause %d", m->number,
		  change->before.delivered, change->before.excepted, change->before.state,
		  change->after.delivered, change->after.excepted, change->after.state,
		  change->cause);
}

static void check_published(struct sim *sim, const struct sim_message *m)
{
	const struct sim_delivery *d = m->deliveries;

	while (d && !(d->actor == sim->current && d->stored && d->verdict == OB_ERR_NONE))
		d = d->next;
	if (!d)
		sim_break(sim, m, "stored", "m%u is recorded as published, but the sink has it not",
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
		/* After a failure of its key it was on a lost connection without being sent. */
		strikes += d->alone && (before ? before->stores : 0) < d->stores;
	}
	return newest && newest->alone && strikes >= STRIKES ? newest : NULL;
}

static void check_charge(struct sim *sim, struct sim_message *m,
			 const struct ob_memdb_change *change)
{
	struct sim_delivery *d = m->deliveries;
	bool blamed = false;
	uint32_t max = sim->plan.relay.retry.max_attempts, attempts = change->after.attempts;
	bool is_dead = change->after.state != OB_STATE_FAILED;

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
	if (attempts != m->row.attempts + 1)
		sim_break(sim, m, "P5", "m%u has %u attempts after %u", m->number, attempts,
			  m->row.attempts);
	else if (is_dead != (d->verdict == OB_ERR_REJECT || attempts >= max))
		sim_break(sim, m, "P5", "m%u is %s after attempt %u of %u", m->number,
			  is_dead ? "dead" : "tried again", attempts, max);
	sim->counts.failed++;
	sim->counts.blamed += blamed;
	sim->counts.blamed_dead += blamed && is_dead;
	sim->counts.dead += is_dead;
	sim->counts.dead_hold += change->after.state == OB_STATE_DEAD_HOLD;
}

/* Parked, spilled or delayed: it costs nothing. */
static void check_waiting(struct sim *sim, const struct sim_message *m,
			  const struct ob_memdb_change *change)
{
	bool under_way = by_current(sim, m->deliveries) != NULL;

	if (change->after.attempts != m->row.attempts)
		sim_break(sim, m, "P5", "m%u waits, and has %u attempts after %u", m->number,
			  change->after.attempts, m->row.attempts);
	if (change->after.state == OB_STATE_DELAYED && !m->delayed)
		illegal(sim, m, change);
	if (change->before.excepted)
		return;
	sim->counts.waited += change->after.state == OB_STATE_DELAYED;
	sim->counts.spilled += change->after.state == OB_STATE_WAITING && under_way;
	sim->counts.parked += change->after.state == OB_STATE_WAITING && !under_way;
}

static void check_settled(struct sim *sim, struct sim_message *m,
			  const struct ob_memdb_change *change)
{
	const struct ob_memdb_state *before = &change->before, *after = &change->after;
	bool open = !before->excepted || before->state == OB_STATE_WAITING ||
		    before->state == OB_STATE_FAILED || before->state == OB_STATE_DELAYED;

	if (!sim->current) {
		sim_break(sim, m, "P7", "m%u is settled by nobody", m->number);
		return;
	}
	if (!ob_uuid_eq(change->owner, &sim->takers[m->partition]))
		sim_break(sim, m, "P7", "w%u settles m%u, which is another's by now",
			  sim->current->number, m->number);
	if (before->delivered)
		illegal(sim, m, change);
	else if (!after->excepted) /* out: the exception is gone, or progress has passed it */
		check_published(sim, m);
	else if (!open)
		illegal(sim, m, change);
	else if (after->state == OB_STATE_WAITING || after->state == OB_STATE_DELAYED)
		check_waiting(sim, m, change);
	else if (after->state == OB_STATE_FAILED || after->state == OB_STATE_DEAD ||
		 after->state == OB_STATE_DEAD_HOLD)
		check_charge(sim, m, change);
	else
		illegal(sim, m, change);
}

/* ---- operators -------------------------------------------------------- */

static void check_operated(struct sim *sim, struct sim_message *m,
			   const struct ob_memdb_change *change)
{
	const struct ob_memdb_state *before = &change->before, *after = &change->after;
	bool dead = before->excepted &&
		    (before->state == OB_STATE_DEAD || before->state == OB_STATE_DEAD_HOLD);
	bool failed = before->excepted && before->state == OB_STATE_FAILED;
	bool ok = !before->delivered && after->excepted;

	switch (sim->verb) {
	case OB_VERB_RETRY:
		ok = ok && (dead || failed) && after->state == OB_STATE_WAITING &&
		     after->attempts == 0;
		/* Its worker may give it up meanwhile, and the key goes on. */
		m->was_dead = m->brought_back = true;
		break;
	case OB_VERB_SKIP:
		ok = ok && after->state == OB_STATE_DEAD;
		m->removed = true;
		break;
	case OB_VERB_DISCARD:
		ok = ok && after->state == OB_STATE_DISCARDED;
		m->removed = true;
		break;
	case OB_VERB_DELIVER: /* not among what the simulated operator does */
		ok = false;
		break;
	}
	if (!ok)
		illegal(sim, m, change);
	/* The operator decides over whatever is under way. */
	for (struct sim_delivery *d = m->deliveries; d; d = d->next) {
		d->excused = true;
		/* With attempts at 0 again a repeated settle looks like a first one. */
		if (sim->verb == OB_VERB_RETRY && d->unheard)
			d->charged = false;
	}
}

/* The reader was moved back: what it had after that place comes again. */
static void check_sought(struct sim *sim, struct sim_message *m,
			 const struct ob_memdb_change *change)
{
	if (change->after.excepted)
		illegal(sim, m, change);
	/* It committed late, with a number before the new place: passed over by decree. */
	m->removed = m->removed || change->after.delivered;
	m->was_dead = m->was_dead || change->before.excepted;
	for (struct sim_delivery *d = m->deliveries; d; d = d->next) {
		d->excused = true;
		d->charged = d->charged && !d->unheard;
	}
}

static void check_retained(struct sim *sim, struct sim_message *m,
			   const struct ob_memdb_change *change)
{
	const struct ob_memdb_state *before = &change->before;

	if (change->exists) { /* an exception is forgotten */
		if (!change->after.delivered || !before->excepted ||
		    (before->state != OB_STATE_DEAD && before->state != OB_STATE_DISCARDED))
			illegal(sim, m, change);
		m->removed = true;
		return;
	}
	sim->counts.retained++;
	if (!before->delivered)
		sim_break(sim, m, "P1", "m%u is removed from the log before it is out", m->number);
}

static void check_moved(struct sim *sim, struct sim_message *m,
			const struct ob_memdb_change *change)
{
	/* Only adopting changes a row: what was not delivered waits as an exception. */
	if (!sim->foreign || change->before.delivered || change->before.excepted ||
	    !change->after.excepted || change->after.state != OB_STATE_WAITING)
		illegal(sim, m, change);
	m->adopted = true;
}

static void check_pushed(struct sim *sim, struct sim_message *m,
			 const struct ob_memdb_change *change)
{
	m->fate = SIM_COMMITTED;
	m->committed_at = sim->clock_of_events;
	m->seq = change->row->seq;
	m->partition = change->row->partition;
	if (m->seq < sim->highest_seq)
		sim->counts.late_commits++;
	else
		sim->highest_seq = m->seq;
	sim_note(sim, SIM_EV_COMMIT, m, NULL, m->tx, m->seq, 0);
}

static void check_taken(struct sim *sim, const struct ob_memdb_change *change)
{
	if (sim->foreign)
		sim_break(sim, NULL, "restore", "a worker goes on in a database that is not its");
	sim->takers[change->partition] = *change->owner;
	sim_note(sim, SIM_EV_TAKEN, NULL, sim->current, change->partition, 0, 0);
}

void sim_check_row(void *arg, const struct ob_memdb_change *change)
{
	struct sim *sim = arg;
	struct sim_message *m = change->row ? sim_message_of(sim, &change->row->id) : NULL;

	sim_check_stored(sim);
	if (change->cause == OB_MEMDB_TAKEN) {
		check_taken(sim, change);
		return;
	}
	if (!m)
		abort();
	switch (change->cause) {
	case OB_MEMDB_PUSHED:
		check_pushed(sim, m, change);
		break;
	case OB_MEMDB_SETTLED:
		check_settled(sim, m, change);
		break;
	case OB_MEMDB_OPERATED:
		check_operated(sim, m, change);
		break;
	case OB_MEMDB_SOUGHT:
		check_sought(sim, m, change);
		break;
	case OB_MEMDB_MOVED:
		check_moved(sim, m, change);
		break;
	case OB_MEMDB_RETAINED:
		check_retained(sim, m, change);
		break;
	case OB_MEMDB_TAKEN:
		break;
	}
	m->exists = change->exists;
	m->row = change->after;
	m->was_dead = m->was_dead || (m->row.excepted && m->row.state == OB_STATE_DEAD);
	sim_note(sim, SIM_EV_ROW, m, sim->current, change->cause,
		 !m->exists         ? 99
		 : m->row.delivered ? 98
		 : m->row.excepted  ? (int64_t)m->row.state
				    : 97,
		 m->row.attempts);
}

static bool learn_partition(void *arg, const struct ob_message *row)
{
	struct sim *sim = arg;
	struct sim_message *m = sim_message_of(sim, &row->id);

	if (m)
		m->partition = row->partition;
	return true;
}

void sim_learn_partitions(struct sim *sim)
{
	ob_memdb_each(sim->db, learn_partition, sim);
}
