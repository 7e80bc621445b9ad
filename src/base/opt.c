/* SPDX-License-Identifier: MIT */
/* Reading, checking and describing options by their tables. */
#include "base/opt.h"

#include "base/buf.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit duration_units[] = {
	{ "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 }, { "", 1 },
};

static const struct unit size_units[] = {
	{ "B", 1 }, { "KB", 1 << 10 }, { "MB", 1 << 20 }, { "GB", 1 << 30 }, { "", 1 },
};

/* A whole number with one of the units behind it. */
static bool parse_number(const char *text, const struct unit *units, size_t count, int64_t *ret)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (errno)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(end, units[i].name) == 0)
			return !__builtin_mul_overflow((int64_t)v, units[i].factor, ret);
	}
	return false;
}

static bool parse_bool(const char *text, bool *ret)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(text, words[i]) == 0) {
			*ret = i % 2;
			return true;
		}
	}
	return false;
}

static void range_of(const struct ob_opt *opt, int64_t *ret_min, int64_t *ret_max)
{
	bool none = opt->min == 0 && opt->max == 0;

	*ret_min = opt->min;
	*ret_max = !none ? opt->max : opt->type == OB_OPT_U32 ? UINT32_MAX : INT64_MAX;
}

static bool set_number(const struct ob_opt *opt, void *field, const char *value)
{
	const size_t durations = sizeof(duration_units) / sizeof(duration_units[0]);
	const size_t sizes = sizeof(size_units) / sizeof(size_units[0]);
	bool minus = opt->type == OB_OPT_I32 && *value == '-';
	int64_t v = 0, min, max;
	bool ok;

	range_of(opt, &min, &max);
	if (opt->type == OB_OPT_DURATION_MS && (opt->flags & OB_OPT_NEVER) &&
	    strcmp(value, "never") == 0) {
		*(int64_t *)field = OB_NEVER_MS;
		return true;
	}
	if (opt->type == OB_OPT_DURATION_MS)
		ok = parse_number(value, duration_units, durations, &v);
	else if (opt->type == OB_OPT_SIZE)
		ok = parse_number(value, size_units, sizes, &v);
	else
		ok = parse_number(value + minus, duration_units + durations - 1, 1, &v);
	if (ok && minus)
		v = -v;
	if (!ok || v < min || v > max)
		return false;
	if (opt->type == OB_OPT_U32)
		*(uint32_t *)field = (uint32_t)v;
	else if (opt->type == OB_OPT_I32)
		*(int32_t *)field = (int32_t)v;
	else
		*(int64_t *)field = v;
	return true;
}

static bool set_double(const struct ob_opt *opt, double *field, const char *value)
{
	int64_t min, max;
	char *end;

	range_of(opt, &min, &max);
	/* strtod() would also take spaces, hex, "inf" and "nan". */
	if (value[strspn(value, "0123456789.eE+-")])
		return false;
	errno = 0;
	double v = strtod(value, &end);
	if (errno || end == value || *end || !isfinite(v) || v < (double)min || v > (double)max)
		return false;
	*field = v;
	return true;
}

static bool set_choice(const struct ob_opt *opt, int *field, const char *value)
{
	for (int i = 0; opt->choices[i]; i++) {
		if (strcmp(opt->choices[i], value) == 0) {
			*field = i;
			return true;
		}
	}
	return false;
}

static int set_value(const struct ob_opt *opt, void *field, const char *value, struct ob_err *err)
{
	char allowed[200];
	bool ok = false;
	char *copy;

	switch (opt->type) {
	case OB_OPT_STR:
		copy = strdup(value);
		if (!copy)
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "%s", opt->name);
		free(*(char **)field);
		*(char **)field = copy;
		return 0;
	case OB_OPT_BOOL:
		ok = parse_bool(value, field);
		break;
	case OB_OPT_U32:
	case OB_OPT_I32:
	case OB_OPT_SIZE:
	case OB_OPT_DURATION_MS:
		ok = set_number(opt, field, value);
		break;
	case OB_OPT_DOUBLE:
		ok = set_double(opt, field, value);
		break;
	case OB_OPT_ENUM:
		ok = set_choice(opt, field, value);
		break;
	}
	if (ok)
		return 0;
	ob_opt_describe(opt, allowed, sizeof(allowed));
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "%s: '%.80s' is not %s", opt->name,
			  opt->flags & OB_OPT_SECRET ? "****" : value, allowed);
}

