/* SPDX-License-Identifier: MIT */
/* AES-256-GCM by OpenSSL. */
#include "lib/crypt/aead.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

bool ob_aead_random(unsigned char *out, size_t size)
{
	return size <= INT_MAX && RAND_bytes(out, (int)size) == 1;
}

void ob_aead_wipe(void *secret, size_t size)
{
	OPENSSL_cleanse(secret, size);
}

static const unsigned char *bytes_of(struct ob_str s)
{
	return (const unsigned char *)(s.p ? s.p : "");
}

bool ob_aead_seal(const unsigned char key[OB_KEY_SIZE], struct ob_str about, struct ob_str text,
		  unsigned char *out)
{
	unsigned char *nonce = out, *body = out + OB_NONCE_SIZE, *tag = body + text.n;
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int n = 0;
	bool ok = c && text.n <= INT_MAX && about.n <= INT_MAX &&
		  ob_aead_random(nonce, OB_NONCE_SIZE) &&
		  EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
		  EVP_EncryptUpdate(c, NULL, &n, bytes_of(about), (int)about.n) == 1 &&
		  EVP_EncryptUpdate(c, body, &n, bytes_of(text), (int)text.n) == 1 &&
		  EVP_EncryptFinal_ex(c, body + n, &n) == 1 &&
		  EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, OB_TAG_SIZE, tag) == 1;

	EVP_CIPHER_CTX_free(c);
	return ok;
}

bool ob_aead_open(const unsigned char key[OB_KEY_SIZE], struct ob_str about, struct ob_str sealed,
		  unsigned char *out)
{
	unsigned char tag[OB_TAG_SIZE];
	int n = 0, m = 0;

	if (sealed.n < OB_SEAL_SIZE || sealed.n > INT_MAX)
		return false;
	size_t size = sealed.n - OB_SEAL_SIZE;
	const unsigned char *nonce = bytes_of(sealed), *body = nonce + OB_NONCE_SIZE;
	memcpy(tag, body + size, OB_TAG_SIZE);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	bool ok = c && EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
		  EVP_DecryptUpdate(c, NULL, &n, bytes_of(about), (int)about.n) == 1 &&
		  EVP_DecryptUpdate(c, out, &n, body, (int)size) == 1 &&
		  EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, OB_TAG_SIZE, tag) == 1 &&
		  EVP_DecryptFinal_ex(c, out + n, &m) == 1;

	EVP_CIPHER_CTX_free(c);
	if (!ok && size > 0)
		ob_aead_wipe(out, size);
	return ok;
}
