/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store: looking where fetches may begin. See mark.h for why it is done so. */
#include "store/postgres.h"

static uint64_t read_number(const char **at, const char *end)
{
	uint64_t n = 0;

	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++)
		n = n * 10 + (uint64_t)(**at - '0');
	return n;
}

void pg_read_snapshot(struct ob_str text, struct ob_snapshot *ret)
{
	const char *at = text.p, *end = at ? at + text.n : at;

	ret->count = 0;
	/* What cannot be read knows nothing of anybody. */
	ret->more = !at;
	(void)read_number(&at, end);
	at += at < end;
	ret->next = at < end ? read_number(&at, end) : UINT64_MAX;
	at += at < end;
	while (at < end) {
		uint64_t id = read_number(&at, end);

		if (ret->count == OB_MARK_WRITERS_MAX) {
			ret->more = true;
			return;
		}
		ret->open[ret->count++] = id;
		at++;
	}
}

static uint64_t epoch_of(const struct ob_fetch *fetch, uint32_t partition)
{
	for (size_t i = 0; i < fetch->partition_count; i++) {
		if (fetch->partitions[i] == partition)
			return fetch->epochs[i];
	}
	return 0;
}

/* Ids of locks have 32 bits, those of snapshots all of them: the one that is near. */
static uint64_t widen(uint64_t id, uint64_t near)
{
	uint64_t wide = (near & ~(uint64_t)UINT32_MAX) | (uint32_t)id;

	if (wide > near + (UINT64_C(1) << 31) && wide > UINT32_MAX)
		return wide - (UINT64_C(1) << 32);
	return wide + (UINT64_C(1) << 31) < near ? wide + (UINT64_C(1) << 32) : wide;
}

/* Those of the writers that the snapshot does not show; -1: one has no id yet, or they are too
 * many. */
static int list_writers(const PGresult *result, const struct ob_snapshot *snapshot,
			uint64_t writers[OB_MARK_WRITERS_MAX])
{
	int count = 0;

	for (int row = 0; row < PQntuples(result); row++) {
		uint64_t id = widen((uint64_t)pg_get_int(result, row, 0), snapshot->next);

		if (PQgetisnull(result, row, 0) || count == OB_MARK_WRITERS_MAX)
			return -1;
		if (ob_snapshot_shows_open(snapshot, id))
			writers[count++] = id;
	}
	return count;
}

/* Above all that is in flight. */
static int64_t above_flight(const struct ob_fetch *fetch, const struct ob_batch *batch)
{
	int64_t last = fetch->exclude_count > 0 ? fetch->exclude[fetch->exclude_count - 1] : 0;

	for (uint32_t i = 0; i < batch->count; i++) {
		if (batch->messages[i].seq > last)
			last = batch->messages[i].seq;
	}
	return last + 1;
}

static void take_in(struct pg_store *s, const struct ob_fetch *fetch, const struct ob_batch *batch)
{
	int64_t above = above_flight(fetch, batch);
	const PGresult *number = s->results[0], *lowest = s->results[2];
	int64_t now = ob_clock_boot_us(&ob_clock_system);
	uint64_t writers[OB_MARK_WRITERS_MAX];
	struct ob_snapshot snapshot;

	if (PQntuples(lowest) == 0)
		return;
	pg_read_snapshot(pg_get_str(lowest, 0, 0), &snapshot);
	if (!ob_marks_complete(&s->marks, &snapshot))
		return;
	int count = snapshot.more ? -1 : list_writers(s->results[1], &snapshot, writers);
	if (PQgetisnull(number, 0, 0) || count < 0) {
		ob_marks_look_failed(&s->marks, now);
		return;
	}
	if (!ob_marks_looked(&s->marks, writers, (size_t)count, pg_get_int(number, 0, 0), now))
		return;
	for (int row = 0; row < PQntuples(lowest); row++) {
		uint32_t partition = (uint32_t)pg_get_int(lowest, row, 1);
		bool none = PQgetisnull(lowest, row, 2);

		ob_marks_set(&s->marks, partition, epoch_of(fetch, partition),
			     none ? INT64_MAX : pg_get_int(lowest, row, 2));
		if (pg_get_int(lowest, row, 4) == 1)
			ob_marks_set_ahead(
				&s->marks, partition, fetch->generation,
				PQgetisnull(lowest, row, 3) ? above : pg_get_int(lowest, row, 3));
	}
}

static int send(struct pg_store *s, const struct ob_fetch *fetch, const int64_t *lows,
		const struct ob_batch *batch, struct ob_err *err)
{
	struct ob_pgarray partitions = { 0 }, from = { 0 }, flight = { 0 };
	struct pg_params p = { 0 };

	ob_pgarray_begin(&partitions, OB_PG_INT8);
	ob_pgarray_begin(&from, OB_PG_INT8);
	ob_pgarray_begin(&flight, OB_PG_INT8);
	for (size_t i = 0; i < fetch->exclude_count; i++)
		ob_pgarray_int(&flight, fetch->exclude[i]);
	for (uint32_t i = 0; i < batch->count; i++)
		ob_pgarray_int(&flight, batch->messages[i].seq);
	for (size_t i = 0; i < fetch->partition_count; i++) {
		if (fetch->partitions[i] >= OB_PARTITIONS_MAX)
			continue;
		ob_pgarray_int(&partitions, fetch->partitions[i]);
		ob_pgarray_int(&from, lows[i]);
	}
	pg_text(&p, fetch->target);
	pg_array(&p, &partitions);
	pg_array(&p, &from);
	pg_array(&p, &flight);
	pg_int(&p, fetch->generation > 0);
	/* The order of the three is what makes it safe, and that each has a snapshot of its own. */
	int r = pg_add(s, PG_look_number, NULL, err);
	if (r == 0)
		r = pg_add(s, PG_look_writers, NULL, err);
	if (r == 0)
		r = pg_add(s, PG_look, &p, err);
	ob_pgarray_done(&partitions);
	ob_pgarray_done(&from);
	ob_pgarray_done(&flight);
	return r;
}

int pg_find_marks(struct pg_store *s, const struct ob_fetch *fetch, const int64_t *lows,
		  const struct ob_batch *batch, struct ob_err *err)
{
	int r = pg_begin_batch(s, true, err);

	if (r < 0)
		return r;
	r = pg_finish(s, send(s, fetch, lows, batch, err), err);
	if (r == 0)
		take_in(s, fetch, batch);
	pg_clear(s);
	return r;
}
