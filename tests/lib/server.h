/* SPDX-License-Identifier: MIT */
/*
 * What private servers of databases have in common: a directory, a user that root steps down to, a
 * process that ends with the one that started it.
 */
#ifndef OB_TESTS_SERVER_H
#define OB_TESTS_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where and as whom programs of a server run. */
struct server_home {
	const char *dir;  /* also for its log, and for temporary files */
	const char *user; /* if we are root */
	int end_with;     /* the signal that it gets when we end */
};

/* Make `dir` from its template, for that user; others may look into it. */
bool server_make_dir(char *dir, const char *user);
/* Remove it, unless it is still a template. */
void server_remove_dir(const char *dir);

/* Start a program; its output goes to the log. */
pid_t server_launch(const struct server_home *home, const char *const *argv);
/* The same, and wait for its end: true when that was a success. */
bool server_run(const struct server_home *home, const char *const *argv);
/* Wait until it is ready; false when it ended instead, or takes a minute. */
bool server_wait(pid_t pid, bool (*is_ready)(const void *server), const void *server);
/* Has it ended by itself? Then *pid is 0. */
bool server_has_ended(pid_t *pid);
/* Send the signal and wait for the end; SIGKILL when that takes long. False: it was not running. */
bool server_end(pid_t *pid, int sig);

/* A port of 127.0.0.1 that nobody uses now. */
int server_free_port(void);

/* For those who look until something is so: now, and less than a second between two looks. */
int64_t server_now_ms(void);
void server_pause_ms(long ms);

#endif
