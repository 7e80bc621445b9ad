/* SPDX-License-Identifier: MIT */
/* A sentence or a paragraph for people, whatever users and databases put into it. */
#ifndef OB_CLI_OUT_PARA_H
#define OB_CLI_OUT_PARA_H

#include "base/buf.h"

#include <stdio.h>

/*
 * Print `text` as one safe paragraph with a line break behind it; lines end
 * between words before column `width`. 0: everything is one line.
 */
void ob_para_print(FILE *out, struct ob_str text, size_t width);

#endif
