/* SPDX-License-Identifier: MIT */
/*
 * TLS in front of a server that has none: it ends there, and what is in it goes on in plain text.
 * It runs in threads of its own. Failures of its own end the test; handshakes may fail.
 */
#ifndef OB_TESTS_TLS_FRONT_H
#define OB_TESTS_TLS_FRONT_H

struct tls_front;

/*
 * Listen on `port` of 127.0.0.1 (0: a free one) with DIR/NAME.crt and DIR/NAME.key, for what
 * listens on `server_port`.
 */
struct tls_front *tls_front_new(const char *dir, const char *name, int port, int server_port);
int tls_front_port(const struct tls_front *front);
/* All connections end. */
void tls_front_free(struct tls_front *front);

#endif
