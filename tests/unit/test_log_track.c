/* SPDX-License-Identifier: MIT */
/* Spans: the position never passes a message without an outcome. */
#include "base/rng.h"
#include "log/track.h"
#include "suite.h"

static struct ob_track *track;
static struct ob_err err;

static void begin(uint32_t partitions)
{
	ck_assert_int_eq(ob_track_new(partitions, &track, &err), 0);
	for (uint32_t p = 0; p < partitions; p++)
		ck_assert_int_eq(ob_track_take(track, p, 1, &(struct ob_progress){ 0 }, &err), 0);
}

static void reach(uint32_t partition, int64_t pos)
{
	ck_assert_int_eq(
		ob_track_reach(track, partition, &(struct ob_progress){ .pos = pos }, &err), 0);
}

/* A span that brings `messages` to partition 0 and moves it to `pos`. */
static uint64_t span(int64_t pos, int messages)
{
	ck_assert(ob_track_has_room(track));
	uint64_t number = ob_track_span(track, 1000 + pos);

	reach(0, pos);
	for (int i = 0; i < messages; i++)
		ob_track_open(track, number, 0);
	return number;
}

/* The position that may be recorded; -1: none. */
static int64_t recordable(uint32_t partition)
{
	const struct ob_progress *progress;
	uint64_t number;

	return ob_track_recordable(track, partition, &progress, &number) ? progress->pos : -1;
}

OB_TEST(progress_waits_for_every_outcome)
{
	begin(1);
	ck_assert_int_eq(recordable(0), -1);
	uint64_t one = span(10, 2);
	ck_assert_int_eq(ob_track_read_from(track, 0)->pos, 10);
	ck_assert_int_eq(recordable(0), -1);
	ob_track_close(track, one, 0);
	ck_assert_int_eq(recordable(0), -1);
	ob_track_close(track, one, 0);
	ck_assert_int_eq(recordable(0), 10);
	ob_track_recorded(track, 0, one, 2);
	ck_assert_int_eq(recordable(0), -1);
	ck_assert_uint_eq(ob_track_batch(track, 0), 2);
	ob_track_set_batch(track, 0, 5);
	ck_assert_uint_eq(ob_track_batch(track, 0), 5);
	ob_track_free(track);
}
OB_TEST_END

OB_TEST(what_has_an_outcome_after_an_open_message_is_counted)
{
	begin(2);
	uint64_t empty = span(5, 0), one = span(10, 2), two = span(20, 3);

	ck_assert_uint_eq(ob_track_unrecorded(track, 0), 0);
	ob_track_close(track, one, 0);
	for (int i = 0; i < 3; i++)
		ob_track_close(track, two, 0);
	ck_assert_uint_eq(ob_track_unrecorded(track, 0), 4);
	ck_assert_uint_eq(ob_track_unrecorded(track, 1), 0);
	/* What is recorded does not cover them. */
	ob_track_recorded(track, 0, empty, 2);
	ck_assert_uint_eq(ob_track_unrecorded(track, 0), 4);
	ob_track_close(track, one, 0);
	/* Nor are they forgotten when spans are merged. */
	uint64_t three = span(30, 0);
	(void)span(40, 0);
	ck_assert_uint_eq(ob_track_unrecorded(track, 0), 5);
	ob_track_recorded(track, 0, three, 3);
	ck_assert_uint_eq(ob_track_unrecorded(track, 0), 0);
	ob_track_free(track);
}
OB_TEST_END

OB_TEST(what_is_forgotten_is_read_again)
{
	begin(2);
	uint64_t one = span(10, 1), two = span(20, 2), three = span(30, 1);

	reach(1, 30);
	ob_track_close(track, one, 0);
	ob_track_rewind(track, 0);
	ck_assert_int_eq(ob_track_read_from(track, 0)->pos, 10);
	ck_assert_int_eq(ob_track_read_from(track, 1)->pos, 30);
	ck_assert_int_eq(recordable(0), 10);
	/* Nothing of it is open any more. */
	ck_assert_uint_eq(ob_track_spill(track, INT64_MAX), 0);
	ob_track_close(track, two, 0);
	ob_track_close(track, three, 0);
	ck_assert_int_eq(recordable(0), 10);
	ob_track_recorded(track, 0, one, 2);
	(void)span(40, 1);
	ob_track_rewind(track, 0);
	ck_assert_int_eq(ob_track_read_from(track, 0)->pos, 10);
	ob_track_drop(track, 0);
	ob_track_rewind(track, 0);
	ck_assert(!ob_track_has(track, 0));
	ob_track_free(track);
}
OB_TEST_END

