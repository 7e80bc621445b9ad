/* SPDX-License-Identifier: MIT */
/* The relays of this process: connecting them, and exchanging one for another while others run. */
#include "cli/work/work.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

enum { SUMMARY_BYTES = 1 << 20 };

/* ---- making one -------------------------------------------------------- */

/*
 * A relay meets its sink with the first message. What only a person can mend shall be said
 * now; a sink that is away may come back.
 */
static int check_sink(const struct ob_config_relay *conf, struct ob_err *err)
{
	struct ob_sink *sink;
	int r = ob_sink_new(conf->sink->ops, conf->sink->options, conf->sink->option_count,
			    &ob_clock_system, &sink, err);

	if (r < 0)
		return r;
	r = ob_sink_open(sink, err);
	ob_sink_free(sink);
	if (r < 0 && err->kind == OB_ERR_FATAL)
		return ob_err_context(err, "relay %s", conf->name);
	return 0;
}

int ob_work_make(const struct ob_config_relay *conf, const struct ob_log *log,
		 struct ob_relay **ret_relay, struct ob_err *err)
{
	struct ob_relay_conf relay = { .relay = conf,
				       .log = log,
				       .retention = &conf->store->retention };
	/* Before the relay, which makes its reader: what cannot run shall leave none behind. */
	int r = check_sink(conf, err);

	return r < 0 ? r : ob_relay_new(&relay, ret_relay, err);
}

static int remember_ids(struct ob_work_relay *entry, struct ob_err *err)
{
	uint32_t count = ob_relay_workers(entry->relay);
	struct ob_metrics_data data;

	entry->own = calloc(count ? count : 1, sizeof(*entry->own));
	if (!entry->own)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	for (uint32_t i = 0; i < count; i++)
		(void)ob_relay_worker_metrics(entry->relay, i, &entry->own[i], &data);
	return 0;
}

static void forget(struct ob_work_relay *entry)
{
	ob_opener_free(entry->opener);
	ob_relay_free(entry->relay);
	ob_relay_free(entry->next);
	free(entry->own);
	ob_work_plan_unref(entry->plan);
	ob_work_plan_unref(entry->next_plan);
	*entry = (struct ob_work_relay){ 0 };
}

/* ---- the set ------------------------------------------------------------- */

static struct ob_work_relay *add(struct ob_work_set *set, struct ob_err *err)
{
	struct ob_work_relay *more = realloc(set->relays, (set->count + 1) * sizeof(*set->relays));

	if (!more) {
		(void)ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
		return NULL;
	}
	set->relays = more;
	more[set->count] = (struct ob_work_relay){ 0 };
	return &more[set->count++];
}

/* Its store is away: somebody tries again and again, and the others need not wait. */
static int wait_for_store(struct ob_work_relay *entry, const struct ob_log *log,
			  const struct ob_err *why, struct ob_err *err)
{
	int r = ob_opener_new(entry->conf, log, &entry->opener, err);

	if (r < 0)
		return r;
	entry->away = (struct ob_metrics_data){ .store_down = true, .error_count = 1 };
	entry->away.errors[0] = (struct ob_last_error){ .at_us = ob_clock_real_us(&ob_clock_system),
							.kind = why->kind,
							.times = 1 };
	(void)snprintf(entry->away.errors[0].text, OB_LAST_ERROR_TEXT, "%.150s", why->msg);
	ob_log(log, OB_LOG_WARN, "store is away, waiting for it", OB_KV("relay", entry->conf->name),
	       OB_KV("store", entry->conf->store->name), OB_KV("error", why->msg));
	return 0;
}

static int open_entry(struct ob_work_relay *entry, bool once, const struct ob_log *log,
		      struct ob_err *err)
{
	struct ob_err why = OB_ERR_INIT;
	int r = ob_work_make(entry->conf, log, &entry->relay, &why);

	if (r >= 0)
		return remember_ids(entry, err);
	if (why.kind != OB_ERR_FATAL && !once)
		return wait_for_store(entry, log, &why, err);
	*err = why;
	return r;
}

int ob_work_set_open(struct ob_work_set *set, struct ob_work_plan *plan, bool once,
		     const struct ob_log *log)
{
	*set = (struct ob_work_set){ .log = log, .summary = OB_BUF_INIT(SUMMARY_BYTES) };
	for (size_t i = 0; i < plan->count; i++) {
		struct ob_err err = OB_ERR_INIT;
		struct ob_work_relay *entry = add(set, &err);

		if (!entry)
			return ob_cli_fail("%s", err.msg);
		entry->plan = ob_work_plan_ref(plan);
		entry->conf = plan->relays[i];
		if (open_entry(entry, once, log, &err) >= 0)
			continue;
		/* The log is for those that go on; where none does, a line is enough. */
		if (once || plan->count == 1)
			(void)ob_cli_fail("%s", err.msg);
		else
			ob_log(log, OB_LOG_ERROR, "relay cannot start, the others go on",
			       OB_KV("relay", entry->conf->name),
			       OB_KV("store", entry->conf->store->name), OB_KV("error", err.msg));
		forget(entry);
		set->count--;
		set->failed = true;
	}
	return set->count ? OB_EXIT_OK : OB_EXIT_FAILURE;
}

