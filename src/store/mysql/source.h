/* SPDX-License-Identifier: MIT */
/* The table of the application's that is copied from, if the layout has one. */
#ifndef OB_STORE_MYSQL_SOURCE_H
#define OB_STORE_MYSQL_SOURCE_H

#include "store/mysql/conn.h"

/* Is it there, with columns that can be copied? */
int my_source_look(struct my_store *s, struct ob_err *err);
/*
 * Make the trigger if it is not there. Without the right to make one a user does not see it
 * either, so the start-up checks of a relay cannot ask for it.
 */
int my_source_attach(struct my_store *s, struct ob_err *err);
int my_source_sql(const struct ob_layout *layout, struct ob_buf *out, struct ob_err *err);

#endif
