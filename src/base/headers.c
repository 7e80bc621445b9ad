/* SPDX-License-Identifier: MIT */
/* Headers: from the stored object to names and values, and a list of them. */
#include "base/headers.h"

#include "base/json.h"
#include "base/json_read.h"

#include <strings.h>

/* A string becomes its text, and is copied only when it has escapes. */
static bool decode(struct ob_str raw, struct ob_arena *arena, struct ob_str *ret)
{
	struct ob_str inner = { raw.p + 1, raw.n - 2 };

	if (!memchr(inner.p, '\\', inner.n)) {
		*ret = inner;
		return true;
	}
	char *out = ob_arena_alloc(arena, raw.n);
	if (!out)
		return false;
	*ret = (struct ob_str){ out, ob_json_decode(raw, out) };
	return true;
}

static bool read_header(const struct ob_json_member *member, struct ob_arena *arena,
			struct ob_header *ret)
{
	if (!decode(member->name, arena, &ret->name))
		return false;
	ret->json = false;
	if (*member->value.p == '"')
		return decode(member->value, arena, &ret->value);
	ret->value = member->value;
	ret->json = true;
	return true;
}

const struct ob_header *ob_headers_find(const struct ob_header *headers, size_t count,
					struct ob_str name)
{
	for (size_t i = 0; i < count; i++) {
		if (headers[i].name.n == name.n &&
		    strncasecmp(headers[i].name.p, name.p, name.n) == 0)
			return &headers[i];
	}
	return NULL;
}

bool ob_headers_set(struct ob_header *headers, size_t *count, size_t max, struct ob_header header)
{
	const struct ob_header *old = ob_headers_find(headers, *count, header.name);

	if (!old && *count == max)
		return false;
	headers[old ? (size_t)(old - headers) : (*count)++] = header;
	return true;
}

int ob_headers_read(struct ob_str json, struct ob_arena *arena, struct ob_header *out, size_t max,
		    size_t *ret_count, struct ob_err *err)
{
	struct ob_json_cursor cursor;
	struct ob_json_member member;
	struct ob_json_fault fault;
	struct ob_header header;
	size_t count = 0;

	*ret_count = 0;
	if (!json.p)
		return 0;
	if (!ob_json_valid_object(json, &fault))
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_REJECT,
				  "the headers of the message are no JSON object: %s at byte %zu",
				  fault.what, fault.offset);
	ob_json_begin(&cursor, json);
	while (ob_json_next(&cursor, &member)) {
		if (*member.value.p == 'n')
			continue;
		if (!read_header(&member, arena, &header))
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for headers");
		if (!ob_headers_set(out, &count, max, header))
			return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_REJECT,
					  "the message has more than %zu headers", max);
	}
	*ret_count = count;
	return 0;
}
