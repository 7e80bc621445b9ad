/* SPDX-License-Identifier: MIT */
/* Heartbeats, renewal and balance of one worker's leases. */
#include "relay/leaser.h"

#include "base/cleanup.h"
#include "relay/faultpoints.h"

enum { BALANCE_MS = 250, RETRY_BASE_MS = 50, RETRY_CAP_MS = 1000, SAY_US = 30 * 1000000 };

static int64_t now_us(const struct ob_leaser *leaser)
{
	return ob_clock_boot_us(leaser->conf.clock);
}

static int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* A dead worker must not hold a share longer than its leases last. */
static int64_t beat_ttl_ms(const struct ob_leaser_conf *conf)
{
	return min_i64(conf->heartbeat_ttl_ms, conf->lease_ttl_ms);
}

static int64_t beat_every_ms(const struct ob_leaser_conf *conf)
{
	return min_i64(beat_ttl_ms(conf) / 3, conf->lease_renew_ms);
}

/* Early enough that one renewal may take a third of the lease, or fail, and the lease still lives.
 */
static int64_t renew_every_ms(const struct ob_leaser_conf *conf)
{
	return min_i64(conf->lease_ttl_ms / 3, conf->lease_renew_ms);
}

void ob_leaser_init(struct ob_leaser *leaser, const struct ob_leaser_conf *conf)
{
	*leaser = (struct ob_leaser){
		.conf = *conf,
		.owner = conf->owner,
		.arena = OB_ARENA_INIT(16 << 20),
	};
	ob_backoff_init(&leaser->backoff, RETRY_BASE_MS, RETRY_CAP_MS);
	conf->view->owner = leaser->owner;
}

void ob_leaser_done(struct ob_leaser *leaser)
{
	ob_arena_done(&leaser->arena);
}

/* ---- the view -------------------------------------------------------- */

static struct ob_lease_view *view_lock(struct ob_leaser *leaser)
{
	(void)pthread_mutex_lock(&leaser->conf.view->lock);
	return leaser->conf.view;
}

static void view_unlock(struct ob_leaser *leaser, bool changed)
{
	struct ob_lease_view *view = leaser->conf.view;
	size_t count = view->count;

	if (changed)
		atomic_fetch_add(&view->version, 1);
	(void)pthread_mutex_unlock(&view->lock);
	if (leaser->conf.metrics) {
		struct ob_metrics_data *data = ob_metrics_lock(leaser->conf.metrics);

		data->partitions = count;
		data->share = leaser->share;
		ob_metrics_unlock(leaser->conf.metrics);
	}
}

/*
 * Put a lease in its place by number, or, if it is not `taken` just now, renew the one that is
 * there. A partition that was dropped and made again by a resize has its first epoch again, and we
 * may be its owner again. The lock is held.
 */
static void view_put(struct ob_lease_view *view, const struct ob_lease *lease, bool taken,
		     int64_t deadline_us)
{
	size_t at = 0;

	while (at < view->count && view->leases[at].partition < lease->partition)
		at++;
	if (at < view->count && view->leases[at].partition == lease->partition) {
		if (view->leases[at].epoch == lease->epoch && !taken) {
			view->leases[at].deadline_us = deadline_us;
			return;
		}
	} else {
		if (view->count == OB_PARTITIONS_MAX)
			return;
		memmove(&view->leases[at + 1], &view->leases[at],
			(view->count - at) * sizeof(view->leases[0]));
		view->count++;
	}
	view->leases[at] = (struct ob_view_lease){
		.partition = lease->partition,
		.epoch = lease->epoch,
		.grant = ++view->grants,
		.deadline_us = deadline_us,
	};
}

static bool is_among(const struct ob_view_lease *lease, const struct ob_lease *leases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (leases[i].partition == lease->partition)
			return leases[i].epoch == lease->epoch;
	}
	return false;
}

/* Drop what renew did not return; says how many. The lock is held. */
static size_t view_keep(struct ob_lease_view *view, const struct ob_lease *leases, size_t count)
{
	size_t kept = 0, was = view->count;

	for (size_t i = 0; i < was; i++) {
		if (is_among(&view->leases[i], leases, count))
			view->leases[kept++] = view->leases[i];
	}
	view->count = kept;
	return was - kept;
}

/* ---- one store operation each ---------------------------------------- */

