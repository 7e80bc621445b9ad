/* SPDX-License-Identifier: MIT */
/* The MySQL store under store/sql. */
#ifndef OB_STORE_MYSQL_DRIVER_H
#define OB_STORE_MYSQL_DRIVER_H

#include "store/mysql/sql.h"

extern const struct ob_sql_driver my_driver;

void my_run_free(struct my_run *run);

#endif
