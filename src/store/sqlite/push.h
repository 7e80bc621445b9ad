/* SPDX-License-Identifier: MIT */
/* Writing messages into the SQLite store. */
#ifndef OB_STORE_SQLITE_PUSH_H
#define OB_STORE_SQLITE_PUSH_H

#include "store/store.h"

ob_store_tx_begin_fn lite_tx_begin;
ob_store_tx_push_fn lite_tx_push;
ob_store_tx_end_fn lite_tx_end;
ob_store_tx_writer_fn lite_tx_writer;
ob_store_tx_exec_fn lite_tx_exec;
ob_store_tx_native_fn lite_tx_native;

#endif