static int do_seed(struct ob_leaser *leaser, struct ob_err *err)
{
	uint32_t count;
	int r = ob_store_seed(leaser->conf.store, leaser->conf.reader, &count, err);

	if (r < 0)
		return r;
	view_lock(leaser)->partition_count = count;
	view_unlock(leaser, true);
	leaser->seeded = true;
	return 0;
}

static void copy_error(struct ob_worker_error *to, const struct ob_last_error *from)
{
	if (from->times == 0)
		return;
	to->at_us = from->at_us;
	to->times = from->times;
	(void)snprintf(to->kind, sizeof(to->kind), "%s", ob_err_kind_name(from->kind));
	memcpy(to->text, from->text, sizeof(to->text));
}

static void set_text(char *out, size_t size, const char *text)
{
	if (text)
		ob_worker_text(out, size, ob_str(text));
}

/* What keeps a worker from sending anything, if something does; a busy key is no news. */
static const char *waits_for(const struct ob_metrics_data *data)
{
	for (int i = 0; i < OB_WHY_COUNT; i++) {
		if (data->waits[i] > 0 && i != OB_WHY_KEY_BUSY)
			return ob_why_name((enum ob_why_reason)i);
	}
	return "";
}

/* What others are told of this worker. */
static void write_state(struct ob_leaser *leaser, const struct ob_metrics_data *data,
			struct ob_buf *out)
{
	static const char *const breakers[] = { [OB_BREAKER_CLOSED] = "closed",
						[OB_BREAKER_HALF_OPEN] = "half_open",
						[OB_BREAKER_OPEN] = "open" };
	struct ob_worker_report s = { .version = OUTBOX_VERSION,
				      .alarm = data->alarm,
				      .breaker_since_us = data->breaker_since_us,
				      .probe_us = data->probe_us,
				      .in_flight = data->in_flight,
				      .queued = data->queued,
				      .unsettled = data->unsettled,
				      .retained_us = data->retained_us,
				      .retained_rows = data->retained_rows,
				      .retained_parts = data->retained_parts };
	int64_t now = now_us(leaser), since = now - leaser->told_us;

	(void)snprintf(s.breaker, sizeof(s.breaker), "%s", breakers[data->breaker]);
	set_text(s.waits, sizeof(s.waits), waits_for(data));
	memcpy(s.breaker_why, data->breaker_why, sizeof(s.breaker_why));
	memcpy(s.retained_held, data->retained_held, sizeof(s.retained_held));
	set_text(s.sink_type, sizeof(s.sink_type), leaser->conf.sink_type);
	set_text(s.sink_name, sizeof(s.sink_name), leaser->conf.sink_name);
	set_text(s.sink_text, sizeof(s.sink_text), leaser->conf.sink_text);
	copy_error(&s.sink_error, &data->last[OB_ERROR_OF_SINK]);
	copy_error(&s.store_error, &data->last[OB_ERROR_OF_STORE]);
	if (leaser->told_us && since > 0 && data->published >= leaser->told)
		s.rate = (double)(data->published - leaser->told) * 1e6 / (double)since;
	leaser->told = data->published;
	leaser->told_us = now;
	ob_worker_report_write(&s, out);
}

/* All that is counted of it; retention is the relay's. */
static void read_metrics(const struct ob_leaser *leaser, struct ob_metrics_data *ret)
{
	struct ob_metrics_data whole;

	ob_metrics_read(leaser->conf.metrics, ret);
	if (!leaser->conf.relay_metrics)
		return;
	ob_metrics_read(leaser->conf.relay_metrics, &whole);
	ret->retained_us = whole.retained_us;
	ret->retained_rows = whole.retained_rows;
	ret->retained_parts = whole.retained_parts;
	memcpy(ret->retained_held, whole.retained_held, sizeof(ret->retained_held));
	if (whole.last[OB_ERROR_OF_STORE].at_us > ret->last[OB_ERROR_OF_STORE].at_us)
		ret->last[OB_ERROR_OF_STORE] = whole.last[OB_ERROR_OF_STORE];
}

