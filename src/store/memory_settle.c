/* SPDX-License-Identifier: MIT */
/* The memory store: recording what became of messages, fenced by lease or by claim. */
#include "base/utf8.h"
#include "store/memory_impl.h"

/* One settle while it runs. */
struct settling {
	struct ob_memdb *db;
	const struct mem_store *store;
	const struct ob_settle *settle;
	int64_t now;
	bool *lost;    /* of each lease */
	char **errors; /* of each outcome: the text to store, or NULL */
	struct ob_settled done;
	uint64_t published, failed; /* for the throughput */
};

static void settling_done(struct settling *s)
{
	for (size_t i = 0; s->errors && i < s->settle->outcome_count; i++)
		free(s->errors[i]);
}

enum verdict { APPLY, LOST, VANISHED };

/* ---- may it be applied? ---------------------------------------------- */

static bool lease_is_ours(struct settling *s, const struct ob_lease *lease)
{
	const struct mem_lease *held = mem_lease_find(s->db, s->settle->target, lease->partition);

#if MEM_STALE_FENCE
	held = held && held - s->db->leases < 64 ? &s->store->stale[held - s->db->leases] : NULL;
#endif
	if (MEM_UNFENCED_SETTLE)
		return held != NULL;

	/* Expired is still ours as long as nobody took it: then the epoch would differ. */
	return held && held->owned && ob_uuid_eq(&held->owner, &s->settle->owner) &&
	       held->epoch == lease->epoch;
}

/* The lease that covers the partition and is ours, or NULL. */
static const struct ob_lease *lease_of(const struct settling *s, uint32_t partition)
{
	for (size_t i = 0; i < s->settle->lease_count; i++) {
		if (s->settle->leases[i].partition == partition && !s->lost[i])
			return &s->settle->leases[i];
	}
	return NULL;
}

static struct mem_row *row_of(const struct settling *s, const struct ob_message *message)
{
	struct mem_row *row = mem_row_by_id(s->db, &message->id, ob_str(s->settle->target));

	return row && !row->writer && row->m.seq == message->seq ? row : NULL;
}

static enum verdict judge(const struct settling *s, const struct ob_outcome *outcome,
			  const struct mem_row *row)
{
	const struct ob_uuid *token = s->settle->token;

	if (!token && !lease_of(s, outcome->message->partition))
		return LOST;
	if (!row)
		return VANISHED;
	if (token && !(row->claimed && ob_uuid_eq(&row->token, token)))
		return LOST;
	if (outcome->kind == OB_OUTCOME_RELEASE)
		return APPLY;
	if (!row->live || row->m.state == OB_STATE_DEAD_HOLD)
		return VANISHED;
	/* The count of attempts tells a repeat, or an operator's retry, from the first time. */
	if (outcome->kind != OB_OUTCOME_PUBLISHED && row->m.attempts != outcome->message->attempts)
		return VANISHED;
	return APPLY;
}

/* ---- applying -------------------------------------------------------- */

static void set_error(struct mem_row *row, char *error)
{
	free(row->error);
	row->error = error;
	row->m.last_error = ob_str(error);
}

static void publish(struct settling *s, struct mem_row *row, const struct mem_cause *cause)
{
	bool held = mem_holds(row);

	set_error(row, NULL);
	row->m.published_at_us = s->now;
	mem_row_set(s->db, row, OB_STATE_PUBLISHED, cause);
	if (held)
		mem_release(s->db, row);
	if (s->settle->delete_published)
		mem_row_delete(s->db, row, cause);
	s->published++;
}

static void fail(struct settling *s, struct mem_row *row, const struct ob_outcome *outcome,
		 const struct mem_cause *cause)
{
	row->m.attempts++;
	row->m.available_at_us = mem_after(s->now, outcome->delay_ms);
	mem_row_set(s->db, row, OB_STATE_FAILED, cause);
	mem_park(s->db, row, s->settle->ordering);
	s->failed++;
}

