/* SPDX-License-Identifier: MIT */
/*
 * Lines appended to a file (line.h says what is in them). A message is
 * confirmed only after fdatasync(), one for all lines written since the last.
 *
 * Any number of writers, threads or processes, may share a path: each write
 * happens under a lock on the file, after a look whether the path still leads
 * to it (another writer or logrotate may have moved it). A write that fails is
 * taken back by truncating to where it began, so nothing of it is stored. A last
 * line without its end (a crash in the middle of a write) is never removed: it
 * gets a line break and stands alone, and readers skip what is not JSON.
 *
 * The file is made with mode 0640, less the umask.
 */
#include "sink/sink.h"
#include "base/fault.h"
#include "sink/file/rotate.h"
#include "sink/window.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct file_sink {
	struct ob_sink base;
	char *path;
	int64_t max_size; /* 0: no rotation */
	uint32_t keep;
	bool fsync;
	bool open;
	int fd; /* counts when open */
	struct ob_window window;
};

struct fault {
	int number;
	enum ob_err_kind kind;
	const char *hint;
};

static const struct fault faults[] = {
	{ ENOENT, OB_ERR_FATAL, "create its directory, or change the sink's path" },
	{ ENOTDIR, OB_ERR_FATAL, "a part of the path is not a directory" },
	{ EISDIR, OB_ERR_FATAL, "name a file in it" },
	{ EACCES, OB_ERR_FATAL, "let this user write the file and its directory" },
	{ EPERM, OB_ERR_FATAL, "let this user write the file and its directory" },
	{ EROFS, OB_ERR_FATAL, "choose a path on a file system that can be written" },
	{ EFBIG, OB_ERR_FATAL, "raise the limit of file sizes, or set max_size" },
	{ ENOSPC, OB_ERR_DOWN, "goes on when there is room" },
	{ EDQUOT, OB_ERR_DOWN, "goes on when there is room" },
	{ EIO, OB_ERR_DOWN, NULL },
	{ ESTALE, OB_ERR_DOWN, NULL },
	{ EMFILE, OB_ERR_DOWN, NULL },
	{ ENFILE, OB_ERR_DOWN, NULL },
	{ ENOMEM, OB_ERR_DOWN, NULL },
	{ ENOLCK, OB_ERR_DOWN, NULL },
	{ EAGAIN, OB_ERR_DOWN, NULL },
	{ EINTR, OB_ERR_DOWN, NULL },
	{ ETXTBSY, OB_ERR_DOWN, NULL },
};

/* The one place that knows which failures pass by themselves. */
static int file_err(const struct file_sink *sink, const char *doing, struct ob_err *err)
{
	const struct fault *fault = NULL;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]) && !fault; i++)
		fault = faults[i].number == errno ? &faults[i] : NULL;
	const char *hint = fault && fault->hint ? fault->hint : "";
	return ob_err_errno(err, OUTBOX_ESINK, fault ? fault->kind : OB_ERR_FATAL,
			    "%s '%.200s'%s%s%s", doing, sink->path, *hint ? " (" : "", hint,
			    *hint ? ")" : "");
}

static void close_file(struct file_sink *sink)
{
	if (sink->open)
		(void)close(sink->fd); /* with it goes the lock */
	sink->open = false;
}

static int open_failed(struct file_sink *sink, const char *doing, struct ob_err *err)
{
	int r = file_err(sink, doing, err);

	close_file(sink);
	return r;
}

static int file_open(struct ob_sink *base, struct ob_err *err)
{
	/* O_NONBLOCK: a path that leads to a device must not hang us before we see it. */
	const int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	struct file_sink *sink = (struct file_sink *)base;
	struct stat st;

	if (sink->open)
		return 0;
	sink->fd = open(sink->path, flags, 0640);
	sink->open = sink->fd >= 0;
	if (!sink->open || fstat(sink->fd, &st) < 0)
		return open_failed(sink, "opening", err);
	if (!S_ISREG(st.st_mode)) {
		close_file(sink);
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_FATAL,
				  "opening '%.200s': it is not a regular file", sink->path);
	}
	/* Whoever made it: a synced file whose name is lost in a crash is lost. */
	if (sink->fsync && ob_rotate_sync_dir(sink->path) < 0)
		return open_failed(sink, "syncing the directory of", err);
	return 0;
}

