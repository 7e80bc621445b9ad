/* SPDX-License-Identifier: MIT */
/* Snapshots of several partitions in the parameters of one statement. */
#include "store/postgres/seen.h"

#include <stdlib.h>

enum { TEXT_MAX = 256 << 20 };

bool pg_seen_begin(struct pg_seen *to, size_t most)
{
	*to = (struct pg_seen){ .text = OB_BUF_INIT(TEXT_MAX) };
	to->list = calloc(most + 1, sizeof(struct ob_seen *));
	ob_buf_addc(&to->text, '{');
	return to->list != NULL;
}

int64_t pg_seen_place(struct pg_seen *to, const struct ob_seen *seen)
{
	if (!seen)
		return 0;
	for (size_t i = to->count; i > 0; i--) {
		if (ob_seen_equal(to->list[i - 1], seen))
			return (int64_t)i;
	}
	ob_buf_addf(&to->text, "%s\"%s\"", to->count ? "," : "", seen->text);
	to->list[to->count++] = seen;
	return (int64_t)to->count;
}

const char *pg_seen_end(struct pg_seen *to)
{
	ob_buf_addc(&to->text, '}');
	return to->text.failed ? NULL : ob_buf_str(&to->text);
}

void pg_seen_done(struct pg_seen *seen)
{
	ob_buf_done(&seen->text);
	free((void *)seen->list);
}
