/* SPDX-License-Identifier: MIT */
/*
 * Spans of a worker that are not recorded yet. A partition has an entry for each span that reached
 * it, in order, with the number of messages that have no outcome. What may be recorded is the last
 * entry before the first open one.
 */
#include "log/track.h"

#include "base/cleanup.h"

#include <assert.h>

struct entry {
	uint64_t span;
	uint32_t open, closed;
	struct ob_progress after;
};

struct part {
	bool ours;
	uint64_t batch;
	struct ob_progress recorded, read_from;
	struct entry *entries; /* by span, ascending; at most one for each live span */
	uint32_t count, capacity;
};

/* A span lives while a partition has an entry for it. */
struct span {
	uint64_t number; /* 0: free */
	int64_t began_us;
	uint32_t entries, open;
	uint32_t passed; /* later spans that brought messages and are through */
};

struct ob_track {
	uint64_t last; /* span number */
	struct span spans[OB_TRACK_SPANS];
	uint32_t part_count;
	struct part parts[];
};

/* A number is a count that grows, with the span's place below it. */
static struct span *find_span(struct ob_track *track, uint64_t number)
{
	struct span *span = &track->spans[number % OB_TRACK_SPANS];

	return span->number == number ? span : NULL;
}

int ob_track_new(uint32_t partitions, struct ob_track **ret_track, struct ob_err *err)
{
	struct ob_track *track = calloc(1, sizeof(*track) + partitions * sizeof(track->parts[0]));

	if (!track)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a track");
	track->part_count = partitions;
	*ret_track = track;
	return 0;
}

void ob_track_free(struct ob_track *track)
{
	if (!track)
		return;
	for (uint32_t i = 0; i < track->part_count; i++) {
		ob_track_drop(track, i);
		free(track->parts[i].entries);
	}
	free(track);
}

/* Entry `at` of the partition is recorded, forgotten, or included in a later one. */
static void remove_entry(struct ob_track *track, struct part *part, uint32_t at)
{
	struct entry *entry = &part->entries[at];
	struct span *span = find_span(track, entry->span);

	assert(span && span->entries > 0 && span->open >= entry->open);
	span->open -= entry->open;
	if (--span->entries == 0 && span->number != track->last)
		span->number = 0;
	ob_progress_done(&entry->after);
	memmove(entry, entry + 1, (part->count - at - 1) * sizeof(*entry));
	part->count--;
}

static struct part *track_part_of(struct ob_track *track, uint32_t partition)
{
	assert(partition < track->part_count);
	return &track->parts[partition];
}

static const struct part *const_part_of(const struct ob_track *track, uint32_t partition)
{
	assert(partition < track->part_count);
	return &track->parts[partition];
}

int ob_track_take(struct ob_track *track, uint32_t partition, uint64_t batch,
		  const struct ob_progress *progress, struct ob_err *err)
{
	struct part *part = track_part_of(track, partition);

	ob_track_drop(track, partition);
	if (!part->entries) {
		part->entries = calloc(4, sizeof(*part->entries));
		if (!part->entries)
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a track");
		part->capacity = 4;
	}
	/* From the journal, never from what we remember: another owner may have gone on since (P4).
	 */
	part->ours = true;
	part->batch = batch;
	ob_progress_set(&part->recorded, progress);
	ob_progress_set(&part->read_from, progress);
	return 0;
}

void ob_track_drop(struct ob_track *track, uint32_t partition)
{
	struct part *part = track_part_of(track, partition);

	while (part->count > 0)
		remove_entry(track, part, part->count - 1);
	ob_progress_done(&part->recorded);
	ob_progress_done(&part->read_from);
	part->ours = false;
	part->batch = 0;
}

bool ob_track_has(const struct ob_track *track, uint32_t partition)
{
	return const_part_of(track, partition)->ours;
}

const struct ob_progress *ob_track_read_from(const struct ob_track *track, uint32_t partition)
{
	return &const_part_of(track, partition)->read_from;
}

/* The newest span may have no entry yet; once it is not the newest, it is free. */
static bool is_free(const struct span *span)
{
	return span->number == 0 || span->entries == 0;
}

static struct span *free_span(struct ob_track *track)
{
	for (size_t i = 0; i < OB_TRACK_SPANS; i++) {
		if (is_free(&track->spans[i]))
			return &track->spans[i];
	}
	return NULL;
}

bool ob_track_has_room(const struct ob_track *track)
{
	for (size_t i = 0; i < OB_TRACK_SPANS; i++) {
		if (is_free(&track->spans[i]))
			return true;
	}
	return false;
}

uint64_t ob_track_span(struct ob_track *track, int64_t now_us)
{
	struct span *span = free_span(track);

	assert(span);
	uint64_t place = (uint64_t)(span - track->spans);
	track->last = (track->last / OB_TRACK_SPANS + 1) * OB_TRACK_SPANS + place;
	*span = (struct span){ .number = track->last, .began_us = now_us };
	return span->number;
}

/*
 * Of two entries in a row with nothing open the later includes the earlier. So reads that find
 * nothing, however many, do not use up the spans.
 */
