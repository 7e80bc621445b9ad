/* SPDX-License-Identifier: MIT */
/* RFC 3339 in and out, and ages in the two units that matter. */
#include "base/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { US = 1000000 };

void ob_when_iso(int64_t us, char out[OB_WHEN_SIZE])
{
	time_t seconds = us / US;
	long part = us % US;
	struct tm tm;

	if (part < 0) {
		part += US;
		seconds--;
	}
	if (!gmtime_r(&seconds, &tm) || tm.tm_year > 9999 - 1900 || tm.tm_year < -1900) {
		(void)snprintf(out, OB_WHEN_SIZE, "%" PRId64 "us", us);
		return;
	}
	size_t n = strftime(out, OB_WHEN_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(out + n, OB_WHEN_SIZE - n, ".%06ldZ", part);
}

void ob_when_age(int64_t us, char out[OB_WHEN_SIZE])
{
	int64_t s = us / US;

	if (us <= 0)
		(void)snprintf(out, OB_WHEN_SIZE, "0s");
	else if (s == 0)
		(void)snprintf(out, OB_WHEN_SIZE, "%" PRId64 "ms", us / 1000);
	else if (s < 60)
		(void)snprintf(out, OB_WHEN_SIZE, "%" PRId64 "s", s);
	else if (s < 3600)
		(void)snprintf(out, OB_WHEN_SIZE, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	else if (s < 86400)
		(void)snprintf(out, OB_WHEN_SIZE, "%" PRId64 "h%02" PRId64 "m", s / 3600,
			       s / 60 % 60);
	else
		(void)snprintf(out, OB_WHEN_SIZE, "%" PRId64 "d%02" PRId64 "h", s / 86400,
			       s / 3600 % 24);
}

struct reader {
	struct ob_str rest;
	bool failed;
};

static int digits(struct reader *r, size_t count)
{
	int v = 0;

	if (r->rest.n < count)
		r->failed = true;
	for (size_t i = 0; !r->failed && i < count; i++) {
		char c = r->rest.p[i];
		if (c < '0' || c > '9')
			r->failed = true;
		v = v * 10 + (c - '0');
	}
	if (r->failed)
		return 0;
	r->rest.p += count;
	r->rest.n -= count;
	return v;
}

static bool take(struct reader *r, const char *any)
{
	if (r->failed || r->rest.n == 0 || !*r->rest.p || !strchr(any, *r->rest.p))
		return false;
	r->rest.p++;
	r->rest.n--;
	return true;
}

static void expect(struct reader *r, const char *any)
{
	if (!take(r, any))
		r->failed = true;
}

/* The digits behind the point; what is finer than a microsecond is cut. */
static int64_t fraction(struct reader *r)
{
	int64_t us = 0, weight = US / 10;
	size_t count = 0;

	for (; r->rest.n && *r->rest.p >= '0' && *r->rest.p <= '9'; count++) {
		us += (*r->rest.p - '0') * weight;
		weight /= 10;
		r->rest.p++;
		r->rest.n--;
	}
	if (count == 0 || count > 9)
		r->failed = true;
	return us;
}

static int offset_minutes(struct reader *r)
{
	int sign = r->rest.n && *r->rest.p == '-' ? -1 : 1;

	if (take(r, "Zz"))
		return 0;
	expect(r, "+-");
	int hours = digits(r, 2);
	expect(r, ":");
	int minutes = digits(r, 2);
	if (hours > 23 || minutes > 59)
		r->failed = true;
	return sign * (hours * 60 + minutes);
}

bool ob_when_parse(struct ob_str text, int64_t *ret_us)
{
	struct reader r = { .rest = text };
	struct tm tm = { 0 };
	int64_t us = 0;

	tm.tm_year = digits(&r, 4) - 1900;
	expect(&r, "-");
	tm.tm_mon = digits(&r, 2) - 1;
	expect(&r, "-");
	tm.tm_mday = digits(&r, 2);
	expect(&r, "Tt ");
	tm.tm_hour = digits(&r, 2);
	expect(&r, ":");
	tm.tm_min = digits(&r, 2);
	expect(&r, ":");
	tm.tm_sec = digits(&r, 2);
	if (take(&r, "."))
		us = fraction(&r);
	int offset = offset_minutes(&r);
	if (r.failed || r.rest.n || tm.tm_year < 1000 - 1900 || tm.tm_sec > 60)
		return false;

	const struct tm given = tm;
	time_t seconds = timegm(&tm);
	/* timegm() carries: the 31st of June came back as the 1st of July. A leap second may. */
	if (given.tm_sec < 60 && (tm.tm_mon != given.tm_mon || tm.tm_mday != given.tm_mday ||
				  tm.tm_hour != given.tm_hour || tm.tm_min != given.tm_min))
		return false;
	if (given.tm_sec == 60 && (given.tm_hour > 23 || given.tm_min > 59))
		return false;
	*ret_us = ((int64_t)seconds - offset * INT64_C(60)) * US + us;
	return true;
}
