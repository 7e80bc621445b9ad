/* SPDX-License-Identifier: MIT */
/* UUID text forms, and ids that never repeat and never go back. */
#include "base/uuid.h"
#include "suite.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char v7_text[] = "0192f3a1-7c44-7b1e-9f43-5b0c8a6d2e11";

static int order(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct ob_uuid));
}

static uint64_t ms_of(const struct ob_uuid *id)
{
	uint64_t ms = 0;

	for (int i = 0; i < 6; i++)
		ms = ms << 8 | id->b[i];
	return ms;
}

OB_TEST(text_becomes_bytes_and_the_same_text_again)
{
	static const char *const texts[] = {
		"0192f3a1-7c44-7b1e-9f43-5b0c8a6d2e11",
		"0192F3A1-7C44-7B1E-9F43-5B0C8A6D2E11",
		"0192f3a17c447b1e9f435b0c8a6d2e11",
		"0192F3A17c447b1e9f435b0c8a6d2e11",
	};
	char text[OB_UUID_TEXT_SIZE];
	struct ob_uuid id;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ck_assert(ob_uuid_parse(ob_str(texts[i]), &id));
		ob_uuid_format(&id, text);
		ck_assert_str_eq(text, v7_text);
	}
	ck_assert_uint_eq(id.b[0], 0x01);
	ck_assert_uint_eq(id.b[15], 0x11);
}
OB_TEST_END

OB_TEST(what_is_no_uuid_is_refused_and_nothing_is_written)
{
	static const char *const texts[] = {
		"",
		"x",
		"not-a-uuid",
		"0192f3a1-7c44-7b1e-9f43-5b0c8a6d2e1",
		"0192f3a1-7c44-7b1e-9f43-5b0c8a6d2e111",
		"0192f3a1_7c44_7b1e_9f43_5b0c8a6d2e11",
		"0192f3a17-c44-7b1e-9f43-5b0c8a6d2e11",
		"0192f3a1-7c44-7b1e-9f43-5b0c8a6d2eg1",
		"0192f3a1-7c44-7b1e-9f43-5b0c8a6d2e1 ",
		"{192f3a1-7c44-7b1e-9f43-5b0c8a6d2e1}",
		"0192f3a17c447b1e9f435b0c8a6d2e1",
		"0192f3a17c447b1e9f435b0c8a6d2e111",
		"0192f3a17c447b1e-9f435b0c8a6d2e1",
		"+192f3a17c447b1e9f435b0c8a6d2e11",
	};
	struct ob_uuid id = { { 0xAA } };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_msg(!ob_uuid_parse(ob_str(texts[i]), &id), "accepted: %s", texts[i]);
	ck_assert(!ob_uuid_parse(OB_STR_NULL, &id));
	ck_assert(!ob_uuid_parse((struct ob_str){ "0192f3a1-7c44-7b1e-9f43-5b0c8a6d2e\0001", 36 },
				 &id));
	ck_assert_uint_eq(id.b[0], 0xAA);
}
OB_TEST_END

OB_TEST(a_database_value_is_read_from_16_raw_32_hex_or_36_text)
{
	static const char raw[16] = { 0, 0, 0, 7, 'a', '-', 0, 0, 0, 0, 0, 0, 0, 0, 0, 9 };
	struct ob_uuid id, other;

	ck_assert(ob_uuid_scan((struct ob_str){ raw, 16 }, &id));
	ck_assert(memcmp(id.b, raw, 16) == 0);
	ck_assert(ob_uuid_scan(ob_str(v7_text), &id));
	ck_assert(ob_uuid_scan(OB_STR("0192f3a17c447b1e9f435b0c8a6d2e11"), &other));
	ck_assert(ob_uuid_eq(&id, &other));
	ck_assert(!ob_uuid_scan(OB_STR_NULL, &id));
	ck_assert(!ob_uuid_scan((struct ob_str){ raw, 15 }, &id));
	ck_assert(!ob_uuid_scan((struct ob_str){ raw, 0 }, &id));
}
OB_TEST_END

OB_TEST(equality_nil_and_version_look_at_the_value)
{
	struct ob_uuid a, b, nil = { { 0 } };

	ck_assert(ob_uuid_parse(ob_str(v7_text), &a));
	b = a;
	ck_assert(ob_uuid_eq(&a, &b));
	b.b[15] ^= 1;
	ck_assert(!ob_uuid_eq(&a, &b));
	ck_assert(ob_uuid_is_nil(&nil));
	ck_assert(!ob_uuid_is_nil(&a));
	nil.b[15] = 1;
	ck_assert(!ob_uuid_is_nil(&nil));
	ck_assert_int_eq(ob_uuid_version(&a), 7);
}
OB_TEST_END

