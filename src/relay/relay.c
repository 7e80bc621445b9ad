/* SPDX-License-Identifier: MIT */
/* A relay as a whole: connecting, starting, stopping, and reading its metrics. */
#include "relay/relay.h"

#include "base/rng.h"
#include "relay/advice.h"
#include "relay/relay_impl.h"

#include <errno.h>
#include <sys/eventfd.h>

enum {
	SINK_WAIT_MS = 5,
	ONCE_STORE_ERRORS = 6, /* failed calls after which a single tick gives up */
	SETTLER_IDLE_MS = 5000,
	READ_AHEAD_FROM = 64,
};

/* ---- making ---------------------------------------------------------- */

static int make_eventfd(int *ret_fd, struct ob_err *err)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0)
		return ob_err_errno(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "making an eventfd");
	*ret_fd = fd;
	return 0;
}

static int open_relay_store(void *arg, struct ob_store **ret_store, struct ob_err *err)
{
	struct ob_relay *relay = arg;

	if (relay->conf.open_store)
		return relay->conf.open_store(relay->conf.open_arg, ret_store, err);
	return ob_store_connect(&relay->conf.relay->store->conf, ret_store, err);
}

static int open_sink(struct ob_relay *relay, struct ob_sink **ret_sink, struct ob_err *err)
{
	const struct ob_config_sink *conf = relay->conf.relay->sink;

	if (relay->conf.open_sink)
		return relay->conf.open_sink(relay->conf.open_arg, ret_sink, err);
	return ob_sink_new(conf->ops, conf->options, conf->option_count, relay->clock, ret_sink,
			   err);
}

static int connect_slot(struct ob_relay_slot *slot, struct ob_err *err)
{
	int r = make_eventfd(&slot->wake_fd, err);

	if (r >= 0)
		r = ob_lease_view_init(&slot->view, err);
	if (r >= 0)
		r = open_relay_store(slot->relay, &slot->store, err);
	if (r >= 0 && slot->relay->decrypt)
		ob_decrypt_attach(slot->relay->decrypt, slot->store);
	if (r >= 0)
		r = open_sink(slot->relay, &slot->sink, err);
	if (r >= 0)
		r = ob_store_thread_new(
			&(struct ob_store_thread_conf){
				.open = open_relay_store,
				.arg = slot->relay,
				.wake_fd = slot->wake_fd,
				.idle_ms = SETTLER_IDLE_MS,
			},
			&slot->settler, err);
	if (r >= 0)
		r = ob_store_thread_new(
			&(struct ob_store_thread_conf){
				.store = slot->store,
				.wake_fd = slot->wake_fd,
			},
			&slot->read_ahead, err);
	return r;
}

static void make_leaser(struct ob_relay_slot *slot)
{
	struct ob_relay *relay = slot->relay;
	const struct ob_config_relay *conf = relay->conf.relay;
	struct ob_leaser_conf leaser = {
		.reader = conf->name,
		.owner = slot->id,
		.hostname = relay->hostname,
		.pid = (int32_t)getpid(),
		.lease_ttl_ms = conf->leasing.lease_ttl_ms,
		.lease_renew_ms = conf->leasing.lease_renew_ms,
		.heartbeat_ttl_ms = conf->leasing.heartbeat_ttl_ms,
		.store = relay->store,
		.sharers = conf->workers,
		.clock = relay->clock,
		.view = &slot->view,
		.metrics = &slot->metrics,
		.log = relay->conf.log,
		.sink_type = conf->sink ? conf->sink->ops->name : NULL,
		.sink_name = conf->sink ? conf->sink->name : NULL,
		.relay_metrics = slot == relay->slots ? &relay->metrics : NULL,
	};

	ob_leaser_init(&slot->leaser, &leaser);
}

