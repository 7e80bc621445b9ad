/* SPDX-License-Identifier: MIT */
/* Numbers that look random and repeat with their seed: for jitter, tests and the simulator. Never
 * for secrets or ids. */
#ifndef OB_BASE_RNG_H
#define OB_BASE_RNG_H

#include <stdint.h>

struct ob_rng {
	uint64_t s[4];
};

/* The same seed gives the same numbers on every machine. */
void ob_rng_init(struct ob_rng *rng, uint64_t seed);
/* A seed of the machine's own: no two processes get the same numbers. */
void ob_rng_init_random(struct ob_rng *rng);
uint64_t ob_rng_next(struct ob_rng *rng);
/* In [0, limit), each equally likely; `limit` is not 0. */
uint64_t ob_rng_below(struct ob_rng *rng, uint64_t limit);
/* In [0, 1). */
double ob_rng_unit(struct ob_rng *rng);

#endif
