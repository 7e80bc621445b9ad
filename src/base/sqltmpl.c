/* SPDX-License-Identifier: MIT */
/* Expanding SQL templates; see the header for the language. */
#include "base/sqltmpl.h"

#include <inttypes.h>

struct expansion {
	struct ob_buf *out;
	const struct ob_layout *layout;
	const struct ob_sqltmpl_number *numbers;
	char quote;
	bool in_section, skipping;
};

static bool is(struct ob_str s, const char *text)
{
	return ob_str_eq(s, ob_str(text));
}

/* Names come from struct ob_layout and hold no quote, so quoting is just this. */
static void add_quoted(struct expansion *x, const char *name, const char *suffix)
{
	ob_buf_addc(x->out, x->quote);
	ob_buf_adds(x->out, name);
	ob_buf_adds(x->out, suffix);
	ob_buf_addc(x->out, x->quote);
}

static void add_schema(struct expansion *x)
{
	if (!x->layout->schema[0])
		return;
	add_quoted(x, x->layout->schema, "");
	ob_buf_addc(x->out, '.');
}

static bool add_table(struct expansion *x, struct ob_str name)
{
	static const char *const names[] = {
#define X(table) #table,
		OB_TABLE_MAP(X)
#undef X
	};

	for (int t = 0; t < OB_TABLE_COUNT; t++) {
		if (!is(name, names[t]))
			continue;
		add_schema(x);
		add_quoted(x, x->layout->table[t], "");
		return true;
	}
	return false;
}

static bool add_number(struct expansion *x, struct ob_str name)
{
	for (const struct ob_sqltmpl_number *n = x->numbers; n && n->name; n++) {
		if (is(name, n->name)) {
			ob_buf_addf(x->out, "%" PRId64, n->value);
			return true;
		}
	}
	return false;
}

static bool add_column(struct expansion *x, struct ob_str name)
{
	const char *bar = memchr(name.p, '|', name.n);
	size_t size = bar ? (size_t)(bar - name.p) : name.n;
	int c = ob_column_find(name.p, size);

	if (c < 0)
		return false;
	if (x->layout->column[c][0]) {
		add_quoted(x, x->layout->column[c], "");
		return true;
	}
	if (!bar)
		return false;
	ob_buf_add(x->out, (struct ob_str){ bar + 1, name.n - size - 1 });
	return true;
}

/* {name:suffix}, the bare table name with a suffix. */
static bool add_name(struct expansion *x, struct ob_str suffix)
{
	char text[OB_IDENT_SIZE];

	if (suffix.n + 2 > sizeof(text))
		return false;
	text[0] = '_';
	memcpy(text + 1, suffix.p, suffix.n);
	text[suffix.n + 1] = '\0';
	add_quoted(x, x->layout->table[OB_TABLE_outbox], text);
	return true;
}

/* {?column}, {!column}, {?+flag}, {!+flag}: begin a section. */
static bool begin_section(struct expansion *x, bool when, struct ob_str name)
{
	bool on;

	if (x->in_section)
		return false;
	if (is(name, "+string_id")) {
		on = x->layout->string_id;
	} else if (is(name, "+binary_payload")) {
		on = x->layout->binary_payload;
	} else {
		int c = ob_column_find(name.p, name.n);
		if (c < 0)
			return false;
		on = x->layout->column[c][0] != '\0';
	}
	x->in_section = true;
	x->skipping = on != when;
	return true;
}

static bool end_section(struct expansion *x)
{
	bool was = x->in_section;

	x->in_section = x->skipping = false;
	return was;
}

static bool expand_tag(struct expansion *x, struct ob_str tag)
{
	struct ob_str rest = { tag.p + 1, tag.n - 1 };

	if (tag.n == 0)
		return false;
	if (is(tag, "/"))
		return end_section(x);
	if (tag.p[0] == '?' || tag.p[0] == '!')
		return begin_section(x, tag.p[0] == '?', rest);
	if (x->skipping)
		return true;
	if (tag.p[0] == '=')
		return add_number(x, rest);
	if (tag.n > 5 && memcmp(tag.p, "name:", 5) == 0)
		return add_name(x, (struct ob_str){ tag.p + 5, tag.n - 5 });
	if (is(tag, "bare")) {
		add_quoted(x, x->layout->table[OB_TABLE_outbox], "");
		return true;
	}
	if (tag.n > 3 && memcmp(tag.p, "fn:", 3) == 0) {
		add_schema(x);
		return add_name(x, (struct ob_str){ tag.p + 3, tag.n - 3 });
	}
	return add_table(x, tag) || add_column(x, tag);
}

int ob_sqltmpl_expand(struct ob_buf *out, const char *tmpl, const struct ob_layout *layout,
		      char quote, const struct ob_sqltmpl_number *numbers, struct ob_err *err)
{
	struct expansion x = { out, layout, numbers, quote, false, false };
	const char *p = tmpl;

	while (*p) {
		if (*p != '{' || p[1] == '{') {
			if (!x.skipping)
				ob_buf_addc(out, *p);
			p += *p == '{' ? 2 : 1;
			continue;
		}
		const char *end = strchr(p, '}');
		if (!end || !expand_tag(&x, (struct ob_str){ p + 1, (size_t)(end - p - 1) }))
			return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
					  "SQL template: bad placeholder at '%.40s'", p);
		p = end + 1;
	}
	if (x.in_section)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "SQL template: a section has no end");
	if (out->failed)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "expanding an SQL template");
	return 0;
}
