/* SPDX-License-Identifier: MIT */
/* The MySQL store: recording what became of messages, fenced by lease or by claim. */
#include "base/cleanup.h"
#include "base/utf8.h"
#include "store/mysql.h"

/* One settle while it runs. */
struct settling {
	struct my_store *s;
	const struct ob_settle *settle;
	bool *ret_lost;
	bool plain;     /* everything was published, and the rows should be as they were fetched */
	bool otherwise; /* they are not */
	struct ob_arena arena;
	bool ours[OB_PARTITIONS_MAX]; /* partitions whose lease is ours */
	struct my_rows rows;          /* the outcomes' rows, locked */
	bool *done_row;               /* of rows: settled by an earlier outcome of this call */
	int64_t *published, *released;
	size_t published_count, released_count;
	struct my_keys keys;
	struct ob_settled done;
	uint64_t failed; /* for the throughput */
	struct ob_buf text;
};

/* ---- the fence ------------------------------------------------------- */

static int read_fence(struct settling *g, struct my_query *q, const struct ob_lease *leases,
		      size_t count, struct ob_err *err)
{
	int r = my_open(g->s, q, err);

	while (r >= 0 && (r = my_step(g->s, q, err)) > 0) {
		uint32_t partition = (uint32_t)my_int(q, 0);
		struct ob_uuid owner;
		bool same =
			ob_uuid_scan(my_str(q, 1), &owner) && ob_uuid_eq(&owner, &g->settle->owner);

		/* Expired is still ours as long as nobody took it: then the epoch would differ. */
		for (size_t i = 0; same && i < count; i++) {
			if (leases[i].partition == partition && partition < OB_PARTITIONS_MAX &&
			    (uint64_t)my_int(q, 2) == leases[i].epoch)
				g->ours[partition] = true;
		}
	}
	return r;
}

/* Locks the lease rows until the commit: a takeover waits for us, or we for it. */
static int fence(struct settling *g, struct ob_err *err)
{
	const struct ob_settle *settle = g->settle;
	int64_t partitions[MY_LIST_MAX];
	struct my_query *q;
	int r = 0;

	for (size_t done = 0; !settle->token && done < settle->lease_count && r == 0;
	     done += MY_LIST_MAX) {
		size_t count = settle->lease_count - done;

		if (count > MY_LIST_MAX)
			count = MY_LIST_MAX;
		for (size_t i = 0; i < count; i++)
			partitions[i] = settle->leases[done + i].partition;
		r = my_prepare(g->s, MY_fence, count, &q, err);
		if (r < 0)
			break;
		my_bind_text(q, "target", settle->target);
		my_bind_list(q, "partitions", partitions, count);
		r = read_fence(g, q, settle->leases + done, count, err);
	}
	for (size_t i = 0; g->ret_lost && i < settle->lease_count; i++) {
		uint32_t partition = settle->leases[i].partition;

		g->ret_lost[i] =
			!settle->token && (partition >= OB_PARTITIONS_MAX || !g->ours[partition]);
	}
	return r;
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
			  const struct my_row *row)
{
	const struct ob_uuid *token = g->settle->token;

	if (!row || !ob_uuid_eq(&row->id, &outcome->message->id))
		return VANISHED;
	bool settled = g->done_row[row - (const struct my_row *)(const void *)g->rows.data];
	if (token && (settled || !row->has_token || !ob_uuid_eq(&row->token, token)))
		return LOST;
	if (outcome->kind == OB_OUTCOME_RELEASE)
		return APPLY;
	if (settled || !is_open(row->state))
		return VANISHED;
	/* The count of attempts tells a repeat, or an operator's retry, from the first time. */
	if (outcome->kind != OB_OUTCOME_PUBLISHED && row->attempts != outcome->message->attempts)
		return VANISHED;
	return APPLY;
}

static int write_failure(struct settling *g, const struct ob_outcome *outcome, enum ob_state state,
			 struct ob_err *err)
{
	struct my_query *q;
	int r = my_prepare(g->s, MY_row_failed, 1, &q, err);