static int do_beat(struct ob_leaser *leaser, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf state = OB_BUF_INIT(OB_WORKER_STATE_MAX + 1);
	struct ob_worker worker = {
		.id = leaser->owner,
		.reader = ob_str(leaser->conf.reader),
		.hostname = ob_str(leaser->conf.hostname),
		.pid = leaser->conf.pid,
	};
	int64_t began = now_us(leaser);

	if (leaser->conf.metrics) {
		struct ob_metrics_data data;

		read_metrics(leaser, &data);
		worker.published = data.published;
		worker.failed = data.failed;
		write_state(leaser, &data, &state);
		worker.state = ob_buf_view(&state);
	}
	(void)OB_FAULT(OB_FAULT_LEASE_BEAT_BEFORE);

	int r = ob_store_beat(leaser->conf.store, &worker, beat_ttl_ms(&leaser->conf), err);

	if (r < 0)
		return r;
	leaser->beat_us = began + beat_every_ms(&leaser->conf) * 1000;
	/* Our connection is back, and with it the lock that tells the others that we live. */
	atomic_store(&leaser->conf.view->cut, false);
	return 0;
}

/* Whose connection is gone has nothing to wait for: what was theirs is free at once. */
static int do_reap(struct ob_leaser *leaser, struct ob_err *err)
{
	uint32_t gone;
	int r = ob_store_reap(leaser->conf.store, leaser->conf.reader, &leaser->owner, &gone, err);

	if (r < 0)
		return r;
	leaser->reaped = true;
	if (gone > 0 && leaser->conf.log)
		ob_log(leaser->conf.log, OB_LOG_WARN,
		       "workers are gone, their partitions are taken over",
		       OB_KV("relay", leaser->conf.reader), OB_KI("workers", gone));
	return 0;
}

/*
 * Of leases that are the first ones we hold: nobody can change the number of partitions any more,
 * but somebody may have since we read it, and it is in every number that a worker reads. *count:
 * those that there still are; others are given back.
 */
static int learn_count(struct ob_leaser *leaser, struct ob_lease *leases, size_t *count,
		       struct ob_err *err)
{
	uint32_t gone[OB_PARTITIONS_MAX];
	size_t gone_count = 0, kept = 0;
	bool first = view_lock(leaser)->count == 0;

	view_unlock(leaser, false);
	if (!first || *count == 0)
		return 0;

	int r = do_seed(leaser, err);

	if (r < 0)
		return r;

	uint32_t partitions = view_lock(leaser)->partition_count;

	view_unlock(leaser, false);
	for (size_t i = 0; i < *count; i++) {
		if (leases[i].partition < partitions)
			leases[kept++] = leases[i];
		else
			gone[gone_count++] = leases[i].partition;
	}
	*count = kept;
	return gone_count == 0 ? 0
			       : ob_store_release(leaser->conf.store, leaser->conf.reader,
						  &leaser->owner, gone, gone_count, err);
}

/* Local trust ends a fifth before the lease does, counted from before the call. */
static int64_t deadline_us(const struct ob_leaser *leaser, int64_t began)
{
	int64_t ttl = leaser->conf.lease_ttl_ms * 1000;

	return began + ttl - ttl / 5;
}

static int do_renew(struct ob_leaser *leaser, struct ob_err *err)
{
	struct ob_lease *leases;
	int64_t began = now_us(leaser);
	size_t count;

	(void)OB_FAULT(OB_FAULT_LEASE_RENEW_BEFORE);
	ob_arena_reset(&leaser->arena, SIZE_MAX);

	int r = ob_store_renew(leaser->conf.store, leaser->conf.reader, &leaser->owner,
			       leaser->conf.lease_ttl_ms, &leaser->arena, &leases, &count, err);
	if (r >= 0)
		r = learn_count(leaser, leases, &count, err);
	if (r < 0)
		return r;
	(void)OB_FAULT(OB_FAULT_LEASE_RENEW_AFTER);

	struct ob_lease_view *view = view_lock(leaser);
	size_t lost = view_keep(view, leases, count);

	for (size_t i = 0; i < count; i++)
		view_put(view, &leases[i], false, deadline_us(leaser, began));
	view_unlock(leaser, lost > 0 || count > 0);
	leaser->renew_us = began + renew_every_ms(&leaser->conf) * 1000;
	leaser->renewed_us = now_us(leaser);
	/* While we hold nothing, the number of partitions may change at any time. */
	if (count == 0)
		leaser->seeded = false;
	if (lost > 0) {
		/* We were away for long: shares may have changed. */
		leaser->balance_us = 0;
		leaser->seeded = false;
		if (leaser->conf.log)
			ob_log(leaser->conf.log, OB_LOG_WARN,
			       "leases lost, their messages are left to the next owner",
			       OB_KV("relay", leaser->conf.reader),
			       OB_KI("partitions", (int64_t)lost));
	}
	return 0;
}

