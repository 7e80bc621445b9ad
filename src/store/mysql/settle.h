/* SPDX-License-Identifier: MIT */
/* Recording progress and exceptions. */
#ifndef OB_STORE_MYSQL_SETTLE_H
#define OB_STORE_MYSQL_SETTLE_H

#include "store/mysql/conn.h"

ob_store_settle_fn my_settle;

#endif
