/* SPDX-License-Identifier: MIT */
/* Marks: pure bookkeeping, shared by the stores that need it, and proven by the simulator. */
#include "store/mark.h"

/* Reading from the bottom may take this part of the time, if it is slow: less than a message in a
 * hundred waits for it. */
enum { BOTTOM_SHARE = 100 };

enum { CLOSED_US = 1000000 };

/* A deliberate bug for the simulator's checker to see; the number is among those of
 * relay/mutants.h. */
#ifndef OB_MUTANT
#define OB_MUTANT 0
#endif
#define MARK_UNSAFE (OB_MUTANT == 15) /* a writer that has ended may have no rows below a mark */
#define MARK_AS_AHEAD \
	(OB_MUTANT == 19) /* where nothing is known to be ahead, the mark is taken for it */

void ob_marks_init(struct ob_marks *marks, const struct ob_mark_pace *pace)
{
	*marks = (struct ob_marks){ .pace = *pace, .cap = INT64_MAX };
}

static int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

bool ob_snapshot_shows_open(const struct ob_snapshot *snapshot, uint64_t writer)
{
	size_t low = 0, high = snapshot->count;

	if (writer >= snapshot->next)
		return true;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (snapshot->open[middle] == writer)
			return true;
		if (snapshot->open[middle] < writer)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* ---- fetching -------------------------------------------------------- */

static void know_target(struct ob_marks *marks, const char *target)
{
	const struct ob_mark_pace pace = marks->pace;

	if (strcmp(marks->target, target) == 0)
		return;
	ob_marks_init(marks, &pace);
	(void)snprintf(marks->target, sizeof(marks->target), "%s", target);
}

/* The lowest number of those that opened lately. */
static int64_t young_bound(const struct ob_marks *marks, int64_t now_us)
{
	int64_t bound = INT64_MAX;

	for (size_t i = 0; i < marks->writer_count; i++) {
		if (now_us - marks->writers[i].seen_us < marks->pace.young_us)
			bound = min_i64(bound, marks->writers[i].first);
	}
	return bound;
}

/* Not past numbers that nobody has looked at: rows of late commits would be passed over. */
static int64_t ahead_of(const struct ob_marks *marks, const struct ob_fetch *fetch, uint32_t p,
			int64_t low, int64_t bound, int64_t now_us)
{
	int64_t ahead = marks->parts[p].ahead;
	bool good = fetch->generation > 0 && marks->parts[p].generation == fetch->generation &&
		    (ahead > OB_MARK_NONE || MARK_AS_AHEAD) &&
		    now_us >= marks->parts[p].closed_us && ahead <= bound &&
		    ahead <= marks->number + 1;

	if (!good)
		return OB_MARK_NONE;
	/* Where nothing was in flight, the mark says more. */
	return ahead > low ? ahead : low;
}

void ob_marks_begin(struct ob_marks *marks, const struct ob_fetch *fetch, int64_t now_us,
		    int64_t *lows, int64_t *aheads)
{
	int64_t bound;

	know_target(marks, fetch->target);
	bound = min_i64(marks->cap, young_bound(marks, now_us));
	marks->began_us = now_us;
	marks->from_bottom = now_us >= marks->bottom_us;
	marks->highest = OB_MARK_NONE;
	for (size_t i = 0; i < fetch->partition_count; i++) {
		uint32_t p = fetch->partitions[i];
		bool known = fetch->epochs && marks->any && !marks->from_bottom &&
			     p < OB_PARTITIONS_MAX && marks->parts[p].look == marks->look &&
			     marks->parts[p].epoch == fetch->epochs[i];

		lows[i] = known ? min_i64(marks->parts[p].low, bound) : OB_MARK_NONE;
		aheads[i] =
			known ? ahead_of(marks, fetch, p, lows[i], bound, now_us) : OB_MARK_NONE;
		/* What this fetch returns will be in flight above it. */
		if (aheads[i] == OB_MARK_NONE && p < OB_PARTITIONS_MAX)
			marks->parts[p].ahead = OB_MARK_NONE;
		if (lows[i] > marks->highest)
			marks->highest = lows[i];
		if (aheads[i] > marks->highest)
			marks->highest = aheads[i];
	}
}

bool ob_marks_complete(struct ob_marks *marks, const struct ob_snapshot *snapshot)
{
	if (MARK_UNSAFE)
		return true;
	for (size_t i = 0; i < marks->writer_count; i++) {
		const struct ob_mark_writer *writer = &marks->writers[i];

		/* One that we cannot see among too many may have ended. */
		if (snapshot->more || !ob_snapshot_shows_open(snapshot, writer->id))
			marks->cap = min_i64(marks->cap, writer->first);
	}
	if (marks->highest <= marks->cap)
		return true;
	marks->look_us = 0; /* so that this is read once */
	return false;
}

void ob_marks_end(struct ob_marks *marks, uint32_t rows, int64_t now_us)
{
	int64_t wait = (now_us - marks->began_us) * BOTTOM_SHARE;

	if (marks->from_bottom)
		marks->bottom_us =
			now_us + (wait > marks->pace.bottom_us ? wait : marks->pace.bottom_us);
	marks->rows += rows;
	/* Reading from the bottom says nothing about what is ahead. */
	if (marks->from_bottom ||
	    (marks->pace.look_rows > 0 && marks->rows >= marks->pace.look_rows))
		marks->look_us = 0;
}

/* ---- looking --------------------------------------------------------- */

bool ob_marks_look_due(const struct ob_marks *marks, const struct ob_fetch *fetch, int64_t now_us)
{
	if (!fetch->epochs)
		return false;
	/* One long way at a time, but for the first. */
	return now_us >= marks->look_us && (!marks->any || !marks->from_bottom);
}

static const struct ob_mark_writer *find_writer(const struct ob_marks *marks, uint64_t id)
{
	for (size_t i = 0; i < marks->writer_count; i++) {
		if (marks->writers[i].id == id)
			return &marks->writers[i];
	}
	return NULL;
}

void ob_marks_look_failed(struct ob_marks *marks, int64_t now_us)
{
	marks->rows = 0;
	marks->look_us = now_us + marks->pace.look_us;
}

bool ob_marks_looked(struct ob_marks *marks, const uint64_t *writers, size_t count, int64_t number,
		     int64_t now_us)
{
	struct ob_mark_writer open[OB_MARK_WRITERS_MAX];

	ob_marks_look_failed(marks, now_us);
	if (count > OB_MARK_WRITERS_MAX)
		return false;
	/* Numbers begin anew: the table was emptied. What is known is about another one. */
	if (marks->any && number < marks->number) {
		marks->any = false;
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		const struct ob_mark_writer *known = find_writer(marks, writers[i]);

		open[i] = (struct ob_mark_writer){
			.id = writers[i],
			.first = marks->any ? marks->number + 1 : OB_MARK_NONE,
			.seen_us = now_us,
		};
		if (known)
			open[i] = *known;
	}
	memcpy(marks->writers, open, count * sizeof(open[0]));
	marks->writer_count = count;
	marks->number = number;
	marks->any = true;
	marks->look++;
	marks->cap = INT64_MAX;
	return true;
}

void ob_marks_set(struct ob_marks *marks, uint32_t partition, uint64_t epoch, int64_t lowest)
{
	marks->parts[partition].look = marks->look;
	marks->parts[partition].epoch = epoch;
	marks->parts[partition].low = lowest > marks->number ? marks->number + 1 : lowest;
	marks->parts[partition].ahead = OB_MARK_NONE;
}

void ob_marks_set_ahead(struct ob_marks *marks, uint32_t partition, uint64_t generation,
			int64_t seq)
{
	marks->parts[partition].generation = generation;
	marks->parts[partition].ahead = seq;
}

void ob_marks_close(struct ob_marks *marks, uint32_t partition, int64_t now_us)
{
	marks->parts[partition].closed_us = now_us + CLOSED_US;
}
