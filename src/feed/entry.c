/* SPDX-License-Identifier: MIT */
/* Records of a source, and lines of the parked table, as messages. */
#include "base/base64.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/when.h"
#include "feed/feed.h"

#include <stdlib.h>

enum { HEADERS_MAX = 1 << 20 };

static bool read_number(struct ob_str text, int64_t *ret)
{
	char digits[24], *end;

	if (text.n == 0 || text.n >= sizeof(digits))
		return false;
	memcpy(digits, text.p, text.n);
	digits[text.n] = '\0';
	*ret = strtoll(digits, &end, 10);
	return *end == '\0';
}

/* ---- fields ---------------------------------------------------------- */

void ob_feed_entry_begin(struct ob_feed_draft *draft, struct ob_feed_entry *entry)
{
	*draft = (struct ob_feed_draft){ .entry = entry, .headers = OB_BUF_INIT(HEADERS_MAX) };
	entry->message.revision = 1;
}

static struct ob_str *text_field(struct ob_feed_entry *e, struct ob_str name)
{
	struct ob_message *m = &e->message;
	const struct {
		struct ob_str name;
		struct ob_str *field;
	} fields[] = {
		{ OB_STR("event_type"), &m->event_type },
		{ OB_STR("aggregate_type"), &m->aggregate_type },
		{ OB_STR("aggregate_id"), &m->aggregate_id },
		{ OB_STR("correlation_id"), &m->correlation_id },
		{ OB_STR("causation_id"), &m->causation_id },
		{ OB_STR("key"), &m->key },
		{ OB_STR("content_type"), &e->content_type },
		{ OB_STR("content-type"), &e->content_type }, /* a header's name */
		{ OB_STR("headers"), &m->headers },
		{ OB_STR("payload"), &m->payload },
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (ob_str_eq(fields[i].name, name))
			return fields[i].field;
	}
	return NULL;
}

/* true: it is one of ours that is not text. */
static bool number_field(struct ob_feed_draft *draft, struct ob_str name, struct ob_str value)
{
	struct ob_message *m = &draft->entry->message;
	int64_t number = 0;
	bool good = true;

	if (ob_str_eq(name, OB_STR("id"))) {
		good = draft->has_id = ob_uuid_parse(value, &m->id);
	} else if (ob_str_eq(name, OB_STR("revision"))) {
		good = read_number(value, &number);
		m->revision = (int32_t)number;
	} else if (ob_str_eq(name, OB_STR("sequence_number"))) {
		good = read_number(value, &m->sequence_number);
	} else if (ob_str_eq(name, OB_STR("priority"))) {
		good = read_number(value, &number);
		m->priority = (int32_t)number;
	} else if (ob_str_eq(name, OB_STR("occurred_at"))) {
		good = ob_when_parse(value, &m->occurred_at_us);
	} else if (ob_str_eq(name, OB_STR("tombstone"))) {
		draft->tombstone = true;
	} else {
		return false;
	}
	if (!good && !draft->bad.p)
		draft->bad = name;
	return true;
}

static void add_name(struct ob_feed_draft *draft, struct ob_str name)
{
	ob_buf_addc(&draft->headers, draft->headers.len ? ',' : '{');
	ob_json_add_string(&draft->headers, name);
	ob_buf_addc(&draft->headers, ':');
}

void ob_feed_entry_field(struct ob_feed_draft *draft, struct ob_str name, struct ob_str value)
{
	struct ob_str *text = text_field(draft->entry, name);

	if (text) {
		*text = value;
	} else if (!number_field(draft, name, value)) {
		add_name(draft, name);
		ob_json_add_string(&draft->headers, value);
	}
}

void ob_feed_entry_header(struct ob_feed_draft *draft, struct ob_str name, struct ob_str json)
{
	add_name(draft, name);
	ob_buf_add(&draft->headers, json);
}

