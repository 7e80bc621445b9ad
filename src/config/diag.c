/* SPDX-License-Identifier: MIT */
/* Collecting and printing faults. */
#include "config/diag.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct ob_diag {
	struct ob_yaml_pos at;
	size_t number; /* faults of one place stay in the order they were found */
	const char *text;
};

enum { ARENA_MAX = 2 << 20 };

void ob_diags_init(struct ob_diags *diags)
{
	*diags = (struct ob_diags){ .arena = OB_ARENA_INIT(ARENA_MAX) };
}

void ob_diags_done(struct ob_diags *diags)
{
	free(diags->items);
	ob_arena_done(&diags->arena);
	*diags = (struct ob_diags){ 0 };
}

static bool make_room(struct ob_diags *diags)
{
	if (diags->items)
		return true;
	diags->items = calloc(OB_DIAGS_KEPT, sizeof(*diags->items));
	return diags->items != NULL;
}

void ob_diags_add(struct ob_diags *diags, struct ob_yaml_pos at, const char *fmt, ...)
{
	va_list ap;

	diags->count++;
	if (diags->kept == OB_DIAGS_KEPT)
		return;
	va_start(ap, fmt);
	/* clang 14 loses sight of va_start. NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
	(void)vsnprintf(diags->text, sizeof(diags->text), fmt, ap);
	va_end(ap);
	const char *copy = make_room(diags) ? ob_arena_strdup(&diags->arena, diags->text) : NULL;
	if (!copy) {
		diags->failed = true;
		return;
	}
	diags->items[diags->kept] = (struct ob_diag){ at, diags->kept, copy };
	diags->kept++;
}

static int by_place(const void *pa, const void *pb)
{
	const struct ob_diag *a = pa, *b = pb;

	if (a->at.line != b->at.line)
		return a->at.line < b->at.line ? -1 : 1;
	if (a->at.col != b->at.col)
		return a->at.col < b->at.col ? -1 : 1;
	return a->number < b->number ? -1 : 1;
}

void ob_diags_print(struct ob_diags *diags, const char *name, struct ob_buf *out)
{
	size_t shown = diags->kept < OB_DIAGS_SHOWN ? diags->kept : OB_DIAGS_SHOWN;

	if (diags->kept)
		qsort(diags->items, diags->kept, sizeof(*diags->items), by_place);
	for (size_t i = 0; i < shown; i++) {
		const struct ob_diag *d = &diags->items[i];

		ob_buf_adds(out, name);
		if (d->at.line)
			ob_buf_addf(out, ":%u:%u", d->at.line, d->at.col);
		ob_buf_adds(out, ": ");
		/* It quotes the file: no control character may reach a terminal. */
		ob_utf8_sanitize(out, ob_str(d->text), sizeof(diags->text));
		ob_buf_addc(out, '\n');
	}
	if (diags->count > shown)
		ob_buf_addf(out, "%s: and %zu more\n", name, diags->count - shown);
}
