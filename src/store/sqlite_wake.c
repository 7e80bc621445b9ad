/* SPDX-License-Identifier: MIT */
/*
 * Noticing the commits of other connections: inotify on the -wal file says when
 * to look, PRAGMA data_version says whether it was someone else. Without
 * inotify the second alone does, by polling.
 */
#include "store/sqlite.h"

#include <limits.h>
#include <sys/inotify.h>

enum { WATCH_PATH_MAX = 4096 };

static int add_watch(struct lite_store *s, const char *path, uint32_t mask)
{
	return inotify_add_watch(s->watch_fd, path, mask);
}

static void drop_watch(struct lite_store *s, int *watch)
{
	if (*watch >= 0)
		(void)inotify_rm_watch(s->watch_fd, *watch);
	*watch = -1;
}

void lite_watch(struct lite_store *s)
{
	char path[WATCH_PATH_MAX];

	if (!s->watching || s->watch_fd < 0 || !s->db)
		return;
	drop_watch(s, &s->watch_wal);
	drop_watch(s, &s->watch_dir);
	const char *wal = sqlite3_filename_wal(sqlite3_db_filename(s->db, "main"));
	s->watch_wal = add_watch(s, wal, IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF);
	if (s->watch_wal >= 0)
		return;
	/* Not made yet: wait for its name to appear. */
	(void)snprintf(path, sizeof(path), "%s", wal);
	char *slash = strrchr(path, '/');
	if (slash)
		slash[slash == path] = '\0';
	s->watch_dir = add_watch(s, slash ? path : ".", IN_CREATE | IN_MOVED_TO);
}

int lite_wake_fd(struct ob_store *store)
{
	struct lite_store *s = (struct lite_store *)store;

	if (!s->watching) {
		s->watching = true;
		s->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		lite_watch(s);
	}
	return s->watch_fd;
}

/* Empty the fd; true when the watch itself must be renewed. */
static bool drain(const struct lite_store *s)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool renew = false;
	ssize_t n;

	while (s->watch_fd >= 0 && (n = read(s->watch_fd, buf, sizeof(buf))) > 0) {
		const struct inotify_event *event;

		for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(*event) + event->len)) {
			event = (const struct inotify_event *)(const void *)(buf + at);
			if (event->mask & (IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF))
				renew = true;
		}
	}
	return renew;
}

int lite_data_version(struct lite_store *s, int64_t *ret_version, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = lite_prepare(s, LITE_data_version, &stmt, err);

	if (r == 0)
		r = lite_step(s, LITE_data_version, err);
	if (r < 0)
		return r;
	*ret_version = sqlite3_column_int64(stmt, 0);
	lite_reset(s, LITE_data_version);
	return 0;
}

int lite_wake_check(struct ob_store *store, bool *ret_news, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int64_t version;

	/* First empty the fd, then look: what is written in between makes it readable again. */
	bool renew = drain(s);
	int r = lite_ready(s, false, err);
	if (r < 0)
		return r;
	if (renew)
		lite_watch(s);
	r = lite_data_version(s, &version, err);
	if (r < 0)
		return r;
	*ret_news = version != s->data_version;
	s->data_version = version;
	return 0;
}
