/* SPDX-License-Identifier: MIT */
/* The inbox of each database, for its table of operations; the contract is in lib/driver.h. */
#ifndef OB_LIB_INBOX_DRIVERS_H
#define OB_LIB_INBOX_DRIVERS_H

#include "outbox/outbox.h"

#include <stdbool.h>

int ob_sqlite_inbox(void *self, const char *consumer, const char *id, bool *ret_new,
		    struct outbox_error *err);
int ob_postgres_inbox(void *self, const char *consumer, const char *id, bool *ret_new,
		      struct outbox_error *err);
int ob_mysql_inbox(void *self, const char *consumer, const char *id, bool *ret_new,
		   struct outbox_error *err);

#endif
