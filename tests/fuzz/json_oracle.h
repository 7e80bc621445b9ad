/* SPDX-License-Identifier: MIT */
/*
 * jansson as a second opinion on our JSON validator. Where jansson keeps a
 * document in memory it has limits of its own, and there it has no opinion: numbers
 * out of range, NUL in a key, and more nesting than it allows itself. Ours allows
 * less nesting than jansson, which is the one difference the other way. And jansson
 * swallows a NUL byte behind a number ("0\0" is 0 to it), where it may not stand
 * any more than elsewhere.
 */
#ifndef OB_TESTS_JSON_ORACLE_H
#define OB_TESTS_JSON_ORACLE_H

#include "base/json.h"

#include <jansson.h>
#include <string.h>

/* Do the two agree about `text`? */
static inline bool json_oracle_agrees(struct ob_str text)
{
	struct ob_json_fault fault = { 0 };
	json_error_t error;

	bool ours = ob_json_valid(text, &fault);
	if (text.n && memchr(text.p, '\0', text.n))
		return !ours;
	json_t *doc = json_loadb(text.p, text.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	bool theirs = doc != NULL;

	json_decref(doc);
	if (ours == theirs)
		return true;
	if (theirs)
		return strcmp(fault.what, "nested too deeply") == 0;
	switch ((int)json_error_code(&error)) {
	case json_error_numeric_overflow:
	case json_error_null_byte_in_key:
	case json_error_stack_overflow:
		return true;
	default:
		return false;
	}
}

#endif
