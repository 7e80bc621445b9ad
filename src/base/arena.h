/* SPDX-License-Identifier: MIT */
/*
 * Memory that dies together. An arena hands out pieces and frees them all at
 * once; a reset keeps the memory, so a loop that resets allocates only once.
 */
#ifndef OB_BASE_ARENA_H
#define OB_BASE_ARENA_H

#include "base/buf.h"

struct ob_arena_chunk;

struct ob_arena {
	struct ob_arena_chunk *head;  /* first chunk, the oldest */
	struct ob_arena_chunk *chunk; /* the one being filled */
	size_t used, held, max;       /* bytes handed out, allocated, and allowed */
};

#define OB_ARENA_INIT(limit) ((struct ob_arena){ .max = (limit) })

/* Zeroed, aligned for any type; NULL when memory or `max` is exhausted. */
void *ob_arena_alloc(struct ob_arena *arena, size_t size);
/* A copy with a NUL behind it; absent stays absent. False when out of memory. */
bool ob_arena_copy(struct ob_arena *arena, struct ob_str from, struct ob_str *ret);
/* NUL-terminated copy; NULL when out of memory. */
char *ob_arena_strdup(struct ob_arena *arena, const char *text);
/* Forget everything, keep the memory (at most `keep` bytes of it). */
void ob_arena_reset(struct ob_arena *arena, size_t keep);
void ob_arena_done(struct ob_arena *arena);

#endif
