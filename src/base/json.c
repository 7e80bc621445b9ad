/* SPDX-License-Identifier: MIT */
/*
 * The JSON validator. It walks the text once; the only memory of where it is
 * are one bit for each open container and the depth. Every skip_ function takes
 * the place where its part begins and returns the place behind it, or NULL
 * after noting the fault.
 */
#include "base/json.h"

#include "base/swar.h"
#include "base/utf8.h"

#include <strings.h>

struct walk {
	const char *start, *end;
	struct ob_json_fault *fault;
	unsigned depth;
	uint64_t objects[OB_JSON_DEPTH_MAX /
			 64]; /* bit d: the container at depth d + 1 is an object */
};

enum {
	SPACE = 1 << 0,
	DIGIT = 1 << 1,
	HEX = 1 << 2,
	ESCAPE = 1 << 3, /* may stand behind a backslash, besides u */
};

static const uint8_t classes[256] = {
	[' '] = SPACE,       ['\t'] = SPACE,      ['\n'] = SPACE,      ['\r'] = SPACE,
	['0'] = DIGIT | HEX, ['1'] = DIGIT | HEX, ['2'] = DIGIT | HEX, ['3'] = DIGIT | HEX,
	['4'] = DIGIT | HEX, ['5'] = DIGIT | HEX, ['6'] = DIGIT | HEX, ['7'] = DIGIT | HEX,
	['8'] = DIGIT | HEX, ['9'] = DIGIT | HEX, ['a'] = HEX,         ['b'] = HEX | ESCAPE,
	['c'] = HEX,         ['d'] = HEX,         ['e'] = HEX,         ['f'] = HEX | ESCAPE,
	['A'] = HEX,         ['B'] = HEX,         ['C'] = HEX,         ['D'] = HEX,
	['E'] = HEX,         ['F'] = HEX,         ['"'] = ESCAPE,      ['\\'] = ESCAPE,
	['/'] = ESCAPE,      ['n'] = ESCAPE,      ['r'] = ESCAPE,      ['t'] = ESCAPE,
};

static inline bool is(char c, unsigned class)
{
	return classes[(uint8_t)c] & class;
}

static const char *fail(const struct walk *w, const char *at, const char *what)
{
	if (w->fault)
		*w->fault = (struct ob_json_fault){ (size_t)(at - w->start), what };
	return NULL;
}

static inline const char *skip_space(const char *p, const char *end)
{
	while (p < end && is(*p, SPACE))
		p++;
	return p;
}

/* Up to the first byte that does not stand for itself inside a string. */
static inline const char *skip_plain(const char *p, const char *end)
{
	while (end - p >= 8) {
		uint64_t marks = ob_swar_json_marks(ob_swar_load(p));

		if (marks)
			return p + ob_swar_first(marks);
		p += 8;
	}
	while (p < end && (uint8_t)*p >= 0x20 && (uint8_t)*p < 0x80 && *p != '"' && *p != '\\')
		p++;
	return p;
}

/* The value of the four hex digits at p, or -1. */
static int hex4(const char *p, const char *end)
{
	int value = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		if (!is(p[i], HEX))
			return -1;
		value = value << 4 | (is(p[i], DIGIT) ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10);
	}
	return value;
}

/* p: the backslash. */
static const char *skip_escape(const struct walk *w, const char *p)
{
	if (w->end - p < 2)
		return fail(w, w->end, "the text ends inside a string");
	if (is(p[1], ESCAPE))
		return p + 2;
	if (p[1] != 'u')
		return fail(w, p, "unknown escape in a string");

	int unit = hex4(p + 2, w->end);
	if (unit < 0)
		return fail(w, p, "expected four hex digits after \\u");
	if (unit < 0xD800 || unit > 0xDFFF)
		return p + 6;
	if (unit < 0xDC00 && w->end - p >= 12 && p[6] == '\\' && p[7] == 'u') {
		int low = hex4(p + 8, w->end);
		if (low >= 0xDC00 && low <= 0xDFFF)
			return p + 12;
	}
	return fail(w, p, "half of a surrogate pair in \\u escapes");
}

