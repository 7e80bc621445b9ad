/* SPDX-License-Identifier: MIT */
/*
 * One test program: declare tests with OB_TEST, list them in OB_SUITE. Each test
 * runs in a process of its own with a time limit; the output is TAP.
 *
 *   OB_TEST(a_full_buffer_stays_failed)
 *   {
 *           ck_assert(...);
 *   }
 *   OB_TEST_END
 *
 *   OB_SUITE("buf", a_full_buffer_stays_failed, ...)
 */
#ifndef OB_TESTS_SUITE_H
#define OB_TESTS_SUITE_H

#include <check.h>

#define OB_TEST(name) START_TEST(name)
#define OB_TEST_END   END_TEST

/* Run the tests and return main()'s value. `only`: argv[1], a test's name, or NULL. */
int ob_suite_run(const char *name, const TTest *const *tests, size_t count, const char *only);

/*
 * The same with something that all tests share: start() runs before and stop() behind them, once,
 * in the process that forks the tests. Both may be NULL.
 */
int ob_suite_run_with(const char *name, const TTest *const *tests, size_t count, const char *only,
		      void (*start)(void), void (*stop)(void));

/* The same for tests that need something: `missing` says what is not there; NULL: all is. */
int ob_suite_run_if(const char *missing, const char *name, const TTest *const *tests, size_t count,
		    const char *only);

#define OB_SUITE_NEEDS(suite_name, missing, ...) \
	int main(int argc, char **argv) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		return ob_suite_run_if(missing, suite_name, tests, \
				       sizeof(tests) / sizeof(tests[0]), \
				       argc > 1 ? argv[1] : NULL); \
	}

#define OB_SUITE(suite_name, ...) \
	int main(int argc, char **argv) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		return ob_suite_run(suite_name, tests, sizeof(tests) / sizeof(tests[0]), \
				    argc > 1 ? argv[1] : NULL); \
	}

#endif