void ob_work_metrics(const struct ob_work_relay *entry, struct ob_metrics_data *ret_data)
{
	if (entry->relay)
		ob_relay_metrics(entry->relay, ret_data);
	else
		*ret_data = entry->away;
}

uint32_t ob_work_workers(const struct ob_work_relay *entry)
{
	return entry->relay ? ob_relay_workers(entry->relay) : 0;
}

const char *ob_work_sink(const struct ob_work_relay *entry)
{
	return entry->relay ? ob_relay_sink(entry->relay) : entry->conf->sink->name;
}

int ob_work_fd(const struct ob_work_relay *entry)
{
	return entry->relay ? ob_relay_done_fd(entry->relay) : ob_opener_fd(entry->opener);
}

static const char *const orders[] = { "key", "partition", "none" };

static int start(struct ob_work_set *set, struct ob_work_relay *entry, struct ob_err *err)
{
	const struct ob_config_relay *conf = entry->conf;
	int r = ob_relay_start(entry->relay, err);

	if (r < 0)
		return r;
	ob_log(set->log, OB_LOG_INFO, "relay started", OB_KV("relay", conf->name),
	       OB_KV("reads", conf->reads), OB_KV("store", conf->store->name),
	       OB_KV("sink", ob_relay_sink(entry->relay)),
	       OB_KI("workers", ob_relay_workers(entry->relay)),
	       OB_KV("ordering", orders[conf->ordering]));
	return 0;
}

int ob_work_set_start(struct ob_work_set *set, struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < set->count && r >= 0; i++) {
		if (set->relays[i].relay)
			r = start(set, &set->relays[i], err);
	}
	return r;
}

void ob_work_set_stop(struct ob_work_set *set, enum ob_stop how)
{
	for (size_t i = 0; i < set->count; i++) {
		struct ob_work_relay *entry = &set->relays[i];

		/* Nothing takes its place any more. */
		ob_relay_free(entry->next);
		entry->next = NULL;
		entry->leaving = true;
		if (entry->relay)
			ob_relay_stop(entry->relay, how);
		else
			ob_opener_stop(entry->opener);
	}
}

static void say_failed(struct ob_work_set *set, const struct ob_work_relay *entry,
		       const struct ob_err *err)
{
	ob_log(set->log, OB_LOG_ERROR, "relay failed and has ended",
	       OB_KV("relay", entry->conf->name), OB_KV("store", entry->conf->store->name),
	       OB_KV("error", err->msg));
	set->failed = true;
}

/* The store came, or somebody stopped the wait. False: the entry is free. */
static bool end_wait(struct ob_work_set *set, struct ob_work_relay *entry)
{
	struct ob_err err = OB_ERR_INIT;

	entry->relay = ob_opener_take(entry->opener, &err);
	ob_opener_free(OB_TAKE(entry->opener));
	if (entry->leaving)
		return false;
	if (entry->relay) {
		ob_log(set->log, OB_LOG_INFO, "store is back", OB_KV("relay", entry->conf->name),
		       OB_KV("store", entry->conf->store->name));
		if (remember_ids(entry, &err) == 0 && start(set, entry, &err) == 0)
			return true;
	}
	say_failed(set, entry, &err);
	return false;
}

/* The relay ended: say so, and put what follows it in its place. False: the entry is free. */
static bool replace(struct ob_work_set *set, struct ob_work_relay *entry)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_metrics_data data;

	ob_relay_metrics(entry->relay, &data);
	ob_buf_addf(&set->summary,
		    "%s: %" PRIu64 " published, %" PRIu64 " failed, %" PRIu64 " dead\n",
		    entry->conf->name, data.published, data.retries, data.dead);
	if (ob_relay_join(entry->relay, &err) < 0) {
		say_failed(set, entry, &err);
	} else {
		ob_log(set->log, OB_LOG_INFO, "relay stopped", OB_KV("relay", entry->conf->name),
		       OB_KI("published", (int64_t)data.published),
		       OB_KI("failed", (int64_t)data.failed), OB_KI("dead", (int64_t)data.dead));
	}
	if (!entry->next)
		return false;
	struct ob_work_relay next = { .plan = entry->next_plan,
				      .conf = entry->next_conf,
				      .relay = entry->next };
	entry->next = NULL;
	entry->next_plan = NULL;
	forget(entry);
	*entry = next;
	if (remember_ids(entry, &err) == 0 && start(set, entry, &err) == 0)
		return true;
	say_failed(set, entry, &err);
	return false;
}

static bool has_ended(const struct ob_work_relay *entry)
{
	struct pollfd fd = { .fd = ob_work_fd(entry), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

void ob_work_set_reap(struct ob_work_set *set)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++) {
		struct ob_work_relay *entry = &set->relays[i];
		bool ended = has_ended(entry);

		if (ended && !(entry->relay ? replace(set, entry) : end_wait(set, entry))) {
			forget(entry);
			continue;
		}
		if (kept != i)
			set->relays[kept] = *entry;
		kept++;
	}
	set->count = kept;
}

