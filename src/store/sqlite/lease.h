/* SPDX-License-Identifier: MIT */
/* Workers and leases of the SQLite store. */
#ifndef OB_STORE_SQLITE_LEASE_H
#define OB_STORE_SQLITE_LEASE_H

#include "store/sqlite/conn.h"

/* Make the lease rows that are missing, and drop those above the count; inside a write transaction.
 * Returns the count. */
int lite_seed_leases(struct lite_store *s, const char *reader, struct ob_err *err);

ob_store_beat_fn lite_beat;
ob_store_reap_fn lite_reap;
ob_store_leave_fn lite_leave;
ob_store_workers_fn lite_workers;
ob_store_seed_fn lite_seed;
ob_store_take_fn lite_take;
ob_store_renew_fn lite_renew;
ob_store_release_fn lite_release;
ob_store_partitions_fn lite_partitions;
ob_store_free_leases_fn lite_free_leases;

#endif
