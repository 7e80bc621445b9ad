/* SPDX-License-Identifier: MIT */
/* Tokens are compared as hashes in constant time; a session is its role and end, signed. */
#include "monitor/auth.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { MAC = 32, MAC_HEX = 64, NONCE = 8, NONCE_HEX = 16, HOST_MAX = 256 };

static void hash_token(const char *token, unsigned char out[OB_TOKEN_HASH])
{
	(void)EVP_Digest(token, strlen(token), out, NULL, EVP_sha256(), NULL);
}

bool ob_auth_init(struct ob_auth *auth, const struct ob_config_monitor *conf,
		  const unsigned char *key)
{
	*auth = (struct ob_auth){ .open = true };
	for (int role = 0; role < OB_MONITOR_ROLES; role++) {
		if (!conf->tokens[role])
			continue;
		hash_token(conf->tokens[role], auth->tokens[role]);
		auth->has[role] = true;
		auth->open = false;
	}
	if (!key)
		return RAND_bytes(auth->key, sizeof(auth->key)) == 1;
	memcpy(auth->key, key, sizeof(auth->key));
	return true;
}

enum ob_role ob_auth_token(const struct ob_auth *auth, const char *token)
{
	unsigned char hash[OB_TOKEN_HASH];
	enum ob_role role = OB_ROLE_NONE;

	hash_token(token, hash);
	for (int i = 0; i < OB_MONITOR_ROLES; i++) {
		bool same = CRYPTO_memcmp(hash, auth->tokens[i], sizeof(hash)) == 0;

		if (same && auth->has[i])
			role = i == OB_MONITOR_OPERATOR ? OB_ROLE_OPERATOR : OB_ROLE_VIEWER;
	}
	OPENSSL_cleanse(hash, sizeof(hash));
	return role;
}

static void add_hex(char *out, const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)snprintf(out + i * 2, 3, "%02x", bytes[i]);
}

static void sign_text(const struct ob_auth *auth, const char *text, char out[MAC_HEX + 1])
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	(void)HMAC(EVP_sha256(), auth->key, sizeof(auth->key), (const unsigned char *)text,
		   strlen(text), mac, &n);
	add_hex(out, mac, MAC);
}

void ob_auth_sign(const struct ob_auth *auth, enum ob_role role, int64_t until_us,
		  char out[OB_SESSION_SIZE])
{
	unsigned char nonce[NONCE] = { 0 };
	char hex[NONCE_HEX + 1], mac[MAC_HEX + 1], text[64];

	(void)RAND_bytes(nonce, sizeof(nonce));
	add_hex(hex, nonce, sizeof(nonce));
	(void)snprintf(text, sizeof(text), "%d.%" PRId64 ".%s", (int)role, until_us, hex);
	sign_text(auth, text, mac);
	(void)snprintf(out, OB_SESSION_SIZE, "%s.%s", text, mac);
}

enum ob_role ob_auth_session(const struct ob_auth *auth, const char *session, int64_t now_us)
{
	const char *dot = strrchr(session, '.');
	char text[64], mac[MAC_HEX + 1];

	if (!dot || (size_t)(dot - session) >= sizeof(text) || strlen(dot + 1) != MAC_HEX)
		return OB_ROLE_NONE;
	(void)snprintf(text, sizeof(text), "%.*s", (int)(dot - session), session);
	sign_text(auth, text, mac);
	if (CRYPTO_memcmp(mac, dot + 1, MAC_HEX) != 0)
		return OB_ROLE_NONE;
	/* It is ours from here on. */
	int64_t until_us = strtoll(text + 2, NULL, 10);
	if (until_us <= now_us)
		return OB_ROLE_NONE;
	return text[0] == '2' ? OB_ROLE_OPERATOR : OB_ROLE_VIEWER;
}

const char *ob_role_name(enum ob_role role)
{
	return role == OB_ROLE_OPERATOR ? "operator" : role == OB_ROLE_VIEWER ? "viewer" : "none";
}

bool ob_list_has(const char *list, const char *word, size_t n)
{
	while (list && *list) {
		size_t skip = strspn(list, ", ");
		size_t len = strcspn(list + skip, ", ");

		if (len == n && n && strncasecmp(list + skip, word, n) == 0)
			return true;
		list += skip + len;
	}
	return false;
}

/* The name without its port and brackets into `out`; false: it is no host. */
static bool cut_port(const char *host, char out[HOST_MAX])
{
	bool bracket = host[0] == '[';
	size_t n = bracket ? strcspn(host, "]") : strcspn(host, ":");
	const char *rest = host + n + (bracket && host[n]);

	if (n == 0 || n >= HOST_MAX || (bracket && !host[n]))
		return false;
	if (*rest && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")]))
		return false;
	(void)snprintf(out, HOST_MAX, "%.*s", (int)(n - bracket), host + bracket);
	return out[0] != '\0';
}

bool ob_host_allowed(const char *host, bool local, const char *hosts)
{
	struct in6_addr six;
	struct in_addr four;
	char name[HOST_MAX];

	if (!host || !cut_port(host, name))
		return false;
	if (ob_list_has(hosts, name, strlen(name)))
		return true;
	if (strcasecmp(name, "localhost") == 0)
		return true;
	/* An address cannot be made to stand for another, as a name can. */
	if (inet_pton(AF_INET, name, &four) == 1)
		return !local || (ntohl(four.s_addr) >> 24) == 127;
	if (inet_pton(AF_INET6, name, &six) == 1)
		return !local || IN6_IS_ADDR_LOOPBACK(&six);
	return false;
}

bool ob_origin_matches(const char *origin, const char *host)
{
	const char *at = strstr(origin, "://");

	if (!host || !at ||
	    (strncmp(origin, "http://", 7) != 0 && strncmp(origin, "https://", 8) != 0))
		return false;
	return strcasecmp(at + 3, host) == 0;
}
