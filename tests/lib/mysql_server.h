/* SPDX-License-Identifier: MIT */
/*
 * A private MariaDB or MySQL server for tests, in a temporary directory, on a unix socket
 * and a free port of 127.0.0.1. It ends with the process that started it.
 * OUTBOX_TEST_MYSQLD names the program; without it the installed MariaDB runs.
 * OUTBOX_TEST_MYSQL_INSTALL names the one that makes the data directory, with the options of
 * mariadb-install-db; without it MySQL makes its own.
 */
#ifndef OB_TESTS_MYSQL_SERVER_H
#define OB_TESTS_MYSQL_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct mysql_server {
	char dir[64];                /* holds data/, the socket and the log */
	const char *const *settings; /* more options for the server */
	bool mariadb;                /* else MySQL */
	int port;
	pid_t pid;
	char reason[128]; /* why there is none */
};

/*
 * Make and start one, without fsync. `settings`: more options "--name=value", NULL at the end, or
 * NULL; they must live as long as the server. False when there is no such server here:
 * `reason` says what is missing, for a skip.
 */
bool mysql_server_start(struct mysql_server *server, const char *const *settings);
/* The same in /tmp, not in memory: there a flush costs what it costs. */
bool mysql_server_start_on_disk(struct mysql_server *server, const char *const *settings);
/* kill -9; false when it was not running. */
bool mysql_server_crash(struct mysql_server *server);
/* Has it crashed by itself? */
bool mysql_server_crashed(struct mysql_server *server);
/* Start it again after a crash. */
bool mysql_server_again(struct mysql_server *server);
/* End it and remove its directory. */
void mysql_server_stop(struct mysql_server *server);

/* "mysql://user@/database?socket=..."; `out` is of 256 bytes. */
void mysql_server_url(const struct mysql_server *server, const char *user, const char *database,
		      char out[256]);
/* The path of its socket; `out` is of 128 bytes. */
const char *mysql_server_socket(const struct mysql_server *server, char out[128]);

#endif
