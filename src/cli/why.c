/* SPDX-License-Identifier: MIT */
/* The order of the questions is that of a fetch: state, due, held, leased. */
#include "cli/why.h"

#include "cli/para.h"

enum { PAGE = 100, PAGES_MAX = 100, ARENA_MAX = 64 << 20, NAME_MAX_BYTES = 4096 };

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
	return (other->state == OB_STATE_FAILED || other->state == OB_STATE_DEAD_HOLD) &&
	       other->partition == m->partition && other->seq != m->seq;
}

/* The oldest row of `filter` that holds the message. */
static int look_for_holder(struct ob_why *why, struct ob_store *store, struct ob_filter filter,
			   struct ob_err *err)
{
	int64_t now_us;

	filter.views = 1U << OB_VIEW_FAILED | 1U << OB_VIEW_DEAD | 1U << OB_VIEW_PROCESSING;
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
 * First its key. What is parked though its key is free waits behind its
 * partition, as `ordering: partition` has it.
 */
static int find_holder(struct ob_why *why, struct ob_store *store, const char *target,
		       struct ob_err *err)
{
	struct ob_buf key = OB_BUF_INIT(NAME_MAX_BYTES);
	struct ob_filter filter = { .target = target };
	int r = 0;

	if (why->message->key.p) {
		ob_buf_add(&key, why->message->key);
		filter.key = ob_buf_str(&key);
		r = look_for_holder(why, store, filter, err);
	}
	filter.key = NULL;
	if (r == 0 && !why->has_holder && why->message->state == OB_STATE_PARKED)
		r = look_for_holder(why, store, filter, err);
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
}

static int find_worker(struct ob_why *why, struct ob_store *store, const char *target,
		       struct ob_err *err)
{
	struct ob_partition *partitions;
	struct ob_worker *workers;
	size_t partition_count = 0;
	int r = ob_store_workers(store, target, &why->arena, &workers, &why->workers, err);

	if (r == 0)
		r = ob_store_partitions(store, target, &why->arena, &partitions, &partition_count,
					err);
	if (r < 0)
		return r;
	why->reason = why->workers ? OB_WHY_NO_LEASE : OB_WHY_NO_WORKER;
	for (size_t i = 0; i < partition_count; i++) {
		if (partitions[i].leased && partitions[i].number == why->message->partition)
			find_owner(why, &partitions[i], workers, why->workers);
	}
	return 0;
}

static bool lacks_relay(const struct ob_config *config, const char *target)
{
	for (size_t i = 0; i < config->relay_count; i++) {
		if (strcmp(config->relays[i].name, target) == 0)
			return false;
	}
	return config->relay_count > 0;
}

/* It may go out: so somebody must hold it, or somebody must be missing. */
static int find_obstacle(struct ob_why *why, struct ob_store *store, const struct ob_config *config,
			 struct ob_err *err)
{
	struct ob_buf target = OB_BUF_INIT(NAME_MAX_BYTES);
	bool retry = why->message->state == OB_STATE_FAILED; /* is not held by another */

	ob_buf_add(&target, why->message->target);
	why->no_relay = lacks_relay(config, ob_buf_str(&target));
	int r = retry ? 0 : find_holder(why, store, ob_buf_str(&target), err);
	if (r == 0 && why->has_holder)
		why->reason = OB_WHY_HELD;
	else if (r == 0 && why->message->state == OB_STATE_PARKED)
		why->reason = OB_WHY_PARKED;
	else if (r == 0)
		r = find_worker(why, store, ob_buf_str(&target), err);
	ob_buf_done(&target);
	return r;
}

int ob_why_find(struct ob_why *why, struct ob_store *store, const struct ob_config *config,
		const struct ob_message *m, int64_t now_us, struct ob_err *err)
{
	*why = (struct ob_why){ .message = m, .now_us = now_us, .arena = OB_ARENA_INIT(ARENA_MAX) };
	ob_batch_init(&why->batch);
	switch (ob_message_view(m, now_us)) {
	case OB_VIEW_PUBLISHED:
		why->reason = OB_WHY_PUBLISHED;
		return 0;
	case OB_VIEW_DELAYED:
		why->reason = OB_WHY_DELAYED;
		return 0;
	case OB_VIEW_PROCESSING:
		why->reason = OB_WHY_CLAIMED;
		return 0;
	case OB_VIEW_DEAD:
		why->reason = m->state == OB_STATE_DEAD_HOLD ? OB_WHY_DEAD_HOLD : OB_WHY_DEAD;
		return 0;
	case OB_VIEW_FAILED:
		if (m->available_at_us > now_us) {
			why->reason = OB_WHY_RETRY_WAITS;
			return 0;
		}
		break;
	case OB_VIEW_PENDING:
	case OB_VIEW_PARKED:
	case OB_VIEW_COUNT:
		break;
	}
	return find_obstacle(why, store, config, err);
}

void ob_why_done(struct ob_why *why)
{
	ob_batch_done(&why->batch);
	ob_arena_done(&why->arena);
}
