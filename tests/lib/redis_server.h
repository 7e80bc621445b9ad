/* SPDX-License-Identifier: MIT */
/*
 * A Redis server of one test: private directory, free port on 127.0.0.1, a unix
 * socket, TLS on request. It ends with the test's process, however that ends.
 * OUTBOX_TEST_REDIS names the program, also Valkey's; without it the installed Redis runs.
 * Failures end the test.
 */
#ifndef OB_TESTS_REDIS_SERVER_H
#define OB_TESTS_REDIS_SERVER_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <sys/types.h>

struct redis_server {
	/* in */
	const char *const *args; /* further words for its command line, ending with NULL; or NULL */
	bool tls;                /* also on a TLS port, with certificates of its own */
	bool cluster;            /* as a node of one */
	/* out */
	pid_t pid;
	char dir[64];
	int port, tls_port, bus_port;
	char socket[96]; /* path */
	char ca[96];     /* tls: the certificate that signed the server's */
	char other_ca[96];
	redisContext *client; /* to look at what is stored; see redis_ask() */
};

/* NULL, or why there is none to start: then the suite is skipped. */
const char *redis_server_missing(void);
/* Start and wait until it answers. */
void redis_server_start(struct redis_server *server);
/* SIGKILL and gone; what it appended to its log (args: --appendonly yes) stays. */
void redis_server_kill(struct redis_server *server);
/* Start again in the same place. */
void redis_server_restart(struct redis_server *server);
/* Kill and remove everything. */
void redis_server_end(struct redis_server *server);

/* Run a command of words, ending with NULL, and give its answer; the caller frees. */
redisReply *redis_ask(struct redis_server *server, ...) __attribute__((sentinel));
/* The same when only success counts. */
void redis_do(struct redis_server *server, ...) __attribute__((sentinel));
/* An integer answer. */
long long redis_count(struct redis_server *server, ...) __attribute__((sentinel));

#endif