static int file_send(struct ob_sink *base, const struct ob_delivery *delivery, struct ob_err *err)
{
	struct file_sink *sink = (struct file_sink *)base;

	if (!sink->open)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "'%.200s' is not open",
				  sink->path);
	return ob_window_add(&sink->window, delivery, err);
}

static bool is_current(const struct file_sink *sink, struct stat *ret_st)
{
	struct stat now;

	return fstat(sink->fd, ret_st) == 0 && stat(sink->path, &now) == 0 &&
	       now.st_ino == ret_st->st_ino && now.st_dev == ret_st->st_dev;
}

/*
 * Lock the file that the path leads to: 1, 0 when another writer did not let
 * go within timeout_ms, or an error. There is no way to wait for such a lock
 * with a deadline, so we look once a millisecond; writers hold it very shortly.
 */
static int lock_current(struct file_sink *sink, int timeout_ms, struct stat *ret_st,
			struct ob_err *err)
{
	for (int tries = 0; tries <= timeout_ms || tries < 3;) {
		int r = file_open(&sink->base, err);

		if (r < 0)
			return r;
		if (flock(sink->fd, LOCK_EX | LOCK_NB) == 0) {
			if (is_current(sink, ret_st))
				return 1;
			close_file(sink); /* moved away: everything in it is synced already */
			tries++;
		} else if (errno == EWOULDBLOCK) {
			if (tries++ >= timeout_ms)
				return 0;
			(void)poll(NULL, 0, 1);
		} else if (errno != EINTR) {
			return file_err(sink, "locking", err);
		}
	}
	/* Moved away each time: others rotate it. That is no outage, so leave it open. */
	return file_open(&sink->base, err);
}

static void unlock(const struct file_sink *sink)
{
	(void)flock(sink->fd, LOCK_UN);
}

/* Does the file end inside a line? When we cannot see it: yes, an empty line does no harm. */
static bool ends_torn(const struct file_sink *sink, int64_t size)
{
	char last = '\0';

	return size > 0 && !(pread(sink->fd, &last, 1, size - 1) == 1 && last == '\n');
}

/* 0, or -1 with errno; *ret_done counts what was written in either case. */
static int write_all(int fd, struct ob_str bytes, size_t *ret_done)
{
	size_t done = 0;
	int r = 0;

	while (done < bytes.n && r == 0) {
		ssize_t n = write(fd, bytes.p + done, bytes.n - done);

		if (n > 0) {
			done += (size_t)n;
		} else if (n == 0) {
			errno = ENOSPC; /* never a reason to spin */
			r = -1;
		} else if (errno != EINTR) {
			r = -1;
		}
	}
	*ret_done = done;
	return r;
}

/* Undo an append, unless something stands behind it that is not ours. Keeps errno. */
static void take_back(const struct file_sink *sink, int64_t start, int64_t end)
{
	int saved = errno;
	struct stat st;

	if (fstat(sink->fd, &st) == 0 && st.st_size == end && end > start)
		(void)!ftruncate(sink->fd, start);
	errno = saved;
}

/* Under the lock: append `bytes` behind `size`, or leave the file as it was. */
static int append(struct file_sink *sink, int64_t size, bool torn, struct ob_str bytes)
{
	size_t done = 0;
	int64_t start = size;

	if (torn) {
		if (write_all(sink->fd, OB_STR("\n"), &done) < 0)
			return -1;
		start++; /* stays, whatever happens: it ends a line of someone else */
	}
	int r = write_all(sink->fd, bytes, &done);
	if (r < 0)
		take_back(sink, start, start + (int64_t)done);
	return r;
}

static int sync_data(const struct file_sink *sink)
{
	if (OB_FAULT("file.before_sync")) {
		errno = EIO;
		return -1;
	}
	return fdatasync(sink->fd);
}

/*
 * After a failed sync the pages may be marked clean without being on the disk,
 * so a second sync of this descriptor proves nothing: start over with a new one.
 */
static int sync_failed(struct file_sink *sink, int64_t start, int64_t end, struct ob_err *err)
{
	int r = file_err(sink, "syncing", err);

	err->kind = OB_ERR_DOWN;
	if (flock(sink->fd, LOCK_EX | LOCK_NB) == 0)
		take_back(sink, start, end);
	close_file(sink);
	return r;
}

