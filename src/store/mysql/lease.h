/* SPDX-License-Identifier: MIT */
/* Workers and leases. */
#ifndef OB_STORE_MYSQL_LEASE_H
#define OB_STORE_MYSQL_LEASE_H

#include "store/mysql/conn.h"

ob_store_beat_fn my_beat;
ob_store_reap_fn my_reap;
ob_store_leave_fn my_leave;
ob_store_workers_fn my_workers;
ob_store_seed_fn my_seed;
ob_store_take_fn my_take;
ob_store_renew_fn my_renew;
ob_store_release_fn my_release;
ob_store_partitions_fn my_partitions;
ob_store_free_leases_fn my_free_leases;

#endif