/* Surplus drains from the top; what drains is taken back first when the share grows. */
static void balance_view(struct ob_leaser *leaser, uint32_t share)
{
	struct ob_lease_view *view = view_lock(leaser);
	uint32_t kept = 0;
	bool changed = false;

	leaser->share = share;
	for (size_t i = 0; i < view->count; i++)
		kept += !view->leases[i].draining;
	for (size_t i = view->count; i-- > 0 && kept > share;) {
		if (!view->leases[i].draining) {
			view->leases[i].draining = true;
			changed = true;
			kept--;
		}
	}
	for (size_t i = 0; i < view->count && kept < share; i++) {
		struct ob_view_lease *lease = &view->leases[i];

		if (lease->draining && !lease->drained && !lease->lost) {
			lease->draining = false;
			changed = true;
			kept++;
		}
	}
	leaser->want = kept < share ? share - kept : 0;
	leaser->looked = false;
	view_unlock(leaser, changed);
}

static int do_balance(struct ob_leaser *leaser, struct ob_err *err)
{
	struct ob_worker *workers;
	size_t count, index = 0;
	int64_t every = min_i64(BALANCE_MS, leaser->conf.lease_renew_ms);

	ob_arena_reset(&leaser->arena, SIZE_MAX);

	int r = ob_store_workers(leaser->conf.store, leaser->conf.reader, &leaser->arena, &workers,
				 &count, err);
	if (r < 0)
		return r;
	leaser->balance_us = now_us(leaser) + every * 1000;
	leaser->reaped = false;
	while (index < count && !ob_uuid_eq(&workers[index].id, &leaser->owner))
		index++;
	if (index == count) {
		/* The others count us out: join again before anything else. */
		leaser->beat_us = 0;
		leaser->want = 0;
		return 0;
	}

	uint32_t partitions = view_lock(leaser)->partition_count;

	view_unlock(leaser, false);
	if (leaser->leaving)
		partitions = 0;
	balance_view(leaser, ob_fair_share(partitions, (uint32_t)count, (uint32_t)index));
	return 0;
}

/* Read before taking: taking locks rows of the leases. */
static int do_look(struct ob_leaser *leaser, struct ob_err *err)
{
	struct ob_partition *partitions;
	size_t count;
	bool any = false;

	ob_arena_reset(&leaser->arena, SIZE_MAX);

	int r = ob_store_partitions(leaser->conf.store, leaser->conf.reader, &leaser->arena,
				    &partitions, &count, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count && !any; i++)
		any = !partitions[i].leased;
	leaser->looked = any;
	if (!any)
		leaser->want = 0;
	return 0;
}

static int do_take(struct ob_leaser *leaser, struct ob_err *err)
{
	struct ob_lease *leases;
	int64_t began = now_us(leaser);
	size_t count;

	(void)OB_FAULT(OB_FAULT_LEASE_TAKE_BEFORE);
	ob_arena_reset(&leaser->arena, SIZE_MAX);

	int r = ob_store_take(leaser->conf.store, leaser->conf.reader, &leaser->owner, leaser->want,
			      leaser->conf.lease_ttl_ms, &leaser->arena, &leases, &count, err);
	if (r >= 0)
		r = learn_count(leaser, leases, &count, err);
	if (r < 0) {
		/* It may have happened: a renewal tells. */
		leaser->renew_us = 0;
		return r;
	}
	(void)OB_FAULT(OB_FAULT_LEASE_TAKE_AFTER);

	struct ob_lease_view *view = view_lock(leaser);

	for (size_t i = 0; i < count; i++)
		view_put(view, &leases[i], true, deadline_us(leaser, began));
	view_unlock(leaser, count > 0);
	leaser->want = 0;
	if (count > 0 && leaser->conf.log)
		ob_log(leaser->conf.log, OB_LOG_INFO, "partitions taken",
		       OB_KV("relay", leaser->conf.reader), OB_KI("partitions", (int64_t)count),
		       OB_KI("share", leaser->share));
	return 0;
}

static bool is_answered(const struct ob_view_lease *lease)
{
	return lease->lost || (lease->draining && lease->drained);
}

/* The grants of the leases that the worker is done with, or has lost. The lock is held. */
static size_t gather_answered(const struct ob_lease_view *view, uint64_t *grants)
{
	size_t count = 0;

	for (size_t i = 0; i < view->count; i++) {
		if (is_answered(&view->leases[i]))
			grants[count++] = view->leases[i].grant;
	}
	return count;
}

