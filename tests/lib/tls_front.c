/* SPDX-License-Identifier: MIT */
/* One thread for each connection, with blocking sockets: who talks through it takes turns. */
#include "tls_front.h"

#include "run.h"

#include <arpa/inet.h>
#include <check.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINKS_MAX = 256, BLOCK = 1 << 16 };

struct link {
	pthread_t thread;
	SSL *ssl;
	int client, server;
};

struct tls_front {
	SSL_CTX *ctx;
	pthread_t thread;
	int listener, port, server_port;
	atomic_bool ends;
	struct link links[LINKS_MAX]; /* the accepting thread's, until it has ended */
	size_t count;
};

/* ---- a connection ---------------------------------------------------- */

static bool send_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		p += sent;
		n -= (size_t)sent;
	}
	return true;
}

static bool to_server(struct link *link, char *block)
{
	int n = SSL_read(link->ssl, block, BLOCK);

	return n > 0 && send_all(link->server, block, (size_t)n);
}

static bool to_client(struct link *link, char *block)
{
	ssize_t n = recv(link->server, block, BLOCK, 0);

	return n > 0 && SSL_write(link->ssl, block, (int)n) == (int)n;
}

/* One side has something to say: pass it on. False: one has ended. */
static bool move(struct link *link, char *block)
{
	struct pollfd fds[] = { { link->client, POLLIN, 0 }, { link->server, POLLIN, 0 } };

	if (SSL_pending(link->ssl) > 0)
		return to_server(link, block);
	if (poll(fds, 2, -1) < 0)
		return false;
	if (fds[0].revents && !to_server(link, block))
		return false;
	return !fds[1].revents || to_client(link, block);
}

static void *pass(void *arg)
{
	struct link *link = arg;
	char *block = malloc(BLOCK);

	if (block && SSL_accept(link->ssl) == 1) {
		while (move(link, block))
			;
	}
	free(block);
	/* The descriptors stay ours until the front ends: nobody else may get their numbers. */
	(void)shutdown(link->client, SHUT_RDWR);
	(void)shutdown(link->server, SHUT_RDWR);
	return NULL;
}

/* ---- all of them ----------------------------------------------------- */

static void accept_one(struct tls_front *front)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)front->server_port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct link *link = &front->links[front->count];
	int client = accept4(front->listener, NULL, NULL, SOCK_CLOEXEC);

	if (client < 0)
		return;
	*link = (struct link){ .client = client,
			       .server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
			       .ssl = SSL_new(front->ctx) };
	if (front->count == LINKS_MAX - 1 || !link->ssl || SSL_set_fd(link->ssl, client) != 1 ||
	    connect(link->server, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    pthread_create(&link->thread, NULL, pass, link) != 0) {
		SSL_free(link->ssl);
		(void)close(link->client);
		(void)close(link->server);
		return;
	}
	front->count++;
}

static void *serve(void *arg)
{
	struct tls_front *front = arg;

	while (!atomic_load(&front->ends))
		accept_one(front);
	return NULL;
}

struct tls_front *tls_front_new(const char *dir, const char *name, int port, int server_port)
{
	struct tls_front *front = calloc(1, sizeof(*front));
	char certificate[200], key[200];

	ck_assert_ptr_nonnull(front);
	front->server_port = server_port;
	front->ctx = SSL_CTX_new(TLS_server_method());
	ck_assert_ptr_nonnull(front->ctx);
	(void)snprintf(certificate, sizeof(certificate), "%s/%s.crt", dir, name);
	(void)snprintf(key, sizeof(key), "%s/%s.key", dir, name);
	ck_assert_int_eq(SSL_CTX_use_certificate_chain_file(front->ctx, certificate), 1);
	ck_assert_int_eq(SSL_CTX_use_PrivateKey_file(front->ctx, key, SSL_FILETYPE_PEM), 1);
	front->listener = listen_on(port, &front->port);
	ck_assert_int_eq(pthread_create(&front->thread, NULL, serve, front), 0);
	return front;
}

int tls_front_port(const struct tls_front *front)
{
	return front->port;
}

void tls_front_free(struct tls_front *front)
{
	atomic_store(&front->ends, true);
	(void)shutdown(front->listener, SHUT_RDWR);
	(void)pthread_join(front->thread, NULL);
	for (size_t i = 0; i < front->count; i++) {
		struct link *link = &front->links[i];

		(void)shutdown(link->client, SHUT_RDWR);
		(void)shutdown(link->server, SHUT_RDWR);
		(void)pthread_join(link->thread, NULL);
		SSL_free(link->ssl);
		(void)close(link->client);
		(void)close(link->server);
	}
	(void)close(front->listener);
	SSL_CTX_free(front->ctx);
	free(front);
}
