/* SPDX-License-Identifier: MIT */
/* Programs that run beside the test: started, watched, signalled, and always ended. */
#ifndef OB_TESTS_CLI_BACKGROUND_H
#define OB_TESTS_CLI_BACKGROUND_H

#include "outbox.h"

#include <stdint.h>
#include <sys/types.h>

struct background {
	pid_t pid;
	int pty;                 /* the terminal's other end; -1: none */
	char out[256], err[256]; /* files that its outputs go to; without a pty */
};

/* Start `outbox` with these words, ending with NULL, in the test's directory. */
void start(struct background *b, ...) __attribute__((sentinel));
/* The same on a terminal of that size. */
void start_on_pty(struct background *b, int columns, int lines, ...) __attribute__((sentinel));
/* Wait until it ends by itself and return its exit code, or -signal; fails the test after `ms`. */
int wait_end(struct background *b, int ms);
/* Kill it, if it still runs. */
void kill_now(struct background *b);

/* A configuration of one relay to the file out.ndjson. */
extern const char file_config[];
/* Make the directory with this configuration and an empty outbox x.db. */
void prepare(const char *yaml);
/* Commit `count` messages from another process, in one transaction. */
void push(int count, const char *target);
/* Send SIGTERM and demand that exit code. */
void stop(struct background *b, int code);

int64_t now_ms(void);
/* The whole file; the caller frees. Missing is empty. */
char *read_file(const char *path);
/* Lines of a file of the test's directory; missing: 0. */
size_t line_count(const char *name);
/* Wait until the file has at least so many lines. */
void wait_lines(const char *name, size_t lines, int ms);
/* Wait until the file (a full path) holds the text. */
void wait_text(const char *path, const char *text, int ms);

#endif
