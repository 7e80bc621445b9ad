/* SPDX-License-Identifier: MIT */
/* The main() of every test program. */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ob_suite_run(const char *name, const TTest *const *tests, size_t count, const char *only)
{
	Suite *suite = suite_create(name);

	for (size_t i = 0; i < count; i++) {
		if (only && strcmp(only, tests[i]->name) != 0)
			continue;
		TCase *tcase = tcase_create(tests[i]->name);
		tcase_add_test(tcase, tests[i]);
		suite_add_tcase(suite, tcase);
	}
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