static int make_slot(struct ob_relay *relay, uint32_t index, struct ob_err *err)
{
	struct ob_relay_slot *slot = &relay->slots[index];
	const struct ob_config_relay *conf = relay->conf.relay;
	struct ob_rng rng;
	int r;

	slot->relay = relay;
	slot->wake_fd = -1;
	slot->id = ob_uuid_new();
	ob_metrics_init(&slot->metrics, &slot->id);
	slot->metrics_made = true;
	r = connect_slot(slot, err);
	if (r < 0)
		return r;
	make_leaser(slot);
	ob_rng_init_random(&rng);

	struct ob_worker_conf worker = {
		.relay = conf,
		.id = slot->id,
		.store = slot->store,
		.sink = slot->sink,
		.settler = slot->settler,
		.read_ahead = slot->read_ahead,
		.read_ahead_from = READ_AHEAD_FROM,
		.clock = relay->clock,
		.view = &slot->view,
		.metrics = &slot->metrics,
		.log = relay->conf.log,
		.sink_advised = &relay->sink_advised,
		.classify = relay->conf.classify,
		.classify_arg = relay->conf.classify_arg,
		.failed = relay->conf.failed,
		.failed_arg = relay->conf.failed_arg,
		.passed_us = &relay->passed_us,
		.wants = relay->conf.wants,
		.wants_arg = relay->conf.wants_arg,
		.end_seq = relay->conf.end_seq,
		.seed = ob_rng_next(&rng),
		.sink_wait_ms = SINK_WAIT_MS,
	};

	return ob_worker_new(&worker, &slot->worker, err);
}

/* Said once, at the start; not to be able to ask is no reason not to start. */
static void advise_of_store(struct ob_relay *relay)
{
	struct ob_err ignored = OB_ERR_INIT;
	struct ob_findings findings;

	ob_findings_init(&findings);
	if (relay->conf.log && ob_store_diagnose(relay->store, &findings, &ignored) == 0)
		ob_advice_log(relay->conf.log, relay->conf.relay->name,
			      "the database weakens a promise", &findings);
	ob_findings_done(&findings);
}

static int make_relay_reader(struct ob_relay *relay, struct ob_err *err)
{
	const struct ob_config_relay *conf = relay->conf.relay;
	struct ob_buf filter = OB_BUF_INIT(1000);
	struct ob_place place = { .start = conf->start, .at = conf->start_at };
	bool made;

	ob_config_filter_text(conf, &filter);

	struct ob_reader reader = {
		.name = ob_str(conf->name),
		.target = ob_str(conf->reads),
		.filter = ob_str(ob_buf_str(&filter)),
		.temporary = relay->conf.end_seq > 0,
	};
	int r = ob_store_reader_make(relay->store, &reader,
				     relay->conf.place ? relay->conf.place : &place, &made, err);

	ob_buf_done(&filter);
	if (r >= 0 && made && relay->conf.log)
		ob_log(relay->conf.log, OB_LOG_INFO, "reader made", OB_KV("relay", conf->name),
		       OB_KV("reads", conf->reads));
	return r;
}

static int make_all_workers(struct ob_relay *relay, struct ob_err *err)
{
	const struct ob_config_relay *conf = relay->conf.relay;
	uint32_t count = conf->workers > 0 ? conf->workers : 1;
	int r = make_eventfd(&relay->control_fd, err);

	if (r >= 0)
		r = make_eventfd(&relay->done_fd, err);
	if (r >= 0)
		r = open_relay_store(relay, &relay->store, err);
	if (r >= 0)
		r = ob_store_check(relay->store, err);
	if (r >= 0)
		r = make_relay_reader(relay, err);
	if (r < 0)
		return r;
	advise_of_store(relay);
	relay->slots = calloc(count, sizeof(*relay->slots));
	if (!relay->slots)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating %u workers", count);
	for (; relay->slot_count < count && r >= 0; relay->slot_count++)
		r = make_slot(relay, relay->slot_count, err);
	if (r >= 0)
		ob_sink_describe(relay->slots[0].sink, &relay->sink_text);
	for (uint32_t i = 0; r >= 0 && i < relay->slot_count; i++)
		relay->slots[i].leaser.conf.sink_text = ob_buf_str(&relay->sink_text);
	return r;
}