void ob_work_set_done(struct ob_work_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		forget(&set->relays[i]);
	free(set->relays);
	ob_buf_done(&set->summary);
	*set = (struct ob_work_set){ 0 };
}

/* ---- going over to another plan -------------------------------------------- */

static struct ob_work_relay *find(struct ob_work_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++) {
		if (strcmp(set->relays[i].conf->name, name) == 0)
			return &set->relays[i];
	}
	return NULL;
}

static bool is_unchanged(const struct ob_work_relay *entry, const struct ob_config_relay *conf)
{
	const struct ob_config_relay *now = entry->next ? entry->next_conf : entry->conf;

	return (!entry->leaving || entry->next) && ob_config_same_relay(now, conf);
}

/* Connect all that is new into fresh[]; NULL where the relay stays as it is. */
static int connect_new(struct ob_work_set *set, const struct ob_work_plan *plan,
		       struct ob_relay **fresh, struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < plan->count && r >= 0; i++) {
		const struct ob_work_relay *entry = find(set, plan->relays[i]->name);

		if (!entry || !is_unchanged(entry, plan->relays[i]))
			r = ob_work_make(plan->relays[i], set->log, &fresh[i], err);
	}
	return r;
}

static void leave(struct ob_work_relay *entry)
{
	entry->leaving = true;
	if (entry->relay)
		ob_relay_stop(entry->relay, OB_STOP_DRAIN);
	else
		ob_opener_stop(entry->opener);
}

static void exchange(struct ob_work_set *set, struct ob_work_relay *entry,
		     struct ob_work_plan *plan, const struct ob_config_relay *conf,
		     struct ob_relay *fresh)
{
	ob_relay_free(entry->next);
	ob_work_plan_unref(entry->next_plan);
	entry->next = fresh;
	entry->next_conf = conf;
	entry->next_plan = ob_work_plan_ref(plan);
	ob_log(set->log, OB_LOG_INFO, "relay changed, restarting it", OB_KV("relay", conf->name));
	leave(entry);
}

static void drop_gone(struct ob_work_set *set, const struct ob_work_plan *plan)
{
	for (size_t i = 0; i < set->count; i++) {
		struct ob_work_relay *entry = &set->relays[i];
		bool wanted = false;

		for (size_t p = 0; p < plan->count; p++)
			wanted = wanted || strcmp(plan->relays[p]->name, entry->conf->name) == 0;
		if (wanted)
			continue;
		ob_relay_free(entry->next);
		entry->next = NULL;
		ob_log(set->log, OB_LOG_INFO, "relay removed, draining it",
		       OB_KV("relay", entry->conf->name));
		leave(entry);
	}
}

/* Instead of one that waits for its store. */
static int take_place(struct ob_work_set *set, struct ob_work_relay *entry,
		      struct ob_work_plan *plan, const struct ob_config_relay *conf,
		      struct ob_relay *fresh, struct ob_err *err)
{
	forget(entry);
	*entry = (struct ob_work_relay){ .plan = ob_work_plan_ref(plan),
					 .conf = conf,
					 .relay = fresh };

	int r = remember_ids(entry, err);

	return r < 0 ? r : start(set, entry, err);
}

static int join_in(struct ob_work_set *set, struct ob_work_plan *plan,
		   const struct ob_config_relay *conf, struct ob_relay *fresh, struct ob_err *err)
{
	struct ob_work_relay *entry = add(set, err);

	if (!entry) {
		ob_relay_free(fresh);
		return err->status;
	}
	*entry = (struct ob_work_relay){ .plan = ob_work_plan_ref(plan),
					 .conf = conf,
					 .relay = fresh };
	if (remember_ids(entry, err) == 0 && start(set, entry, err) == 0)
		return 0;
	forget(entry);
	set->count--;
	return err->status;
}

/* Put what was connected in its place; what is taken is NULL afterwards. */
static int put_in_place(struct ob_work_set *set, struct ob_work_plan *plan, struct ob_relay **fresh,
			struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < plan->count; i++) {
		const struct ob_config_relay *conf = plan->relays[i];
		struct ob_work_relay *entry = find(set, conf->name);

		if (!fresh[i])
			continue;
		if (entry && !entry->relay) /* there is nothing to drain */
			r = take_place(set, entry, plan, conf, fresh[i], err);
		else if (entry)
			exchange(set, entry, plan, conf, fresh[i]);
		else
			r = join_in(set, plan, conf, fresh[i], err);
		fresh[i] = NULL;
	}
	if (r >= 0)
		drop_gone(set, plan);
	return r;
}

int ob_work_set_change(struct ob_work_set *set, struct ob_work_plan *plan, struct ob_err *err)
{
	struct ob_relay **fresh = calloc(plan->count, sizeof(struct ob_relay *));

	if (!fresh)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	int r = connect_new(set, plan, fresh, err);
	if (r >= 0)
		r = put_in_place(set, plan, fresh, err);
	for (size_t i = 0; i < plan->count; i++)
		ob_relay_free(fresh[i]);
	free(fresh);
	return r;
}
