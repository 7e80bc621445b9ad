/* SPDX-License-Identifier: MIT */
/* Lists of numbers that a reader passed and that may still appear. */
#include "log/gaps.h"

#include <inttypes.h>
#include <stdlib.h>

void ob_gaps_done(struct ob_gaps *gaps)
{
	free(gaps->ranges);
	*gaps = (struct ob_gaps){ 0 };
}

static bool gaps_make_room(struct ob_gaps *gaps)
{
	if (gaps->count == OB_GAPS_MAX)
		return false;
	if (gaps->count < gaps->capacity)
		return true;

	size_t capacity = gaps->capacity ? gaps->capacity * 2 : 16;
	struct ob_gap *more = reallocarray(gaps->ranges, capacity, sizeof(*more));

	if (!more)
		return false;
	gaps->ranges = more;
	gaps->capacity = capacity;
	return true;
}

/* A range that begins at or above the last one's beginning; what touches becomes one. */
static bool append_range(struct ob_gaps *gaps, struct ob_gap range)
{
	struct ob_gap *last = gaps->count ? &gaps->ranges[gaps->count - 1] : NULL;

	if (last && range.low <= last->high + 1) {
		if (range.high > last->high)
			last->high = range.high;
		return true;
	}
	if (!gaps_make_room(gaps))
		return false;
	gaps->ranges[gaps->count++] = range;
	return true;
}

bool ob_gaps_add(struct ob_gaps *gaps, int64_t low, int64_t high)
{
	return append_range(gaps, (struct ob_gap){ low, high });
}

/* Index of the first range that ends at or after `seq`. */
static size_t gaps_find_range(const struct ob_gaps *gaps, int64_t seq)
{
	size_t low = 0, high = gaps->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (gaps->ranges[middle].high < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool ob_gaps_has(const struct ob_gaps *gaps, int64_t seq)
{
	size_t i = gaps_find_range(gaps, seq);

	return i < gaps->count && gaps->ranges[i].low <= seq;
}

bool ob_gaps_remove(struct ob_gaps *gaps, int64_t low, int64_t high)
{
	size_t first = gaps_find_range(gaps, low), to = first;

	/* Out of the middle of one: it becomes two. */
	if (first < gaps->count && gaps->ranges[first].low < low &&
	    gaps->ranges[first].high > high) {
		if (!gaps_make_room(gaps))
			return false;
		memmove(&gaps->ranges[first + 1], &gaps->ranges[first],
			(gaps->count - first) * sizeof(*gaps->ranges));
		gaps->count++;
		gaps->ranges[first].high = low - 1;
		gaps->ranges[first + 1].low = high + 1;
		return true;
	}
	for (size_t i = first; i < gaps->count; i++) {
		struct ob_gap range = gaps->ranges[i];

		if (range.low >= low && range.high <= high)
			continue;
		if (range.low < low && range.high >= low)
			range.high = low - 1;
		else if (range.low <= high)
			range.low = high + 1;
		gaps->ranges[to++] = range;
	}
	gaps->count = to;
	return true;
}

bool ob_gaps_merge(struct ob_gaps *gaps, const struct ob_gaps *other)
{
	struct ob_gaps all = { 0 };
	size_t a = 0, b = 0;

	while (a < gaps->count || b < other->count) {
		bool own = b == other->count ||
			   (a < gaps->count && gaps->ranges[a].low <= other->ranges[b].low);

		if (!append_range(&all, own ? gaps->ranges[a++] : other->ranges[b++])) {
			ob_gaps_done(&all);
			return false;
		}
	}
	ob_gaps_done(gaps);
	*gaps = all;
	return true;
}

static bool gaps_take_number(const char **p, const char *end, int64_t *ret)
{
	const char *start = *p;
	int64_t value = 0;

	for (; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
		int64_t digit = **p - '0';

		if (value > (INT64_MAX - 1 - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*ret = value;
	return *p > start;
}

static bool parse_ranges(struct ob_gaps *gaps, struct ob_str text)
{
	const char *p = text.p, *end = p + text.n;

	while (p < end) {
		struct ob_gap range = { 0 };

		if (gaps->count > 0 && *p++ != ',')
			return false;
		if (!gaps_take_number(&p, end, &range.low))
			return false;
		range.high = range.low;
		if (p < end && *p == '-') {
			p++;
			if (!gaps_take_number(&p, end, &range.high))
				return false;
		}
		if (range.high < range.low ||
		    (gaps->count > 0 && range.low <= gaps->ranges[gaps->count - 1].high + 1) ||
		    !append_range(gaps, range))
			return false;
	}
	return true;
}

bool ob_gaps_parse(struct ob_gaps *gaps, struct ob_str text)
{
	gaps->count = 0;
	return text.n == 0 || parse_ranges(gaps, text);
}

void ob_gaps_format(const struct ob_gaps *gaps, struct ob_buf *out)
{
	for (size_t i = 0; i < gaps->count; i++) {
		const struct ob_gap *range = &gaps->ranges[i];

		ob_buf_addf(out, "%s%" PRId64, i ? "," : "", range->low);
		if (range->high > range->low)
			ob_buf_addf(out, "-%" PRId64, range->high);
	}
}
