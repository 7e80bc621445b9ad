/* SPDX-License-Identifier: MIT */
/* Matching with one star to go back to: a later star makes the earlier ones final. */
#include "base/glob.h"

bool ob_glob_match(struct ob_str pattern, struct ob_str text)
{
	size_t p = 0, t = 0;
	size_t star = SIZE_MAX, from = 0; /* behind the last star, and where its rest began */

	while (t < text.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = ++p;
			from = t;
		} else if (p < pattern.n && pattern.p[p] == text.p[t]) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star;
			t = ++from;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}
