/* SPDX-License-Identifier: MIT */
/*
 * Signatures of webhooks as the Standard Webhooks specification has them, of "ID.TIMESTAMP.BODY" in
 * Base64: the HMAC-SHA256 under a secret ("v1,..."), or the Ed25519 signature by a private key
 * ("v1a,..."). Several secrets give several signatures, so that a receiver can change its secret
 * without a gap.
 */
#ifndef OB_SINK_HTTP_SIGN_H
#define OB_SINK_HTTP_SIGN_H

#include "base/buf.h"
#include "base/err.h"

enum {
	OB_HTTP_SECRETS_MAX = 8,
	OB_HTTP_SECRET_MIN_BYTES = 24,
	OB_HTTP_SECRET_MAX_BYTES = 64,
	OB_HTTP_KEY_BYTES = 32, /* of a private key; its public key may follow */
};

struct ob_http_secret {
	unsigned char bytes[OB_HTTP_SECRET_MAX_BYTES];
	size_t size;
	bool is_key; /* a private key */
};

struct ob_http_signer {
	struct ob_http_secret secrets[OB_HTTP_SECRETS_MAX];
	size_t count; /* 0: nothing is signed */
};

/*
 * Secrets as text, separated by spaces: "whsec_" and 24 to 64 bytes in Base64, or "whsk_" and an
 * Ed25519 private key of 32 bytes, alone or followed by its public key. Anything else is
 * OUTBOX_ECONFIG; the message does not repeat the secret.
 */
int ob_http_signer_init(struct ob_http_signer *signer, const char *secrets, struct ob_err *err);
/* Wipe the secrets. */
void ob_http_signer_done(struct ob_http_signer *signer);
/* Append "v1,... v1a,..."; false when the library fails. */
bool ob_http_sign(const struct ob_http_signer *signer, const char *id, int64_t timestamp,
		  struct ob_str body, struct ob_buf *out);

#endif
