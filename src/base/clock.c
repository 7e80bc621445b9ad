/* SPDX-License-Identifier: MIT */
/* The system's clocks and a virtual one. */
#include "base/clock.h"

#include <time.h>

static int64_t read_us(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int64_t system_boot_us(const struct ob_clock *clock)
{
	(void)clock;
	return read_us(CLOCK_BOOTTIME);
}

static int64_t system_real_us(const struct ob_clock *clock)
{
	(void)clock;
	return read_us(CLOCK_REALTIME);
}

const struct ob_clock ob_clock_system = { system_boot_us, system_real_us };

int64_t ob_clock_virtual_boot_us(const struct ob_clock *clock)
{
	return ((const struct ob_clock_virtual *)clock)->boot_us;
}

int64_t ob_clock_virtual_real_us(const struct ob_clock *clock)
{
	return ((const struct ob_clock_virtual *)clock)->real_us;
}

void ob_clock_advance_us(struct ob_clock_virtual *clock, int64_t us)
{
	clock->boot_us += us;
	clock->real_us += us;
}
