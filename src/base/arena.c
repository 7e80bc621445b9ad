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

static size_t aligned(size_t at, size_t align)
{
	return (at + align - 1) / align * align;
}

static bool has_room(const struct ob_arena_chunk *chunk, size_t need, size_t align)
{
	size_t at = aligned(chunk->used, align);

	return at <= chunk->size && chunk->size - at >= need;
}

/* The chunk with room for `need` bytes: this one, a kept one, or a new one. */
static struct ob_arena_chunk *chunk_for(struct ob_arena *arena, size_t need, size_t align)
{
	struct ob_arena_chunk *last = arena->chunk;

	while (last && !has_room(last, need, align) && last->next) {
		last = last->next;
		last->used = 0;
	}
	if (last && has_room(last, need, align))
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

static void *take(struct ob_arena *arena, size_t size, size_t align)
{
	struct ob_arena_chunk *chunk = chunk_for(arena, size, align);

	if (!chunk)
		return NULL;
	size_t at = aligned(chunk->used, align);

	arena->used += at + size - chunk->used;
	chunk->used = at + size;
	arena->chunk = chunk;
	return chunk->data + at;
}

void *ob_arena_alloc(struct ob_arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);

	if (size > SIZE_MAX - align)
		return NULL;
	size_t need = size == 0 ? align : aligned(size, align);
	void *piece = take(arena, need, align);

	return piece ? memset(piece, 0, need) : NULL;
}

bool ob_arena_copy(struct ob_arena *arena, struct ob_str from, struct ob_str *ret)
{
	if (!from.p) {
		*ret = OB_STR_NULL;
		return true;
	}
	char *copy = from.n < SIZE_MAX ? take(arena, from.n + 1, 1) : NULL;
	if (!copy)
		return false;
	memcpy(copy, from.p, from.n);
	copy[from.n] = '\0';
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
