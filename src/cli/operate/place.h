/* SPDX-License-Identifier: MIT */
/* A place in the log as people write it. */
#ifndef OB_CLI_OPERATE_PLACE_H
#define OB_CLI_OPERATE_PLACE_H

#include "cli/cli.h"

/* "beginning", "end", an RFC 3339 time, or a number of the log; false for all else. */
bool ob_place_parse(const char *text, struct ob_place *ret_place);
/* "the beginning", "the end", "2026-05-01T00:00:00.000000Z", "number 1042". */
void ob_place_text(const struct ob_place *place, struct ob_buf *out);

#endif
