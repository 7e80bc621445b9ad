/* SPDX-License-Identifier: MIT */
/* The system's clocks and a virtual one; a time as text. */
#include "base/clock.h"

#include <string.h>
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

static void put_digits(char *at, size_t width, unsigned value)
{
	while (width-- > 0) {
		at[width] = (char)('0' + value % 10);
		value /= 10;
	}
}

bool ob_time_format(int64_t us, char out[OB_TIME_SIZE])
{
	static const char shape[OB_TIME_SIZE] = "0000-00-00T00:00:00.000000Z";
	int64_t micros = (us % 1000000 + 1000000) % 1000000;
	time_t seconds = (time_t)(us / 1000000 - (us % 1000000 < 0));
	struct tm tm;

	if (us == 0 || !gmtime_r(&seconds, &tm) || tm.tm_year < -1900 || tm.tm_year > 9999 - 1900)
		return false;
	memcpy(out, shape, sizeof(shape));
	put_digits(out, 4, (unsigned)tm.tm_year + 1900);
	put_digits(out + 5, 2, (unsigned)tm.tm_mon + 1);
	put_digits(out + 8, 2, (unsigned)tm.tm_mday);
	put_digits(out + 11, 2, (unsigned)tm.tm_hour);
	put_digits(out + 14, 2, (unsigned)tm.tm_min);
	put_digits(out + 17, 2, (unsigned)tm.tm_sec);
	put_digits(out + 20, 6, (unsigned)micros);
	return true;
}
