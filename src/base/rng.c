/* SPDX-License-Identifier: MIT */
/* The generator of the xoshiro256++ family: four words, shifts, adds and one turn. */
#include "base/rng.h"

#include "base/clock.h"

#include <assert.h>
#include <sys/random.h>
#include <unistd.h>

static uint64_t turn(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

/* Spreads a seed of few bits (0, 1, 2, ...) over a whole word. */
static uint64_t spread(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

void ob_rng_init(struct ob_rng *rng, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		rng->s[i] = spread(&seed);
}

void ob_rng_init_random(struct ob_rng *rng)
{
	uint64_t seed;

	/* Jitter must not keep a process from starting: time and pid will do. */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = (uint64_t)ob_clock_real_us(&ob_clock_system) ^ (uint64_t)getpid() << 40;
	ob_rng_init(rng, seed);
}

uint64_t ob_rng_next(struct ob_rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t out = turn(s[0] + s[3], 23) + s[0];
	uint64_t shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = turn(s[3], 45);
	return out;
}

uint64_t ob_rng_below(struct ob_rng *rng, uint64_t limit)
{
	assert(limit);
	/* Numbers below 2^64 mod limit would be a little likelier: draw again. */
	uint64_t first_fair = (0 - limit) % limit;
	uint64_t x;

	do
		x = ob_rng_next(rng);
	while (x < first_fair);
	return x % limit;
}

double ob_rng_unit(struct ob_rng *rng)
{
	return (double)(ob_rng_next(rng) >> 11) * 0x1p-53;
}
