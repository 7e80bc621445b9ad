/* SPDX-License-Identifier: MIT */
/* Progress of a reader in a partition, and the shared text in it. */
#include "log/progress.h"

#include <stdlib.h>

struct ob_seen *ob_seen_new(struct ob_str text)
{
	if (text.n >= UINT32_MAX)
		return NULL;
	struct ob_seen *seen = malloc(sizeof(*seen) + text.n + 1);

	if (!seen)
		return NULL;
	seen->refs = 1;
	seen->size = (uint32_t)text.n;
	if (text.n > 0)
		memcpy(seen->text, text.p, text.n);
	seen->text[text.n] = '\0';
	return seen;
}

struct ob_seen *ob_seen_ref(struct ob_seen *seen)
{
	if (seen)
		seen->refs++;
	return seen;
}

void ob_seen_unref(struct ob_seen *seen)
{
	if (seen && --seen->refs == 0)
		free(seen);
}

bool ob_seen_equal(const struct ob_seen *a, const struct ob_seen *b)
{
	if (a == b || !a || !b)
		return a == b;
	return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

void ob_progress_set(struct ob_progress *to, const struct ob_progress *from)
{
	/* The new references first: `to` and `from` may share, or be, the same. */
	struct ob_progress old = *to;

	*to = *from;
	(void)ob_seen_ref(to->seen);
	(void)ob_seen_ref(to->late_seen);
	ob_progress_done(&old);
}

void ob_progress_done(struct ob_progress *progress)
{
	ob_seen_unref(progress->seen);
	ob_seen_unref(progress->late_seen);
	*progress = (struct ob_progress){ 0 };
}

bool ob_progress_equal(const struct ob_progress *a, const struct ob_progress *b)
{
	return a->pos == b->pos && ob_seen_equal(a->seen, b->seen) &&
	       ob_seen_equal(a->late_seen, b->late_seen) &&
	       (!a->late_seen || a->late_pos == b->late_pos);
}
