/* SPDX-License-Identifier: MIT */
/*
 * A private PostgreSQL server for tests, in a temporary directory, on a unix socket
 * and a free port of 127.0.0.1. It ends with the process that started it.
 * OUTBOX_TEST_POSTGRES names the directory of its programs; without it the newest installed runs.
 */
#ifndef OB_TESTS_PG_SERVER_H
#define OB_TESTS_PG_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct pg_server {
	char dir[64];  /* holds data/, the socket and the log */
	char bin[256]; /* where the server's programs are */
	const char *const *settings;
	int port;
	pid_t pid;
	char reason[128]; /* why there is none */
};

/*
 * Make and start one, without fsync. `settings`: more lines "name=value" for the server, NULL at
 * the end, or NULL; they must live as long as the server. False when there is no
 * PostgreSQL here: `reason` says what is missing, for a skip.
 */
bool pg_server_start(struct pg_server *server, const char *const *settings);
/* End it at once, as a crash does (immediate), or by kill -9; false when it was not running. */
bool pg_server_crash(struct pg_server *server, bool kill9);
/* Start it again after a crash. */
bool pg_server_again(struct pg_server *server);
/* End it and remove its directory. */
void pg_server_stop(struct pg_server *server);

/* Run another program as the server's user, in its directory; its pid. It ends with this process.
 */
pid_t pg_server_run(const struct pg_server *server, const char *const *argv);

/* "postgresql://user@/database?host=...": by unix socket; `out` is of 256 bytes. */
void pg_server_url(const struct pg_server *server, const char *user, const char *database,
		   char out[256]);

#endif
