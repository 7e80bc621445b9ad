/* SPDX-License-Identifier: MIT */
/* Transactions of several round trips, and writing messages. */
#ifndef OB_STORE_MYSQL_TX_H
#define OB_STORE_MYSQL_TX_H

#include "store/mysql/conn.h"

/*
 * Run `work` in a transaction that commits when it returns >= 0; for what does not fit into one
 * packet. After a deadlock it is rolled back and run again, a few times: `work` starts afresh.
 */
typedef int my_work_fn(struct my_store *s, void *arg, struct ob_err *err);
int my_transact(struct my_store *s, my_work_fn *work, void *arg, struct ob_err *err);

/* The transaction of tx_begin is still there: no error has ended it. */
bool my_tx_is_open(const struct my_store *s);

ob_store_tx_begin_fn my_tx_begin;
ob_store_tx_push_fn my_tx_push;
ob_store_tx_end_fn my_tx_end;
ob_store_tx_writer_fn my_tx_writer;
ob_store_tx_exec_fn my_tx_exec;
ob_store_tx_native_fn my_tx_native;

#endif
