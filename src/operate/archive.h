/* SPDX-License-Identifier: MIT */
/*
 * An archive of messages that leave the log: a JSON object a line, with the keys of `outbox list
 * --json`, compressed by gzip. What was synced survives a crash of the host; each sync ends a gzip
 * member, so that everything before a torn end can be read.
 */
#ifndef OB_OPERATE_ARCHIVE_H
#define OB_OPERATE_ARCHIVE_H

#include "base/err.h"
#include "base/message.h"

struct ob_archive;

/*
 * Make the file, readable by its owner alone; one that is there is refused, or, with `append`, read
 * through first: one that ends in the middle is refused, since what follows could not be read.
 * On success the caller owns *ret_archive.
 */
int ob_archive_open(const char *path, bool append, struct ob_archive **ret_archive,
		    struct ob_err *err);
int ob_archive_add(struct ob_archive *archive, const struct ob_message *message,
		   struct ob_err *err);
/* Everything that was added is on the disk, with the file's own name. */
int ob_archive_sync(struct ob_archive *archive, struct ob_err *err);
/* Closes it; NULL is allowed. What was not synced may be lost. */
void ob_archive_free(struct ob_archive *archive);

#endif
