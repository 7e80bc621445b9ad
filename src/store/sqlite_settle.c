/* SPDX-License-Identifier: MIT */
/* The SQLite store: recording what became of messages, fenced by lease or by claim. */
#include "base/cleanup.h"
#include "base/utf8.h"
#include "store/sqlite.h"

/* One settle while it runs. */
struct settling {
	struct lite_store *s;
	const struct ob_settle *settle;
	int64_t now;
	enum lite_id fast;                 /* the statement of the untroubled way */
	bool ours[OB_PARTITIONS_MAX];      /* partitions whose lease is ours, */
	uint64_t epoch[OB_PARTITIONS_MAX]; /* and with which epoch */
	bool park[OB_PARTITIONS_MAX];      /* partitions in which a row began to hold */
	struct lite_freed freed;
	struct ob_settled done;
	uint64_t published, failed; /* for the throughput */
	struct ob_buf text;
};

/* ---- rows and keys, also for operators ------------------------------- */

int lite_look(struct lite_store *s, int64_t seq, struct lite_row *ret_row, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = lite_prepare(s, LITE_row_state, &stmt, err);

	*ret_row = (struct lite_row){ 0 };
	if (r < 0)
		return r;
	lite_bind_int(stmt, ":seq", seq);
	r = lite_step(s, LITE_row_state, err);
	if (r <= 0)
		return r;
	/* The statement stays on its row, so that the texts stay valid. */
	*ret_row = (struct lite_row){
		.exists = true,
		.state = (enum ob_state)sqlite3_column_int(stmt, 0),
		.attempts = (uint32_t)sqlite3_column_int64(stmt, 1),
		.partition = (uint32_t)sqlite3_column_int64(stmt, 2),
		.key = lite_str(stmt, 3),
		.target = lite_str(stmt, 4),
	};
	ret_row->claimed = ob_uuid_scan(lite_str(stmt, 5), &ret_row->token);
	(void)ob_uuid_scan(lite_str(stmt, 6), &ret_row->id);
	return 0;
}

struct lite_freed_key {
	struct lite_freed_key *next;
	struct ob_str target, key;
	uint32_t partition;
};

void lite_freed_init(struct lite_freed *freed)
{
	*freed = (struct lite_freed){ .arena = OB_ARENA_INIT(SIZE_MAX / 2) };
}

void lite_freed_done(struct lite_freed *freed)
{
	ob_arena_done(&freed->arena);
}

int lite_freed_add(struct lite_freed *freed, const struct lite_row *row, struct ob_err *err)
{
	struct lite_freed_key *key = ob_arena_alloc(&freed->arena, sizeof(*key));

	if (!key || !ob_arena_copy(&freed->arena, row->target, &key->target) ||
	    !ob_arena_copy(&freed->arena, row->key, &key->key))
		return lite_oom("releasing a key", err);
	key->partition = row->partition;
	key->next = freed->list;
	freed->list = key;
	return 0;
}

static int run_on_lane(struct lite_store *s, enum lite_id id, struct ob_str target,
		       uint32_t partition, struct ob_str key, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = lite_prepare(s, id, &stmt, err);

	if (r < 0)
		return r;
	lite_bind_str(stmt, ":target", target);
	lite_bind_int(stmt, ":partition", partition);
	lite_bind_str(stmt, ":key", key);
	r = lite_run(s, id, err);
	return r < 0 ? r : 0;
}

int lite_freed_release(struct lite_store *s, const struct lite_freed *freed, struct ob_err *err)
{
	int r = 0;

	for (const struct lite_freed_key *k = freed->list; k && r == 0; k = k->next) {
		if (k->key.p)
			r = run_on_lane(s, LITE_release_key, k->target, k->partition, k->key, err);
		if (r == 0)
			r = run_on_lane(s, LITE_release_partition, k->target, k->partition,
					OB_STR_NULL, err);
	}
	return r;
}

/* ---- the fence ------------------------------------------------------- */

/* Inside the write transaction nobody can take a lease: SQLite has one writer. */
static int check_lease(struct settling *g, const struct ob_lease *lease, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	struct ob_uuid owner;
	int r = lite_prepare(g->s, LITE_fence, &stmt, err);

	if (r < 0)
		return r;
	lite_bind_text(stmt, ":target", g->settle->target);
	lite_bind_int(stmt, ":partition", lease->partition);
	r = lite_step(g->s, LITE_fence, err);
	if (r < 0)
		return r;
	/* Expired is still ours as long as nobody took it: then the epoch would differ. */
	bool ours = r > 0 && ob_uuid_scan(lite_str(stmt, 0), &owner) &&
		    ob_uuid_eq(&owner, &g->settle->owner) &&
		    (uint64_t)sqlite3_column_int64(stmt, 1) == lease->epoch;
	lite_reset(g->s, LITE_fence);
	if (ours && lease->partition < OB_PARTITIONS_MAX) {
		g->ours[lease->partition] = true;
		g->epoch[lease->partition] = lease->epoch;
	}
	return 0;
}

static int fence(struct settling *g, struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; !g->settle->token && i < g->settle->lease_count && r == 0; i++)
		r = check_lease(g, &g->settle->leases[i], err);
	return r;
}

