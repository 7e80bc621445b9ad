/* SPDX-License-Identifier: MIT */
/*
 * The connection of the SQLite store, and the one function that reads SQLite's codes.
 *
 * Time is the host's clock: an SQLite database has no other. An operation has one time; every
 * statement gets it as :now.
 */
#ifndef OB_STORE_SQLITE_CONN_H
#define OB_STORE_SQLITE_CONN_H

#include "base/lockwait.h"
#include "outbox/sqlite.h"
#include "store/sqlite/statements.h"
#include "store/store.h"

#include <sqlite3.h>
#include <sys/types.h>

enum { LITE_SYNC_FULL, LITE_SYNC_NORMAL }; /* values of the option `synchronous` */

struct lite_run;

struct lite_store {
	struct ob_store base;
	struct ob_lock_wait busy; /* options */
	int synchronous;
	bool settle_durable;

	sqlite3 *db;                        /* NULL: not connected (any more) */
	sqlite3_stmt *stmt[LITE_COUNT];     /* prepared on first use */
	outbox *writer;                     /* for tx_push, made on first use */
	dev_t dev;                          /* the file that is open: */
	ino_t ino;                          /* another one under its name is noticed */
	bool seen;                          /* there was a database once */
	bool broken;                        /* connect again before the next call */
	bool in_tx;                         /* between tx_begin and tx_end */
	const char *doing;                  /* the operation that runs, for messages */
	int64_t now;                        /* its time, in microseconds since 1970 */
	int64_t statement_us;               /* boot clock: start of a statement that is limited */
	int watch_fd, watch_wal, watch_dir; /* inotify; -1: none */
	int look_fd, wake_fd; /* a timer for another look; epoll over both; -1: none */
	int look_ms;          /* until that look; 0: none is planned */
	bool watching;        /* the caller asked for wake_fd */
	int64_t data_version; /* -1: not known */
	size_t turn;          /* the partition whose exceptions the next read asks for first */
	struct lite_run *run; /* driver.c: the operation that runs */
	struct {
		sqlite3_stmt *stmt; /* of tx_exec: the last one */
		uint64_t serial;
	} exec;
	struct {
		int64_t from;       /* rows up to here were looked at in this pass */
		int64_t thinned_us; /* the journal has one row a minute up to here */
	} retained;
};

/* The path of "sqlite:PATH" or "sqlite:///PATH", or NULL. */
const char *lite_path(const char *url);
/* The name of a filesystem on which SQLite's locks and shared memory do not work, or NULL. */
const char *lite_network_fs(unsigned long magic);
/* An operation begins: connected, or connect; only `create` may make the file. */
int lite_ready(struct lite_store *s, const char *doing, bool create, struct ob_err *err);
/* How commits reach the disk, as the option says. */
int lite_set_synchronous(struct lite_store *s, struct ob_err *err);
/* Turn an SQLite code into *err. */
int lite_err(struct lite_store *s, int code, struct ob_err *err);
int lite_oom(const struct lite_store *s, struct ob_err *err);

/* The table of operations: store.c of this folder. */
extern const struct ob_store_ops ob_store_sqlite;

ob_store_open_fn lite_open;
ob_store_close_fn lite_close;
ob_store_describe_fn lite_describe;

#endif
