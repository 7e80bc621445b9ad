/* SPDX-License-Identifier: MIT */
/*
 * A NATS server of one test, with JetStream: private directory, free port on 127.0.0.1, TLS on
 * request. It ends with the test's process, however that ends. Failures end the test.
 * OUTBOX_TEST_NATS names the program; without it the installed one runs.
 */
#ifndef OB_TESTS_NATS_SERVER_H
#define OB_TESTS_NATS_SERVER_H

#include "certs.h"

#include <nats/nats.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct nats_server {
	/* in */
	const char *config; /* further lines for its configuration, or NULL */
	const char *login;  /* "user:password@" of the client that looks; NULL: none is needed */
	const char *creds;  /* or its file of credentials */
	bool tls;           /* demands TLS, with certificates of its own */
	/* out */
	pid_t pid;
	char dir[64];
	int port;
	char ca[CERTS_PATH]; /* tls: the certificate that signed the server's */
	char other_ca[CERTS_PATH];
	natsConnection *client; /* to look at what is stored; reconnects by itself */
	jsCtx *js;
};

/* NULL, or why there is none to start: then the suite is skipped. */
const char *nats_server_missing(void);
/* Start and wait until it answers. */
void nats_server_start(struct nats_server *server);
/* SIGKILL and gone; its streams stay. */
void nats_server_kill(struct nats_server *server);
/* Start again in the same place. */
void nats_server_restart(struct nats_server *server);
/* Write the configuration anew, with `config`, and have the server read it. */
void nats_server_reload(struct nats_server *server);
/* Kill and remove everything. */
void nats_server_end(struct nats_server *server);

/* Make a stream that listens on a subject and keeps messages in files; `more` may change it. */
void nats_stream_add(struct nats_server *server, const char *name, const char *subject,
		     void (*more)(jsStreamConfig *config));
void nats_stream_remove(struct nats_server *server, const char *name);
void nats_stream_purge(struct nats_server *server, const char *name);
size_t nats_stream_count(struct nats_server *server, const char *name);
/* Every message of a stream, in its order. */
void nats_stream_each(struct nats_server *server, const char *name,
		      void (*each)(void *arg, natsMsg *msg), void *arg);

#endif