static void give_up(struct settling *s, struct mem_row *row, const struct mem_cause *cause)
{
	const struct ob_settle *settle = s->settle;
	bool held = mem_holds(row);
	bool hold = settle->hold_dead && (settle->ordering == OB_ORDER_PARTITION ||
					  (settle->ordering == OB_ORDER_KEY && row->m.key.p));

	row->m.attempts++;
	row->m.published_at_us = s->now;
	mem_row_set(s->db, row, hold ? OB_STATE_DEAD_HOLD : OB_STATE_DEAD, cause);
	if (hold)
		mem_park(s->db, row, settle->ordering);
	else if (held)
		mem_release(s->db, row);
	s->failed++;
}

static void apply(struct settling *s, const struct ob_outcome *outcome, struct mem_row *row)
{
	const struct ob_lease *lease =
		s->settle->token ? NULL : lease_of(s, outcome->message->partition);
	const struct mem_cause cause = {
		.cause = OB_MEMDB_SETTLED,
		.owner = s->settle->token ? s->settle->token : &s->settle->owner,
		.epoch = lease ? lease->epoch : 0,
	};

	if (outcome->kind == OB_OUTCOME_RELEASE && !s->settle->token)
		return;
	mem_row_unclaim(row);
	if (outcome->kind == OB_OUTCOME_RETRY || outcome->kind == OB_OUTCOME_DEAD)
		set_error(row, OB_TAKE(s->errors[outcome - s->settle->outcomes]));
	switch (outcome->kind) {
	case OB_OUTCOME_PUBLISHED:
		publish(s, row, &cause);
		break;
	case OB_OUTCOME_RETRY:
		fail(s, row, outcome, &cause);
		break;
	case OB_OUTCOME_DEAD:
		give_up(s, row, &cause);
		break;
	case OB_OUTCOME_RELEASE:
		mem_row_set(s->db, row, row->m.state, &cause);
		break;
	}
}

/* ---- the transaction ------------------------------------------------- */

/* Everything that can fail, before anything changes. */
static bool prepare(struct settling *s, struct ob_store *store)
{
	const struct ob_settle *settle = s->settle;

	s->lost = mem_scratch(store, settle->lease_count, sizeof(*s->lost));
	s->errors = mem_scratch(store, settle->outcome_count, sizeof(*s->errors));
	if (!s->lost || !s->errors)
		return false;
	for (size_t i = 0; i < settle->outcome_count; i++) {
		const struct ob_outcome *outcome = &settle->outcomes[i];
		struct ob_buf text = OB_BUF_INIT((size_t)4 * OB_LAST_ERROR_MAX);

		if (outcome->kind == OB_OUTCOME_PUBLISHED || outcome->kind == OB_OUTCOME_RELEASE ||
		    !outcome->error.p)
			continue;
		ob_buf_adds(&text, ""); /* an empty text is a text */
		ob_utf8_sanitize(&text, outcome->error, OB_LAST_ERROR_MAX);
		s->errors[i] = ob_buf_take(&text);
		ob_buf_done(&text);
		if (!s->errors[i])
			return false;
	}
	return mem_minute(s->db, settle->target);
}

static void run(struct settling *s)
{
	const struct ob_settle *settle = s->settle;

	for (size_t i = 0; i < settle->lease_count; i++)
		s->lost[i] = !settle->token && !lease_is_ours(s, &settle->leases[i]);
	for (size_t i = 0; i < settle->outcome_count; i++) {
		struct mem_row *row = row_of(s, settle->outcomes[i].message);

		switch (judge(s, &settle->outcomes[i], row)) {
		case APPLY:
			apply(s, &settle->outcomes[i], row);
			s->done.applied++;
			break;
		case LOST:
			s->done.lost++;
			break;
		case VANISHED:
			s->done.vanished++;
			break;
		}
	}
}

int mem_settle(struct ob_store *store, const struct ob_settle *settle, bool *ret_lost,
	       struct ob_settled *ret_settled, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	OB_CLEANUP(settling_done) struct settling s = { .store = mem_of(store), .settle = settle };

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	s.db = db;
	s.now = mem_now(db);
	if (!prepare(&s, store))
		return mem_oom(err);
	run(&s);

	struct ob_minute *minute = mem_minute(db, settle->target);
	minute->published += s.published;
	minute->failed += s.failed;
	if (s.done.applied > 0)
		mem_committed(mem_of(store));
	if (ret_lost && settle->lease_count > 0)
		memcpy(ret_lost, s.lost, settle->lease_count * sizeof(*ret_lost));
	*ret_settled = s.done;
	return 0;
}
