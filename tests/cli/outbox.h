/* SPDX-License-Identifier: MIT */
/* The built `outbox` program in a directory of its own, run and looked at in one line. */
#ifndef OB_TESTS_CLI_OUTBOX_H
#define OB_TESTS_CLI_OUTBOX_H

#include "run.h"
#include "suite.h"

/* Where the programs run; there between begin() and end(). */
extern char dir[64];
void begin(void);
void end(void);

/* Run with these words, ending with NULL, and with `in` on stdin (NULL: none). The caller frees. */
struct ob_run outbox(const char *in, ...) __attribute__((sentinel));
/* Run and demand this exit code and exactly this output; NULL: whatever it is. */
void expect(int code, const char *out, const char *err, ...) __attribute__((sentinel));
/* The same with something on stdin. */
void expect_in(const char *in, int code, const char *out, const char *err, ...)
	__attribute__((sentinel));
/* Demand that the output holds this text. */
void expect_in_output(const char *part, ...) __attribute__((sentinel));

/* A file in the directory: write it. */
void put_file(const char *name, const char *text);
/* The directory's path with that name behind it, in memory that the next call reuses. */
const char *path_of(const char *name);

/* A variable for the programs that are run from now on; "NAME=value". */
void set_env(const char *assignment);

#endif
