/* SPDX-License-Identifier: MIT */
/* Small files, read whole and with care. */
#ifndef OB_BASE_FILE_H
#define OB_BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Append the content of a regular file of at most `max` bytes. A directory, a
 * FIFO, a device, a larger or an unreadable file is OUTBOX_ECONFIG; the message says
 * why and leaves the path to the caller. Never waits for a writer.
 */
int ob_file_read(const char *path, size_t max, struct ob_buf *out, struct ob_err *err);

#endif
