/* SPDX-License-Identifier: MIT */
/* Time of the bench. */
#ifndef OB_BENCH_NOW_H
#define OB_BENCH_NOW_H

/* Now, on a clock that never steps, in us. */
double bench_now_us(void);
/* Let time pass: there is nothing to wait on but another process. */
void bench_pause_us(long us);
/* Until that instant. */
void bench_pause_until(double at_us);

#endif
