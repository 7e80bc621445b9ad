/* SPDX-License-Identifier: MIT */
/* The memory store: workers, the leases of partitions, and their number. */
#include "store/memory_impl.h"

static bool is_valid(const struct mem_lease *lease, int64_t now)
{
	return lease->owned && lease->until_us > now;
}

static bool is_of(const struct mem_lease *lease, const char *target)
{
	return strcmp(lease->target, target) == 0;
}

static bool is_owned_by(const struct mem_lease *lease, const char *target,
			const struct ob_uuid *owner)
{
	return lease->owned && is_of(lease, target) && ob_uuid_eq(&lease->owner, owner);
}

static void set_free(struct mem_lease *lease)
{
	lease->owned = false;
	lease->owner = (struct ob_uuid){ 0 };
	lease->until_us = 0;
}

/* ---- workers --------------------------------------------------------- */

static void worker_remove(struct ob_memdb *db, size_t at)
{
	free(db->workers[at].target);
	free(db->workers[at].hostname);
	memmove(&db->workers[at], &db->workers[at + 1],
		(--db->worker_count - at) * sizeof(*db->workers));
}

/* Where the worker is, or where it belongs. */
static size_t worker_place(const struct ob_memdb *db, const struct ob_uuid *id)
{
	size_t at = 0;

	while (at < db->worker_count && memcmp(db->workers[at].id.b, id->b, sizeof(id->b)) < 0)
		at++;
	return at;
}

static bool worker_join(struct ob_memdb *db, const struct ob_worker *worker, size_t at)
{
	char *target = strndup(worker->target.p, worker->target.n);
	char *hostname = strndup(worker->hostname.p, worker->hostname.n);

	if (!target || !hostname ||
	    !mem_reserve((void **)&db->workers, &db->worker_capacity, db->worker_count,
			 sizeof(*db->workers))) {
		free(target);
		free(hostname);
		return false;
	}
	memmove(&db->workers[at + 1], &db->workers[at],
		(db->worker_count++ - at) * sizeof(*db->workers));
	db->workers[at] = (struct mem_worker){
		.id = worker->id,
		.target = target,
		.hostname = hostname,
		.pid = worker->pid,
		.started_us = mem_now(db),
	};
	return true;
}

int mem_beat(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
	     struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	int64_t now = mem_now(db);
	for (size_t i = db->worker_count; i-- > 0;) {
		const struct mem_worker *other = &db->workers[i];

		if (other->until_us <= now && !ob_uuid_eq(&other->id, &worker->id) &&
		    ob_str_eq(ob_str(other->target), worker->target))
			worker_remove(db, i);
	}
	size_t at = worker_place(db, &worker->id);
	bool joined = at < db->worker_count && ob_uuid_eq(&db->workers[at].id, &worker->id);
	if (!joined && !worker_join(db, worker, at))
		return mem_oom(err);
	db->workers[at].until_us = mem_after(now, ttl_ms);
	db->workers[at].published = worker->published;
	db->workers[at].failed = worker->failed;
	mem_committed(mem_of(store));
	return 0;
}

int mem_leave_worker(struct ob_store *store, const char *target, const struct ob_uuid *worker,
		     struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < db->lease_count; i++) {
		if (is_owned_by(&db->leases[i], target, worker))
			set_free(&db->leases[i]);
	}
	size_t at = worker_place(db, worker);
	if (at < db->worker_count && ob_uuid_eq(&db->workers[at].id, worker) &&
	    strcmp(db->workers[at].target, target) == 0)
		worker_remove(db, at);
	mem_committed(mem_of(store));
	return 0;
}

int mem_workers(struct ob_store *store, const char *target, struct ob_arena *arena,
		struct ob_worker **ret_workers, size_t *ret_count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	size_t count = 0;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	struct ob_worker *list = ob_arena_alloc(arena, (db->worker_count + 1) * sizeof(*list));
	if (!list)
		return mem_oom(err);
	for (size_t i = 0; i < db->worker_count; i++) {
		const struct mem_worker *from = &db->workers[i];
		struct ob_worker *to = &list[count];

		if (from->until_us <= mem_now(db) || (target && strcmp(from->target, target) != 0))
			continue;
		*to = (struct ob_worker){
			.id = from->id,
			.pid = from->pid,
			.started_at_us = from->started_us,
			.heartbeat_until_us = from->until_us,
			.published = from->published,
			.failed = from->failed,
		};
		if (!ob_arena_copy(arena, ob_str(from->target), &to->target) ||
		    !ob_arena_copy(arena, ob_str(from->hostname), &to->hostname))
			return mem_oom(err);
		count++;
	}
	*ret_workers = list;
	*ret_count = count;
	return 0;
}

/* ---- leases ---------------------------------------------------------- */

