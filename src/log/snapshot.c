/* SPDX-License-Identifier: MIT */
/* Reading PostgreSQL's snapshots. */
#include "log/snapshot.h"

/* Digits at *p up to `end`; moves *p behind them. False: none, or too large. */
static bool snapshot_take_number(const char **p, const char *end, uint64_t *ret)
{
	const char *start = *p;
	uint64_t value = 0;

	for (; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
		uint64_t digit = (uint64_t)(**p - '0');

		if (value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*ret = value;
	return *p > start;
}

static bool take_colon(const char **p, const char *end)
{
	if (*p == end || **p != ':')
		return false;
	(*p)++;
	return true;
}

/* The open ones ascend and lie in [xmin, xmax): what is not a snapshot must not pass for one. */
static bool check_xip(const struct ob_snapshot *snapshot)
{
	const char *p = snapshot->xip, *end = p + snapshot->xip_size;
	uint64_t last = 0, open = 0;

	if (p == end)
		return true;
	for (;;) {
		if (!snapshot_take_number(&p, end, &open) || open < snapshot->xmin ||
		    open >= snapshot->xmax || open <= last)
			return false;
		last = open;
		if (p == end)
			return true;
		if (*p++ != ',')
			return false;
	}
}

bool ob_snapshot_parse(struct ob_str text, struct ob_snapshot *ret_snapshot)
{
	const char *p = text.p, *end = p ? p + text.n : p;
	struct ob_snapshot snapshot = { 0 };

	if (!p || !snapshot_take_number(&p, end, &snapshot.xmin) || !take_colon(&p, end) ||
	    !snapshot_take_number(&p, end, &snapshot.xmax) || !take_colon(&p, end))
		return false;
	snapshot.xip = p;
	snapshot.xip_size = (size_t)(end - p);
	if (snapshot.xmin == 0 || snapshot.xmin > snapshot.xmax || !check_xip(&snapshot))
		return false;
	*ret_snapshot = snapshot;
	return true;
}

bool ob_snapshot_shows(const struct ob_snapshot *snapshot, uint64_t txid)
{
	const char *p = snapshot->xip, *end = p + snapshot->xip_size;
	uint64_t open = 0;

	if (txid < snapshot->xmin)
		return true;
	if (txid >= snapshot->xmax)
		return false;
	while (snapshot_take_number(&p, end, &open)) {
		if (open >= txid)
			return open != txid;
		p += p < end; /* the comma */
	}
	return true;
}
