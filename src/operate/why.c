/* SPDX-License-Identifier: MIT */
/* The order of the questions is that of a read: state, due, held, leased. */
#include "operate/why.h"

#include "base/glob.h"

enum { PAGE = 100, PAGES_MAX = 100, ARENA_MAX = 64 << 20, NAME_MAX_BYTES = 4096 };

#define BIT(view) (1U << OB_VIEW_##view)

const char *ob_why_name(enum ob_why_reason reason)
{
	static const char *const names[] = {
#define X(name, text) [OB_WHY_##name] = (text),
		OB_WHY_MAP(X)
#undef X
	};

	return names[reason];
}

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
	why->reason = OB_WHY_LEASED;
	why->lease_until_us = p->until_us;
	why->worker = (struct ob_worker){ .id = p->owner };
	for (size_t i = 0; i < count; i++) {
		if (ob_uuid_eq(&workers[i].id, &p->owner))
			why->worker = workers[i];
	}
	why->has_report = ob_worker_report_read(&why->report, why->worker.state);
	if (why->has_report && ob_worker_report_is_down(&why->report))
		why->reason = OB_WHY_SINK_DOWN;
}

static int find_worker(struct ob_why *why, struct ob_store *store, struct ob_err *err)
{
	struct ob_partition *partitions;
	struct ob_worker *workers;
	size_t count = 0;
	int r = ob_store_workers(store, why->reader, &why->arena, &workers, &why->workers, err);

	if (r == 0)
		r = ob_store_partitions(store, why->reader, &why->arena, &partitions, &count, err);
	if (r < 0)
		return r;
	why->reason = why->workers ? OB_WHY_NO_LEASE : OB_WHY_NO_WORKER;
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
	return 0;
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

/* What its state alone tells; false: it could go out, as far as that goes. */
static bool find_by_state(struct ob_why *why)
{
	const struct ob_message *m = why->message;

	switch (m->view) {
	case OB_VIEW_PUBLISHED:
		why->reason = OB_WHY_PUBLISHED;
		return true;
	case OB_VIEW_DISCARDED:
		why->reason = OB_WHY_DISCARDED;
		return true;
	case OB_VIEW_DELAYED:
		why->reason = OB_WHY_DELAYED;
		return true;
	case OB_VIEW_DEAD:
		why->reason = m->state == OB_STATE_DEAD_HOLD ? OB_WHY_DEAD_HOLD : OB_WHY_DEAD;
		return true;
	case OB_VIEW_FAILED:
		why->reason = OB_WHY_RETRY_WAITS;
		return m->due_us > why->now_us;
	case OB_VIEW_PENDING:
	case OB_VIEW_PARKED:
	case OB_VIEW_COUNT:
		break;
	}
	return false;
}

int ob_why_find(struct ob_why *why, struct ob_store *store, const struct ob_config *config,
		const char *reader, const struct ob_message *m, int64_t now_us, struct ob_err *err)
{
	*why = (struct ob_why){
		.reader = reader, .message = m, .now_us = now_us, .arena = OB_ARENA_INIT(ARENA_MAX)
	};
	ob_batch_init(&why->batch);
	if (!reader) {
		why->reason = OB_WHY_NO_READER;
		why->no_relay = config->relay_count && !reads_target(config, m->target);
		return 0;
	}
	const struct ob_config_relay *relay = find_relay(config, reader);
	why->no_relay = config->relay_count && !relay;
	if (is_left_out(relay, m)) {
		why->reason = OB_WHY_FILTERED;
		return 0;
	}
	if (find_by_state(why))
		return 0;
	int r = m->view == OB_VIEW_PARKED ? find_holder(why, store, err) : 0;
	if (r == 0 && m->view == OB_VIEW_PARKED)
		why->reason = why->has_holder ? OB_WHY_HELD : OB_WHY_PARKED;
	else if (r == 0)
		r = find_worker(why, store, err);
	return r;
}

void ob_why_done(struct ob_why *why)
{
	ob_batch_done(&why->batch);
	ob_arena_done(&why->arena);
}