/* p: behind the opening quote. */
static const char *skip_string(const struct walk *w, const char *p)
{
	for (;;) {
		p = skip_plain(p, w->end);
		if (p == w->end)
			return fail(w, p, "the text ends inside a string");
		if (*p == '"')
			return p + 1;
		if (*p == '\\') {
			p = skip_escape(w, p);
			if (!p)
				return NULL;
			continue;
		}
		if ((uint8_t)*p < 0x20)
			return fail(w, p, "a control character in a string must be escaped");
		size_t step = ob_utf8_step(p, (size_t)(w->end - p));
		if (step == 0)
			return fail(w, p, "invalid UTF-8 in a string");
		p += step;
	}
}

/* At least one digit. */
static inline const char *skip_digits(const struct walk *w, const char *p)
{
	if (p == w->end || !is(*p, DIGIT))
		return fail(w, p,
			    p == w->end ? "the text ends inside a number"
					: "expected a digit in a number");
	do
		p++;
	while (p < w->end && is(*p, DIGIT));
	return p;
}

static const char *skip_number(const struct walk *w, const char *p)
{
	if (*p == '-')
		p++;
	const char *whole = p;
	p = skip_digits(w, p);
	if (!p)
		return NULL;
	if (*whole == '0' && p - whole > 1)
		return fail(w, whole, "a number must not begin with 0");
	if (p < w->end && *p == '.') {
		p = skip_digits(w, p + 1);
		if (!p)
			return NULL;
	}
	if (p < w->end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < w->end && (*p == '+' || *p == '-'))
			p++;
		p = skip_digits(w, p);
	}
	return p;
}

static const char *skip_word(const struct walk *w, const char *p, const char *word, size_t size)
{
	size_t left = (size_t)(w->end - p);

	if (left >= size && memcmp(p, word, size) == 0)
		return p + size;
	if (left < size && memcmp(p, word, left) == 0)
		return fail(w, w->end, "the text ends inside true, false or null");
	return fail(w, p, "expected a value");
}

