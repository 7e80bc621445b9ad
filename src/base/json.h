/* SPDX-License-Identifier: MIT */
/*
 * JSON in the hot path: a strict validator (RFC 8259, no allocation, no
 * recursion, depth at most OB_JSON_DEPTH_MAX, UTF-8 checked) and a writer of
 * escaped strings. Where a document is needed, jansson parses it.
 */
#ifndef OB_BASE_JSON_H
#define OB_BASE_JSON_H

#include "base/buf.h"

enum { OB_JSON_DEPTH_MAX = 512 };

struct ob_json_fault {
	size_t offset;    /* byte where it went wrong, from 0 */
	const char *what; /* "expected ':' after the key"; static */
};

/* Is `text` exactly one JSON value? `fault` may be NULL; written only on false. */
bool ob_json_valid(struct ob_str text, struct ob_json_fault *fault);
/* The same, and the value is an object. */
bool ob_json_valid_object(struct ob_str text, struct ob_json_fault *fault);

/* Does a content type say JSON: "application/json", "application/cloudevents+json; charset=utf-8"?
 * Absent: yes. */
bool ob_json_is_type(struct ob_str content_type);

/*
 * Append `s` as a JSON string in quotes. Control characters (those of
 * ob_utf8_is_control(), so that it is always one line) are escaped, invalid
 * UTF-8 becomes U+FFFD, absent becomes null.
 */
void ob_json_add_string(struct ob_buf *b, struct ob_str s);

#endif
