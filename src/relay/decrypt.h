/* SPDX-License-Identifier: MIT */
/*
 * Payloads that were encrypted for a data subject (outbox/crypt.h), opened as they are read: by a
 * relay that has the master keys. It works on the reading connection, in the thread that reads.
 */
#ifndef OB_RELAY_DECRYPT_H
#define OB_RELAY_DECRYPT_H

#include "store/store.h"

/* The header of a message whose subject was forgotten; it goes out without a payload. */
#define OB_FORGOTTEN_HEADER "outbox-forgotten"

struct ob_decrypt;

/* `keys`: "ID:BASE64 ...". OUTBOX_ECONFIG when it is no keyring, and why. */
int ob_decrypt_new(const char *keys, struct ob_decrypt **ret, struct ob_err *err);
/* NULL is allowed. No store may use it any more. */
void ob_decrypt_free(struct ob_decrypt *decrypt);
/* From now on every read of the store gives plain payloads. */
void ob_decrypt_attach(const struct ob_decrypt *decrypt, struct ob_store *store);

#endif