/* Under the lock, which ends here. 1, or an error. */
static int rotate(struct file_sink *sink, struct ob_err *err)
{
	if (ob_rotate_rename(sink->path, ob_clock_real_us(sink->base.clock)) < 0)
		return open_failed(sink, "rotating", err);
	close_file(sink);
	ob_rotate_prune(sink->path, sink->keep);
	int r = file_open(&sink->base, err); /* syncs the directory, also for the new name */
	return r < 0 ? r : 1;
}

/* How many bytes of the window go into a file of `size`; 0: rotate first. */
static size_t share(const struct file_sink *sink, int64_t size)
{
	struct ob_str rest = ob_window_rest(&sink->window);
	int64_t room = sink->max_size - size;

	if (sink->max_size == 0)
		return rest.n;
	size_t n = room > 0 ? ob_window_fit(&sink->window, (size_t)room) : 0;
	if (n == 0 && size == 0) /* larger than a whole file: it gets one of its own */
		n = (size_t)((char *)memchr(rest.p, '\n', rest.n) - rest.p) + 1;
	return n;
}

/* Write what fits into the file and sync it: 1, 0 when another holds the lock, or an error. */
static int write_share(struct file_sink *sink, int timeout_ms, struct ob_err *err)
{
	struct stat st = { 0 };
	int r = lock_current(sink, timeout_ms, &st, err);

	if (r <= 0)
		return r;
	bool torn = ends_torn(sink, st.st_size);
	int64_t start = st.st_size + torn;
	struct ob_str lines = { ob_window_rest(&sink->window).p, share(sink, start) };
	if (lines.n == 0)
		return rotate(sink, err);
	if (append(sink, st.st_size, torn, lines) < 0)
		r = file_err(sink, "writing", err);
	unlock(sink);
	if (r < 0)
		return r;
	if (sink->fsync && sync_data(sink) < 0)
		return sync_failed(sink, start, start + (int64_t)lines.n, err);
	(void)OB_FAULT("file.after_sync");
	ob_window_confirm(&sink->window, lines.n); /* only now: it is on the disk */
	return 1;
}

static int file_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
		     struct ob_err *err)
{
	struct file_sink *sink = (struct file_sink *)base;
	struct ob_window *w = &sink->window;
	int r = 1;

	while (r > 0 && ob_window_waiting(w) > 0)
		r = write_share(sink, ob_window_has_outcomes(w) ? 0 : timeout_ms, err);
	if (r < 0 && err->kind == OB_ERR_DOWN)
		ob_window_fail(w, err);
	else if (r < 0 && !ob_window_has_outcomes(w))
		return r; /* else: what is stored is stored, the error comes back next time */
	return ob_window_take(w, acks, max);
}

static void file_reset(struct ob_sink *base)
{
	ob_window_clear(&((struct file_sink *)base)->window);
}

static void file_close(struct ob_sink *base)
{
	struct file_sink *sink = (struct file_sink *)base;

	close_file(sink);
	ob_window_done(&sink->window);
}

static void file_describe(struct ob_sink *base, struct ob_buf *out)
{
	ob_buf_addf(out, "file %s", ((struct file_sink *)base)->path);
}

static const struct ob_opt file_opts[] = {
	{
		.name = "path",
		.type = OB_OPT_STR,
		.offset = offsetof(struct file_sink, path),
		.flags = OB_OPT_REQUIRED,
		.help = "The file to append to; its directory must exist.",
	},
	{
		.name = "max_size",
		.type = OB_OPT_SIZE,
		.offset = offsetof(struct file_sink, max_size),
		.dflt = "0",
		.help = "Start a new file rather than let this one grow past it; 0: never.",
	},
	{
		.name = "keep",
		.type = OB_OPT_U32,
		.offset = offsetof(struct file_sink, keep),
		.dflt = "10",
		.help = "How many files set aside by max_size are kept; 0: all of them.",
	},
	{
		.name = "fsync",
		.type = OB_OPT_BOOL,
		.offset = offsetof(struct file_sink, fsync),
		.dflt = "true",
		.help = "Confirm a message only when it is on the disk.",
	},
	OB_OPT_END,
};

const struct ob_sink_ops ob_sink_file = {
	.name = "file",
	.caps = OB_SINK_ORDERED,
	.size = sizeof(struct file_sink),
	.opts = file_opts,
	.open = file_open,
	.send = file_send,
	.poll = file_poll,
	.reset = file_reset,
	.close = file_close,
	.describe = file_describe,
};
