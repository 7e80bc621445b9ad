/* SPDX-License-Identifier: MIT */
/*
 * Payloads encrypted for a data subject, so that they can be forgotten although the log never
 * changes: each subject has a key of its own in the table outbox_keys, wrapped by a master key
 * of yours. Without that row nothing of the subject can be read any more, in backups neither. Link
 * with liboutbox-crypt. AES-256-GCM, by OpenSSL.
 */
#ifndef OUTBOX_CRYPT_H
#define OUTBOX_CRYPT_H

#include <outbox/serialize.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OUTBOX_MASTER_KEY_SIZE 32

/* The master keys of a program. The first wraps new keys, the others only unwrap old ones. */
typedef struct outbox_keyring outbox_keyring;

struct outbox_master_key {
	const char *id;           /* "2026-05": stored with what it wraps; no secret */
	const unsigned char *key; /* OUTBOX_MASTER_KEY_SIZE bytes; copied */
};

OUTBOX_API OUTBOX_NODISCARD int outbox_keyring_new(const struct outbox_master_key *keys,
						   size_t count, outbox_keyring **ret_ring,
						   struct outbox_error *err);
/* The same of a text, "2026-05:BASE64 2025-01:BASE64", as a secret store or the environment has it.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_keyring_parse(const char *text, outbox_keyring **ret_ring,
						     struct outbox_error *err);
/* Overwrites the keys; NULL is allowed. */
OUTBOX_API void outbox_keyring_free(outbox_keyring *ring);

/*
 * Encrypt a payload for a subject; *out gets a JSON object to append as the payload. A subject
 * without a key gets one, in the open transaction. A master key that cannot unwrap the subject's
 * key (it is the wrong one, or it was rotated away) is OUTBOX_EKEY, before anything is written.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_encrypt(outbox *ob, const outbox_keyring *ring,
					       const char *subject, const void *payload,
					       size_t payload_size, outbox_text *out,
					       struct outbox_error *err);

struct outbox_plain {
	size_t size;
	const void *payload; /* of the event; NULL when it is forgotten */
	size_t payload_size;
	int encrypted;       /* 1: it was */
	int forgotten;       /* 1: its key is gone, for ever */
	const char *subject; /* of an encrypted one */
};

/*
 * Read a payload. One that is no envelope of ours comes back as it is. One whose key was destroyed
 * is no error: `forgotten` is set, and there is no payload. A wrong master key, or an envelope that
 * was changed, is OUTBOX_EKEY. What *ret points to is the payload or in `memory`.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_decrypt(outbox *ob, const outbox_keyring *ring,
					       const void *payload, size_t payload_size,
					       outbox_text *memory, struct outbox_plain *ret,
					       struct outbox_error *err);

/* Destroy the key of a subject, in the open transaction. 1: it had one; 0: it had none. */
OUTBOX_API OUTBOX_NODISCARD int outbox_forget(outbox *ob, const char *subject,
					      struct outbox_error *err);
/*
 * Wrap every key that another master key wraps by the first one of the ring, in the open
 * transaction; the log does not change. *ret_count: how many. Afterwards the others can be dropped.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_keys_rotate(outbox *ob, const outbox_keyring *ring,
						   size_t *ret_count, struct outbox_error *err);

#ifdef __cplusplus
}
#endif
#endif