OB_TEST(only_version_7_passes_as_version_7)
{
	struct ob_uuid id;

	ck_assert(ob_uuid_parse_v7(ob_str(v7_text), &id));
	ck_assert(!ob_uuid_parse_v7(OB_STR("936da01f-9abd-4d9d-80c7-02af85c822a8"), &id));
	ck_assert(!ob_uuid_parse_v7(OB_STR("00000000-0000-0000-0000-000000000000"), &id));
	ck_assert(!ob_uuid_parse_v7(OB_STR("0192f3a1-7c44-7b1e-cf43-5b0c8a6d2e11"), &id));
	ck_assert(!ob_uuid_parse_v7(OB_STR(""), &id));
}
OB_TEST_END

OB_TEST(a_new_id_is_version_7_of_the_right_variant_and_time)
{
	struct ob_clock_virtual clock = OB_CLOCK_VIRTUAL(1700000000123999);
	struct ob_uuid_gen gen;

	ob_uuid_gen_init(&gen, &clock.clock);
	for (int i = 0; i < 1000; i++) {
		struct ob_uuid id = ob_uuid_gen_next(&gen);

		ck_assert_int_eq(ob_uuid_version(&id), 7);
		ck_assert_int_eq(id.b[8] >> 6, 2);
		ck_assert_uint_eq(ms_of(&id), 1700000000123);
	}
}
OB_TEST_END

OB_TEST(ids_increase_within_a_millisecond_and_when_the_clock_steps_back)
{
	struct ob_clock_virtual clock = OB_CLOCK_VIRTUAL(1700000000000000);
	struct ob_uuid last = { { 0 } };
	struct ob_uuid_gen gen;

	ob_uuid_gen_init(&gen, &clock.clock);
	for (int i = 0; i < 5000; i++) {
		struct ob_uuid id = ob_uuid_gen_next(&gen);

		ck_assert_int_lt(order(&last, &id), 0);
		last = id;
		if (i % 7 == 0)
			ob_clock_advance_us(&clock, 900);
		if (i % 500 == 499)
			clock.real_us -= 3600 * INT64_C(1000000);
	}
	clock.real_us = -5;
	struct ob_uuid id = ob_uuid_gen_next(&gen);
	ck_assert_int_lt(order(&last, &id), 0);
}
OB_TEST_END

OB_TEST(a_clock_that_stepped_back_is_waited_for_not_run_away_from)
{
	struct ob_clock_virtual clock = OB_CLOCK_VIRTUAL(1700000000000000);
	struct ob_uuid_gen gen;

	ob_uuid_gen_init(&gen, &clock.clock);
	(void)ob_uuid_gen_next(&gen);
	clock.real_us -= 60000000;
	for (int i = 0; i < 100; i++) {
		struct ob_uuid id = ob_uuid_gen_next(&gen);

		ck_assert_uint_eq(ms_of(&id), 1700000000000);
	}
}
OB_TEST_END

OB_TEST(a_used_up_counter_takes_the_next_millisecond)
{
	struct ob_clock_virtual clock = OB_CLOCK_VIRTUAL(1700000000000000);
	struct ob_uuid_gen gen;

	ob_uuid_gen_init(&gen, &clock.clock);
	(void)ob_uuid_gen_next(&gen);
	gen.counter = (UINT64_C(1) << 42) - 2; /* one is left */
	struct ob_uuid before = ob_uuid_gen_next(&gen);
	struct ob_uuid last = ob_uuid_gen_next(&gen);
	ck_assert_uint_eq(ms_of(&before), 1700000000000);
	ck_assert_uint_eq(ms_of(&last), 1700000000001);
	ck_assert_int_lt(order(&before, &last), 0);
	/* The clock arrives in the borrowed millisecond: on we count, not back. */
	ob_clock_advance_us(&clock, 1000);
	struct ob_uuid id = ob_uuid_gen_next(&gen);
	ck_assert_uint_eq(ms_of(&id), 1700000000001);
	ck_assert_int_lt(order(&last, &id), 0);
}
OB_TEST_END

