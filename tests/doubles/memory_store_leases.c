/* SPDX-License-Identifier: MIT */
/* The memory store: workers and leases. */
#include "doubles/memory_store_impl.h"

static struct mem_worker *find_worker(const struct ob_memdb *db, const struct ob_uuid *id)
{
	for (size_t i = 0; i < db->worker_count; i++) {
		if (ob_uuid_eq(&db->workers[i].id, id))
			return &db->workers[i];
	}
	return NULL;
}

static struct mem_worker *add_worker(struct ob_memdb *db, const struct ob_worker *from)
{
	size_t at = 0;

	db->workers =
		mem_grow(db->workers, db->worker_count, &db->worker_capacity, sizeof(*db->workers));
	while (at < db->worker_count &&
	       memcmp(&db->workers[at].id, &from->id, sizeof(from->id)) < 0)
		at++;
	memmove(&db->workers[at + 1], &db->workers[at],
		(db->worker_count - at) * sizeof(*db->workers));
	db->worker_count++;
	db->workers[at] = (struct mem_worker){
		.id = from->id,
		.reader = mem_dup(from->reader),
		.hostname = mem_dup(from->hostname),
		.pid = from->pid,
		.started_us = mem_now(db),
	};
	return &db->workers[at];
}

static void remove_worker(struct ob_memdb *db, struct mem_worker *worker)
{
	struct mem_worker *end = &db->workers[--db->worker_count];

	free(worker->reader);
	free(worker->hostname);
	free(worker->state);
	memmove(worker, worker + 1, (size_t)(end - worker) * sizeof(*worker));
}

/* What the worker did since its last beat, in this minute's row of its reader. */
static void count_minute(struct ob_memdb *db, const char *reader, uint64_t published,
			 uint64_t failed)
{
	const int64_t minute_us = mem_now(db) / 60000000 * 60000000;
	size_t at = 0;

	if (published == 0 && failed == 0)
		return;
	while (at < db->minute_count && (db->minutes[at].minute.minute_us < minute_us ||
					 (db->minutes[at].minute.minute_us == minute_us &&
					  strcmp(db->minutes[at].reader, reader) < 0)))
		at++;
	if (at == db->minute_count || db->minutes[at].minute.minute_us != minute_us ||
	    strcmp(db->minutes[at].reader, reader) != 0) {
		db->minutes = mem_grow(db->minutes, db->minute_count, &db->minute_capacity,
				       sizeof(*db->minutes));
		memmove(&db->minutes[at + 1], &db->minutes[at],
			(db->minute_count - at) * sizeof(*db->minutes));
		db->minute_count++;
		db->minutes[at] = (struct mem_minute){ .reader = mem_dup(ob_str(reader)),
						       .minute.minute_us = minute_us };
	}
	db->minutes[at].minute.published += published;
	db->minutes[at].minute.failed += failed;
}

int mem_beat(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
	     struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	struct mem_worker *mine = find_worker(db, &worker->id);
	if (!mine)
		mine = add_worker(db, worker);
	/* A counter that fell is that of a worker that joined anew: it counts from 0. */
	count_minute(db, mine->reader, worker->published - mine->published,
		     worker->failed - mine->failed);
	free(mine->state);
	mine->state = mem_dup(worker->state.p ? worker->state : OB_STR(""));
	mine->published = worker->published;
	mine->failed = worker->failed;
	mine->until_us = mem_after(mem_now(db), ttl_ms);
	mine->session = mem_of(store)->session;
	mem_committed(store);
	return 0;
}

static void free_leases(struct ob_memdb *db, const char *name, const struct ob_uuid *owner)
{
	struct mem_reader *reader = mem_reader_find(db, name);

	for (size_t i = 0; reader && i < reader->lease_count; i++) {
		if (ob_uuid_eq(&reader->leases[i].owner, owner))
			reader->leases[i].owned = false;
	}
}

static bool session_lives(const struct ob_memdb *db, uint64_t session)
{
	const struct mem_store *s = db->stores;

	while (s && s->session != session)
		s = s->next;
	return s;
}

