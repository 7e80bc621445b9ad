/* SPDX-License-Identifier: MIT */
/* Gathering what the store knows of a message; what follows from it is said by ob_may_send(). */
#include "operate/why.h"

#include "base/glob.h"

enum { PAGE = 100, PAGES_MAX = 100, ARENA_MAX = 64 << 20, NAME_MAX_BYTES = 4096 };

#define BIT(view) (1U << OB_VIEW_##view)

/* ---- what holds it --------------------------------------------------- */

static bool holds(const struct ob_message *m, const struct ob_message *other)
{
	return other->excepted && other->partition == m->partition && other->seq < m->seq &&
	       (other->state == OB_STATE_FAILED || other->state == OB_STATE_DEAD_HOLD ||
		other->state == OB_STATE_DELAYED);
}

/* The oldest message of `filter` that holds ours. */
static int find_holder_in(struct ob_why *why, struct ob_store *store, struct ob_filter filter,
			  struct ob_err *err)
{
	int64_t now_us;

	filter.limit = PAGE;
	for (int page = 0; page < PAGES_MAX; page++) {
		int r = ob_store_list(store, &filter, &why->batch, &now_us, err);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < why->batch.count; i++) {
			const struct ob_message *other = &why->batch.messages[i];

			filter.after_seq = other->seq;
			if (holds(why->message, other)) {
				why->holder = *other;
				why->has_holder = true;
				return 0;
			}
		}
		if (why->batch.count < PAGE)
			break;
	}
	return 0;
}

/*
 * First its key, then, as `ordering: partition` has it, its partition. What failed comes before
 * what is delayed: the store does not say whether a delayed message holds its key.
 */
static int find_holder(struct ob_why *why, struct ob_store *store, struct ob_err *err)
{
	static const unsigned views[] = { BIT(FAILED) | BIT(DEAD), BIT(DELAYED) };
	struct ob_buf key = OB_BUF_INIT(NAME_MAX_BYTES);
	int r = 0;

	ob_buf_add(&key, why->message->key);
	for (int whole = why->message->key.p ? 0 : 1; whole < 2; whole++) {
		for (size_t i = 0; i < 2 && r == 0 && !why->has_holder; i++) {
			const struct ob_filter filter = { .reader = why->reader,
							  .views = views[i],
							  .key = whole ? NULL : ob_buf_str(&key) };

			r = find_holder_in(why, store, filter, err);
		}
	}
	ob_buf_done(&key);
	return r;
}

/* ---- who works on it ------------------------------------------------- */

static void find_owner(struct ob_why *why, const struct ob_partition *p,
		       const struct ob_worker *workers, size_t count)
{
	why->leased = true;
	why->lease_until_us = p->until_us;
	why->worker = (struct ob_worker){ .id = p->owner };
	for (size_t i = 0; i < count; i++) {
		if (ob_uuid_eq(&workers[i].id, &p->owner))
			why->worker = workers[i];
	}
	why->has_report = ob_worker_report_read(&why->report, why->worker.state);
}

static int find_worker(struct ob_why *why, struct ob_store *store, struct ob_send_facts *facts,
		       struct ob_err *err)
{
	struct ob_partition *partitions;
	struct ob_worker *workers;
	size_t count = 0;
	int r = ob_store_workers(store, why->reader, &why->arena, &workers, &why->workers, err);

	if (r == 0)
		r = ob_store_partitions(store, why->reader, &why->arena, &partitions, &count, err);
	if (r < 0)
		return r;
	/* A lease is for all lanes of a hash; the position that is known is that of lane 0. */
	why->hash = count ? why->message->partition % (uint32_t)count : why->message->partition;
	for (size_t i = 0; i < count; i++) {
		if (partitions[i].number != why->hash)
			continue;
		why->pos = partitions[i].pos;
		why->has_pos = why->message->partition < count && !why->message->excepted;
		if (partitions[i].leased)
			find_owner(why, &partitions[i], workers, why->workers);
	}
	facts->no_worker = why->workers == 0 && !why->leased;
	facts->no_lease = !why->leased;
	facts->sink_down = why->has_report && ob_worker_report_is_down(&why->report);
	return 0;
}

/* What a worker tells of itself it found by the same rules. */
static enum ob_why_reason told_reason(const struct ob_why *why)
{
	int told = why->has_report ? ob_why_parse(why->report.waits) : -1;

	return told < 0 ? OB_MAY_SEND : (enum ob_why_reason)told;
}

/* ---- what the configuration says -------------------------------------- */

static const struct ob_config_relay *find_relay(const struct ob_config *config, const char *name)
{
	for (size_t i = 0; i < config->relay_count; i++) {
		if (strcmp(config->relays[i].name, name) == 0)
			return &config->relays[i];
	}
	return NULL;
}

static bool reads_target(const struct ob_config *config, struct ob_str target)
{
	for (size_t i = 0; i < config->relay_count; i++) {
		if (ob_str_eq(ob_str(config->relays[i].reads), target))
			return true;
	}
	return false;
}

static bool matches(const char *const *patterns, size_t count, struct ob_str text)
{
	for (size_t i = 0; i < count; i++) {
		if (ob_glob_match(ob_str(patterns[i]), text))
			return true;
	}
	return count == 0;
}

static bool is_left_out(const struct ob_config_relay *relay, const struct ob_message *m)
{
	return relay && !m->excepted &&
	       !(matches(relay->types, relay->type_count, m->event_type) &&
		 matches(relay->aggregates, relay->aggregate_count, m->aggregate_type));
}

/* ---- the whole ------------------------------------------------------- */

int ob_why_find(struct ob_why *why, struct ob_store *store, const struct ob_config *config,
		const char *reader, const struct ob_message *m, int64_t now_us, struct ob_err *err)
{
	*why = (struct ob_why){
		.reader = reader, .message = m, .now_us = now_us, .arena = OB_ARENA_INIT(ARENA_MAX)
	};
	ob_batch_init(&why->batch);
	const struct ob_config_relay *relay = reader ? find_relay(config, reader) : NULL;
	struct ob_send_facts facts = {
		.no_reader = !reader,
		.filtered = is_left_out(relay, m),
		.view = m->view,
		.waits_for_retry = m->due_us > now_us,
		.dead_holds = m->state == OB_STATE_DEAD_HOLD,
	};
	int r = 0;

	why->no_relay = config->relay_count && (reader ? !relay : !reads_target(config, m->target));
	why->reason = ob_may_send(&facts);
	if (why->reason == OB_WHY_HELD) {
		r = find_holder(why, store, err);
		facts.no_holder = !why->has_holder;
	} else if (why->reason == OB_MAY_SEND) {
		r = find_worker(why, store, &facts, err);
	}
	if (r < 0)
		return r;
	why->reason = ob_may_send(&facts);
	if (why->reason == OB_MAY_SEND)
		why->reason = told_reason(why);
	return 0;
}

void ob_why_done(struct ob_why *why)
{
	ob_batch_done(&why->batch);
	ob_arena_done(&why->arena);
}
