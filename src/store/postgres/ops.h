/* SPDX-License-Identifier: MIT */
/* The operations of the PostgreSQL store; each has its contract in store/store.h. */
#ifndef OB_STORE_POSTGRES_OPS_H
#define OB_STORE_POSTGRES_OPS_H

#include "store/store.h"

ob_store_setup_fn pg_setup;
ob_store_setup_sql_fn pg_setup_sql;
ob_store_grants_sql_fn pg_grants_sql;
ob_store_check_fn pg_check;
ob_store_diagnose_fn pg_diagnose;
ob_store_oldest_fn pg_oldest;
ob_store_tx_begin_fn pg_tx_begin;
ob_store_tx_push_fn pg_tx_push;
ob_store_tx_end_fn pg_tx_end;
ob_store_tx_writer_fn pg_tx_writer;
ob_store_tx_exec_fn pg_tx_exec;
ob_store_tx_native_fn pg_tx_native;
ob_store_read_fn pg_read;
ob_store_resize_fn pg_resize;
ob_store_adopt_fn pg_adopt;
ob_store_retain_fn pg_retain;
ob_store_wake_fd_fn pg_wake_fd;
ob_store_wake_check_fn pg_wake_check;

#endif
