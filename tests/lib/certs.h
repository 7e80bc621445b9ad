/* SPDX-License-Identifier: MIT */
/* Certificates of a test's own servers, good for two days. Failures end the test. */
#ifndef OB_TESTS_CERTS_H
#define OB_TESTS_CERTS_H

enum { CERTS_PATH = 96 };

/*
 * Make server.crt and server.key in `dir`, for the name localhost, and two that sign: `ca`
 * signed the server's, `other_ca` did not. Both are paths.
 */
void certs_make(const char *dir, char ca[CERTS_PATH], char other_ca[CERTS_PATH]);

#endif