bool ob_feed_entry_own_name(struct ob_str header, struct ob_arena *arena, struct ob_str *ret)
{
	char *name = ob_arena_alloc(arena, header.n + 1);
	size_t n = 0;

	if (!name)
		return false;
	for (size_t i = OB_FEED_OWN_PREFIX; i < header.n; i++)
		name[n++] = (char)(header.p[i] == '-' ? '_' : header.p[i]);
	*ret = (struct ob_str){ name, n };
	return true;
}

static void set_fault(struct ob_feed_entry *entry, struct ob_arena *arena, const char *what,
		      struct ob_str name)
{
	struct ob_buf text = OB_BUF_INIT(200);

	ob_buf_adds(&text, what);
	if (name.p)
		ob_buf_addf(&text, ": '%.*s'", (int)(name.n > 100 ? 100 : name.n), name.p);
	if (!ob_arena_copy(arena, ob_buf_view(&text), &entry->fault))
		entry->fault = OB_STR("it cannot be read");
	ob_buf_done(&text);
}

bool ob_feed_entry_finish(struct ob_feed_draft *draft, struct ob_arena *arena)
{
	struct ob_feed_entry *entry = draft->entry;
	struct ob_message *m = &entry->message;
	bool ok = true;

	if (!m->headers.p && draft->headers.len) {
		ob_buf_addc(&draft->headers, '}');
		ok = !draft->headers.failed &&
		     ob_arena_copy(arena, ob_buf_view(&draft->headers), &m->headers);
	}
	if (draft->tombstone)
		m->payload = OB_STR_NULL;
	if (draft->bad.p)
		set_fault(entry, arena, "a field cannot be read", draft->bad);
	else if (!draft->has_id)
		set_fault(entry, arena, "it has no id", OB_STR_NULL);
	else if (!m->payload.p && !draft->tombstone)
		set_fault(entry, arena, "it has no payload", OB_STR_NULL);
	ob_buf_done(&draft->headers);
	return ok;
}

/* ---- lines ----------------------------------------------------------- */

/* The text of a member, or its JSON where it is no string; null is absent. */
static bool take_value(struct ob_str raw, bool as_json, struct ob_arena *arena, struct ob_str *ret)
{
	*ret = OB_STR_NULL;
	if (ob_str_eq(raw, OB_STR("null")))
		return true;
	if (as_json || raw.n == 0 || raw.p[0] != '"')
		return ob_arena_copy(arena, raw, ret);
	char *text = ob_arena_alloc(arena, raw.n + 1);
	if (!text)
		return false;
	*ret = (struct ob_str){ text, ob_json_decode(raw, text) };
	return true;
}

static bool take_base64(struct ob_str raw, struct ob_arena *arena, struct ob_str *ret)
{
	char *bytes = ob_arena_alloc(arena, raw.n + 1);

	ret->p = bytes;
	return bytes && raw.n >= 2 &&
	       ob_base64_decode((struct ob_str){ raw.p + 1, raw.n - 2 }, bytes, &ret->n);
}

bool ob_feed_entry_of_line(struct ob_str line, struct ob_arena *arena, struct ob_feed_entry *entry)
{
	struct ob_json_cursor cursor;
	struct ob_json_member member;
	struct ob_feed_draft draft;
	bool ok = ob_json_valid_object(line, NULL);

	*entry = (struct ob_feed_entry){ 0 };
	if (!ok)
		return false;
	ob_feed_entry_begin(&draft, entry);
	ob_json_begin(&cursor, line);
	while (ok && ob_json_next(&cursor, &member)) {
		struct ob_str name, value;
		bool json;

		ok = take_value(member.name, false, arena, &name);
		if (ok && ob_str_eq(name, OB_STR("payload_base64"))) {
			ok = take_base64(member.value, arena, &entry->message.payload);
			continue;
		}
		/* What the line has besides the message. */
		if (ok && ob_str_eq(name, OB_STR("destination")))
			continue;
		json = ok &&
		       (ob_str_eq(name, OB_STR("payload")) || ob_str_eq(name, OB_STR("headers")));
		ok = ok && take_value(member.value, json, arena, &value);
		if (ok && value.p)
			ob_feed_entry_field(&draft, name, value);
	}
	return ob_feed_entry_finish(&draft, arena) && ok && !entry->fault.p;
}
