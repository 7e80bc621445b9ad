/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store's connection: making it, losing it, and the one function that reads
 * SQLSTATEs. */
#ifndef OB_STORE_POSTGRES_CONN_H
#define OB_STORE_POSTGRES_CONN_H

#include "outbox/postgres.h"
#include "store/postgres/statements.h"
#include "store/store.h"

#include <libpq-fe.h>

enum { PG_QUEUE_MAX = 24, PG_PARAMS_MAX = 16 };

struct pg_store {
	struct ob_store base;
	int64_t timeout_ms, lock_timeout_ms; /* options */
	char *password;                      /* where a url has none */
	char *listen_url, *search_path;
	int notify;
	bool settle_durable;

	bool pooled;         /* someone stands between us and the server */
	bool broken;         /* connect again before the next call */
	bool in_tx;          /* between tx_begin and tx_end */
	bool joined;         /* an operation of ours runs in that transaction */
	PGconn *conn;        /* NULL: not connected (any more) */
	char *sql[PG_COUNT]; /* expanded on first use */
	const char *names[OB_SQL_COUNT][PG_PARAMS_MAX]; /* of the parameters, in their order */
	const char *doing;                              /* what the operation does, for messages */
	char *path;                                     /* the search_path of every transaction */
	outbox *writer;                                 /* for tx_push, made on first use */
	uint64_t exec_ran;     /* the statement of tx_exec that has run on this connection */
	uint64_t exec_planned; /* the one that has a plan there */
	uint32_t exec_plans;   /* how many were made: the names of plans */
	int version;           /* 150020 */
	char database[64], server[48];
	bool planned[PG_COUNT]; /* this connection knows them by name */
	bool bare;              /* what is queued has no BEGIN, and needs no COMMIT */
	bool unlimited;         /* this transaction may take as long as it needs */

	struct {
		const char *doing;
		bool *plans; /* set when it has succeeded */
		bool hidden; /* begin and pins: nobody asked for their results */
	} queue[PG_QUEUE_MAX + 4];
	PGresult *results[PG_QUEUE_MAX + 4]; /* of the last flush */
	int queued, result_count;
	bool keep; /* a commit leaves the results of the flush before it */

	/* read: what the last one learned */
	int64_t sequence; /* that numbers the log; 0: not known yet */
	int64_t log_end;  /* the last number that was drawn */
	int64_t walk;     /* numbers that one read walks at most */

	struct ob_uuid session; /* the worker whose lock this connection holds; nil: none */

	PGconn *listener; /* NULL: none; may be conn */
	bool listening, listen_tried, watched;
	bool has_due; /* read: the reader has exceptions that are due some time */
};

/* Turn what a result or (result NULL) the connection reports into *err. */
int pg_err(struct pg_store *s, const PGresult *result, const char *doing, struct ob_err *err);
int pg_oom(const char *doing, struct ob_err *err);
/* Connected, or connect. */
int pg_ready(struct pg_store *s, struct ob_err *err);
void pg_disconnect(struct pg_store *s);
/* Wait until the socket is readable (or, with `write`, writable); false at the deadline. */
bool pg_wait(PGconn *conn, bool write, int64_t deadline_us);
/* Make a connection with our settings. The deadline is connect_timeout's or ours. */
int pg_connect(struct pg_store *s, const char *url, PGconn **ret_conn, struct ob_err *err);
/* Is that version (150004, "15.4") new enough? */
int pg_check_version(int number, const char *text, struct ob_err *err);

#endif
