/* SPDX-License-Identifier: MIT */
/*
 * The PostgreSQL store: recording what became of messages, fenced by lease or by claim.
 * The short way is for messages that were all published and were untroubled: one round
 * trip. Everything else looks at its rows first, locked, and takes two.
 */
#include "base/utf8.h"
#include "store/postgres.h"

#include <stdlib.h>

/* The native code of the statement `publish` when a row does not apply. */
static const char not_simple[] = "22012";

/* Statements of the long way, each with the rows that it is for. */
struct changes {
	struct ob_pgarray published, unclaimed;
	struct ob_pgarray failed, statuses, delays, errors;
	struct ob_pgarray park;
	struct pg_freed freed;
};

/* One settle while it runs. */
struct settling {
	struct pg_store *s;
	const struct ob_settle *settle;
	struct ob_pgarray partitions, epochs; /* of the leases */
	bool ours[OB_PARTITIONS_MAX];         /* partitions whose lease is ours */
	bool park[OB_PARTITIONS_MAX];         /* partitions in which a row began to hold */
	struct changes to;
	struct ob_settled done;
	uint64_t published, failed; /* for the throughput */
	struct ob_buf text;
	bool *seen; /* rows of the long way that have an outcome */
};

/* ---- keys that rows stopped holding ---------------------------------- */

void pg_freed_begin(struct pg_freed *freed)
{
	ob_pgarray_begin(&freed->targets, OB_PG_TEXT);
	ob_pgarray_begin(&freed->partitions, OB_PG_INT8);
	ob_pgarray_begin(&freed->keys, OB_PG_TEXT);
	freed->count = 0;
}

void pg_freed_add(struct pg_freed *freed, struct ob_str target, int64_t partition,
		  struct ob_str key)
{
	ob_pgarray_str(&freed->targets, target);
	ob_pgarray_int(&freed->partitions, partition);
	ob_pgarray_str(&freed->keys, key);
	freed->count++;
}

int pg_freed_release(struct pg_store *s, struct pg_freed *freed, struct ob_err *err)
{
	struct pg_params p = { 0 };

	if (freed->count == 0)
		return 0;
	pg_array(&p, &freed->targets);
	pg_array(&p, &freed->partitions);
	pg_array(&p, &freed->keys);
	int r = pg_add(s, PG_release_keys, &p, err);
	p.count = 2;
	return r < 0 ? r : pg_add(s, PG_release_partitions, &p, err);
}

void pg_freed_done(struct pg_freed *freed)
{
	ob_pgarray_done(&freed->targets);
	ob_pgarray_done(&freed->partitions);
	ob_pgarray_done(&freed->keys);
}

/* ---- the fence ------------------------------------------------------- */

static void list_leases(struct settling *g)
{
	ob_pgarray_begin(&g->partitions, OB_PG_INT8);
	ob_pgarray_begin(&g->epochs, OB_PG_INT8);
	for (size_t i = 0; i < g->settle->lease_count; i++) {
		ob_pgarray_int(&g->partitions, g->settle->leases[i].partition);
		ob_pgarray_int(&g->epochs, (int64_t)g->settle->leases[i].epoch);
	}
}

static int send_fence(struct settling *g, struct ob_err *err)
{
	struct pg_params p = { 0 };

	pg_text(&p, g->settle->target);
	pg_uuid(&p, &g->settle->owner);
	pg_array(&p, &g->partitions);
	pg_array(&p, &g->epochs);
	return pg_add(g->s, PG_fence, &p, err);
}

static void read_fence(struct settling *g, const PGresult *result)
{
	int rows = PQntuples(result);

	for (int row = 0; row < rows; row++) {
		int64_t partition = pg_get_int(result, row, 0);

		if (partition >= 0 && partition < OB_PARTITIONS_MAX)
			g->ours[partition] = true;
	}
}

static bool is_ours(const struct settling *g, uint32_t partition)
{
	return g->settle->token || (partition < OB_PARTITIONS_MAX && g->ours[partition]);
}

static void tell_lost(const struct settling *g, bool *ret_lost)
{
	for (size_t i = 0; ret_lost && i < g->settle->lease_count; i++)
		ret_lost[i] = !is_ours(g, g->settle->leases[i].partition);
}

/* ---- the short way --------------------------------------------------- */

static bool is_leased(const struct ob_settle *settle, uint32_t partition)
{
	for (size_t i = 0; i < settle->lease_count; i++) {
		if (settle->leases[i].partition == partition)
			return true;
	}
	return false;
}