	if (r < 0)
		return r;
	my_bind_int(q, "seq", outcome->message->seq);
	my_bind_int(q, "status", state);
	if (state == OB_STATE_FAILED)
		my_bind_int(q, "delay", my_us(outcome->delay_ms));
	if (outcome->error.p) {
		ob_buf_clear(&g->text);
		ob_utf8_sanitize(&g->text, outcome->error, OB_LAST_ERROR_MAX);
		if (g->text.failed)
			return my_oom("settling", err);
		my_bind_str(q, "error", ob_buf_view(&g->text));
	}
	r = my_run(g->s, q, err);
	g->failed++;
	return r < 0 ? r : 0;
}

static int settle_failed(struct settling *g, const struct ob_outcome *outcome,
			 const struct my_row *row, struct ob_err *err)
{
	const struct ob_settle *settle = g->settle;
	bool whole = settle->ordering == OB_ORDER_PARTITION;
	bool lane = whole || (settle->ordering == OB_ORDER_KEY && row->key.p);
	enum ob_state state = outcome->kind == OB_OUTCOME_RETRY ? OB_STATE_FAILED
			      : settle->hold_dead && lane       ? OB_STATE_DEAD_HOLD
								: OB_STATE_DEAD;
	int r = 0;

	if (holds(state) && lane)
		r = my_keys_add_held(&g->keys, row, whole, err);
	if (r == 0 && !holds(state) && holds(row->state))
		r = my_keys_add_freed(&g->keys, row, err);
	return r < 0 ? r : write_failure(g, outcome, state, err);
}

static int apply(struct settling *g, const struct ob_outcome *outcome, const struct my_row *row,
		 struct ob_err *err)
{
	/* What is done twice in one call counts once. */
	if (outcome->kind != OB_OUTCOME_RELEASE || g->settle->token)
		g->done_row[row - (const struct my_row *)(const void *)g->rows.data] = true;
	switch (outcome->kind) {
	case OB_OUTCOME_PUBLISHED:
		g->published[g->published_count++] = row->seq;
		return holds(row->state) ? my_keys_add_freed(&g->keys, row, err) : 0;
	case OB_OUTCOME_RETRY:
	case OB_OUTCOME_DEAD:
		return settle_failed(g, outcome, row, err);
	case OB_OUTCOME_RELEASE:
		if (g->settle->token)
			g->released[g->released_count++] = row->seq;
		return 0;
	}
	return 0;
}

static int settle_one(struct settling *g, const struct ob_outcome *outcome, struct ob_err *err)
{
	if (lost_by_lease(g, outcome->message)) {
		g->done.lost++;
		return 0;
	}
	const struct my_row *row = my_row_find(&g->rows, outcome->message->seq);
	enum verdict verdict = judge(g, outcome, row);

	g->done.applied += verdict == APPLY;
	g->done.lost += verdict == LOST;
	g->done.vanished += verdict == VANISHED;
	return verdict == APPLY && row ? apply(g, outcome, row, err) : 0;
}

/* ---- the usual settle ------------------------------------------------ */

static bool is_plain(const struct ob_settle *settle)
{
	for (size_t i = 0; i < settle->outcome_count; i++) {
		if (settle->outcomes[i].kind != OB_OUTCOME_PUBLISHED)
			return false;
	}
	return !settle->token && !settle->delete_published;
}

/* How many rows of these outcomes, at most MY_LIST_MAX, became published. */
static int publish_some(struct settling *g, const struct ob_outcome *outcomes, size_t count,
			struct ob_err *err)
{
	int64_t seqs[MY_LIST_MAX];
	const struct ob_uuid *ids[MY_LIST_MAX];
	char texts[MY_LIST_MAX][OB_UUID_TEXT_SIZE];
	struct my_query *q;
	int r = my_prepare(g->s, MY_rows_plainly_published, count, &q, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		seqs[i] = outcomes[i].message->seq;
		ids[i] = &outcomes[i].message->id;
	}
	my_bind_list(q, "seqs", seqs, count);
	my_bind_ids(g->s, q, "ids", ids, count, texts);
	return my_run(g->s, q, err);
}

/*
 * One statement that changes rows only as they must be: when it changed all of them, there was
 * nothing to look at. Else the transaction is undone, and the caller takes the long way.
 */