OB_TEST(two_generators_on_one_clock_never_meet)
{
	struct ob_clock_virtual clock = OB_CLOCK_VIRTUAL(1700000000000000);
	struct ob_uuid ids[2000];

	for (int i = 0; i < 2000; i++) {
		struct ob_uuid_gen gen;

		ob_uuid_gen_init(&gen, &clock.clock);
		ids[i] = ob_uuid_gen_next(&gen);
	}
	qsort(ids, 2000, sizeof(ids[0]), order);
	for (int i = 1; i < 2000; i++)
		ck_assert(!ob_uuid_eq(&ids[i - 1], &ids[i]));
}
OB_TEST_END

enum { THREADS = 8, IDS_EACH = 10000 };

static void *make_ids(void *arg)
{
	struct ob_uuid *ids = arg;

	for (int i = 0; i < IDS_EACH; i++)
		ids[i] = ob_uuid_new();
	return NULL;
}

OB_TEST(threads_get_distinct_ids_each_in_rising_order)
{
	struct ob_uuid *ids = calloc((size_t)THREADS * IDS_EACH, sizeof(*ids));
	pthread_t threads[THREADS];

	ck_assert_ptr_nonnull(ids);
	for (size_t t = 0; t < THREADS; t++)
		ck_assert_int_eq(pthread_create(&threads[t], NULL, make_ids, ids + t * IDS_EACH),
				 0);
	for (int t = 0; t < THREADS; t++)
		ck_assert_int_eq(pthread_join(threads[t], NULL), 0);
	for (int i = 1; i < THREADS * IDS_EACH; i++) {
		if (i % IDS_EACH)
			ck_assert_int_lt(order(&ids[i - 1], &ids[i]), 0);
	}
	qsort(ids, (size_t)THREADS * IDS_EACH, sizeof(*ids), order);
	for (int i = 1; i < THREADS * IDS_EACH; i++)
		ck_assert(!ob_uuid_eq(&ids[i - 1], &ids[i]));
	free(ids);
}
OB_TEST_END

enum { FORKS = 20, FORK_IDS = 100 }; /* the ids of one child fit into a pipe */

static void child_ids(int fd)
{
	struct ob_uuid ids[FORK_IDS];

	for (int i = 0; i < FORK_IDS; i++)
		ids[i] = ob_uuid_new();
	_exit(write(fd, ids, sizeof(ids)) == (ssize_t)sizeof(ids) ? 0 : 1);
}

OB_TEST(a_child_never_repeats_its_parents_ids_and_goes_on_behind_them)
{
	struct ob_uuid all[FORKS][2 * FORK_IDS];

	for (int f = 0; f < FORKS; f++) {
		struct ob_uuid last = ob_uuid_new();
		int fds[2], status;

		ck_assert_int_eq(pipe(fds), 0);
		pid_t pid = fork();
		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			child_ids(fds[1]);
		for (int i = 0; i < FORK_IDS; i++)
			all[f][i] = ob_uuid_new();
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(status, 0);
		ssize_t n = read(fds[0], all[f] + FORK_IDS, FORK_IDS * sizeof(last));
		ck_assert_int_eq(n, (ssize_t)(FORK_IDS * sizeof(last)));
		for (int i = 0; i < 2 * FORK_IDS; i++)
			ck_assert_int_lt(order(&last, &all[f][i]), 0);
		(void)close(fds[0]);
		(void)close(fds[1]);
	}
	qsort(all, (size_t)FORKS * 2 * FORK_IDS, sizeof(struct ob_uuid), order);
	for (int i = 1; i < FORKS * 2 * FORK_IDS; i++)
		ck_assert(!ob_uuid_eq(&all[0][0] + i - 1, &all[0][0] + i));
}
OB_TEST_END

OB_SUITE("uuid", text_becomes_bytes_and_the_same_text_again,
	 what_is_no_uuid_is_refused_and_nothing_is_written,
	 a_database_value_is_read_from_16_raw_32_hex_or_36_text,
	 equality_nil_and_version_look_at_the_value, only_version_7_passes_as_version_7,
	 a_new_id_is_version_7_of_the_right_variant_and_time,
	 ids_increase_within_a_millisecond_and_when_the_clock_steps_back,
	 a_clock_that_stepped_back_is_waited_for_not_run_away_from,
	 a_used_up_counter_takes_the_next_millisecond, two_generators_on_one_clock_never_meet,
	 threads_get_distinct_ids_each_in_rising_order,
	 a_child_never_repeats_its_parents_ids_and_goes_on_behind_them)
