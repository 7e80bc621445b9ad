/* SPDX-License-Identifier: MIT */
/* AES-256-GCM: seal and open, with a random nonce in front and the tag behind. */
#ifndef OB_LIB_CRYPT_AEAD_H
#define OB_LIB_CRYPT_AEAD_H

#include "base/buf.h"

enum { OB_KEY_SIZE = 32, OB_NONCE_SIZE = 12, OB_TAG_SIZE = 16, OB_SEAL_SIZE = 28 };

/* Random bytes; false: there are none to be had. */
bool ob_aead_random(unsigned char *out, size_t size);
/* `out` has room for text.n + OB_SEAL_SIZE bytes. `about` is bound to it and not stored. */
bool ob_aead_seal(const unsigned char key[OB_KEY_SIZE], struct ob_str about, struct ob_str text,
		  unsigned char *out);
/* The opposite; `out` has room for sealed.n - OB_SEAL_SIZE. False: another key, or it was changed.
 */
bool ob_aead_open(const unsigned char key[OB_KEY_SIZE], struct ob_str about, struct ob_str sealed,
		  unsigned char *out);
/* Overwrite a secret in a way that no compiler leaves out. */
void ob_aead_wipe(void *secret, size_t size);

#endif
