/* SPDX-License-Identifier: MIT */
/* The SQLite store: noticing the commits of others. */
#ifndef OB_STORE_SQLITE_WAKE_H
#define OB_STORE_SQLITE_WAKE_H

#include "store/sqlite/conn.h"

/* Close what wake_fd made. */
void lite_unwatch(struct lite_store *s);
/* Watch the files of the database that is open now; nothing unless wake_fd was asked for. */
void lite_watch(struct lite_store *s);
/* A number that changes when another connection commits. */
int lite_data_version(struct lite_store *s, int64_t *ret_version, struct ob_err *err);

ob_store_wake_fd_fn lite_wake_fd;
ob_store_wake_check_fn lite_wake_check;

#endif
