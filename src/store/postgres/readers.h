/* SPDX-License-Identifier: MIT */
/* Readers of the PostgreSQL store. */
#ifndef OB_STORE_POSTGRES_READERS_H
#define OB_STORE_POSTGRES_READERS_H

#include "base/err.h"

/* There is none of that name. */
int pg_no_reader(const char *reader, struct ob_err *err);

#endif
