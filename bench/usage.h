/* SPDX-License-Identifier: MIT */
/* What processes have used so far, from /proc. */
#ifndef OB_BENCH_USAGE_H
#define OB_BENCH_USAGE_H

#include <stdint.h>
#include <sys/types.h>

/* CPU time of a process and of all below it, also of those that have ended, in us; 0: no such
 * process. */
double bench_cpu_us(pid_t pid);
/* Resident memory of one process in kB: now, and the most there was. */
uint64_t bench_resident_kb(pid_t pid);
uint64_t bench_resident_peak_kb(pid_t pid);

#endif
