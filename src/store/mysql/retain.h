/* SPDX-License-Identifier: MIT */
/* Removing what every reader has behind it. */
#ifndef OB_STORE_MYSQL_RETAIN_H
#define OB_STORE_MYSQL_RETAIN_H

#include "store/mysql/conn.h"

ob_store_retain_fn my_retain;

#endif
