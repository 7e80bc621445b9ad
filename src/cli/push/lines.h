/* SPDX-License-Identifier: MIT */
/* Many messages from a stream of lines, in one transaction and in bounded memory. */
#ifndef OB_CLI_PUSH_LINES_H
#define OB_CLI_PUSH_LINES_H

#include "operate/targets.h"
#include "store/store.h"

/*
 * Read NDJSON from `fd` until its end and store all of it, or nothing. `name`
 * stands for the stream in messages. Ids (struct ob_uuid, 16 bytes each) are
 * appended to `ids` when it is not NULL. Prints what is wrong and returns an
 * exit code; *ret_count is written only when it is OB_EXIT_OK.
 */
int ob_push_lines(struct ob_store *store, int fd, const char *name, struct ob_buf *ids,
		  struct ob_targets *targets, uint64_t *ret_count);

#endif
