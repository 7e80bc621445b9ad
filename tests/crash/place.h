/* SPDX-License-Identifier: MIT */
/*
 * Where the databases of the crash tests live: SQLite files, or a private server that
 * the test program starts. CRASH_STORE says which; without it SQLite.
 */
#ifndef OB_TESTS_CRASH_PLACE_H
#define OB_TESTS_CRASH_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLACE_URL = 256 };

struct place {
	const char *name;
	/* Several write transactions at once? */
	bool concurrent;
	/* Start the server; NULL, or why there is none. */
	const char *(*start)(void);
	void (*stop)(void);
	/* A new, empty database; `dir` is where its files may be. */
	void (*make)(const char *dir, char url[PLACE_URL]);
	/* Run statements that must succeed, on a connection of their own that is closed again. */
	void (*run)(const char *url, const char *sql);
	/* The number that a query returns, likewise. */
	int64_t (*number)(const char *url, const char *sql);

	/* Run statements and keep the connection, with what it locks; close what hold() returned.
	 */
	void *(*hold)(const char *url, const char *sql);
	/* Run more on what hold() returned. */
	void (*also)(void *held, const char *sql);
	void (*let_go)(void *held);
	/* The words that begin a transaction that writes; what stands around the 32 hexadecimal
	 * digits of an id. */
	const char *begin, *id_left, *id_right;
	const char *half_hour; /* what is added to a time */

	/* The rest: of servers only, else NULL. */
	/* Let the tables of a new database live in that directory, which may be on another disk;
	 * NULL where make() puts them into its own. */
	void (*move)(const char *url, const char *dir);
	/* End every other connection to that database, from the server's side; how many. */
	int64_t (*kick)(const char *url);
	/* Has the server that this process started crashed by itself? NULL: it never does. */
	bool (*crashed)(void);
	/* End the server as a crash does; start it again. */
	void (*crash)(void);
	void (*again)(void);
};

extern const struct place place_sqlite, place_postgres, place_mysql;

/* The one that the environment names. */
const struct place *place_chosen(void);

#endif
