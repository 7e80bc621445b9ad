/* SPDX-License-Identifier: MIT */
/*
 * Who may do what at a NATS server by JWTs: an operator, its accounts, a user, made for one test.
 * Failures end the test.
 */
#ifndef OB_TESTS_NATS_JWT_H
#define OB_TESTS_NATS_JWT_H

#include <stddef.h>

/* What a key is for: the first letter of its public text. */
enum nats_key_kind { NATS_KEY_ACCOUNT = 0, NATS_KEY_OPERATOR = 14 << 3, NATS_KEY_USER = 20 << 3 };

enum { NATS_KEY_TEXT = 64 };

struct nats_key {
	unsigned char secret[32];
	char public_text[NATS_KEY_TEXT], seed_text[NATS_KEY_TEXT];
};

struct nats_jwt {
	struct nats_key operator_key, system, account, user;
	char config[4096]; /* lines for the server's configuration */
};

void nats_key_make(struct nats_key *key, enum nats_key_kind kind);
/* An operator with an account that has JetStream, and a user's key. */
void nats_jwt_make(struct nats_jwt *jwt);
/* Write a file of credentials for the user, signed by that account. */
void nats_jwt_creds(const struct nats_key *account, const struct nats_key *user, const char *path);

#endif