static int publish_all(struct settling *g, struct ob_err *err)
{
	const struct ob_settle *settle = g->settle;
	size_t published = 0;

	for (size_t i = 0; i < settle->outcome_count; i++)
		g->otherwise |= lost_by_lease(g, settle->outcomes[i].message);
	for (size_t done = 0; done < settle->outcome_count && !g->otherwise; done += MY_LIST_MAX) {
		size_t left = settle->outcome_count - done;
		size_t some = left < MY_LIST_MAX ? left : MY_LIST_MAX;
		int r = publish_some(g, settle->outcomes + done, some, err);

		if (r < 0)
			return r;
		g->otherwise = (size_t)r != some;
		published += some;
	}
	if (g->otherwise)
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN,
				  "settling: rows are not as they were fetched");
	g->done.applied = (uint32_t)published;
	g->published_count = published;
	return 0;
}

/* ---- the transaction ------------------------------------------------- */

/* Lock and read the rows of all outcomes that are still ours. */
static int look(struct settling *g, struct ob_err *err)
{
	const struct ob_settle *settle = g->settle;
	size_t count = 0;
	int64_t *seqs = ob_arena_alloc(&g->arena, settle->outcome_count * sizeof(*seqs));

	g->published = ob_arena_alloc(&g->arena, settle->outcome_count * sizeof(*seqs));
	g->released = ob_arena_alloc(&g->arena, settle->outcome_count * sizeof(*seqs));
	g->done_row = ob_arena_alloc(&g->arena, settle->outcome_count * sizeof(bool));
	if (!seqs || !g->published || !g->released || !g->done_row)
		return my_oom("settling", err);
	for (size_t i = 0; i < settle->outcome_count; i++) {
		if (!lost_by_lease(g, settle->outcomes[i].message))
			seqs[count++] = settle->outcomes[i].message->seq;
	}
	g->rows = (struct my_rows){ .arena = &g->arena, .size = sizeof(struct my_row) };
	return my_look(g->s, seqs, count, &g->rows, err);
}

static int count_minute(struct settling *g, struct ob_err *err)
{
	struct my_query *q;

	if (g->published_count + g->failed == 0)
		return 0;
	int r = my_prepare(g->s, MY_count_minute, 1, &q, err);
	if (r < 0)
		return r;
	my_bind_text(q, "target", g->settle->target);
	my_bind_int(q, "published", (int64_t)g->published_count);
	my_bind_int(q, "failed", (int64_t)g->failed);
	r = my_run(g->s, q, err);
	return r < 0 ? r : 0;
}

static void start_afresh(struct settling *g)
{
	my_keys_done(&g->keys);
	my_keys_init(&g->keys);
	ob_arena_reset(&g->arena, SIZE_MAX);
	memset(g->ours, 0, sizeof(g->ours));
	g->published_count = g->released_count = 0;
	g->failed = 0;
	g->otherwise = false;
	g->done = (struct ob_settled){ 0 };
}

static int settle_each(struct settling *g, struct ob_err *err)
{
	struct my_store *s = g->s;
	int r = look(g, err);

	for (size_t i = 0; i < g->settle->outcome_count && r == 0; i++)
		r = settle_one(g, &g->settle->outcomes[i], err);
	if (r == 0)
		r = my_run_list(s, g->settle->delete_published ? MY_rows_delete : MY_rows_published,
				g->published, g->published_count, 0, err);
	if (r == 0)
		r = my_run_list(s, MY_rows_unclaim, g->released, g->released_count, 0, err);
	return r < 0 ? r : my_keys_move(s, &g->keys, err);
}

static int settle_work(struct my_store *s, void *arg, struct ob_err *err)
{
	struct settling *g = arg;

	(void)s;
	start_afresh(g);
	int r = fence(g, err);
	if (r == 0)
		r = g->plain ? publish_all(g, err) : settle_each(g, err);
	return r < 0 ? r : count_minute(g, err);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written through the struct */
int my_settle(struct ob_store *store, const struct ob_settle *settle, bool *ret_lost,
	      struct ob_settled *ret_settled, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct settling g = {
		.s = s,
		.settle = settle,
		.ret_lost = ret_lost,
		.plain = is_plain(settle),
		.arena = OB_ARENA_INIT(SIZE_MAX / 2),
		.text = OB_BUF_INIT((size_t)4 * OB_LAST_ERROR_MAX),
	};

	my_keys_init(&g.keys);
	int r = my_transact(s, settle_work, &g, err);
	if (g.otherwise) {
		g.plain = false;
		r = my_transact(s, settle_work, &g, err);
	}
	my_keys_done(&g.keys);
	ob_arena_done(&g.arena);
	ob_buf_done(&g.text);
	if (r < 0)
		return r;
	*ret_settled = g.done;
	return 0;
}