static void merge_last(struct ob_track *track, struct part *part)
{
	uint32_t n = part->count;

	if (n < 2 || part->entries[n - 1].open > 0 || part->entries[n - 2].open > 0)
		return;
	part->entries[n - 1].closed += part->entries[n - 2].closed;
	remove_entry(track, part, n - 2);
}

int ob_track_reach(struct ob_track *track, uint32_t partition, const struct ob_progress *after,
		   struct ob_err *err)
{
	struct part *part = track_part_of(track, partition);
	struct span *span = find_span(track, track->last);

	assert(span && part->ours);
	if (part->count == 0 || part->entries[part->count - 1].span != span->number) {
		merge_last(track, part);
		if (part->count == part->capacity) {
			uint32_t capacity = part->capacity * 2;
			struct entry *more = reallocarray(part->entries, capacity, sizeof(*more));

			if (!more)
				return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL,
						  "allocating a track");
			part->entries = more;
			part->capacity = capacity;
		}
		part->entries[part->count++] = (struct entry){ .span = span->number };
		span->entries++;
	}
	ob_progress_set(&part->entries[part->count - 1].after, after);
	ob_progress_set(&part->read_from, after);
	return 0;
}

/*
 * Read again from what can be recorded: what was read beyond it and is not in memory any more would
 * otherwise be passed without ever being sent (P1).
 */
void ob_track_rewind(struct ob_track *track, uint32_t partition)
{
	struct part *part = track_part_of(track, partition);
	const struct ob_progress *progress;
	uint64_t span;

	if (!part->ours)
		return;
	(void)ob_track_recordable(track, partition, &progress, &span);
	while (part->count > 0 && part->entries[part->count - 1].span > span)
		remove_entry(track, part, part->count - 1);
	ob_progress_set(&part->read_from, progress);
}

/* NULL: the partition was given up, or taken anew, since the message was read. */
static struct entry *find_entry(struct part *part, uint64_t span)
{
	for (uint32_t i = 0; i < part->count; i++) {
		if (part->entries[i].span == span)
			return &part->entries[i];
	}
	return NULL;
}

void ob_track_open(struct ob_track *track, uint64_t span, uint32_t partition)
{
	struct entry *entry = find_entry(track_part_of(track, partition), span);
	struct span *of = find_span(track, span);

	assert(entry && of); /* or its position would be passed without it */
	entry->open++;
	of->open++;
}

/* The span is through: what is open in earlier ones has been overtaken by it. */
static void count_passed(struct ob_track *track, uint64_t number)
{
	for (size_t i = 0; i < OB_TRACK_SPANS; i++) {
		if (track->spans[i].number < number && track->spans[i].open > 0)
			track->spans[i].passed++;
	}
}

void ob_track_close(struct ob_track *track, uint64_t span, uint32_t partition)
{
	struct entry *entry = find_entry(track_part_of(track, partition), span);
	struct span *of = find_span(track, span);

	if (!entry || !of)
		return;
	assert(entry->open > 0);
	entry->open--;
	entry->closed++;
	if (--of->open == 0)
		count_passed(track, span);
}

bool ob_track_recordable(const struct ob_track *track, uint32_t partition,
			 const struct ob_progress **ret_progress, uint64_t *ret_span)
{
	const struct part *part = const_part_of(track, partition);
	uint32_t n = 0;

	while (n < part->count && part->entries[n].open == 0)
		n++;
	*ret_progress = n > 0 ? &part->entries[n - 1].after : &part->recorded;
	*ret_span = n > 0 ? part->entries[n - 1].span : 0;
	return n > 0;
}

void ob_track_recorded(struct ob_track *track, uint32_t partition, uint64_t span, uint64_t batch)
{
	struct part *part = track_part_of(track, partition);

	if (!part->ours)
		return;
	while (part->count > 0 && part->entries[0].span <= span) {
		ob_progress_set(&part->recorded, &part->entries[0].after);
		remove_entry(track, part, 0);
	}
	part->batch = batch;
}

uint32_t ob_track_unrecorded(const struct ob_track *track, uint32_t partition)
{
	const struct part *part = const_part_of(track, partition);
	uint32_t closed = 0;

	for (uint32_t i = 0; i < part->count; i++)
		closed += part->entries[i].closed;
	return closed;
}

uint64_t ob_track_batch(const struct ob_track *track, uint32_t partition)
{
	return const_part_of(track, partition)->batch;
}

void ob_track_set_batch(struct ob_track *track, uint32_t partition, uint64_t batch)
{
	track_part_of(track, partition)->batch = batch;
}

uint64_t ob_track_spill(const struct ob_track *track, int64_t older_than_us)
{
	uint64_t newest = 0;

	for (size_t i = 0; i < OB_TRACK_SPANS; i++) {
		const struct span *span = &track->spans[i];

		if (span->number > newest && span->open > 0 &&
		    (span->passed >= 2 || span->began_us < older_than_us))
			newest = span->number;
	}
	return newest;
}