/* 90000 -> "90s": the largest unit that leaves a whole number. */
static void print_number(const struct ob_opt *opt, int64_t value, char out[32])
{
	const struct unit *units = opt->type == OB_OPT_SIZE ? size_units : duration_units;
	size_t count = opt->type == OB_OPT_SIZE ? 4 : 5;
	const struct unit *best = &units[0];

	if (opt->type == OB_OPT_U32 || opt->type == OB_OPT_I32 || opt->type == OB_OPT_DOUBLE ||
	    value == INT64_MAX) {
		(void)snprintf(out, 32, "%" PRId64, value);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (value != 0 && value % units[i].factor == 0)
			best = &units[i];
	}
	(void)snprintf(out, 32, "%" PRId64 "%s", value / best->factor, best->name);
}

void ob_opt_describe(const struct ob_opt *opt, char *out, size_t size)
{
	static const char *const what[] = {
		[OB_OPT_STR] = "a text",
		[OB_OPT_BOOL] = "true or false",
		[OB_OPT_U32] = "a number",
		[OB_OPT_SIZE] = "a size (such as 64KB)",
		[OB_OPT_I32] = "a number",
		[OB_OPT_DOUBLE] = "a number",
		[OB_OPT_DURATION_MS] = "a duration (such as 15s)",
		[OB_OPT_ENUM] = "one of",
	};
	struct ob_buf b = OB_BUF_INIT(size - 1);
	char min[32], max[32];

	ob_buf_adds(&b, what[opt->type]);
	for (int i = 0; opt->type == OB_OPT_ENUM && opt->choices[i]; i++)
		ob_buf_addf(&b, "%s %s", i ? "," : "", opt->choices[i]);
	if (opt->min || opt->max) {
		print_number(opt, opt->min, min);
		print_number(opt, opt->max, max);
		ob_buf_addf(&b, " from %s to %s", min, max);
	}
	if (opt->flags & OB_OPT_NEVER)
		ob_buf_adds(&b, ", or never");
	(void)snprintf(out, size, "%s", ob_buf_str(&b));
	ob_buf_done(&b);
}

const struct ob_opt *ob_opt_find(const struct ob_opt *table, const char *name)
{
	for (const struct ob_opt *opt = table; opt && opt->name; opt++) {
		if (strcmp(opt->name, name) == 0)
			return opt;
	}
	return NULL;
}

int ob_opt_set(const struct ob_opt *table, void *base, const char *name, const char *value,
	       struct ob_err *err)
{
	const struct ob_opt *opt = ob_opt_find(table, name);

	if (!opt)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "no option '%.80s'", name);
	return set_value(opt, (char *)base + opt->offset, value, err);
}

int ob_opt_defaults(const struct ob_opt *table, void *base, struct ob_err *err)
{
	for (const struct ob_opt *opt = table; opt && opt->name; opt++) {
		int r = opt->dflt ? set_value(opt, (char *)base + opt->offset, opt->dflt, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

void ob_opt_free(const struct ob_opt *table, void *base)
{
	for (const struct ob_opt *opt = table; opt && opt->name; opt++) {
		if (opt->type == OB_OPT_STR) {
			char **field = (char **)((char *)base + opt->offset);
			free(*field);
			*field = NULL;
		}
	}
}

enum { SUGGEST_MAX = 40 };

/* Edits between two names, counting a swap of neighbours as one. */
static size_t distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b);
	size_t row[3][SUGGEST_MAX + 1];

	if (la > SUGGEST_MAX || lb > SUGGEST_MAX)
		return SUGGEST_MAX;
	for (size_t j = 0; j <= lb; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t *now = row[i % 3], *up = row[(i - 1) % 3], *up2 = row[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t best = up[j - 1] + (a[i - 1] != b[j - 1]);

			best = up[j] + 1 < best ? up[j] + 1 : best;
			best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = up2[j - 2] + 1 < best ? up2[j - 2] + 1 : best;
			now[j] = best;
		}
	}
	return row[la % 3][lb];
}

const char *ob_suggest(const char *name, const char *const *names, size_t count)
{
	size_t allowed = strlen(name) / 3 < 2 ? strlen(name) / 3 : 2;
	const char *best = NULL;

	for (size_t i = 0; i < count; i++) {
		size_t d = distance(name, names[i]);
		if (d <= allowed) {
			best = names[i];
			allowed = d ? d - 1 : 0;
			if (d == 0)
				break;
		}
	}
	return best;
}

const char *ob_opt_suggest(const struct ob_opt *table, const char *name)
{
	const char *names[128];
	size_t count = 0;

	for (const struct ob_opt *opt = table; opt && opt->name && count < 128; opt++)
		names[count++] = opt->name;
	return ob_suggest(name, names, count);
}
