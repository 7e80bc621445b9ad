/* SPDX-License-Identifier: MIT */
/* The relay's threads: a loop for each worker, and one for control. */
#include "relay/relay_impl.h"

#include <poll.h>
#include <sys/eventfd.h>

enum {
	WAIT_MAX_US = 1000000, /* so that a watchdog sees an idle loop turn */
	LEAVE_RETRY_US = 200000,
	LEAVE_GRACE_US = 2000000, /* for the store to take the leases back */
};

void ob_relay_wake(int fd)
{
	/* Full is as good as written. */
	(void)!eventfd_write(fd, 1);
}

void ob_relay_failed(struct ob_relay *relay, const struct ob_err *err)
{
	bool first;

	(void)pthread_mutex_lock(&relay->lock);
	first = relay->err.kind == OB_ERR_NONE;
	if (first)
		relay->err = *err;
	(void)pthread_mutex_unlock(&relay->lock);
	if (first)
		ob_relay_stop(relay, OB_STOP_DRAIN);
}

static int64_t loop_min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Milliseconds from now to then, rounded up so that we do not wake too early and spin. */
static int loop_timeout_ms(const struct ob_clock *clock, int64_t until_us)
{
	int64_t left = until_us - ob_clock_boot_us(clock);

	if (left <= 0)
		return 0;
	return (int)((loop_min_i64(left, WAIT_MAX_US) + 999) / 1000);
}

void ob_relay_wait(const struct ob_relay_slot *slot, const struct ob_step *step, int64_t until_us)
{
	struct pollfd fds[3] = {
		{ .fd = slot->wake_fd, .events = POLLIN },
		{ .fd = step->store_fd, .events = POLLIN },
		{ .fd = step->sink_fd, .events = POLLIN },
	};
	eventfd_t value;

	(void)poll(fds, 3, loop_timeout_ms(slot->relay->clock, until_us));
	if (fds[0].revents)
		(void)!eventfd_read(slot->wake_fd, &value);
}

/* ---- worker threads -------------------------------------------------- */

int64_t ob_relay_pass_stop(struct ob_relay_slot *slot)
{
	struct ob_relay *relay = slot->relay;
	enum ob_stop stop = (enum ob_stop)atomic_load(&relay->stop);
	int64_t until;

	if (stop == OB_STOP_NO)
		return INT64_MAX;
	until = atomic_load(&relay->stop_us) + relay->conf.relay->shutdown_timeout_ms * 1000;
	if (ob_clock_boot_us(relay->clock) >= until)
		stop = OB_STOP_NOW;
	ob_worker_stop(slot->worker, stop);
	/* It is over: what is still waited for wakes us. */
	return stop == OB_STOP_NOW ? INT64_MAX : until;
}

void *ob_relay_worker_main(void *arg)
{
	struct ob_relay_slot *slot = arg;
	struct ob_relay *relay = slot->relay;
	struct ob_step step;
	uint64_t answers = 0;

	do {
		int64_t until = ob_relay_pass_stop(slot);

		ob_worker_step(slot->worker, &step);
		atomic_store(&slot->ended, ob_worker_ended(slot->worker));
		/* A concurrent settle that hangs is as bad as one inside the loop. */
		atomic_store(&slot->looped_us,
			     step.beside_us > 0 ? step.beside_us : ob_clock_boot_us(relay->clock));
		/* A drained or lost partition is the control thread's business at once. */
		if (atomic_load(&slot->view.answers) != answers) {
			answers = atomic_load(&slot->view.answers);
			ob_relay_wake(relay->control_fd);
		}
		if (step.state == OB_WORKER_RUNNING && !step.worked)
			ob_relay_wait(slot, &step, loop_min_i64(step.wake_us, until));
	} while (step.state == OB_WORKER_RUNNING);
	if (step.state == OB_WORKER_FAILED)
		ob_relay_failed(relay, ob_worker_error(slot->worker));
	atomic_store(&slot->finished, true);
	ob_relay_wake(relay->control_fd);
	return NULL;
}

