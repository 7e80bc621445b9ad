/* SPDX-License-Identifier: MIT */
/*
 * Signatures of webhooks as the Standard Webhooks specification has them: the HMAC-SHA256
 * of "ID.TIMESTAMP.BODY" under a secret, in Base64, as "v1,...". Several secrets give
 * several signatures, so that a receiver can change its secret without a gap.
 */
#ifndef OB_SINK_HTTP_SIGN_H
#define OB_SINK_HTTP_SIGN_H

#include "base/buf.h"
#include "base/err.h"

enum {
	OB_HTTP_SECRETS_MAX = 8,
	OB_HTTP_SECRET_MIN_BYTES = 24,
	OB_HTTP_SECRET_MAX_BYTES = 64,
};

struct ob_http_secret {
	unsigned char bytes[OB_HTTP_SECRET_MAX_BYTES];
	size_t size;
};

struct ob_http_signer {
	struct ob_http_secret secrets[OB_HTTP_SECRETS_MAX];
	size_t count; /* 0: nothing is signed */
};

/*
 * Secrets as text, parted by spaces: "whsec_" and 24 to 64 bytes in Base64. Anything
 * else is OUTBOX_ECONFIG; the message does not repeat the secret.
 */
int ob_http_signer_init(struct ob_http_signer *signer, const char *secrets, struct ob_err *err);
/* Wipe the secrets. */
void ob_http_signer_done(struct ob_http_signer *signer);
/* Append "v1,... v1,..."; false when the library fails. */
bool ob_http_sign(const struct ob_http_signer *signer, const char *id, int64_t timestamp,
		  struct ob_str body, struct ob_buf *out);

#endif
