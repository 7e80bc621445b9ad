/* SPDX-License-Identifier: MIT */
/*
 * A handler of the exec sink, which is this program itself: it answers as fast as it reads, and
 * refuses so many of 1,000 messages at their first attempt. It counts in a file that both map.
 */
#include "bench/broker/parts.h"
#include "bench/fatal.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ID = 36, ROOM = 1 << 20, TABLE = 1 << 18 };

struct shared {
	_Atomic uint64_t taken;
	_Atomic uint32_t per_mille;
};

static struct shared *map_shared(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0 || ftruncate(fd, sizeof(struct shared)) < 0)
		bench_fatal("%s: %m", path);
	void *shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		bench_fatal("%s: %m", path);
	(void)close(fd);
	return shared;
}

/* ---- the handler ---------------------------------------------------------- */

struct handler {
	struct shared *shared;
	uint64_t refused[TABLE]; /* hashes of ids that were refused once */
	char in[ROOM], out[ROOM];
	size_t used, written;
};

static uint64_t hash_id(const char *id)
{
	uint64_t hash = 14695981039346656037ULL;

	for (size_t i = 0; i < ID; i++)
		hash = (hash ^ (unsigned char)id[i]) * 1099511628211ULL;
	return hash ? hash : 1;
}

/* True the first time for those that are chosen. */
static bool refuses(struct handler *h, const char *id)
{
	uint64_t hash = hash_id(id);
	size_t at = (hash >> 20) % TABLE;

	if ((hash >> 32) % 1000 >= h->shared->per_mille)
		return false;
	while (h->refused[at] && h->refused[at] != hash)
		at = (at + 1) % TABLE;
	bool first = h->refused[at] == 0;
	h->refused[at] = hash;
	return first;
}

static void answer(struct handler *h, const char *line, size_t size)
{
	static const char before[] = "{\"id\":\"";
	const char *id = line + sizeof(before) - 1;
	int n;

	if (size < sizeof(before) + ID || memcmp(line, before, sizeof(before) - 1) != 0)
		bench_fatal("not a message: %.*s", (int)(size < 80 ? size : 80), line);
	if (refuses(h, id)) {
		n = snprintf(h->out + h->written, ROOM - h->written, "retry %.*s refused\n", ID,
			     id);
	} else {
		n = snprintf(h->out + h->written, ROOM - h->written, "ok %.*s\n", ID, id);
		h->shared->taken++;
	}
	h->written += (size_t)n;
}

static void send_answers(struct handler *h)
{
	for (size_t at = 0; at < h->written;) {
		ssize_t n = write(STDOUT_FILENO, h->out + at, h->written - at);

		if (n <= 0)
			exit(EXIT_SUCCESS); /* the relay is gone */
		at += (size_t)n;
	}
	h->written = 0;
}

int bench_exec_handle(const char *path)
{
	struct handler *h = bench_need(calloc(1, sizeof(*h)));
	ssize_t n;

	h->shared = map_shared(path);
	while ((n = read(STDIN_FILENO, h->in + h->used, ROOM - h->used)) > 0) {
		char *line = h->in, *end;

		h->used += (size_t)n;
		while ((end = memchr(line, '\n', h->used - (size_t)(line - h->in)))) {
			answer(h, line, (size_t)(end - line));
			line = end + 1;
		}
		h->used -= (size_t)(line - h->in);
		memmove(h->in, line, h->used);
		send_answers(h);
	}
	return EXIT_SUCCESS;
}

/* ---- the broker ------------------------------------------------------------ */

/* Its address is a file of the bench's directory, as that of the file sink is. */
static bool exec_start(struct bench_broker *broker)
{
	char self[256];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		bench_fatal("cannot find this program: %m");
	self[n] = '\0';
	broker->impl = map_shared(broker->address);
	(void)snprintf(broker->sink, sizeof(broker->sink),
		       ", command: \"%.200s --exec-handler %.200s\", window: 1000", self,
		       broker->address);
	return true;
}

static void exec_stop(struct bench_broker *broker)
{
	(void)munmap(broker->impl, sizeof(struct shared));
}

static void exec_clear(struct bench_broker *broker)
{
	struct shared *shared = broker->impl;

	shared->taken = 0;
}

static uint64_t exec_count(struct bench_broker *broker)
{
	const struct shared *shared = broker->impl;

	return shared->taken;
}

static void exec_version(struct bench_broker *broker, char out[BENCH_TEXT_SIZE])
{
	(void)broker;
	out[0] = '\0';
}

void bench_exec_refuse(struct bench_broker *broker, uint32_t per_mille)
{
	struct shared *shared = broker->impl;

	shared->per_mille = per_mille;
}

const struct bench_broker_ops bench_broker_exec = {
	.name = "exec",
	.title = "a handler",
	.start = exec_start,
	.stop = exec_stop,
	.clear = exec_clear,
	.count = exec_count,
	.version = exec_version,
};
