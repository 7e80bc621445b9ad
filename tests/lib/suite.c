/* SPDX-License-Identifier: MIT */
/* The main() of every test program. */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A fixture has to belong to a case; one without tests will do. */
static void add_fixture(Suite *suite, const char *name, void (*start)(void), void (*stop)(void))
{
	TCase *tcase = tcase_create(name);

	tcase_add_unchecked_fixture(tcase, start, stop);
	suite_add_tcase(suite, tcase);
}

int ob_suite_run(const char *name, const TTest *const *tests, size_t count, const char *only)
{
	return ob_suite_run_with(name, tests, count, only, NULL, NULL);
}

int ob_suite_run_with(const char *name, const TTest *const *tests, size_t count, const char *only,
		      void (*start)(void), void (*stop)(void))
{
	Suite *suite = suite_create(name);

	if (start)
		add_fixture(suite, "start", start, NULL);
	for (size_t i = 0; i < count; i++) {
		if (only && strcmp(only, tests[i]->name) != 0)
			continue;
		TCase *tcase = tcase_create(tests[i]->name);
		tcase_add_test(tcase, tests[i]);
		suite_add_tcase(suite, tcase);
	}
	if (stop)
		add_fixture(suite, "stop", NULL, stop);
	SRunner *runner = srunner_create(suite);
	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int ob_suite_run_if(const char *missing, const char *name, const TTest *const *tests, size_t count,
		    const char *only)
{
	if (!missing)
		return ob_suite_run(name, tests, count, only);
	(void)printf("1..0 # SKIP %s\n", missing);
	return EXIT_SUCCESS;
}
