/* SPDX-License-Identifier: MIT */
/* ${NAME} and ${file:PATH} in the values of a configuration. */
#ifndef OB_BASE_EXPAND_H
#define OB_BASE_EXPAND_H

#include "base/arena.h"
#include "base/err.h"

enum { OB_EXPAND_MAX = 64 * 1024 }; /* bytes of a value or of a file in it */

/*
 * Replace ${NAME} by the environment variable and ${file:PATH} by the file's
 * content without its last newline; $${ stands for ${ itself. What is put in is
 * not expanded again. *ret_text is the arena's, or `text` itself when there is
 * nothing to replace. A variable that is not set, a file that cannot be read,
 * NUL bytes and invalid UTF-8 are OUTBOX_ECONFIG; no message holds a value.
 */
int ob_expand(const char *text, struct ob_arena *arena, const char **ret_text, struct ob_err *err);

#endif