/* Where the lease row is, or where it belongs. */
static size_t lease_place(const struct ob_memdb *db, const char *target, uint32_t number)
{
	size_t low = 0, high = db->lease_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(db->leases[middle].target, target);

		if (order < 0 || (order == 0 && db->leases[middle].number < number))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct mem_lease *mem_lease_find(struct ob_memdb *db, const char *target, uint32_t number)
{
	size_t at = lease_place(db, target, number);
	struct mem_lease *lease = at < db->lease_count ? &db->leases[at] : NULL;

	return lease && is_of(lease, target) && lease->number == number ? lease : NULL;
}

static bool lease_add(struct ob_memdb *db, const char *target, uint32_t number)
{
	char *name = strdup(target);

	if (!name || !mem_reserve((void **)&db->leases, &db->lease_capacity, db->lease_count,
				  sizeof(*db->leases))) {
		free(name);
		return false;
	}
	size_t at = lease_place(db, target, number);
	memmove(&db->leases[at + 1], &db->leases[at],
		(db->lease_count++ - at) * sizeof(*db->leases));
	db->leases[at] = (struct mem_lease){ .target = name, .number = number };
	return true;
}

int mem_seed(struct ob_store *store, const char *target, uint32_t *ret_count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	for (uint32_t number = 0; number < db->partition_count; number++) {
		if (!mem_lease_find(db, target, number) && !lease_add(db, target, number))
			return mem_oom(err);
	}
	for (size_t i = db->lease_count; i-- > 0;) {
		struct mem_lease *lease = &db->leases[i];

		if (!is_of(lease, target) || lease->number < db->partition_count ||
		    is_valid(lease, mem_now(db)))
			continue;
		free(lease->target);
		memmove(lease, lease + 1, (--db->lease_count - i) * sizeof(*lease));
	}
	mem_committed(mem_of(store));
	*ret_count = db->partition_count;
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own nine parameters */
int mem_take(struct ob_store *store, const char *target, const struct ob_uuid *owner, uint32_t want,
	     int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
	     size_t *ret_count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	size_t count = 0;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	struct ob_lease *list = ob_arena_alloc(arena, (db->lease_count + 1) * sizeof(*list));
	if (!list)
		return mem_oom(err);
	int64_t now = mem_now(db);
	for (size_t i = 0; i < db->lease_count && count < want; i++) {
		struct mem_lease *lease = &db->leases[i];

		/* A row above the count is what a resize left behind: there is nothing in it. */
		if (!is_of(lease, target) || is_valid(lease, now) ||
		    lease->number >= db->partition_count)
			continue;
		lease->owned = true;
		lease->owner = *owner;
		lease->epoch++;
		lease->until_us = mem_after(now, ttl_ms);
		list[count++] = (struct ob_lease){ lease->number, lease->epoch };
	}
	if (count > 0)
		mem_committed(mem_of(store));
	*ret_leases = list;
	*ret_count = count;
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int mem_renew(struct ob_store *store, const char *target, const struct ob_uuid *owner,
	      int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
	      size_t *ret_count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	size_t count = 0;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	struct ob_lease *list = ob_arena_alloc(arena, (db->lease_count + 1) * sizeof(*list));
	if (!list)
		return mem_oom(err);
	int64_t now = mem_now(db);
	for (size_t i = 0; i < db->lease_count; i++) {
		struct mem_lease *lease = &db->leases[i];

		if (!is_owned_by(lease, target, owner) || !is_valid(lease, now))
			continue;
		lease->until_us = mem_after(now, ttl_ms);
		list[count++] = (struct ob_lease){ lease->number, lease->epoch };
	}
	if (count > 0)
		mem_committed(mem_of(store));
	*ret_leases = list;
	*ret_count = count;
	return 0;
}

int mem_release_leases(struct ob_store *store, const char *target, const struct ob_uuid *owner,
		       const uint32_t *partitions, size_t count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		struct mem_lease *lease = mem_lease_find(db, target, partitions[i]);

		if (lease && is_owned_by(lease, target, owner))
			set_free(lease);
	}
	mem_committed(mem_of(store));
	return 0;
}

int mem_partitions(struct ob_store *store, const char *target, struct ob_arena *arena,
		   struct ob_partition **ret_partitions, size_t *ret_count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	size_t count = 0;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	struct ob_partition *list = ob_arena_alloc(arena, (db->lease_count + 1) * sizeof(*list));
	if (!list)
		return mem_oom(err);
	for (size_t i = 0; i < db->lease_count; i++) {
		const struct mem_lease *from = &db->leases[i];

		if (target && !is_of(from, target))
			continue;
		list[count] = (struct ob_partition){
			.number = from->number,
			.leased = is_valid(from, mem_now(db)),
			.owner = from->owner,
			.epoch = from->epoch,
			.until_us = from->until_us,
		};
		if (!ob_arena_copy(arena, ob_str(from->target), &list[count].target))
			return mem_oom(err);
		count++;
	}
	*ret_partitions = list;
	*ret_count = count;
	return 0;
}

/* ---- another number of partitions ------------------------------------ */

static bool key_is_held(const struct ob_memdb *db, const struct mem_row *row)
{
	for (struct mem_row *at = TAILQ_FIRST(&db->live); at; at = TAILQ_NEXT(at, live_link)) {
		if (row->m.key.p && mem_holds(at) && ob_str_eq(at->m.target, row->m.target) &&
		    ob_str_eq(at->m.key, row->m.key))
			return true;
	}
	return false;
}

static void move_rows(struct ob_memdb *db)
{
	const struct mem_cause moved = { .cause = OB_MEMDB_MOVED };

	for (struct mem_row *row = TAILQ_FIRST(&db->all); row; row = TAILQ_NEXT(row, all_link)) {
		/* What held it may stand in another partition now. */
		bool free_now = row->m.state == OB_STATE_PARKED && !key_is_held(db, row);

		row->m.partition = mem_partition(db, &row->m);
		mem_row_set(db, row, free_now ? OB_STATE_PENDING : row->m.state, &moved);
	}
}

int mem_resize(struct ob_store *store, uint32_t partition_count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	if (partition_count == db->partition_count)
		return 0;
	for (size_t i = 0; i < db->lease_count; i++) {
		if (is_valid(&db->leases[i], mem_now(db)))
			return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
					  "partition %u of '%s' is leased: stop the relays first",
					  db->leases[i].number, db->leases[i].target);
	}
	for (size_t i = 0; i < db->lease_count; i++) {
		set_free(&db->leases[i]);
		db->leases[i].epoch++;
	}
	db->partition_count = partition_count;
	move_rows(db);
	mem_committed(mem_of(store));
	return 0;
}
