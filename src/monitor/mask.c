/* SPDX-License-Identifier: MIT */
/*
 * Works on the text, which the validator has accepted: what is not masked stays byte by byte, so
 * that large numbers, duplicate keys and escapes appear as they are stored.
 */
#include "monitor/mask.h"

#include "base/glob.h"
#include "base/json.h"
#include "base/json_read.h"

#include <stdlib.h>

enum { KEY_MAX = 1024, PATTERN_MAX = 128 };

struct masking {
	const char *p, *end;
	struct ob_buf *out;
	const char *patterns;
};

/* Keys are compared without regard to case; only letters of ASCII have one here. */
static void make_lower(char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (text[i] >= 'A' && text[i] <= 'Z')
			text[i] ^= 0x20;
	}
}

/* Behind the string that begins at p. */
static const char *string_end(const char *p)
{
	for (p++; *p != '"'; p++)
		p += *p == '\\';
	return p + 1;
}

/* Behind the value that begins at p: a string, a word or number, or all between two brackets. */
static const char *value_end(const char *p, const char *end)
{
	size_t depth = 0;

	if (*p != '"' && *p != '{' && *p != '[') {
		while (p < end && !strchr(",]} \t\r\n", *p))
			p++;
		return p;
	}
	do {
		if (*p == '"') {
			p = string_end(p);
			continue;
		}
		depth += *p == '{' || *p == '[';
		depth -= *p == '}' || *p == ']';
		p++;
	} while (depth > 0);
	return p;
}

static bool matches_one(struct ob_str key, const char *pattern, size_t n)
{
	char low[PATTERN_MAX];

	if (n == 0 || n >= sizeof(low))
		return false;
	memcpy(low, pattern, n);
	make_lower(low, n);
	return ob_glob_match((struct ob_str){ low, n }, key);
}

/* A key that is too long to be looked at is masked. */
static bool is_masked(const struct masking *m, struct ob_str raw)
{
	char text[KEY_MAX];

	if (raw.n > sizeof(text))
		return true;
	struct ob_str key = { text, ob_json_decode(raw, text) };
	make_lower(text, key.n);
	for (const char *at = m->patterns; at && *at;) {
		size_t skip = strspn(at, ", "), n = strcspn(at + skip, ", ");

		if (matches_one(key, at + skip, n))
			return true;
		at += skip + n;
	}
	return false;
}

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && strchr(" \t\r\n", *p))
		p++;
	return p;
}

/* A string: a key if a colon follows. */
static void take_string(struct masking *m)
{
	const char *start = m->p, *after = string_end(start);
	const char *colon = skip_space(after, m->end);
	bool key = colon < m->end && *colon == ':';

	m->p = after;
	if (key)
		m->p = skip_space(colon + 1, m->end);
	ob_buf_add(m->out, (struct ob_str){ start, (size_t)(m->p - start) });
	if (key && is_masked(m, (struct ob_str){ start, (size_t)(after - start) })) {
		ob_buf_adds(m->out, "\"***\"");
		m->p = value_end(m->p, m->end);
	}
}

bool ob_mask_json(struct ob_buf *out, struct ob_str json, const char *patterns)
{
	struct masking m = { json.p, json.p + json.n, out, patterns };

	if (!ob_json_valid(json, NULL))
		return false;
	while (m.p < m.end) {
		const char *next = m.p;

		while (next < m.end && *next != '"')
			next++;
		ob_buf_add(out, (struct ob_str){ m.p, (size_t)(next - m.p) });
		m.p = next;
		if (next < m.end)
			take_string(&m);
	}
	return true;
}
