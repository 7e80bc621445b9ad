/* SPDX-License-Identifier: MIT */
/* Entries of the audit hold what people type and what peers say: nothing of it may break a table
 * or a terminal. */
#include "store/audit.h"

#include "base/cleanup.h"
#include "base/utf8.h"

/* A text, and how many characters the tables take. */
static const struct {
	size_t offset, max_chars;
} texts[] = {
	{ offsetof(struct ob_audit_row, who), 255 },
	{ offsetof(struct ob_audit_row, origin), 32 },
	{ offsetof(struct ob_audit_row, verb), 64 },
	{ offsetof(struct ob_audit_row, reader), 250 },
	{ offsetof(struct ob_audit_row, filter), 2048 },
	{ offsetof(struct ob_audit_row, plan), 64 },
	{ offsetof(struct ob_audit_row, reason), 1024 },
};

int ob_audit_row_clean(const struct ob_audit_row *from, struct ob_arena *arena,
		       struct ob_audit_row *ret, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf line = OB_BUF_INIT(OB_AUDIT_BYTES);

	*ret = *from;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const struct ob_str *text = (const void *)((const char *)from + texts[i].offset);
		struct ob_str *to = (void *)((char *)ret + texts[i].offset);

		ob_buf_clear(&line);
		if (text->p)
			ob_utf8_sanitize(&line, *text, texts[i].max_chars);
		if (line.failed || !ob_arena_copy(arena, ob_str(ob_buf_str(&line)), to))
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN,
					  "writing the audit: out of memory");
	}
	return 0;
}
