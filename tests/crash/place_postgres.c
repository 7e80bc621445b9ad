/* SPDX-License-Identifier: MIT */
/* A private PostgreSQL server as a place. */
#include "pg_server.h"
#include "place.h"

#include <check.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct pg_server server;

static const char *postgres_start(void)
{
	static const char *const settings[] = { "max_connections=200", NULL };

	return pg_server_start(&server, settings) ? NULL : server.reason;
}

static void postgres_stop(void)
{
	pg_server_stop(&server);
}

static PGconn *connect_to(const char *url)
{
	PGconn *conn = PQconnectdb(url);

	ck_assert_msg(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
	return conn;
}

static void exec(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);

	ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK ||
			      PQresultStatus(result) == PGRES_TUPLES_OK,
		      "%s: %s", sql, PQerrorMessage(conn));
	PQclear(result);
}

static void *postgres_hold(const char *url, const char *sql)
{
	PGconn *conn = connect_to(url);

	exec(conn, sql);
	return conn;
}

static void postgres_also(void *held, const char *sql)
{
	exec(held, sql);
}

static void postgres_let_go(void *held)
{
	PQfinish(held);
}

static void postgres_run(const char *url, const char *sql)
{
	postgres_let_go(postgres_hold(url, sql));
}

static int64_t postgres_number(const char *url, const char *sql)
{
	PGconn *conn = connect_to(url);
	PGresult *result = PQexec(conn, sql);

	ck_assert_msg(PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0, "%s: %s",
		      sql, PQerrorMessage(conn));
	int64_t value = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	PQfinish(conn);
	return value;
}

static void postgres_make(const char *dir, char url[PLACE_URL])
{
	static unsigned made;
	char admin[PLACE_URL], name[64], sql[128];

	(void)dir;
	pg_server_url(&server, "postgres", "postgres", admin);
	(void)snprintf(name, sizeof(name), "t%d_%u", (int)getpid(), ++made);
	(void)snprintf(sql, sizeof(sql), "CREATE DATABASE %s TEMPLATE template0", name);
	postgres_run(admin, sql);
	pg_server_url(&server, "postgres", name, url);
}

static void postgres_move(const char *url, const char *dir)
{
	static unsigned made;
	const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;
	char admin[PLACE_URL], name[64], sql[256];

	if (user)
		ck_assert_int_eq(chown(dir, user->pw_uid, user->pw_gid), 0);
	ck_assert_int_eq(sscanf(url, "postgresql://postgres@/%63[^?]", name), 1);
	pg_server_url(&server, "postgres", "postgres", admin);
	(void)snprintf(sql, sizeof(sql), "CREATE TABLESPACE s%d_%u LOCATION '%s'", (int)getpid(),
		       ++made, dir);
	postgres_run(admin, sql);
	(void)snprintf(sql, sizeof(sql), "ALTER DATABASE %s SET TABLESPACE s%d_%u", name,
		       (int)getpid(), made);
	postgres_run(admin, sql);
}

static int64_t postgres_kick(const char *url)
{
	return postgres_number(url,
			       "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) "
			       "FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
			       "AND datname = current_database() "
			       "AND backend_type = 'client backend'");
}

static void postgres_crash(void)
{
	ck_assert(pg_server_crash(&server, false));
}

static void postgres_again(void)
{
	ck_assert_msg(pg_server_again(&server), "%s", server.reason);
}

const struct place place_postgres = {
	.name = "postgres",
	.concurrent = true,
	.start = postgres_start,
	.stop = postgres_stop,
	.make = postgres_make,
	.run = postgres_run,
	.number = postgres_number,
	.hold = postgres_hold,
	.also = postgres_also,
	.let_go = postgres_let_go,
	.begin = "BEGIN",
	.half_hour = "interval '30 minutes'",
	.id_left = "'",
	.id_right = "'",
	.move = postgres_move,
	.kick = postgres_kick,
	.crash = postgres_crash,
	.again = postgres_again,
};
