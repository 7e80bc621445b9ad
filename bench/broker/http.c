/* SPDX-License-Identifier: MIT */
/* The tests' receiver of webhooks in a process of its own, with its count in shared memory. */
#include "bench/broker/parts.h"
#include "bench/fatal.h"
#include "bench/now.h"

#include "http_receiver.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_US = 1000 };

struct shared {
	atomic_int port;
	_Atomic uint64_t count;
};

static void serve(struct shared *shared)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct http_receiver *receiver = http_receiver_new();

	for (shared->port = http_receiver_port(receiver);; bench_pause_us(TICK_US))
		shared->count = http_receiver_count(receiver);
}

static void start(struct bench_broker *broker)
{
	struct shared *shared = broker->impl;

	shared->port = 0;
	shared->count = 0;
	broker->pid = fork();
	if (broker->pid == 0)
		serve(shared);
	while (broker->pid > 0 && shared->port == 0)
		bench_pause_us(TICK_US);
	(void)snprintf(broker->sink, sizeof(broker->sink),
		       ", url: \"http://127.0.0.1:%d/\", allow_http: true, allow_private: true",
		       shared->port);
	(void)snprintf(broker->address, sizeof(broker->address), "http://127.0.0.1:%d/",
		       shared->port);
}

static bool http_start(struct bench_broker *broker)
{
	broker->impl = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (broker->impl == MAP_FAILED)
		bench_fatal("shared memory: %m");
	start(broker);
	return true;
}

static void end(struct bench_broker *broker)
{
	(void)kill(broker->pid, SIGKILL);
	(void)waitpid(broker->pid, NULL, 0);
}

/* It keeps what it was sent: a new one begins with nothing. */
static void http_clear(struct bench_broker *broker)
{
	end(broker);
	start(broker);
}

static void http_stop(struct bench_broker *broker)
{
	end(broker);
	(void)munmap(broker->impl, sizeof(struct shared));
}

static uint64_t http_count(struct bench_broker *broker)
{
	const struct shared *shared = broker->impl;

	return shared->count;
}

static void http_version(struct bench_broker *broker, char out[BENCH_TEXT_SIZE])
{
	(void)broker;
	(void)snprintf(out, BENCH_TEXT_SIZE, "the tests' receiver, a thread a connection");
}

const struct bench_broker_ops bench_broker_http = {
	.name = "http",
	.title = "HTTP",
	.start = http_start,
	.stop = http_stop,
	.clear = http_clear,
	.count = http_count,
	.version = http_version,
};
