/* SPDX-License-Identifier: MIT */
/* What serializers write into: a buffer, and memory for what it points to. */
#ifndef OB_LIB_SERIALIZE_TEXT_H
#define OB_LIB_SERIALIZE_TEXT_H

#include "base/arena.h"
#include "outbox/serialize.h"

/* The largest document, and memory of one call. */
enum { OB_TEXT_MAX = 64 << 20 };

struct outbox_text {
	struct ob_buf b;
	struct ob_arena arena;
};

#define OB_TEXT_INIT \
	((struct outbox_text){ .b = OB_BUF_INIT(OB_TEXT_MAX), \
			       .arena = OB_ARENA_INIT(SIZE_MAX / 2) })

static inline void ob_text_done(struct outbox_text *text)
{
	ob_buf_done(&text->b);
	ob_arena_done(&text->arena);
}

/* Translate and serialize one record; what *ret points to is the record's or in `memory`. */
int ob_record_serialize(const struct outbox_serializers *how, const struct outbox_record *record,
			struct outbox_text *memory, struct outbox_message *ret,
			struct outbox_error *err);

#endif
