/* SPDX-License-Identifier: MIT */
/* Reading a file whole. The kind is asked of the open file, so nothing can be swapped in between.
 */
#include "base/file.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int refuse(struct ob_err *err, const char *why)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "%s", why);
}

static int too_large(struct ob_err *err, size_t max)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "is larger than %zu KB", max / 1024);
}

static int read_all(int fd, size_t max, struct ob_buf *out, struct ob_err *err)
{
	size_t total = 0;
	char piece[8192];

	for (;;) {
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ob_err_errno(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "cannot be read");
		if (n == 0)
			break;
		total += (size_t)n;
		if (total > max)
			return too_large(err, max);
		ob_buf_add(out, (struct ob_str){ piece, (size_t)n });
	}
	if (out->failed)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "reading a file");
	return 0;
}

int ob_file_read(const char *path, size_t max, struct ob_buf *out, struct ob_err *err)
{
	/* O_NONBLOCK: opening a FIFO would wait for its writer. */
	OB_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return ob_err_errno(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "cannot be read");
	if (S_ISDIR(st.st_mode))
		return refuse(err, "is a directory, not a file");
	if (!S_ISREG(st.st_mode))
		return refuse(err, "is not a regular file");
	if (st.st_size > 0 && (uintmax_t)st.st_size > max)
		return too_large(err, max);
	return read_all(fd, max, out, err);
}
