/* SPDX-License-Identifier: MIT */
/* One transaction: handlers of the messages that were read, then exceptions and progress. */
#include "relay/faultpoints.h"
#include "relay/tx_worker_impl.h"

enum { RUNS_MAX = 10000 }; /* of one batch; each but the last has found a message that fails */

/* ---- one message ----------------------------------------------------- */

static bool is_held(const struct ob_tx_worker *w, const struct ob_message *m)
{
	struct ob_str queue = ob_exception_queue(&w->decide, m);

	for (size_t i = 0; queue.p && i < w->held_count; i++) {
		if (w->held_parts[i] == m->partition && ob_str_eq(w->held[i], queue))
			return true;
	}
	return false;
}

static void tx_hold_key(struct ob_tx_worker *w, const struct ob_message *m)
{
	struct ob_str queue = ob_exception_queue(&w->decide, m);

	if (!queue.p || is_held(w, m))
		return;
	w->held[w->held_count] = queue;
	w->held_parts[w->held_count++] = m->partition;
}

static int run_handler(struct ob_tx_worker *w, const struct ob_message *m, struct ob_err *err)
{
	const struct ob_sink_ops *ops = w->conf.sink->ops;
	uint64_t changed;

	if (ops->in_store)
		return ops->in_store(w->conf.sink, w->conf.store, m, err);
	return ob_store_tx_exec(w->conf.store, w->sql, m, &changed, err);
}

/* It is about this message: what follows. DOWN and FATAL are about all. */
static int tx_judge_failure(struct ob_tx_worker *w, size_t at, const struct ob_err *found,
			    struct ob_err *err)
{
	const struct ob_message *m = &w->batch.messages[at];
	struct ob_err failed = *found;

	if (w->conf.classify && failed.kind != OB_ERR_FATAL)
		failed.kind = w->conf.classify(w->conf.classify_arg, m, found);
	if (failed.kind != OB_ERR_RETRY && failed.kind != OB_ERR_REJECT) {
		*err = failed;
		return failed.status < 0 ? failed.status : OUTBOX_ESINK;
	}
	struct ob_tx_failure *failure = &w->failures[at];

	failure->failed = true;
	failure->err = failed;
	failure->verdict =
		ob_policy_judge(&w->policy, failed.kind, m->attempts, ob_rng_unit(&w->rng));
	return 0;
}

static void tx_add_outcome(struct ob_tx_worker *w, const struct ob_message *m,
			   enum ob_outcome_kind kind, int64_t delay_ms, const char *error)
{
	bool promote;

	if (!ob_exception_decide(&w->decide, m, kind, delay_ms, ob_str(error),
				 &w->changes[w->change_count], &promote))
		return;
	w->change_count++;
	if (promote)
		w->promotes[w->promote_count++] = (struct ob_promote){
			.partition = m->partition,
			.queue = ob_exception_queue(&w->decide, m),
		};
}

/* What has failed in an earlier run of this batch: it holds its key, or is dead. */
static void tx_add_failure(struct ob_tx_worker *w, size_t at)
{
	const struct ob_message *m = &w->batch.messages[at];
	const struct ob_tx_failure *f = &w->failures[at];
	bool dead = f->verdict.action == OB_ACT_DEAD;

	if (!dead || w->decide.hold_dead)
		tx_hold_key(w, m);
	tx_add_outcome(w, m, dead ? OB_OUTCOME_DEAD : OB_OUTCOME_RETRY, f->verdict.delay_ms,
		       f->err.msg);
}

enum ran { RAN, RAN_FAILED, RAN_ERROR };

static enum ran run_message(struct ob_tx_worker *w, size_t at, struct ob_err *err)
{
	const struct ob_message *m = &w->batch.messages[at];
	struct ob_err failed = OB_ERR_INIT;

	w->handled[at] = false;
	if (!m->excepted && !ob_worker_is_wanted(&w->conf, m))
		return RAN;
	if (w->failures[at].failed) {
		tx_add_failure(w, at);
		return RAN;
	}
	if ((!m->excepted && m->held) || is_held(w, m)) {
		tx_add_outcome(w, m, OB_OUTCOME_PARK, 0, "");
		return RAN;
	}
	if (!m->excepted && m->delayed) {
		if (w->decide.hold_delayed)
			tx_hold_key(w, m);
		tx_add_outcome(w, m, OB_OUTCOME_DELAY, 0, "");
		return RAN;
	}
	if (run_handler(w, m, &failed) < 0)
		return tx_judge_failure(w, at, &failed, err) < 0 ? RAN_ERROR : RAN_FAILED;
	w->handled[at] = true;
	tx_add_outcome(w, m, OB_OUTCOME_PUBLISHED, 0, "");
	return RAN;
}

/* ---- recording ------------------------------------------------------- */

static struct ob_settle_part *tx_part_of(struct ob_tx_worker *w, uint32_t partition)
{
	for (size_t i = 0; i < w->settle_count; i++) {
		if (w->settles[i].partition == partition)
			return &w->settles[i];
	}
	return NULL;
}

