/* SPDX-License-Identifier: MIT */
#include "operate/cause.h"

#include "base/uuid.h"

#include <ctype.h>

enum { HEX_MIN = 8 };

/* How many bytes of a number or an id begin here; 0: none does. */
static size_t number_length(struct ob_str text)
{
	struct ob_uuid id;
	size_t n = 0;
	bool digit = false;

	if (text.n >= OB_UUID_TEXT && ob_uuid_parse((struct ob_str){ text.p, OB_UUID_TEXT }, &id))
		return OB_UUID_TEXT;
	while (n < text.n && isxdigit((unsigned char)text.p[n])) {
		digit = digit || isdigit((unsigned char)text.p[n]);
		n++;
	}
	/* A word that goes on with another letter is a word. */
	if (digit && n >= HEX_MIN && (n == text.n || !isalnum((unsigned char)text.p[n])))
		return n;
	for (n = 0; n < text.n && isdigit((unsigned char)text.p[n]);)
		n++;
	return n;
}

void ob_cause_of(struct ob_str error, struct ob_buf *out)
{
	bool in_word = false;

	while (error.n) {
		size_t n = 0;

		/* An id begins a word; digits count wherever they stand. */
		if (!in_word || isdigit((unsigned char)error.p[0]))
			n = number_length(error);
		if (n)
			ob_buf_addc(out, '#');
		else
			ob_buf_addc(out, error.p[0]);
		n = n ? n : 1;
		in_word = isalnum((unsigned char)error.p[n - 1]);
		error.p += n;
		error.n -= n;
	}
}
