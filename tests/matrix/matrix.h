/* SPDX-License-Identifier: MIT */
/*
 * Every store to every sink, with the program as people run it, read back by the
 * peer's own client. A peer is the other side of one sink. Failures end the test.
 */
#ifndef OB_TESTS_MATRIX_H
#define OB_TESTS_MATRIX_H

#include "run.h"

#include <stddef.h>

enum { MATRIX_COUNT = 12 };

struct matrix_peer {
	const char *type; /* of the sinks: entry */
	/* Once, before all tests: start the server. NULL, or why there is none. */
	const char *(*start)(void);
	void (*stop)(void);
	/* In the test: get the destination ready, for peers that need it. */
	void (*begin)(const char *destination);
	/* The options of the sinks: entry, as YAML, each behind a comma. */
	void (*options)(char *out, size_t size);
	/* All that is stored there, with each payload as it is; the caller frees. */
	char *(*read)(const char *destination);
};

/* The ones that this build has; NULL at the end. */
extern const struct matrix_peer *const matrix_peers[];
extern const struct matrix_peer peer_stdout, peer_file, peer_exec, peer_http, peer_redis,
	peer_kafka, peer_nats, peer_rabbitmq;

/* The test's directory, and what `outbox work` printed. */
extern char matrix_dir[64];
extern char *matrix_printed;

/* Run a program, found by its name, and return what it prints; it must exit with 0. The caller
 * frees. */
char *matrix_run(const char *const *argv);

#endif