/* Why there is no value at p. */
static const char *no_value(const struct walk *w, const char *p)
{
	if (p == w->end)
		return fail(w, p, "the text ends where a value should be");
	if (p == w->start && w->end - p >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
		return fail(w, p, "a byte order mark is not allowed");
	if (*p == ']' || *p == '}')
		return fail(w, p, "expected a value, not a closing bracket");
	if (*p == '\'')
		return fail(w, p, "strings are written in double quotes");
	return fail(w, p, "expected a value");
}

/* A value that is no container. */
static inline const char *skip_scalar(const struct walk *w, const char *p)
{
	if (p == w->end)
		return no_value(w, p);
	switch (*p) {
	case '"':
		return skip_string(w, p + 1);
	case 't':
		return skip_word(w, p, "true", 4);
	case 'f':
		return skip_word(w, p, "false", 5);
	case 'n':
		return skip_word(w, p, "null", 4);
	default:
		return *p == '-' || is(*p, DIGIT) ? skip_number(w, p) : no_value(w, p);
	}
}

/* "key" and the colon. */
static inline const char *skip_key(const struct walk *w, const char *p)
{
	p = skip_space(p, w->end);
	if (p == w->end)
		return fail(w, p, "the text ends where a key should be");
	if (*p != '"')
		return fail(w, p,
			    *p == '}' ? "expected a key after ','" : "expected a key in quotes");
	p = skip_string(w, p + 1);
	if (!p)
		return NULL;
	p = skip_space(p, w->end);
	if (p < w->end && *p == ':')
		return p + 1;
	return fail(w, p, p == w->end ? "the text ends after a key" : "expected ':' after the key");
}

static inline bool in_object(const struct walk *w)
{
	unsigned d = w->depth - 1;

	return w->objects[d / 64] >> (d % 64) & 1;
}

static inline bool push(struct walk *w, bool object)
{
	unsigned d = w->depth;
	uint64_t bit = UINT64_C(1) << (d % 64);

	if (d == OB_JSON_DEPTH_MAX)
		return false;
	w->objects[d / 64] = object ? w->objects[d / 64] | bit : w->objects[d / 64] & ~bit;
	w->depth++;
	return true;
}

/*
 * p: a bracket that opens. Ends where a value is expected or, for an empty container,
 * behind it; *ret_empty tells which.
 */
static const char *open_container(struct walk *w, const char *p, bool *ret_empty)
{
	bool object = *p == '{';

	if (!push(w, object))
		return fail(w, p, "nested too deeply");
	p = skip_space(p + 1, w->end);
	*ret_empty = p < w->end && *p == (object ? '}' : ']');
	if (*ret_empty) {
		w->depth--;
		return p + 1;
	}
	if (p == w->end)
		return fail(w, p,
			    object ? "the text ends inside an object"
				   : "the text ends inside an array");
	return object ? skip_key(w, p) : p;
}

/* Behind a value: close what ends here and go to the next value, or to the end of the text. */
static inline const char *after_value(struct walk *w, const char *p)
{
	for (;;) {
		p = skip_space(p, w->end);
		if (w->depth == 0)
			return p == w->end ? p : fail(w, p, "unexpected text after the value");

		bool object = in_object(w);
		if (p == w->end)
			return fail(w, p,
				    object ? "the text ends inside an object"
					   : "the text ends inside an array");
		if (*p == ',')
			return object ? skip_key(w, p + 1) : p + 1;
		if (*p != (object ? '}' : ']'))
			return fail(w, p,
				    object ? "expected ',' or '}' in an object"
					   : "expected ',' or ']' in an array");
		w->depth--;
		p++;
	}
}

bool ob_json_valid(struct ob_str text, struct ob_json_fault *fault)
{
	const char *p = text.p ? text.p : "";
	struct walk w = { .start = p, .end = p + text.n, .fault = fault };

	do {
		bool empty = true;

		p = skip_space(p, w.end);
		if (p < w.end && (*p == '{' || *p == '['))
			p = open_container(&w, p, &empty);
		else
			p = skip_scalar(&w, p);
		if (p && empty)
			p = after_value(&w, p);
	} while (p && w.depth);
	return p;
}

bool ob_json_valid_object(struct ob_str text, struct ob_json_fault *fault)
{
	if (!ob_json_valid(text, fault))
		return false;
	const char *first = skip_space(text.p, text.p + text.n);
	if (*first == '{')
		return true;
	if (fault)
		*fault = (struct ob_json_fault){ (size_t)(first - text.p), "expected an object" };
	return false;
}

bool ob_json_is_type(struct ob_str type)
{
	if (!type.p)
		return true;

	const char *semicolon = memchr(type.p, ';', type.n);
	size_t n = semicolon ? (size_t)(semicolon - type.p) : type.n;

	while (n > 0 && type.p[n - 1] == ' ')
		n--;
	return n >= 5 && (strncasecmp(type.p + n - 5, "/json", 5) == 0 ||
			  strncasecmp(type.p + n - 5, "+json", 5) == 0);
}

/* p: a quote, a backslash or a control character of `size` bytes. */
static void add_escape(struct ob_buf *b, const char *p, size_t size)
{
	static const char letters[256] = {
		['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
		['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't',
	};
	unsigned code = (uint8_t)p[0];
	char letter = letters[code];

	if (size == 2) /* U+0080 to U+009F are C2 and the code itself */
		code = (uint8_t)p[1];
	else if (size == 3) /* U+2028, U+2029 */
		code = 0x2000U | ((uint8_t)p[2] & 0x3F);
	if (letter)
		ob_buf_add(b, (struct ob_str){ (char[]){ '\\', letter }, 2 });
	else
		ob_buf_addf(b, "\\u%04x", code);
}

/* Up to the first byte that ob_json_add_string() must look at: the validator's, and DEL. */
static const char *skip_writable(const char *p, const char *end)
{
	const char *stop = skip_plain(p, end);
	const char *del = stop > p ? memchr(p, 0x7F, (size_t)(stop - p)) : NULL;

	return del ? del : stop;
}

void ob_json_add_string(struct ob_buf *b, struct ob_str s)
{
	if (!s.p) {
		ob_buf_adds(b, "null");
		return;
	}
	const char *p = s.p, *end = p + s.n;
	const char *kept = p; /* from here to p: good as it is, not yet appended */

	ob_buf_addc(b, '"');
	for (;;) {
		p = skip_writable(p, end);
		size_t step = ob_utf8_step(p, (size_t)(end - p)); /* 0: the end, or invalid */
		if (step > 1 && !ob_utf8_is_control(p, step)) {
			p += step;
			continue;
		}
		ob_buf_add(b, (struct ob_str){ kept, (size_t)(p - kept) });
		if (p == end)
			break;
		if (step)
			add_escape(b, p, step);
		else
			ob_buf_adds(b, "\xEF\xBF\xBD");
		p += step ? step : 1;
		kept = p;
	}
	ob_buf_addc(b, '"');
}