static bool is_lost(const struct settling *g, const struct ob_lease *lease)
{
	return !g->settle->token &&
	       (lease->partition >= OB_PARTITIONS_MAX || !g->ours[lease->partition] ||
		g->epoch[lease->partition] != lease->epoch);
}

static bool lost_by_lease(const struct settling *g, const struct ob_message *message)
{
	return !g->settle->token &&
	       (message->partition >= OB_PARTITIONS_MAX || !g->ours[message->partition]);
}

/* ---- one outcome ----------------------------------------------------- */

static bool holds(enum ob_state state)
{
	return state == OB_STATE_FAILED || state == OB_STATE_DEAD_HOLD;
}

static bool is_open(enum ob_state state)
{
	return state == OB_STATE_PENDING || state == OB_STATE_FAILED || state == OB_STATE_PARKED;
}

enum verdict { APPLY, LOST, VANISHED };

static enum verdict judge(const struct settling *g, const struct ob_outcome *outcome,
			  const struct lite_row *row)
{
	const struct ob_uuid *token = g->settle->token;

	if (!row->exists || !ob_uuid_eq(&row->id, &outcome->message->id))
		return VANISHED;
	if (token && !(row->claimed && ob_uuid_eq(&row->token, token)))
		return LOST;
	if (outcome->kind == OB_OUTCOME_RELEASE)
		return APPLY;
	if (!is_open(row->state))
		return VANISHED;
	/* The count of attempts tells a repeat, or an operator's retry, from the first time. */
	if (outcome->kind != OB_OUTCOME_PUBLISHED && row->attempts != outcome->message->attempts)
		return VANISHED;
	return APPLY;
}

static int run_on_row(struct settling *g, enum lite_id id, int64_t seq, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = lite_prepare(g->s, id, &stmt, err);

	if (r < 0)
		return r;
	lite_bind_int(stmt, ":now", g->now);
	lite_bind_int(stmt, ":seq", seq);
	r = lite_run(g->s, id, err);
	return r < 0 ? r : 0;
}

static int write_failure(struct settling *g, const struct ob_outcome *outcome, enum ob_state state,
			 struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = lite_prepare(g->s, LITE_row_failed, &stmt, err);

	if (r < 0)
		return r;
	lite_bind_int(stmt, ":seq", outcome->message->seq);
	lite_bind_int(stmt, ":status", state);
	if (state == OB_STATE_FAILED)
		lite_bind_int(stmt, ":due_at", g->now + lite_us(outcome->delay_ms));
	else
		lite_bind_int(stmt, ":died_at", g->now);
	if (outcome->error.p) {
		ob_buf_clear(&g->text);
		ob_utf8_sanitize(&g->text, outcome->error, OB_LAST_ERROR_MAX);
		if (g->text.failed)
			return lite_oom("settling", err);
		lite_bind_str(stmt, ":error", ob_buf_view(&g->text));
	}
	r = lite_run(g->s, LITE_row_failed, err);
	g->failed++;
	return r < 0 ? r : 0;
}

static int settle_published(struct settling *g, const struct lite_row *row, int64_t seq,
			    struct ob_err *err)
{
	int r = holds(row->state) ? lite_freed_add(&g->freed, row, err) : 0;

	if (r == 0)
		r = run_on_row(g,
			       g->settle->delete_published ? LITE_row_delete : LITE_row_published,
			       seq, err);
	g->published++;
	return r;
}

static int settle_failed(struct settling *g, const struct ob_outcome *outcome,
			 const struct lite_row *row, struct ob_err *err)
{
	const struct ob_settle *settle = g->settle;
	bool lane = settle->ordering == OB_ORDER_PARTITION ||
		    (settle->ordering == OB_ORDER_KEY && row->key.p);
	enum ob_state state = outcome->kind == OB_OUTCOME_RETRY ? OB_STATE_FAILED
			      : settle->hold_dead && lane       ? OB_STATE_DEAD_HOLD
								: OB_STATE_DEAD;
	int r = 0;

	if (holds(state) && lane && row->partition < OB_PARTITIONS_MAX)
		g->park[row->partition] = true;
	if (!holds(state) && holds(row->state))
		r = lite_freed_add(&g->freed, row, err);
	return r < 0 ? r : write_failure(g, outcome, state, err);
}

static int apply(struct settling *g, const struct ob_outcome *outcome, const struct lite_row *row,
		 struct ob_err *err)
{
	switch (outcome->kind) {
	case OB_OUTCOME_PUBLISHED:
		return settle_published(g, row, outcome->message->seq, err);
	case OB_OUTCOME_RETRY:
	case OB_OUTCOME_DEAD:
		return settle_failed(g, outcome, row, err);
	case OB_OUTCOME_RELEASE:
		return g->settle->token
			       ? run_on_row(g, LITE_row_unclaim, outcome->message->seq, err)
			       : 0;
	}
	return 0;
}

