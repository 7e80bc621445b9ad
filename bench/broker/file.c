/* SPDX-License-Identifier: MIT */
/* A file of lines; counting reads only what is new. */
#include "bench/broker/parts.h"
#include "bench/fatal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct lines {
	int fd;
	uint64_t count;
	char part[1 << 18];
};

static void file_clear(struct bench_broker *broker)
{
	struct lines *lines = broker->impl;

	if (lines->fd >= 0)
		(void)close(lines->fd);
	(void)unlink(broker->address);
	lines->fd = open(broker->address, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
	if (lines->fd < 0)
		bench_fatal("%s: %m", broker->address);
	lines->count = 0;
}

static bool file_start(struct bench_broker *broker)
{
	struct lines *lines = bench_need(calloc(1, sizeof(*lines)));

	lines->fd = -1;
	broker->impl = lines;
	(void)snprintf(broker->sink, sizeof(broker->sink), ", path: \"%s\"", broker->address);
	file_clear(broker);
	return true;
}

static void file_stop(struct bench_broker *broker)
{
	struct lines *lines = broker->impl;

	(void)close(lines->fd);
	free(lines);
}

static uint64_t file_count(struct bench_broker *broker)
{
	struct lines *lines = broker->impl;
	ssize_t n;

	while ((n = read(lines->fd, lines->part, sizeof(lines->part))) > 0) {
		const char *end = lines->part + n;
		const char *at = lines->part;

		while ((at = memchr(at, '\n', (size_t)(end - at)))) {
			lines->count++;
			at++;
		}
	}
	return lines->count;
}

static void file_version(struct bench_broker *broker, char out[BENCH_TEXT_SIZE])
{
	(void)broker;
	out[0] = '\0';
}

const struct bench_broker_ops bench_broker_file = {
	.name = "file",
	.title = "file",
	.start = file_start,
	.stop = file_stop,
	.clear = file_clear,
	.count = file_count,
	.version = file_version,
};
