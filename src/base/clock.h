/* SPDX-License-Identifier: MIT */
/* Time through a handle, so that tests and the simulator can turn it. */
#ifndef OB_BASE_CLOCK_H
#define OB_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct ob_clock {
	/* us since some start; never steps back and runs on while the machine is suspended */
	int64_t (*boot_us)(const struct ob_clock *clock);
	/* us since 1970-01-01 UTC; may step */
	int64_t (*real_us)(const struct ob_clock *clock);
};

/* The machine's own clocks. */
extern const struct ob_clock ob_clock_system;

/* A clock that only moves when told to. Initialise with OB_CLOCK_VIRTUAL. */
struct ob_clock_virtual {
	struct ob_clock clock; /* first member */
	int64_t boot_us, real_us;
};

int64_t ob_clock_virtual_boot_us(const struct ob_clock *clock);
int64_t ob_clock_virtual_real_us(const struct ob_clock *clock);
/* Time passes on both clocks. To step the wall clock alone, write real_us. */
void ob_clock_advance_us(struct ob_clock_virtual *clock, int64_t us);

#define OB_CLOCK_VIRTUAL(start_real_us) \
	((struct ob_clock_virtual){ { ob_clock_virtual_boot_us, ob_clock_virtual_real_us }, \
				    1000000, \
				    (start_real_us) })

static inline int64_t ob_clock_boot_us(const struct ob_clock *clock)
{
	return clock->boot_us(clock);
}

static inline int64_t ob_clock_real_us(const struct ob_clock *clock)
{
	return clock->real_us(clock);
}

/*
 * "2026-05-04T03:02:01.000000Z" of microseconds since 1970 UTC. False, and nothing written, for
 * what is no time: 0, or outside the years 0000 to 9999, which are all that RFC 3339 knows.
 */
enum { OB_TIME_SIZE = sizeof("0000-00-00T00:00:00.000000Z") };
bool ob_time_format(int64_t us, char out[OB_TIME_SIZE]);

#endif
