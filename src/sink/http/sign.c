/* SPDX-License-Identifier: MIT */
/* HMAC, Ed25519 and Base64 by OpenSSL. */
#include "sink/http/sign.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>

static const char secret_prefix[] = "whsec_", key_prefix[] = "whsk_";

enum {
	TEXT_MAX = (OB_HTTP_SECRET_MAX_BYTES + 2) / 3 * 4,
	MAC_SIZE = 32,
	SIGNATURE_SIZE = 64,
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

/* Cut a prefix off. */
static bool take_prefix(struct ob_str *text, const char *prefix)
{
	size_t n = strlen(prefix);

	if (text->n <= n || memcmp(text->p, prefix, n) != 0)
		return false;
	*text = (struct ob_str){ text->p + n, text->n - n };
	return true;
}

static EVP_PKEY *private_key(const unsigned char bytes[OB_HTTP_KEY_BYTES])
{
	return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, bytes, OB_HTTP_KEY_BYTES);
}

/* A private key; the public one after it must be its own. */
static bool is_private_key(const unsigned char *bytes, size_t size)
{
	unsigned char public[OB_HTTP_KEY_BYTES];
	size_t n = sizeof(public);

	if (size != OB_HTTP_KEY_BYTES && size != (size_t)2 * OB_HTTP_KEY_BYTES)
		return false;
	EVP_PKEY *key = private_key(bytes);
	bool ok = key && EVP_PKEY_get_raw_public_key(key, public, &n) == 1 && n == sizeof(public) &&
		  (size == OB_HTTP_KEY_BYTES ||
		   memcmp(public, bytes + OB_HTTP_KEY_BYTES, sizeof(public)) == 0);
	EVP_PKEY_free(key);
	return ok;
}

static bool decode(struct ob_str text, struct ob_http_secret *ret)
{
	unsigned char bytes[TEXT_MAX / 4 * 3];

	ret->is_key = take_prefix(&text, key_prefix);
	if (!ret->is_key && !take_prefix(&text, secret_prefix))
		return false;
	if (!is_base64(text) ||
	    EVP_DecodeBlock(bytes, (const unsigned char *)text.p, (int)text.n) < 0)
		return false;
	/* The library does not count the padding. */
	size_t pad = (text.p[text.n - 1] == '=') + (text.p[text.n - 2] == '=');
	size_t size = text.n / 4 * 3 - pad;
	bool fits = ret->is_key
			    ? is_private_key(bytes, size)
			    : size >= OB_HTTP_SECRET_MIN_BYTES && size <= OB_HTTP_SECRET_MAX_BYTES;
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
				"Base64 (make one: echo whsec_$(openssl rand -base64 32)), nor "
				"whsk_ and an Ed25519 private key in Base64",
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

static void add_text(struct ob_buf *out, const char *version, const unsigned char *bytes,
		     size_t size)
{
	unsigned char text[SIGNATURE_SIZE * 2];
	int n = EVP_EncodeBlock(text, bytes, (int)size);

	ob_buf_addf(out, "%s%s,", out->len > 0 ? " " : "", version);
	ob_buf_add(out, (struct ob_str){ (const char *)text, (size_t)n });
}

/* Ed25519 takes the whole text at once. */
static bool add_asymmetric(const struct ob_http_secret *secret, struct ob_str head,
			   struct ob_str body, struct ob_buf *out)
{
	unsigned char signature[SIGNATURE_SIZE];
	size_t size = sizeof(signature);
	struct ob_buf all = OB_BUF_INIT(SIZE_MAX / 2);

	ob_buf_add(&all, head);
	ob_buf_add(&all, body);
	EVP_PKEY *key = private_key(secret->bytes);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = key && ctx && !all.failed &&
		  EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
		  EVP_DigestSign(ctx, signature, &size, (const unsigned char *)ob_buf_str(&all),
				 all.len) == 1 &&
		  size == SIGNATURE_SIZE;
	if (ok)
		add_text(out, "v1a", signature, size);
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(key);
	ob_buf_done(&all);
	return ok;
}

static bool add_symmetric(EVP_MAC_CTX *ctx, const struct ob_http_secret *secret, struct ob_str head,
			  struct ob_str body, struct ob_buf *out)
{
	char digest[] = "SHA256";
	const OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string("digest", digest, 0),
				      OSSL_PARAM_construct_end() };
	unsigned char mac[MAC_SIZE];
	size_t size = 0;

	if (!EVP_MAC_init(ctx, secret->bytes, secret->size, params) ||
	    !EVP_MAC_update(ctx, (const unsigned char *)head.p, head.n) ||
	    (body.n > 0 && !EVP_MAC_update(ctx, (const unsigned char *)body.p, body.n)) ||
	    !EVP_MAC_final(ctx, mac, &size, sizeof(mac)) || size != MAC_SIZE)
		return false;
	add_text(out, "v1", mac, MAC_SIZE);
	return true;
}

bool ob_http_sign(const struct ob_http_signer *signer, const char *id, int64_t timestamp,
		  struct ob_str body, struct ob_buf *out)
{
	char head[100];
	int n = snprintf(head, sizeof(head), "%s.%lld.", id, (long long)timestamp);
	struct ob_str first = { head, (size_t)n };
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
	bool ok = ctx != NULL;

	for (size_t i = 0; i < signer->count && ok; i++) {
		const struct ob_http_secret *secret = &signer->secrets[i];

		ok = secret->is_key ? add_asymmetric(secret, first, body, out)
				    : add_symmetric(ctx, secret, first, body, out);
	}
	EVP_MAC_CTX_free(ctx);
	EVP_MAC_free(mac);
	return ok && !out->failed;
}
