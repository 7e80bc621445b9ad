/* SPDX-License-Identifier: MIT */
/* Templates: taken apart once, filled for every message. */
#include "base/template.h"

#include "base/opt.h"

#include <inttypes.h>
#include <stdio.h>

const char *const ob_field_names[] = {
#define X(name, text) [OB_FIELD_##name] = (text),
	OB_FIELD_MAP(X)
#undef X
		[OB_FIELD_COUNT] = NULL,
};

static const struct ob_str headers_prefix = OB_STR("headers.");

enum { WRITTEN_MAX = 40 }; /* an id, a time, a number */

#define AT(member) offsetof(struct ob_message, member)

/* ---- taking apart ---------------------------------------------------- */

static int unknown_field(struct ob_str name, struct ob_err *err)
{
	char text[64] = "";
	const char *hint;

	if (name.n < sizeof(text))
		memcpy(text, name.p, name.n);
	hint = ob_suggest(text, ob_field_names, OB_FIELD_COUNT);
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "no field '{%.*s}'%s%s%s",
			  name.n < 80 ? (int)name.n : 80, name.p, hint ? "; did you mean '{" : "",
			  hint ? hint : "", hint ? "}'?" : "");
}

static int find_field(struct ob_str name, enum ob_field *ret, struct ob_err *err)
{
	for (int i = 0; i < OB_FIELD_COUNT; i++) {
		if (ob_str_eq(name, ob_str(ob_field_names[i]))) {
			*ret = (enum ob_field)i;
			return 0;
		}
	}
	if (name.n >= headers_prefix.n && memcmp(name.p, headers_prefix.p, headers_prefix.n) == 0) {
		*ret = OB_FIELD_HEADER;
		if (name.n > headers_prefix.n)
			return 0;
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "'{headers.}' names no header: write '{headers.tenant}'");
	}
	return unknown_field(name, err);
}

static int unpaired(char brace, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "a '%c' without its '%c'; doubled it stands for itself", brace,
			  brace == '{' ? '}' : '{');
}

/* The part that begins at *at, which is moved behind it. */
static int parse_part(const char **at, struct ob_template_part *part, struct ob_err *err)
{
	const char *start = *at;
	size_t n = strcspn(start, "{}");
	char brace = start[n];

	*part = (struct ob_template_part){ .field = OB_FIELD_LITERAL };
	if (n > 0 || (brace && start[n + 1] == brace)) {
		bool doubled = brace && start[n + 1] == brace;

		part->text = (struct ob_str){ start, n + (doubled ? 1 : 0) };
		*at = start + n + (doubled ? 2 : 0);
		return 0;
	}
	size_t size = strcspn(start + 1, "{}");
	if (brace == '}' || start[1 + size] != '}')
		return unpaired(brace, err);

	const char *bar = memchr(start + 1, '|', size);
	part->text = (struct ob_str){ start + 1, bar ? (size_t)(bar - start - 1) : size };
	if (bar)
		part->fallback = (struct ob_str){ bar + 1, size - part->text.n - 1 };
	*at = start + size + 2;
	return find_field(part->text, &part->field, err);
}

int ob_template_parse(const char *text, struct ob_arena *arena, struct ob_template *ret,
		      struct ob_err *err)
{
	struct ob_template_part parts[OB_TEMPLATE_PARTS];
	struct ob_template template = { 0 };

	while (*text) {
		if (template.count == OB_TEMPLATE_PARTS)
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "more than %d fields and pieces of text",
					  OB_TEMPLATE_PARTS);
		int r = parse_part(&text, &parts[template.count], err);
		if (r < 0)
			return r;
		template.reads_headers |= parts[template.count].field == OB_FIELD_HEADER;
		template.count++;
	}
	/* Never NULL, also without parts. */
	template.parts = ob_arena_alloc(arena, (template.count + 1) * sizeof(parts[0]));
	if (!template.parts)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "no memory for a template");
	memcpy(template.parts, parts, template.count * sizeof(parts[0]));
	*ret = template;
	return 0;
}

/* ---- filling --------------------------------------------------------- */

static struct ob_str header_value(const struct ob_template_input *input, struct ob_str field)
{
	struct ob_str name = { field.p + headers_prefix.n, field.n - headers_prefix.n };
	const struct ob_header *header = ob_headers_find(input->headers, input->header_count, name);

	return header ? header->value : OB_STR_NULL;
}

/*
 * The caller's own key; a fetch brings the ordering key alone, which is made of type and
 * id where there is no other.
 */
static struct ob_str partition_key(const struct ob_message *m)
{
	struct ob_str key = m->key, type = m->aggregate_type, id = m->aggregate_id;

