/* SPDX-License-Identifier: MIT */
/* The readers of a log, and which one a command is about. */
#ifndef OB_OPERATE_READERS_H
#define OB_OPERATE_READERS_H

#include "store/store.h"

struct ob_readers {
	struct ob_arena arena;
	struct ob_reader *list; /* by name */
	size_t count;
};

/* Read them all. The caller ends *readers in every case. */
int ob_readers_load(struct ob_readers *readers, struct ob_store *store, struct ob_err *err);
void ob_readers_done(struct ob_readers *readers);

/* The reader of that name, or NULL. */
const struct ob_reader *ob_readers_find(const struct ob_readers *readers, const char *name);
/*
 * The reader of that name; `name` NULL: the only one that is no replay. OUTBOX_ENOTFOUND or
 * OUTBOX_EINVAL (several) name those there are.
 */
int ob_readers_choose(const struct ob_readers *readers, const char *name,
		      const struct ob_reader **ret_reader, struct ob_err *err);
/* OUTBOX_ENOTFOUND: there is no such reader, and which there are. */
int ob_readers_unknown(const struct ob_readers *readers, const char *name, struct ob_err *err);

/*
 * Load and choose, and copy the name with a NUL behind it into `readers`. With `may_lack`, a log
 * without any reader, and no name given, is no error: *ret_name is NULL then.
 */
int ob_readers_name(struct ob_readers *readers, struct ob_store *store, const char *wanted,
		    bool may_lack, const char **ret_name, struct ob_err *err);

/* A copy of a name with a NUL behind it, in the arena of `readers`; NULL when out of memory. */
const char *ob_readers_text(struct ob_readers *readers, struct ob_str name);

#endif
