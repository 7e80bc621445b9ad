/* SPDX-License-Identifier: MIT */
/* Progress belongs to a reader: every command that asks for states first finds out whose. */
#include "operate/readers.h"

#include <assert.h>
#include <stdio.h>

enum { ARENA_MAX = 64 << 20, NAMES_BYTES = 1000, SUGGEST_MAX = 64 };

int ob_readers_load(struct ob_readers *readers, struct ob_store *store, struct ob_err *err)
{
	*readers = (struct ob_readers){ .arena = OB_ARENA_INIT(ARENA_MAX) };
	return ob_store_readers(store, &readers->arena, &readers->list, &readers->count, err);
}

void ob_readers_done(struct ob_readers *readers)
{
	ob_arena_done(&readers->arena);
}

const char *ob_readers_text(struct ob_readers *readers, struct ob_str name)
{
	struct ob_str copy;

	return ob_arena_copy(&readers->arena, name, &copy) ? copy.p : NULL;
}

const struct ob_reader *ob_readers_find(const struct ob_readers *readers, const char *name)
{
	for (size_t i = 0; i < readers->count; i++) {
		if (ob_str_eq(readers->list[i].name, ob_str(name)))
			return &readers->list[i];
	}
	return NULL;
}

/* "default, mail": what runs for a moment only is not offered. */
static void add_names(const struct ob_readers *readers, struct ob_buf *out)
{
	size_t shown = 0;

	for (size_t i = 0; i < readers->count; i++) {
		if (readers->list[i].temporary)
			continue;
		if (shown++)
			ob_buf_adds(out, ", ");
		ob_buf_add(out, readers->list[i].name);
	}
}

static int none_yet(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOTFOUND, OB_ERR_FATAL,
			  "no reader yet: 'outbox work' makes one when a relay first starts");
}

int ob_readers_unknown(const struct ob_readers *readers, const char *name, struct ob_err *err)
{
	struct ob_buf names = OB_BUF_INIT(NAMES_BYTES);
	const char *known[SUGGEST_MAX];
	char texts[SUGGEST_MAX][64];
	size_t count = 0;
	int r;

	for (size_t i = 0; i < readers->count && count < SUGGEST_MAX; i++) {
		(void)snprintf(texts[count], sizeof(texts[count]), "%.*s",
			       (int)readers->list[i].name.n, readers->list[i].name.p);
		known[count] = texts[count];
		count++;
	}
	add_names(readers, &names);
	const char *near = ob_suggest(name, known, count);
	if (near)
		r = ob_err_set(err, OUTBOX_ENOTFOUND, OB_ERR_FATAL,
			       "no reader '%s'; did you mean '%s'?", name, near);
	else if (names.len)
		r = ob_err_set(err, OUTBOX_ENOTFOUND, OB_ERR_FATAL, "no reader '%s'; there is %s",
			       name, ob_buf_str(&names));
	else
		r = none_yet(err);
	ob_buf_done(&names);
	return r;
}

int ob_readers_choose(const struct ob_readers *readers, const char *name,
		      const struct ob_reader **ret_reader, struct ob_err *err)
{
	const struct ob_reader *only = NULL;
	struct ob_buf names = OB_BUF_INIT(NAMES_BYTES);
	size_t count = 0;

	if (name) {
		only = ob_readers_find(readers, name);
		if (!only)
			return ob_readers_unknown(readers, name, err);
		*ret_reader = only;
		return 0;
	}
	for (size_t i = 0; i < readers->count; i++) {
		if (readers->list[i].temporary)
			continue;
		only = &readers->list[i];
		count++;
	}
	if (count == 0)
		return none_yet(err);
	if (count == 1) {
		*ret_reader = only;
		return 0;
	}
	add_names(readers, &names);
	int r = ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
			   "several readers: %s; choose one with --reader", ob_buf_str(&names));
	ob_buf_done(&names);
	return r;
}

static bool has_lasting(const struct ob_readers *readers)
{
	for (size_t i = 0; i < readers->count; i++) {
		if (!readers->list[i].temporary)
			return true;
	}
	return false;
}

int ob_readers_name(struct ob_readers *readers, struct ob_store *store, const char *wanted,
		    bool may_lack, const char **ret_name, struct ob_err *err)
{
	const struct ob_reader *reader = NULL;
	const char *name;
	int r = ob_readers_load(readers, store, err);

	if (r == 0 && may_lack && !wanted && !has_lasting(readers)) {
		*ret_name = NULL;
		return 0;
	}
	if (r == 0)
		r = ob_readers_choose(readers, wanted, &reader, err);
	if (r < 0)
		return r;
	assert(reader); /* choose has found one, or said why not */
	name = ob_readers_text(readers, reader->name);
	if (!name)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	*ret_name = name;
	return 0;
}