static bool is_simple(const struct ob_settle *settle)
{
	if (settle->token)
		return false;
	for (size_t i = 0; i < settle->outcome_count; i++) {
		const struct ob_message *m = settle->outcomes[i].message;

		if (settle->outcomes[i].kind != OB_OUTCOME_PUBLISHED ||
		    m->state != OB_STATE_PENDING || !is_leased(settle, m->partition))
			return false;
	}
	return true;
}

static int by_seq(const void *a, const void *b)
{
	const struct ob_message *x = *(const struct ob_message *const *)a;
	const struct ob_message *y = *(const struct ob_message *const *)b;

	return (x->seq > y->seq) - (x->seq < y->seq);
}

static int add_publish(struct settling *g, const struct ob_message **messages, struct ob_err *err)
{
	const struct ob_settle *settle = g->settle;
	struct ob_pgarray seqs = { 0 }, ids = { 0 };
	struct pg_params p = { 0 };

	ob_pgarray_begin(&seqs, OB_PG_INT8);
	ob_pgarray_begin(&ids, OB_PG_UUID);
	for (size_t i = 0; i < settle->outcome_count; i++)
		messages[i] = settle->outcomes[i].message;
	qsort(messages, settle->outcome_count, sizeof(const struct ob_message *), by_seq);
	for (size_t i = 0; i < settle->outcome_count; i++) {
		ob_pgarray_int(&seqs, messages[i]->seq);
		ob_pgarray_uuid(&ids, &messages[i]->id);
	}
	pg_array(&p, &seqs);
	pg_array(&p, &ids);
	pg_text(&p, settle->target);
	pg_uuid(&p, &settle->owner);
	pg_array(&p, &g->partitions);
	pg_array(&p, &g->epochs);
	int r = pg_add(g->s, settle->delete_published ? PG_publish_delete : PG_publish, &p, err);
	ob_pgarray_done(&seqs);
	ob_pgarray_done(&ids);
	return r;
}

static int send_publish(struct settling *g, struct ob_err *err)
{
	const struct ob_message **messages =
		calloc(g->settle->outcome_count, sizeof(const struct ob_message *));

	if (!messages)
		return pg_oom("settling", err);
	int r = add_publish(g, messages, err);
	free(messages);
	return r;
}

static int add_count(struct settling *g, struct ob_err *err)
{
	struct pg_params p = { 0 };

	if (g->published + g->failed == 0)
		return 0;
	pg_text(&p, g->settle->target);
	pg_int(&p, (int64_t)g->published);
	pg_int(&p, (int64_t)g->failed);
	return pg_add(g->s, PG_count_minute, &p, err);
}

/* 1: it was enough; 0: the long way must be taken. */
static int settle_simple(struct settling *g, struct ob_err *err)
{
	int r = pg_begin_batch(g->s, !g->s->settle_durable, err);

	if (r < 0)
		return r;
	r = send_fence(g, err);
	if (r == 0)
		r = send_publish(g, err);
	g->published = g->settle->outcome_count;
	if (r == 0)
		r = add_count(g, err);
	r = pg_finish(g->s, r, err);
	if (r < 0) {
		g->published = 0;
		return strcmp(err->native, not_simple) == 0 ? 0 : r;
	}
	read_fence(g, g->s->results[0]);
	g->done.applied = (uint32_t)g->settle->outcome_count;
	return 1;
}

/* ---- the long way: one outcome --------------------------------------- */

/* A row as it is now, locked, in the result of rows_state. */
struct row {
	enum ob_state state;
	uint32_t attempts;
	int64_t partition;
	struct ob_str key, target;
	bool claimed;
	struct ob_uuid token, id;
};

static bool holds(enum ob_state state)
{
	return state == OB_STATE_FAILED || state == OB_STATE_DEAD_HOLD;
}

static bool is_open(enum ob_state state)
{
	return state == OB_STATE_PENDING || state == OB_STATE_FAILED || state == OB_STATE_PARKED;
}

static struct row read_row(const PGresult *rows, int at)
{
	struct row row = {
		.state = (enum ob_state)pg_get_int(rows, at, 1),
		.attempts = (uint32_t)pg_get_int(rows, at, 2),
		.partition = pg_get_int(rows, at, 3),
		.key = pg_get_str(rows, at, 4),
		.target = pg_get_str(rows, at, 5),
	};