int mem_reap(struct ob_store *store, const char *name, const struct ob_uuid *self,
	     uint32_t *ret_gone, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	uint32_t gone = 0;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	for (size_t i = db->worker_count; i-- > 0;) {
		struct mem_worker *w = &db->workers[i];

		if (strcmp(w->reader, name) != 0 || ob_uuid_eq(&w->id, self) ||
		    (w->until_us > mem_now(db) && session_lives(db, w->session)))
			continue;
		free_leases(db, name, &w->id);
		remove_worker(db, w);
		gone++;
	}
	if (gone > 0)
		mem_committed(store);
	*ret_gone = gone;
	return 0;
}

int mem_leave_worker(struct ob_store *store, const char *name, const struct ob_uuid *worker,
		     struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	struct mem_worker *mine = find_worker(db, worker);
	if (mine && strcmp(mine->reader, name) == 0)
		remove_worker(db, mine);
	free_leases(db, name, worker);
	mem_committed(store);
	return 0;
}

int mem_workers(struct ob_store *store, const char *name, struct ob_arena *arena,
		struct ob_worker **ret_workers, size_t *ret_count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	size_t count = 0;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	struct ob_worker *list = mem_alloc(arena, db->worker_count, sizeof(*list));
	for (size_t i = 0; i < db->worker_count; i++) {
		const struct mem_worker *from = &db->workers[i];

		if (from->until_us <= mem_now(db) || (name && strcmp(from->reader, name) != 0))
			continue;
		list[count++] = (struct ob_worker){
			.id = from->id,
			.reader = mem_copy(arena, from->reader),
			.hostname = mem_copy(arena, from->hostname),
			.pid = from->pid,
			.started_at_us = from->started_us,
			.heartbeat_until_us = from->until_us,
			.published = from->published,
			.failed = from->failed,
			.state = mem_copy(arena, from->state),
		};
	}
	*ret_workers = list;
	*ret_count = count;
	return 0;
}

/* ---- leases ---------------------------------------------------------- */

static bool is_valid(const struct ob_memdb *db, const struct mem_lease *lease)
{
	return lease->owned && lease->until_us > mem_now(db);
}

static bool is_ours(const struct ob_memdb *db, const struct mem_lease *lease,
		    const struct ob_uuid *owner)
{
	return is_valid(db, lease) && ob_uuid_eq(&lease->owner, owner);
}

/* Enter, and find the reader. */
static int enter_reader(struct ob_store *store, const char *name, struct ob_memdb **ret_db,
			struct mem_reader **ret_reader, struct ob_err *err)
{
	int r = mem_enter(store, ret_db, err);

	return r < 0 ? r : mem_reader_need(*ret_db, name, ret_reader, err);
}

