/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store and its one connection. Time is the server's: UTC_TIMESTAMP(6), the moment a
 * statement began.
 */
#ifndef OB_STORE_MYSQL_CONN_H
#define OB_STORE_MYSQL_CONN_H

#include "log/gaps.h"
#include "outbox/mysql.h"
#include "store/store.h"

#include <mysql.h>

/* Where the server is, from the URL. */
struct my_address {
	char *host, *user, *password, *database; /* owned; NULL: not given */
	uint32_t port;                           /* 0: the default */
};

struct my_templates; /* sql.c: SQL with the layout's names in it */
struct my_proof;     /* proof.c: which statements ran when */
struct my_run;       /* driver.c: the operation that runs */

struct my_store {
	struct ob_store base;
	int64_t connect_timeout_ms, timeout_ms, lock_timeout_ms; /* options */
	char *password, *socket, *ssl_ca, *ssl_cert, *ssl_key;
	bool ssl_verify;

	struct my_address address;
	MYSQL *db; /* NULL: not connected (any more) */
	struct my_templates *templates;
	struct my_proof *proof;
	struct my_run *run;
	outbox *writer; /* for tx_push, made on first use */
	struct {
		MYSQL_STMT *stmt; /* of tx_exec: the last one */
		uint64_t serial;
	} exec;
	bool broken;         /* connect again before the next call */
	bool patient;        /* this connection has no time limit for a statement */
	bool in_tx;          /* between tx_begin and tx_end */
	bool in_work;        /* inside my_transact() */
	bool joined;         /* an operation of ours runs in the transaction of tx_begin */
	unsigned code;       /* of the last failure: the server's number */
	size_t row_bytes;    /* of a message, lately: how many to read at once */
	bool had_gaps;       /* the last read found some */
	bool had_exceptions; /* the last read of this reader found some */
	int64_t counter_us;  /* when the server's counter was last compared; 0: not on this
				connection */
	bool reconnected;    /* no read since */
	int64_t last_seq;    /* highest number that a read returned, 0: none; and its id */
	struct ob_uuid last_id;
	char version[64];
};

/* Connected, or connect. */
int my_ready(struct my_store *s, bool patient, struct ob_err *err);
/* One more connection with the same settings; the caller closes it. */
int my_connect(struct my_store *s, bool patient, MYSQL **ret_db, struct ob_err *err);
void my_disconnect(struct my_store *s);
bool my_is_mariadb(const struct my_store *s);
/* Turn a number of the server or the client library into *err; `doing` is what failed. */
int my_err(struct my_store *s, unsigned code, const char *text, const char *doing,
	   struct ob_err *err);
int my_oom(const char *doing, struct ob_err *err);
/* Run a text without parameters or rows. */
int my_exec(struct my_store *s, MYSQL *db, const char *sql, const char *doing, struct ob_err *err);
/* Roll back whatever is open; a connection on which that fails is not used again. */
void my_rollback(struct my_store *s);
/* exec.c: close the statement that stayed prepared. */
void my_exec_forget(struct my_store *s);

/* ---- address: url.c -------------------------------------------------- */

/* Read the store's URL into its address, and what stands after '?' into its options. */
int my_url_parse(struct my_store *s, const struct ob_opt *opts, struct ob_err *err);
void my_url_done(struct my_address *address);
/* The place for messages, without the password: "db1:3306/shop". */
const char *my_place(const struct my_store *s, char out[256]);

#endif