/* ---- the control thread ---------------------------------------------- */

bool ob_relay_step_leaser(struct ob_relay_slot *slot, int64_t *wake_us)
{
	int64_t wake;

	if (atomic_load(&slot->relay->stop) != (int)OB_STOP_NO)
		ob_leaser_drain(&slot->leaser);

	bool worked = ob_leaser_step(&slot->leaser, &wake);
	uint64_t version = atomic_load(&slot->view.version);

	*wake_us = loop_min_i64(*wake_us, wake);
	if (version != slot->version_seen) {
		slot->version_seen = version;
		ob_relay_wake(slot->wake_fd);
	}
	if (slot->leaser.failed)
		ob_relay_failed(slot->relay, &slot->leaser.err);
	return worked;
}

/*
 * The worker is through: give its leases back, so that others need not wait for them to expire. Not
 * before: what it has at the sink or to settle would be another's (P4). A store that does not
 * answer must not keep the process from ending; the leases expire then.
 */
static void give_leases_back(struct ob_relay_slot *slot, int64_t *wake_us)
{
	struct ob_relay *relay = slot->relay;
	struct ob_err err = OB_ERR_INIT;
	int64_t now = ob_clock_boot_us(relay->clock);
	int64_t give_up = atomic_load(&relay->stop_us) + LEAVE_GRACE_US +
			  relay->conf.relay->shutdown_timeout_ms * 1000;

	if (now < slot->leave_us) {
		*wake_us = loop_min_i64(*wake_us, slot->leave_us);
		return;
	}
	if (ob_leaser_leave(&slot->leaser, &err) >= 0) {
		slot->left = true;
		return;
	}
	slot->leave_us = now + LEAVE_RETRY_US;
	*wake_us = loop_min_i64(*wake_us, slot->leave_us);
	if (err.kind != OB_ERR_FATAL && now < give_up &&
	    atomic_load(&relay->stop) != (int)OB_STOP_NOW)
		return;
	slot->left = true;
	if (relay->conf.log)
		ob_log(relay->conf.log, OB_LOG_WARN,
		       "leases could not be released, they will expire",
		       OB_KV("relay", relay->conf.relay->name), OB_KV("error", err.msg));
}

/* Heartbeats and renewals of all workers, before anything else on their connection. */
static bool renew_round(struct ob_relay *relay)
{
	bool worked = false;

	for (uint32_t i = 0; i < relay->slot_count; i++) {
		struct ob_relay_slot *slot = &relay->slots[i];
		int64_t wake = INT64_MAX;

		if (!slot->left && !atomic_load(&slot->finished) &&
		    ob_leaser_is_urgent(&slot->leaser))
			worked = ob_relay_step_leaser(slot, &wake) || worked;
	}
	return worked;
}

/* One round over all slots; *ret_left when every worker has left. */
static bool control_round(struct ob_relay *relay, int64_t *wake_us, bool *ret_left)
{
	bool worked = false, left = true;

	*ret_left = false;
	if (renew_round(relay))
		return true;

	for (uint32_t i = 0; i < relay->slot_count; i++) {
		struct ob_relay_slot *slot = &relay->slots[i];

		if (!slot->left && atomic_load(&slot->finished))
			give_leases_back(slot, wake_us);
		else if (!slot->left)
			worked = ob_relay_step_leaser(slot, wake_us) || worked;
		left = left && slot->left;
	}
	*ret_left = left;
	return worked;
}

void *ob_relay_control_main(void *arg)
{
	struct ob_relay *relay = arg;
	bool left = false;

	while (!left) {
		struct pollfd fd = { .fd = relay->control_fd, .events = POLLIN };
		int64_t wake = INT64_MAX;
		eventfd_t value;
		bool worked = control_round(relay, &wake, &left);

		if (left || worked)
			continue;
		(void)poll(&fd, 1, loop_timeout_ms(relay->clock, wake));
		if (fd.revents)
			(void)!eventfd_read(relay->control_fd, &value);
	}
	ob_relay_wake(relay->done_fd);
	return NULL;
}
