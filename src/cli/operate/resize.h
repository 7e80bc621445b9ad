/* SPDX-License-Identifier: MIT */
/* Changing how many partitions there are. */
#ifndef OB_CLI_OPERATE_RESIZE_H
#define OB_CLI_OPERATE_RESIZE_H

#include "cli/cli.h"

/*
 * Change the number of partitions. Running workers are asked to let go first and share again
 * afterwards; that may take wait_ms. Prints the old and the new
 * number, or who is in the way; an exit code. `reason` (may be NULL) goes to the audit.
 */
int ob_resize(const struct ob_cli *cli, const struct ob_session *session, uint32_t count,
	      int64_t wait_ms, const char *reason);

#endif
