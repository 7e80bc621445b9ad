/* SPDX-License-Identifier: MIT */
/* Certificates of a private authority, for servers that tests start with TLS. */
#ifndef OB_TESTS_CERTS_H
#define OB_TESTS_CERTS_H

enum { CERTS_PATH = 96 };

/*
 * Make server.crt and server.key in that directory, for the name localhost and not for
 * 127.0.0.1. `ca` is the path of the authority's own certificate, `other_ca` of one that signed
 * nothing. Failures end the test.
 */
void certs_make(const char *dir, char ca[CERTS_PATH], char other_ca[CERTS_PATH]);

#endif
