/* SPDX-License-Identifier: MIT */
/* Master keys, and the keys of subjects that they wrap. */
#ifndef OB_LIB_CRYPT_KEYRING_H
#define OB_LIB_CRYPT_KEYRING_H

#include "lib/crypt/aead.h"
#include "lib/driver.h"
#include "outbox/crypt.h"

enum { OB_MASTER_ID_MAX = 64, OB_KEYRING_MAX = 64, OB_KEY_ID_SIZE = 40, OB_WRAPPED_SIZE = 96 };

struct outbox_keyring {
	struct {
		char id[OB_MASTER_ID_MAX + 1];
		unsigned char key[OB_KEY_SIZE];
	} keys[OB_KEYRING_MAX];
	size_t count;
};

/* A subject's key, open. */
struct ob_subject_key {
	char id[OB_KEY_ID_SIZE];
	unsigned char key[OB_KEY_SIZE];
};

/* The key of a subject: 1, 0 if it has none, or OUTBOX_EKEY. */
int ob_subject_key_find(outbox *ob, const outbox_keyring *ring, const char *subject,
			struct ob_subject_key *ret, struct outbox_error *err);
/* The same; one that is not there is made. */
int ob_subject_key_make(outbox *ob, const outbox_keyring *ring, const char *subject,
			struct ob_subject_key *ret, struct outbox_error *err);

#endif
