/* SPDX-License-Identifier: MIT */
/* Members of a report, by their table. Whoever may write the database may have written what is
 * read. */
#include "base/report_field.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/worker_report.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- single values --------------------------------------------------- */

bool ob_field_is(const struct ob_json_member *m, const char *name)
{
	return m->name.n == strlen(name) + 2 && memcmp(m->name.p + 1, name, m->name.n - 2) == 0;
}

void ob_field_read_text(char *out, size_t size, struct ob_str raw)
{
	if (raw.n < 2 || raw.p[0] != '"')
		return;
	OB_AUTOFREE char *text = malloc(raw.n);

	if (text)
		ob_worker_text(out, size, (struct ob_str){ text, ob_json_decode(raw, text) });
}

/* As a text with an end; false: it is too long for a number. */
static bool copy_number(struct ob_str raw, char text[32])
{
	if (raw.n == 0 || raw.n >= 32)
		return false;
	memcpy(text, raw.p, raw.n);
	text[raw.n] = '\0';
	return true;
}

int64_t ob_field_read_number(struct ob_str raw)
{
	char text[32];

	if (!copy_number(raw, text))
		return 0;
	double number = strtod(text, NULL);
	return number >= 0 && number < 9e18 ? strtoll(text, NULL, 10) : 0;
}

double ob_field_read_rate(struct ob_str raw)
{
	char text[32];

	if (!copy_number(raw, text))
		return 0;
	double rate = strtod(text, NULL);
	return rate > 0 && rate < 1e9 ? rate : 0;
}

void ob_field_write_rate(struct ob_jout *j, const char *key, double rate)
{
	char text[32];

	/* No more digits than mean something, and never "inf". */
	if (rate > 0 && rate < 1e9) {
		(void)snprintf(text, sizeof(text), "%.1f", rate);
		ob_jout_raw(j, key, ob_str(text));
	}
}

/* ---- tables ---------------------------------------------------------- */

static int64_t number_of(const struct ob_field *f, const void *from)
{
	int64_t value;

	memcpy(&value, (const char *)from + f->offset, sizeof(value));
	return value;
}

static void write_field(struct ob_jout *j, const struct ob_field *f, const void *from)
{
	const char *at = (const char *)from + f->offset;
	double rate;

	switch (f->kind) {
	case OB_FIELD_TEXT:
		if (*at)
			ob_jout_text(j, f->name, ob_str(at));
		break;
	case OB_FIELD_NUMBER:
	case OB_FIELD_WHEN:
		if (number_of(f, from))
			ob_jout_int(j, f->name, number_of(f, from));
		break;
	case OB_FIELD_KNOWN:
		if (number_of(f, from) >= 0)
			ob_jout_int(j, f->name, number_of(f, from));
		break;
	case OB_FIELD_RATE:
		memcpy(&rate, at, sizeof(rate));
		ob_field_write_rate(j, f->name, rate);
		break;
	case OB_FIELD_FLAG:
		if (*at)
			ob_jout_int(j, f->name, 1);
		break;
	}
}

void ob_fields_write(struct ob_jout *j, const struct ob_field *fields, size_t count,
		     const void *from)
{
	for (size_t i = 0; i < count; i++)
		write_field(j, &fields[i], from);
}

static void read_field(const struct ob_field *f, struct ob_str raw, void *to)
{
	char *at = (char *)to + f->offset;
	int64_t number;
	double rate;

	switch (f->kind) {
	case OB_FIELD_TEXT:
		ob_field_read_text(at, f->size, raw);
		break;
	case OB_FIELD_NUMBER:
	case OB_FIELD_WHEN:
	case OB_FIELD_KNOWN:
		number = ob_field_read_number(raw);
		memcpy(at, &number, sizeof(number));
		break;
	case OB_FIELD_RATE:
		rate = ob_field_read_rate(raw);
		memcpy(at, &rate, sizeof(rate));
		break;
	case OB_FIELD_FLAG:
		*(bool *)(void *)at = ob_field_read_number(raw) != 0;
		break;
	}
}

bool ob_fields_read(const struct ob_field *fields, size_t count, struct ob_str text, void *to)
{
	static const int64_t unknown = -1;
	struct ob_json_cursor cursor;
	struct ob_json_member m;

	for (size_t i = 0; i < count; i++) {
		char *at = (char *)to + fields[i].offset;

		memset(at, 0, fields[i].size);
		if (fields[i].kind == OB_FIELD_KNOWN)
			memcpy(at, &unknown, sizeof(unknown));
	}
	if (!text.p || !ob_json_valid_object(text, NULL))
		return false;
	ob_json_begin(&cursor, text);
	while (ob_json_next(&cursor, &m)) {
		for (size_t i = 0; i < count; i++) {
			if (ob_field_is(&m, fields[i].name))
				read_field(&fields[i], m.value, to);
		}
	}
	return true;
}

void ob_fields_json(struct ob_jout *j, const struct ob_field *fields, size_t count,
		    const void *from)
{
	for (size_t i = 0; i < count; i++) {
		const struct ob_field *f = &fields[i];
		const char *at = (const char *)from + f->offset;
		char text[32], name[64];
		double rate;

		switch (f->kind) {
		case OB_FIELD_TEXT:
			ob_jout_text(j, f->name, *at ? ob_str(at) : OB_STR_NULL);
			break;
		case OB_FIELD_NUMBER:
		case OB_FIELD_KNOWN:
			ob_jout_int(j, f->name, number_of(f, from));
			break;
		case OB_FIELD_WHEN: /* a text has no unit */
			(void)snprintf(name, sizeof(name), "%.*s",
				       (int)(strlen(f->name) - strlen("_us")), f->name);
			ob_jout_when(j, name, number_of(f, from));
			break;
		case OB_FIELD_RATE:
			memcpy(&rate, at, sizeof(rate));
			(void)snprintf(text, sizeof(text), "%.1f", rate);
			ob_jout_raw(j, f->name, ob_str(text));
			break;
		case OB_FIELD_FLAG:
			ob_jout_bool(j, f->name, *(const bool *)(const void *)at);
			break;
		}
	}
}
