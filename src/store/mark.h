/* SPDX-License-Identifier: MIT */
/*
 * Where a fetch may begin to read, so that it need not step over everything that was finished
 * before. A mark is a number below which a partition has no unfinished row that a snapshot could
 * show. Rows show late: a transaction draws its numbers, others draw and commit higher ones, and
 * then it commits. So a mark is good for a snapshot only if every transaction that had drawn
 * numbers below it when the mark was made is still open in that snapshot (then it shows nothing) or
 * had ended when the mark was made (then it was seen).
 *
 * Made by a look, in this order: (1) read the last number drawn; (2) list the transactions that may
 * have drawn a number and are open, each with an identity (if one has none yet, the look has
 * failed); (3) in one snapshot read the lowest unfinished row of each partition. Every number up to
 * (1) then belongs to a transaction that (3) shows, or to one of the list that it does not show. A
 * writer that was not open at the look before has only numbers above that look's (1).
 *
 * Writers that opened lately hold the mark back. Those that stay open do not: when a snapshot
 * shows that one of them has ended, what was read by it is thrown away and read again from
 * that writer's first number. So an open transaction delays nothing and costs nothing.
 *
 * A partition in which nothing waits but pending rows (no failed, parked or held ones) can be read
 * on from where the last fetch ended, past what is in flight: from `ahead`. That is good only as
 * long as everything which was returned is in flight or published: one generation of fetches.
 *
 * What comes back from the dead by an operator's hand, out of order anyway, is found when
 * everything is read from the bottom, from time to time.
 *
 * The knowledge is of one connection, of one target, and ends with the lease's epoch.
 */
#ifndef OB_STORE_MARK_H
#define OB_STORE_MARK_H

#include "store/store.h"

enum { OB_MARK_WRITERS_MAX = 128 };

/* No mark: from the bottom. */
#define OB_MARK_NONE INT64_MIN

/* How long things take; 0 in all but look_us makes every path a frequent one, for tests. */
struct ob_mark_pace {
	int64_t look_us;    /* between two looks */
	uint32_t look_rows; /* or after so many rows; 0: never for that */
	int64_t young_us;   /* a writer holds the marks back for so long */
	int64_t bottom_us;  /* at least, between two reads from the bottom */
};

struct ob_mark_writer {
	uint64_t id;
	int64_t first; /* it has no number below this one */
	int64_t seen_us;
};

struct ob_marks {
	struct ob_mark_pace pace;
	char target[OUTBOX_TEXT_MAX * 4 + 1];
	bool any;                   /* there was a look */
	int64_t number;             /* the last number drawn before it */
	uint32_t rows;              /* fetched since */
	int64_t look_us, bottom_us; /* when the next is due */
	int64_t began_us;           /* of the fetch that runs */
	bool from_bottom;           /* it reads everything */
	int64_t highest;            /* of the marks it was given */
	int64_t cap; /* writers that have ended since the look may have rows from here */
	struct ob_mark_writer writers[OB_MARK_WRITERS_MAX]; /* open at the look, by id */
	size_t writer_count;
	uint64_t look; /* how many there were */
	struct {
		uint64_t look; /* that made it; an older one knew other writers */
		uint64_t epoch;
		int64_t low;
		uint64_t generation; /* of ahead */
		int64_t ahead;       /* OB_MARK_NONE: unknown */
		int64_t closed_us;   /* ahead is not used before */
	} parts[OB_PARTITIONS_MAX];
};

/* What a statement saw: the identities of writers that were open, ascending. */
struct ob_snapshot {
	uint64_t open[OB_MARK_WRITERS_MAX];
	size_t count;
	bool more;     /* than fit */
	uint64_t next; /* this one and all above it had not ended either */
};

/* Forget everything: the connection is new. */
void ob_marks_init(struct ob_marks *marks, const struct ob_mark_pace *pace);
/*
 * A fetch begins: fills lows[i] with the mark of fetch->partitions[i]; OB_MARK_NONE without epochs.
 * aheads[i], unless it is OB_MARK_NONE: of pending rows of priority 0 only those from there on are
 * of interest, and none of them is in flight.
 * May be called again for the same fetch, after ob_marks_complete() has said no.
 */
void ob_marks_begin(struct ob_marks *marks, const struct ob_fetch *fetch, int64_t now_us,
		    int64_t *lows, int64_t *aheads);
/* Were the marks good for what was read in this snapshot? If not, read again. */
bool ob_marks_complete(struct ob_marks *marks, const struct ob_snapshot *snapshot);
/* The fetch is over, and was complete, with so many rows. */
void ob_marks_end(struct ob_marks *marks, uint32_t rows, int64_t now_us);

/* Was that writer open? */
bool ob_snapshot_shows_open(const struct ob_snapshot *snapshot, uint64_t writer);

/* Should this fetch look as well? */
bool ob_marks_look_due(const struct ob_marks *marks, const struct ob_fetch *fetch, int64_t now_us);
/*
 * A look was taken with the marks of ob_marks_begin(), and ob_marks_complete() said yes to its
 * snapshot, in which `writers` were open. False: the marks stay as they are.
 */
bool ob_marks_looked(struct ob_marks *marks, const uint64_t *writers, size_t count, int64_t number,
		     int64_t now_us);
/* A look found nothing to rely on: the marks stay as they are. */
void ob_marks_look_failed(struct ob_marks *marks, int64_t now_us);
/* Behind it, for each partition: its lowest unfinished row, INT64_MAX: there is none. */
void ob_marks_set(struct ob_marks *marks, uint32_t partition, uint64_t epoch, int64_t lowest);
/*
 * Behind that, and behind a fetch that began ahead: the lowest pending row of priority 0 that was
 * not returned, or what is above all that were.
 */
void ob_marks_set_ahead(struct ob_marks *marks, uint32_t partition, uint64_t generation,
			int64_t seq);
/* What is there is not due: read it in the other way for a while. */
void ob_marks_close(struct ob_marks *marks, uint32_t partition, int64_t now_us);

#endif
