/* SPDX-License-Identifier: MIT */
/* The bench cannot go on: one line why, and the servers it started are ended. */
#ifndef OB_BENCH_FATAL_H
#define OB_BENCH_FATAL_H

void bench_fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* The memory, or the end of the bench. */
void *bench_need(void *memory);

#endif
