/* SPDX-License-Identifier: MIT */
/* A few calls of libpq. */
#include "bench/store/sql_postgres.h"

#include "bench/fatal.h"

#include <stdlib.h>

PGresult *bench_pg_check(PGconn *conn, PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		bench_fatal("PostgreSQL: %s", PQerrorMessage(conn));
	return result;
}

PGconn *bench_pg_connect(const char *url)
{
	PGconn *conn = PQconnectdb(url);

	if (PQstatus(conn) != CONNECTION_OK)
		bench_fatal("PostgreSQL: %s", PQerrorMessage(conn));
	return conn;
}

void bench_pg_do(PGconn *conn, const char *sql)
{
	PQclear(bench_pg_check(conn, PQexec(conn, sql)));
}

uint64_t bench_pg_number(PGconn *conn, const char *sql)
{
	PGresult *result = bench_pg_check(conn, PQexec(conn, sql));
	uint64_t number = PQntuples(result) ? strtoull(PQgetvalue(result, 0, 0), NULL, 10) : 0;

	PQclear(result);
	return number;
}
