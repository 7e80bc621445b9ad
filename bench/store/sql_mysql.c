/* SPDX-License-Identifier: MIT */
/* A few calls of libmariadb. */
#include "bench/store/sql_mysql.h"

#include "bench/fatal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bench_mysql_fail(MYSQL *db)
{
	bench_fatal("MariaDB: %s", mysql_error(db));
}

MYSQL *bench_mysql_connect(const char *url)
{
	char user[64] = "", database[64] = "", socket[128] = "";
	MYSQL *db = bench_need(mysql_init(NULL));

	if (sscanf(url, "mysql://%63[^@]@/%63[^?]?socket=%127s", user, database, socket) != 3)
		bench_fatal("not the address of a private server: %s", url);
	if (!mysql_real_connect(db, NULL, user, NULL, database, 0, socket, 0))
		bench_mysql_fail(db);
	return db;
}

void bench_mysql_do(MYSQL *db, const char *sql)
{
	if (mysql_query(db, sql) != 0)
		bench_mysql_fail(db);
	MYSQL_RES *result = mysql_store_result(db);
	if (result)
		mysql_free_result(result);
}

uint64_t bench_mysql_number(MYSQL *db, const char *sql, unsigned column)
{
	if (mysql_query(db, sql) != 0)
		bench_mysql_fail(db);
	MYSQL_RES *result = mysql_store_result(db);
	if (!result)
		bench_mysql_fail(db);
	MYSQL_ROW row = mysql_fetch_row(result);
	uint64_t number = row && row[column] ? strtoull(row[column], NULL, 10) : 0;

	mysql_free_result(result);
	return number;
}