OB_TEST(an_earlier_span_holds_a_later_one)
{
	begin(1);
	uint64_t one = span(10, 1), two = span(20, 1), three = span(30, 1);

	ck_assert_uint_lt(one, two);
	ck_assert_uint_lt(two, three);
	ob_track_close(track, two, 0);
	ck_assert_int_eq(recordable(0), -1);
	ob_track_close(track, one, 0);
	ck_assert_int_eq(recordable(0), 20);
	ob_track_recorded(track, 0, two, 2);
	ck_assert_int_eq(recordable(0), -1);
	ob_track_close(track, three, 0);
	ck_assert_int_eq(recordable(0), 30);
	ob_track_free(track);
}
OB_TEST_END

OB_TEST(partitions_are_recorded_each_for_itself)
{
	begin(2);
	uint64_t one = span(10, 1);

	reach(1, 10);
	ck_assert_int_eq(recordable(0), -1);
	ck_assert_int_eq(recordable(1), 10);
	ob_track_recorded(track, 1, one, 2);
	ob_track_close(track, one, 0);
	ck_assert_int_eq(recordable(0), 10);
	ck_assert_int_eq(recordable(1), -1);
	ob_track_free(track);
}
OB_TEST_END

OB_TEST(what_is_recorded_meanwhile_stays_recorded)
{
	begin(1);
	uint64_t one = span(10, 0);

	ck_assert_int_eq(recordable(0), 10);
	/* Recording 10 takes its time; two more reads end before it. */
	(void)span(20, 0);
	uint64_t three = span(30, 1);
	ob_track_recorded(track, 0, one, 2);
	ck_assert_int_eq(recordable(0), 20);
	ob_track_close(track, three, 0);
	ck_assert_int_eq(recordable(0), 30);
	ob_track_free(track);
}
OB_TEST_END

OB_TEST(a_partition_that_is_given_up_is_forgotten)
{
	begin(2);
	uint64_t one = span(10, 2);

	ob_track_drop(track, 0);
	ck_assert(!ob_track_has(track, 0));
	ck_assert(ob_track_has(track, 1));
	ob_track_close(track, one, 0); /* comes late */
	ck_assert_int_eq(recordable(0), -1);
	ob_track_recorded(track, 0, one, 9);
	ck_assert_uint_eq(ob_track_batch(track, 0), 0);
	/* Ours again, from what the one in between recorded: its old span counts for nothing. */
	ck_assert_int_eq(ob_track_take(track, 0, 7, &(struct ob_progress){ .pos = 5 }, &err), 0);
	ck_assert_int_eq(ob_track_read_from(track, 0)->pos, 5);
	uint64_t two = span(10, 1);
	ob_track_close(track, one, 0);
	ck_assert_int_eq(recordable(0), -1);
	ob_track_close(track, two, 0);
	ck_assert_int_eq(recordable(0), 10);
	ob_track_free(track);
}
OB_TEST_END

OB_TEST(there_is_room_for_so_many_spans)
{
	uint64_t numbers[OB_TRACK_SPANS];

	begin(1);
	for (int i = 0; i < OB_TRACK_SPANS; i++)
		numbers[i] = span(10 * (i + 1), 1);
	ck_assert(!ob_track_has_room(track));
	ob_track_close(track, numbers[0], 0);
	ob_track_recorded(track, 0, numbers[0], 2);
	ck_assert(ob_track_has_room(track));
	(void)span(9999, 1);
	ck_assert(!ob_track_has_room(track));
	ob_track_free(track);
}
OB_TEST_END

OB_TEST(reads_that_find_nothing_use_up_no_room)
{
	begin(1);
	uint64_t first = span(10, 1);

	for (int i = 0; i < 10 * OB_TRACK_SPANS; i++)
		(void)span(20 + i, 0);
	ck_assert_int_eq(recordable(0), -1);
	ck_assert_uint_eq(ob_track_spill(track, 0), 0); /* nor do they overtake anything */
	ob_track_close(track, first, 0);
	ck_assert_int_eq(recordable(0), 19 + 10 * OB_TRACK_SPANS);
	for (int i = 0; i < 10 * OB_TRACK_SPANS; i++)
		(void)ob_track_span(track, 1); /* without any partition */
	ck_assert(ob_track_has_room(track));
	ob_track_free(track);
}
OB_TEST_END