static bool is_granted(const uint64_t *grants, size_t count, uint64_t grant)
{
	size_t i = 0;

	while (i < count && grants[i] != grant)
		i++;
	return i < count;
}

/*
 * What the worker is done with, or has lost, leaves the view; what is still ours is given back.
 * Only what was so before the call leaves: what the worker answers meanwhile has not been released,
 * and would stay leased with nobody to serve it until the next renewal.
 */
static int do_release(struct ob_leaser *leaser, struct ob_err *err)
{
	uint32_t partitions[OB_PARTITIONS_MAX];
	uint64_t gone[OB_PARTITIONS_MAX];
	size_t count = 0, gone_count, kept = 0;
	bool lost = false;
	uint64_t answers = atomic_load(&leaser->conf.view->answers);
	struct ob_lease_view *view = view_lock(leaser);

	gone_count = gather_answered(view, gone);
	for (size_t i = 0; i < view->count; i++) {
		lost = lost || view->leases[i].lost;
		if (is_answered(&view->leases[i]) && !view->leases[i].lost)
			partitions[count++] = view->leases[i].partition;
	}
	view_unlock(leaser, false);
	if (count > 0) {
		(void)OB_FAULT(OB_FAULT_RELEASE_BEFORE);

		int r = ob_store_release(leaser->conf.store, leaser->conf.reader, &leaser->owner,
					 partitions, count, err);
		if (r < 0)
			return r;
		(void)OB_FAULT(OB_FAULT_RELEASE_AFTER);
	}

	view = view_lock(leaser);
	for (size_t i = 0; i < view->count; i++) {
		if (!is_granted(gone, gone_count, view->leases[i].grant))
			view->leases[kept++] = view->leases[i];
	}
	view->count = kept;
	view_unlock(leaser, true);
	leaser->answers = answers;
	if (lost)
		leaser->renew_us = 0;
	if (count > 0 && leaser->conf.log)
		ob_log(leaser->conf.log, OB_LOG_INFO, "partitions released",
		       OB_KV("relay", leaser->conf.reader), OB_KI("partitions", (int64_t)count));
	return 0;
}

/* ---- stepping -------------------------------------------------------- */

typedef int leaser_op(struct ob_leaser *leaser, struct ob_err *err);

/* The slowest of late: a slow call is remembered at once and forgotten over the next few. */
static void note_call_time(struct ob_leaser *leaser, int64_t took_us)
{
	leaser->slow_us /= 2;
	if (took_us > leaser->slow_us)
		leaser->slow_us = took_us;
}

/*
 * Would the leases survive one more call before their renewal? Each of those on this connection has
 * a heartbeat and a renewal to make. A lease that is lost costs repeats (P4); a partition that
 * moves later costs nothing.
 */
static bool can_spare_a_call(struct ob_leaser *leaser, int64_t now)
{
	int64_t calls = 1 + 2 * (int64_t)(leaser->conf.sharers ? leaser->conf.sharers : 1);
	int64_t end = INT64_MAX;
	struct ob_lease_view *view = view_lock(leaser);

	for (size_t i = 0; i < view->count; i++)
		end = min_i64(end, view->leases[i].deadline_us);
	view_unlock(leaser, false);
	return now + calls * leaser->slow_us < end;
}

bool ob_leaser_is_urgent(const struct ob_leaser *leaser)
{
	int64_t now = now_us(leaser);

	return !leaser->failed && now >= leaser->retry_us &&
	       (now >= leaser->beat_us || now >= leaser->renew_us);
}

static leaser_op *next_that_can_wait(struct ob_leaser *leaser, int64_t now)
{
	leaser->spared_us = now;
	if (!leaser->seeded)
		return do_seed;
	if (atomic_load(&leaser->conf.view->answers) != leaser->answers)
		return do_release;
	/* Before the next balance, which a slow database would always find due. */
	if (leaser->want > 0)
		return leaser->looked ? do_take : do_look;
	if (now >= leaser->balance_us)
		return leaser->reaped ? do_balance : do_reap;
	return NULL;
}

/*
 * What is due; renewal before balance, so that a busy table costs no lease. But when a slow
 * database leaves no time for anything else, one call in each lease_ttl is made nevertheless:
 * partitions must move some time. Not after a pause: what is left of the leases is asked for first.
 */
