/* SPDX-License-Identifier: MIT */
/*
 * Reading a JSON object that ob_json_valid_object() has accepted, without a tree:
 * each member is cut out of the text as it stands there.
 */
#ifndef OB_BASE_JSON_READ_H
#define OB_BASE_JSON_READ_H

#include "base/buf.h"

struct ob_json_cursor {
	const char *p, *end;
};

/* Borrowed from the text: strings have their quotes and escapes. */
struct ob_json_member {
	struct ob_str name, value;
};

void ob_json_begin(struct ob_json_cursor *cursor, struct ob_str object);
/* The next member; false behind the last. Of members with the same name all come. */
bool ob_json_next(struct ob_json_cursor *cursor, struct ob_json_member *ret);

/* The same for a list: ob_json_begin(), then the next value. */
bool ob_json_next_item(struct ob_json_cursor *cursor, struct ob_str *ret);

/*
 * The text of a string with its quotes, into `out`, which has room for raw.n bytes;
 * returns how many there are, at most raw.n - 2. It may hold NULs.
 */
size_t ob_json_decode(struct ob_str raw, char *out);

#endif
