/* SPDX-License-Identifier: MIT */
/*
 * Keys are Ed25519, written in base32 with a prefix and a CRC-16; a JWT is signed by the key of who
 * issues it. See docs.nats.io, "NKeys" and "JWT".
 */
#include "nats_jwt.h"

#include <check.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SEED = 18 << 3, RAW_MAX = 40, SIGNATURE = 64, JWT_MAX = 1024 };

/* ---- texts ----------------------------------------------------------- */

/* Bytes in digits of `bits` bits each, without padding. */
static void put_digits(const unsigned char *bytes, size_t n, const char *digits, unsigned bits,
		       char *out)
{
	uint32_t held = 0;
	unsigned count = 0;

	for (size_t i = 0; i < n; i++) {
		held = held << 8 | bytes[i];
		for (count += 8; count >= bits; count -= bits)
			*out++ = digits[held >> (count - bits) & ((1U << bits) - 1)];
	}
	if (count > 0)
		*out++ = digits[held << (bits - count) & ((1U << bits) - 1)];
	*out = '\0';
}

static void put_base64url(const void *bytes, size_t n, char *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	put_digits(bytes, n, digits, 6, out);
}

static uint16_t crc16(const unsigned char *bytes, size_t n)
{
	uint16_t crc = 0;

	for (size_t i = 0; i < n; i++) {
		crc ^= (uint16_t)(bytes[i] << 8);
		for (int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
	}
	return crc;
}

/* A prefix and 32 bytes, with their sum. */
static void put_key(const unsigned char *prefix, size_t prefix_size, const unsigned char *key,
		    char out[NATS_KEY_TEXT])
{
	unsigned char raw[RAW_MAX];
	size_t n = prefix_size + 32;

	memcpy(raw, prefix, prefix_size);
	memcpy(raw + prefix_size, key, 32);
	uint16_t crc = crc16(raw, n);
	raw[n++] = (unsigned char)(crc & 0xff);
	raw[n++] = (unsigned char)(crc >> 8);
	put_digits(raw, n, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 5, out);
}

/* ---- keys ------------------------------------------------------------ */

static EVP_PKEY *pkey_of(const struct nats_key *key)
{
	EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key->secret, 32);

	ck_assert_ptr_nonnull(pkey);
	return pkey;
}

void nats_key_make(struct nats_key *key, enum nats_key_kind kind)
{
	const unsigned char prefix[] = { (unsigned char)kind };
	const unsigned char seed_prefix[] = { (unsigned char)(SEED | kind >> 5),
					      (unsigned char)((kind & 31) << 3) };
	unsigned char public_key[32];
	size_t size = sizeof(public_key);

	ck_assert_int_eq(RAND_bytes(key->secret, 32), 1);
	EVP_PKEY *pkey = pkey_of(key);
	ck_assert_int_eq(EVP_PKEY_get_raw_public_key(pkey, public_key, &size), 1);
	EVP_PKEY_free(pkey);
	put_key(prefix, 1, public_key, key->public_text);
	put_key(seed_prefix, 2, key->secret, key->seed_text);
}

/* ---- JWTs ------------------------------------------------------------ */

/* What `by` says of `about`; `nats` is the part that is NATS's own. */
static void put_jwt(const struct nats_key *by, const struct nats_key *about, const char *nats,
		    char out[JWT_MAX])
{
	static const char header[] = "{\"typ\":\"JWT\",\"alg\":\"ed25519-nkey\"}";
	char claims[600];
	unsigned char signature[SIGNATURE];
	size_t size = sizeof(signature), n;
	EVP_PKEY *pkey = pkey_of(by);
	EVP_MD_CTX *md = EVP_MD_CTX_new();

	(void)snprintf(claims, sizeof(claims),
		       "{\"jti\":\"%.20s\",\"iat\":%lld,\"iss\":\"%s\",\"name\":\"test\","
		       "\"sub\":\"%s\",\"nats\":{%s,\"version\":2}}",
		       about->public_text, (long long)time(NULL), by->public_text,
		       about->public_text, nats);
	put_base64url(header, sizeof(header) - 1, out);
	n = strlen(out);
	out[n++] = '.';
	put_base64url(claims, strlen(claims), out + n);
	n = strlen(out);
	ck_assert_int_eq(EVP_DigestSignInit(md, NULL, NULL, NULL, pkey), 1);
	ck_assert_int_eq(EVP_DigestSign(md, signature, &size, (unsigned char *)out, n), 1);
	out[n++] = '.';
	put_base64url(signature, size, out + n);
	EVP_MD_CTX_free(md);
	EVP_PKEY_free(pkey);
}

void nats_jwt_make(struct nats_jwt *jwt)
{
	static const char limits[] =
		"\"type\":\"account\",\"limits\":{\"subs\":-1,\"data\":-1,\"payload\":-1,"
		"\"imports\":-1,\"exports\":-1,\"wildcards\":true,\"conn\":-1,\"leaf\":-1%s}";
	char operator_jwt[JWT_MAX], system_jwt[JWT_MAX], account_jwt[JWT_MAX], own[400];

	nats_key_make(&jwt->operator_key, NATS_KEY_OPERATOR);
	nats_key_make(&jwt->system, NATS_KEY_ACCOUNT);
	nats_key_make(&jwt->account, NATS_KEY_ACCOUNT);
	nats_key_make(&jwt->user, NATS_KEY_USER);
	put_jwt(&jwt->operator_key, &jwt->operator_key, "\"type\":\"operator\"", operator_jwt);
	(void)snprintf(own, sizeof(own), limits, "");
	put_jwt(&jwt->operator_key, &jwt->system, own, system_jwt);
	(void)snprintf(own, sizeof(own), limits,
		       ",\"mem_storage\":-1,\"disk_storage\":-1,\"streams\":-1,\"consumer\":-1");
	put_jwt(&jwt->operator_key, &jwt->account, own, account_jwt);
	ck_assert_int_lt(snprintf(jwt->config, sizeof(jwt->config),
				  "operator: \"%s\"\nsystem_account: %s\nresolver: MEMORY\n"
				  "resolver_preload: {\n%s: \"%s\"\n%s: \"%s\"\n}\n",
				  operator_jwt, jwt->system.public_text, jwt->system.public_text,
				  system_jwt, jwt->account.public_text, account_jwt),
			 (int)sizeof(jwt->config));
}

void nats_jwt_creds(const struct nats_key *account, const struct nats_key *user, const char *path)
{
	char text[JWT_MAX];
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	put_jwt(account, user,
		"\"type\":\"user\",\"pub\":{},\"sub\":{},\"subs\":-1,\"data\":-1,\"payload\":-1",
		text);
	(void)fprintf(file,
		      "-----BEGIN NATS USER JWT-----\n%s\n------END NATS USER JWT------\n\n"
		      "-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n",
		      text, user->seed_text);
	ck_assert_int_eq(fclose(file), 0);
}