OB_TEST(what_two_later_spans_overtook_is_spilled)
{
	begin(2);
	uint64_t one = span(10, 2), two = span(20, 1), three = span(30, 1), four = span(40, 1);

	ob_track_close(track, one, 0);
	ob_track_close(track, three, 0);
	ck_assert_uint_eq(ob_track_spill(track, 0), 0);
	ob_track_close(track, four, 0);
	ck_assert_uint_eq(ob_track_spill(track, 0), two);
	ob_track_close(track, two, 0);
	ck_assert_uint_eq(ob_track_spill(track, 0), one);
	ob_track_close(track, one, 0);
	ck_assert_uint_eq(ob_track_spill(track, 0), 0);
	ck_assert_int_eq(recordable(0), 40);
	ob_track_free(track);
}
OB_TEST_END

OB_TEST(a_span_that_is_open_in_another_partition_overtakes_nothing)
{
	begin(2);
	uint64_t one = span(10, 1), numbers[2];

	for (int i = 0; i < 2; i++) {
		numbers[i] = span(20 + 10 * i, 1);
		reach(1, 20 + 10 * i);
		ob_track_open(track, numbers[i], 1);
		ob_track_close(track, numbers[i], 0);
	}
	ck_assert_uint_eq(ob_track_spill(track, 0), 0);
	ob_track_close(track, numbers[0], 1);
	ob_track_close(track, numbers[1], 1);
	ck_assert_uint_eq(ob_track_spill(track, 0), one);
	ob_track_free(track);
}
OB_TEST_END

OB_TEST(what_is_old_is_spilled)
{
	begin(1);
	uint64_t one = span(10, 1), two = span(20, 1); /* began at 1010 and 1020 */

	ck_assert_uint_eq(ob_track_spill(track, 1010), 0);
	ck_assert_uint_eq(ob_track_spill(track, 1011), one);
	ck_assert_uint_eq(ob_track_spill(track, 1021), two);
	ob_track_close(track, two, 0);
	ck_assert_uint_eq(ob_track_spill(track, 1021), one);
	ob_track_free(track);
}
OB_TEST_END

OB_TEST(progress_keeps_what_was_seen)
{
	struct ob_progress after = { .pos = 10, .seen = ob_seen_new(OB_STR("7:7:")) };
	const struct ob_progress *progress;
	uint64_t number;

	begin(1);
	(void)ob_track_span(track, 0);
	ck_assert_int_eq(ob_track_reach(track, 0, &after, &err), 0);
	ob_progress_done(&after);
	ck_assert(ob_track_recordable(track, 0, &progress, &number));
	ck_assert_str_eq(progress->seen->text, "7:7:");
	ob_track_free(track);
}
OB_TEST_END

/* Spans, outcomes and records in any order: what is recordable is what a plain model says. */
OB_TEST(any_order_of_outcomes_gives_the_longest_closed_prefix)
{
	enum { READS = 400 };
	struct ob_rng rng;
	uint64_t numbers[READS];
	int open[READS] = { 0 };
	int reads = 0, recorded = 0; /* reads before this one are recorded */

	ob_rng_init(&rng, 5);
	begin(1);
	while (reads < READS) {
		if (ob_track_has_room(track) && ob_rng_below(&rng, 3) == 0) {
			open[reads] = (int)ob_rng_below(&rng, 4);
			numbers[reads] = span(reads + 1, open[reads]);
			reads++;
		}
		int i = reads ? (int)ob_rng_below(&rng, (uint64_t)reads) : 0;
		if (reads && open[i] > 0) {
			open[i]--;
			ob_track_close(track, numbers[i], 0);
		}
		int closed = recorded;
		while (closed < reads && open[closed] == 0)
			closed++;
		/* Position i + 1 is what read i reached. */
		ck_assert_int_eq(recordable(0), closed > recorded ? closed : -1);
		if (closed > recorded && ob_rng_below(&rng, 4) == 0) {
			ob_track_recorded(track, 0, numbers[closed - 1], 2);
			recorded = closed;
		}
	}
	ob_track_free(track);
}
OB_TEST_END

OB_SUITE("log_track", progress_waits_for_every_outcome,
	 what_has_an_outcome_after_an_open_message_is_counted, what_is_forgotten_is_read_again,
	 an_earlier_span_holds_a_later_one, partitions_are_recorded_each_for_itself,
	 what_is_recorded_meanwhile_stays_recorded, a_partition_that_is_given_up_is_forgotten,
	 there_is_room_for_so_many_spans, reads_that_find_nothing_use_up_no_room,
	 what_two_later_spans_overtook_is_spilled,
	 a_span_that_is_open_in_another_partition_overtakes_nothing, what_is_old_is_spilled,
	 progress_keeps_what_was_seen, any_order_of_outcomes_gives_the_longest_closed_prefix)