int ob_relay_new(const struct ob_relay_conf *conf, struct ob_relay **ret_relay, struct ob_err *err)
{
	struct ob_relay *relay = calloc(1, sizeof(*relay));
	int r;

	if (!relay)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a relay");
	relay->conf = *conf;
	relay->clock = &ob_clock_system;
	relay->control_fd = relay->done_fd = -1;
	relay->sink_text = OB_BUF_INIT(4096);
	(void)pthread_mutex_init(&relay->lock, NULL);
	ob_metrics_init(&relay->metrics, &(struct ob_uuid){ { 0 } });
	/* A name that does not fit is cut: it is only shown to people. */
	(void)gethostname(relay->hostname, sizeof(relay->hostname) - 1);
	r = conf->relay->master_keys
		    ? ob_decrypt_new(conf->relay->master_keys, &relay->decrypt, err)
		    : 0;
	if (r == 0)
		r = make_all_workers(relay, err);
	if (r < 0) {
		ob_err_context(err, "relay %s", conf->relay->name);
		ob_relay_free(relay);
		return r;
	}
	*ret_relay = relay;
	return 0;
}

static void free_slot(struct ob_relay_slot *slot)
{
	ob_worker_free(slot->worker);
	ob_store_thread_free(slot->settler);
	ob_store_thread_free(slot->read_ahead);
	ob_leaser_done(&slot->leaser);
	ob_sink_free(slot->sink);
	ob_store_free(slot->store);
	ob_lease_view_done(&slot->view);
	if (slot->metrics_made)
		ob_metrics_done(&slot->metrics);
	if (slot->wake_fd >= 0)
		(void)close(slot->wake_fd);
}

void ob_relay_free(struct ob_relay *relay)
{
	struct ob_err err = OB_ERR_INIT;

	if (!relay)
		return;
	if (relay->running) {
		ob_relay_stop(relay, OB_STOP_NOW);
		(void)ob_relay_join(relay, &err);
	}
	for (uint32_t i = 0; i < relay->slot_count; i++)
		free_slot(&relay->slots[i]);
	free(relay->slots);
	ob_decrypt_free(relay->decrypt);
	ob_store_free(relay->store);
	ob_metrics_done(&relay->metrics);
	(void)pthread_mutex_destroy(&relay->lock);
	ob_buf_done(&relay->sink_text);
	if (relay->control_fd >= 0)
		(void)close(relay->control_fd);
	if (relay->done_fd >= 0)
		(void)close(relay->done_fd);
	free(relay);
}

/* ---- running --------------------------------------------------------- */

/* The threads that did not start count as through, so that the others can end. */
static int start_failed(struct ob_relay *relay, int error, struct ob_err *err)
{
	for (uint32_t i = 0; i < relay->slot_count; i++) {
		if (!relay->slots[i].started)
			atomic_store(&relay->slots[i].finished, true);
	}
	ob_relay_stop(relay, OB_STOP_NOW);
	(void)ob_relay_join(relay, err);
	errno = error;
	return ob_err_errno(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "starting the threads of relay %s",
			    relay->conf.relay->name);
}

int ob_relay_start(struct ob_relay *relay, struct ob_err *err)
{
	int64_t now = ob_clock_boot_us(relay->clock);
	int r = pthread_create(&relay->control, NULL, ob_relay_control_main, relay);

	relay->control_started = relay->running = r == 0;
	if (r == 0 && relay->conf.retention && relay->conf.retention->every_ms > 0) {
		struct ob_retention_conf retention = {
			.relay = relay->conf.relay->name,
			.retention = relay->conf.retention,
			.open = open_relay_store,
			.arg = relay,
			.metrics = &relay->metrics,
			.clock = relay->clock,
			.log = relay->conf.log,
		};

		if (ob_retention_new(&retention, &relay->retention, err) < 0)
			r = ENOMEM;
	}
	for (uint32_t i = 0; i < relay->slot_count && r == 0; i++) {
		struct ob_relay_slot *slot = &relay->slots[i];

		atomic_store(&slot->looped_us, now);
		r = pthread_create(&slot->thread, NULL, ob_relay_worker_main, slot);
		slot->started = r == 0;
	}
	return r == 0 ? 0 : start_failed(relay, r, err);
}