static leaser_op *next_op(struct ob_leaser *leaser, int64_t now)
{
	bool urgent = now >= leaser->beat_us || now >= leaser->renew_us;
	int64_t ttl = leaser->conf.lease_ttl_ms * 1000;
	bool waited = leaser->beat_us > 0 && now - leaser->spared_us >= ttl &&
		      now - leaser->renewed_us < ttl;

	if (waited || (!urgent && can_spare_a_call(leaser, now))) {
		leaser_op *op = next_that_can_wait(leaser, now);

		if (op)
			return op;
	}
	if (now >= leaser->beat_us)
		return do_beat;
	return now >= leaser->renew_us ? do_renew : NULL;
}

static void failed(struct ob_leaser *leaser, const struct ob_err *err)
{
	int64_t wait_ms = ob_backoff_next_ms(&leaser->backoff);

	bool fresh = ob_metrics_error(leaser->conf.metrics, OB_ERROR_OF_STORE,
				      ob_clock_real_us(leaser->conf.clock), err, NULL);

	leaser->retry_us = now_us(leaser) + wait_ms * 1000;
	leaser->errors++;
	/*
	 * Perhaps our connection is gone, and the others take over at once: what we send now they
	 * send again. Beat first when the store is back.
	 */
	atomic_store(&leaser->conf.view->cut, true);
	leaser->beat_us = 0;
	if (err->kind == OB_ERR_FATAL) {
		leaser->failed = true;
		leaser->err = *err;
	}
	/* An outage is one piece of news, not one for each attempt. */
	if (!leaser->failed && !fresh && now_us(leaser) - leaser->said_us < SAY_US)
		return;
	leaser->said_us = now_us(leaser);
	leaser->away = true;
	if (leaser->conf.log)
		ob_log(leaser->conf.log, leaser->failed ? OB_LOG_ERROR : OB_LOG_WARN,
		       leaser->failed ? "leases cannot be kept, stopping"
				      : "store failed for the leases, trying again",
		       OB_KV("relay", leaser->conf.reader), OB_KV("error", err->msg),
		       OB_KI("delay_ms", wait_ms));
}

static void say_back(struct ob_leaser *leaser)
{
	leaser->away = false;
	if (leaser->conf.log)
		ob_log(leaser->conf.log, OB_LOG_INFO, "store is back",
		       OB_KV("relay", leaser->conf.reader));
}

/* What is overdue waits for the renewal: see can_spare_a_call(). */
static int64_t next_due(const struct ob_leaser *leaser, int64_t now)
{
	int64_t due = min_i64(leaser->beat_us, leaser->renew_us);

	return leaser->balance_us > now ? min_i64(due, leaser->balance_us) : due;
}

bool ob_leaser_step(struct ob_leaser *leaser, int64_t *ret_wake_us)
{
	struct ob_err err = OB_ERR_INIT;
	int64_t now = now_us(leaser);

	*ret_wake_us = INT64_MAX;
	if (leaser->failed)
		return false;
	if (now < leaser->retry_us) {
		*ret_wake_us = leaser->retry_us;
		return false;
	}

	leaser_op *op = next_op(leaser, now);

	if (!op) {
		*ret_wake_us = next_due(leaser, now);
		return false;
	}

	int r = op(leaser, &err);

	note_call_time(leaser, now_us(leaser) - now);
	if (r < 0) {
		failed(leaser, &err);
		*ret_wake_us = leaser->failed ? INT64_MAX : leaser->retry_us;
		return false;
	}
	leaser->retry_us = 0;
	ob_backoff_reset(&leaser->backoff);
	if (leaser->away)
		say_back(leaser);
	return true;
}

void ob_leaser_drain(struct ob_leaser *leaser)
{
	if (!leaser->leaving)
		leaser->balance_us = leaser->want = 0;
	leaser->leaving = true;
}

int ob_leaser_leave(struct ob_leaser *leaser, struct ob_err *err)
{
	(void)OB_FAULT(OB_FAULT_LEAVE_BEFORE);

	int r = ob_store_leave(leaser->conf.store, leaser->conf.reader, &leaser->owner, err);

	if (r < 0)
		return r;
	(void)OB_FAULT(OB_FAULT_LEAVE_AFTER);
	view_lock(leaser)->count = 0;
	view_unlock(leaser, true);
	return 0;
}
