/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store: looking where fetches may begin. See mark.h for why it is done so. */
#include "store/postgres.h"

int pg_add_look(struct pg_store *s, const struct ob_fetch *fetch, const int64_t *lows,
		struct ob_err *err)
{
	struct ob_pgarray partitions = { 0 }, from = { 0 };
	struct pg_params p = { 0 };

	ob_pgarray_begin(&partitions, OB_PG_INT8);
	ob_pgarray_begin(&from, OB_PG_INT8);
	for (size_t i = 0; i < fetch->partition_count; i++) {
		if (fetch->partitions[i] >= OB_PARTITIONS_MAX)
			continue;
		ob_pgarray_int(&partitions, fetch->partitions[i]);
		ob_pgarray_int(&from, lows[i]);
	}
	pg_text(&p, fetch->target);
	pg_array(&p, &partitions);
	pg_array(&p, &from);
	/* The order of the three is what makes it safe. */
	int r = pg_add(s, PG_look_number, NULL, err);
	if (r == 0)
		r = pg_add(s, PG_look_writers, NULL, err);
	if (r == 0)
		r = pg_add(s, PG_look, &p, err);
	ob_pgarray_done(&partitions);
	ob_pgarray_done(&from);
	return r;
}

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
	int colons = 0;

	ret->count = 0;
	/* What cannot be read knows nothing of anybody. */
	ret->more = !at;
	for (; at < end && colons < 2; at++)
		colons += *at == ':';
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

void pg_read_look(struct pg_store *s, const struct ob_fetch *fetch, int at)
{
	const PGresult *number = s->results[at], *writers = s->results[at + 1];
	const PGresult *lowest = s->results[at + 2];
	int64_t now = ob_clock_boot_us(&ob_clock_system);
	struct ob_snapshot snapshot;

	if (PQntuples(lowest) == 0)
		return;
	pg_read_snapshot(pg_get_str(lowest, 0, 0), &snapshot);
	if (!ob_marks_complete(&s->marks, &snapshot))
		return;
	if (PQgetisnull(number, 0, 0) || pg_get_int(writers, 0, 0) > 0) {
		ob_marks_look_failed(&s->marks, now);
		return;
	}
	/* Nobody had a number and was open, so nobody needs to be watched. */
	snapshot.count = 0;
	if (!ob_marks_looked(&s->marks, &snapshot, pg_get_int(number, 0, 0), now))
		return;
	for (int row = 0; row < PQntuples(lowest); row++) {
		uint32_t partition = (uint32_t)pg_get_int(lowest, row, 1);
		bool none = PQgetisnull(lowest, row, 2);

		ob_marks_set(&s->marks, partition, epoch_of(fetch, partition),
			     none ? INT64_MAX : pg_get_int(lowest, row, 2));
	}
}
