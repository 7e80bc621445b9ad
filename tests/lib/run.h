/* SPDX-License-Identifier: MIT */
/* Run a program as a user would, and look at all it did: for tests. */
#ifndef OB_TESTS_RUN_H
#define OB_TESTS_RUN_H

#include <stdbool.h>
#include <stddef.h>

struct ob_run {
	/* in */
	const char *const *argv; /* argv[0] is the program; NULL at the end */
	const char *const
		*env;         /* "NAME=value" added to the environment; NULL at the end, or NULL */
	const char *dir;      /* working directory, or NULL */
	const char *in;       /* bytes for stdin, or NULL for none */
	size_t in_size;       /* 0: up to the NUL */
	const char *out_path; /* stdout goes to this file instead, such as /dev/full; or NULL */
	size_t out_limit;     /* > 0: stop reading stdout after so many bytes, as head does */
	int timeout_ms;       /* 0: 30000; then it is killed and `timed_out` */
	/* out */
	char *out, *err; /* NUL-terminated; ob_run_done() frees */
	size_t out_size, err_size;
	int code; /* exit code, or -signal */
	bool timed_out;
};

/* Fails the test when the program cannot be started. */
void ob_run(struct ob_run *run);
void ob_run_done(struct ob_run *run);

/* A new directory under $TMPDIR or /tmp, and its removal with all that is in it. */
void ob_temp_dir(char out[64]);
void ob_temp_dir_remove(const char *dir);

/* A port of 127.0.0.1 that nobody has now. */
int free_port(void);
/* Listen on this port of 127.0.0.1; 0: on a free one. Returns the socket. */
int listen_on(int port, int *ret_port);

#endif
