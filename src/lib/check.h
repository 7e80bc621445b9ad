/* SPDX-License-Identifier: MIT */
/* Is a message fit to be stored? Everything that can be known before SQL. */
#ifndef OB_LIB_CHECK_H
#define OB_LIB_CHECK_H

#include "lib/driver.h"

/*
 * Check one message and resolve its sizes and its own id into *ret_row, which
 * is written only on success; *ret_has_id says whether it brought one. On
 * failure *err holds the status and a line that names the field, without the index.
 */
int ob_check_message(const struct outbox_message *message, const struct ob_check_rules *rules,
		     struct ob_push_row *ret_row, bool *ret_has_id, struct outbox_error *err);

/* Only the JSON checks, whatever is switched off. 0 when all is valid. */
int ob_check_json(const struct ob_push_row *row, unsigned flags, struct outbox_error *err);

#endif