void ob_relay_stop(struct ob_relay *relay, enum ob_stop how)
{
	int was = (int)OB_STOP_NO;
	int64_t now = ob_clock_boot_us(relay->clock), never = 0;

	if (how == OB_STOP_NO)
		return;
	(void)atomic_compare_exchange_strong(&relay->stop_us, &never, now);
	while (was < (int)how && !atomic_compare_exchange_weak(&relay->stop, &was, (int)how))
		;
	for (uint32_t i = 0; i < relay->slot_count; i++)
		ob_relay_wake(relay->slots[i].wake_fd);
	ob_relay_wake(relay->control_fd);
}

int ob_relay_done_fd(const struct ob_relay *relay)
{
	return relay->done_fd;
}

int ob_relay_join(struct ob_relay *relay, struct ob_err *err)
{
	int r = 0;

	for (uint32_t i = 0; i < relay->slot_count; i++) {
		if (relay->slots[i].started)
			(void)pthread_join(relay->slots[i].thread, NULL);
		relay->slots[i].started = false;
	}
	if (relay->control_started)
		(void)pthread_join(relay->control, NULL);
	relay->control_started = relay->running = false;
	ob_retention_free(relay->retention);
	relay->retention = NULL;
	(void)pthread_mutex_lock(&relay->lock);
	if (relay->err.kind != OB_ERR_NONE) {
		*err = relay->err;
		r = err->status;
	}
	(void)pthread_mutex_unlock(&relay->lock);
	return r;
}

/* ---- once ------------------------------------------------------------ */

/* Everything that is free and due has been read. */
static bool is_through(struct ob_relay_slot *slot)
{
	const struct ob_leaser *leaser = &slot->leaser;

	if (!leaser->seeded || leaser->want > 0 || leaser->balance_us == 0)
		return false;
	/* Nothing for us: others hold all of it. */
	return slot->view.count == 0 || ob_worker_is_idle(slot->worker);
}

static uint32_t count_elsewhere(struct ob_lease_view *view)
{
	uint32_t n;

	(void)pthread_mutex_lock(&view->lock);
	n = view->partition_count > view->count ? view->partition_count - (uint32_t)view->count : 0;
	(void)pthread_mutex_unlock(&view->lock);
	return n;
}

static int run_until_drained(struct ob_relay_slot *slot, struct ob_err *err)
{
	struct ob_step step;

	/* From here on as after a stop: the sink has as much time, and no more. */
	ob_relay_stop(slot->relay, OB_STOP_DRAIN);
	for (;;) {
		int64_t wake = ob_relay_pass_stop(slot);

		(void)ob_relay_step_leaser(slot, &wake);
		ob_worker_step(slot->worker, &step);
		if (step.state != OB_WORKER_RUNNING)
			break;
		if (!step.worked)
			ob_relay_wait(slot, &step, step.wake_us < wake ? step.wake_us : wake);
	}
	if (step.state == OB_WORKER_FAILED)
		*err = *ob_worker_error(slot->worker);
	return step.state == OB_WORKER_FAILED ? err->status : 0;
}

