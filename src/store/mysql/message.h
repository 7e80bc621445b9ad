/* SPDX-License-Identifier: MIT */
/* Rows of the log as messages. */
#ifndef OB_STORE_MYSQL_MESSAGE_H
#define OB_STORE_MYSQL_MESSAGE_H

#include "store/mysql/sql.h"
#include "store/sql/message.h"

/* The message of the row on which the packet stands; its texts are the packet's. */
int my_read_message(const struct my_packet *p, struct ob_message *ret_message, struct ob_err *err);
/* Append a copy. */
int my_add_message(struct ob_batch *batch, const struct ob_message *from, struct ob_err *err);

#endif
