/* SPDX-License-Identifier: MIT */
/*
 * Noticing the commits of other connections: inotify on the -wal file says when
 * to look, PRAGMA data_version says whether it was someone else. Without
 * inotify the second alone does, by polling.
 *
 * A writer touches the file first, then syncs it, and only then can its commit be seen;
 * no event tells of that. So an event without news is followed by further looks.
 */
#include "store/sqlite/wake.h"

#include "store/sqlite/stmt.h"

#include <limits.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>

/* LOOK_MAX_MS: the longest wait between two looks after an event; a sync takes less. */
enum { WATCH_PATH_MAX = 4096, LOOK_MAX_MS = 256 };

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

static bool join(const struct lite_store *s, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return fd >= 0 && epoll_ctl(s->wake_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

void lite_unwatch(struct lite_store *s)
{
	int *const fds[] = { &s->wake_fd, &s->watch_fd, &s->look_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			(void)close(*fds[i]);
		*fds[i] = -1;
	}
}

int lite_wake_fd(struct ob_store *store)
{
	struct lite_store *s = (struct lite_store *)store;

	if (!s->watching) {
		s->watching = true;
		s->wake_fd = epoll_create1(EPOLL_CLOEXEC);
		s->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		s->look_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		if (s->wake_fd < 0 || !join(s, s->watch_fd) || !join(s, s->look_fd))
			lite_unwatch(s);
		lite_watch(s);
	}
	return s->wake_fd;
}

/* What made the fd readable. */
struct stirred {
	bool renew;   /* the watch itself must be renewed */
	bool touched; /* somebody wrote to the file */
	bool due;     /* it is time for another look */
};

static struct stirred drain(const struct lite_store *s)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct stirred stirred = { false, false, false };
	uint64_t expired;
	ssize_t n;

	if (s->wake_fd < 0)
		return stirred;
	stirred.due = read(s->look_fd, &expired, sizeof(expired)) > 0;
	while ((n = read(s->watch_fd, buf, sizeof(buf))) > 0) {
		const struct inotify_event *event;

		stirred.touched = true;
		for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(*event) + event->len)) {
			event = (const struct inotify_event *)(const void *)(buf + at);
			if (event->mask & (IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF))
				stirred.renew = true;
		}
	}
	return stirred;
}

/* After an event without news look again, soon at first and less and less often. */
static void plan_look(struct lite_store *s, const struct stirred *stirred, bool news)
{
	struct itimerspec when = { { 0, 0 }, { 0, 0 } };

	if (s->wake_fd < 0 || (!news && !stirred->touched && !stirred->due))
		return;
	s->look_ms = news ? 0 : stirred->touched ? 1 : s->look_ms * 2;
	if (s->look_ms > LOOK_MAX_MS)
		s->look_ms = 0;
	when.it_value.tv_nsec = (long)s->look_ms * 1000000; /* 0 disarms it */
	(void)timerfd_settime(s->look_fd, 0, &when, NULL);
}

int lite_data_version(struct lite_store *s, int64_t *ret_version, struct ob_err *err)
{
	int r = lite_value(s, LITE_data_version, OB_NO_ARGS, ret_version, err);

	return r < 0 ? r : 0;
}

int lite_wake_check(struct ob_store *store, bool *ret_news, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int64_t version;

	/* First empty the fd, then look: what is written in between makes it readable again. */
	const struct stirred stirred = drain(s);
	int r = lite_ready(s, "looking for news", false, err);
	if (r < 0)
		return r;
	if (stirred.renew)
		lite_watch(s);
	r = lite_data_version(s, &version, err);
	if (r < 0)
		return r;
	*ret_news = version != s->data_version;
	s->data_version = version;
	plan_look(s, &stirred, *ret_news);
	return 0;
}
