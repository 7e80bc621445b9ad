/* SPDX-License-Identifier: MIT */
/* Which sizes of a public struct are known, and reading an older one. */
#include "base/grow.h"

#include <string.h>

/*
 * The members named here were the last ones in the first header. Do not change them when you append
 * a member: programs that were built then pass these sizes.
 */
const struct ob_grow ob_grow_message = {
	.name = "struct outbox_message",
	.first = OB_GROW_SIZE(struct outbox_message, flags),
	.now = sizeof(struct outbox_message),
};
const struct ob_grow ob_grow_options = {
	.name = "struct outbox_options",
	.first = OB_GROW_SIZE(struct outbox_options, flags),
	.now = sizeof(struct outbox_options),
};

/* Every call writes an error into memory that the program sized, so its size is for ever. */
_Static_assert(sizeof(struct outbox_error) == 2 * sizeof(size_t) + 16 + 256,
	       "struct outbox_error keeps its size: take room from the end of message");

int ob_grow_check(const struct ob_grow *grow, size_t size, struct ob_err *err)
{
	if (size > grow->now)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "%s has %zu bytes in the program and %zu in the library: the "
				  "program was built with a newer outbox than the %s that is "
				  "loaded; install the newer library",
				  grow->name, size, grow->now, OUTBOX_VERSION);
	if (size < grow->first)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "%zu bytes are less than %s ever had: pass its sizeof", size,
				  grow->name);
	return 0;
}

void ob_grow_copy(const struct ob_grow *grow, const void *from, size_t size, void *ret)
{
	memset(ret, 0, grow->now);
	memcpy(ret, from, size);
}
