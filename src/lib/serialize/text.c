/* SPDX-License-Identifier: MIT */
/* The text that serializers write into. */
#include "lib/serialize/text.h"

#include "base/json.h"

#include <stdlib.h>

outbox_text *outbox_text_new(void)
{
	outbox_text *text = calloc(1, sizeof(*text));

	if (text)
		*text = OB_TEXT_INIT;
	return text;
}

void outbox_text_free(outbox_text *text)
{
	if (text)
		ob_text_done(text);
	free(text);
}

void outbox_text_clear(outbox_text *text)
{
	ob_buf_clear(&text->b);
	ob_arena_reset(&text->arena, 1 << 16);
}

void outbox_text_add(outbox_text *out, const void *bytes, size_t size)
{
	ob_buf_add(&out->b, (struct ob_str){ bytes, size });
}

void outbox_text_add_string(outbox_text *out, const char *text)
{
	ob_json_add_string(&out->b, ob_str(text));
}

void *outbox_text_alloc(outbox_text *out, size_t size)
{
	return ob_arena_alloc(&out->arena, size);
}

const char *outbox_text_get(const outbox_text *text, size_t *ret_size)
{
	if (text->b.failed)
		return NULL;
	if (ret_size)
		*ret_size = text->b.len;
	return ob_buf_str(&text->b);
}
