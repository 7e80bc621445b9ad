/* SPDX-License-Identifier: MIT */
/* Patterns of configuration rules. */
#ifndef OB_BASE_GLOB_H
#define OB_BASE_GLOB_H

#include "base/buf.h"

/* Does the whole text match? '*' stands for any run of bytes, all else for itself. */
bool ob_glob_match(struct ob_str pattern, struct ob_str text);

#endif
