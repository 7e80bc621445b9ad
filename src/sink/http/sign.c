/* SPDX-License-Identifier: MIT */
/* HMAC and Base64 by OpenSSL. */
#include "sink/http/sign.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>

static const char prefix[] = "whsec_";

enum {
	PREFIX = sizeof(prefix) - 1,
	TEXT_MAX = (OB_HTTP_SECRET_MAX_BYTES + 2) / 3 * 4,
	MAC_SIZE = 32,
};

static bool is_base64(struct ob_str text)
{
	size_t pad = text.n > 0 && text.p[text.n - 1] == '=';

	if (text.n == 0 || text.n % 4 != 0 || text.n > TEXT_MAX)
		return false;
	pad += pad && text.p[text.n - 2] == '=';
	for (size_t i = 0; i < text.n - pad; i++) {
		unsigned char c = (unsigned char)text.p[i];
		unsigned char letter = c | 0x20;

		if (!(letter >= 'a' && letter <= 'z') && !(c >= '0' && c <= '9') && c != '+' &&
		    c != '/')
			return false;
	}
	return true;
}

static bool decode(struct ob_str text, struct ob_http_secret *ret)
{
	unsigned char bytes[TEXT_MAX / 4 * 3];

	if (text.n <= PREFIX || memcmp(text.p, prefix, PREFIX) != 0)
		return false;
	text = (struct ob_str){ text.p + PREFIX, text.n - PREFIX };
	if (!is_base64(text) ||
	    EVP_DecodeBlock(bytes, (const unsigned char *)text.p, (int)text.n) < 0)
		return false;
	/* The library does not count the padding. */
	size_t pad = (text.p[text.n - 1] == '=') + (text.p[text.n - 2] == '=');
	size_t size = text.n / 4 * 3 - pad;
	bool fits = size >= OB_HTTP_SECRET_MIN_BYTES && size <= OB_HTTP_SECRET_MAX_BYTES;
	if (fits) {
		memcpy(ret->bytes, bytes, size);
		ret->size = size;
	}
	OPENSSL_cleanse(bytes, sizeof(bytes));
	return fits;
}

int ob_http_signer_init(struct ob_http_signer *signer, const char *secrets, struct ob_err *err)
{
	*signer = (struct ob_http_signer){ 0 };
	for (secrets += strspn(secrets, " "); *secrets; secrets += strspn(secrets, " ")) {
		struct ob_str text = { secrets, strcspn(secrets, " ") };

		if (signer->count == OB_HTTP_SECRETS_MAX)
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "secret: there are more than %d", OB_HTTP_SECRETS_MAX);
		if (!decode(text, &signer->secrets[signer->count]))
			return ob_err_set(
				err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				"secret: number %zu is not whsec_ and %d to %d bytes in "
				"Base64 (make one: echo whsec_$(openssl rand -base64 32))",
				signer->count + 1, OB_HTTP_SECRET_MIN_BYTES,
				OB_HTTP_SECRET_MAX_BYTES);
		signer->count++;
		secrets += text.n;
	}
	return 0;
}

void ob_http_signer_done(struct ob_http_signer *signer)
{
	OPENSSL_cleanse(signer, sizeof(*signer));
}

static bool add_one(EVP_MAC_CTX *ctx, const struct ob_http_secret *secret, struct ob_str head,
		    struct ob_str body, struct ob_buf *out)
{
	char digest[] = "SHA256";
	const OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string("digest", digest, 0),
				      OSSL_PARAM_construct_end() };
	unsigned char mac[MAC_SIZE], text[MAC_SIZE * 2];
	size_t size = 0;

	if (!EVP_MAC_init(ctx, secret->bytes, secret->size, params) ||
	    !EVP_MAC_update(ctx, (const unsigned char *)head.p, head.n) ||
	    (body.n > 0 && !EVP_MAC_update(ctx, (const unsigned char *)body.p, body.n)) ||
	    !EVP_MAC_final(ctx, mac, &size, sizeof(mac)) || size != MAC_SIZE)
		return false;
	int n = EVP_EncodeBlock(text, mac, MAC_SIZE);
	ob_buf_adds(out, out->len > 0 ? " v1," : "v1,");
	ob_buf_add(out, (struct ob_str){ (const char *)text, (size_t)n });
	return true;
}

bool ob_http_sign(const struct ob_http_signer *signer, const char *id, int64_t timestamp,
		  struct ob_str body, struct ob_buf *out)
{
	char head[100];
	int n = snprintf(head, sizeof(head), "%s.%lld.", id, (long long)timestamp);
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
	bool ok = ctx != NULL;

	for (size_t i = 0; i < signer->count && ok; i++)
		ok = add_one(ctx, &signer->secrets[i], (struct ob_str){ head, (size_t)n }, body,
			     out);
	EVP_MAC_CTX_free(ctx);
	EVP_MAC_free(mac);
	return ok && !out->failed;
}
