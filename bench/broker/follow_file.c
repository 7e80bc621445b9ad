/* SPDX-License-Identifier: MIT */
/* Lines of a file as they are written, by inotify. */
#include "bench/broker/follow.h"
#include "bench/fatal.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { ROOM = 1 << 20 };

struct follower {
	int fd, notify;
	char name[48]; /* what stands before the number: "aggregate_id":" */
	size_t used;   /* of a line whose end is not there yet */
	char data[ROOM];
};

static void *file_open(const char *address, const char *field)
{
	struct follower *f = bench_need(calloc(1, sizeof(*f)));

	(void)snprintf(f->name, sizeof(f->name), "\"%s\":\"", field);
	f->fd = open(address, O_RDONLY | O_CLOEXEC);
	f->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (f->fd < 0 || f->notify < 0 || inotify_add_watch(f->notify, address, IN_MODIFY) < 0)
		bench_fatal("%s: %m", address);
	return f;
}

static uint64_t number_of(const struct follower *f, const char *line, size_t size)
{
	const char *at = memmem(line, size, f->name, strlen(f->name));

	return at ? strtoull(at + strlen(f->name), NULL, 10) : 0;
}

/* Take out whole lines, and keep the rest. */
static size_t take_lines(struct follower *f, uint64_t numbers[BENCH_FOLLOW_MAX])
{
	size_t from = 0, count = 0;
	const char *end;

	while (count < BENCH_FOLLOW_MAX && (end = memchr(f->data + from, '\n', f->used - from))) {
		size_t size = (size_t)(end - (f->data + from)) + 1;

		numbers[count++] = number_of(f, f->data + from, size);
		from += size;
	}
	f->used -= from;
	memmove(f->data, f->data + from, f->used);
	return count;
}

static size_t file_read(void *follower, uint64_t numbers[BENCH_FOLLOW_MAX], int timeout_ms)
{
	struct follower *f = follower;
	struct pollfd poll_fd = { .fd = f->notify, .events = POLLIN };
	char events[4096];

	for (int turn = 0; turn < 2; turn++) {
		ssize_t n = read(f->fd, f->data + f->used, ROOM - f->used);

		f->used += n > 0 ? (size_t)n : 0;
		size_t count = take_lines(f, numbers);
		if (count || turn)
			return count;
		(void)poll(&poll_fd, 1, timeout_ms);
		(void)!read(f->notify, events, sizeof(events));
	}
	return 0;
}

static void file_close(void *follower)
{
	struct follower *f = follower;

	(void)close(f->fd);
	(void)close(f->notify);
	free(f);
}

const struct bench_follow_ops bench_follow_file = { file_open, file_read, file_close };
