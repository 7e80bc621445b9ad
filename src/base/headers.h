/* SPDX-License-Identifier: MIT */
/* The stored headers of a message, a JSON object, one by one. */
#ifndef OB_BASE_HEADERS_H
#define OB_BASE_HEADERS_H

#include "base/err.h"
#include "base/message.h"

/*
 * Write the members of `json` to `out`, at most `max` of them: a string as its text, null not
 * at all, everything else as its JSON. Of equal names the last counts. Absent: none. They
 * borrow from `json` and the arena. OUTBOX_EINVAL, a REJECT, when it is no JSON object or has
 * too many members; OUTBOX_ENOMEM.
 */
int ob_headers_read(struct ob_str json, struct ob_arena *arena, struct ob_header *out, size_t max,
		    size_t *ret_count, struct ob_err *err);

/* Set a header: in the place of one with that name, in any case, or at the end. False: no room. */
bool ob_headers_set(struct ob_header *headers, size_t *count, size_t max, struct ob_header header);

/* The first header of that name, in any case; NULL: none. */
const struct ob_header *ob_headers_find(const struct ob_header *headers, size_t count,
					struct ob_str name);

#endif
