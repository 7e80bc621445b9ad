/* SPDX-License-Identifier: MIT */
/* Names of rotated files: making the next, finding the oldest. */
#include "sink/file/rotate.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STAMP = 15 }; /* 20260504T030201 */

/* The part of a rotated name behind the file's own. */
struct mark {
	char stamp[STAMP + 1];
	uint32_t number;
};

struct found {
	uint32_t count;
	struct mark oldest, newest;
};

static int compare(const struct mark *a, const struct mark *b)
{
	int r = strcmp(a->stamp, b->stamp);

	return r ? r : (a->number > b->number) - (a->number < b->number);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The directory of `path`, opened; -1 with errno. */
static int open_dir(const char *path)
{
	size_t n = (size_t)(base_name(path) - path);
	char dir[PATH_MAX] = ".";

	if (n >= sizeof(dir)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (n > 0) {
		memcpy(dir, path, n);
		dir[n] = '\0';
	}
	return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool all_digits(const char *text, size_t n)
{
	return strspn(text, "0123456789") >= n;
}

/* Is `name` a rotated file of `base`? Strict: nothing else may ever be removed. */
static bool parse_mark(const char *name, const char *base, struct mark *ret)
{
	size_t n = strlen(base);
	char *end;

	if (strncmp(name, base, n) != 0 || name[n] != '.' || strlen(name) < n + 1 + STAMP + 4)
		return false;
	const char *stamp = name + n + 1, *number = stamp + STAMP + 1;
	if (!all_digits(stamp, 8) || stamp[8] != 'T' || !all_digits(stamp + 9, 6) ||
	    stamp[STAMP] != '-' || !all_digits(number, strlen(number)) || strlen(number) > 9)
		return false;
	memcpy(ret->stamp, stamp, STAMP);
	ret->stamp[STAMP] = '\0';
	ret->number = (uint32_t)strtoul(number, &end, 10);
	return true;
}

static void note(struct found *found, const struct mark *mark)
{
	if (found->count == 0 || compare(mark, &found->oldest) < 0)
		found->oldest = *mark;
	if (found->count == 0 || compare(mark, &found->newest) > 0)
		found->newest = *mark;
	found->count++;
}

static int scan(const char *path, struct found *ret)
{
	const char *base = base_name(path);
	struct found found = { 0 };
	int fd = open_dir(path);

	if (fd < 0)
		return -1;
	DIR *dir = fdopendir(fd);
	if (!dir) {
		(void)close(fd);
		return -1;
	}
	for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		struct mark mark;

		if (parse_mark(entry->d_name, base, &mark))
			note(&found, &mark);
	}
	(void)closedir(dir);
	*ret = found;
	return 0;
}

static int full_name(const char *path, const struct mark *mark, char out[PATH_MAX])
{
	if (snprintf(out, PATH_MAX, "%s.%s-%03u", path, mark->stamp, mark->number) < PATH_MAX)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

/* Like rename(), but EEXIST when `to` is there. Not every file system can do it in one step. */
static int rename_to_new(const char *from, const char *to)
{
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (access(to, F_OK) == 0) {
		errno = EEXIST;
		return -1;
	}
	return rename(from, to);
}

int ob_rotate_rename(const char *path, int64_t now_us)
{
	time_t now = (time_t)(now_us / 1000000);
	struct mark mark = { .number = 0 };
	char target[PATH_MAX];
	struct found found;
	struct tm tm;

	if (scan(path, &found) < 0 || !gmtime_r(&now, &tm))
		return -1;
	(void)strftime(mark.stamp, sizeof(mark.stamp), "%Y%m%dT%H%M%S", &tm);
	if (found.count > 0 && strcmp(mark.stamp, found.newest.stamp) <= 0) {
		mark = found.newest;
		mark.number++;
	}
	for (int tries = 0; tries < 1000; tries++, mark.number++) {
		if (full_name(path, &mark, target) < 0)
			return -1;
		if (rename_to_new(path, target) == 0)
			return 0;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

void ob_rotate_prune(const char *path, uint32_t keep)
{
	char name[PATH_MAX];
	struct found found;

	while (keep > 0 && scan(path, &found) == 0 && found.count > keep) {
		if (full_name(path, &found.oldest, name) < 0 || unlink(name) < 0)
			return;
	}
}

int ob_rotate_sync_dir(const char *path)
{
	OB_AUTOCLOSE int fd = open_dir(path);

	if (fd < 0)
		return -1;
	/* EINVAL: a file system that keeps its directories in order by itself. */
	return fsync(fd) < 0 && errno != EINVAL ? -1 : 0;
}