	if (key.p && id.p && key.n == type.n + 1 + id.n && memcmp(key.p, type.p, type.n) == 0 &&
	    key.p[type.n] == ':' && memcmp(key.p + type.n + 1, id.p, id.n) == 0)
		return OB_STR_NULL;
	return key;
}

/* How each field is found in a message. */
static const struct field {
	enum { TEXT, PARTITION_KEY, ID, INSTANT, INT32, INT64, POSITIVE } kind;
	size_t offset; /* TEXT: a struct ob_str; of the numbers and times */
} fields[] = {
	[OB_FIELD_ID] = { ID, 0 },
	[OB_FIELD_AGGREGATE_TYPE] = { TEXT, AT(aggregate_type) },
	[OB_FIELD_AGGREGATE_ID] = { TEXT, AT(aggregate_id) },
	[OB_FIELD_EVENT_TYPE] = { TEXT, AT(event_type) },
	[OB_FIELD_REVISION] = { INT32, AT(revision) },
	[OB_FIELD_SEQUENCE_NUMBER] = { POSITIVE, AT(sequence_number) },
	[OB_FIELD_TARGET] = { TEXT, AT(target) },
	[OB_FIELD_PARTITION_KEY] = { PARTITION_KEY, 0 },
	[OB_FIELD_KEY] = { TEXT, AT(key) },
	[OB_FIELD_PRIORITY] = { INT32, AT(priority) },
	[OB_FIELD_CORRELATION_ID] = { TEXT, AT(correlation_id) },
	[OB_FIELD_CAUSATION_ID] = { TEXT, AT(causation_id) },
	[OB_FIELD_SEQ] = { INT64, AT(seq) },
	[OB_FIELD_OCCURRED_AT] = { INSTANT, AT(occurred_at_us) },
};

/* What must be written as text; false: there is no value. */
static bool write_value(const struct field *field, const struct ob_message *m,
			char out[WRITTEN_MAX])
{
	const void *at = (const char *)m + field->offset;
	int64_t number;

	if (field->kind == ID) {
		ob_uuid_format(&m->id, out);
		return true;
	}
	if (field->kind == INSTANT)
		return ob_time_format(*(const int64_t *)at, out);
	number = field->kind == INT32 ? *(const int32_t *)at : *(const int64_t *)at;
	(void)snprintf(out, WRITTEN_MAX, "%" PRId64, number);
	return field->kind != POSITIVE || number > 0;
}

static bool written_value(const struct field *field, const struct ob_message *m,
			  struct ob_arena *arena, struct ob_str *ret)
{
	char text[WRITTEN_MAX];

	*ret = OB_STR_NULL;
	return !write_value(field, m, text) || ob_arena_copy(arena, ob_str(text), ret);
}

static bool field_value(const struct field *field, const struct ob_message *m,
			struct ob_arena *arena, struct ob_str *ret)
{
	if (field->kind == TEXT)
		*ret = *(const struct ob_str *)((const char *)m + field->offset);
	else if (field->kind == PARTITION_KEY)
		*ret = partition_key(m);
	else
		return written_value(field, m, arena, ret);
	return true;
}

/* False when out of memory; absent when there is no value. */
static bool part_value(const struct ob_template_part *part, const struct ob_template_input *input,
		       struct ob_arena *arena, struct ob_str *ret)
{
	if (part->field == OB_FIELD_LITERAL)
		*ret = part->text;
	else if (part->field == OB_FIELD_HEADER)
		*ret = header_value(input, part->text);
	else if (!field_value(&fields[part->field], input->message, arena, ret))
		return false;
	if (!ret->p)
		*ret = part->fallback;
	return true;
}

static bool join(const struct ob_template *template, const struct ob_template_input *input,
		 struct ob_arena *arena, struct ob_str *ret, struct ob_str *ret_missing)
{
	struct ob_str values[OB_TEMPLATE_PARTS];
	size_t size = 0;

	for (size_t i = 0; i < template->count; i++) {
		if (!part_value(&template->parts[i], input, arena, &values[i]))
			return false;
		if (!values[i].p) {
			*ret = OB_STR_NULL;
			*ret_missing = template->parts[i].text;
			return true;
		}
		size += values[i].n;
	}
	char *out = ob_arena_alloc(arena, size + 1);
	if (!out)
		return false;
	*ret = (struct ob_str){ out, size };
	for (size_t i = 0; i < template->count; i++) {
		memcpy(out, values[i].p, values[i].n);
		out += values[i].n;
	}
	return true;
}

bool ob_template_fill(const struct ob_template *template, const struct ob_template_input *input,
		      struct ob_arena *arena, struct ob_str *ret, struct ob_str *ret_missing)
{
	if (template->count != 1)
		return join(template, input, arena, ret, ret_missing);
	/* The usual template is one field: nothing to copy then. */
	*ret_missing = template->parts[0].text;
	return part_value(&template->parts[0], input, arena, ret);
}
