/* SPDX-License-Identifier: MIT */
/* The monotonic clock. */
#include "bench/now.h"

#include <math.h>
#include <time.h>

double bench_now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

void bench_pause_us(long us)
{
	(void)nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

void bench_pause_until(double at_us)
{
	struct timespec at = { (time_t)(at_us / 1e6), (long)(fmod(at_us, 1e6) * 1e3) };

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}