/* Partitions that something was read of, or whose exceptions change. */
static void tx_collect_parts(struct ob_tx_worker *w)
{
	w->settle_count = 0;
	for (size_t i = 0; i < w->read_count; i++) {
		const struct ob_read_part *read = &w->read_parts[i];
		bool changes = false;

		for (size_t c = 0; c < w->change_count; c++)
			changes = changes || w->changes[c].partition == read->partition;
		if (!read->reached && !changes)
			continue;
		w->settles[w->settle_count++] = (struct ob_settle_part){
			.partition = read->partition,
			.epoch = w->leases[read->partition % w->partition_count].epoch,
			.batch = w->parts[read->partition].batch + 1,
			.progress = read->after,
		};
	}
}

static void count_outcomes(struct ob_tx_worker *w)
{
	for (uint32_t i = 0; i < w->batch.count; i++) {
		struct ob_settle_part *part = tx_part_of(w, w->batch.messages[i].partition);

		if (part && w->failures[i].failed)
			part->failed++;
		else if (part && w->handled[i])
			part->published++;
	}
}

static int settle(struct ob_tx_worker *w, bool *ret_lost, struct ob_err *err)
{
	tx_collect_parts(w);
	count_outcomes(w);

	struct ob_settle job = {
		.reader = w->conf.relay->name,
		.owner = w->conf.id,
		.parts = w->settles,
		.part_count = w->settle_count,
		.changes = w->changes,
		.change_count = w->change_count,
		.promotes = w->promotes,
		.promote_count = w->promote_count,
	};

	(void)OB_FAULT(OB_FAULT_SETTLE_BEFORE);
	int r = ob_store_tx_settle(w->conf.store, &job, err);
	for (size_t i = 0; i < job.part_count && r == 0; i++) {
		if (job.parts[i].settled == OB_SETTLED)
			continue;
		*ret_lost = true;
		/* An operator's row took the number: the next one is tried. */
		if (job.parts[i].settled == OB_SETTLE_MOVED)
			w->parts[job.parts[i].partition].batch = job.parts[i].batch;
		else
			ob_tx_worker_lose(w, job.parts[i].partition);
	}
	return r;
}

/* Committed: what was read is behind us. */
static void tx_move_on(struct ob_tx_worker *w)
{
	for (size_t i = 0; i < w->read_count; i++)
		ob_progress_set(&w->parts[w->read_parts[i].partition].progress,
				&w->read_parts[i].after);
	for (size_t i = 0; i < w->settle_count; i++)
		w->parts[w->settles[i].partition].batch = w->settles[i].batch;
	for (uint32_t i = 0; i < w->batch.count; i++) {
		const struct ob_tx_failure *f = &w->failures[i];

		w->data.published += w->handled[i];
		w->data.failed += f->failed;
		w->data.dead += f->failed && f->verdict.action == OB_ACT_DEAD;
		w->data.retries += f->failed && f->verdict.action != OB_ACT_DEAD;
	}
	w->data.settles++;
}

static void tell_failures(struct ob_tx_worker *w)
{
	for (uint32_t i = 0; i < w->batch.count; i++) {
		const struct ob_tx_failure *f = &w->failures[i];
		const struct ob_message *m = &w->batch.messages[i];

		if (!f->failed)
			continue;
		bool dead = f->verdict.action == OB_ACT_DEAD;
		bool news = ob_metrics_error(w->conf.metrics, OB_ERROR_OF_SINK,
					     ob_clock_real_us(w->conf.clock), &f->err, &m->id);
		if (news && w->conf.log)
			ob_log(w->conf.log, dead ? OB_LOG_ERROR : OB_LOG_WARN,
			       dead ? "handler failed, giving up" : "handler failed, retrying",
			       OB_KV("relay", w->conf.relay->name), OB_KV("error", f->err.msg));
		if (w->conf.failed)
			w->conf.failed(w->conf.failed_arg,
				       &(struct ob_worker_failure){ .message = m,
								    .kind = f->err.kind,
								    .error = f->err.msg,
								    .dead = dead });
	}
}

/* One run of the batch in one transaction: 1 if a message failed and it must be run again. */
static int run_once(struct ob_tx_worker *w, bool *ret_lost, struct ob_err *err)
{
	struct ob_err ignored = OB_ERR_INIT;
	enum ran ran = RAN;
	int r = ob_store_tx_begin(w->conf.store, err);

	w->change_count = w->promote_count = w->held_count = 0;
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < w->batch.count && ran == RAN; i++)
		ran = run_message(w, i, err);
	if (ran == RAN)
		r = settle(w, ret_lost, err);
	bool commit = ran == RAN && r == 0 && !*ret_lost;
	if (!commit) {
		(void)ob_store_tx_end(w->conf.store, false, &ignored);
		return ran == RAN_ERROR ? -1 : ran == RAN_FAILED ? 1 : r;
	}
	(void)OB_FAULT(OB_FAULT_SETTLE_AFTER);
	return ob_store_tx_end(w->conf.store, true, err);
}

int ob_tx_batch_run(struct ob_tx_worker *w, bool *ret_lost, struct ob_err *err)
{
	int r = 1;

	*ret_lost = false;
	for (int runs = 0; r == 1 && runs < RUNS_MAX; runs++)
		r = run_once(w, ret_lost, err);
	if (r != 0 || *ret_lost)
		return r < 0 ? r : 0;
	tx_move_on(w);
	tell_failures(w);
	return 0;
}