/* The untroubled way: 1 when it was enough. */
static int publish_fast(struct settling *g, const struct ob_message *message, struct ob_err *err)
{
	sqlite3_stmt *stmt = g->s->stmt[g->fast];
	char text[OB_UUID_TEXT_SIZE];

	lite_bind_int(stmt, ":seq", message->seq);
	lite_bind_id(g->s, stmt, &message->id, text);
	int r = lite_run(g->s, g->fast, err);
	if (r == 1)
		g->published++;
	return r;
}

static int settle_one(struct settling *g, const struct ob_outcome *outcome, struct ob_err *err)
{
	const struct ob_message *message = outcome->message;
	struct lite_row row;
	int r = 0;

	if (lost_by_lease(g, message)) {
		g->done.lost++;
		return 0;
	}
	if (outcome->kind == OB_OUTCOME_PUBLISHED)
		r = publish_fast(g, message, err);
	if (r != 0) {
		g->done.applied += r > 0;
		return r < 0 ? r : 0;
	}
	r = lite_look(g->s, message->seq, &row, err);
	if (r < 0)
		return r;
	enum verdict verdict = judge(g, outcome, &row);
	if (verdict == APPLY)
		r = apply(g, outcome, &row, err);
	lite_reset(g->s, LITE_row_state);
	g->done.applied += verdict == APPLY;
	g->done.lost += verdict == LOST;
	g->done.vanished += verdict == VANISHED;
	return r;
}

/* ---- the transaction ------------------------------------------------- */

static int prepare_fast(struct settling *g, struct ob_err *err)
{
	static const enum lite_id ids[2][2] = {
		{ LITE_publish, LITE_publish_delete },
		{ LITE_publish_claimed, LITE_publish_claimed_delete },
	};
	sqlite3_stmt *stmt;

	g->fast = ids[g->settle->token != NULL][g->settle->delete_published];
	int r = lite_prepare(g->s, g->fast, &stmt, err);
	if (r < 0)
		return r;
	lite_bind_int(stmt, ":now", g->now);
	if (g->settle->token)
		lite_bind_uuid(stmt, ":token", g->settle->token);
	return 0;
}

/* Behind all outcomes: first what began to hold, then what was let go. */
static int move_others(struct settling *g, struct ob_err *err)
{
	enum lite_id park =
		g->settle->ordering == OB_ORDER_PARTITION ? LITE_park_partition : LITE_park_keys;
	struct ob_str target = ob_str(g->settle->target);
	int r = 0;

	for (uint32_t p = 0; p < OB_PARTITIONS_MAX && r == 0; p++) {
		if (g->park[p])
			r = run_on_lane(g->s, park, target, p, OB_STR_NULL, err);
	}
	return r < 0 ? r : lite_freed_release(g->s, &g->freed, err);
}

static int count_minute(struct settling *g, struct ob_err *err)
{
	sqlite3_stmt *stmt;

	if (g->published + g->failed == 0)
		return 0;
	int r = lite_prepare(g->s, LITE_count_minute, &stmt, err);
	if (r < 0)
		return r;
	lite_bind_text(stmt, ":target", g->settle->target);
	lite_bind_int(stmt, ":now", g->now);
	lite_bind_int(stmt, ":published", (int64_t)g->published);
	lite_bind_int(stmt, ":failed", (int64_t)g->failed);
	r = lite_run(g->s, LITE_count_minute, err);
	return r < 0 ? r : 0;
}

static int settle_all(struct settling *g, struct ob_err *err)
{
	int r = fence(g, err);

	if (r == 0)
		r = prepare_fast(g, err);
	for (size_t i = 0; i < g->settle->outcome_count && r == 0; i++)
		r = settle_one(g, &g->settle->outcomes[i], err);
	if (r == 0)
		r = move_others(g, err);
	return r < 0 ? r : count_minute(g, err);
}

/*
 * A settle that a power cut undoes is only sent again, and what producers have committed stays as
 * durable as it was: their commits, before or after, sync all of the log.
 */
static int settle_relaxed(struct settling *g, struct ob_err *err)
{
	struct lite_store *s = g->s;
	bool relax = !s->settle_durable && s->db && !s->in_tx;
	struct ob_err ignored = OB_ERR_INIT;

	if (relax)
		(void)lite_simple(s, LITE_synchronous_normal, &ignored);
	int r = lite_begin(s, err);
	if (r == 0)
		r = lite_end(s, settle_all(g, err), err);
	if (relax && s->db && lite_set_synchronous(s, &ignored) < 0)
		s->broken = true; /* a new connection begins with what was asked for */
	return r;
}

int lite_settle(struct ob_store *store, const struct ob_settle *settle, bool *ret_lost,
		struct ob_settled *ret_settled, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct settling g = {
		.s = s,
		.settle = settle,
		.now = lite_now(s),
		.text = OB_BUF_INIT((size_t)4 * OB_LAST_ERROR_MAX),
	};

	lite_freed_init(&g.freed);
	int r = settle_relaxed(&g, err);
	lite_freed_done(&g.freed);
	ob_buf_done(&g.text);
	if (r < 0)
		return r;
	for (size_t i = 0; ret_lost && i < settle->lease_count; i++)
		ret_lost[i] = is_lost(&g, &settle->leases[i]);
	*ret_settled = g.done;
	return 0;
}
