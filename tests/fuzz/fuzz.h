/* SPDX-License-Identifier: MIT */
/* What every fuzz target gives: one function that is run on one input. */
#ifndef OB_TESTS_FUZZ_H
#define OB_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns 0; a broken promise ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Like assert(), and in every build. */
#define FUZZ_CHECK(claim) \
	do { \
		if (!(claim)) { \
			(void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #claim); \
			abort(); \
		} \
	} while (0)

#endif
