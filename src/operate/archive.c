/* SPDX-License-Identifier: MIT */
/* Messages as lines of JSON in a gzip file. */
#include "operate/archive.h"

#include "base/cleanup.h"
#include "operate/message.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

enum { OUT_BYTES = 64 * 1024, GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8, CHECK_BYTES = 64 * 1024 };

struct ob_archive {
	char *path;
	int fd;
	bool named; /* the directory has it for good */
	bool open;  /* a member was begun */
	z_stream z;
	unsigned char out[OUT_BYTES];
	struct ob_jout line;
};

static int fails(const struct ob_archive *a, const char *doing, struct ob_err *err)
{
	return ob_err_errno(err, OUTBOX_EINVAL, OB_ERR_FATAL, "%s %s", doing, a->path);
}

/* ---- opening --------------------------------------------------------- */

/* Does it end where a member ends? */
static int check_whole(const struct ob_archive *a, struct ob_err *err)
{
	OB_AUTOFREE char *piece = malloc(CHECK_BYTES);
	gzFile file = gzopen(a->path, "rb");
	int n = 1, code = Z_OK;

	if (!piece || !file) {
		if (file)
			(void)gzclose(file);
		return fails(a, "reading", err);
	}
	while (n > 0)
		n = gzread(file, piece, CHECK_BYTES);
	(void)gzerror(file, &code);
	bool plain = gzdirect(file) && lseek(a->fd, 0, SEEK_END) > 0;
	int closed = gzclose(file);
	if (plain)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "%s is no gzip file: name another", a->path);
	if (n < 0 || closed != Z_OK || code != Z_OK)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "%s ends in the middle, as after a crash: keep it, and name "
				  "another file; what is missing in it is still in the log",
				  a->path);
	return 0;
}

static int open_file(struct ob_archive *a, bool append, struct ob_err *err)
{
	int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW;

	a->fd = open(a->path, flags | (append ? 0 : O_EXCL), 0600);
	if (a->fd >= 0)
		return append ? check_whole(a, err) : 0;
	if (errno == EEXIST)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "%s exists: name another file, or add to it with --append",
				  a->path);
	return fails(a, "opening", err);
}

int ob_archive_open(const char *path, bool append, struct ob_archive **ret_archive,
		    struct ob_err *err)
{
	struct ob_archive *a = calloc(1, sizeof(*a));

	if (!a)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	a->fd = -1;
	a->line = OB_JOUT_INIT;
	a->path = strdup(path);
	int r = a->path ? open_file(a, append, err)
			: ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	if (r < 0) {
		ob_archive_free(a);
		return r;
	}
	*ret_archive = a;
	return 0;
}

void ob_archive_free(struct ob_archive *a)
{
	if (!a)
		return;
	if (a->open)
		(void)deflateEnd(&a->z);
	if (a->fd >= 0)
		(void)close(a->fd);
	ob_jout_done(&a->line);
	free(a->path);
	free(a);
}

/* ---- writing --------------------------------------------------------- */

static int write_all(struct ob_archive *a, const unsigned char *bytes, size_t n, struct ob_err *err)
{
	while (n > 0) {
		ssize_t written = write(a->fd, bytes, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return fails(a, "writing", err);
		bytes += written;
		n -= (size_t)written;
	}
	return 0;
}

static int compress_bytes(struct ob_archive *a, struct ob_str bytes, int flush, struct ob_err *err)
{
	int code;

	/* The library only reads it. NOLINTNEXTLINE(performance-no-int-to-ptr) */
	a->z.next_in = (unsigned char *)(uintptr_t)bytes.p;
	a->z.avail_in = (unsigned)bytes.n;
	do {
		a->z.next_out = a->out;
		a->z.avail_out = OUT_BYTES;
		code = deflate(&a->z, flush);
		int r = write_all(a, a->out, OUT_BYTES - a->z.avail_out, err);

		if (r < 0)
			return r;
	} while (a->z.avail_out == 0 || (flush == Z_FINISH && code == Z_OK));
	return 0;
}

static int begin_member(struct ob_archive *a, struct ob_err *err)
{
	a->z = (z_stream){ 0 };
	if (deflateInit2(&a->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "archiving: out of memory");
	a->open = true;
	return 0;
}

int ob_archive_add(struct ob_archive *a, const struct ob_message *message, struct ob_err *err)
{
	int r = a->open ? 0 : begin_member(a, err);

	if (r < 0)
		return r;
	ob_buf_clear(&a->line.b);
	a->line.comma = false;
	ob_jout_begin(&a->line, NULL, '{');
	ob_message_json(&a->line, message);
	ob_jout_end(&a->line, '}');
	ob_buf_addc(&a->line.b, '\n');
	if (a->line.b.failed)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "archiving: out of memory");
	return compress_bytes(a, ob_buf_view(&a->line.b), Z_NO_FLUSH, err);
}

/* A new file is found again after a crash only once its directory is on the disk. */
static int sync_name(struct ob_archive *a, struct ob_err *err)
{
	OB_AUTOFREE char *copy = strdup(a->path);
	int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int r = fd >= 0 && fsync(fd) == 0 ? 0 : fails(a, "syncing the directory of", err);

	if (fd >= 0)
		(void)close(fd);
	a->named = r == 0;
	return r;
}

int ob_archive_sync(struct ob_archive *a, struct ob_err *err)
{
	int r = a->open ? compress_bytes(a, OB_STR(""), Z_FINISH, err) : 0;

	if (a->open)
		(void)deflateEnd(&a->z);
	a->open = false;
	if (r == 0 && fsync(a->fd) < 0)
		r = fails(a, "syncing", err);
	return r < 0 || a->named ? r : sync_name(a, err);
}
