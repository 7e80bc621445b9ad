/* SPDX-License-Identifier: MIT */
/* Public structs of programs that were built with another version of the headers. */
#ifndef OB_BASE_GROW_H
#define OB_BASE_GROW_H

#include "base/err.h"

#include <stdalign.h>

/* The size that a struct had when `member` was its last one. */
#define OB_GROW_SIZE(type, member) \
	((offsetof(type, member) + sizeof(((type *)0)->member) + alignof(type) - 1) / \
	 alignof(type) * alignof(type))

/* One struct: `first` is its size in the first header, `now` its size in this one. */
struct ob_grow {
	const char *name;
	size_t first, now;
};

extern const struct ob_grow ob_grow_message, ob_grow_options;

/* Is `size` a size that the struct had in some version up to this one? OUTBOX_EINVAL if not. */
int ob_grow_check(const struct ob_grow *grow, size_t size, struct ob_err *err);

/*
 * Copy a struct of a checked size into one of ours: members that the program did not know are zero,
 * which is their default.
 */
void ob_grow_copy(const struct ob_grow *grow, const void *from, size_t size, void *ret);

/*
 * A function under the name that programs call which were built against the first header, before
 * sizes were passed. The name itself is an inline function in the header.
 */
#define OB_FIRST_ABI(name) __asm__(name)

#endif
