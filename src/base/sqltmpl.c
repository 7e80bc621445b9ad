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

static void add_schema(struct expansion *x, const char *schema)
{
	if (!schema[0])
		return;
	add_quoted(x, schema, "");
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
		add_schema(x, x->layout->schema);
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

/* What stands behind `prefix`, if the tag begins with it and has more. */
static bool behind(struct ob_str tag, const char *prefix, struct ob_str *ret_rest)
{
	size_t n = strlen(prefix);

	if (tag.n <= n || memcmp(tag.p, prefix, n) != 0)
		return false;
	*ret_rest = (struct ob_str){ tag.p + n, tag.n - n };
	return true;
}

/* The name of a column, ours or (source:) that of the table that is copied; NULL: unknown. */
static const char *name_of(const struct ob_layout *layout, struct ob_str tag)
{
	struct ob_str rest;
	bool source = behind(tag, "source:", &rest);
	int c = source ? ob_column_find(rest.p, rest.n) : ob_column_find(tag.p, tag.n);

	if (c < 0)
		return NULL;
	return source ? layout->source.column[c] : layout->column[c];
}

static bool add_source(struct expansion *x, struct ob_str tag)
{
	const struct ob_source *source = &x->layout->source;
	struct ob_str rest;

	if (is(tag, "source")) {
		add_schema(x, source->schema);
		add_quoted(x, source->table, "");
		return true;
	}
	if (behind(tag, "at_source:", &rest)) {
		add_schema(x, source->schema);
		return add_name(x, rest);
	}
	const char *name = behind(tag, "source:", &rest) ? name_of(x->layout, tag) : NULL;
	if (!name || !name[0])
		return false;
	add_quoted(x, name, "");
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
	} else if (is(name, "+read_snapshot")) {
		on = x->layout->read_snapshot;
	} else {
		const char *column = name_of(x->layout, name);
		if (!column)
			return false;
		on = column[0] != '\0';
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
	if (behind(tag, "name:", &rest))
		return add_name(x, rest);
	if (is(tag, "bare")) {
		add_quoted(x, x->layout->table[OB_TABLE_outbox], "");
		return true;
	}
	if (behind(tag, "fn:", &rest)) {
		add_schema(x, x->layout->schema);
		return add_name(x, rest);
	}
	return add_table(x, tag) || add_column(x, tag) || add_source(x, tag);
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