int ob_relay_once(struct ob_relay *relay, struct ob_err *err)
{
	struct ob_relay_slot *slot = &relay->slots[0];
	struct ob_metrics_data data;
	struct ob_err leave_err = OB_ERR_INIT;
	struct ob_step step = { .state = OB_WORKER_RUNNING };
	bool down = false, through = false, away = false;

	while (step.state == OB_WORKER_RUNNING && !down && !through && !away &&
	       !slot->leaser.failed && atomic_load(&relay->stop) == OB_STOP_NO) {
		int64_t wake = INT64_MAX;
		bool leased = ob_relay_step_leaser(slot, &wake);

		ob_worker_step(slot->worker, &step);
		ob_metrics_read(&slot->metrics, &data);
		down = data.breaker != OB_BREAKER_CLOSED;
		away = data.store_errors + slot->leaser.errors >= ONCE_STORE_ERRORS;
		through = !leased && !step.worked && is_through(slot);
		if (!leased && !step.worked && !through && !down)
			ob_relay_wait(slot, &step, step.wake_us < wake ? step.wake_us : wake);
	}

	relay->elsewhere = through ? count_elsewhere(&slot->view) : 0;

	int r = run_until_drained(slot, err);

	(void)ob_leaser_leave(&slot->leaser, &leave_err);
	if (r >= 0 && slot->leaser.failed) {
		*err = slot->leaser.err;
		r = err->status;
	}
	if (r >= 0 && (down || away))
		r = ob_err_set(err, down ? OUTBOX_ESINK : OUTBOX_ESTORE, OB_ERR_DOWN,
			       "relay %s: the %s is down: %s", relay->conf.relay->name,
			       down ? "sink" : "store",
			       data.error_count > 0 ? data.errors[data.error_count - 1].text : "");
	ob_metrics_read(&slot->metrics, &data);
	return r < 0 ? r : (int)(data.published + data.failed);
}

uint32_t ob_relay_elsewhere(const struct ob_relay *relay)
{
	return relay->elsewhere;
}

/* ---- asking --------------------------------------------------------- */

int64_t ob_relay_stalled_us(const struct ob_relay *relay)
{
	int64_t now = ob_clock_boot_us(relay->clock), worst = 0;

	for (uint32_t i = 0; i < relay->slot_count; i++) {
		int64_t looped = atomic_load(&relay->slots[i].looped_us);

		if (looped > 0 && !atomic_load(&relay->slots[i].finished) && now - looped > worst)
			worst = now - looped;
	}
	return worst;
}

void ob_relay_metrics(struct ob_relay *relay, struct ob_metrics_data *ret_data)
{
	struct ob_metrics_data part;

	ob_metrics_read(&relay->metrics, ret_data);
	for (uint32_t i = 0; i < relay->slot_count; i++) {
		ob_metrics_read(&relay->slots[i].metrics, &part);
		part.store_down = atomic_load(&relay->slots[i].view.cut);
		ob_metrics_add(ret_data, &part);
	}
}

bool ob_relay_worker_metrics(struct ob_relay *relay, uint32_t index, struct ob_uuid *ret_id,
			     struct ob_metrics_data *ret_data)
{
	if (index >= relay->slot_count)
		return false;
	*ret_id = relay->slots[index].id;
	ob_metrics_read(&relay->slots[index].metrics, ret_data);
	return true;
}

bool ob_relay_has_ended(struct ob_relay *relay)
{
	struct ob_lease_view *view = &relay->slots[0].view;
	uint32_t ended = 0, count;

	/* A worker without a partition, since there are fewer, has nothing to say. */
	for (uint32_t i = 0; i < relay->slot_count; i++)
		ended += atomic_load(&relay->slots[i].ended);
	(void)pthread_mutex_lock(&view->lock);
	count = view->partition_count;
	(void)pthread_mutex_unlock(&view->lock);
	return count > 0 && ended == count;
}

const char *ob_relay_name(const struct ob_relay *relay)
{
	return relay->conf.relay->name;
}

uint32_t ob_relay_workers(const struct ob_relay *relay)
{
	return relay->slot_count;
}

const char *ob_relay_sink(const struct ob_relay *relay)
{
	return ob_buf_str(&relay->sink_text);
}