int mem_seed(struct ob_store *store, const char *name, uint32_t *ret_count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct mem_reader *reader;

	int r = enter_reader(store, name, &db, &reader, err);
	if (r < 0)
		return r;
	while (reader->lease_count > db->partition_count &&
	       !is_valid(db, &reader->leases[reader->lease_count - 1]))
		reader->lease_count--;
	while (reader->lease_count < db->partition_count) {
		struct mem_lease lease = { .number = (uint32_t)reader->lease_count };

		for (uint32_t lane = 0; lane < OB_LANES; lane++) {
			uint32_t p = lane * db->partition_count + lease.number;

			if (mem_newest(reader, p)->epoch > lease.epoch)
				lease.epoch = mem_newest(reader, p)->epoch;
		}
		reader->leases = mem_grow(reader->leases, reader->lease_count,
					  &reader->lease_capacity, sizeof(lease));
		reader->leases[reader->lease_count++] = lease;
	}
	*ret_count = db->partition_count;
	mem_committed(store);
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own nine parameters */
int mem_take(struct ob_store *store, const char *name, const struct ob_uuid *owner, uint32_t want,
	     int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
	     size_t *ret_count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct mem_reader *reader;
	size_t count = 0;

	int r = enter_reader(store, name, &db, &reader, err);
	if (r < 0)
		return r;
	struct ob_lease *list = mem_alloc(arena, reader->lease_count, sizeof(*list));
	for (size_t i = 0; i < reader->lease_count && count < want; i++) {
		struct mem_lease *lease = &reader->leases[i];

		if (is_valid(db, lease))
			continue;
		lease->owned = true;
		lease->owner = *owner;
		lease->until_us = mem_after(mem_now(db), ttl_ms);
		lease->epoch++;
		list[count++] = (struct ob_lease){ lease->number, lease->epoch };
	}
	*ret_leases = list;
	*ret_count = count;
	mem_committed(store);
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int mem_renew(struct ob_store *store, const char *name, const struct ob_uuid *owner, int64_t ttl_ms,
	      struct ob_arena *arena, struct ob_lease **ret_leases, size_t *ret_count,
	      struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct mem_reader *reader;
	size_t count = 0;

	int r = enter_reader(store, name, &db, &reader, err);
	if (r < 0)
		return r;
	struct ob_lease *list = mem_alloc(arena, reader->lease_count, sizeof(*list));
	for (size_t i = 0; i < reader->lease_count; i++) {
		struct mem_lease *lease = &reader->leases[i];

		if (!is_ours(db, lease, owner))
			continue;
		lease->until_us = mem_after(mem_now(db), ttl_ms);
		list[count++] = (struct ob_lease){ lease->number, lease->epoch };
	}
	*ret_leases = list;
	*ret_count = count;
	mem_committed(store);
	return 0;
}

int mem_release(struct ob_store *store, const char *name, const struct ob_uuid *owner,
		const uint32_t *partitions, size_t count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct mem_reader *reader;

	int r = enter_reader(store, name, &db, &reader, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		if (partitions[i] < reader->lease_count &&
		    ob_uuid_eq(&reader->leases[partitions[i]].owner, owner))
			reader->leases[partitions[i]].owned = false;
	}
	mem_committed(store);
	return 0;
}

int mem_free_leases(struct ob_store *store, const char *name, const uint32_t *partitions,
		    size_t count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct mem_reader *reader;

	int r = enter_reader(store, name, &db, &reader, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < reader->lease_count; i++) {
		bool named = count == 0;

		for (size_t n = 0; n < count; n++)
			named = named || partitions[n] == reader->leases[i].number;
		if (!named)
			continue;
		struct mem_worker *holder = find_worker(db, &reader->leases[i].owner);
		if (reader->leases[i].owned && holder)
			remove_worker(db, holder);
		reader->leases[i].owned = false;
		reader->leases[i].epoch++;
	}
	mem_committed(store);
	return 0;
}

int mem_partitions(struct ob_store *store, const char *name, struct ob_arena *arena,
		   struct ob_partition **ret_partitions, size_t *ret_count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	size_t count = 0;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	struct ob_partition *list =
		mem_alloc(arena, db->reader_count * (size_t)(OB_PARTITIONS_MAX + 1), sizeof(*list));
	for (size_t i = 0; i < db->reader_count; i++) {
		const struct mem_reader *reader = db->readers[i];

		for (size_t n = 0; n < reader->lease_count; n++) {
			const struct mem_lease *lease = &reader->leases[n];
			bool is = n < db->partition_count;

			if (name && strcmp(reader->name, name) != 0)
				continue;
			list[count++] = (struct ob_partition){
				.reader = mem_copy(arena, reader->name),
				.number = lease->number,
				.leased = is_valid(db, lease),
				.owner = lease->owned ? lease->owner : (struct ob_uuid){ { 0 } },
				.epoch = lease->epoch,
				.until_us = lease->owned ? lease->until_us : 0,
				.pos = is ? mem_newest(reader, lease->number)->progress.pos : 0,
				.moved_at_us = is ? mem_newest(reader, lease->number)->at_us : 0,
			};
		}
	}
	*ret_partitions = list;
	*ret_count = count;
	return 0;
}
