/* SPDX-License-Identifier: MIT */
/* A chain of chunks, filled front to back. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>

struct ob_arena_chunk {
	struct ob_arena_chunk *next;
	size_t size, used;
	alignas(max_align_t) char data[];
};

enum { FIRST_CHUNK = 8192, LARGEST_STEP = 128 << 10 };

static struct ob_arena_chunk *chunk_new(struct ob_arena *arena, size_t need)
{
	size_t size = arena->held < FIRST_CHUNK ? FIRST_CHUNK : arena->held;

	if (size > LARGEST_STEP)
		size = LARGEST_STEP;
	if (size < need)
		size = need;
	if (size > arena->max - arena->held)
		size = need;
	if (size > arena->max - arena->held)
		return NULL;
	struct ob_arena_chunk *chunk = malloc(sizeof(*chunk) + size);
	if (!chunk)
		return NULL;
	chunk->next = NULL;
	chunk->size = size;
	chunk->used = 0;
	arena->held += size;
	return chunk;
}

/* The chunk with room for `need` bytes: this one, a kept one, or a new one. */
static struct ob_arena_chunk *chunk_for(struct ob_arena *arena, size_t need)
{
	struct ob_arena_chunk *last = arena->chunk;

	while (last && last->size - last->used < need && last->next) {
		last = last->next;
		last->used = 0;
	}
	if (last && last->size - last->used >= need)
		return last;

	struct ob_arena_chunk *chunk = chunk_new(arena, need);
	if (!chunk)
		return NULL;
	if (last)
		last->next = chunk;
	else
		arena->head = chunk;
	return chunk;
}

void *ob_arena_alloc(struct ob_arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);

	if (size > SIZE_MAX - align)
		return NULL;
	size_t need = (size + align - 1) / align * align;
	if (need == 0)
		need = align;
	struct ob_arena_chunk *chunk = chunk_for(arena, need);
	if (!chunk)
		return NULL;

	void *piece = chunk->data + chunk->used;
	chunk->used += need;
	arena->chunk = chunk;
	arena->used += need;
	memset(piece, 0, need);
	return piece;
}

bool ob_arena_copy(struct ob_arena *arena, struct ob_str from, struct ob_str *ret)
{
	if (!from.p) {
		*ret = OB_STR_NULL;
		return true;
	}
	char *copy = ob_arena_alloc(arena, from.n + 1);
	if (!copy)
		return false;
	memcpy(copy, from.p, from.n);
	*ret = (struct ob_str){ copy, from.n };
	return true;
}

char *ob_arena_strdup(struct ob_arena *arena, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = ob_arena_alloc(arena, size);

	return copy ? memcpy(copy, text, size) : NULL;
}

void ob_arena_reset(struct ob_arena *arena, size_t keep)
{
	size_t held = 0;
	struct ob_arena_chunk **link = &arena->head;

	while (*link) {
		struct ob_arena_chunk *chunk = *link;

		if (held + chunk->size > keep) {
			*link = chunk->next;
			free(chunk);
			continue;
		}
		held += chunk->size;
		chunk->used = 0;
		link = &chunk->next;
	}
	arena->chunk = arena->head;
	arena->used = 0;
	arena->held = held;
}

void ob_arena_done(struct ob_arena *arena)
{
	ob_arena_reset(arena, 0);
	*arena = OB_ARENA_INIT(arena->max);
}