	row.claimed = pg_get_uuid(rows, at, 6, &row.token);
	(void)pg_get_uuid(rows, at, 7, &row.id);
	return row;
}

enum verdict { APPLY, LOST, VANISHED };

static enum verdict judge(const struct settling *g, const struct ob_outcome *outcome,
			  const struct row *row)
{
	const struct ob_uuid *token = g->settle->token;

	if (!ob_uuid_eq(&row->id, &outcome->message->id))
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

static void apply_failure(struct settling *g, const struct ob_outcome *outcome,
			  const struct row *row)
{
	const struct ob_settle *settle = g->settle;
	bool lane = settle->ordering == OB_ORDER_PARTITION ||
		    (settle->ordering == OB_ORDER_KEY && row->key.p);
	enum ob_state state = outcome->kind == OB_OUTCOME_RETRY ? OB_STATE_FAILED
			      : settle->hold_dead && lane       ? OB_STATE_DEAD_HOLD
								: OB_STATE_DEAD;

	if (holds(state) && lane && row->partition >= 0 && row->partition < OB_PARTITIONS_MAX)
		g->park[row->partition] = true;
	if (!holds(state) && holds(row->state))
		pg_freed_add(&g->to.freed, row->target, row->partition, row->key);
	ob_pgarray_int(&g->to.failed, outcome->message->seq);
	ob_pgarray_int(&g->to.statuses, state);
	ob_pgarray_int(&g->to.delays, pg_us(outcome->delay_ms));
	if (outcome->error.p) {
		ob_buf_clear(&g->text);
		ob_utf8_sanitize(&g->text, outcome->error, OB_LAST_ERROR_MAX);
		ob_pgarray_str(&g->to.errors, ob_buf_view(&g->text));
		g->to.errors.data.failed |= g->text.failed;
	} else {
		ob_pgarray_null(&g->to.errors);
	}
	g->failed++;
}

static void apply(struct settling *g, const struct ob_outcome *outcome, const struct row *row)
{
	switch (outcome->kind) {
	case OB_OUTCOME_PUBLISHED:
		if (holds(row->state))
			pg_freed_add(&g->to.freed, row->target, row->partition, row->key);
		ob_pgarray_int(&g->to.published, outcome->message->seq);
		g->published++;
		break;
	case OB_OUTCOME_RETRY:
	case OB_OUTCOME_DEAD:
		apply_failure(g, outcome, row);
		break;
	case OB_OUTCOME_RELEASE:
		if (g->settle->token)
			ob_pgarray_int(&g->to.unclaimed, outcome->message->seq);
		break;
	}
}

static void settle_one(struct settling *g, const struct ob_outcome *outcome, const PGresult *rows)
{
	int at = pg_find_row(rows, outcome->message->seq);
	enum verdict verdict = VANISHED;

	if (!is_ours(g, outcome->message->partition)) {
		verdict = LOST;
	} else if (at >= 0 && g->seen[at]) {
		/* A second outcome of one row finds the first one's work. */
		verdict = g->settle->token ? LOST : VANISHED;
	} else if (at >= 0) {
		struct row row = read_row(rows, at);

		verdict = judge(g, outcome, &row);
		if (verdict == APPLY)
			apply(g, outcome, &row);
		g->seen[at] = verdict == APPLY;
	}
	g->done.applied += verdict == APPLY;
	g->done.lost += verdict == LOST;
	g->done.vanished += verdict == VANISHED;
}

/* ---- the long way: the transaction ----------------------------------- */

static int look(struct settling *g, struct ob_err *err)
{
	struct ob_pgarray seqs = { 0 };
	struct pg_params p = { 0 };

	int r = pg_begin_batch(g->s, !g->s->settle_durable, err);
	if (r < 0)
		return r;
	if (!g->settle->token)
		r = send_fence(g, err);
	ob_pgarray_begin(&seqs, OB_PG_INT8);
	for (size_t i = 0; i < g->settle->outcome_count; i++)
		ob_pgarray_int(&seqs, g->settle->outcomes[i].message->seq);
	pg_array(&p, &seqs);
	if (r == 0)
		r = pg_add(g->s, PG_rows_state, &p, err);
	ob_pgarray_done(&seqs);
	if (r < 0) {
		pg_rollback(g->s);
		return r;
	}
	return pg_flush(g->s, err);
}

static int decide(struct settling *g, struct ob_err *err)
{
	int last = g->s->result_count - 1;
	const PGresult *rows = g->s->results[last];

	g->seen = calloc((size_t)PQntuples(rows) + 1, sizeof(*g->seen));
	if (!g->seen)
		return pg_oom("settling", err);
	if (last > 0)
		read_fence(g, g->s->results[0]);
	for (size_t i = 0; i < g->settle->outcome_count; i++)
		settle_one(g, &g->settle->outcomes[i], rows);
	for (int64_t partition = 0; partition < OB_PARTITIONS_MAX; partition++) {
		if (g->park[partition])
			ob_pgarray_int(&g->to.park, partition);
	}
	return 0;
}

static int add_for(struct pg_store *s, enum pg_id id, struct ob_pgarray *rows, struct ob_err *err)
{
	struct pg_params p = { 0 };

	if (rows->count == 0)
		return 0;
	pg_array(&p, rows);
	return pg_add(s, id, &p, err);
}

static int add_failed(struct settling *g, struct ob_err *err)
{
	struct pg_params p = { 0 };

	if (g->to.failed.count == 0)
		return 0;
	pg_array(&p, &g->to.failed);
	pg_array(&p, &g->to.statuses);
	pg_array(&p, &g->to.delays);
	pg_array(&p, &g->to.errors);
	return pg_add(g->s, PG_rows_failed, &p, err);
}

static int add_park(struct settling *g, struct ob_err *err)
{
	struct pg_params p = { 0 };

	if (g->to.park.count == 0)
		return 0;
	pg_text(&p, g->settle->target);
	pg_array(&p, &g->to.park);
	return pg_add(g->s,
		      g->settle->ordering == OB_ORDER_PARTITION ? PG_park_partitions : PG_park_keys,
		      &p, err);
}

/* Behind all outcomes: first what began to hold, then what was let go. */
static int change(struct settling *g, struct ob_err *err)
{
	enum pg_id published = g->settle->delete_published ? PG_rows_delete : PG_rows_published;
	int r = add_for(g->s, published, &g->to.published, err);

	if (r == 0)
		r = add_for(g->s, PG_rows_unclaim, &g->to.unclaimed, err);
	if (r == 0)
		r = add_failed(g, err);
	if (r == 0)
		r = add_park(g, err);
	if (r == 0)
		r = pg_freed_release(g->s, &g->to.freed, err);
	return r < 0 ? r : add_count(g, err);
}

static int settle_long(struct settling *g, struct ob_err *err)
{
	int r = look(g, err);

	if (r < 0)
		return r;
	r = decide(g, err);
	return pg_finish(g->s, r < 0 ? r : change(g, err), err);
}

static void begin_changes(struct changes *to)
{
	ob_pgarray_begin(&to->published, OB_PG_INT8);
	ob_pgarray_begin(&to->unclaimed, OB_PG_INT8);
	ob_pgarray_begin(&to->failed, OB_PG_INT8);
	ob_pgarray_begin(&to->statuses, OB_PG_INT8);
	ob_pgarray_begin(&to->delays, OB_PG_INT8);
	ob_pgarray_begin(&to->errors, OB_PG_TEXT);
	ob_pgarray_begin(&to->park, OB_PG_INT8);
	pg_freed_begin(&to->freed);
}

static void end_changes(struct changes *to)
{
	struct ob_pgarray *const all[] = { &to->published, &to->unclaimed, &to->failed,
					   &to->statuses,  &to->delays,    &to->errors,
					   &to->park };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		ob_pgarray_done(all[i]);
	pg_freed_done(&to->freed);
}

int pg_settle(struct ob_store *store, const struct ob_settle *settle, bool *ret_lost,
	      struct ob_settled *ret_settled, struct ob_err *err)
{
	struct settling g = {
		.s = (struct pg_store *)store,
		.settle = settle,
		.text = OB_BUF_INIT((size_t)4 * OB_LAST_ERROR_MAX),
	};

	list_leases(&g);
	begin_changes(&g.to);
	int r = is_simple(settle) ? settle_simple(&g, err) : 0;
	if (r == 0)
		r = settle_long(&g, err);
	pg_clear(g.s);
	end_changes(&g.to);
	ob_pgarray_done(&g.partitions);
	ob_pgarray_done(&g.epochs);
	ob_buf_done(&g.text);
	free(g.seen);
	if (r < 0)
		return r;
	tell_lost(&g, ret_lost);
	*ret_settled = g.done;
	return 0;
}
