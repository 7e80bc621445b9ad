/* SPDX-License-Identifier: MIT */
/*
 * Run a program with private servers around it: with_servers PROGRAM ARGUMENT...
 * It finds PostgreSQL through TEST_POSTGRES_DIR (its socket) and TEST_POSTGRES_PORT, and MariaDB
 * through TEST_MYSQL_SOCKET and TEST_MYSQL_PORT. Where there is no server, TEST_POSTGRES_MISSING or
 * TEST_MYSQL_MISSING says why. OUTBOX_TEST_DATABASES names the one kind of database that is wanted.
 */
#include "config.h"
#if HAVE_MYSQL
#include "mysql_server.h"
#endif
#if HAVE_POSTGRES
#include "pg_server.h"
#endif

#include "run_program.h"

#include <stdbool.h>
#include <string.h>

static bool is_wanted(const char *kind)
{
	const char *only = getenv("OUTBOX_TEST_DATABASES");

	return !only || strcmp(only, kind) == 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return EXIT_FAILURE;
#if HAVE_POSTGRES
	struct pg_server postgres = { .reason = "not wanted" };
	static const char *const postgres_settings[] = { "max_connections=300", NULL };

	if (is_wanted("postgres") && pg_server_start(&postgres, postgres_settings)) {
		(void)setenv("TEST_POSTGRES_DIR", postgres.dir, 1);
		set_port("TEST_POSTGRES_PORT", postgres.port);
	} else {
		(void)setenv("TEST_POSTGRES_MISSING", postgres.reason, 1);
	}
#else
	(void)setenv("TEST_POSTGRES_MISSING", "this build has no PostgreSQL", 1);
#endif
#if HAVE_MYSQL
	struct mysql_server mysql = { .reason = "not wanted" };
	static const char *const mysql_settings[] = { "--max-connections=300", NULL };
	char path[128];

	if (is_wanted("mysql") && mysql_server_start(&mysql, mysql_settings)) {
		(void)setenv("TEST_MYSQL_SOCKET", mysql_server_socket(&mysql, path), 1);
		set_port("TEST_MYSQL_PORT", mysql.port);
	} else {
		(void)setenv("TEST_MYSQL_MISSING", mysql.reason, 1);
	}
#else
	(void)setenv("TEST_MYSQL_MISSING", "this build has no MySQL", 1);
#endif
	int code = run_program(argv + 1);
#if HAVE_MYSQL
	mysql_server_stop(&mysql);
#endif
#if HAVE_POSTGRES
	pg_server_stop(&postgres);
#endif
	return code;
}
